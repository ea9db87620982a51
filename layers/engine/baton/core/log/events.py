"""What can be in a log: the kinds of event, and the entry around them.

Adding a kind or an optional field keeps `FORMAT`; changing the meaning of what is there raises it.
How an entry becomes bytes is in codec.py.
"""

from __future__ import annotations

import msgspec

from baton.core.log.agents import AgentClosed, Called, CallsBegan, TurnBegan
from baton.core.log.child_events import ChildClosed, ChildOverdue, ChildrenAbandoned, ChildReported
from baton.core.log.failure_events import (
    AttemptFailed,
    NoticeDue,
    NoticesSent,
    QuestionClaimed,
    QuestionClosed,
    QuestionEscalated,
    StepHeld,
    StrategyChosen,
)
from baton.core.log.maps import ItemsBegan, ItemsGathered, MapClosed, MapEnded, MapStopped
from baton.core.log.node_events import JoinFired, NodeAdmitted, NodeBegan, NodeSkipped
from baton.core.log.open_events import (
    AgentBegan,
    CallbackHeartbeat,
    CallbackOpened,
    ChildOpened,
    MapBegan,
    Opens,
    QuestionOpened,
    ReplanBegan,
    WaitOpened,
)
from baton.core.log.records import (
    About,
    Ask,
    Blamed,
    Failure,
    Notice,
    Response,
    Root,
    Sent,
    Shown,
    Token,
    Untold,
    Value,
    failed_with,
)
from baton.core.log.replans import AlternativeBegan, ReplanEnded
from baton.core.log.settling import Gives, Settles
from baton.core.log.undo_events import (
    ChildUndone,
    StepStopped,
    UndoBegan,
    UndoPassed,
    UndoSetAside,
    UndoStepBegan,
    UndoTakenUp,
)
from baton.core.log.undos import NotUndone, Undone, UndoStep
from baton.core.log.whole_events import GaveUp, LimitReached, Parked, Resumed, Revived
from baton.core.models.usage import Usage

__all__ = [  # what is declared in rooms of its own
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
    "ChildClosed",
    "ChildOpened",
    "ChildOverdue",
    "ChildReported",
    "ChildUndone",
    "ChildrenAbandoned",
    "Failure",
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
    "Settles",
    "Shown",
    "StepHeld",
    "StepStopped",
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
    "WaitOpened",
    "failed_with",
]

FORMAT = 1


class SagaStarted(Root, frozen=True, tag="saga_started", omit_defaults=True, kw_only=True):
    """Entry 1. `parent` is the key of the saga that waits for this one; `slot` its place there, `window` of its inbox.

    `depth` counts the sagas above it; `scope` names its place in them whatever the branch they are in: what happens
    once there happens once in all branches. `counts` are the scopes whose limits are counted: nodes by name, the saga as an
    empty text. `handled`: a saga above goes on from this one's failure. `last`: what its deployment does in place of
    a question (`escalate` or `fail`); empty: it asks. `ends_by`: until when it may last, and `expires`: when all of it may be deleted (0: never).
    `sent`: the event from outside that has started it. `outer`, of a named graph of a document: what its expressions name of the place
    that it was started from. `passed`: values of that which are passed by reference, by what the graph calls them: `ctx.NODE`, `last_error.batch`.
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


class StepSucceeded(Gives, frozen=True, tag="step_succeeded", omit_defaults=True, kw_only=True):
    """A tool answered. `recorded`: what may happen only once had happened before, and this is what came of it. `cost`, here and wherever an attempt ends: what the tool said it spent, in micro-dollars. `blocked_ms`, likewise: how long it held the event loop, if that was too long. `callback`, likewise: the one with which the attempt ended; `usage`: what models have read and written for it. `assumed`, likewise: how much of the cost is the most that requests to models can have cost whose answers never came. `digest` names the call, where a model may plan an equal one. `prior`, of one that an undoing comes to: the version of the entry that it comes to then; `lasting`: nothing undoes it; `kept`: the arguments that what undoes it needs."""

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


class StepFailed(Settles, frozen=True, tag="step_failed", omit_defaults=True, kw_only=True):
    """A tool failed, timed out, its input could not be bound, or its join cannot fire.

    With tokens to emit, a join tolerates it and the tokens carry it there; without, the saga fails with it. `by`: the key of
    the signal that brought the failure. `is_result`: of a call that a model has asked for, which is told of it; the saga goes on. `stays`: the rules for
    the failure let the saga end without undoing what it has done. `prior` and `kept` are as those of a step that has succeeded: it may have
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


class NodePassed(Gives, frozen=True, tag="node_passed", omit_defaults=True, kw_only=True):
    """A node that runs nothing gave its value. `ends`: it is the saga's result, and the saga ends."""

    became = "passed"
    made = ("output",)
    ends: bool = False


class WaitClosed(Gives, frozen=True, tag="wait_closed", omit_defaults=True, kw_only=True):
    """`by` is "time" or the key of the signal that ended it."""

    became = "waited"
    by: str


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


class SagaEnded(Root, frozen=True, tag="saga_ended", omit_defaults=True, kw_only=True):
    """`status` is completed, failed, cancelled, rolled_back or rollback_failed. After it only a fork may follow. `undone`: what came of undoing. `handler`: the saga of its failure handler; `unhandled`: why there is none."""

    made = ("output",)
    status: str
    output: Value = Value()
    failure: Failure | None = None
    undone: Undone | None = None
    handler: str = ""
    unhandled: Failure | None = None


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
