"""The standard tools: effects that are idempotent by construction, under names that begin with `std.`

Each is in its own file, which the registry imports at the first request
for the tool: a cold start pays nothing for unused tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from baton.core.effects.toolspec import (
    EVERYTHING,
    NAMED_PIPELINE,
    NOTHING,
    PREFIX,
    Grants,
    TenantTools,
    ToolSpec,
    off,
)
from baton.ports import StepFailure
from baton.tools.define import REGISTRY, Registry, Tool, ToolError, modules_of
from baton.tools.standard.kit import NOWHERE, Services

__all__ = ["PREFIX", "Services", "standard_tools", "with_standard"]


def standard_tools(
    services: Services = NOWHERE,
    beside: Callable[[], Mapping[str, ToolSpec]] | None = None,
    grants: Grants = NOTHING,
) -> Registry:
    """Return the registry of standard tools. Without services they can be compiled against, and not run.
    `beside`: all tools that exist; without it these. `grants`: the tenants for which pipelines are kept.
    """
    from baton.tools.standard import http, memory, named, notify, openapi, pay, pipelines, search, stored

    registry = Registry()
    for module in (http, notify, openapi, pay, stored, memory, named):
        module.declare(registry, services)
    is_granted = partial(grants.allows, NAMED_PIPELINE)
    pipelines.declare(registry, services, named.rememberer(services, is_granted))
    search.declare(registry, beside or registry.specs, partial(named.kept_names, services))
    return registry


PINS = "mcp.lock.json"
"""Name of the file of the tools of MCP servers, in the package of an application."""


def with_standard(app: Registry, services: Services = NOWHERE, grants: Grants = EVERYTHING) -> Registry:
    """Return the tools of an application, and those standard tools
    that are granted and whose names it does not use itself.

    An application's own tool counts: one of its name that comes with a
    later version of the engine breaks nothing.
    """
    return _Both(app, services, grants)


class _Both(Registry):
    """Reads only. What the application declares later is there, too."""

    def __init__(self, app: Registry, services: Services, grants: Grants) -> None:
        super().__init__()
        self._grants = grants
        self._app = app
        self._services = services

    @cached_property
    def _pinned(self) -> Mapping[str, Tool]:
        """The tools of MCP servers."""
        if self._app.pins is None:
            return {}
        from baton.tools.standard.mcp import declare

        return declare(self._app.pins, self._services)

    @cached_property
    def _standard(self) -> Registry:
        standard = standard_tools(self._services, self.specs, self._grants)
        if self._grants is EVERYTHING:
            return standard
        granted = Registry()
        for name, tool in standard.items():
            if self._grants.allows(name):
                granted.add(_guarded(tool, self._grants))
        return granted

    def add(self, tool: Tool) -> None:
        self._app.add(tool)

    def has(self, name: str, tenant: str | None) -> bool:
        """Return true if a tenant may use the tool: one of the application's own in any case."""
        return name in self._app or name in self._pinned or self._grants.allows(name, tenant)

    def specs(self) -> _Specs:
        return _Specs(self)

    def __getitem__(self, name: str) -> Tool:
        if name in self._app:
            return self._app[name]
        if name in self._pinned:
            return self._pinned[name]
        if not self._grants.allows(name):
            raise KeyError(name)
        return self._standard[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._app
        yield from (name for name in self._pinned if name not in self._app)
        yield from (name for name in self._standard if name not in self._app)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _guarded(tool: Tool, grants: Grants) -> Tool:
    """Return the tool for the tenants that may use it."""

    def check(call: Mapping[str, Any]) -> None:
        if not grants.allows(tool.spec.name, call[tool.context].tenant):
            raise StepFailure("permission_denied", f"`{tool.spec.name}`: {off(tool.spec.name)}")

    async def guarded(**call: Any) -> Any:
        check(call)
        return await tool.function(**call)

    def guarded_plain(**call: Any) -> Any:
        check(call)
        return tool.function(**call)

    return replace(tool, function=guarded if tool.is_async else guarded_plain)


class _Specs(TenantTools):
    """The specs of a registry, each looked up when it is asked for; those of a tenant, if there is one."""

    def __init__(self, tools: _Both, tenant: str | None = None) -> None:
        self._tools, self._tenant = tools, tenant

    def for_tenant(self, tenant: str) -> _Specs:
        return _Specs(self._tools, tenant)

    def __getitem__(self, name: str) -> ToolSpec:
        if not self._tools.has(name, self._tenant):
            raise KeyError(name)
        return self._tools[name].spec

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._tools if self._tools.has(name, self._tenant))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _beside(app: ModuleType) -> Path:
    return Path(getattr(app, "__file__", None) or "app").with_name(PINS)


def import_tools(module: str) -> None:
    """Import the app and its modules but `_…`, which declare tools. Raises what they raise, `ToolError`."""
    for one in modules_of(module):
        if one.__name__ == module and (pins := _beside(one)).is_file():
            from baton.tools.standard.mcp import read_pins  # few applications have any

            REGISTRY.pins = read_pins(pins)
    if any(REGISTRY.problems()):
        with_standard(REGISTRY).check()  # perhaps one of them names a standard tool


def load_app(module: str) -> Registry:
    """Return the tools of the app. Raises `ToolError` that names the module that is missing."""
    try:
        import_tools(module)
    except ModuleNotFoundError as error:
        raise ToolError(
            f"the app module `{module}` cannot be imported: {error}; set BATON_APP to the package in layers/app"
        ) from error
    return REGISTRY
