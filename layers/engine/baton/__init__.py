"""Baton: long AI-agent workflows on short-lived AWS Lambda functions.

This module exports the names that authors of sagas need. Other names are imported from their packages. Names
are loaded on first use, so that a function without tools does not import pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from baton.core.version import VERSION

if TYPE_CHECKING:
    from baton.builder import (
        OUTPUT,
        Workflow,
        all_of,
        any_of,
        branch,
        caught,
        cel,
        choose,
        compare,
        join,
        jsonpath,
        loop,
        matches,
        not_,
        poll,
        python,
        rule,
    )
    from baton.client.api import Client, ClientError, SagaFailed
    from baton.core.effects.keys import Key
    from baton.core.effects.risk import Risk
    from baton.core.effects.toolspec import Merits
    from baton.ports import StepContext as Context
    from baton.ports import StepFailure
    from baton.tools.define import node_kind, pipeline, raises, tool
    from baton.tools.functions.agents import Agent
    from baton.tools.functions.context import WorkflowContext
    from baton.tools.functions.define import workflow
    from baton.tools.functions.loop import Callback, Operation, Update

__all__ = [
    "OUTPUT",
    "Agent",
    "Callback",
    "Client",
    "ClientError",
    "Context",
    "Key",
    "Merits",
    "Operation",
    "Risk",
    "SagaFailed",
    "StepFailure",
    "Update",
    "Workflow",
    "WorkflowContext",
    "__version__",
    "all_of",
    "any_of",
    "branch",
    "caught",
    "cel",
    "choose",
    "compare",
    "join",
    "jsonpath",
    "loop",
    "matches",
    "node_kind",
    "not_",
    "pipeline",
    "poll",
    "python",
    "raises",
    "rule",
    "tool",
    "workflow",
]
__version__ = VERSION

_HOMES = {
    "Client": ("baton.client.api", "Client"),
    "ClientError": ("baton.client.api", "ClientError"),
    "SagaFailed": ("baton.client.api", "SagaFailed"),
    "Context": ("baton.ports", "StepContext"),
    "Key": ("baton.core.effects.keys", "Key"),
    "Merits": ("baton.core.effects.toolspec", "Merits"),
    "Risk": ("baton.core.effects.risk", "Risk"),
    "StepFailure": ("baton.ports", "StepFailure"),
    "Agent": ("baton.tools.functions.agents", "Agent"),
    "Callback": ("baton.tools.functions.loop", "Callback"),
    "Operation": ("baton.tools.functions.loop", "Operation"),
    "Update": ("baton.tools.functions.loop", "Update"),
    "WorkflowContext": ("baton.tools.functions.context", "WorkflowContext"),
    "workflow": ("baton.tools.functions.define", "workflow"),
    "node_kind": ("baton.tools.define", "node_kind"),
    "pipeline": ("baton.tools.define", "pipeline"),
    "raises": ("baton.tools.define", "raises"),
    "tool": ("baton.tools.define", "tool"),
}

if not TYPE_CHECKING:  # for which every name would be there

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module `baton` has no `{name}`")
        module, attribute = _HOMES.get(name, ("baton.builder", name))
        return getattr(import_module(module), attribute)
