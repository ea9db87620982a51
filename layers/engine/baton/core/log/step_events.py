"""How an attempt at a step ends: it has succeeded, or failed for good, or was cut off.

What is done about a failure before that is in failure_events.py, a step that is stopped while its saga is undone in undo_events.py.
"""

from __future__ import annotations

from baton.core.log.records import About, Failure, Value
from baton.core.log.settling import Gives, Settles
from baton.core.models.usage import Usage


class StepSucceeded(Gives, frozen=True, tag="step_succeeded", omit_defaults=True, kw_only=True):
    """A tool answered. `recorded`: what may happen only once had happened before, and this is what came of it. `cost`, here and wherever an attempt ends: what the tool said it spent, in micro-dollars. `blocked_ms`, likewise: how long it held the event loop, if that was too long. `callback`, likewise: the one with which the attempt ended; `usage`: what models have read and written for it. `assumed`, likewise: how much of the cost is the most that requests to models can have cost whose answers never came. `digest` names the call, where a model may plan an equal one. `prior`, of one that an undoing comes to: the version of the entry that it comes to then; `lasting`: nothing undoes it; `kept`: the arguments that what undoes it needs; `key`, likewise: its idempotency key."""

    attempt: int
    started_at: int
    ended_at: int
    tool: str
    tool_version: str
    schema_hash: str
    recorded: bool = False
    cost: int = 0
    blocked_ms: int = 0
    callback: str = ""
    usage: tuple[Usage, ...] = ()
    assumed: int = 0
    digest: str = ""
    prior: int | None = None
    lasting: bool = False
    kept: Value | None = None
    key: str = ""


class StepFailed(Settles, frozen=True, tag="step_failed", omit_defaults=True, kw_only=True):
    """A tool failed, timed out, its input could not be bound, or its join cannot fire.

    With tokens to emit, a join tolerates it and the tokens carry it there; without, the saga fails with it. `by`: the key of
    the signal that brought the failure. `is_result`: of a call that a model has asked for, which is told of it; the saga goes on. `stays`: the rules for
    the failure let the saga end without undoing what it has done. `prior`, `kept` and `key` are as those of a step that has succeeded: it may have
    happened, and an undoing comes to it, too.
    """

    became = "failed"
    attempt: int
    failure: Failure
    started_at: int
    ended_at: int
    tool: str
    tool_version: str
    schema_hash: str
    cost: int = 0
    blocked_ms: int = 0
    by: str = ""
    callback: str = ""
    is_result: bool = False
    usage: tuple[Usage, ...] = ()
    assumed: int = 0
    stays: bool = False
    prior: int | None = None
    kept: Value | None = None
    key: str = ""


class StepInterrupted(About, frozen=True, tag="step_interrupted", omit_defaults=True, kw_only=True):
    """Cut off by the invocation's end, not by its own timeout: it runs again and loses no attempt.

    `budget_ms` is what it could have had at most, from its start to the cut. Also told of a step that was not cut off
    but had spent something when it came no further (`why`): `money` for its next call was missing, or it was
    `stopped` because the saga no longer needs its result, or a person has to approve its next call (`approval`). That counts
    for nothing but money, whatever else the step is at. With `fault`, the engine could not go on and stopped it: it runs again, and may have acted.
    """

    started_at: int
    ended_at: int
    budget_ms: int
    cost: int = 0
    why: str = ""
    assumed: int = 0
    usage: tuple[Usage, ...] = ()
