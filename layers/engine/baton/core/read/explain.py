"""Path of a saga, and the reasons why a node ran or did not, from the log and the graph alone.

story.py gathers the facts and follows them to their cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from baton.core.expressions import iso, nearest, with_hint
from baton.core.log import events as ev
from baton.core.log.questions import EXPIRED
from baton.core.log.slots import Slot, slot_of
from baton.core.read.answers import (
    ITEM,
    Count,
    Status,
    Time,
    Version,
    View,
)
from baton.core.read.places import (
    BECAME,
    DROPPED,
    FAILED,
    SHOWN,
    SKIPPED,
    Arrival,
    FailedAttempt,
    Moment,
    Place,
    RecordedUnit,
    attempts_view,
    choice,
    code_and_message,
    counted,
    history,
    names_in_words,
    onward_in_words,
    outside_event_in_words,
    skipped_handlers,
    units_in_words,
    units_view,
)
from baton.core.read.step_runs import StepRun
from baton.core.read.story import (
    ASKING,
    CHILD,
    HELD,
    JOINING,
    READY,
    RETRYING,
    RUNNING,
    UNREACHED,
    WAITING,
    Cause,
    Reasons,
    Story,
    end_of,
)
from baton.errors import NotFound

ITEMS = {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("WayStep", "OpenNode")]}
STATES = (*BECAME, READY, RUNNING, HELD, RETRYING, ASKING, WAITING, CHILD, JOINING, UNREACHED)
MOST_OPEN = 100
MOST_CAUSES = 20  # of the chain to a cause: the first of them, and the cause itself
_SAID = 5  # of edges, of causes, or of what a node waits for, in one sentence


class WayStep(View):
    """A settled round of a node, or a settled item of such a round."""

    node: str
    iteration: Annotated[list[int], "Round of each enclosing loop, outermost first."]
    became: Annotated[str, Meta(extra_json_schema={"enum": list(BECAME)})]
    version: Annotated[Version, "Version of the log entry that records the result."]
    at: Time
    by: Annotated[
        list[str],
        "Nodes whose live edges led to this round. An empty string stands for the start of the saga.",
    ]
    way: Annotated[str, "Choice of the node's loop and branch, as in the log."]
    to: Annotated[list[str], "Rounds of nodes that the live edges lead to, as NODE or NODE@ROUND."]
    not_to: Annotated[list[str], "Nodes that the saga does not continue with."]
    text: Annotated[
        str,
        "Explanation as text: the turn or call of an agent, the path taken, or the reason why the node did not run.",
    ]
    item: Annotated[str | UnsetType, ITEM] = UNSET
    child: Annotated[str | UnsetType, "Saga that the node has started, if any."] = UNSET


class OpenNode(View):
    """A round of a node that is not settled."""

    node: str
    iteration: list[int]
    state: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
    text: Annotated[str, "Current activity as text."]
    item: Annotated[str | UnsetType, ITEM] = UNSET
    child: Annotated[str | UnsetType, "Saga that the node has started."] = UNSET


class _AboutSaga(View):
    saga: str
    workflow: str
    status: Status
    version: Annotated[Version, "Version of the saga's log that this answer reflects."]
    branch: Annotated[
        Count, "Number of the branch. The answer excludes entries of earlier branches after the fork."
    ]


class Way(_AboutSaga):
    """The path that a saga took."""

    start: Annotated[str | None, "Event or fork that started the saga, as text. Only on the first page."]
    steps: Annotated[list[WayStep], "Settled rounds, in the order of settlement."]
    open: Annotated[Annotated[list[OpenNode], Meta(max_length=100)], "Open rounds. Only on the last page."]
    end: Annotated[str | None, "End of the saga, reached or in progress, as text. Only on the last page."]
    next: Annotated[int | None, "Value of `after` for the next page. Null on the last page."]


class ExplainedEdge(View):
    """State of an edge into the node."""

    from_: Annotated[str, "Node that the edge comes from. An empty string stands for the start of the saga."]
    alive: Annotated[bool | None, "True if the saga took this edge. Null if that is not decided."]
    late: Annotated[bool, "True if the edge was decided after the node's join was complete."]
    version: int | None
    at: Time | None
    text: str


class Reason(View):
    """One step back to a cause."""

    node: Annotated[str, "Name of the node. Empty for the saga as a whole."]
    iteration: list[int]
    version: int | None
    at: Time | None
    text: str


class StepPage(_AboutSaga):
    """Attempts of a saga, in the order of the log."""

    steps: list[StepRun]
    next: Annotated[int | None, "Value of `after` for the next page. Null on the last page."]


class ExplainedRound(View):
    """Result of one round of a node, and its causes."""

    iteration: list[int]
    state: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
    version: Annotated[int | None, "Version of the log entry that settled the round."]
    at: Time | None
    text: Annotated[str, "Complete explanation as text."]
    edges: list[ExplainedEdge]
    attempts: Annotated[
        Annotated[list[FailedAttempt], Meta(max_length=50)],
        "Failed attempts before the last. Contains the first and last of them if there are more than 50.",
    ]
    runs: Annotated[
        Annotated[list[StepRun], Meta(max_length=50)],
        "Attempts, those of items too, with inputs and outputs. Contains the first and last of them if there are more than 50.",
    ]
    items: Annotated[
        Annotated[list[Any], Meta(max_length=50, extra_json_schema={"items": ITEMS})],
        "Turns and calls of an agent. Contains the first and last of them if there are more than 50.",
    ]
    units: Annotated[
        Annotated[list[RecordedUnit], Meta(max_length=50)],
        "Units of the node's work that its tools have recorded by `context.once`, in the order of the log. Contains the first and last of them if there are more than 50.",
    ]
    causes: Annotated[
        list[Reason],
        "Reasons why the node did not run, from its own edges back to the cause, along the shortest path.",
    ]
    causes_left_out: Annotated[Count, "Number of causes omitted before the last."]
    waits_for: Annotated[
        Annotated[list[OpenNode], Meta(max_length=100)], "Open rounds that this round waits for."
    ]
    way: str
    to: list[str]
    not_to: list[str]


class Explanation(_AboutSaga):
    """Explanation of why a node ran or did not run."""

    node: str
    kind: str
    iterations: Annotated[
        list[ExplainedRound],
        "Rounds of the node that its loops have reached. A node outside of loops has one.",
    ]
    left_out: Annotated[Count, "Number of earlier rounds omitted from the answer."]


def _start(story: Story) -> str | None:
    origin = story.state.origin
    if origin.copied:
        return f"by a fork of saga {origin.source} at version {origin.copied}"
    return f"by {outside_event_in_words(story.sent)}" if story.sent else None


def way(story: Story, after: int, limit: int, room: int, **about: Any) -> Way:
    """Return the path: slots in the order in which they were settled, by entries above `after`.

    A page has about `limit` slots, all slots of each of its entries, and at most `room` bytes after its first
    entry. `next` continues it.
    """
    reasons = Reasons(story)
    start = None if after else _start(story)
    steps: list[WayStep] = []
    for slot in story.ended:
        place = story.places[slot]
        version = end_of(place).when.version
        if version <= after:
            continue
        step = _step(reasons, story, place)
        room -= _size(step)
        if steps and version > steps[-1].version and (len(steps) >= limit or room < 0):
            return Way(**about, start=start, steps=steps, open=[], end=None, next=steps[-1].version)
        steps.append(step)
    end = reasons.stopped()
    places = story.places.values() if story.end is None else ()
    open_ones = [place for place in places if story.is_open(place)]
    return Way(
        **about,
        start=start,
        steps=steps,
        open=[_open(reasons, place) for place in open_ones[:MOST_OPEN]],
        end=end.text if end else None,
        next=None,
    )


def has_page(story: Story, after: int, limit: int) -> bool:
    """Return true if a page of `way` ends before the last known slot.

    Later entries of the saga do not change such a page.
    """
    known: list[int] = []
    for slot in reversed(story.ended):
        version = end_of(story.places[slot]).when.version
        if version <= after:
            break
        known.append(version)
    return len(known) > limit and known[0] > known[-limit]


_NO_RUNS: Mapping[str, Sequence[StepRun]] = {}


def explain(
    story: Story, name: str, room: int, runs: Mapping[str, Sequence[StepRun]] = _NO_RUNS, **about: Any
) -> Explanation:
    """Return the reasons why a node ran or did not run, for each of its possible iterations.

    The last iterations if all take more than `room` bytes. `name` can also be the label of an operation of a
    function, or its item. `about`: fields about the saga. Raises `NotFound` with the nearest name.
    """
    if name not in story.program.nodes and (place := _operation(story, name)) is not None:
        kind = story.program.nodes[place.node].kind
        its = [one for one in runs.get(slot_of(place.node, place.iteration), ()) if one.item == place.item]
        return Explanation(
            **about, node=place.node, kind=kind, iterations=[_of_operation(story, place, its)], left_out=0
        )
    shown = rounds_of(story, name, room, runs)
    return Explanation(
        **about,
        node=name,
        kind=story.program.nodes[name].kind,
        iterations=shown,
        left_out=len(_iterations(story, name)) - len(shown),
    )


def rounds_of(
    story: Story, name: str, room: int, runs: Mapping[str, Sequence[StepRun]] = _NO_RUNS
) -> list[ExplainedRound]:
    """Return the last rounds of a node, at most `room` bytes of them, but one at least. Raises `NotFound`.

    `runs`: attempts by the slot of their node.
    """
    nodes = story.program.nodes
    if name not in nodes:
        hint = nearest(name[:100], nodes)
        said = f"the workflow has no node `{name[:100]}`"
        raise NotFound(with_hint(said, hint) if hint else said)
    reasons = Reasons(story)
    shown: list[ExplainedRound] = []
    for iteration in reversed(_iterations(story, name)):
        answer = _why(reasons, story, name, iteration, runs)
        room -= _size(answer)
        if shown and room < 0:
            break
        shown.append(answer)
    shown.reverse()
    return shown


def _operation(story: Story, name: str) -> Place | None:
    """Return the operation of a function with this label or item."""
    nodes = story.program.nodes
    found = (
        one for one in story.places.values() if name in (one.label, one.item) and nodes[one.node].function
    )
    return next(found, None)


def _of_operation(story: Story, place: Place, runs: Sequence[StepRun]) -> ExplainedRound:
    end = place.end
    return ExplainedRound(
        iteration=list(place.iteration),
        state=Reasons(story).state(place) if end is None else end.became,
        **_moment(end.when if end else None),
        text=place_text(story, place.slot),
        edges=[],
        attempts=attempts_view(place),
        runs=_some_runs(runs),
        units=units_view([place]),
        items=[],
        causes=[],
        causes_left_out=0,
        waits_for=[],
        way="",
        to=[],
        not_to=[],
    )


def place_text(story: Story, slot: str) -> str:
    """Return the explanation of one slot."""
    place = story.places[slot]
    reasons = Reasons(story)
    return _open(reasons, place).text if place.end is None else _step(reasons, story, place).text


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _iterations(story: Story, name: str) -> list[tuple[int, ...]]:
    """Return the rounds in which the node can run.

    They are the begun rounds of the loops around it, and the first round of a loop that has not begun.
    """
    found: list[tuple[int, ...]] = [()]
    for depth, tail in enumerate(story.program.nodes[name].loops):
        inside: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for begun in sorted(story.rounds.get(tail, ())):
            inside.setdefault(begun[:depth], []).append(begun)
        found = [one for before in found for one in inside.get(before, [(*before, 0)])]
    return found


# ---- the path of a saga


def _step(reasons: Reasons, story: Story, place: Place) -> WayStep:
    end = end_of(place)
    if end.became in (SKIPPED, DROPPED):
        causes = reasons.direct(place)
        more = f"; and {counted(len(causes) - 1, 'more edge')} not taken" if len(causes) > 1 else ""
        text = "".join(cause.text for cause in causes[:1]) + more
    else:
        text = "; ".join(
            part for part in (history(place), _onward(story, place), place.said, place.fate) if part
        )
    if place.label:
        text = f"{place.label}: {text}" if text else place.label
    return WayStep(
        node=place.node,
        iteration=list(place.iteration),
        item=place.item or UNSET,
        became=end.became,
        version=end.when.version,
        at=iso(end.when.at),
        by=[] if place.item else [arrival.src for arrival in _alive(place)],
        way=end.way,
        to=list(end.to),
        not_to=list(end.not_to),
        text=text,
        child=child_of(place),
    )


def _open(reasons: Reasons, place: Place) -> OpenNode:
    return OpenNode(
        node=place.node,
        iteration=list(place.iteration),
        item=place.item or UNSET,
        state=reasons.state(place),
        text="; ".join(filter(None, (f"{place.name} {reasons.doing(place)}", units_in_words(place)))),
        child=child_of(place),
    )


def child_of(place: Place) -> str | UnsetType:
    """Return the child saga that the slot has started, if any."""
    return place.opened.child or UNSET if place.opened is not None else UNSET


def _alive(place: Place) -> list[Arrival]:
    """Return the live edges of a slot."""
    return [arrival for arrival in place.arrivals.values() if arrival.alive and not arrival.late]


def _onward(story: Story, place: Place) -> str:
    """Return the failure of a slot, and the nodes that followed."""
    end = end_of(place)
    failed = code_and_message(end.failure) if end.became == FAILED and end.failure is not None else ""
    skipped = skipped_handlers(story.places, end.to) if end.failure is not None else ()
    nothing = f"nothing handles it: `when` says no at {names_in_words(skipped)}" if skipped else ""
    return "; ".join(part for part in (failed, onward_in_words(story.program, place), nothing) if part)


# ---- why


def _some_runs(runs: Sequence[StepRun]) -> list[StepRun]:
    return list(runs if len(runs) <= SHOWN else [runs[0], *runs[-SHOWN + 1 :]])


def _why(
    reasons: Reasons,
    story: Story,
    name: str,
    iteration: tuple[int, ...],
    runs: Mapping[str, Sequence[StepRun]],
) -> ExplainedRound:
    """Explain one iteration of a node."""
    place = story.places.get(slot_of(name, iteration)) or Place(name, iteration)
    end = place.end
    causes: Sequence[Cause] = ()
    waits: list[Place] = []
    if end is None:
        state = reasons.state(place)
        text, causes, waits = _unfinished(reasons, place, state)
    elif end.became in (SKIPPED, DROPPED):
        state, causes = end.became, reasons.chain(place)
        text = _head(reasons, story, place) + (_each(reasons.direct(place)) or _because(causes))
    else:
        state, text = end.became, _reached(story, place)
    shown = _some(causes)
    return ExplainedRound(
        iteration=list(iteration),
        state=state,
        **_moment(end.when if end else None),
        text=text,
        edges=_edges(reasons, story, place),
        attempts=attempts_view(place),
        runs=_some_runs(runs.get(place.slot, ())),
        items=_items(reasons, story, place),
        units=units_view((place, *story.items.get(place.slot, ()))),
        causes=[_cause(cause) for cause in shown],
        causes_left_out=len(causes) - len(shown),
        waits_for=[_open(reasons, other) for other in waits[:MOST_OPEN]],
        way=end.way if end else "",
        to=list(end.to) if end else [],
        not_to=list(end.not_to) if end else [],
    )


def _items(reasons: Reasons, story: Story, place: Place) -> list[WayStep | OpenNode]:
    """Return the items of a node one by one; of more than `SHOWN`, the first and the last."""
    found = list(story.items.get(place.slot, ()))
    if len(found) > SHOWN:
        found = [found[0], *found[-SHOWN + 1 :]]
    return [_step(reasons, story, one) if one.end is not None else _open(reasons, one) for one in found]


def _unfinished(reasons: Reasons, place: Place, state: str) -> tuple[str, Sequence[Cause], list[Place]]:
    """Return the sentence, the causes, and the places that it waits for, of a slot that has not ended."""
    if state == UNREACHED and (causes := reasons.ended_round(place)):
        return f"`{place.slot}` did not run{_because(causes)}", causes, []
    if stopped := reasons.stopped():
        return f"`{place.slot}` {reasons.was_doing(place)}: {stopped.text}", [stopped], []
    text = "; ".join(filter(None, (f"`{place.slot}` {reasons.doing(place)}", units_in_words(place))))
    if state not in (JOINING, UNREACHED):
        return text, (), []
    waits = reasons.held_up_by(place)
    return "; ".join([text, *(_open(reasons, other).text for other in waits[:_SAID])]), (), waits


def _reached(story: Story, place: Place) -> str:
    """Return the reason why a slot became ready, and the nodes that followed."""
    end = end_of(place)
    parts = [f"`{place.slot}` {end.became}"]
    edges = [_edge(story, arrival) for arrival in _alive(place)[:_SAID]]
    parts += [edge if not at else edge.removeprefix("reached ") for at, edge in enumerate(edges)]
    if len(_alive(place)) > _SAID:
        parts.append(f"and from {len(_alive(place)) - _SAID} more")
    if place.fired is not None:
        parts.append(f"its join did not wait for {names_in_words(place.fired[0].unspoken)}")
    if tried := history(place):
        parts.append(tried)
    if end.closed_by:
        parts.append("until its time came" if end.closed_by == "time" else "until its signal came")
    if place.answer is not None:
        parts.append(_answered(place.answer))
    if story.finished is not None and story.finished[0] == place.slot:
        parts.append("and the saga ended with it")
    onward = _onward(story, place)
    words = "" if not onward else f": {onward}" if end.became == FAILED else f"; then {onward}"
    return ", ".join(parts) + words + (f"; {place.fate}" if place.fate else "")


def _answered(event: ev.QuestionClosed) -> str:
    if event.by:
        return f"with the answer `{event.action}`"
    late = "without an answer in time"
    return late if event.action == EXPIRED else f"{late}, with `{event.action}` by its escalation"


def _edge(story: Story, arrival: Arrival) -> str:
    """Describe a live edge: where it came from, and by which choice."""
    if not arrival.cause:
        return "with the start of the saga" + (
            f", by {outside_event_in_words(story.sent)}" if story.sent else ""
        )
    how = choice(story.program, story.places[arrival.cause])
    return f"reached from `{arrival.cause}`" + (f" ({how})" if how else "")


def _edges(reasons: Reasons, story: Story, place: Place) -> list[ExplainedEdge]:
    """Return the tokens of the edges into the slot. A round after the first has only that of its tail."""
    names = dict.fromkeys(place.arrivals)
    if names.keys().isdisjoint(story.program.index.tails_of.get(place.node, ())):
        names = dict.fromkeys((*story.program.nodes[place.node].before, *names))
    found = []
    for src in names:
        arrival = place.arrivals.get(src)
        text = ""
        if arrival is not None:
            text = _edge(story, arrival) if arrival.alive else reasons.dead(arrival).text
        found.append(
            ExplainedEdge(
                from_=src,
                alive=arrival.alive if arrival else None,
                late=arrival is not None and arrival.late,
                **_moment(arrival.when if arrival else None),
                text=text,
            )
        )
    return found


def _head(reasons: Reasons, story: Story, place: Place) -> str:
    """Return the sentence that a slot did not run, with its join's part in it."""
    end, node = end_of(place), story.program.nodes[place.node]
    alive, text = sum(place.heard.values()), f"`{place.slot}` did not run"
    if end.became == DROPPED or end.why:
        # No log says that a step began: once the saga no longer needs it, it ends as if it had not.
        may_have_begun = end.why != "when" and reasons.had_turn(place)
        return f"{text}, or was stopped" if may_have_begun else text
    if node.join is not None and node.join.need:
        edges = counted(len(place.heard), "edge")
        return f"{text}: its join needs {node.join.need} alive, and of {edges} {alive} came alive"
    return f"{text}: its join tolerates no failure" if alive and reasons.lacking(place) else text


def _each(direct: Sequence[Cause]) -> str:
    """Return the causes of several edges in one clause; empty if some cause has a cause of its own."""
    texts = list(dict.fromkeys(cause.text for cause in direct))
    if len(texts) < 2 or any(cause.then for cause in direct):
        return ""
    if len(texts) > _SAID:
        texts[_SAID - 1 :] = [f"{counted(len(texts) - _SAID + 1, 'more edge')} not taken"]
    return f", because {'; and because '.join(texts)}"


def _because(causes: Sequence[Cause]) -> str:
    shown = _some(causes, _SAID)
    texts = [cause.text for cause in shown]
    if len(shown) < len(causes):
        texts.insert(-1, f"{counted(len(causes) - len(shown), 'more node')} before it did not run")
    return "".join(f", because {text}" for text in texts)


def _some(causes: Sequence[Cause], most: int = MOST_CAUSES) -> Sequence[Cause]:
    """Shorten a chain of causes: of a long one its beginning, and the root."""
    return causes if len(causes) <= most else [*causes[: most - 1], causes[-1]]


def _cause(cause: Cause) -> Reason:
    slot = Slot.parse(cause.slot)
    return Reason(node=slot.node, iteration=list(slot.iteration), **_moment(cause.when), text=cause.text)


def _moment(when: Moment | None) -> dict[str, Any]:
    return {"version": when.version if when else None, "at": iso(when.at) if when else None}
