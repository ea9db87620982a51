"""Workflows of an application, by name: `Workflow` objects of its modules, and functions under `@workflow`.

This module searches Python modules. Callers with access to the files find documents in files.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeAlias

from baton.builder.workflow import Workflow
from baton.core.documents.text import write_yaml
from baton.core.expressions import nearest, with_hint
from baton.errors import InvalidDefinition, NotFound
from baton.tools.define import REGISTRY, Registry, Tool, modules_of

PythonWorkflow: TypeAlias = Workflow | Callable[..., Any]


def documents(app: ModuleType) -> dict[str, str]:
    """Return the YAML of every workflow in the application's modules, by name, sorted.

    The modules are those whose tools are imported. Raises `InvalidDefinition` for a workflow with mistakes,
    and for two workflows with one name.
    """
    found: dict[str, tuple[PythonWorkflow, str]] = {}
    for address, name, value in python_workflows(app):
        known, at = found.setdefault(name, (value, address))
        if known is not value:
            raise InvalidDefinition(f"the workflow `{name}` is there twice: {at} and {address}")
    return {name: _text(*found[name]) for name in sorted(found)}


def python_workflows(app: ModuleType) -> Iterator[tuple[str, str, PythonWorkflow]]:
    """Yield address, name and object of each workflow of an application."""
    package = f"{app.__name__}."
    for module in modules_of(app.__name__):
        yield from _built_in(module)
    for address, tool in _functions(REGISTRY):
        if address.startswith((package, f"{app.__name__}:")):
            yield address, tool.spec.name, tool.function


def workflows_in(module: ModuleType) -> dict[str, PythonWorkflow]:
    """Return the workflows of a module by their addresses."""
    found: dict[str, PythonWorkflow] = {address: value for address, _, value in _built_in(module)}
    here = f"{module.__name__}:"
    return found | {at: tool.function for at, tool in _functions(REGISTRY) if at.startswith(here)}


def text_of(workflow: PythonWorkflow, registry: Registry = REGISTRY) -> str:
    """Return the YAML of a workflow. Raises `InvalidDefinition`, and `NotFound` for another function."""
    if isinstance(workflow, Workflow):
        return workflow.to_yaml()
    tool = next((tool for _, tool in _functions(registry) if tool.function is workflow), None)
    if tool is None:
        called = getattr(workflow, "__name__", repr(workflow))
        raise NotFound(f'`{called}` is no workflow; write `@workflow("name")` above it')
    from baton.tools.functions.define import document_of  # few applications have a function

    return write_yaml(document_of(tool))


def load_document(address: str) -> str:
    """Return the YAML of the workflow at `module:attribute`.

    Raises `NotFound`, `InvalidDefinition`, and the errors of the module's import.
    """
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
    known = workflows_in(module)
    if f"{name}:{attribute}" not in known:
        names = [at.partition(":")[2] for at in known]
        hint = nearest(attribute, names) or f"there are: {', '.join(sorted(names)) or 'none'}"
        raise NotFound(with_hint(f"`{name}` has no workflow `{attribute}`", hint))
    return text_of(known[f"{name}:{attribute}"])


def _built_in(module: ModuleType) -> Iterator[tuple[str, str, Workflow]]:
    for attribute, value in vars(module).items():
        if isinstance(value, Workflow):
            yield f"{module.__name__}:{attribute}", value.name, value


def _functions(registry: Registry) -> Iterator[tuple[str, Tool]]:
    """Yield address and declaration of each function under `@workflow`, of the modules that are imported."""
    for tool in registry.values():
        if tool.document is not None and tool.function.__module__ in sys.modules:
            yield f"{tool.function.__module__}:{tool.function.__qualname__}", tool


def _text(workflow: PythonWorkflow, address: str) -> str:
    try:
        return text_of(workflow)
    except InvalidDefinition as error:
        raise InvalidDefinition(f"{address}: {error.detail}", error.problems) from error
