"""Events and rollbacks as sentences. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from baton.core.log.questions import EXPIRED
from baton.core.log.scopes import Called, calls_words, is_index, is_turn, item_words, turn_item
from baton.core.log.slots import scope_of, subject_item
from baton.core.log.state import ANSWER
from baton.core.models.messages import shown_prompt
from baton.core.money import dollars
from baton.words.text import clock, counted, cut, epoch_ms, one_line, span

_MOST = 200
_FATES = {
    "succeeded": "succeeded",
    "failed": "failed",
    "running": "running",
    "stopped": "stopped",
    "not_begun": "not begun",
}


def of_item(event: Event) -> EventSentence:
    """Return the result of one item of a map."""
    name, known = f"item {event['item']}", {"item"}
    if failure := event.get("failure"):
        words = f"{failure.get('code')}: {one_line(str(failure.get('message')))}"
        return f"{name} has failed: {words}", frozenset((*known, "failure", "is_result"))
    return name, frozenset(known)


def _began(event: Event) -> EventSentence:
    return f"begins with {counted(event.get('size', 0), 'item')}", frozenset(("size", "over"))


def _items_began(event: Event) -> EventSentence:
    first, count = event.get("first") or 0, event.get("count") or 0
    words = f"item {first} begins" if count == 1 else f"items {first} to {first + count - 1} begin"
    return words, frozenset(("first", "count"))


def _gathered(event: Event) -> EventSentence:
    return f"the results of {counted(len(event.get('items') or ()), 'item')} are put together", frozenset(
        ["items", "results"]
    )


def _stopped(event: Event) -> EventSentence:
    failure = event.get("failure") or {}
    words = cut(one_line(f"{failure.get('code')}: {failure.get('message')}"), _MOST)
    return f"cannot be done any more: {words}", frozenset(("failure", "batch"))


def _closed(event: Event) -> EventSentence:
    parts = [f"{event[key]} {word}" for key, word in _FATES.items() if event.get(key)]
    words = f"done: {', '.join(parts) or 'no items'}"
    if event.get("goes_on"):
        words = f"goes on: {', '.join(parts)}; those that are left come to their ends"
    return words, frozenset((*_FATES, "goes_on"))


def _ended(event: Event) -> EventSentence:
    parts = [f"{event[key]} {word}" for key, word in _FATES.items() if event.get(key)]
    reason = f" ({event['why']})" if event.get("why") else ""
    return f"the items that were left are over{reason}: {', '.join(parts)}", frozenset((*_FATES, "why"))


WORDS: Mapping[str, Callable[[Event], EventSentence]] = {
    "map_began": _began,
    "items_began": _items_began,
    "items_gathered": _gathered,
    "map_stopped": _stopped,
    "map_closed": _closed,
    "map_ended": _ended,
}


Event: TypeAlias = Mapping[str, Any]
EventSentence: TypeAlias = tuple[str, frozenset[str]]
"""A sentence, and the fields of the event that it contains."""

_MOST_AGENT_TEXT = 120  # characters of a prompt, of arguments, or of a result
_BEGAN, _TURN, _CALLS = "node_began", "turn_began", "calls_began"


def news(events: Sequence[Event]) -> list[Event]:
    """Return the events of an entry without the starts of turns and calls, or all if it has no others."""
    asked = any(is_turn(str(event.get("item"))) and "v" in (event.get("output") or {}) for event in events)
    return [event for event in events if _is_news(event, asked=asked)] or list(events)


def _is_news(event: Event, *, asked: bool) -> bool:
    """Return true if the event is news. `asked`: another event of the entry lists the model's calls."""
    kind = event.get("kind")
    if kind == _BEGAN:
        return not event.get("item")
    if kind == _TURN:
        return bool(event.get("heard"))
    calls = event.get("calls") or ()
    return not (kind == _CALLS and asked) or any(one.get("failure") or one.get("repeats") for one in calls)


class AgentWords:
    """Memory of the tool of each call and of the label of each operation: most events have only the item."""

    def __init__(self) -> None:
        self._tools: dict[tuple[str, str, str], str] = {}
        self._labels: dict[tuple[str, str, str], str] = {}

    def of(self, event: Event) -> EventSentence | None:
        """Return the sentence of an agent's event, or None for other events."""
        kind = event.get("kind")
        if kind == _CALLS:
            calls = msgspec.convert(event["calls"], tuple[Called, ...])
            self._tools |= {(*_place(event), one.item): one.tool for one in calls}
            turn = item_words(calls[0].item.partition("-")[0])
            return f"{turn} asks for {calls_words(calls)}", frozenset(("calls", "used"))
        if kind == _TURN:
            heard = len(event.get("heard") or ())
            more = f" with {counted(heard, 'message')} from outside" if heard else ""
            return f"{item_words(turn_item(event['turn']))} begins{more}", frozenset(
                ("turn", "heard", "segments", "used")
            )
        if kind == "message_awaited":
            return f"waits for the next message, until {event['until']}", frozenset(("until", "used"))
        if kind == "operations_began":
            return self._operations(event)
        if kind == "function_closed":
            return "returns", frozenset(["heard"])
        if kind == "function_began":
            return "begins", frozenset(["at"])
        if kind == "agent_began":
            return _turn_began(event)
        if kind == "agent_closed":
            used = event.get("used") or {}
            parts = [counted(event["turns"], "turn"), counted(used.get("calls", 0), "call")]
            words = f"answers after {', '.join(parts)} and {used.get('tokens', 0):,} tokens"
            return words, frozenset(("turns", "used", "output"))  # its last turn has the output
        if kind == "unit_recorded":
            return self._unit(event)
        if not event.get("item"):
            return None
        return of_item(event) if is_index(str(event["item"])) else self._of_item(event)

    def _operations(self, event: Event) -> EventSentence:
        """Return the operations that a function asks for, and those that it has left."""
        asked = event.get("operations") or ()
        names = {str(one["item"]): str(one.get("label") or one["item"]) for one in asked}
        self._labels |= {(*_place(event), item): name for item, name in names.items()}
        tools = (f" ({one['tool']})" if one.get("tool") else "" for one in asked)
        calls = ", ".join(name + tool for name, tool in zip(names.values(), tools, strict=True))
        left = ", ".join(self._label(event, item) for item in event.get("left") or ())
        words = ["begins again from its checkpoint"] if event.get("checkpoint") else []
        words += [f"asks for {calls}"] if calls else []
        words += [f"stops {left}"] if left else []
        known = frozenset(("at", "heard", "operations", "left", "segments", "checkpoints"))
        return cut("; ".join(words) or "waits for its other operations", _MOST), known

    def _unit(self, event: Event) -> EventSentence:
        """Return the name and the result of a unit of a step's work."""
        output, item = event.get("output") or {}, str(event.get("item") or "")
        tool = self._tools.get((*_place(event), item), "")
        of = f"{self._labels.get((*_place(event), item), '') or item_words(item, tool)}: " if item else ""
        value = output.get("v")
        packed = (
            value if isinstance(value, str) and value.startswith("msgpack:") else ""
        )  # a graph's checkpoint
        size = len(packed) or event.get("size", 0)
        result = f"{size:,} bytes" if packed or output.get("ref") else _short(value)
        known = frozenset(("item", "name", "key", "output", "size", "at", "prior"))
        return f"{of}{event.get('name')} is recorded: {result}", known

    def labelled(self, event: Event) -> Event:
        """Return an event of a rollback with the label of the operation in place of its item."""
        item = str(event.get("item") or "")
        subject = subject_item(item)
        if (label := self._labels.get((*_place(event), subject))) is None:
            return event
        return {**event, "item": item.removesuffix(subject) + label}

    def _label(self, event: Event, item: str) -> str:
        return self._labels.get((*_place(event), item), item)

    def _of_item(self, event: Event) -> EventSentence:
        item, output = str(event["item"]), event.get("output") or {}
        label = self._labels.get((*_place(event), item), "")
        tool = "" if is_turn(item) else event.get("tool") or self._tools.get((*_place(event), item), "")
        name, known = label or item_words(item, tool), {"item", "tool"}
        if failure := event.get("failure"):
            told = ", and the model is told" if event.get("is_result") and not label else ""
            words = f"{failure.get('code')}: {one_line(str(failure.get('message')))}"
            return f"{name} has failed{told}: {words}", frozenset((*known, "failure", "is_result"))
        if "v" not in output:
            return name, frozenset(known)
        said = output["v"]
        if label or not is_turn(item):
            return f"{name}: {_short(said)}", frozenset((*known, "output"))
        words = _answer(said) if isinstance(said, Mapping) else _short(said)
        return f"{name} {words}", frozenset((*known, "output"))


def _turn_began(event: Event) -> EventSentence | None:
    given = (event.get("given") or {}).get("v")
    if not isinstance(given, Mapping):
        return None  # it is too large for its entry
    hears = f", and hears the signal `{event['listens']}`" if event.get("listens") else ""
    return f"asks {given.get('model')}{hears}: {_short(shown_prompt(given.get('prompt')))}", frozenset(
        ("given", "listens")
    )


def _answer(said: Mapping[str, Any]) -> str:
    """Return the model's answer as words: the calls that it requests, or its output."""
    if said.get("changed"):
        return f"is told that its tools have changed, and {_answer({**said, 'changed': ''})}"
    if not said.get("calls"):
        return f"answers {_short(said.get('data'))}"
    return f"asks for {', '.join(_call(one) for one in said['calls'])}"


def _call(one: Mapping[str, Any]) -> str:
    names = "".join(f", `{name}` by its alias `{alias}`" for alias, name in one.get("renamed", {}).items())
    return f"{one.get('tool')} {_short(one.get('text') or one.get('arguments'))}{names}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(one_line(text), _MOST_AGENT_TEXT)


def _place(event: Event) -> tuple[str, str]:
    return str(event.get("node")), str(event.get("iteration"))


_SHOWN = 5  # steps of one fate, of which each has a line


def of(event: Event) -> EventSentence | None:
    """Return the sentence of an event about undoing, or None for other events."""
    kind, item = str(event.get("kind")), str(event.get("item") or "")
    if words := _UNDO_WORDS.get(kind):
        return words(event)
    if scope_of(item):
        return _step(event, kind, subject_item(item))
    if kind == "saga_ended" and event.get("undone"):
        return came_to(event["undone"]), frozenset(["undone"])
    if event.get("undo") is True and kind in ("forked", "cancel_requested"):
        back = _back_to(event)
        return f"`{event.get('by')}` has undone what the saga has done{back}{_why(event)}", frozenset(
            ("by", "reason", "undo", "back_to", "together", "cut", "key")
        )
    return None


def came_to(report: Mapping[str, Any]) -> str:
    """Return the result of a rollback as words, from its report in the log."""
    return _sums(
        report.get("done"),
        report.get("fails"),
        report.get("lasts"),
        report.get("doubts") or len(report.get("doubtful") or ()),
    )


def _sums(done: Any, failed: Any, lasting: Any, doubtful: int) -> str:
    parts = [
        (done, "undone"),
        (failed, "could not be undone"),
        (lasting, "that nothing undoes"),
        (doubtful, "in doubt"),
    ]
    return ", ".join(f"{counted(int(number), 'step')} {words}" for number, words in parts if number) or (
        "nothing was undone"
    )


def _undo_began(event: Event) -> EventSentence:
    who = f"`{event['by']}` has it undone" if event.get("by") else "what was done is undone"
    return f"{who}{_back_to(event)}{_why(event)}", frozenset(("reason", "by", "back_to", "together"))


def _back_to(event: Event) -> str:
    back = f", back to version {event['back_to']}" if event.get("back_to") else ""
    return back + (", steps side by side" if event.get("together") else "")


def _why(event: Event) -> str:
    return f": {one_line(str(event['reason']))}" if event.get("reason") else ""


def _undo_place(event: Event) -> str:
    """Return the item of its node that is undone, and the tool that undoes it."""
    item = subject_item(str(event.get("item") or ""))
    by = (
        f"child {event['child']}" if event.get("child") else f"`{event['tool']}`" if event.get("tool") else ""
    )
    done = f"what {by or 'it'} has done at version {event.get('version')}"
    return f"{item_words(item)}: {done}" if item else done


_PLACED = frozenset(
    (
        "item",
        "version",
        "index",
        "tool",
        "child",
        "next",
        "below",
        "again",
        "doubt",
        "redone",
        "polled",
        "stopped",
        "way",
        "not_before",
    )
)


def _step_began(event: Event) -> EventSentence:
    again = ", again" if event.get("again") else ""
    if event.get("way"):
        return f"is undone{again}, whether it has happened or not: {_undo_place(event)}", _PLACED
    if event.get("doubt"):
        return f"is to be undone{again}, if it has happened: {_undo_place(event)}", _PLACED
    return f"is to be undone{again}: {_undo_place(event)}", _PLACED


def _passed(event: Event) -> EventSentence:
    if event.get("redone"):
        return f"is passed, because it was done again since: {_undo_place(event)}", _PLACED
    if event.get("polled"):
        return f"is passed, because the last try of its poll is undone: {_undo_place(event)}", _PLACED
    return f"stays, as nothing undoes it: {_undo_place(event)}", _PLACED


def _undo_stopped(event: Event) -> EventSentence:
    said = f"`{event.get('tool')}` was stopped while it acted: it may have happened"
    if instead := event.get("instead"):
        onward = f"`{instead}`" if instead != event.get("tool") else "another call of it"
        said = f"`{event.get('tool')}` may have happened; the step goes on with {onward}"
    if child := event.get("child"):
        said = f"child {child} is stopped; a rollback undoes what it has done"
    item = str(event.get("item") or "")
    known = frozenset(("item", "tool", "prior", "kept", "key", "child", "instead"))
    return f"{item_words(item)}: {said}" if item else said, known


def _set_aside(event: Event) -> EventSentence:
    count = counted(len(event.get("steps") or ()), "step")
    return f"{count} that could not be undone, for a later rollback", frozenset(["steps"])


def _taken_up(event: Event) -> EventSentence:
    count = counted(len(event.get("steps") or ()), "step")
    return f"{count} that could not be undone before come next", frozenset(("steps", "version"))


def _child(event: Event) -> EventSentence:
    said = f"undone by child {event.get('child')}"
    if event.get("nothing"):
        said = f"child {event.get('child')} had done nothing that can be undone"
    if failure := event.get("failure"):
        said = f"child {event.get('child')} could not undo all: {_failure(failure)}"
    return said, frozenset(("item", "child", "failure", "nothing"))


def _step(event: Event, kind: str, item: str) -> EventSentence:
    """Return the sentence of an event of a step that undoes another."""
    of_item = f" of {item_words(item)}" if item else ""
    by, known = f" by `{event['tool']}`" if event.get("tool") else "", {"item", "tool"}
    if kind == "step_succeeded":
        return f"undone{of_item}{by}", frozenset(known)
    if failure := event.get("failure"):
        gave_up = "could not be undone" if kind == "step_failed" else "an attempt to undo it has failed"
        return f"{gave_up}{of_item}{by}: {_failure(failure)}", frozenset(
            {*known, "failure", "stays", "is_result"}
        )
    return f"undo{of_item}", frozenset(["item"])


def _failure(failure: Mapping[str, Any]) -> str:
    return f"{failure.get('code')}: {one_line(str(failure.get('message')))}"


_UNDO_WORDS = {
    "undo_began": _undo_began,
    "undo_step_began": _step_began,
    "undo_passed": _passed,
    "step_stopped": _undo_stopped,
    "child_undone": _child,
    "undo_set_aside": _set_aside,
    "undo_taken_up": _taken_up,
}


# ---- what `check` and `show` say


def undo_declarations(graph: Mapping[str, Any]) -> str:
    """Return the steps that a rollback would undo, with their tools, and the irreversible ones."""
    from baton.core.effects.toolspec import PURE

    nodes = graph["nodes"]
    undone = [
        f"{one['name']} by {', '.join(dict.fromkeys(one['undo'].values()))}"
        for one in nodes
        if one.get("undo")
    ]
    if not undone:
        return ""
    stays = [
        one["name"] for one in nodes if one.get("tool") and one["effect"] != PURE and not one.get("undo")
    ]
    unverified = [
        f"{', '.join(dict.fromkeys(one['unverified']))} for {one['name']}"
        for one in nodes
        if one.get("unverified")
    ]
    return "; ".join(
        [
            ", ".join(undone),
            *([f"nothing undoes {', '.join(stays)}"] if stays else []),
            *([f"called also where it may not have happened: {', '.join(unverified)}"] if unverified else []),
        ]
    )


def unreadable_line(lost: Mapping[str, Any]) -> str:
    """Return which entries of a log cannot be read, and why."""
    first, last = lost["first"], lost["last"]
    which = f"entry {first}" if first == last else f"entries {first} to {last}"
    return f"{which} of the log cannot be read: {lost['why']}"


def log_text(saga: Mapping[str, Any]) -> str:
    """Return the place of a saga in its log, the saga from which that was forked, and the end of it."""
    source, until = saga.get("forked_from"), saga.get("expires_at")
    of = f", forked from {source['saga']} at version {source['version']}" if source else ""
    kept = f", kept until {str(until)[:10]}" if until else ""
    return f"version {saga.get('version')}, branch {saga.get('branch')}{of}{kept}"


def damage_text(saga: Mapping[str, Any]) -> str:
    """Return what of a saga cannot be read, and what is shown of it; empty if all can."""
    if lost := saga.get("unreadable"):
        return f"{unreadable_line(lost)}.\nThis is the saga before that; only the status is newer."
    if why := saga.get("missing_graph"):
        return f"The graph is lost: {why}.\nThis is what the log says without it."
    return ""


def undo_lines(saga: Mapping[str, Any]) -> list[str]:
    """Return lines about a rollback: the undoable steps, its progress or result, what stays."""
    found = saga.get("undo") or {}
    failed, doubtful = found.get("failed") or (), found.get("doubtful") or ()
    doubts = len(doubtful) + int(found.get("more_doubtful") or 0)
    lines = []
    if under_way := found.get("under_way"):
        since = clock(epoch_ms(under_way.get("since")))
        by = f", for {under_way['by']}" if under_way.get("by") else ""
        lines.append(f"{under_way['undone']} undone, {under_way['left']} to go, since {since}{by}")
    elif done := found.get("done"):
        back = f"; version {done['back_to']} and what came before stays" if done.get("back_to") else ""
        lines.append(_sums(done["undone"], done["failed"], done["lasting"], doubts) + back)
        lines += _named("stays", [f"{name}: nothing undoes it" for name in done["stays"]], done["lasting"])
    elif found.get("undoable"):
        lasting = f", {found['lasting']} not" if found.get("lasting") else ""
        lines.append(f"{counted(found['undoable'], 'step')} can be undone{lasting}")
    lines += _named(
        "not undone", [_not_undone(one) for one in failed], len(failed) + int(found.get("more_failed") or 0)
    )
    lines += _named("in doubt", [f"{name}: it may have happened" for name in doubtful], doubts)
    return lines


def _named(what: str, lines: Sequence[str], count: int) -> list[str]:
    more = [f"{what}: {count - _SHOWN} more"] if count > _SHOWN else []
    return [f"{what}: {line}" for line in lines[:_SHOWN]] + more


def _not_undone(one: Mapping[str, Any]) -> str:
    by = f", by {one['tool']}" if one.get("tool") else ""
    return f"{one.get('step')}{by}: {_failure(one)}"


class EventWords:
    """Memory of who has answered: the event that closes a question has only the answer's key."""

    def __init__(self) -> None:
        self._answered_by: dict[str, str] = {}
        self._agents = AgentWords()

    def of(self, event: Event) -> EventSentence | None:
        """Return the sentence of an event, or None for an event without words of its own."""
        if event.get("kind") == "signal_received" and event.get("name") == ANSWER:
            return self._answered(event)
        if event.get("kind") == "question_closed":
            return self._closed(event)
        if event.get("lost"):
            lost = f"the signal `{event.get('name')}` is lost: no wait was open for it"
            return lost, frozenset(["lost", "name"])
        if event.get("sent"):
            return _sent(event)
        if (undoing := of(self._agents.labelled(event))) is not None:
            return undoing
        words = _WORDS.get(str(event.get("kind")))
        of_agent = self._agents.of(event)
        if words is None:
            return of_agent
        text, known = words(event)
        return (text, known) if of_agent is None else (f"{of_agent[0]}: {text}", known | of_agent[1])

    def _answered(self, event: Event) -> EventSentence | None:
        self._answered_by[str(event.get("key"))] = str(event.get("by"))
        said = (event.get("payload") or {}).get("v")
        if not isinstance(said, Mapping) or not {"ask", "action"} <= set(said):
            return None  # it is too large for its entry
        rest = {name: value for name, value in said.items() if name not in ("ask", "action")}
        comment = f", {one_line(str(rest['comment']))!r}" if rest.get("comment") else ""
        more = [name for name in rest if name != "comment"]
        brought = f", with {' and '.join(more)}" if more else ""
        words = f"`{event.get('by')}` answers {said['ask']}: {said['action']}{comment}{brought}"
        return words, frozenset(("name", "key", "by") if more else ("name", "key", "by", "payload"))

    def _closed(self, event: Event) -> EventSentence:
        ask, action, key = event.get("ask"), event.get("action"), event.get("by")
        if key:
            by = self._answered_by.get(str(key))
            words = f"{ask} is answered{f' by `{by}`' if by else ''}: {action}"
        elif action == EXPIRED:
            words = f"{ask} has expired"
        else:
            words = f"{ask} has no answer in time, and is decided: {action}"
        return words, frozenset(("ask", "action", "by"))


def _sent(event: Event) -> EventSentence:
    """Return the sentence for a saga that an event from outside has started or signalled."""
    sent = event["sent"]
    by = f"the event `{sent.get('type')}` from `{sent.get('source')}` (id `{sent.get('id')}`)"
    if event.get("kind") == "saga_started":
        return one_line(f"started by {by}, under a rule of `{event.get('user')}`"), frozenset(
            ["sent", "user"]
        )
    return one_line(f"{by} is the signal `{event.get('name')}`"), frozenset(("sent", "name", "key", "by"))


def _opened(event: Event) -> EventSentence:
    ask = event.get("ask") or {}
    until = f", until {_moment(ask['expires_at'])}" if ask.get("expires_at") else ""
    return f"{ask.get('id')} asks {_audience(ask.get('to'))}: {question_line(ask)}{until}", frozenset(["ask"])


def question_line(ask: Mapping[str, Any]) -> str:
    """Return the content of a question on one line."""
    return one_line(": ".join(str(ask[name]) for name in ("title", "message") if ask.get(name)))


def _escalated(event: Event) -> EventSentence:
    ask, to, by = event.get("ask"), event.get("to"), event.get("by")
    if to is not None:
        words = f"{ask} has no answer yet, and is handed on to {_audience(to)}"
    elif by:
        words = f"`{by}` has people reminded of {ask}"
    else:
        words = f"{ask} has no answer yet, and people are reminded"
    return words, frozenset(("ask", "to", "by", "due"))


def _claimed(event: Event) -> EventSentence:
    done = "claims" if event.get("to") else "releases"
    return f"`{event.get('by')}` {done} {event.get('ask')}", frozenset(("ask", "to", "by"))


def _notice_due(event: Event) -> EventSentence:
    notice = event.get("notice") or {}
    incident = ", as an incident" if notice.get("incident") else ""
    to = "who has started the saga" if notice.get("to") == "user" else _audience(notice.get("to"))
    words = f"{to} is to be told{incident}: {one_line(str(notice.get('message')))}"
    return words, frozenset(["notice"])


def _notices_sent(event: Event) -> EventSentence:
    shown, withdrawn = event.get("shown") or {}, event.get("withdrawn") or ()
    parts = [f"{counted(len(event['keys']), 'notice')} sent"] if event.get("keys") else []
    parts += [f"{ask} in the inbox of {_audience(row.get('to'))}" for ask, row in shown.items()]
    parts += [f"{ask} in no inbox any more" for ask in withdrawn]
    return ", ".join(parts), frozenset(("keys", "shown", "withdrawn"))


def _held(event: Event) -> EventSentence:
    if limit := event.get("limit"):
        needed = f"{dollars(int(event.get('amount') or 0))} dollars of the limit `{limit}`"
        words = f"waits for {needed}, whose rest others hold; asks again at {_moment(event.get('until'))}"
        return words, frozenset(("limit", "amount", "first", "until"))
    state = str(event.get("state") or "open").replace("_", "-")
    words = f"waits for breaker `{event.get('breaker')}`, which is {state}; asks again at {_moment(event.get('until'))}"
    return words, frozenset(("breaker", "until", "state"))


def _handed_over(event: Event) -> EventSentence:
    beat = event.get("heartbeat_ms")
    every = f", heard of every {span(beat)} at least" if beat else ""
    known, whom = {"callback", "until", "heartbeat_ms"}, ""
    if response := event.get("response"):  # what was held counts until its answer is there
        known, whom = (known | {"response", "assumed", "skew_ms"}, f" as {response['id']},")
    return f"handed over{whom} until {_moment(event.get('until'))}{every}", frozenset(known)


def _heartbeat(_: Event) -> EventSentence:
    return "the work elsewhere goes on", frozenset(["callback"])


def _recovered(event: Event) -> EventSentence:
    first, last = event.get("first"), event.get("last")
    which = f"version {first}" if first == last else f"versions {first} to {last}"
    parts = [f"{which} cannot be read ({one_line(str(event.get('reason')))}), and the saga goes on without"]
    if steps := event.get("steps"):
        parts.append(f"done behind it, and still done: {', '.join(steps)}")
    if signals := event.get("signals"):
        parts.append(f"to be sent again: {', '.join(signals)}")
    if event.get("cancel"):
        parts.append("the cancellation behind it holds")
    if event.get("pauses"):
        parts.append("it stays paused")
    if ended := event.get("ended"):
        parts.append(f"it stays {ended.get('status')}")
    known = (
        "first",
        "last",
        "reason",
        "steps",
        "signals",
        "children",
        "shown",
        "spent",
        "cancel",
        "pauses",
        "ended",
    )
    return "; ".join(parts), frozenset(known)


def _graph_changed(event: Event) -> EventSentence:
    by, reason = f"`{event.get('by')}`", one_line(str(event.get("reason") or ""))
    patch = event.get("patch")
    if patch:
        operations = patch.get("v")
        many = f" by {counted(len(operations), 'operation')}" if isinstance(operations, list) else ""
        words = f"{by} has patched the graph{many}"
    else:
        words = (
            f"{by} has the saga go on with graph {str(event.get('graph'))[:12]} of `{event.get('workflow')}`"
        )
    if names := event.get("renamed"):
        words += "; " + ", ".join(f"`{old}` is `{new}`" for old, new in names.items())
    known = ("by", "reason", "patch", "graph", "document", "workflow", "outputs", "counts", "renamed", "key")
    return words + (f": {reason}" if reason else ""), frozenset(known)


_WORDS: Mapping[str, Callable[[Event], EventSentence]] = {
    **WORDS,
    "graph_changed": _graph_changed,
    "workflow_recovered": _recovered,
    "question_opened": _opened,
    "question_escalated": _escalated,
    "question_claimed": _claimed,
    "notice_due": _notice_due,
    "notices_sent": _notices_sent,
    "step_held": _held,
    "callback_opened": _handed_over,
    "callback_heartbeat": _heartbeat,
}


def _audience(to: object) -> str:
    """Return the audience of a question or a notice, from the log's word for it."""
    if to == "on_call":
        return "the people on call"
    kind, _, name = str(to or "").partition(":")
    if not name:
        return "who has started the saga"
    return f"`{name}`" if kind == "user" else f"the {kind} {name}"


def _moment(value: object) -> str:
    ms = epoch_ms(value)
    return "?" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
