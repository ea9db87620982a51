"""Result of a saga: its status, its output, and the result of each node, read from its log.

These are plain values for assertions, and their printed form, which a failing test shows. running.py runs the
saga.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, get_args

from baton.core.log.events import Closing, Opening
from baton.core.log.scopes import PLAN, is_turn, place_of
from baton.core.log.slots import Slot, owner_of, slot_of
from baton.core.log.state import FINISHED, UNKNOWN_OUTCOME
from baton.core.models.usage import MODEL
from baton.core.money import MICRO
from baton.core.read.explain import child_of, place_text, rounds_of
from baton.core.read.places import ANSWERED, FAILED, PASSED, RAN, WAITED
from baton.core.read.story import Story
from baton.testing.operations import is_label

_ENDS = frozenset({"step_succeeded", "step_failed", "attempt_failed"})
_BEGAN, _HANDED = "calls_began", "callback_opened"


@dataclass(frozen=True, slots=True)
class Call:
    """A call that an answer requests.

    `output` is the output of its tool, or that of the equal call that this one repeats (`repeated`). `error`
    is `code: message`, which the model received instead. `attempts` is the number of ended attempts of its
    tool; 0 means that it was not called.
    """

    tool: str
    arguments: Mapping[str, Any]
    output: Any = None
    error: str = ""
    repeated: bool = False
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of an agent, a request of a `model` node, or a request for a replacement of a step.

    `answer` is None if the model requests `calls`, or if the turn failed with `code: message` as its `error`.
    `read` and `written` are the numbers of tokens of all its `attempts`, as they are charged.
    """

    number: int
    answer: Any = None
    calls: Sequence[Call] = ()
    error: str = ""
    read: int = 0
    written: int = 0
    spent_usd: float = 0.0
    attempts: int = 0

    @property
    def tokens(self) -> int:
        return self.read + self.written

    def __str__(self) -> str:
        """Return a line of a story."""
        said = [_told(one) for one in self.calls]
        if self.error or not said:
            said.append(f"({self.error})" if self.error else f"= {short(self.answer)}")
        return f"turn {self.number}: {', '.join(said)}"


@dataclass(slots=True)
class _Ends:
    """Ends of the attempts of one slot so far."""

    attempts: int = 0
    output: Any = None
    error: str = ""
    read: int = 0
    written: int = 0
    cost: int = 0


def short(value: Any, longest: int = 200) -> str:
    """Return a value as a story shows it."""
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def failure_text(failure: Mapping[str, Any]) -> str:
    return f"{failure['code']}: {failure['message']}"


def turns_of(
    entries: Sequence[Mapping[str, Any]], content: Callable[[Any], Any]
) -> Mapping[str, Sequence[Turn]]:
    """Return the turns by slot of the node. `content` returns the content of a logged value."""
    events = [event for entry in entries for event in entry["events"]]
    asked = {slot for event in events if (slot := _asks(event))}
    if not asked:
        return {}
    ends: dict[str, _Ends] = {}
    calls: dict[str, Sequence[Mapping[str, Any]]] = {}
    for event in events:
        if event["kind"] == _BEGAN:
            turn, _ = place_of(event["calls"][0]["item"])
            calls[slot_of(event["node"], tuple(event["iteration"]), f"t{turn}")] = event["calls"]
        elif event["kind"] in _ENDS:
            _end(ends.setdefault(_slot(event), _Ends()), event, content)
        elif event["kind"] == _HANDED and event.get(
            "response"
        ):  # what was held for the answer counts until it is there
            _spend(ends.setdefault(_slot(event), _Ends()), event)
    found: dict[str, list[Turn]] = {}
    for slot in ends:
        if slot in asked:
            _, _, item = slot.partition("#")
            turns = found.setdefault(slot if item and not _is_part(item) else slot.partition("#")[0], [])
            turns.append(_turn(len(turns) + 1, slot, ends, calls.get(slot, ())))
    return found


def turns_at(turns: Mapping[str, Sequence[Turn]], place: str) -> list[Turn]:
    """Return the turns of a node, in all its rounds, or of one round, `NODE@ROUND`."""
    return [turn for slot, its in turns.items() if place in (slot, Slot.parse(slot).node) for turn in its]


def _all(turns: Mapping[str, Sequence[Turn]]) -> list[Turn]:
    return [turn for its in turns.values() for turn in its]


def item_in(event: Mapping[str, Any]) -> str:
    """Return the item of an event of a log's view, empty for a node's own event."""
    return str(event.get("item", ""))


def _slot(event: Mapping[str, Any]) -> str:
    return slot_of(event["node"], tuple(event["iteration"]), item_in(event))


def _asks(event: Mapping[str, Any]) -> str:
    """Return the slot of an attempt that asks a model, empty for other events."""
    if event["kind"] not in _ENDS:
        return ""
    is_one = _is_part(item_in(event)) or MODEL in (event.get("tool"), event.get("failure", {}).get("tool"))
    return _slot(event) if is_one else ""


def _is_part(item: str) -> bool:
    """Return true for the requests of an agent and for plans. A request of a function is an operation."""
    return is_turn(item) or item == PLAN


def _end(end: _Ends, event: Mapping[str, Any], content: Callable[[Any], Any]) -> None:
    failure = event.get("failure")
    end.attempts += 1
    end.output = None if failure else content(event["output"])
    end.error = failure_text(failure) if failure else ""
    _spend(end, event)


def _spend(end: _Ends, event: Mapping[str, Any]) -> None:
    end.cost += event.get("cost", 0)
    for usage in event.get("usage", ()):
        end.read += usage.get("input", 0)
        end.written += usage.get("output", 0)


def _turn(number: int, slot: str, ends: Mapping[str, _Ends], called: Sequence[Mapping[str, Any]]) -> Turn:
    end = ends[slot]
    said: Any = end.output
    if _is_part(slot.partition("#")[2]) and said is not None:
        said = said.get("data", said)  # a plan is all of it
    made: dict[str, Call] = {}
    for one in called:
        _, index = place_of(one["item"])
        arguments = end.output["calls"][index]["arguments"]
        made[one["item"]] = _call(one, arguments, slot, ends, made)
    return Turn(
        number=number,
        answer=said,
        calls=tuple(made.values()),
        error=end.error,
        read=end.read,
        written=end.written,
        spent_usd=end.cost / MICRO,
        attempts=end.attempts,
    )


def _call(
    one: Mapping[str, Any],
    arguments: Mapping[str, Any],
    slot: str,
    ends: Mapping[str, _Ends],
    made: Mapping[str, Call],
) -> Call:
    owner = slot.partition("#")[0]
    if failure := one.get("failure"):
        return Call(one["tool"], arguments, error=failure_text(failure))
    first = one.get("repeats", "")
    end = ends.get(f"{owner}#{first or one['item']}", _Ends())
    attempts = 0 if first else end.attempts
    return Call(one["tool"], arguments, end.output, end.error, bool(first), attempts)


def _told(call: Call) -> str:
    given = ", ".join(f"{name}={short(value, 40)}" for name, value in call.arguments.items())
    again = " again" if call.repeated else ""
    came = f"({call.error})" if call.error else f"= {short(call.output, 80)}"
    return f"{call.tool}({given}){again} {came}"


_FAILING = "attempt_failed"
# How an event of the log leaves its node.
_STATUS = {
    **{event.__struct_config__.tag: "waiting" if event.awaits else "running" for event in get_args(Opening)},
    **{event.__struct_config__.tag: "succeeded" for event in get_args(Closing)},
    "step_failed": "failed",
    _FAILING: "failing",
    "step_interrupted": "interrupted",
    "node_skipped": "skipped",
}

# What says that an attempt came to an end; a step can fail without one.
_ATTEMPTS = frozenset({"step_succeeded", _FAILING, "step_failed"})
_MADE = {"attempt": 1}

DID = frozenset({RAN, PASSED, WAITED, ANSWERED, FAILED})
_ROOM = 1_000_000_000  # bytes of answers: a test has time


@dataclass(frozen=True, slots=True)
class Step:
    """A node of the workflow that was reached, or an operation of a function; `node` is its name.

    `status` is succeeded, failed, running (an agent between its turns, a map), failing (it is retried, or a
    person is asked about it), waiting (for a time, a signal, a person, a child or external work), stopped
    (the saga ended while it waited or ran), interrupted or skipped. `output` is that of a tool or a child, or
    the payload of a signal. `error` is `code: message` of a failure. `tool` is empty for a node without a
    tool. `ended_s` is the time of this status, in seconds after the saga's start.
    """

    node: str
    status: str
    output: Any = None
    error: str = ""
    tool: str = ""
    attempt: int = 0
    ended_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """A saga in which nothing more can happen.

    `status` is completed, failed, cancelled, rolled_back or rollback_failed; parked if a person must decide;
    suspended in `Unanswered.result`; waiting if it waits for a signal that the test does not send, or for a
    child in such a state. `output` is None unless the saga completed. `error` is `code: message` of a failure
    (also of one that a question is about), or the reason for parking. `took_s` is in seconds of virtual time.
    `view` and `entries` are the answers of `GET /sagas/{id}` and `GET /sagas/{id}/events`. `children`
    contains the views of its children and their descendants, `inner` their turns. `way` contains the nodes
    that did something, in order, a round of a loop as `NODE@ROUND`. `why` explains why a node ran or did not
    run. The operations of a function are in `steps`, `way` and `undone` by their labels, such as
    `notify[3]/send`.
    """

    saga: str
    workflow: str
    status: str
    output: Any
    error: str
    steps: Mapping[str, Step]
    took_s: float
    view: Mapping[str, Any] = field(repr=False)
    children: Sequence[Mapping[str, Any]] = field(repr=False)
    entries: Sequence[Mapping[str, Any]] = field(repr=False)
    story: Story = field(repr=False, compare=False)
    asked: Mapping[str, Sequence[Turn]] = field(repr=False)
    inner: Mapping[str, Mapping[str, Sequence[Turn]]] = field(repr=False)

    @property
    def spent_usd(self) -> float:
        """Cost of the saga's steps in US dollars, models included."""
        return float(self.view["spent_usd"])

    @property
    def tokens(self) -> int:
        """Number of tokens that its models have read and written."""
        return sum(turn.tokens for its in (self.asked, *self.inner.values()) for turn in _all(its))

    @property
    def way(self) -> list[str]:
        operations = operations_of(self.story)
        places = [self.story.places[slot] for slot in self.story.ended]
        return [
            operations.get(place.slot, place.slot)
            for place in places
            if (not place.item or place.slot in operations)
            and place.end is not None
            and place.end.became in DID
        ]

    @property
    def undone(self) -> list[str]:
        """Steps that were undone, in order, each as in `way`. `view["undo"]["failed"]` contains those that
        could not be undone.
        """
        operations = operations_of(self.story)
        places = [self.story.places[slot] for slot in self.story.ended if Slot.parse(slot).scope]
        undone = [
            Slot.parse(place.slot).subject.text
            for place in places
            if place.end is not None and place.end.became == RAN
        ]
        return [operations.get(slot, slot) for slot in undone]

    @property
    def failing(self) -> Sequence[Mapping[str, Any]]:
        """Failed steps that are not given up: `node`, `attempts`, `code`, `message`, `strategy` and more."""
        return list(self.view["failing"])

    @property
    def questions(self) -> Sequence[Mapping[str, Any]]:
        """Open questions, including those of its children: `id`, `node`, `type`, `message`, `options`,
        `expires_at`.
        """
        return [question for view in (self.view, *self.children) for question in view["questions"]]

    @property
    def parked(self) -> Mapping[str, Any] | None:
        """Reason why the saga is parked: `code`, `message`, `node`, `until`. None if it is not parked."""
        found: Mapping[str, Any] | None = self.view["parked"]
        return found

    def attempts(self, node: str) -> int:
        """Return the number of ended attempts of a node, in all its rounds or in one, `NODE@ROUND`; for an
        agent, of requests, those of a child too; of one operation of a function.

        Raises `NotFound` for an unknown node.
        """
        operations = operations_of(self.story)
        most: dict[str, int] = {}
        for entry in self.entries:
            for event in entry["events"]:
                if event["kind"] in _ATTEMPTS and event.get("failure", _MADE).get("attempt"):
                    slot = _slot(event)
                    if slot in operations or _is_of_node(event):
                        slot = operations.get(slot, slot)
                        most[slot] = max(most.get(slot, 0), event["attempt"])
        if node in operations.values() and node in most:
            return most[node]
        if node in operations.values() or Slot.parse(node).node not in self.story.program.nodes:
            return sum(turn.attempts for turn in self.turns(node))
        most = {slot: count for slot, count in most.items() if slot not in operations.values()}
        return sum(count for slot, count in most.items() if node in (owner_of(slot), Slot.parse(slot).node))

    def turns(self, node: str) -> list[Turn]:
        """Return the turns of an agent, or the requests of a `model` node.

        They are those of all its rounds or of one, `NODE@ROUND`; those of an operation of a function; or, in
        order, those of the nodes of this name in its children. Raises `NotFound` for an unknown node.
        """
        for slot, label in operations_of(self.story).items():
            if label == node:
                return [
                    *self.asked.get(slot, ()),
                    *_all(self.inner.get(str(child_of(self.story.places[slot])), {})),
                ]
        found = [turn for its in self.inner.values() for turn in turns_at(its, node)]
        if found and Slot.parse(node).node not in self.story.program.nodes:
            return found
        rounds_of(self.story, Slot.parse(node).node, 0)
        return turns_at(self.asked, node)

    def why(self, node: str) -> str:
        """Explain why a node ran or did not run: a sentence for each of its rounds, or for one, `NODE@ROUND`.

        For an operation of a function: what became of it. Raises `NotFound` for an unknown node.
        """
        for at, label in operations_of(self.story).items():
            if label == node:
                return place_text(self.story, at)
        slot = Slot.parse(node)
        found, rounds = rounds_of(self.story, slot.node, _ROOM), list(slot.iteration)
        return "\n".join(one.text for one in found if not rounds or one.iteration == rounds)

    def __repr__(self) -> str:
        """Return the story that a failing test shows: a line for the saga, and for each node, child, question
        and wait.
        """
        lines = [f"<{self.workflow}: {self.status} after {_time(self.took_s)} s{_why(self.error)}"]
        waits = {_name_at(at) for at in self.view["active"] if _waits_for(at)}
        for step in self.steps.values():
            shown = "" if step.output is None else f" = {short(step.output)}"
            again = f" in attempt {step.attempt}" if step.attempt > 1 else ""
            if step.node not in waits:
                lines.append(f"  {step.node}: {step.status}{again}{shown}{_why(step.error)}")
                lines += self._earlier(step)
            lines += [f"    {turn}" for turn in turns_at(self.asked, step.node)]
        lines += _waits(self.view)
        for child in self.children:
            lines.append(
                f"  child {child['id']}, {child['workflow']}: {child['status']}{_why(_error(child, ()))}"
            )
            lines += [f"    {turn}" for turn in _all(self.inner.get(child["id"], {}))]
            lines += [f"  {line}" for line in _waits(child)]
        lines += [
            f"  {place_of_question(self, ask)} asks ({', '.join(ask['options'])}): {ask['title'] or ask['message']}"
            for ask in self.questions
        ]
        return "\n".join(lines) + ">"

    def _earlier(self, step: Step) -> list[str]:
        """Return a line for each different failure of attempts of a step before its last one."""
        found: dict[str, int] = {}
        operations = operations_of(self.story)
        for entry in self.entries:
            for event in entry["events"]:
                if event["kind"] == _FAILING and _name_of(event, operations) == step.node:
                    failure = event["failure"]
                    found.setdefault(failure_text(failure), failure.get("attempt", 1))
        return [f"    attempt {attempt}: {text}" for text, attempt in found.items() if text != step.error]


class Unanswered(AssertionError):
    """Error for a question without an answer in the test. `result` is the saga at that time, `question` its
    question.
    """

    def __init__(self, result: Result, question: Mapping[str, Any]) -> None:
        node, options = place_of_question(result, question), ", ".join(question["options"])
        asks = next(view for view in (result.view, *result.children) if question in view["questions"])
        codes = {step["code"] for step in asks["failing"] if step["node"] == question["node"]}
        # Of an effect in doubt only a rule that names it is heard.
        rule = f"{{{UNKNOWN_OUTCOME}: fail}}" if UNKNOWN_OUTCOME in codes else "fail"
        risk = f" ({question['risk']} risk)" if question.get("risk") else ""
        said = f'"{question["options"][0]}"' if question["schema"] is None else '{"data": …}'
        is_of_document = node == question["node"]
        place = f"`{node}`" + (f" of `{asks['workflow']}`" if asks is not result.view else "")
        super().__init__(
            f"{place} asks{risk}, and the test gives no answer: {question['title'] or question['message']}\n"
            f'  to answer:      run(…, answers={{"{node}": {said}}}), or another of {options}\n'
            f'  to let it pass: run(…, answers={{"{node}": None}})\n'
            + (
                f"  never to ask:   `on_failure: {rule}` in the document, or at the node\n"
                if codes and is_of_document
                else ""
            )
            + f"{result!r}"
        )
        self.result, self.question = result, question


def place_of_question(result: Result, question: Mapping[str, Any]) -> Any:
    """Return the operation or the node that a question is about."""
    item = str(question["id"]).partition("#")[2].partition(".")[0]
    slot = slot_of(question["node"] or "", tuple(question["iteration"]), item)
    subject = Slot.parse(slot).subject.text if slot else ""
    return operations_of(result.story).get(subject, question["node"])


def make_result(
    view: Mapping[str, Any],
    children: Sequence[Mapping[str, Any]],
    entries: Sequence[Mapping[str, Any]],
    story: Story,
    inner: Mapping[str, Mapping[str, Sequence[Turn]]],
    content: Callable[[Any], Any],
) -> Result:
    """Return the result of a saga from its views. `content` returns the content of a logged value."""
    began, operations = str(entries[0]["at"]), operations_of(story)
    steps: dict[str, Step] = {}
    for entry in entries:
        for event in entry["events"]:
            if event["kind"] in _STATUS and (name := _name_of(event, operations)):
                ended = _seconds(began, event.get("ended_at") or entry["at"])
                steps[name] = _step(name, event, ended, content)
    if view["status"] in FINISHED:
        steps = {name: _at_the_end(step) for name, step in steps.items()}
    return Result(
        saga=view["id"],
        workflow=view["workflow"],
        status=view["status"],
        output=view["result"],
        error=_error(view, children),
        steps=steps,
        took_s=_seconds(began, str(entries[-1]["at"])),
        view=view,
        children=children,
        entries=entries,
        story=story,
        asked=turns_of(entries, content),
        inner=inner,
    )


def _is_of_node(event: Mapping[str, Any]) -> bool:
    """Return true if the event is about the state of a node, not about an agent's call."""
    item = item_in(event)
    return not item or is_turn(item)


def operations_of(story: Story) -> dict[str, str]:
    """Return the labels of the operations of functions, by their slots."""
    nodes = story.program.nodes
    return {
        slot: place.label
        for slot, place in story.places.items()
        if place.item and nodes[place.node].function is not None and not Slot.parse(slot).scope
    }


def _name_of(event: Mapping[str, Any], operations: Mapping[str, str]) -> str:
    """Return the operation or the node that the event is about, empty for another part of a node."""
    if label := operations.get(_slot(event)) if "node" in event and item_in(event) else None:
        return label
    return str(event["node"]) if _is_of_node(event) else ""


def _step(name: str, event: Mapping[str, Any], ended_s: float, content: Callable[[Any], Any]) -> Step:
    wrong = event.get("failure") or event.get("fault")  # done, but not which way it goes on
    is_part = is_turn(item_in(event)) and name == event["node"]  # of an agent that goes on
    status = "running" if is_part else _STATUS[event["kind"]]
    return Step(
        node=name,
        status=_STATUS[event["kind"]] if event["kind"] == _FAILING else "failed" if wrong else status,
        output=None if is_part else content(event.get("output")),
        error=failure_text(wrong) if wrong else "",
        tool=event.get("tool", ""),
        attempt=event.get("attempt", 0),
        ended_s=ended_s,
    )


def _at_the_end(step: Step) -> Step:
    """Return the step as it is after the end of its saga, when it cannot continue."""
    return replace(step, status="stopped") if step.status in ("waiting", "running") else step


def _error(view: Mapping[str, Any], children: Sequence[Mapping[str, Any]]) -> str:
    """Return the reason of a failure, of parking or of a question of the saga or a child."""
    if view["error"]:
        return failure_text(view["error"])
    failures = [
        failure_text(step) for its in (view, *children) for step in its["failing"] if _is_asked(its, step)
    ]
    return view["reason"] or next(iter(failures), "")


def _is_asked(view: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
    return any(question["node"] == step["node"] for question in view["questions"])


def _seconds(began: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


def _waits(view: Mapping[str, Any]) -> list[str]:
    return [f"  {_name_at(at)}: {text}" for at in view["active"] if (text := _waits_for(at))]


def _name_at(active: Mapping[str, Any]) -> str:
    """Return the label of an operation, or the slot of a node."""
    is_operation = is_label(str(active.get("label") or "-")) and not Slot.parse(f"n#{active['item']}").scope
    return active["label"] if is_operation else slot_of(active["node"], tuple(active["iteration"]))


def _waits_for(active: Mapping[str, Any]) -> str:
    """Return the object that an active node waits for, empty if it does not wait."""
    if active["state"] == "waiting":
        signal, callback = active.get("signal"), active.get("callback")
        what = (
            f"the signal `{signal}`" if signal else f"the callback `{callback}`" if callback else "its time"
        )
        return f"waits for {what}, " + (f"until {active['until']}" if active["until"] else "without end")
    if active["state"] == "child":
        return f"waits for its child {active['saga']}"
    if active["state"] == "joining":
        return f"waits for {', '.join(active['waits_for'])}"
    return ""


def _time(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


def _why(error: str) -> str:
    return f" ({error})" if error else ""
