"""The standard tools: effects that are idempotent by construction, under names that begin with `std.`

Belongs here: which there are, and how they come beside an application's own. What each does is in its own file.
"""

from __future__ import annotations

from collections.abc import Mapping

from baton.tools.define import Registry, Tool
from baton.tools.standard import http, notify, pay, stored
from baton.tools.standard.kit import NOWHERE, Services

__all__ = ["Services", "standard_tools", "with_standard"]


def standard_tools(services: Services = NOWHERE) -> Registry:
    """Their registry. Without services they can be compiled against, and not run."""
    registry = Registry()
    for module in (http, notify, pay, stored):
        module.declare(registry, services)
    return registry


def with_standard(app: Mapping[str, Tool], services: Services = NOWHERE) -> Registry:
    """The tools of an application, and those standard tools whose names it does not use itself.

    An application's own tool counts: one of that name that comes with a later version of the engine breaks nothing.
    """
    registry = Registry()
    for name, tool in (standard_tools(services) | dict(app)).items():
        registry.add(tool)
    return registry
