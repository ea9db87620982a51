"""Kinds of event about steps with failed attempts, and about notices to people.

folding/failure_folds.py folds them into a state; core/decide/failure_handling.py writes them.
"""

from __future__ import annotations

from typing import Any

from baton.core.failures.alternatives import Alternative
from baton.core.log.records import About, Ask, Failure, Notice, Root, Shown, Untold, Value
from baton.core.models.usage import Usage


class AttemptFailed(About, frozen=True, tag="attempt_failed", omit_defaults=True, kw_only=True):
    """An attempt failed that is not the step's last word: what is done about it follows in the same entry. `kept`: the arguments that what undoes it needs, where it may have happened all the same; `key`: its idempotency key, where that is needed, too. `acted`: an attempt before it may have acted, which it says nothing of; both are of that one then."""

    attempt: int
    failure: Failure
    started_at: int
    ended_at: int
    tool: str
    tool_version: str
    schema_hash: str
    cost: int = 0
    blocked_ms: int = 0
    callback: str = ""
    usage: tuple[Usage, ...] = ()
    assumed: int = 0
    kept: Value | None = None
    key: str = ""
    acted: bool = False


class StrategyChosen(About, frozen=True, tag="strategy_chosen", omit_defaults=True, kw_only=True):
    """What is done about the last failure of a step: retry, replan, ask_user or escalate (core/failures/strategies/).

    `due_at`: not before then. `way` and `arguments` hold for all attempts from now on, `hooks` (tools) are called before the
    next. `look`: it is only looked whether it has happened. `policy`: the failover policy that said so, with the `message` that people are told.
    `why`: why the strategies below it were passed. `build`: the code that a defect has failed with, if that is known.
    """

    strategy: str
    code: str
    at: int
    due_at: int = 0
    hooks: tuple[str, ...] = ()
    hint: str = ""
    way: Alternative | None = None
    arguments: dict[str, Any] = {}  # noqa: RUF012  # each struct has its own
    policy: str = ""
    why: tuple[str, ...] = ()
    ask: Ask | None = None
    severity: str = ""
    look: bool = False
    message: str = ""
    build: str = ""


class StepHeld(About, frozen=True, tag="step_held", omit_defaults=True, kw_only=True):
    """A step waits for a circuit breaker: no attempt was made, and it asks again at `until`. `state`: that of the breaker."""

    breaker: str
    at: int
    until: int
    state: str = "open"


class QuestionClosed(About, frozen=True, tag="question_closed", omit_defaults=True, kw_only=True):
    """A question has its answer, or it `expired`. About a step: `retry` (with other arguments, perhaps), `use`, `fail`.

    Of a step whose call has to be approved: `approve`, and the step goes on; else it fails in the same entry.

    `by` is the key of the signal that brought the answer. What the answer comes to follows in the same entry, but for an
    effect whose outcome was unknown: what a person says (`output`) is recorded by the next attempt.
    """

    made = ("output",)
    ask: str
    action: str
    at: int
    by: str = ""
    arguments: dict[str, Any] = {}  # noqa: RUF012  # each struct has its own
    output: Value | None = None


class QuestionEscalated(About, frozen=True, tag="question_escalated", omit_defaults=True, kw_only=True):
    """A question had no answer when a step of its escalation was `due`: its audience is told again, or the question goes `to` others.

    Of several that are due at once, people are told of the last alone. Without `due`, a person (`by`) has asked that they are told.
    """

    ask: str
    at: int
    due: int = 0
    to: str | None = None
    by: str = ""


class QuestionClaimed(About, frozen=True, tag="question_claimed", omit_defaults=True, kw_only=True):
    """One of those whom a question is for has made it `to` their own; or, without `to`, it is for all of them again."""

    ask: str
    at: int
    by: str
    to: str = ""


class NoticeDue(Root, frozen=True, tag="notice_due", omit_defaults=True, kw_only=True):
    """A person outside is to be told. The worker that runs the saga tries until `NoticesSent` says that it was."""

    notice: Notice


class NoticesSent(Root, frozen=True, tag="notices_sent", omit_defaults=True, kw_only=True):
    """These were told, but for the channels that have given them up.

    `shown`: questions whose rows were put into the inbox; `withdrawn`: those whose rows were taken out of it.
    """

    keys: tuple[str, ...]
    untold: tuple[Untold, ...] = ()
    shown: dict[str, Shown] = {}  # noqa: RUF012  # each struct has its own
    withdrawn: tuple[str, ...] = ()
