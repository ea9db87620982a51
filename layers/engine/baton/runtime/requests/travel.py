"""Time travel: a saga as it was at a version of its log, and two such states compared."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from baton.core.expressions import iso
from baton.core.log.codec import PERIOD
from baton.core.log.events import Gives, Value
from baton.core.log.slots import Slot
from baton.core.log.state import State
from baton.core.read.answers import ITEM, AttemptFailure, Count, LargeValue, Status, Time, Version, View
from baton.core.read.story import AttemptEnd, Story
from baton.core.read.views import Saga, of_failure
from baton.runtime.engine.request import Opened
from baton.runtime.requests.queries import MAX_SHOWN, Queries

MOST_DIFFERENCES = 100
_LEAST_ROOM = 100_000  # bytes of outputs, however large the saga's input and result are
PARTS = ("workflow", "graph", "input", "status", "result", "error")


class NodeOutput(View):
    """The newest output of a node, or of an item of it."""

    node: str
    iteration: list[int]
    item: Annotated[str, ITEM]
    version: Annotated[Version, "Version of the log entry that records the output."]
    at: Time
    output: Annotated[Any, "The output. Null if it is not in the log itself."]
    large_output: Annotated[LargeValue | None, "Reference to an output that is not in the log itself."]


class SagaState(View):
    """A saga as it was at a version of its log, with a page of the outputs of its nodes."""

    saga: Saga
    newest: Annotated[Version, "Newest version of the saga's log."]
    outputs: Annotated[list[NodeOutput], "Outputs in the order of the log."]
    next: Annotated[int | None, "Value of `after` for the next page. Null on the last page."]


class ComparedSaga(View):
    """A saga of a comparison, as it was at `version`."""

    saga: str
    workflow: str
    graph: str
    status: Status
    version: Version
    branch: Count


class Difference(View):
    """A part of the sagas, or a node, that differs. A side without it is null."""

    what: Annotated[str, "`workflow`, `graph`, `input`, `status`, `result`, `error`, or `node`."]
    node: Annotated[str | None, "Node whose last attempts differ in output or failure."]
    iteration: list[int]
    item: Annotated[str, ITEM]
    first: Any
    second: Any


class Comparison(View):
    """Two sagas, or two versions of one."""

    first: ComparedSaga
    second: ComparedSaga
    equal: Annotated[Count, "Number of nodes and items whose last attempts are equal."]
    differences: Annotated[
        list[Difference],
        "At most 100: the parts of the sagas, then nodes in the order of the first saga's log.",
    ]
    more: Annotated[Count, "Number of further differences."]


class NodeEnd(View):
    """The end of the last attempt at a node, as a comparison has it."""

    version: Annotated[Version, "Version of the log entry that records the end."]
    output: Any
    large_output: LargeValue | None
    error: AttemptFailure | None


async def state_at(queries: Queries, saga: str, at: int, after: int, limit: int) -> SagaState:
    """Return a saga as it was at version `at` (0: as it is), with a page of its outputs.
    Raises `NotFound`, `TooLarge`.
    """
    opened = await queries.open(saga)
    newest = opened.history.state.version
    await queries.go_to(opened, at)
    story = await queries.story(opened, wants=_all)
    view = await queries.view(opened.head, opened.history)
    room = max(MAX_SHOWN - len(msgspec.json.encode(view)), _LEAST_ROOM)
    outputs, rest = list[NodeOutput](), None
    for run in sorted(_last_ends(story).values(), key=_version):
        if run.when.version <= after or not isinstance(run.event, Gives):
            continue
        found = _output(run, run.event)
        room -= len(msgspec.json.encode(found))
        is_full = len(outputs) >= limit or room < 0
        if outputs and is_full and run.when.version > outputs[-1].version:
            rest = outputs[-1].version
            break
        outputs.append(found)
    return SagaState(saga=view, newest=newest, outputs=outputs, next=rest)


async def compare(queries: Queries, first: str, second: str, at: int, to: int) -> Comparison:
    """Return the differences of two sagas, or of two versions of one: of `first` at version `at`, of `second`
    at version `to` (0: as it is). Raises `NotFound`, `TooLarge`.
    """
    sides = list[tuple[Opened, Saga, dict[str, AttemptEnd]]]()
    for saga, version in ((first, at), (second, to)):
        opened = await queries.open(saga, version)
        story = await queries.story(opened, wants=_all)
        sides.append((opened, await queries.view(opened.head, opened.history), _last_ends(story)))
    (opened, one, ends), (with_, other, others) = sides
    first_state, second_state = opened.history.state, with_.history.state
    found = list[Difference]()
    for what in PARTS:
        left, right = _part(one, first_state, what), _part(other, second_state, what)
        if _comparable(left) != _comparable(right):
            found.append(Difference(what=what, node=None, iteration=[], item="", first=left, second=right))
    slots = {**ends, **others}
    equal = 0
    for slot in sorted(slots, key=lambda slot: _order(ends.get(slot), others.get(slot))):
        left, right = _end(ends.get(slot)), _end(others.get(slot))
        if left is not None and right is not None and _same(left, right):
            equal += 1
            continue
        place = Slot.parse(slot)
        found.append(
            Difference(
                what="node",
                node=place.node,
                iteration=list(place.iteration),
                item=place.item,
                first=left,
                second=right,
            )
        )
    shown = found[:MOST_DIFFERENCES]
    return Comparison(
        first=_compared(one),
        second=_compared(other),
        equal=equal,
        differences=shown,
        more=len(found) - len(shown),
    )


def _all(_node: str, _version: int) -> bool:
    return True


def _version(run: AttemptEnd) -> int:
    return run.when.version


def _last_ends(story: Story) -> dict[str, AttemptEnd]:
    """Return the end of the last attempt at each slot, with the outputs that forks have changed."""
    ends = {run.event.slot: run for run in story.runs}
    for name, (changed, when) in story.changed.items():
        for slot, run in ends.items():
            event = run.event
            is_before = run.when.version < when.version
            if event.node == name and not event.item and isinstance(event, Gives) and is_before:
                ends[slot] = AttemptEnd(replace(event, output=changed.value), run.before, when)
    return ends


def _output(run: AttemptEnd, event: Gives) -> NodeOutput:
    output = event.output
    return NodeOutput(
        node=event.node,
        iteration=list(event.iteration),
        item=event.item,
        version=run.when.version,
        at=iso(run.when.at),
        output=output.v,
        large_output=LargeValue(ref=output.ref, size=output.size) if output.ref else None,
    )


def _end(run: AttemptEnd | None) -> NodeEnd | None:
    if run is None:
        return None
    event, error = run.event, None
    output = large = None
    if isinstance(event, Gives):
        output = event.output.v
        large = LargeValue(ref=event.output.ref, size=event.output.size) if event.output.ref else None
    else:
        error = AttemptFailure(**of_failure(event.failure))
    return NodeEnd(version=run.when.version, output=output, large_output=large, error=error)


def _same(one: NodeEnd, other: NodeEnd) -> bool:
    """Return true if both are equal but for their versions."""
    larges = _comparable(one.large_output), _comparable(other.large_output)
    return larges[0] == larges[1] and (one.output, one.error) == (other.output, other.error)


def _order(one: AttemptEnd | None, other: AttemptEnd | None) -> tuple[bool, int]:
    """Order by the first log; what only the second has comes last."""
    if one is not None:
        return False, one.when.version
    return True, 0 if other is None else other.when.version


def _part(saga: Saga, state: State, what: str) -> Any:
    """Return a part of a saga; as its reference if it is not in the log itself: two of each have to fit."""
    if what == "input":
        value = state.origin.input
    elif what == "result":
        value = state.ended.output if state.ended else Value()
    else:
        return getattr(saga, what)
    return LargeValue(ref=value.ref, size=value.size) if value.ref else value.v


def _comparable(value: Any) -> Any:
    """Return a value for a comparison. The same bytes have another place in the bucket in another period."""
    return value.ref.partition(PERIOD)[0] if isinstance(value, LargeValue) else value


def _compared(saga: Saga) -> ComparedSaga:
    return ComparedSaga(
        saga=saga.id,
        workflow=saga.workflow,
        graph=saga.graph,
        status=saga.status,
        version=saga.version,
        branch=saga.branch,
    )
