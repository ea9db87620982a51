"""The events about questions, and about work elsewhere, as sentences. Pure: an event of the API in, words out.

The other events say themselves what they are, with their fields: see cli/text/render.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from baton.core.log.answers import EXPIRED
from baton.core.log.state import ANSWER
from baton.words import map_words, undo_words
from baton.words.agent_words import AgentWords, Event, Said
from baton.words.text import counted, epoch_ms, one_line, span


class EventWords:
    """Remembers who has answered: the event that closes a question has only the key of the answer."""

    def __init__(self) -> None:
        self._answered_by: dict[str, str] = {}
        self._agents = AgentWords()

    def of(self, event: Event) -> Said | None:
        """What an event says, or None for one that has no words of its own."""
        if event.get("kind") == "signal_received" and event.get("name") == ANSWER:
            return self._answered(event)
        if event.get("kind") == "question_closed":
            return self._closed(event)
        if event.get("lost"):
            lost = f"the signal `{event.get('name')}` is lost: no wait was open for it"
            return lost, frozenset(["lost", "name"])
        if event.get("sent"):
            return _sent(event)
        if (undoing := undo_words.of(event)) is not None:
            return undoing
        words = _WORDS.get(str(event.get("kind")))
        of_agent = self._agents.of(event)
        if words is None:
            return of_agent
        text, known = words(event)
        return (text, known) if of_agent is None else (f"{of_agent[0]}: {text}", known | of_agent[1])

    def _answered(self, event: Event) -> Said | None:
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

    def _closed(self, event: Event) -> Said:
        ask, action, key = event.get("ask"), event.get("action"), event.get("by")
        if key:
            by = self._answered_by.get(str(key))
            words = f"{ask} is answered{f' by `{by}`' if by else ''}: {action}"
        elif action == EXPIRED:
            words = f"{ask} has expired"
        else:
            words = f"{ask} has no answer in time, and is decided: {action}"
        return words, frozenset(("ask", "action", "by"))


def _sent(event: Event) -> Said:
    """A saga that an event from outside has started, or its signal."""
    sent = event["sent"]
    by = f"the event `{sent.get('type')}` from `{sent.get('source')}` (id `{sent.get('id')}`)"
    if event.get("kind") == "saga_started":
        return one_line(f"started by {by}, under a rule of `{event.get('user')}`"), frozenset(
            ["sent", "user"]
        )
    return one_line(f"{by} is the signal `{event.get('name')}`"), frozenset(("sent", "name", "key", "by"))


def _opened(event: Event) -> Said:
    ask = event.get("ask") or {}
    until = f", until {_moment(ask['expires_at'])}" if ask.get("expires_at") else ""
    return f"{ask.get('id')} asks {_audience(ask.get('to'))}: {asked(ask)}{until}", frozenset(["ask"])


def asked(ask: Mapping[str, Any]) -> str:
    """What a question says, on one line."""
    return one_line(": ".join(str(ask[name]) for name in ("title", "message") if ask.get(name)))


def _escalated(event: Event) -> Said:
    ask, to, by = event.get("ask"), event.get("to"), event.get("by")
    if to is not None:
        words = f"{ask} has no answer yet, and is handed on to {_audience(to)}"
    elif by:
        words = f"`{by}` has people reminded of {ask}"
    else:
        words = f"{ask} has no answer yet, and people are reminded"
    return words, frozenset(("ask", "to", "by", "due"))


def _claimed(event: Event) -> Said:
    done = "claims" if event.get("to") else "releases"
    return f"`{event.get('by')}` {done} {event.get('ask')}", frozenset(("ask", "to", "by"))


def _notice_due(event: Event) -> Said:
    notice = event.get("notice") or {}
    incident = ", as an incident" if notice.get("incident") else ""
    to = "who has started the saga" if notice.get("to") == "user" else _audience(notice.get("to"))
    words = f"{to} is to be told{incident}: {one_line(str(notice.get('message')))}"
    return words, frozenset(["notice"])


def _notices_sent(event: Event) -> Said:
    shown, withdrawn = event.get("shown") or {}, event.get("withdrawn") or ()
    parts = [f"{counted(len(event['keys']), 'notice')} sent"] if event.get("keys") else []
    parts += [f"{ask} in the inbox of {_audience(row.get('to'))}" for ask, row in shown.items()]
    parts += [f"{ask} in no inbox any more" for ask in withdrawn]
    return ", ".join(parts), frozenset(("keys", "shown", "withdrawn"))


def _held(event: Event) -> Said:
    state = str(event.get("state") or "open").replace("_", "-")
    words = f"waits for breaker `{event.get('breaker')}`, which is {state}; next probe at {_moment(event.get('until'))}"
    return words, frozenset(("breaker", "until", "state"))


def _handed_over(event: Event) -> Said:
    beat = event.get("heartbeat_ms")
    every = f", heard of every {span(beat)} at least" if beat else ""
    known, whom = {"callback", "until", "heartbeat_ms"}, ""
    if response := event.get("response"):  # what was held counts until its answer is there
        known, whom = (
            known | {"response", "assumed", "skew_ms"},
            f" as {response['id']},",
        )
    return f"handed over{whom} until {_moment(event.get('until'))}{every}", frozenset(known)


def _heartbeat(_: Event) -> Said:
    return "the work elsewhere goes on", frozenset(["callback"])


_WORDS: Mapping[str, Callable[[Event], Said]] = {
    **map_words.WORDS,
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
    """Whom a question or a notice is for, from the log's word for it."""
    if to == "on_call":
        return "the people on call"
    kind, _, name = str(to or "").partition(":")
    if not name:
        return "who has started the saga"
    return f"`{name}`" if kind == "user" else f"the {kind} {name}"


def _moment(value: object) -> str:
    ms = epoch_ms(value)
    return "?" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
