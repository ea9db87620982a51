"""What a kind of node is asked, and what it can say.

The protocol between decide/ and the kinds. decide/ asks a node and carries
out its answer; log/work.py says what open work means to folds and forks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.records import Child
from baton.core.log.state import State
from baton.core.log.work import Open

STEP, CHILD = "step", "child"


class Activation(Struct, frozen=True):
    """One round of one node; with `item`, one of the several things that the node does in it."""

    slot: str
    node: Node
    iteration: tuple[int, ...] = ()
    item: str = ""


class Opened(Struct, frozen=True):
    """It has begun, and goes on when its open work ends: see `Kind.resume`."""

    event: ev.Opening
    told: ev.Notice | None = None
    """What a person is told with it."""


class Escalated(Struct, frozen=True):
    """Its question has no answer so far: a step of its escalation is taken, and it waits on."""

    event: ev.QuestionEscalated
    told: ev.Notice | None = None
    """What a person is told with it."""


class Spread(Struct, frozen=True):
    """It does several things at once: each item begins, and `Kind.begin` is asked for each.

    At least one, and none that has begun before. A node with nothing to do is `Done`.
    """

    items: tuple[str, ...]


class Done(Struct, frozen=True):
    """It is done, with the event's output.
    Without `has_schema` the output is the engine's own, no matter the node's schema.
    """

    event: ev.Closing
    has_schema: bool = True
    first: ev.QuestionClosed | None = None
    """What is recorded before it."""


class Failed(Struct, frozen=True):
    """It has failed, without an attempt of a tool; `by` the signal of this key, if one brought the
    failure.
    """

    failure: ev.Failure
    first: ev.QuestionClosed | None = None
    """What is recorded before it."""
    by: str = ""
    is_attempt: bool = False
    """Whether the node's own rules say what is done about it: then it is not the end of the node."""


class Granted(Struct, frozen=True):
    """A person has approved what it asked for: it is asked again how it begins, behind `first`."""

    first: ev.QuestionClosed


class Ended(Struct, frozen=True):
    """The saga has its result: the event's output. What still runs is stopped."""

    event: ev.NodePassed


class Moved(Struct, frozen=True):
    """It goes on within itself, as the event says, and is asked again how.
    `begins`: the items that begin behind the event.
    """

    event: ev.Moving
    begins: tuple[str, ...] = ()


class Unhelped(Struct, frozen=True):
    """What is done about its failure has led to nothing, and goes on behind the event."""

    event: ev.ReplanEnded


class Run(Struct, frozen=True):
    """To be performed: an attempt of the node's tool."""

    arguments: Any


class Completed(Struct, frozen=True):
    """An attempt that went on elsewhere has ended, with its `callback` if
    it had one: exactly one of output and failure.
    """

    callback: str = ""
    output: ev.Value | None = None
    failure: ev.Failure | None = None
    tool: str = ""
    """The one that has done the work, if it is not the node's own."""


class Later(Struct, frozen=True):
    """Its open work is looked at again at this moment."""

    at: int


class Tend(Struct, frozen=True):
    """To be performed: the child saga is started, or asked how it is."""

    child: Child


Next = (
    Opened
    | Escalated
    | Spread
    | Done
    | Failed
    | Granted
    | Moved
    | Unhelped
    | Ended
    | Run
    | Completed
    | Later
    | Tend
)


class UnfitError(Exception):
    """A value for a node cannot be computed: the node fails with `failure`."""

    def __init__(self, failure: ev.Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Desk(Protocol):
    """Gives a kind values, money and time.
    If a value has to be fetched first, the kind is asked again afterwards.
    """

    @property
    def now(self) -> int:
        """UTC epoch milliseconds."""

    @property
    def state(self) -> State:
        """The saga, behind all that was decided so far."""

    @property
    def most_bytes(self) -> int:
        """What a value of the engine's own making may have, as JSON."""

    def arguments(self, at: Activation) -> Any:
        """The node's template with its values. Raises `UnfitError`."""

    def value(self, at: Activation) -> ev.Value:
        """The same, for the log: no larger than a value may be. Raises `UnfitError`."""

    def made(self, at: Activation, given: Any) -> ev.Value:
        """A value that the kind has made, for the log: no larger than a value may be. Raises `UnfitError`."""

    def started(self, at: Activation) -> tuple[ev.Value, dict[str, ev.Value]]:
        """The same, less values that are passed by reference; and those (core/decide/context.py).
        Raises `UnfitError`.
        """

    def content(self, at: Activation, value: ev.Value) -> Any:
        """The JSON value that a value of the log stands for."""

    def contents(self, at: Activation, values: Sequence[ev.Value]) -> list[Any]:
        """Those of several, which are fetched together."""

    def looked(self, at: Activation) -> tuple[int, bool] | None:
        """When this worker has last looked at work elsewhere, and whether that was said to be over then.
        None: not yet.
        """

    def may_spend(self, at: Activation) -> bool:
        """Whether there is money for the node now. If not, it is asked again when there may be."""


class Kind:
    """What a kind of node does. Stateless; `Node.kind` has its `name`."""

    name: ClassVar[str]
    shown: ClassVar[str] = ""
    """What drawings call it, where documents do not say `name`."""
    load: ClassVar[str] = ""
    """What it counts as while it is at work: a `STEP`, a `CHILD`, or nothing that limits have to hold back.
    """
    lasts: ClassVar[bool] = True
    """Whether time passes between its beginning and its end, so that it can run out of it."""
    has_attempts: ClassVar[bool] = False
    """Whether it calls tools, whose failures have retries and policies."""
    ends: ClassVar[bool] = False
    """Whether the saga ends with it."""
    active: ClassVar[str] = "waiting"
    """The word for a slot where it has open work."""

    def part(self, node: Node, work: Open | None, item: str) -> Node:
        """What stands for an item in place of the node; `work` is the node's own open work."""
        return node

    def keeps_failure(self, item: str) -> bool:
        """Whether the failure of this item is what it gives, so that its node goes on."""
        return False

    def tolerates(self, node: Node, work: Open | None) -> bool:
        """Tell whether a node with this open work goes on if one more of its items fails."""
        return False

    def instead(self, item: str, output: Any) -> Any:
        """The output of a step as this kind reads it, where a person has given it."""
        return output

    def template(self, node: Node) -> Any:
        """All templates of a node that are rendered when it is ready."""
        return node.arguments

    def begin(self, at: Activation, desk: Desk) -> Next | None:
        """The node is ready and has no open work. None: it cannot begin now."""
        raise NotImplementedError

    def returned(self, at: Activation, callback: str, ran: Mapping[str, Any]) -> ev.CallbackOpened:
        """The tool of a node with a callback has returned, `ran` as an event
        says it: the work that the node opens then.
        """
        raise NotImplementedError

    def resume(self, at: Activation, work: Open, desk: Desk) -> Next | None:
        """The node has open work. None: that is not over."""
        return None

    def gather(self, at: Activation, items: Mapping[str, ev.Value | None], desk: Desk) -> Next | None:
        """The node has items: the output of each, None while it runs. None: the node waits for more
        of them.
        """
        return None

    def node_view(self, node: Node) -> dict[str, Any]:
        """What is shown of a node, besides what all kinds have."""
        return {}

    def open_view(self, node: Node, work: Open) -> dict[str, Any]:
        """What is shown of open work."""
        return {}

    def word(self, work: Open) -> str:
        """The word for a slot with this open work."""
        return self.active

    def words(self, event: ev.Opens) -> str:
        """What it waits for, in words."""
        return ""

    def label(self, work: Open | None, item: str) -> str:
        """What an item is called; `work` is the node's own open work."""
        return f"item `{item}`"

    def says(self, event: ev.Moving) -> tuple[str, str]:
        """The item that an event of `Moved` tells more of, and what; empty where it tells nothing."""
        return "", ""


Kinds = Mapping[str, Kind]
