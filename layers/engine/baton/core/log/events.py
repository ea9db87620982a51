"""What can be in a log: the union of all kinds of event, and the entry around them.

A kind is declared in the file of its subject, such as events.py. Adding one or an optional field keeps `FORMAT`; changing the
meaning of what is there raises it.
How an entry becomes bytes is in codec.py.
"""

from __future__ import annotations

from typing import Any

import msgspec

from baton.core.failures.alternatives import Alternative
from baton.core.log.records import (
    About,
    Ask,
    Blamed,
    Failure,
    Gives,
    Notice,
    Response,
    Root,
    Sent,
    Settles,
    SharedLimit,
    Shown,
    Token,
    Untold,
    Value,
    failed_with,
)
from baton.core.log.scopes import (
    AgentClosed,
    AlternativeBegan,
    Called,
    CallsBegan,
    ItemsBegan,
    ItemsGathered,
    MapClosed,
    MapEnded,
    MapStopped,
    ReplanEnded,
    TurnBegan,
)
from baton.core.log.undos import (
    ChildUndone,
    Earlier,
    Keys,
    NotUndone,
    StepStopped,
    UndoBegan,
    Undone,
    UndoPassed,
    UndoSetAside,
    UndoStep,
    UndoStepBegan,
    UndoTakenUp,
)
from baton.core.log.work import (
    AgentBegan,
    CallbackHeartbeat,
    CallbackOpened,
    ChildOpened,
    MapBegan,
    Opens,
    QuestionOpened,
    ReplanBegan,
    WaitClosed,
    WaitOpened,
)
from baton.core.models.usage import Usage

__all__ = [
    "AgentBegan",
    "AgentClosed",
    "AlternativeBegan",
    "Ask",
    "AttemptFailed",
    "Blamed",
    "CallbackHeartbeat",
    "CallbackOpened",
    "Called",
    "CallsBegan",
    "CancelRequested",
    "ChildClosed",
    "ChildOpened",
    "ChildOverdue",
    "ChildReported",
    "ChildUndone",
    "ChildrenAbandoned",
    "Failure",
    "Forked",
    "GaveUp",
    "Gives",
    "ItemsBegan",
    "ItemsGathered",
    "JoinFired",
    "LimitReached",
    "MapBegan",
    "MapClosed",
    "MapEnded",
    "MapStopped",
    "NodeAdmitted",
    "NodeBegan",
    "NodePassed",
    "NodeSkipped",
    "NotUndone",
    "Notice",
    "NoticeDue",
    "NoticesSent",
    "Opens",
    "Parked",
    "QuestionClaimed",
    "QuestionClosed",
    "QuestionEscalated",
    "QuestionOpened",
    "ReplanBegan",
    "ReplanEnded",
    "Response",
    "Resumed",
    "Revived",
    "SagaEnded",
    "SagaStarted",
    "Settles",
    "Shown",
    "SignalReceived",
    "StepFailed",
    "StepHeld",
    "StepInterrupted",
    "StepStopped",
    "StepSucceeded",
    "StrategyChosen",
    "Token",
    "TurnBegan",
    "UndoBegan",
    "UndoPassed",
    "UndoSetAside",
    "UndoStep",
    "UndoStepBegan",
    "UndoTakenUp",
    "Undone",
    "Untold",
    "Value",
    "WaitClosed",
    "WaitOpened",
    "failed_with",
]


class NodeSkipped(Settles, frozen=True, tag="node_skipped", omit_defaults=True, kw_only=True):
    """It did not run, or its result is not needed any more.

    `why` is empty when its edges were dead, `when` when its condition said no, `join NAME` when the join that it
    leads to has fired without it.
    """

    became = "skipped"
    why: str = ""


class JoinFired(Root, frozen=True, tag="join_fired", omit_defaults=True, kw_only=True):
    """A join was ready, by `by`, before every edge had arrived; tokens of `unspoken` that arrive later are absorbed."""

    node: str
    iteration: tuple[int, ...] = ()
    by: tuple[str, ...] = ()
    unspoken: tuple[str, ...]


class NodeAdmitted(About, frozen=True, tag="node_admitted", omit_defaults=True, kw_only=True):
    """The `when` of a node holds; recorded only where asking again might not give the same answer."""


class NodeBegan(About, frozen=True, tag="node_began", omit_defaults=True, kw_only=True):
    """A node whose time is limited became ready; or an item, which begins with this."""

    at: int


class NodePassed(Gives, frozen=True, tag="node_passed", omit_defaults=True, kw_only=True):
    """A node that runs nothing gave its value. `ends`: it is the saga's result, and the saga ends."""

    became = "passed"
    made = ("output",)
    ends: bool = False


class ChildOverdue(About, frozen=True, tag="child_overdue", omit_defaults=True, kw_only=True):
    """The time of a child is over: it is asked to stop and to undo what it has done, and is waited for. `until`: it is not over before then, because the child's time has stood still."""

    at: int
    until: int = 0


class ChildReported(Root, frozen=True, tag="child_reported", omit_defaults=True, kw_only=True):
    """A child ended; its parent's worker puts this, several in one entry. `cost` is all it spent. `undoable`: it has done what can be undone."""

    slot: str
    child: str
    status: str
    output: Value = Value()
    failure: Failure | None = None
    cost: int = 0
    undoable: bool = False


class ChildClosed(Gives, frozen=True, tag="child_closed", omit_defaults=True, kw_only=True):
    """The workflow node whose child reported success is done; or its cancelled child did, and `by` is the signal that called it off. `prior` and `lasting` are as those of a step that has succeeded."""

    child: str
    by: str = ""
    prior: int | None = None
    lasting: bool = False


class ChildrenAbandoned(Root, frozen=True, tag="children_abandoned", omit_defaults=True, kw_only=True):
    """Children that a fork or a join left behind were asked to stop, or some of a saga that is about to end. `undo`: it undoes what it has done, and hears first what they have undone."""

    children: tuple[str, ...]
    undo: bool = False


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


class SagaStarted(Root, frozen=True, tag="saga_started", omit_defaults=True, kw_only=True):
    """Entry 1. `parent` is the key of the saga that waits for this one; `slot` its place there, `window` of its inbox.

    `depth` counts the sagas above it; `scope` names its place in them whatever the branch they are in: what happens
    once there happens once in all branches. `counts` are the scopes whose limits are counted: nodes by name, the saga as an
    empty text. `handled`: a saga above goes on from this one's failure. `last`: what its deployment does in place of
    a question (`escalate` or `fail`); empty: it asks. `ends_by`: until when it may last, and `expires`: when all of it may be deleted (0: never).
    `sent`: the event from outside that has started it. `outer`, of a named graph of a document: what its expressions name of the place
    that it was started from. `passed`: values of that which are passed by reference, by what the graph calls them: `ctx.NODE`, `last_error.batch`.
    `before`: the sagas that were in its place before forks above it, the newest first; `keys`: what they have undone is done anew, and what they have not keeps
    its keys. `shared_limits`: the limits of money of the sagas above, the nearest first.
    """

    workflow: str
    graph: str
    tenant: str
    user: str
    saga: str
    input: Value
    at: int
    emits: tuple[Token, ...]
    parent: str = ""
    slot: str = ""
    window: int = 0
    depth: int = 0
    scope: str = ""
    counts: tuple[str, ...] = ()
    handled: bool = False
    last: str = ""
    ends_by: int = 0
    expires: int = 0
    labels: dict[str, str] = {}  # noqa: RUF012  # msgspec copies it
    sent: Sent | None = None
    outer: Value | None = None
    passed: dict[str, Value] = {}  # noqa: RUF012  # msgspec copies it
    before: tuple[Earlier, ...] = ()
    keys: Keys | None = None
    shared_limits: tuple[SharedLimit, ...] = ()


class SignalReceived(Root, frozen=True, tag="signal_received", omit_defaults=True, kw_only=True):
    """A caller sent a signal. A repeated `key` is a no-op. With a `failure`, the wait that takes it fails with it. `sent`: the event from outside that it is. `lost`: no wait was open for it, and none takes one that came before."""

    name: str
    key: str
    payload: Value
    by: str
    at: int
    failure: Failure | None = None
    sent: Sent | None = None
    lost: bool = False


class CancelRequested(Root, frozen=True, tag="cancel_requested", omit_defaults=True, kw_only=True):
    """Running steps may finish until `at + grace_ms`; nothing new starts. `result`: its end says what was done by then. `undo`: what it has done since version `back_to` is undone first, `together` or one after the other. A repeated `key` changes nothing."""

    reason: str
    by: str
    at: int
    grace_ms: int
    result: bool = False
    undo: bool = False
    back_to: int = 0
    together: bool = False
    key: str = ""


class Forked(Root, frozen=True, tag="forked", omit_defaults=True, kw_only=True):
    """The last entry of a branch: the saga goes on in branch `branch` from its state at version `cut`.

    A repeated `key` makes no second fork. `undo`: it goes on from its end, to undo what it has done since version `back_to`.
    """

    cut: int
    branch: int
    by: str
    at: int
    reason: str = ""
    key: str = ""
    undo: bool = False
    back_to: int = 0
    together: bool = False


class Revived(Root, frozen=True, tag="revived", omit_defaults=True, kw_only=True):
    """The lease of invocation `dead` (epoch `dead_epoch`) ran out at `dead_until` without a release.

    `assumed`: by slot, the micro-dollars of requests to models that it had under way. Their provider bills them; the most that they can cost counts.
    `tokens`: the most that they can have read and written, where tokens are limited.
    """

    dead: str
    dead_epoch: int
    dead_until: int
    at: int
    assumed: dict[str, int] = {}  # noqa: RUF012  # each struct has its own
    tokens: dict[str, tuple[int, ...]] = {}  # noqa: RUF012


class GaveUp(Root, frozen=True, tag="gave_up", omit_defaults=True):
    """The invocation has ended by itself, and the store did not let it give its lease back: when that runs out, none has died."""


class LimitReached(Root, frozen=True, tag="limit_reached", omit_defaults=True, kw_only=True):
    """The saga has come to the end of what it may use, and fails. `stays`: it undoes nothing."""

    failure: Failure
    stays: bool = False


class Parked(Root, frozen=True, tag="parked", omit_defaults=True, kw_only=True):
    """A person has to decide; `code` says about what. `until`: then it goes on by itself; 0: never.

    `at`, of a defect, in the saga or in a child: since when the saga's time stands still; `build`: the code that it has failed with, if that is known.
    """

    code: str
    message: str
    node: str = ""
    until: int = 0
    at: int = 0
    build: str = ""


class Resumed(Root, frozen=True, tag="resumed", omit_defaults=True, kw_only=True):
    """A person let a parked saga try again, or its time has come. `budget`: so much it may spend from now on.

    `build`: code was deployed under which the steps that are parked for a defect have not failed yet: these are tried again.
    """

    by: str
    at: int
    budget: int = 0
    build: str = ""


class SagaEnded(Root, frozen=True, tag="saga_ended", omit_defaults=True, kw_only=True):
    """`status` is completed, failed, cancelled, rolled_back or rollback_failed. After it only a fork may follow. `undone`: what came of undoing. `handler`: the saga of its failure handler; `unhandled`: why there is none."""

    made = ("output",)
    status: str
    output: Value = Value()
    failure: Failure | None = None
    undone: Undone | None = None
    handler: str = ""
    unhandled: Failure | None = None


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


FORMAT = 1


Opening = WaitOpened | ChildOpened | QuestionOpened | CallbackOpened | AgentBegan | MapBegan
Closing = StepSucceeded | NodePassed | WaitClosed | ChildClosed | AgentClosed | MapClosed
Moving = (
    TurnBegan
    | CallsBegan
    | AlternativeBegan
    | ItemsBegan
    | ItemsGathered
    | MapStopped
    | MapEnded
    | ChildOverdue
)
Event = (
    SagaStarted
    | StepSucceeded
    | StepFailed
    | AttemptFailed
    | StrategyChosen
    | StepHeld
    | QuestionClosed
    | QuestionEscalated
    | QuestionClaimed
    | NoticeDue
    | NoticesSent
    | StepInterrupted
    | NodeSkipped
    | JoinFired
    | NodeAdmitted
    | NodeBegan
    | NodePassed
    | WaitOpened
    | WaitClosed
    | QuestionOpened
    | CallbackOpened
    | CallbackHeartbeat
    | AgentBegan
    | TurnBegan
    | CallsBegan
    | AgentClosed
    | MapBegan
    | ItemsBegan
    | ItemsGathered
    | MapStopped
    | MapClosed
    | MapEnded
    | ReplanBegan
    | AlternativeBegan
    | ReplanEnded
    | ChildOpened
    | ChildOverdue
    | ChildReported
    | ChildClosed
    | ChildrenAbandoned
    | SignalReceived
    | CancelRequested
    | Revived
    | GaveUp
    | LimitReached
    | Parked
    | Resumed
    | UndoBegan
    | UndoStepBegan
    | UndoPassed
    | UndoSetAside
    | UndoTakenUp
    | ChildUndone
    | StepStopped
    | Forked
    | SagaEnded
)


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One append: its events, and who wrote it when.

    `epoch` is that of the lease under which a worker wrote it, 0 for any other writer. By epoch and invocation
    a writer that repeats a put without having seen the answer recognises the entry as its own.
    """

    format: int = FORMAT
    version: int
    branch: int = 0
    at: int
    epoch: int = 0
    invocation: str
    cold: bool = False
    traceparent: str = ""
    events: tuple[Event, ...]
