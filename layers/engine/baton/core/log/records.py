"""What events are made of: values, failures, tokens, questions and
notices; and the root of all kinds of event.

No events here: see events.py, and events.py for those about steps that fail.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import msgspec
from msgspec.structs import replace

from baton.core.failures import quoted
from baton.core.failures.codes import CHILD_FAILED


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """The blob that has the messages of so many turns of a transcript."""

    ref: str
    turns: int


class Response(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a provider of models works on while no caller waits: its `id` there, and the model that was asked.

    `held`: the most that it may cost, in micro-dollars, which counts as spent until it is over; `day`: of
    which account.

    `segments`: what becomes of the transcript of its agent with this turn, where that is news. `summary`: how
    many tokens a
    summary has used that the request begins with; `no_summary`: why there is none.
    `tokens`: the most that it may read and write, where its saga has a limit for them.
    """

    id: str
    model: str
    held: int = 0
    day: int = 0
    segments: tuple[Segment, ...] | None = None
    summary: tuple[int, ...] = ()
    no_summary: str = ""
    tokens: tuple[int, ...] = ()


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """A JSON value: inline as `v`, or as a blob (`ref`, `size` in bytes) when that is cheaper."""

    v: Any = None
    ref: str = ""
    size: int = 0


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """An event from outside that has started a saga, or was a signal for
    it: what tells it from all others, and its type.
    """

    source: str
    type: str
    id: str


class SharedLimit(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A limit of money that a saga shares with the sagas below it: all of
    them together spend at most `most` micro-dollars.

    `saga`: the one whose limit it is. `node`: of a limit that its document gives, the node that has it
    (empty: the whole saga); None: the
    limit of the deployment. `day`: the UTC day until which its account is kept.
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
"""How much of a message of others a failure keeps."""


class Blamed(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the failures that a join has failed for, or that of a child:
    its code, the beginning of its message, and its node.

    `kind`: of a child's, the class of what was at the bottom of it.
    """

    code: str
    message: str
    node: str = ""
    kind: str = ""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a step or a saga failed: a code for programs, a message for people, the node if there is one.

    Of an attempt of a tool also the class, the HTTP status if there was
    one, which tool and attempt it was, and when.
    `doubt`: it may have happened all the same; `refused`: the tool itself says that it has not; `unsent`:
    this very call was not sent; `on_purpose`: the tool
    itself gave a code by which the engine names a defect; `claim` is the owner of the claim that
    it is about. `errors`: the first of the failures that a join has failed for, or that of a
    child. `handled`: on an edge, the nodes at which `catch` goes on from this failure; the edge
    is lost by it, and not failed. `batch`: of a map that has failed, what became of each item.
    `answer`: of a poll that has given up, the last one it got as JSON, or the beginning of it.
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
        """Whether the call that has failed had no answer, or one that says
        nothing: whatever it was to do may have happened.
        """
        from baton.core.failures.codes import says_nothing  # few calls fail

        refused = self.refused or self.unsent
        return says_nothing(self.code, self.kind, self.status, doubt=self.doubt, refused=refused)

    def of_an_item(self) -> dict[str, Any]:
        """As JSON, for the result of a batch; of a child with what that has failed with."""
        said: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.code == CHILD_FAILED and self.errors:
            said["errors"] = [
                {"node": one.node, "code": one.code, "message": one.message} for one in self.errors
            ]
        return said

    def __hash__(self) -> int:
        return hash((self.code, self.message, self.node, self.attempt, self.at))


class Paused(msgspec.Struct, frozen=True, omit_defaults=True):
    """The next round of a loop begins no earlier than `until`, and the last
    one no later than `ends_by` (0: whenever it does).
    """

    until: int
    ends_by: int = 0


def failed_with(code: str, message: str, node: str = "") -> Failure:
    """A failure that the engine has found. Secrets are removed from what it quotes."""
    return Failure(code, quoted(message), node)


class Option(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One of the answers that a question offers. `default`: it is taken when the question expires."""

    id: str
    label: str = ""
    description: str = ""
    default: bool = False
    destructive: bool = False


class Takeover(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a person takes over by hand: the address of it, a picture of how
    it looks now, and what is to be done.
    """

    url: str
    picture: str = ""
    instructions: str = ""


class Escalation(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What happens at `at` to a question without an answer: its audience is
    told again, or it goes `to` others, or it is closed.

    `to` is as that of an `Ask`. `decide` names the answer with which the question is closed.
    """

    at: int
    to: str | None = None
    decide: str = ""


class Ask(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A question to a person. `id` is the saga's own; `expires_at` 0: never.

    `type` says what an answer is and what becomes of the question without one; a step that has failed asks
    for the
    resolution of an `error`.
    `kind` is one of QUESTIONS of core/failures/policy.py: what the person is asked for.
    `options` are the actions that an answer can name: an id, or an `Option` where there is more to say of it.
    `schema`
    is the JSON Schema of the data that is asked for.

    `digest` names the call that an approval is for: one tool with certain arguments.

    `to` is `on_call` for a question to operators, `user:NAME`, `group:NAME` or `role:NAME`; without it, the
    question is
    for the saga's user.
    `severity` is that of its notice, where it is neither its `risk` nor what its code has by itself.
    `may_change` are the arguments that an answer may change. `risk`: how much depends on the answer, low to
    critical.

    `escalate` is what is still to happen while there is no answer, the earliest first. `told_at`: when its
    audience was last
    told again.
    `candidates` is the audience that one of them has claimed it from;
    `moved_at`: when the audience last changed.
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
        """When something happens to it by itself; 0: never."""
        return self.escalate[0].at if self.escalate else self.expires_at

    @property
    def ends_at(self) -> int:
        """When it is closed without an answer; 0: never."""
        last = self.escalate[-1] if self.escalate else None
        return last.at if last is not None and last.decide else self.expires_at

    def postponed(self, later: int) -> Ask:
        """The same question, to which everything happens so many milliseconds later."""
        return replace(
            self,
            expires_at=self.expires_at and self.expires_at + later,
            escalate=tuple(replace(step, at=step.at + later) for step in self.escalate),
        )


class Shown(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the inbox shows of a question, as far as the log knows: whose it
    is, as in `audience_of`, and its end.

    `until` -1: whether it is there is not known. `told`: its audience was told of it, so that it counts as
    pending. `left`: persons
    it has been for since this was noted, who may have a place for it.
    """

    to: str = ""
    until: int = -1
    told: bool = False
    left: tuple[str, ...] = ()


class Notice(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A message to a person outside, sent once for each `key`.
    `to` is `user`, `on_call`, or as that of an `Ask`.

    `incident`: this notice opens an incident under its key. `ask`: the question that it is about.
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


class Untold(msgspec.Struct, frozen=True):
    """A notice, by its key, that a channel has given up, and why."""

    key: str
    channel: str
    why: str


class Token(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One firing of one edge: sender, receiver, one iteration number per enclosing loop, and life.

    A dead token says that this edge will not be taken in this iteration.
    """

    src: str
    dst: str
    iteration: tuple[int, ...] = ()
    alive: bool = True


class Root(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True, kw_only=True):
    """Root of the tagged union."""

    made: ClassVar[tuple[str, ...]] = ()
    """The fields with values that the engine makes: each is one, or has them by their names."""
    most_inline: ClassVar[int | None] = None
    """So many bytes of such a value stay in the entry; None: as the limits say."""


class About(Root, frozen=True, omit_defaults=True, kw_only=True):
    """Root of the events about one slot.
    `item`: the part of the node's work that it is about, if it is not the node itself.
    """

    node: str
    iteration: tuple[int, ...] = ()
    item: str = ""


class Settles(About, frozen=True, omit_defaults=True, kw_only=True):
    """An event that settles a node: it consumes the tokens waiting at
    (node, iteration) and emits the next ones.

    `errors` go on along its edges; see state.py.

    `way` says in words what `loop` and `branch` chose: again, break, timeout; rule 1, default, chosen.
    `drops`
    are the slots of a round that is over with this.
    `forget` names nodes whose outputs no later step can read any more; `carry` those that
    the next round reads as the previous one's, as LOOP/NODE, which may be forgotten, too.
    `paused`: when the next round of its loop begins, where that is not at once.
    `fault`: the node was done, but where it goes on is unknown; unless something is emitted, the saga fails
    with it.
    """

    became: ClassVar[str] = "ran"
    """What became of the node, in a word."""
    emits: tuple[Token, ...] = ()
    errors: tuple[Failure, ...] = ()
    way: str = ""
    drops: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    fault: Failure | None = None
    paused: Paused | None = None

    @property
    def ends(self) -> bool:
        """Whether the saga ends with it, and has its output as its result."""
        return False

    @property
    def ended_by(self) -> str:
        """The key of the outside event that ended the node, if one did."""
        return getattr(self, "by", "")


class Gives(Settles, frozen=True, omit_defaults=True, kw_only=True):
    """Of a node that is done. `keep` False: no node reads its output any more, so the state does not hold it.

    `full`: the output is only a summary of this.
    """

    output: Value
    keep: bool = True
    full: Value | None = None


_NONE: dict[str, Any] = {}


class Work(msgspec.Struct, frozen=True):
    """Work that is only a place: what happens to it happens to the steps inside.
    Each kind says what is different with it.
    """

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of the call that a question is about, if they are not the step's."""
        return _NONE

    @property
    def signal(self) -> str:
        """The name of the signal that ends it; empty for none."""
        return ""

    @property
    def due(self) -> int | None:
        """When it ends by itself; None: never."""
        return None

    @property
    def orphan(self) -> Child | None:
        """The child saga that goes on when its parent drops this work."""
        return None

    @property
    def is_late(self) -> bool:
        """Whether what comes after it has begun, and what is inside of it runs beside that."""
        return False

    @property
    def acts_by_items(self) -> bool:
        """Tell whether what may have happened is told by its items alone, although its node fails as they do."""
        return False

    def hears(self, child: str) -> bool:
        """Whether the end of this child saga is what it waits for."""
        return False

    @property
    def ask(self) -> Ask | None:
        """The question that it has open."""
        return None

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """This work after a fork to a cut where it was open; `before` is the work open there before the fork.

        `later`: the milliseconds from the cut to the fork.
        """
        return self

    def postponed(self, later: int) -> Self:
        """This work, to which what would end it by itself happens so many milliseconds later."""
        return self


class Child(Work, frozen=True, omit_defaults=True, kw_only=True, tag="child"):
    """For a child saga; `status` is empty until it reported its end, in this `window` of its parent's inbox.

    A signal of the name `listens` calls it off: the child is cancelled, and waited for.
    So it is once its time, `until`, is over (`overdue`), and undoes what it has done.
    `passed`: values that a named graph gets by reference.
    `listed`: it was stopped, and is in the list of what an undoing of its parent comes to.
    `stood`: for how much of the time that it was parked for a defect it has got more.
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

    @property
    def signal(self) -> str:
        """The name of the signal that ends it."""
        return self.listens

    @property
    def due(self) -> int | None:
        return self.until if self.until and not (self.overdue or self.status) else None

    @property
    def orphan(self) -> Child | None:
        return None if self.status else self

    def hears(self, child: str) -> bool:
        return child == self.saga and not self.status

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self | None:
        """One that is open on both sides goes on; it is opened anew when it was
        cancelled with what the fork leaves.
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
