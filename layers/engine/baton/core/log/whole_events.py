"""What happens to a saga as a whole: its start and its end, what callers say to it, deaths of its invocations, limits, parking."""

from __future__ import annotations

from baton.core.log.records import Failure, Root, Sent, SharedLimit, Token, Value
from baton.core.log.undos import Earlier, Keys, Undone


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
