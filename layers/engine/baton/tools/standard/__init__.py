"""The standard tools: effects that are idempotent by construction, under names that begin with `std.`

Belongs here: which there are, and how they come beside an application's own. What each does is in its own file, and
those are imported when somebody asks for one of them: a cold start pays nothing for tools that nobody uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from baton.core.toolspec import ToolSpec
from baton.tools.define import Registry, Tool
from baton.tools.standard.kit import NOWHERE, Services

__all__ = ["PREFIX", "Services", "standard_tools", "with_standard"]

PREFIX = "std."


def standard_tools(services: Services = NOWHERE) -> Registry:
    """Their registry. Without services they can be compiled against, and not run."""
    from baton.tools.standard import http, notify, pay, stored

    registry = Registry()
    for module in (http, notify, pay, stored):
        module.declare(registry, services)
    return registry


def with_standard(app: Registry, services: Services = NOWHERE) -> Registry:
    """The tools of an application, and those standard tools whose names it does not use itself.

    An application's own tool counts: one of its name that comes with a later version of the engine breaks nothing.
    """
    return _Both(app, services)


class _Both(Registry):
    """Reads only. What the application declares later is there, too."""

    def __init__(self, app: Registry, services: Services) -> None:
        super().__init__()
        self._app = app
        self._services = services

    @cached_property
    def _standard(self) -> Registry:
        return standard_tools(self._services)

    def add(self, tool: Tool) -> None:
        self._app.add(tool)

    def specs(self) -> Mapping[str, ToolSpec]:
        return _Specs(self)

    def __getitem__(self, name: str) -> Tool:
        if name in self._app:
            return self._app[name]
        if not name.startswith(PREFIX):
            raise KeyError(name)
        return self._standard[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._app
        yield from (name for name in self._standard if name not in self._app)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Specs(Mapping[str, ToolSpec]):
    """The specs of a registry, each looked up when it is asked for."""

    def __init__(self, tools: Registry) -> None:
        self._tools = tools

    def __getitem__(self, name: str) -> ToolSpec:
        return self._tools[name].spec

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)
