"""Conversations of a saga's agents with their models, turn by turn."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode

from baton.console.acting import pace
from baton.console.rendering import commands, fitting_length, milliseconds, part, pretty, printing
from baton.console.visits import ENDED, Answer, Html, Unchanged, Visit, tag_of
from baton.core.log.codec import PERIOD, SCHEME
from baton.core.log.scopes import is_turn, item_words
from baton.core.models.messages import shown_prompt
from baton.core.money import MICRO
from baton.errors import UserError


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored value that was not read: its digest and its size in bytes."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class CallApproval:
    """Question about a call. action: empty while it is open. by: empty if no person answered."""

    action: str = ""
    by: str = ""
    at: Any = None


@dataclass(slots=True)
class Called:
    """Call that the model requested. failure, repeats: in place of a result, which is None until then."""

    tool: str
    arguments: Any
    approval: CallApproval | None = None
    result: Any = None
    failure: Mapping[str, Any] | None = None
    took: int | None = None
    version: int = 0
    repeats: str = ""


@dataclass(slots=True)
class ConversationTurn:
    """A turn. heard: messages before it. version: of its answer's entry, or 0. moved: its last entry."""

    node: str
    round: str
    number: int
    heard: Sequence[Any] = ()
    answer: Any = None
    failure: Mapping[str, Any] | None = None
    calls: list[Called] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    input: int = 0
    cached: int = 0
    output: int = 0
    usd: float = 0.0
    took: int | None = None
    version: int = 0
    moved: int = 0


@dataclass(slots=True)
class Talk:
    """One run of an agent. given: model, instructions and prompt, empty if its beginning is missing."""

    node: str
    round: str
    given: Mapping[str, Any] | Stored
    turns: dict[int, ConversationTurn] = field(default_factory=dict)
    is_over: bool = False

    @property
    def usd(self) -> float:
        return sum(turn.usd for turn in self.turns.values())


@dataclass(slots=True)
class _Reader:
    """Reader of events. values: stored values that were read. news, senders: of signals, by key."""

    values: Mapping[str, Any]
    news: dict[str, Any] = field(default_factory=dict)
    senders: dict[str, str] = field(default_factory=dict)

    def value(self, given: Any) -> Any:
        """Return the value of an event's field, or None."""
        if not isinstance(given, Mapping):
            return None
        if not (ref := given.get("ref")):
            return given.get("v")
        digest = str(ref).removeprefix(SCHEME).partition(PERIOD)[0]
        return self.values.get(digest, Stored(digest, int(given.get("size") or 0)))


def talks_of(
    entries: Sequence[Mapping[str, Any]],
    values: Mapping[str, Any] = MappingProxyType({}),
    *,
    is_part: bool = False,
) -> list[Talk]:
    """Return the talks in the order of their beginnings, which earlier entries may have if `is_part`."""
    found: dict[tuple[str, str], Talk] = {}
    reader, runs = _Reader(values), dict[tuple[str, str], dict[str, _Run]]()
    for entry in entries:
        for event in entry["events"]:
            if event["kind"] == "signal_received":
                reader.news[str(event.get("key"))] = reader.value(event.get("payload"))
                reader.senders[str(event.get("key"))] = str(event.get("by") or "")
                continue
            place = (str(event.get("node") or ""), ".".join(map(str, event.get("iteration") or ())))
            if event["kind"] == "agent_began":
                given = reader.value(event.get("given"))
                if isinstance(given, Mapping):
                    given = {**given, "prompt": shown_prompt(given.get("prompt"))}
                found[place] = Talk(*place, given if isinstance(given, Mapping | Stored) else {})
                continue
            _take_run(runs.setdefault(place, {}), place[1], event, int(entry["version"]), reader)
            if is_part and place not in found and _is_of_an_agent(event):
                found[place] = Talk(*place, {})
            if (talk := found.get(place)) is not None:
                _take(talk, event, int(entry["version"]), reader)
    return [*found.values(), *(run.talk for its in runs.values() for run in its.values() if run.talk.turns)]


def stored_in(talk: Talk) -> Iterator[Stored]:
    """Yield the stored values that the talk's turns refer to, the newest turn first."""
    for turn in sorted(talk.turns.values(), key=lambda turn: -turn.number):
        results = [call.result for call in turn.calls]
        yield from (one for one in (turn.answer, *turn.heard, *results) if isinstance(one, Stored))
    if isinstance(talk.given, Stored):
        yield talk.given


def _is_of_an_agent(event: Mapping[str, Any]) -> bool:
    item = re.fullmatch(r"t[0-9]+(-[0-9]+)?", str(event.get("item") or ""))
    return event["kind"] in ("turn_began", "calls_began", "agent_closed") or item is not None


def _take(talk: Talk, event: Mapping[str, Any], version: int, reader: _Reader) -> None:
    if event["kind"] == "agent_closed":
        talk.is_over = True
    elif event["kind"] == "turn_began":
        turn = _turn(talk, int(event["turn"]))
        turn.heard = [reader.news.get(str(key), key) for key in event.get("heard") or ()]
        turn.moved = version
    elif event["kind"] == "calls_began":
        for one in event["calls"]:
            call = _call(talk, str(one["item"]))
            call.tool = str(one.get("tool") or call.tool)
            call.failure = one.get("failure") or call.failure
            call.repeats = item_words(str(one.get("repeats") or ""))
            call.version = call.version or version
    elif item := str(event.get("item") or ""):
        if is_turn(item):
            _answered(_turn(talk, int(item[1:])), event, version, reader)
        elif item.startswith("t") and "-" in item:
            _came_back(_call(talk, item), event, version, reader)


def _turn(talk: Talk, number: int) -> ConversationTurn:
    return talk.turns.setdefault(number, ConversationTurn(talk.node, talk.round, number))


def _call(talk: Talk, item: str) -> Called:
    turn, _, index = item.partition("-")
    return _call_at(_turn(talk, int(turn[1:])), int(index))


def _answered(turn: ConversationTurn, event: Mapping[str, Any], version: int, reader: _Reader) -> None:
    turn.moved = version
    for one in event.get("usage") or ():
        turn.input += one.get("input", 0)
        turn.cached += one.get("cached", 0)
        turn.output += one.get("output", 0)
        turn.models += [str(one.get("model"))] if one.get("model") not in turn.models else []
    cost = event.get("cost") or 0
    turn.usd += (sum(cost.values()) if isinstance(cost, Mapping) else cost) / MICRO
    turn.failure = event.get("failure")
    if event["kind"] != "step_succeeded":
        return
    turn.version, turn.took = version, _took(event)
    said = reader.value(event.get("output"))
    if not isinstance(said, Mapping):
        turn.answer = said
        return
    for index, one in enumerate(said.get("calls") or ()):
        call = _call_at(turn, index)
        call.tool, call.arguments = str(one.get("tool")), one.get("arguments") or one.get("text")
    turn.answer = said.get("text") or said.get("data")


def _call_at(turn: ConversationTurn, index: int) -> Called:
    while len(turn.calls) <= index:
        turn.calls.append(Called("", None))
    return turn.calls[index]


def _came_back(call: Called, event: Mapping[str, Any], version: int, reader: _Reader) -> None:
    if event["kind"] == "question_opened":
        call.approval = CallApproval()
    elif event["kind"] == "question_closed":
        by = reader.senders.get(str(event.get("by")), "")
        call.approval = CallApproval(str(event.get("action")), by, event.get("at"))
    call.failure = event.get("failure")
    if event["kind"] in ("step_succeeded", "step_failed"):
        call.version, call.took = version, _took(event)
        call.result = reader.value(event.get("output"))


# ---- agents of pydantic-ai and of the OpenAI Agents SDK in a function, whose requests and calls are operations


_REQUESTS: Final = frozenset({"pydantic_ai.request", "openai_agents.request"})
_CALLS: Final = frozenset({"pydantic_ai.call", "openai_agents.call"})
_OUTPUT: Final = "final_result"  # pydantic-ai's name of a call that is the output
_OPERATION: Final = re.compile(r"(?P<run>.+)--(?P<name>.+?)(-(?P<number>[0-9]+))?")
"""Item of an operation of an agent: `support-1--model-2` is the second request of `support[1]`."""


@dataclass(slots=True)
class _Run:
    """Run of an agent. calls: that were made, by item."""

    talk: Talk
    calls: dict[str, Called] = field(default_factory=dict)


def _take_run(
    runs: dict[str, _Run], iteration: str, event: Mapping[str, Any], version: int, reader: _Reader
) -> None:
    """Take an event of a function into the talks of its agents."""
    if event["kind"] == "function_closed":
        for one in runs.values():
            one.talk.is_over = True
    for asked in event.get("operations") or ():
        if (item := _OPERATION.fullmatch(str(asked["item"]))) is None:
            continue
        if asked.get("tool") in _REQUESTS:
            label, given = str(asked.get("label") or "").rpartition("/")[0], reader.value(asked.get("given"))
            given = {"model": given.get("model")} if isinstance(given, Mapping) else {}
            talk = Talk(label or item["run"], iteration, given)
            talk = runs.setdefault(item["run"], _Run(talk)).talk
            _turn(talk, int(item["number"] or 1)).moved = version
        elif item["run"] in runs:
            _begin_call(runs[item["run"]], item[0], item["name"], version)
    item = _OPERATION.fullmatch(str(event.get("item") or ""))
    run = None if item is None else runs.get(item["run"])
    if item is None or run is None:
        return
    if event.get("tool") in _REQUESTS:
        event = {**event, "output": {"v": _response(reader.value(event.get("output")))}}
        _answered(_turn(run.talk, int(item["number"] or 1)), event, version, reader)
    elif (call := run.calls.get(item[0])) is not None:
        _came_back(call, event, version, reader)
        if isinstance(call.result, Mapping) and event.get("tool") in _CALLS:
            done = call.result.get("done", call.result.get("value"))
            call.result = done.get("result", done) if isinstance(done, Mapping) else done


def _begin_call(run: _Run, item: str, name: str, version: int) -> None:
    """Find the call of an operation, or of a question about it: the n-th of its name in the last turn."""
    tool = name.removeprefix("approve_").removeprefix("answer_")
    turn = run.talk.turns[max(run.talk.turns)]
    its = [one for one in turn.calls if re.sub(r"\W", "_", one.tool)[:40] in (name, tool)]
    made = [id(call) for other, call in run.calls.items() if _name_of(other) == name]
    if its:
        call = run.calls[item] = min(its, key=lambda one: made.count(id(one)))
        call.version = call.version or version


def _name_of(item: str) -> str:
    found = _OPERATION.fullmatch(item)
    return found["name"] if found else ""


def _response(output: Any) -> Any:
    """Return a response as the answer of a model: its text and its calls."""
    if not isinstance(output, Mapping):
        return output
    texts, calls, data = list[str](), list[Mapping[str, Any]](), None
    for one in (output.get("done") or {}).get("parts") or ():  # of pydantic-ai
        if one.get("part_kind") == "text":
            texts.append(str(one.get("content")))
        elif str(one.get("tool_name")).startswith(_OUTPUT):
            data = one.get("args")
        elif one.get("part_kind") == "tool-call":
            calls.append({"tool": one.get("tool_name"), "arguments": one.get("args")})
    for one in (output.get("value") or {}).get("output") or ():  # of the OpenAI Agents SDK
        texts += [str(said["text"]) for said in one.get("content") or () if said.get("text")]
        if one.get("type") == "function_call":
            calls.append({"tool": one.get("name"), "arguments": one.get("arguments")})
    return {"text": "\n".join(texts), "calls": calls, "data": data}


def _took(event: Mapping[str, Any]) -> int | None:
    begin, end = milliseconds(event.get("started_at")), milliseconds(event.get("ended_at"))
    return None if begin is None or end is None else max(end - begin, 0)


PART: Final = 150  # entries of one page
_MARGIN: Final = 25
"""Number of entries read before and after a window. A turn cut by the edge of a page is complete on one of
the two pages.
"""
_PARTS_WITHOUT: Final = 5
"""Number of parts without a turn that are skipped before a page reports that there is none."""
MOST_VALUES: Final = 8
LARGEST_VALUE: Final = 65_536
_SIDE_BY_SIDE: Final = 4


@dataclass(frozen=True, slots=True)
class _Window:
    """Entries above `low` up to `high`, of a log of `whole`. is_new: the newest turn is first."""

    low: int
    high: int
    whole: int
    is_new: bool

    @property
    def is_fixed(self) -> bool:
        """Return true if no further entry can change the window."""
        return self.high + _MARGIN <= self.whole

    def next(self) -> _Window | None:
        """Return the window that is read next."""
        if self.is_new:
            return _Window(max(self.low - PART, 0), self.low, self.whole, is_new=True) if self.low else None
        if self.high >= self.whole:
            return None
        return _Window(self.high, min(self.high + PART, self.whole), self.whole, is_new=False)

    def links(self, there: str) -> dict[str, str]:
        """Return the addresses of the adjacent pages."""

        def address(**query: int | str) -> str:
            return f"{there}?{urlencode(query)}"

        order = "new" if self.is_new else "old"
        older, newer = max(self.low - PART, 0), self.high + PART
        links = {"older": "", "newer": ""}
        if self.low:
            links["older"] = (
                address(order=order, before=self.low + 1)
                if self.is_new
                else address(order=order, after=older)
            )
        if self.high < self.whole:
            beyond = address(order=order) if newer >= self.whole else address(order=order, before=newer + 1)
            links["newer"] = beyond if self.is_new else address(order=order, after=self.high)
        return links


async def conversations(visit: Visit) -> Answer:
    """Return the page of conversations, from the beginning or the newest turn first."""
    saga = visit.path["saga"]
    view = await visit.call("showSaga", {"saga": saga})
    window: _Window | None = _chosen(visit, view)
    assert window is not None
    tag = tag_of(visit.query, window.low, window.high) if window.is_fixed else tag_of(view["version"])
    if tag == visit.seen:
        return Unchanged()
    shown, talks = window, list[Talk]()
    for _ in range(_PARTS_WITHOUT):
        if window is None:
            break
        shown, talks = window, await _read(visit, saga, window)
        window = None if talks else shown.next()
    turns = [turn for talk in talks for turn in talk.turns.values()]
    there = f"/console/sagas/{part(saga)}/talk"
    data = {
        "saga": view,
        "talks": [(talk, sorted(talk.turns.values(), key=lambda turn: turn.number)) for talk in talks],
        "turns": len(turns),
        "first": shown.low + 1,
        "last": shown.high,
        "is_new": shown.is_new,
        "is_whole": shown.low == 0 and shown.high >= shown.whole,
        "is_last": shown.high >= shown.whole,
        "is_over": shown.high >= shown.whole and view["status"] in ENDED,
        "most": _most(talks),
        "orders": (("old", "From the beginning", not shown.is_new), ("new", "Newest first", shown.is_new)),
        "there": there,
        **shown.links(there),
        "commands": printing(visit.api, saga, str(shown.low), str(max(shown.high - shown.low, 1))),
    }
    if shown.is_new:
        data["talks"] = [(talk, list(reversed(each))) for talk, each in reversed(data["talks"])]
    return Html(template="talk.html", title=f"Conversations of {saga}", data=data, tag=tag, every=pace(view))


def _chosen(visit: Visit, view: Mapping[str, Any]) -> _Window:
    whole = int(view["version"])
    if visit.query.get("order") == "new":
        high = min(_number(visit, "before", whole + 1) - 1, whole)
        return _Window(max(high - PART, 0), max(high, 0), whole, is_new=True)
    low = min(_number(visit, "after", 0), whole)
    return _Window(low, min(low + PART, whole), whole, is_new=False)


def _number(visit: Visit, name: str, otherwise: int) -> int:
    said = visit.query.get(name, "")
    if said and not (said.isascii() and said.isdigit() and len(said) < 10):
        raise UserError(f"`{name}` is a whole number: the version of an entry in the log")
    return int(said) if said else otherwise


async def _read(visit: Visit, saga: str, window: _Window) -> list[Talk]:
    """Return the talks of a window, with stored values as far as the size limit allows."""
    begin, end = max(window.low - _MARGIN, 0), window.high + _MARGIN
    entries = list[Any]()
    after: int | None = begin
    while after is not None and after < end:  # an answer of the API ends where it is full
        asked = {"after": str(after), "limit": str(end - after)}
        page = await visit.call("listEvents", {"saga": saga}, asked)
        entries, after = [*entries, *page["entries"]], page["next"]

    def made(values: Mapping[str, Any]) -> list[Talk]:
        talks = talks_of(entries, values, is_part=begin > 0)
        for talk in talks:
            talk.turns = {
                number: turn
                for number, turn in talk.turns.items()
                if window.low < turn.moved <= window.high or (turn.moved > window.high >= window.whole)
            }
        # An agent that has begun has no turn for a moment.
        return [talk for talk in talks if talk.turns or (talk.given and window.high >= window.whole)]

    talks = made({})
    wanted = {one.digest: one for talk in reversed(talks) for one in stored_in(talk)}
    if not wanted:
        return talks
    small = [one for one in wanted.values() if one.size <= LARGEST_VALUE][:MOST_VALUES]
    return made(await _values(visit, saga, small))


async def _values(visit: Visit, saga: str, wanted: Sequence[Stored]) -> dict[str, Any]:
    slots = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def one(digest: str) -> tuple[str, Any]:
        async with slots:
            return digest, await visit.call("showValue", {"saga": saga, "digest": digest})

    found = await asyncio.gather(*(one(each.digest) for each in wanted), return_exceptions=True)
    read = dict[str, Any]()
    for each in found:
        if isinstance(each, tuple) and each[1]["next"] is None:
            read[each[0]] = each[1]["value"]
        elif isinstance(each, BaseException) and not isinstance(each, UserError):
            raise each
    return read


def _most(talks: Sequence[Talk]) -> int:
    """Return the number of characters that each text of a page may have within the size limit."""
    texts = list[str]()
    for talk in talks:
        given = talk.given if isinstance(talk.given, Mapping) else {}
        said = [given.get("instructions"), given.get("prompt")]
        for turn in talk.turns.values():
            said += [
                turn.answer,
                *turn.heard,
                *(one for call in turn.calls for one in (call.arguments, call.result)),
            ]
        texts += [one if isinstance(one, str) else pretty(one) for one in said]
    return fitting_length(texts, 90_000)


async def value(visit: Visit) -> Html:
    """Return the page of a stored value."""
    saga, digest = visit.path["saga"], visit.path["digest"]
    after = str(_number(visit, "after", 0))
    found = await visit.call("showValue", {"saga": saga, "digest": digest}, {"after": after})
    ref = f"{SCHEME}{digest}"
    data = {
        "saga": saga,
        "found": found,
        "after": after,
        "commands": commands(visit.api, f"/sagas/{part(saga)}/values/{digest}", ["value", saga, ref]),
    }
    return Html(template="value.html", title=f"A value of {saga}", data=data)
