"""What a kind of node is asked, and what it can say.

The protocol between decide/ and the kinds. decide/ asks a node and carries out its answer; log/work.py says what open
work means to folds and forks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from msgspec import Struct

from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.state import State
from baton.core.log.work import Child, Open

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


class Spread(Struct, frozen=True):
    """It does several things at once: each item begins, and `Kind.begin` is asked for each.

    At least one, and none that has begun before. A node with nothing to do is `Done`.
    """

    items: tuple[str, ...]


class Done(Struct, frozen=True):
    """It is done, with the event's output. Without `has_schema` the output is the engine's own, no matter the node's schema."""

    event: ev.Closing
    has_schema: bool = True


class Failed(Struct, frozen=True):
    """It has failed, without an attempt of a tool."""

    failure: ev.Failure


class Run(Struct, frozen=True):
    """To be performed: an attempt of the node's tool."""

    arguments: Any


class Tend(Struct, frozen=True):
    """To be performed: the child saga is started, or asked how it is."""

    child: Child


Next = Opened | Spread | Done | Failed | Run | Tend


class UnfitError(Exception):
    """A value for a node cannot be computed: the node fails with `failure`."""

    def __init__(self, failure: ev.Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Desk(Protocol):
    """Gives a kind values, money and time. If a value has to be fetched first, the kind is asked again afterwards."""

    @property
    def now(self) -> int:
        """UTC epoch milliseconds."""

    @property
    def state(self) -> State:
        """The saga, behind all that was decided so far."""

    def arguments(self, at: Activation) -> Any:
        """The node's template with its values. Raises `UnfitError`."""

    def value(self, at: Activation) -> ev.Value:
        """The same, for the log: no larger than a value may be. Raises `UnfitError`."""

    def may_spend(self, at: Activation) -> bool:
        """Whether there is money for the node now. If not, it is asked again when there may be."""


class Kind:
    """What a kind of node does. Stateless; `Node.kind` has its `name`."""

    name: ClassVar[str]
    load: ClassVar[str] = ""
    """What it counts as while it is at work: a `STEP`, a `CHILD`, or nothing that limits have to hold back."""
    lasts: ClassVar[bool] = True
    """Whether time passes between its beginning and its end, so that it can run out of it."""
    has_attempts: ClassVar[bool] = False
    """Whether it calls tools, whose failures have retries and policies."""
    active: ClassVar[str] = "waiting"
    """The word for a slot where it has open work."""

    def template(self, node: Node) -> Any:
        """All templates of a node that are rendered when it is ready."""
        return node.arguments

    def begin(self, at: Activation, desk: Desk) -> Next | None:
        """The node is ready and has no open work. None: it cannot begin now."""
        raise NotImplementedError

    def resume(self, at: Activation, work: Open, desk: Desk) -> Next | None:
        """The node has open work. None: that is not over."""
        return None

    def gather(self, at: Activation, items: Mapping[str, ev.Value | None], desk: Desk) -> Next | None:
        """The node has items: the output of each, None while it runs. None: the node waits for more of them."""
        return None

    def node_view(self, node: Node) -> dict[str, Any]:
        """What is shown of a node, besides what all kinds have."""
        return {}

    def open_view(self, node: Node, work: Open) -> dict[str, Any]:
        """What is shown of open work."""
        return {}

    def words(self, event: ev.Opens) -> str:
        """What it waits for, in words."""
        return ""


Kinds = Mapping[str, Kind]
