"""The open work of a function: a workflow that is Python code, and the operations that it has asked for.

The function itself runs outside of the core (tools/functions/). Its log has what it was given, what it asked
for, and the results that it has heard, in order: to run it again with these gives the same operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec
from msgspec.structs import replace

from baton.core.log.records import TIMED_OUT, About, Failure, Gives, Segment, Settles, Value, Work

if TYPE_CHECKING:
    from baton.core.graph.graph import Node


class AskedOperation(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One operation that a function asks for.

    `item` names it in its slot, `label` in words if that is another text. `tool`: a step of this tool, with
    the arguments `given`. `node`: any other operation, as the fields of a node of a graph.
    `digest` is the same for the same request. `attempts` and `timeout_ms` of a step: 0 for those of the tool.
    `answers`: NAME/KEY of the signal whose sender gets `given` as the answer. `in_memory`: its code is what
    the function in memory has, so that a worker begins it with the function alone.
    """

    item: str
    digest: str
    label: str = ""
    tool: str = ""
    node: dict[str, Any] = {}
    given: Value | None = None
    attempts: int = 0
    timeout_ms: int = 0
    answers: str = ""
    in_memory: bool = False


class Heard(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A result that a function has heard at the time `at`: that of the operation `item` with this digest.

    `by`: the key of the signal that it is.
    """

    item: str
    digest: str
    at: int
    output: Value = Value()
    failure: Failure | None = None
    by: str = ""


class RunningFunction(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="function"):
    """A function at work.

    `given`: its arguments. `began`: the time of its start. `asked`: its operations without a heard result, by
    item; `ended`: those that have ended, in order, with their failures, and `by`, the keys of the signals
    that some of them are. Their outputs are the items of the state.
    `heard`: number of results that it has heard, plus one for its start. The results are in `segments`, the
    oldest first, and in `tail`. `checkpoint`: the state with which it began again, for the time of number
    `checkpoints`: then `began` is the time of that, and only later results count. `changes`: changes of its
    code that it has met as changed code since then. `published`: what it shows.
    """

    given: Value
    began: int
    heard: int = 0
    checkpoints: int = 0
    checkpoint: Value | None = None
    asked: dict[str, AskedOperation] = {}
    ended: dict[str, Failure | None] = {}
    by: dict[str, str] = {}
    segments: tuple[Segment, ...] = ()
    tail: tuple[Heard, ...] = ()
    changes: tuple[str, ...] = ()
    published: dict[str, Any] = {}
    word = "running"

    def view(self, schema: Any) -> dict[str, Any]:
        shown = {"published": self.published} if self.published else {}
        return {"results": max(self.heard - 1, 0), **shown}

    @property
    def acts_by_items(self) -> bool:
        return True

    @property
    def may_cost(self) -> bool:
        return any(one.node.get("cost") for one in self.asked.values())

    def with_ended(self, event: Settles) -> Self:
        failure, by = event.failure, event.by
        if isinstance(event, Gives) and by == "time" and event.output.v == TIMED_OUT:
            failure, by = Failure("timeout", "no signal came in time", event.node), ""
        ended = {**self.ended, event.item: failure}
        if by and self.asked[event.item].node.get("signal"):
            return replace(self, ended=ended, by={**self.by, event.item: by})
        return replace(self, ended=ended)

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self:
        """Return the function with its results up to the cut; unfinished operations are repeated under the
        same keys.
        """
        return self


class OperationsBegan(About, frozen=True, tag="operations_began", omit_defaults=True, kw_only=True):
    """A function ran on: it heard the results of the operations `heard`, in order, and asks for others.

    `left`: operations that it no longer waits for; they are stopped. `segments`: those of its results, if
    they changed. `checkpoint`: the state with which it began again before it asked, `checkpoints` times.
    `changes`: changes of its code that it met.
    `published`: all that it shows, by name, if that has changed.
    """

    at: int
    heard: tuple[str, ...] = ()
    operations: tuple[AskedOperation, ...] = ()
    left: tuple[str, ...] = ()
    segments: tuple[Segment, ...] | None = None
    checkpoint: Value | None = None
    checkpoints: int = 0
    changes: tuple[str, ...] = ()
    published: dict[str, Any] | None = None

    @property
    def items(self) -> Iterable[str]:
        return [one.item for one in self.operations]


class FunctionClosed(Gives, frozen=True, tag="function_closed", omit_defaults=True, kw_only=True):
    """A function returned. It heard the results of the operations `heard` before."""

    became = "returned"
    made = ("output",)
    heard: tuple[str, ...] = ()


class FunctionCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A function that is to run on at the time `now`: at `slot` of a branch, with the results that it has not
    heard, in order, until it waits for operations or is over. `version`: that of the log. `calls`: the steps
    that it may ask for.
    """

    name: str
    slot: str
    branch: int
    version: int
    now: int
    work: RunningFunction
    results: tuple[Heard, ...] = ()
    calls: tuple[Node, ...] = ()


def reply_in(events: Iterable[Any], signal: str) -> Value:
    """Return the reply to a signal, NAME/KEY, in the events of an entry."""
    asked = (one for event in events if isinstance(event, OperationsBegan) for one in event.operations)
    return next(one.given for one in asked if one.answers == signal and one.given is not None)


class FunctionProgress(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The result of a call at the time `at`: the operations that the function asks for and those that it has
    left.

    It is over with an `output` or a `failure`. `checkpoint`: the state with which it began again,
    `checkpoints` times. `changes`: changes of its code that it met. `published`: all that it shows, if that
    has changed.
    """

    at: int
    operations: tuple[AskedOperation, ...] = ()
    left: tuple[str, ...] = ()
    segments: tuple[Segment, ...] | None = None
    checkpoint: Value | None = None
    checkpoints: int = 0
    changes: tuple[str, ...] = ()
    output: Value | None = None
    failure: Failure | None = None
    published: dict[str, Any] | None = None


class KnownFunctions(Protocol):
    """The functions in the memory of a worker."""

    def progress(self, call: FunctionCall) -> FunctionProgress | None:
        """Return how far a function has run; the same for the same call. None: it is not known yet."""
        ...


def with_operations(
    work: RunningFunction, event: OperationsBegan, items: Mapping[str, Value | None]
) -> RunningFunction:
    """Return the function after it ran on. `items` has the outputs of the operations that it has heard."""
    heard = [
        Heard(
            item,
            work.asked[item].digest,
            event.at,
            items[item] or Value(),
            work.ended[item],
            work.by.get(item, ""),
        )
        for item in event.heard
    ]
    tail, segments = (*work.tail, *heard), work.segments
    if event.segments is not None:
        covered = sum(one.turns for one in event.segments) - sum(one.turns for one in segments)
        tail, segments = tail[covered:], event.segments
    if event.published is not None:
        work = replace(work, published=event.published)
    if event.checkpoint is not None:
        return replace(
            work,
            began=event.at,
            heard=1,
            checkpoint=event.checkpoint,
            checkpoints=work.checkpoints + event.checkpoints,
            asked={one.item: one for one in event.operations},
            ended={},
            by={},
            segments=(),
            tail=(),
            changes=event.changes,
        )
    gone = {*event.heard, *event.left}
    asked = {item: one for item, one in work.asked.items() if item not in gone}
    return replace(
        work,
        began=work.began if work.heard else event.at,
        heard=work.heard + len(heard) + (work.heard == 0),
        asked={**asked, **{one.item: one for one in event.operations}},
        ended={item: one for item, one in work.ended.items() if item not in gone},
        by={item: key for item, key in work.by.items() if item not in gone} if work.by else work.by,
        segments=segments,
        tail=tail,
        changes=(*work.changes, *event.changes),
    )
