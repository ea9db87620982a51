"""A saga and its events as text for people. Pure functions from documents to rich renderables. Lists are in
tables.py.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from baton.cli.text.graph import version_text, workflow_label
from baton.client.connection import command_line
from baton.core.conditions.document import example_of
from baton.core.log.questions import INPUT
from baton.core.log.state import FINISHED
from baton.core.models.usage import MODEL
from baton.core.money import MICRO, usd
from baton.words.event_words import (
    EventSentence,
    EventWords,
    damage_text,
    log_text,
    news,
    question_line,
    undo_lines,
    unreadable_line,
)
from baton.words.text import clock, counted, course, epoch_ms, one_line, plain, since, span, when


def question_lines(saga: Mapping[str, Any], now: int) -> list[str]:
    """Return the lines of a question: age, answers, expiry, audience, and the result without an answer."""
    return [line for question in saga.get("questions") or () for line in _lines(question, now)]


def _lines(question: Mapping[str, Any], now: int) -> Iterator[str]:
    said = [str(question[name]) for name in ("title", "message") if question.get(name)]
    steps = question.get("escalate") or ()
    ends = next((one["at"] for one in steps if one["action"] == "decide"), question.get("expires_at"))
    asked, until, told = (epoch_ms(one) for one in (question.get("asked_at"), ends, question.get("told_at")))
    yield (
        f"{question.get('id')}: {one_line(': '.join(said))}"
        + (f", asked {since(asked, now)}" if asked is not None else "")
        + (f", told again {since(told, now)}" if told is not None else "")
    )
    options = ", ".join(map(str, question.get("options") or ()))
    yield f"  answer {options}" + (f", until {when(until, now)}" if until is not None else "")
    claim = question.get("claim")
    claimed = (
        f", claimed {since(epoch_ms(claim['at']) or 0, now)} from {_named(claim['from'])}" if claim else ""
    )
    if not question.get("title"):  # about a step that has failed
        yield f"  for {_audience(question)}{claimed}; {_open_to_change(question)}"
        return
    yield f"  for {_audience(question)}{claimed}"
    if steps:
        yield f"  without an answer: {', '.join(_step(one, now) for one in steps)}"
    for choice in question.get("choices") or ():
        marks = "".join(f" ({word})" for word in ("default", "destructive") if choice.get(word))
        words = [str(choice[name]) for name in ("label", "description") if choice.get(name)]
        yield f"  {choice.get('id')}{marks}: {one_line('. '.join(words))}"
    takeover = question.get("takeover") or {}
    for name, value in (
        ("--data fits", question.get("schema")),
        ("risk", question.get("risk")),
        ("details", question.get("details")),
        ("open", takeover.get("url")),
        ("picture", takeover.get("picture")),
        ("do", takeover.get("instructions")),
    ):
        if value not in (None, ""):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"  {name} {one_line(text)}"


def _audience(question: Mapping[str, Any]) -> str:
    """Return the audience of the question."""
    return " or ".join(map(_named, question.get("for") or ()))


def _named(one: Mapping[str, Any]) -> str:
    return str(one["name"]) if one["kind"] == "user" else f"the {one['kind']} {one['name']}"


def _step(step: Mapping[str, Any], now: int) -> str:
    """Return one escalation of the question."""
    said = {"remind": "told again", "decide": f"decided {step['answer']}"}.get(step["action"])
    said = said or f"handed on to {_named(step['to'])}"
    return f"{said} {when(epoch_ms(step['at']) or 0, now)}"


def _open_to_change(question: Mapping[str, Any]) -> str:
    """Return the arguments that `--with` may name."""
    names = (question.get("arguments") or {}).get("properties") or ()
    return f"retry --with may change {', '.join(names)}" if names else "an answer may change no arguments"


_SHOWN = 5  # questions, each with a command that answers it


def rounds(item: Mapping[str, Any]) -> str:
    """Return the rounds of an active node's loops: `round 3 of 5`. Empty outside of loops."""
    numbers = zip_longest(item.get("iteration") or (), item.get("most_rounds") or ())
    said = [
        f"{number + 1}" + (f" of {most}" if most else "") for number, most in numbers if number is not None
    ]
    return f"round {', '.join(said)}" if said else ""


def waits(saga: Mapping[str, Any], now: int) -> list[str]:
    """Return a line for each waiting node: its object, and the end of the wait."""
    found = []
    for item in saga.get("active") or ():
        until = epoch_ms(item.get("until"))
        limit = f"until {when(until, now)}" if until is not None else "without a time limit"
        if item.get("breaker"):
            text = f"for breaker `{item['breaker']}`, asks again {_at(when, item, 'until', now)}"
        elif item.get("limit"):
            needed = f"{usd(item.get('needs_usd') or 0)} of the limit `{item['limit']}`"
            text = f"for {needed}, whose rest others hold; asks again {_at(when, item, 'until', now)}"
        elif item.get("callback"):
            text = f"for work elsewhere since {_at(since, item, 'since', now)}, {limit}"
            if item.get("heartbeat_by"):
                text += f"; heard {_at(since, item, 'heard_at', now)}, next by {_at(when, item, 'heartbeat_by', now)}"
        elif item.get("signal"):
            text = f"for the signal `{item['signal']}`, {limit}"
        elif until is not None:
            text = limit
        elif item.get("saga"):
            text = f"for its child saga {item['saga']}"
        elif item.get("units"):
            text = f"{counted(item['units'], 'unit')} of its work recorded"
        elif item.get("waits_for"):
            text = f"for {', '.join(map(str, item['waits_for']))}"
        else:
            continue
        found.append(f"{', '.join(filter(None, (item.get('node'), item.get('label'))))}: {text}")
    return found


def published_lines(saga: Mapping[str, Any]) -> list[str]:
    """Return a line for each value that a function publishes."""
    found = [one.get("published") or {} for one in saga.get("active") or ()]
    return [
        f"{name}: {one_line(json.dumps(value, ensure_ascii=False))}"
        for one in found
        for name, value in one.items()
    ]


def _at(say: Callable[[int, int], str], item: Mapping[str, Any], name: str, now: int) -> str:
    at = epoch_ms(item.get(name))
    return "?" if at is None else say(at, now)


def helping(saga: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the commands that let a saga continue, each after a word about its effect."""
    me, status = saga.get("id"), saga.get("status")
    if large := saga.get("large_result"):
        yield _line("Print the result with", f"value {me} {large['ref']}")
    undo = saga.get("undo") or {}
    if status == "rollback_failed" and undo.get("failed"):
        yield _line("Once its cause is gone, undo the rest with", f"rollback {me}")
    if status in FINISHED:
        if status in ("completed", "failed", "cancelled") and undo.get("undoable"):
            yield _line("See what would be undone with", f"rollback {me} --dry-run")
        if status == "failed" and not saga.get("parent"):
            yield _line("Once its cause is gone, try the failed step again with", f"retry {me}")
        return
    yield from _answering(str(me), saga.get("questions") or ())
    if status in ("parked", "reflecting"):
        yield _line("Let it try again with", f"resume {me}")
    if status == "paused":
        yield _line("Let it go on with", f"resume {me}")
    seen = set()
    for item in saga.get("active") or ():
        name, child = item.get("signal"), item.get("saga")
        if (breaker := item.get("breaker")) and breaker not in seen:
            yield _line("See what is wrong with", f"breakers show {breaker}")
            seen.add(breaker)
        if name and name not in seen:
            yield _sending(me, item)
        if child:
            yield _line("Look at its child with", f"show {child}")
        seen.add(name)


def answers_to(question: Mapping[str, Any]) -> str:
    """Return the possible answers to a question of a saga or of a list."""
    data = " --data JSON" if question.get("schema") is not None or question.get("type") == INPUT else ""
    return "|".join(question["options"]) + data


def _answering(saga: str, questions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for question in questions[:_SHOWN]:
        ask = shlex.quote(str(question["id"]))
        why, which = (
            (f"Answer {ask} with", f"{saga} {ask}") if len(questions) > 1 else ("Answer it with", saga)
        )
        yield _line(why, f"answer {which} {answers_to(question)}")
    if more := len(questions[_SHOWN:]):
        yield _line(f"… and {more} more", f"inbox --saga {saga}")


def _line(why: str, command: str) -> tuple[str, str]:
    return why, plain(command_line(command))


def _sending(saga: Any, item: Mapping[str, Any]) -> tuple[str, str]:
    if "turn" in item:
        return _line("Send it a message with", f"say {saga} TEXT")
    schema, payload = item.get("payload"), "[--payload JSON]"
    if schema is not None:
        value = example_of(schema)
        payload = f"--payload {shlex.quote(json.dumps(value[0], ensure_ascii=False)) if value else 'JSON'}"
    return _line("Send the signal with", f"signal {saga} {shlex.quote(str(item['signal']))} {payload}")


COLOURS = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "parked": "red",
    "paused": "yellow",
    "reflecting": "red",
    "suspended": "yellow",
    "compensating": "yellow",
    "rolled_back": "yellow",
    "rollback_failed": "red",
    "running": "cyan",
}
# What the line says already, or what only a program wants: `--json` has everything.
_QUIET = frozenset([
    "kind", "node", "iteration", "emits", "drops", "carry", "forget", "keep", "counts", "tool_version",
    "schema_hash", "graph", "tenant", "saga", "at", "started_at", "ended_at", "due_at", "ends_by",
    "expires",
])  # fmt: skip

_INDENT = 9
_LABELS = 14  # columns left of what is said
_MOST_LINES = 20
_MONEY = frozenset(("cost", "assumed", "budget"))  # in millionths of a dollar
_USUAL = (
    ("attempt", 1),
    ("handled", False),
    ("cost", 0),
    ("budget", 0),
    ("look", False),
    ("lost", False),
    ("fresh", False),
    ("recorded", False),
    ("ends", False),
    ("window", 0),
    ("blocked_ms", 0),
    ("tool", MODEL),
)


def _held(parked: Mapping[str, Any], now: int) -> Iterator[tuple[str, str]]:
    """Yield the rows about a parked or paused saga: until when, since when, and by whom."""
    if (until := epoch_ms(parked.get("until"))) is not None:
        yield "parked", f"until {when(until, now)}"
    if (still := epoch_ms(parked.get("stands_still_since"))) is None:
        return
    if parked.get("by"):
        yield "paused", plain(f"since {since(still, now)} by {parked['by']}")
        return
    build = parked.get("build")
    then = f"when the code changes from build {build}" if build else "once a person says so"
    yield "parked", f"since {since(still, now)}; goes on {then}"


def saga_table(saga: Mapping[str, Any], now: int, width: int | None = None) -> Table:
    """Return the facts of `GET /sagas/{id}`. `now`: epoch ms. `width`: where a result is cut, or None."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    status = str(saga.get("status", ""))
    if damage := damage_text(saga):
        repair = command_line(f"doctor {saga.get('id')} --repair")
        table.add_row("unreadable", Text(plain(f"{damage} Repair: {repair}"), style="red"))
    table.add_row("saga", plain(str(saga.get("id", ""))))
    table.add_row("workflow", plain(workflow_label(str(saga.get("workflow", ""))) + version_text(saga)))
    if saga.get("build"):
        table.add_row("code", plain(f"stays with build {saga['build']}"))
    for name, said in _related(saga):
        table.add_row(name, plain(said))
    table.add_row("status", Text(status, style=COLOURS.get(status, "")))
    table.add_row("steps", _steps(saga))
    table.add_row("runs", _runs(saga))
    created, updated = epoch_ms(saga.get("created_at")), epoch_ms(saga.get("updated_at"))
    if created is not None and updated is not None:
        table.add_row("time", _time(created, updated, None if status in FINISHED else now))
    table.add_row("log", log_text(saga))
    if saga.get("spent_usd") or saga.get("budget_usd"):
        most = f" of {usd(saga['budget_usd'])}" if saga.get("budget_usd") else ""
        table.add_row("spent", f"{usd(saga.get('spent_usd') or 0)}{most}")
    for name, lines in (
        ("waits", waits(saga, now)),
        ("shows", published_lines(saga)),
        ("failing", _failing(saga, now)),
        ("asks", question_lines(saga, now)),
        ("undo", undo_lines(saga)),
    ):
        if lines:
            table.add_row(name, plain("\n".join(lines)))
    if any(lines := course(saga.get("on_failure") or {})):
        table.add_row("on failure", plain("\n".join(filter(None, lines))))
    for row in _held(saga.get("parked") or {}, now):
        table.add_row(*row)
    for name in ("reason", "error", "input", "large_input", "result", "large_result"):
        if saga.get(name) is not None and saga.get(name) != "":
            table.add_row(name, _cut(plain(_value(saga[name])), width, saga.get("id")))
    return table


def _related(saga: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the labels and keys of the saga, and related sagas."""
    if labels := saga.get("labels"):
        yield "labels", ", ".join(f"{name}={value}" for name, value in labels.items())
    if saga.get("parent"):
        yield "child of", str(saga["parent"])
    if saga.get("handles"):
        yield "handles", f"the failure of {saga['handles']}"
    if handler := saga.get("failure_handler"):
        if handler.get("saga") is None:
            yield "handler", f"not started: {one_line(str(handler['why']))}"
        else:
            yield "handler", f"{handler['saga']}, {handler['status'] or 'not stored any more'}"


def _cut(text: str, width: int | None, saga: object) -> str:
    """Return as much of the text as the terminal has lines for, and the command for the whole text."""
    if width is None:
        return text
    across = max(width - _LABELS, 1)
    lines = [
        line[at : at + across] for line in text.split("\n") for at in range(0, max(len(line), 1), across)
    ]
    if len(lines) <= _MOST_LINES:
        return text
    return "\n".join([*lines[:_MOST_LINES], plain(f"… whole: {command_line(f'show {saga} --json')}")])


def saga_line(saga: Mapping[str, Any]) -> str:
    """Return a saga on one line, for `--watch` without a screen to redraw."""
    lost = f"  {unreadable_line(saga['unreadable'])}" if saga.get("unreadable") else ""
    return plain(f"{saga.get('status'):<9}  {_runs(saga)}  {_steps(saga)}{lost}")


def _failing(saga: Mapping[str, Any], now: int) -> list[str]:
    """Return a line for each failed step that is not given up: its failure, and the next action."""
    at_work = {_name(item): item for item in saga.get("active") or ()}
    return [
        f"{_name(step)}, attempt {step.get('attempts')}: {step.get('code')}: {one_line(str(step.get('message')))}; "
        + _next(step, at_work.get(_name(step), {}), now)
        + (f"; its input: {_value(step['input'])}" if step.get("input") is not None else "")
        for step in saga.get("failing") or ()
    ]


def _next(step: Mapping[str, Any], work: Mapping[str, Any], now: int) -> str:
    """Return the next action, or `work`: the object that the step waits for in its next attempt."""
    if work.get("callback"):
        return f"handed over again {since(epoch_ms(work.get('since')) or now, now)}"
    if work.get("ask"):
        return f"again once {work['ask']} has its answer"
    due = epoch_ms(step.get("next_attempt_at"))
    if due is not None:
        return f"again {when(due, now)}"
    how = " ".join(str(step[name]) for name in ("hint", "way") if step.get(name))
    return str(step.get("strategy") or "") + (f": {how}" if how else "")


def _slot(place: Mapping[str, Any]) -> str:
    """Return a round of a node: `book`, or `book@2.0`."""
    rounds = ".".join(map(str, place.get("iteration") or ()))
    return str(place.get("node") or "") + (f"@{rounds}" if rounds else "")


def _name(place: Mapping[str, Any]) -> str:
    """Return a step in words: `plan`, `plan@2` or `plan, turn 2, call 1 (table.hold)`."""
    return ", ".join(filter(None, (_slot(place), place.get("label"))))


class EventLines:
    """The log, a line per event, under a rule for each invocation. `width`: of the terminal, None: any."""

    def __init__(self, width: int | None = None) -> None:
        self._invocation: str | None = None
        self._width = width
        self._words = EventWords()

    def of(self, entry: Mapping[str, Any]) -> Iterator[Text]:
        """Yield the lines that show an entry of the log, the next after those before."""
        now = str(entry.get("invocation") or "")
        if now != self._invocation:
            rule = Text(plain(f"── {_writer(entry)}"), style="dim")
            if self._width is not None:
                rule.truncate(self._width, overflow="ellipsis")
            yield rule
            self._invocation = now
        events = entry.get("events", ())
        said = [self._words.of(event) for event in events]  # what is not shown, too, says what follows
        shown = news(events)
        for event, words in zip(events, said, strict=True):
            if event not in shown:
                continue
            head, details = _event_head(entry, event), _details(event, words)
            yield from (
                _one_line(head, details) if self._width is None else _fitted(head, details, self._width)
            )


def _writer(entry: Mapping[str, Any]) -> str:
    """Return the writer of an entry: a worker under its lease's epoch, or the API for a caller."""
    if not entry.get("epoch"):
        return f"API request {entry.get('invocation')}"
    return f"worker {entry.get('invocation')}, epoch {entry['epoch']}" + (
        ", cold start" if entry.get("cold") else ""
    )


def _one_line(head: Text, details: Sequence[str]) -> Iterator[Text]:
    head.append("  " + plain("  ".join(details)), style="dim")
    head.rstrip()
    yield head


def _fitted(line: Text, details: Sequence[str], width: int) -> Iterator[Text]:
    """Yield lines of at most `width`, broken between details. A longer detail is cut."""
    line.truncate(width, overflow="ellipsis")
    for part in details:
        detail = Text("  " + plain(part), style="dim")
        if line.cell_len + detail.cell_len > width:
            line.rstrip()
            yield line
            line = Text(" " * (_INDENT - 2))
            detail.truncate(width - line.cell_len, overflow="ellipsis")
        line.append_text(detail)
    line.rstrip()
    yield line


def _event_head(entry: Mapping[str, Any], event: Mapping[str, Any]) -> Text:
    kind = str(event.get("kind", ""))
    node = _slot(event)
    line = Text(f"{entry.get('version', ''):>5}  {clock(epoch_ms(entry.get('at')))}  ")
    bad = kind.endswith(("failed", "interrupted")) or kind in ("revived", "parked", "cancel_requested")
    bad = bad or kind == "limit_reached" or event.get("fault") is not None
    line.append(plain(f"{kind:<17} {node:<16}"), style="red" if bad else "")
    return line


def _details(event: Mapping[str, Any], said: EventSentence | None) -> list[str]:
    """Return the details of an event: its sentence, if any, and the fields that are not in it."""
    sentence, known = said or ("", frozenset())
    started, ended = epoch_ms(event.get("started_at")), epoch_ms(event.get("ended_at"))
    parts = [sentence] if sentence else []
    parts += [span(ended - started)] if started is not None and ended is not None else []
    due, chosen = epoch_ms(event.get("due_at")), epoch_ms(event.get("at"))
    if due is not None and chosen is not None:
        parts.append(f"again at {clock(due)}, after {span(max(due - chosen, 0))}")
    for name, value in event.items():
        if (
            name in known
            or name in _QUIET
            or value in (None, "", [], {}, {"v": None})
            or (name, value) in _USUAL
        ):
            continue
        if name == "recorded":  # an effect that may happen only once
            parts.append("had been done before, not again")
            continue
        if name in _MONEY:  # by slot, or one amount
            value = usd((sum(value.values()) if isinstance(value, Mapping) else value) / MICRO)
        if name == "usage":
            parts += [_tokens(one) for one in value]
            continue
        if name.endswith("_ms"):
            name, value = name.removesuffix("_ms"), span(value)
        text = one_line(_value(value))
        parts.append(f"{name}={text if len(text) <= 100 else text[:97] + '...'}")
    return parts


def _tokens(usage: Mapping[str, Any]) -> str:
    """Return the tokens that a model has read and written for an answer."""
    cached = f" ({usage['cached']:,} cached)" if usage.get("cached") else ""
    tokens = f"{usage.get('input', 0):,} tokens in{cached}, {usage.get('output', 0):,} out"
    return f"{usage.get('model')}: {tokens}"


def _steps(saga: Mapping[str, Any]) -> str:
    done, most = int(saga.get("steps") or 0), None if saga.get("ended_at") else saga.get("most_steps")
    text = f"{done} of at most {counted(most, 'step')} done" if most else f"{counted(done, 'step')} done"
    active = _active(saga)
    return text + (f", at {', '.join(active)}" if active else "")


_MOST_ITEMS = 5
"""Number of items of a node above which they are counted instead of listed."""


def _active(saga: Mapping[str, Any]) -> list[str]:
    found = []
    active = saga.get("active") or ()
    # What a node does is shown in place of the node.
    parted = Counter(_slot(item) for item in active if item.get("item"))
    for item in active:
        items = parted.get(_slot(item), 0)
        if items > _MOST_ITEMS:  # of a map, say
            if not item.get("item"):
                found.append(f"{item.get('node')} ({items} items at work)")
            continue
        if not item.get("item") and items:
            continue
        state = item.get("state") if item.get("state") != "ready" else ""
        notes = ", ".join(filter(None, (rounds(item), item.get("label"), state)))
        found.append(f"{item.get('node')}" + (f" ({notes})" if notes else ""))
    return found


def _time(created: int, updated: int, now: int | None) -> str:
    """Return the period or the beginning: a step that takes a minute writes nothing for a minute."""
    if now is None:
        return f"{clock(created)} to {clock(updated)} UTC, {span(updated - created)}"
    ago = span(max(0, now - created))
    return f"{clock(created)} UTC, started {ago} ago; last entry at {clock(updated)}"


def _runs(saga: Mapping[str, Any]) -> str:
    parts = [counted(int(saga.get("invocations") or 0), "invocation")]
    for name, one in (("revivals", "revival"), ("interruptions", "interruption")):
        if saga.get(name):
            parts.append(counted(int(saga[name]), one))
    return ", ".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and "message" in value and "code" in value:
        node = f" at {value['node']}" if value.get("node") else ""
        return f"{value['code']}{node}" + (f": {value['message']}" if value["message"] else "")
    if isinstance(value, Mapping) and set(value) == {"ref", "size"}:
        return f"{value['ref']} ({value['size']:,} bytes)"  # `baton value` prints it
    if isinstance(value, Mapping) and {"id", "kind", "options"} <= set(value):
        return f"{value['id']}: {question_line(value)}"  # a question
    if isinstance(value, Mapping) and set(value) == {"v"}:
        value = value["v"]  # a value of the log that is stored in its entry
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def wrap_lines(text: str, width: int | None, first: str = "", rest: str = "") -> Iterator[str]:
    """Yield the text in lines of `width` columns (None: any), with `first` and then `rest` before them."""
    from rich.cells import cell_len, chop_cells

    if width is None or cell_len(first + text) <= width:
        yield first + text
        return
    room = max(width - max(cell_len(first), cell_len(rest)), 2)
    begin, line = first, ""
    for word in text.split(" "):
        if line and cell_len(begin + line) + 1 + cell_len(word) <= width:
            line += f" {word}"
            continue
        if line:
            yield begin + line
            begin = rest
        *full, line = chop_cells(word, room) or [""]
        for piece in full:
            yield begin + piece
            begin = rest
    yield begin + line


_COLOURS = {"failed": "red", "skipped": "yellow", "dropped": "yellow", "unreached": "yellow"}
_EXPLAINED_INDENT = " " * 9
_SPOKEN = {True: "taken", False: "not taken", None: "not known yet"}


def step_lines(steps: Iterable[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """Yield the steps of `GET /sagas/{id}/explain`, each within `width`; None: on one line."""
    for step in steps:
        yield from _explained_step(step, width)


def _explained_step(step: Mapping[str, Any], width: int | None) -> Iterator[Text]:
    line = Text(f"{step['version']:>5}  {clock(epoch_ms(step['at']))}  ")
    became = str(step["became"])
    line.append(plain(f"{_slot(step):<16} "))
    line.append(plain(f"{became:<8}"), style=_COLOURS.get(became, ""))
    by = [name for name in step["by"] if name]
    parts = [f"from {', '.join(by)}" if by else "", step["text"]]
    said = plain("; ".join(one_line(str(part)) for part in parts if part))
    if width is None or line.cell_len + cell_len(said) + 2 <= width:
        line.append(f"  {said}" if said else "", style="dim")
        yield line
    else:
        yield _cut_explained(line, width)
        yield from _said(said, width, _EXPLAINED_INDENT, _EXPLAINED_INDENT)
    yield from _child(step, "explain", width, _EXPLAINED_INDENT)


def start_lines(page: Mapping[str, Any], width: int | None = None) -> Iterator[Text]:
    """Yield the event that started the saga, if it was no caller, for the line above the first step."""
    if page.get("start"):
        yield from _said(one_line(f"started {page['start']}"), width, "start  ", style="cyan")


def rest_lines(page: Mapping[str, Any], width: int | None = None) -> Iterator[Text]:
    """Yield the open nodes and the end of the saga, for the lines below the last step."""
    for node in page["open"]:
        yield from _said(one_line(str(node["text"])), width, "  now  ", style="cyan")
        yield from _child(node, "explain", width, "       ")
    if page["end"]:
        yield from _said(one_line(str(page["end"])), width, "  end  ", style="")


def node_lines(found: Mapping[str, Any], width: int | None = None) -> Iterator[Text]:
    """Yield `GET /sagas/{id}/explain/{node}`: for each round the answer, and the state of its edges."""
    if found["left_out"]:
        yield Text(f"{counted(found['left_out'], 'earlier round')} left out", style="dim")
    for answer in found["iterations"]:
        state = str(answer["state"])
        line = Text(plain(f"{_slot(answer | {'node': found['node']})}  "))
        line.append(plain(state), style=_COLOURS.get(state, ""))
        if answer["version"]:
            line.append(plain(f"  version {answer['version']}, {clock(epoch_ms(answer['at']))}"), style="dim")
        yield _cut_explained(line, width)
        yield from _said(one_line(str(answer["text"])), width, style="")
        if len(answer["edges"]) > 1:
            for edge in answer["edges"]:
                yield from _said(_edge(edge), width)
        for item in answer.get("items") or ():
            failed = "failed: " if item.get("became") == "failed" else ""
            yield from _said(failed + one_line(str(item["text"])), width)
        for one in (*(answer.get("units") or ()), *(answer.get("attempts") or ())):
            yield from _said(one_line(str(one["text"])), width)
        for run in answer.get("runs") or ():
            yield from run_lines(run, width)


_OUTCOMES = {"attempt_failed": "failed, and is tried again", "open": "has not ended"}


def run_lines(run: Mapping[str, Any], width: int | None = None) -> Iterator[Text]:
    """Yield an attempt with its input and output."""
    number = f" attempt {run['attempt']}" if run["attempt"] else ""
    of = f" of {run['tool']}" if run["tool"] else ""
    outcome = str(run["outcome"])
    item = f"#{run['item']}" if run.get("item") else ""
    head = f"{_slot(run)}{item}{number}{of}: {_OUTCOMES.get(outcome, outcome)}"
    if run.get("version"):
        head += f"  version {run['version']}, {clock(epoch_ms(run['at']))}"
    yield from _said(head, width, style="")
    if run["input"] is not None:
        yield from _said(f"input   {_value(run['input'])}", width, "    ")
    yield from _child(run, "steps", width)
    if run["output"] is not None:
        yield from _said(f"output  {_value(run['output'])}", width, "    ")
    if large := run["large_output"]:
        yield from _said(f"output  {large['ref']} ({large['size']:,} bytes)", width, "    ")
    if error := run["error"]:
        yield from _said(f"error   {error['code']}: {one_line(error['message'])}", width, "    ")


def _child(found: Mapping[str, Any], command: str, width: int | None, indent: str = "    ") -> Iterator[Text]:
    """Yield the command that shows the same of the child saga, if one was started."""
    if child := found.get("child"):
        yield from _said(f"child   {command_line(f'{command} {child}')}", width, indent)


def _edge(edge: Mapping[str, Any]) -> str:
    said = _SPOKEN[edge["alive"]] + (", too late" if edge["late"] else "")
    more = f"  {one_line(str(edge['text']))}" if edge["text"] else ""
    return f"from {edge['from'] or 'the start'}: {said}{more}"


def _said(
    text: str, width: int | None, first: str = "  ", rest: str = "", style: str = "dim"
) -> Iterator[Text]:
    """Yield a sentence, in as many lines as needed."""
    for line in wrap_lines(plain(text), width, first, rest or " " * (len(first) + 2)):
        yield Text(line, style=style)


def _cut_explained(line: Text, width: int | None) -> Text:
    line.rstrip()
    if width is not None:
        line.truncate(width, overflow="ellipsis")
    return line
