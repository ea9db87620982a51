"""Tests of sagas: the real engine runs a workflow in memory and in virtual time.

Lambda does not need this package. Names are loaded on first use, because pytest imports this package for its
plugin in every project with Baton installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baton.ports.models import ModelAnswer, ModelRequest
    from baton.testing.deployment import EngineDefect
    from baton.testing.loop import LoopBlocked
    from baton.testing.models import call, every_tool_once
    from baton.testing.outside import Elsewhere
    from baton.testing.result import Call, Result, Step, Turn, Unanswered
    from baton.testing.running import run

__all__ = [
    "Call", "Elsewhere", "EngineDefect", "LoopBlocked", "ModelAnswer", "ModelRequest", "Result", "Step",
    "Turn", "Unanswered", "call", "every_tool_once", "run",
]  # fmt: skip

_HOMES = {
    "Call": "testing.result",
    "Elsewhere": "testing.outside",
    "EngineDefect": "testing.deployment",
    "LoopBlocked": "testing.loop",
    "ModelAnswer": "ports.models",
    "ModelRequest": "ports.models",
    "Result": "testing.result",
    "Step": "testing.result",
    "Turn": "testing.result",
    "Unanswered": "testing.result",
    "call": "testing.models",
    "every_tool_once": "testing.models",
    "run": "testing.running",
}

if not TYPE_CHECKING:  # for which every name would be there

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module `baton.testing` has no `{name}`")
        return getattr(import_module(f"baton.{_HOMES[name]}"), name)
