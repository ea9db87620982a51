"""The workflows of an application: module-level `Workflow` objects, by name.

It looks them up in modules. Documents in files are found by the callers that have the files.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from baton.builder.workflow import Workflow
from baton.core.expressions import hinted, nearest
from baton.errors import InvalidDefinition, NotFound
from baton.tools.define import modules_of


def documents(app: ModuleType) -> dict[str, str]:
    """The YAML of every workflow that a module of the application holds, by name, sorted.

    The modules are those whose tools are imported.
    Raises `InvalidDefinition` for a workflow with mistakes, and for two workflows with one name.
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
    """The workflow at `module:attribute`. Raises `NotFound`, and whatever importing the module raises."""
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
