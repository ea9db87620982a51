"""Workflows of an application: module-level `Workflow` objects, by name.

This module searches Python modules. Callers with access to the files find documents in files.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from baton.builder.workflow import Workflow
from baton.core.expressions import hinted, nearest
from baton.errors import InvalidDefinition, NotFound
from baton.tools.define import modules_of


def documents(app: ModuleType) -> dict[str, str]:
    """Return the YAML of every workflow in the application's modules, by name, sorted.

    The modules are those whose tools are imported. Raises `InvalidDefinition` for a workflow with mistakes,
    and for two workflows with one name.
    """
    found: dict[str, tuple[Workflow, str]] = {}
    for module in modules_of(app.__name__):
        for attribute, value in vars(module).items():
            if not isinstance(value, Workflow):
                continue
            address = f"{module.__name__}:{attribute}"
            known, at = found.setdefault(value.name, (value, address))
            if known is not value:
                raise InvalidDefinition(f"the workflow `{value.name}` is there twice: {at} and {address}")
    return {name: _text(*found[name]) for name in sorted(found)}


def _text(workflow: Workflow, address: str) -> str:
    try:
        return workflow.to_yaml()
    except InvalidDefinition as error:
        raise InvalidDefinition(f"{address}: {error.detail}", error.problems) from error


def load_workflow(address: str) -> Workflow:
    """Return the workflow at `module:attribute`. Raises `NotFound`, and the errors of the module's import."""
    name, _, attribute = address.partition(":")
    try:
        module = importlib.import_module(name) if name else None
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and what it imports is not
        module = None
    if module is None or not attribute:
        raise NotFound(
            f"there is no module `{name}`"
            if attribute
            else f"`{address}` names no workflow; write MODULE:ATTRIBUTE"
        )
    known = {key: value for key, value in vars(module).items() if isinstance(value, Workflow)}
    if attribute not in known:
        hint = nearest(attribute, known) or f"there are: {', '.join(sorted(known)) or 'none'}"
        raise NotFound(hinted(f"`{name}` has no workflow `{attribute}`", hint))
    return known[attribute]
