"""Workflows that are Python functions: their declaration, their event loop, and how they are run."""

from __future__ import annotations

from typing import Any

from baton.ports.functions import FunctionFacts, FunctionSession
from baton.tools.define import Registry


class ApplicationFunctions:
    """The workflow functions of a registry. What runs them is imported with the first one."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[Any, Any] = {}

    def open(self, name: str, arguments: Any, facts: FunctionFacts) -> FunctionSession:
        """Make a session of a function. Raises `StepFailure`."""
        from baton.tools.functions.run import session  # few applications have one

        return session(self._registry, self._known, name, arguments, facts)
