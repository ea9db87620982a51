"""Parts of events: values, failures, tokens, questions and notices; and the root of all kinds of event.

Events are in events.py, those about failed steps included. A frozen record of JSON is in no cycle, so those
that each step makes are `gc=False`: the collector does not count and visit them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import msgspec
from msgspec.structs import replace

from baton.core.expressions import iso
from baton.core.failures import quoted
from baton.core.failures.codes import CHILD_FAILED, says_nothing
from baton.core.log.slots import slot_of
from baton.core.models.usage import Allowance


class Segment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A blob with the messages of `turns` turns of a transcript."""

    ref: str
    turns: int


class Response(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A request that a provider of models works on while no caller waits: its `id` there, and the requested
    model.

    `held`: its highest possible cost in micro-dollars, which counts as spent until it is over. `day`: the day
    of the account.
    `segments`: the segments of its agent's transcript after this turn, if they change. `summary`: the tokens
    used for a summary with which the request begins; `no_summary`: the reason why it has none.
    `tokens`: the most that it may read and write, if its saga has a limit for them.
    `offered`, `changed`: the hash of the tools of its turn, and what its model is told of their change.
    """

    id: str
    model: str
    held: int = 0
    day: int = 0
    segments: tuple[Segment, ...] | None = None
    summary: tuple[int, ...] = ()
    no_summary: str = ""
    tokens: tuple[int, ...] = ()
    offered: str = ""
    changed: str = ""


class Value(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A JSON value: inline as `v`, or as a blob (`ref`, `size` in bytes) if that is cheaper."""

    v: Any = None
    ref: str = ""
    size: int = 0


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """An event from outside that started a saga or was a signal for it: its source and id, which identify it,
    and its type.
    """

    source: str
    type: str
    id: str


class SharedLimit(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A limit of money that a saga shares with the sagas below it: together they spend at most `most`
    micro-dollars.

    `saga`: the saga that has the limit. `node`: the node that has it, for a limit of its document (empty: the
    whole saga); None: the limit of the deployment. `day`: the UTC day until which its account is kept.
    """

    saga: str
    most: int
    day: int
    node: str | None = None

    @property
    def account(self) -> str:
        """The name of its account. No node has an empty name, and no id of a saga ends with a slash."""
        return self.saga if self.node is None else f"{self.saga}/{self.node}"


LONGEST_MESSAGE = 500
"""Characters of a message from outside that a failure keeps."""


class Blamed(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the failures behind a failed join or child: its code, its node, the beginning of its message.

    `kind`: of a child's failure, the class of its root cause.
    """

    code: str
    message: str
    node: str = ""
    kind: str = ""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The reason why a step or a saga failed: a code for programs, a message for people, the node if any.

    For an attempt of a tool also the class, the HTTP status if any, the tool, the attempt and the time.
    `doubt`: the effect may have happened all the same; `refused`: the tool itself reports that it has not;
    `unsent`: this very call was not sent; `on_purpose`: the tool itself gave a code by which the engine names
    a defect. `claim`: the owner of the claim that the failure is about. `errors`: the first failures behind a
    failed join or child. `handled`: on an edge, the nodes at which `catch` goes on from this failure; the
    edge is then lost, and not failed. `batch`: of a failed map, the result of each item. `answer`: of a poll
    that has given up, its last answer as JSON, or the beginning of it; of a model, its refused answer.
    """

    code: str
    message: str
    node: str = ""
    kind: str = ""
    status: int = 0
    tool: str = ""
    attempt: int = 0
    at: int = 0
    doubt: bool = False
    claim: str = ""
    errors: tuple[Blamed, ...] = ()
    handled: tuple[str, ...] = ()
    answer: str = ""
    batch: Value | None = None
    refused: bool = False
    unsent: bool = False
    on_purpose: bool = False

    @property
    def says_nothing(self) -> bool:
        """True if the failed call had no answer, or an answer that gives no evidence: its effect may have
        happened.
        """
        refused = self.refused or self.unsent
        return says_nothing(self.code, self.kind, self.status, doubt=self.doubt, refused=refused)

    def of_an_item(self) -> dict[str, Any]:
        """Return the failure as JSON, for the result of a batch; that of a child includes the child's own
        failures.
        """
        said: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.code == CHILD_FAILED and self.errors:
            said["errors"] = [
                {"node": one.node, "code": one.code, "message": one.message} for one in self.errors
            ]
        return said

    def __hash__(self) -> int:
        return hash((self.code, self.message, self.node, self.attempt, self.at))


class Paused(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pause of a loop: the next round begins no earlier than `until`, and the last no later than `ends_by`
    (0: no limit).
    """

    until: int
    ends_by: int = 0


def failed_with(code: str, message: str, node: str = "") -> Failure:
    """Return a failure that the engine has found. Secrets are removed from quoted text."""
    return Failure(code, quoted(message), node)


class Option(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One of the answers that a question offers.

    `default`: the answer that is taken when the question expires.
    """

    id: str
    label: str = ""
    description: str = ""
    default: bool = False
    destructive: bool = False


class Takeover(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A task that a person takes over by hand: its URL, a picture of its state, and the instructions."""

    url: str
    picture: str = ""
    instructions: str = ""


class Escalation(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step of an escalation, at `at`, of a question without an answer: a reminder, a handover `to` others,
    or a decision.

    `to` is as that of an `Ask`. `decide` names the answer with which the question is closed.
    """

    at: int
    to: str | None = None
    decide: str = ""


class Ask(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A question to a person. `id` is the saga's own; `expires_at` 0: never.

    `type` decides the form of an answer and the result of the question without one; a failed step asks for
    the resolution of an `error`.
    `kind` is one of QUESTIONS of core/failures/policy.py: the kind of help that the person is asked for.
    `options` are the actions that an answer can name: an id, or an `Option` with a description.
    `schema` is the JSON Schema of the requested data.

    `digest` names the call that an approval is for: one tool with certain arguments.

    `to` is `on_call` for a question to operators, `user:NAME`, `group:NAME` or `role:NAME`; empty: the saga's
    user.
    `severity` is that of its notice, if it is neither its `risk` nor the default of its code.
    `may_change` are the arguments that an answer may change. `risk`: the risk that depends on the answer, low
    to critical.

    `escalate` are the steps still to come while the question has no answer, the earliest first. `told_at`:
    the time of the last reminder.
    `candidates` is the audience from which a person has claimed it; `moved_at`: the time when the audience
    last changed.
    """

    id: str
    kind: str
    message: str
    options: tuple[str | Option, ...]
    expires_at: int = 0
    severity: str = ""
    to: str = ""
    may_change: tuple[str, ...] = ()
    type: str = "error"
    title: str = ""
    details: Any = None
    schema: Any = None
    takeover: Takeover | None = None
    asked_at: int = 0
    risk: str = ""
    digest: str = ""
    escalate: tuple[Escalation, ...] = ()
    told_at: int = 0
    candidates: str = ""
    moved_at: int = 0

    @property
    def actions(self) -> tuple[str, ...]:
        """The ids of the options."""
        return tuple(one if isinstance(one, str) else one.id for one in self.options)

    @property
    def due(self) -> int:
        """Time of its next step of escalation, or of its expiry; 0: never."""
        return self.escalate[0].at if self.escalate else self.expires_at

    @property
    def ends_at(self) -> int:
        """Time at which it is closed without an answer; 0: never."""
        last = self.escalate[-1] if self.escalate else None
        return last.at if last is not None and last.decide else self.expires_at

    def postponed(self, later: int) -> Ask:
        """Return the same question, with all of its times `later` milliseconds later."""
        return replace(
            self,
            expires_at=self.expires_at and self.expires_at + later,
            escalate=tuple(replace(step, at=step.at + later) for step in self.escalate),
        )


class Shown(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A question's row in the inbox, as far as the log knows it: its audience, as in `audience_of`, and its
    end.

    `until` -1: the log does not know if the row exists. `told`: its audience was told of it, so that it
    counts as pending. `left`: earlier persons of its audience since the row was recorded, who may still have
    a row.
    """

    to: str = ""
    until: int = -1
    told: bool = False
    left: tuple[str, ...] = ()


class Notice(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A message to a person outside, sent once for each `key`.

    `to` is `user`, `on_call`, or as that of an `Ask`.
    `incident`: this notice opens an incident under its key. `ask`: the id of its question.
    """

    key: str
    to: str
    code: str
    message: str
    severity: str = "medium"
    node: str = ""
    at: int = 0
    incident: bool = False
    ask: str = ""


class UnsentNotice(msgspec.Struct, frozen=True):
    """A notice, by its key, that a channel has given up, with the reason."""

    key: str
    channel: str
    why: str


class Token(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """One firing of one edge: sender, receiver, one iteration number per enclosing loop, and life.

    A dead token means that this edge will not be taken in this iteration.
    """

    src: str
    dst: str
    iteration: tuple[int, ...] = ()
    alive: bool = True

    @property
    def slot(self) -> str:
        """The text of the receiver's slot."""
        return slot_of(self.dst, self.iteration, "") if self.iteration else self.dst


class Root(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True, kw_only=True, gc=False):
    """Base class of all events, the root of the tagged union.

    Its properties hold for an event that has no field of the same name.
    """

    made: ClassVar[tuple[str, ...]] = ()
    """Fields with values that the engine makes: each is a value, or a mapping of values by name."""
    most_inline: ClassVar[int | None] = None
    """Most bytes of such a value that stay in the entry; None: the general limits hold."""

    @property
    def leads_on(self) -> bool:
        """True if the consequence of the event must be in the same entry."""
        return False

    @property
    def emits(self) -> tuple[Token, ...]:
        """The tokens on the edges of the node that the event settles."""
        return ()

    @property
    def ask(self) -> Ask | str | None:
        """The question that the event is about, or its key."""
        return None

    @property
    def tool(self) -> str:
        """The tool whose call the event is about."""
        return ""

    @property
    def child(self) -> str:
        """The id of the child saga that the event is about."""
        return ""

    @property
    def callback(self) -> str:
        """The callback that the event is about."""
        return ""

    @property
    def lasting(self) -> bool:
        """True if nothing undoes what the event tells of."""
        return False

    @property
    def instead(self) -> str:
        """The tool of the call with which the step goes on."""
        return ""

    @property
    def goes_on(self) -> bool:
        """True if items of a map that is done have yet to begin."""
        return False

    @property
    def left(self) -> tuple[str, ...]:
        """The items that are stopped, because their node goes on without them."""
        return ()

    @property
    def failure(self) -> Failure | None:
        """The failure that the event tells of."""
        return None

    @property
    def paused(self) -> Paused | None:
        """The start of the next round of a loop, if that is not at once."""
        return None


class NoticeDue(Root, frozen=True, tag="notice_due", omit_defaults=True, kw_only=True):
    """A notice to a person is due; the saga's worker tries to send it until `NoticesSent` confirms it."""

    notice: Notice


class NoticesSent(Root, frozen=True, tag="notices_sent", omit_defaults=True, kw_only=True):
    """Notices were sent, except on the channels that gave them up.

    `shown`: questions with new rows in the inbox; `withdrawn`: questions whose rows were removed.
    """

    keys: tuple[str, ...]
    untold: tuple[UnsentNotice, ...] = ()
    shown: dict[str, Shown] = {}
    withdrawn: tuple[str, ...] = ()


class About(Root, frozen=True, omit_defaults=True, kw_only=True):
    """Base class of the events about one slot.

    `item`: the part of the node's work that the event is about, if it is not the node itself.
    """

    node: str
    iteration: tuple[int, ...] = ()
    item: str = ""

    @property
    def slot(self) -> str:
        """The text of the slot."""
        return slot_of(self.node, self.iteration, self.item) if self.iteration or self.item else self.node


class Settles(About, frozen=True, omit_defaults=True, kw_only=True):
    """Base class of the events that settle a node: they consume the tokens waiting at (node,
    iteration) and emit the next ones.

    `errors` go on along its edges; see state.py.

    `way` describes the choice of `loop` and `branch`: again, break, timeout; rule 1, default, chosen.
    `drops` are the slots of a round that ends with this event. `forget` names nodes whose outputs no later
    step can read; `carry` those that the next round reads as the previous one's, as LOOP/NODE, which may be
    forgotten, too.
    `paused`: the start of the next round of its loop, if that is not at once. `fault`: the node was done, but
    its next edge is unknown; unless the event emits a token, the saga fails with it.
    """

    became: ClassVar[str] = "ran"
    """The node's result, in a word."""
    ends: ClassVar[bool] = False
    """True if the saga ends with this event, whose output is its result."""
    emits: tuple[Token, ...] = ()
    errors: tuple[Failure, ...] = ()
    way: str = ""
    drops: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    fault: Failure | None = None
    paused: Paused | None = None

    @property
    def by(self) -> str:
        """The key of the outside event that ended the node, if any."""
        return ""


class Gives(Settles, frozen=True, omit_defaults=True, kw_only=True):
    """Base class of the events of a node that is done.

    `keep` False: no node reads its output any more, so the state does not hold it. `full`: the full value, if
    the output is a summary of it.
    """

    output: Value
    keep: bool = True
    full: Value | None = None


_NONE: dict[str, Any] = {}


TIMED_OUT = {"timed_out": True}  # the output of a wait for a signal whose time is over


class Work(msgspec.Struct, frozen=True, gc=False):
    """Base class of open work; by default it delegates to its inner steps. Kinds override what differs."""

    word: ClassVar[str] = "waiting"
    """The word for a slot with this work."""

    def view(self, schema: Any) -> dict[str, Any]:
        """Return the fields shown of the work; `schema`: that of its node's output, or None."""
        raise NotImplementedError

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the call that a question is about, if they are not the step's."""
        return _NONE

    @property
    def signal(self) -> str:
        """The name of the signal that ends the work; empty for none."""
        return ""

    @property
    def taken_signal(self) -> str:
        """The name of the signals that its end may take."""
        return self.signal

    @property
    def due(self) -> int | None:
        """Time at which the work ends by itself; None: never."""
        return None

    @property
    def orphan(self) -> Child | None:
        """The child saga that goes on when its parent drops this work."""
        return None

    @property
    def is_late(self) -> bool:
        """True if the nodes after the work have begun, and its inner steps run beside them."""
        return False

    @property
    def acts_by_items(self) -> bool:
        """True if only its items record effects that may have happened, although its node fails as
        they do.
        """
        return False

    @property
    def may_cost(self) -> bool:
        """True if an operation of it may cost something that its node does not declare."""
        return False

    def with_ended(self, event: Settles) -> Self:
        """Return the work after the end of one of its items, if it keeps its own list of them."""
        return self

    def hears(self, child: str) -> bool:
        """Return true if the work waits for the end of this child saga."""
        return False

    @property
    def ask(self) -> Ask | None:
        """The open question of the work."""
        return None

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """Return this work after a fork to a cut where it was open; `before` is the work open there before
        the fork.

        `later`: the milliseconds from the cut to the fork.
        """
        return self

    def postponed(self, later: int) -> Self:
        """Return this work with all of its times `later` milliseconds later."""
        return self


class Child(Work, frozen=True, omit_defaults=True, kw_only=True, tag="child"):
    """Open work of a child saga; `status` is empty until the child reported its end, in this `window` of its
    parent's inbox.

    A signal of the name `listens` cancels the child, and the work waits for its end.
    The same happens once its time, `until`, is over (`overdue`); the child then undoes its effects.
    `passed`: values that a named graph gets by reference.
    `listed`: the child was stopped, and is in the list that an undoing of its parent works through.
    `stood`: milliseconds by which its time was extended while it was parked for a defect.
    `detached`: it has no parent, so that neither the end of the saga nor a fork stops it.
    `allowed`: what limits of tokens and turns leave to it.
    """

    saga: str
    workflow: str
    input: Value
    window: int = 0
    listens: str = ""
    status: str = ""
    output: Value = Value()
    failure: Failure | None = None
    undoable: bool = False
    until: int = 0
    overdue: bool = False
    stood: int = 0
    passed: dict[str, Value] = {}  # msgspec copies it
    listed: bool = False
    detached: bool = False
    allowed: Allowance | None = None
    word = "child"

    def view(self, schema: Any) -> dict[str, Any]:
        shown = {"saga": self.saga} | ({"signal": self.signal} if self.signal else {})
        return shown | ({"until": iso(self.until), "overdue": self.overdue} if self.until else {})

    @property
    def signal(self) -> str:
        """The name of the signal that ends it."""
        return self.listens

    @property
    def due(self) -> int | None:
        return self.until if self.until and not (self.overdue or self.status) else None

    @property
    def orphan(self) -> Child | None:
        return None if self.status or self.detached else self

    @property
    def may_undo(self) -> bool:
        """True if a rollback of its parent comes to it: it is open, or has effects that can be undone."""
        return self.undoable or self.orphan is not None

    def hears(self, child: str) -> bool:
        return child == self.saga and not self.status

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """Return the child if it is open on both sides of the fork; None opens it anew, because it was
        cancelled with the branch that the fork leaves.
        """
        is_kept = (
            not is_ending
            and isinstance(before, Child)
            and before.hears(self.saga)
            and before.overdue == self.overdue
        )
        if not is_kept or self.status:
            return self if self.status else None
        return self.postponed(later)

    def postponed(self, later: int) -> Self:
        return replace(self, until=self.until + later) if self.until else self


PAUSED, WORKFLOW_PAUSED, TENANT_PAUSED = "paused", "workflow_paused", "tenant_paused"
PAUSES = (PAUSED, WORKFLOW_PAUSED, TENANT_PAUSED)
"""Codes of parkings that a person asked for: of the saga, of its workflow, of all sagas of the tenant."""


class Parked(Root, frozen=True, tag="parked", omit_defaults=True, kw_only=True):
    """The saga waits for a person's decision; `code` names its subject.

    `until`: the moment at which the saga goes on by itself (0: never). `at`, of a defect in the saga or in a
    child, and of a pause: the moment since which the saga's time stands still. `build`: the code that failed
    with the defect, if known. `by`: the person who paused the saga. `over`: in a state only, what a paused
    saga is held by besides.
    """

    code: str
    message: str
    node: str = ""
    until: int = 0
    at: int = 0
    build: str = ""
    by: str = ""
    over: Parked | None = None

    @property
    def is_pause(self) -> bool:
        """True if a person asked for it: nothing is wrong with the saga."""
        return self.code in PAUSES

    @property
    def all(self) -> tuple[Parked, ...]:
        """All that holds the saga: its pauses, and then what it is parked for."""
        return (self,) if self.over is None else (self, *self.over.all)

    def with_reason(self, parked: Parked) -> Parked:
        """Return the pauses over another reason to be parked."""
        over = self.over
        below = over.with_reason(parked) if over is not None and over.is_pause else parked
        return replace(self, over=below)

    def without(self, code: str) -> Parked | None:
        """Return the rest without the pause of this code; None: nothing holds the saga any more."""
        below = None if self.over is None else self.over.without(code)
        return below if self.code == code else replace(self, over=below)


class Resumed(Root, frozen=True, tag="resumed", omit_defaults=True, kw_only=True):
    """A person let a parked saga try again, or its time has come.

    `budget`: micro-dollars that it may spend from now on. `build`: code was deployed under which the steps
    that are parked for a defect have not failed yet; these steps are tried again. `code`: only the pause of
    this code is over.
    """

    by: str
    at: int
    budget: int = 0
    build: str = ""
    code: str = ""
