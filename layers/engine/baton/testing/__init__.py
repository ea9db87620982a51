"""Testing sagas of one's own: a workflow is run by the real engine, in memory and in virtual time.

Nothing here is shipped to Lambda. Names are loaded when first used: pytest imports this package for its plugin, in
every project that has Baton installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baton.testing.blocked import LoopBlocked
    from baton.testing.deployment import EngineDefect
    from baton.testing.elsewhere import Elsewhere
    from baton.testing.result import Result, Step, Unanswered
    from baton.testing.running import run

__all__ = ["Elsewhere", "EngineDefect", "LoopBlocked", "Result", "Step", "Unanswered", "run"]

_HOMES = {
    "Elsewhere": "elsewhere",
    "EngineDefect": "deployment",
    "LoopBlocked": "blocked",
    "Result": "result",
    "Step": "result",
    "Unanswered": "result",
    "run": "running",
}

if not TYPE_CHECKING:  # for which every name would be there

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module `baton.testing` has no `{name}`")
        return getattr(import_module(f"baton.testing.{_HOMES[name]}"), name)
