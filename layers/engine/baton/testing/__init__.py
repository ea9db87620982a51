"""Testing sagas of one's own: a workflow is run by the real engine, in memory and in virtual time.

Belongs here: what a test of an application needs. Does not belong here: the engine's own tests, and
anything that is shipped to Lambda.
"""

from baton.testing.blocked import LoopBlocked
from baton.testing.deployment import EngineDefect
from baton.testing.result import Result, Step, Unanswered
from baton.testing.running import run

__all__ = ["EngineDefect", "LoopBlocked", "Result", "Step", "Unanswered", "run"]
