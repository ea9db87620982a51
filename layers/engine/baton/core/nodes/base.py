"""The protocol between decide/ and the kinds of node: the questions to a kind, and its answers.

decide/ asks a kind and carries out its answer; log/work.py defines the meaning of open work to folds and
forks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from baton.core.graph.graph import FunctionParts, Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.functions import FunctionCall, FunctionProgress
from baton.core.log.records import Child
from baton.core.log.scopes import Agent
from baton.core.log.slots import Slot
from baton.core.log.state import State
from baton.core.log.work import Open
from baton.core.models.usage import Allowance

STEP, CHILD = "step", "child"


class Activation(Struct, frozen=True, gc=False):
    """One round of one node; with `item`, one of the several things that the node does in it."""

    slot: str
    """The text of `place`."""
    node: Node
    place: Slot


class Opened(Struct, frozen=True, gc=False):
    """The node has begun, and goes on when its open work ends: see `Kind.resume`."""

    event: ev.Opening
    told: ev.Notice | None = None
    """The notice to a person about it."""


class Escalated(Struct, frozen=True):
    """The node's question has no answer so far: a step of its escalation is taken, and the node waits on."""

    event: ev.QuestionEscalated
    told: ev.Notice | None = None
    """The notice to a person about it."""


class Spread(Struct, frozen=True):
    """The node does several things at once: each item begins, and `Kind.begin` is called for each.

    At least one, and none that has begun before. A node with nothing to do is `Done`.
    """

    items: tuple[str, ...]


class Done(Struct, frozen=True, gc=False):
    """The node is done, with the event's output.

    Without `has_schema` the output is the engine's own, and the node's schema does not apply.
    """

    event: ev.Closing
    has_schema: bool = True
    first: ev.QuestionClosed | None = None
    """The event that is recorded before it."""
    by: str = ""
    """The key of the signal that is the output."""


class Failed(Struct, frozen=True):
    """The node has failed, without an attempt of a tool; `by` the signal of this key, if one brought the
    failure.
    """

    failure: ev.Failure
    first: ev.QuestionClosed | None = None
    """The event that is recorded before it."""
    by: str = ""
    is_attempt: bool = False
    """True if the node's own rules decide about the failure: then it is not the end of the node."""


class Granted(Struct, frozen=True):
    """A person has approved the node's request: the node is begun again, after the event `first`."""

    first: ev.QuestionClosed


class Ended(Struct, frozen=True):
    """The saga has its result: the event's output. Running steps are stopped."""

    event: ev.NodePassed


class Moved(Struct, frozen=True, gc=False):
    """The node continues with another part of its own work, as the event says, and is asked again.

    `begins`: the items that begin after the event.
    """

    event: ev.Moving
    begins: tuple[str, ...] = ()


class Unhelped(Struct, frozen=True):
    """The reaction to the node's failure had no success; the failure handling goes on after the event."""

    event: ev.ReplanEnded


class Run(Struct, frozen=True, gc=False):
    """An attempt of the node's tool, to be performed."""

    arguments: Any


class Completed(Struct, frozen=True):
    """An attempt that was handed over has ended, with its `callback` if any:
    exactly one of output and failure.
    """

    callback: str = ""
    output: ev.Value | None = None
    failure: ev.Failure | None = None
    tool: str = ""
    """The tool that has done the work, if it is not the node's own."""


class Later(Struct, frozen=True):
    """The node's open work is to be checked again at this moment."""

    at: int


class Tend(Struct, frozen=True):
    """A child saga to be started, or asked for its status."""

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
    """Error for a value of a node that cannot be computed: the node fails with `failure`."""

    def __init__(self, failure: ev.Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class NodeContext(Protocol):
    """Source of values, money and time for a kind.

    If a value has to be fetched first, the kind is asked again afterwards.
    """

    @property
    def now(self) -> int:
        """Time of the decision in UTC epoch milliseconds."""

    @property
    def state(self) -> State:
        """The saga, after all earlier decisions."""

    @property
    def skew_ms(self) -> int:
        """Largest difference between the clocks of two processes, in milliseconds."""

    @property
    def limits(self) -> Limits:
        """Limits of the deployment."""

    @property
    def most_bytes(self) -> int:
        """Most bytes, as JSON, of a value that the engine makes."""

    def arguments(self, at: Activation) -> Any:
        """Return the node's template with its values, or an item's arguments from its node: see `Kind.gives`.

        Raises `UnfitError`.
        """

    def value(self, at: Activation) -> ev.Value:
        """Return the same for the log: no larger than a value may be. Raises `UnfitError`."""

    def made(self, at: Activation, given: Any) -> ev.Value:
        """Return a value that the kind has made, for the log: no larger than a value may be.

        Raises `UnfitError`.
        """

    def started(self, at: Activation) -> tuple[ev.Value, dict[str, ev.Value]]:
        """Return the node's value without values that are passed by reference; and those
        (core/decide/context.py).

        Raises `UnfitError`.
        """

    def content(self, at: Activation, value: ev.Value) -> Any:
        """Return the JSON value of a value in the log."""

    def contents(self, at: Activation, values: Sequence[ev.Value]) -> list[Any]:
        """Return the JSON values of several, which are fetched together."""

    def looked(self, at: Activation) -> tuple[int, bool] | None:
        """Return the time when this worker last polled work elsewhere, and true if that was reported over
        then. None: not yet.
        """

    def ran(self, call: FunctionCall) -> FunctionProgress:
        """Return how far a function has run with the results of the call."""

    def function(self, at: Activation) -> FunctionParts:
        """Return the function that has asked for an item."""

    def left_to_child(self, at: Activation, agent: Agent | None) -> Allowance | None:
        """Return what limits of tokens and turns leave to a child that begins now. `agent`: its caller."""

    def may_spend(self, at: Activation) -> bool:
        """Return true if the money suffices for the node now. If not, the node is asked again when it may."""


_WORK = (
    *("kind", "arguments", "tool", "wait_ms", "wait_for", "wait_until", "signal", "workflow", "value"),
    *("asks", "approval", "callback", "fresh", "key"),
)
"""Fields that say what a node does. The others say when it does that, what follows, or what the code says."""


def work_of(node: Node) -> dict[str, Any]:
    """Return the fields that say what a node does, with those of the steps in it."""
    work: dict[str, Any] = {name: getattr(node, name) for name in _WORK}
    agent, replan, each = node.agent, node.replan, node.each
    work["agent"] = agent and [
        work_of(agent.turn),
        {name: work_of(call) for name, call in agent.by_name.items()},
        agent.idle_ms,
    ]
    work["alternatives"] = replan and [work_of(replan.plan), [work_of(call) for call in replan.calls]]
    work["each"] = each and [work_of(each.do), each.rest]
    work["function"] = node.function and node.function.name
    return work


class Kind:
    """Behaviour of a kind of node. Stateless; `Node.kind` has its `name`."""

    name: ClassVar[str]
    shown: ClassVar[str] = ""
    """Name in drawings, if documents do not use `name`."""
    load: ClassVar[str] = ""
    """Load while it is at work: a `STEP`, a `CHILD`, or empty for a load without limits."""
    lasts: ClassVar[bool] = True
    """True if time passes between its beginning and its end, so that it can run out of time."""
    has_attempts: ClassVar[bool] = False
    """True if it calls tools, whose failures have retries and policies."""
    ends: ClassVar[bool] = False
    """True if the saga ends with it."""
    is_of_saga: ClassVar[bool] = False
    """True if its work hangs on the id of its saga, so that no other saga can go on with it."""

    def part(self, node: Node, work: Open | None, item: str) -> Node:
        """Return the node for an item in place of the whole node; `work` is the node's own open work."""
        return node

    def begun_with(self, node: Node, work: Open) -> dict[str, Any]:
        """Return the fields of a node that its open work keeps: a change of the graph may not change them."""
        return work_of(node)

    def keeps_failure(self, item: str) -> bool:
        """Return true if the failure of this item is its result, so that its node goes on."""
        return False

    def tolerates(self, node: Node, work: Open | None) -> bool:
        """Return true if a node with this open work goes on after the failure of one more of its items."""
        return False

    def instead(self, item: str, output: Any) -> Any:
        """Return the output of a step as this kind reads it, if a person has given it."""
        return output

    def gives(self, at: Activation, context: NodeContext) -> Mapping[str, Any] | None:
        """Return the arguments that the node gives to its item at this place; None: those of the template.

        The item's own template, which is not rendered, goes before them. Raises `UnfitError`.
        """
        return None

    def template(self, node: Node) -> Any:
        """Return all templates of a node that are rendered when it is ready."""
        return node.arguments

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        """Begin a ready node without open work. None: it cannot begin now."""
        raise NotImplementedError

    def returned(self, at: Activation, callback: str, ran: Mapping[str, Any]) -> ev.CallbackOpened:
        """Return the work that a node with a callback opens when its tool has returned; `ran` are the event's
        fields.
        """
        raise NotImplementedError

    def resume(self, at: Activation, work: Open, context: NodeContext) -> Next | None:
        """Resume a node with open work. None: the work is not over."""
        return None

    def gather(
        self, at: Activation, items: Mapping[str, ev.Value | None], context: NodeContext
    ) -> Next | None:
        """Gather a node's items: the output of each, None while it runs.

        None: the node waits for more of them.
        """
        return None

    def node_view(self, node: Node) -> dict[str, Any]:
        """Return the fields shown of a node, besides those of all kinds."""
        return {}

    def label(self, work: Open | None, item: str) -> str:
        """Return the name of an item for people; `work` is the node's own open work."""
        return f"item `{item}`"

    def says(self, event: ev.Moving) -> tuple[str, str]:
        """Return the item that an event of `Moved` is about, and its text; both empty for an event without
        one.
        """
        return "", ""


Kinds = Mapping[str, Kind]
