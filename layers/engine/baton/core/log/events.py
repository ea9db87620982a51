"""The union of all kinds of event in a log, and the entry around them.

Kinds of one subject are declared with its records, such as those of an undoing in undos.py, and the others
here. A new kind or a new optional field keeps `FORMAT`; a new meaning of an existing field raises it. The
encoding of an entry is in codec.py.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from baton.core.failures.alternatives import Alternative
from baton.core.log.functions import FunctionClosed, OperationsBegan
from baton.core.log.incarnations import Keys, ReplacedSaga
from baton.core.log.records import (
    PAUSED,
    PAUSES,
    TENANT_PAUSED,
    WORKFLOW_PAUSED,
    About,
    Ask,
    Blamed,
    Child,
    Failure,
    Gives,
    Notice,
    NoticeDue,
    NoticesSent,
    Parked,
    Response,
    Resumed,
    Root,
    Sent,
    Settles,
    SharedLimit,
    Shown,
    Token,
    UnsentNotice,
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
    MessageAwaited,
    ReplanEnded,
    TurnBegan,
)
from baton.core.log.undos import (
    ChildUndone,
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
    ChildClosed,
    ChildOpened,
    ChildOverdue,
    ChildrenAbandoned,
    ChildReported,
    FunctionBegan,
    MapBegan,
    Opens,
    QuestionClaimed,
    QuestionClosed,
    QuestionEscalated,
    QuestionOpened,
    ReplanBegan,
    UnitRecorded,
    WaitClosed,
    WaitOpened,
)
from baton.core.models.usage import Allowance, Usage

__all__ = [
    "PAUSED",
    "PAUSES",
    "TENANT_PAUSED",
    "WORKFLOW_PAUSED",
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
    "FunctionBegan",
    "FunctionClosed",
    "GaveUp",
    "Gives",
    "GraphChanged",
    "ItemsBegan",
    "ItemsGathered",
    "JoinFired",
    "LimitReached",
    "MapBegan",
    "MapClosed",
    "MapEnded",
    "MapStopped",
    "MessageAwaited",
    "NodeAdmitted",
    "NodeBegan",
    "NodePassed",
    "NodeSkipped",
    "NotUndone",
    "Notice",
    "NoticeDue",
    "NoticesSent",
    "Opens",
    "OperationsBegan",
    "Parked",
    "QuestionClaimed",
    "QuestionClosed",
    "QuestionEscalated",
    "QuestionOpened",
    "Repeats",
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
    "UnitRecorded",
    "UnsentNotice",
    "Value",
    "ValueChanged",
    "WaitClosed",
    "WaitOpened",
    "WorkflowRecovered",
    "failed_with",
]


class NodeSkipped(Settles, frozen=True, tag="node_skipped", omit_defaults=True, kw_only=True):
    """A node did not run, or its result is no longer needed.

    `why` is empty if its edges were dead, `when` if its condition was false, and `join NAME` if the join that
    it leads to has fired without it.
    """

    became = "skipped"
    why: str = ""


class JoinFired(Root, frozen=True, tag="join_fired", omit_defaults=True, kw_only=True):
    """A join fired, by `by`, before every edge had arrived; later tokens of `unspoken` are absorbed."""

    node: str
    iteration: tuple[int, ...] = ()
    by: tuple[str, ...] = ()
    unspoken: tuple[str, ...]


class NodeAdmitted(About, frozen=True, tag="node_admitted", omit_defaults=True, kw_only=True):
    """The `when` of a node is true; recorded only if a second evaluation might give another answer."""


class NodeBegan(About, frozen=True, tag="node_began", omit_defaults=True, kw_only=True):
    """A node with a time limit became ready, or an item began."""

    at: int


class NodePassed(Gives, frozen=True, tag="node_passed", omit_defaults=True, kw_only=True):
    """A node that runs nothing gave its value. `ends`: the value is the saga's result, and the saga ends."""

    became = "passed"
    made = ("output",)
    ends: bool = False  # type: ignore[misc]  # of this kind each says itself, of the others none does


class StepSucceeded(Gives, frozen=True, tag="step_succeeded", omit_defaults=True, kw_only=True):
    """A step succeeded: its tool answered.

    `recorded`: the effect had happened before, and this is its recorded result. `digest` names the call,
    where a model may plan an equal one. `cost`, here and wherever an attempt ends: micro-dollars that the
    tool reported. `blocked_ms`, likewise: milliseconds for which the tool blocked the event loop, if that was
    too long. `callback`, likewise: the callback with which the attempt ended. `usage`, likewise: tokens that
    models read and wrote for the attempt. `assumed`, likewise: the part of the cost that is an upper bound
    for requests to models without an answer. `prior`, of a step that an undoing comes to: the version of the
    entry that the undoing comes to next. `lasting`: the step has no inverse. `kept`: the arguments that its
    inverse needs; `key`, likewise: its idempotency key. `cache`: of a tool whose results are kept, HIT if
    this is a kept one, else MISS.
    """

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
    cache: str = ""


HIT, MISS = "hit", "miss"


class StepFailed(Settles, frozen=True, tag="step_failed", omit_defaults=True, kw_only=True):
    """A step failed: its tool failed or timed out, its input could not be bound, or its join cannot fire.

    With tokens to emit, a join tolerates the failure and the tokens carry it there; without, the saga fails
    with it. `by`: the key of the signal that brought the failure. `is_result`: the call was a model's, which
    is told of the failure; the saga goes on. `stays`: the rules for the failure let the saga end without
    undoing its effects. `prior`, `kept` and `key` are as those of `StepSucceeded`: the effect may have
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
    """A step was cut off by the invocation's end, not by its own timeout: it runs again and loses no attempt.

    `budget_ms` is the most time that it could have had, from its start to the cut. The event also records the
    cost of a step that could not continue, with its reason `why`: `money` for its next call was missing, it
    was `stopped` because the saga no longer needs its result, or a person has to approve its next call
    (`approval`). Such an event changes only the account of money, whatever else the step is at. With `fault`,
    the engine could not go on and stopped the step: it runs again, and may have acted.
    """

    started_at: int
    ended_at: int
    budget_ms: int
    cost: int = 0
    why: str = ""
    assumed: int = 0
    usage: tuple[Usage, ...] = ()


class SagaStarted(Root, frozen=True, tag="saga_started", omit_defaults=True, kw_only=True):
    """A saga began; this is entry 1.

    `parent` is the key of the saga that waits for this one; `slot` its place there, `window` that of its
    inbox. `depth`: the number of sagas above it. `scope`: its place in them, the same in every branch; an
    effect that happens once there happens once in all branches. `counts`: the scopes whose limits are
    counted, nodes by name and the saga as an empty text. `handled`: a saga above goes on from this one's
    failure. `last`: the action of its deployment in place of a question (`escalate` or `fail`); empty: the
    saga asks. `ends_by`: the latest moment of its end. `expires`: the moment from which all of it may be
    deleted (0: never). `sent`: the event from outside that started it. `outer`, of a named graph of a
    document: the values that its expressions name of the place that started it. `passed`: those of these
    values that are passed by reference, by their name in the graph: `ctx.NODE`, `last_error.batch`. `before`:
    the sagas that were in its place before forks above it, the newest first. `keys`: effects that they have
    undone get new keys, and effects that they have not undone keep theirs. `shared_limits`: the limits of
    money of the sagas above, the nearest first. `allowed`: what limits of tokens and turns of the saga above
    leave to this one. `tag`: the tag that named the version of its workflow; empty: none did. `source`: the
    saga from which it was forked as a new one, and whose entries follow.
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
    before: tuple[ReplacedSaga, ...] = ()
    keys: Keys | None = None
    shared_limits: tuple[SharedLimit, ...] = ()
    allowed: Allowance | None = None
    source: str = ""
    tag: str = ""


class SignalReceived(Root, frozen=True, tag="signal_received", omit_defaults=True, kw_only=True):
    """A caller sent a signal. A repeated `key` is a no-op.

    With a `failure`, the wait that takes the signal fails with it. `sent`: the event from outside that the
    signal is. `lost`: no wait was open for the signal, and no wait takes a signal that came before it.
    """

    name: str
    key: str
    payload: Value
    by: str
    at: int
    failure: Failure | None = None
    sent: Sent | None = None
    lost: bool = False


class CancelRequested(Root, frozen=True, tag="cancel_requested", omit_defaults=True, kw_only=True):
    """A caller asked for the cancellation of the saga.

    Running steps may finish until `at + grace_ms`; nothing new starts. `result`: the saga's end reports the
    output so far. `undo`: effects since version `back_to` are undone first, `together` or one after the
    other. A repeated `key` is a no-op.
    """

    reason: str
    by: str
    at: int
    grace_ms: int
    result: bool = False
    undo: bool = False
    back_to: int = 0
    together: bool = False
    key: str = ""

    def with_another(self, request: CancelRequested) -> CancelRequested:
        """Return what holds after a second request, which may only shorten the grace, or want more."""
        is_first = self.at + self.grace_ms <= request.at + request.grace_ms
        last = self if is_first else replace(request, result=request.result or self.result)
        of = self if self.undo else request
        return replace(last, undo=of.undo, back_to=of.back_to, together=of.together)


class Forked(Root, frozen=True, tag="forked", omit_defaults=True, kw_only=True):
    """The last entry of a branch: the saga goes on in branch `branch` from its state at version `cut`.

    The events behind it in the same entry change that state. A repeated `key` makes no second fork; `asked`:
    the hash of a request that names more than a version. `undo`: it goes on from its end, to undo effects
    since `back_to`. `source`: the saga whose entries up to `cut` the log has as copies.
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
    asked: str = ""
    source: str = ""


class ValueChanged(Root, frozen=True, tag="value_changed", omit_defaults=True, kw_only=True):
    """A fork gave the output of the step `node`, or the input of the saga (no node), another value."""

    made = ("value",)
    node: str = ""
    value: Value


class Repeats(Root, frozen=True, tag="repeats", omit_defaults=True, kw_only=True):
    """A fork has these slots act again: their effects get new keys, and so do those of the items in them."""

    slots: tuple[str, ...]


class GraphChanged(Root, frozen=True, tag="graph_changed", omit_defaults=True, kw_only=True):
    """From here on the saga runs `graph`, which was compiled from the document with this hash (empty: from a
    registered one).

    `patch`: the JSON Patch that has made the document; null for any other change. `outputs`: of nodes that
    are over, outputs that the new graph reads and the state has dropped. `counts`: as in `SagaStarted`.
    `renamed`: new names of nodes by the old ones. A repeated `key` is a no-op.
    """

    graph: str
    workflow: str
    by: str
    at: int
    document: str = ""
    reason: str = ""
    key: str = ""
    patch: Value | None = None
    outputs: dict[str, Value] = {}  # noqa: RUF012  # msgspec copies it
    counts: tuple[str, ...] = ()
    renamed: dict[str, str] = {}  # noqa: RUF012  # msgspec copies it


class WorkflowRecovered(Root, frozen=True, tag="workflow_recovered", omit_defaults=True, kw_only=True):
    """Entries `first` to `last` cannot be read. The saga goes on in a new branch from version `cut`: the fork
    of it is in the same entry.

    What could be read of the entries after `cut` is named. `steps`: steps that had succeeded; their effects
    stay done by their keys. `signals`: answers, callbacks and other signals, which must be sent again.
    `children`: child sagas that were opened, which are asked to stop. `shown`: questions in the inbox.
    `spent`: micro-dollars. `cancel` and `pauses`: requests of callers, which hold. `ended`: the end of the
    saga, which stays ended.
    """

    reason: str
    first: int
    last: int
    steps: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    children: tuple[Child, ...] = ()
    shown: dict[str, Shown] = {}  # noqa: RUF012
    spent: int = 0
    cancel: CancelRequested | None = None
    pauses: tuple[Parked, ...] = ()
    ended: SagaEnded | None = None


class Revived(Root, frozen=True, tag="revived", omit_defaults=True, kw_only=True):
    """The lease of invocation `dead` (epoch `dead_epoch`) ran out at `dead_until` without a release.

    `assumed`: by slot, the micro-dollars of its unfinished requests to models. Their provider bills them, so
    the most that they can cost counts. `tokens`: the most that they can have read and written, where tokens
    are limited.
    """

    dead: str
    dead_epoch: int
    dead_until: int
    at: int
    assumed: dict[str, int] = {}  # noqa: RUF012  # each struct has its own
    tokens: dict[str, tuple[int, ...]] = {}  # noqa: RUF012


class GaveUp(Root, frozen=True, tag="gave_up", omit_defaults=True):
    """The invocation ended, but could not release its lease; the lease's expiry does not count as a death."""


class LimitReached(Root, frozen=True, tag="limit_reached", omit_defaults=True, kw_only=True):
    """The saga reached a limit, or its output cannot be made, and it fails. `stays`: it undoes nothing."""

    failure: Failure
    stays: bool = False


class SagaEnded(Root, frozen=True, tag="saga_ended", omit_defaults=True, kw_only=True):
    """The saga ended with `status` completed, failed, cancelled, rolled_back or rollback_failed.

    Only a fork may follow. `undone`: the result of undoing. `handler`: the saga of its failure handler;
    `unhandled`: the reason why it has none.
    """

    made = ("output",)
    status: str
    output: Value = Value()
    failure: Failure | None = None
    undone: Undone | None = None
    handler: str = ""
    unhandled: Failure | None = None

    @property
    def report(self) -> dict[str, Any]:
        """The result of its rollback, as the failure handler is told of it."""
        found = self.undone
        if found is None:
            return {"undone": None}
        failed, stands = [one.slot for one in found.failed], list(found.lasting)
        doubtful = list(found.doubtful)
        return {"undone": {"done": found.done, "failed": failed, "stands": stands, "doubtful": doubtful}}


class AttemptFailed(About, frozen=True, tag="attempt_failed", omit_defaults=True, kw_only=True):
    """An attempt failed, but not its step: the reaction follows in the same entry.

    `kept`: the arguments that the inverse needs, where the effect may have happened all the same; `key`: its
    idempotency key, where the inverse needs it, too. `acted`: an earlier attempt may have acted, and this one
    gives no evidence of it; `kept` and `key` are then of the earlier attempt.
    """

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
    """The reaction to the last failure of a step: retry, replan, ask_user or escalate
    (core/failures/strategies/).

    `due_at`: the earliest moment of the reaction. `way` and `arguments` hold for all attempts from now on;
    the tools `hooks` are called before the next attempt. `look`: the next attempt only checks whether the
    effect has happened. `policy`: the failover policy that chose the reaction, with the `message` that people
    are told. `why`: the reasons why the strategies below it were passed over. `build`: the code that failed
    with a defect, if known.
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
    """A step waits until `until` for a circuit breaker, or for money of a `limit`. It makes no attempt."""

    breaker: str  # always written: releases that know no `limit` read such an event, too
    at: int
    until: int
    state: str = "open"
    limit: str = ""
    amount: int = 0
    first: bool = False


FORMAT = 1


Opening = WaitOpened | ChildOpened | QuestionOpened | CallbackOpened | AgentBegan | MapBegan | FunctionBegan
Closing = StepSucceeded | NodePassed | WaitClosed | ChildClosed | AgentClosed | MapClosed | FunctionClosed
Attempted = StepSucceeded | StepFailed | AttemptFailed | StepInterrupted | CallbackOpened
Reversible = StepSucceeded | StepFailed | StepStopped | ChildClosed
Moving = (
    TurnBegan | CallsBegan | MessageAwaited | AlternativeBegan | ItemsBegan
    | ItemsGathered | MapStopped | MapEnded | ChildOverdue | OperationsBegan
)  # fmt: skip
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
    | UnitRecorded
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
    | MessageAwaited
    | AgentClosed
    | MapBegan
    | ItemsBegan
    | ItemsGathered
    | MapStopped
    | MapClosed
    | MapEnded
    | FunctionBegan
    | OperationsBegan
    | FunctionClosed
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
    | ValueChanged
    | Repeats
    | GraphChanged
    | WorkflowRecovered
    | SagaEnded
)


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One append to the log: its events, its writer and its time.

    `epoch` is that of the lease under which a worker wrote it, 0 for any other writer. By epoch and
    invocation, a writer that repeats a put without having seen the answer recognises the entry as its own.
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
