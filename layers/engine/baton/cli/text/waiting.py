"""What a saga waits for, and the commands that help it on, as a person reads and types them.

Pure. The rest of what `show` says is in render.py.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from baton.client.program import typed
from baton.core.conditions.examples import example_of
from baton.core.log.answers import INPUT
from baton.core.log.status import FINISHED
from baton.words.text import epoch_ms, plain, since, when

_SHOWN = 5  # questions, each with a command that answers it


def rounds(item: Mapping[str, Any]) -> str:
    """Which round of its loops an active node is in: `round 3 of 5`; nothing outside of loops."""
    numbers = zip_longest(item.get("iteration") or (), item.get("most_rounds") or ())
    said = [
        f"{number + 1}" + (f" of {most}" if most else "") for number, most in numbers if number is not None
    ]
    return f"round {', '.join(said)}" if said else ""


def waits(saga: Mapping[str, Any], now: int) -> list[str]:
    """A line for each node that waits: what for, and until when."""
    found = []
    for item in saga.get("active") or ():
        until = epoch_ms(item.get("until"))
        limit = f"until {when(until, now)}" if until is not None else "without a time limit"
        if item.get("breaker"):
            text = f"for breaker `{item['breaker']}`, next probe {_at(when, item, 'until', now)}"
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
        elif item.get("waits_for"):
            text = f"for {', '.join(map(str, item['waits_for']))}"
        else:
            continue
        found.append(f"{', '.join(filter(None, (item.get('node'), item.get('label'))))}: {text}")
    return found


def _at(say: Callable[[int, int], str], item: Mapping[str, Any], name: str, now: int) -> str:
    at = epoch_ms(item.get(name))
    return "?" if at is None else say(at, now)


def helping(saga: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The commands that help a saga on, each behind a word on what it does."""
    me, status = saga.get("id"), saga.get("status")
    if large := saga.get("large_result"):
        yield _line("Print the result with", f"value {me} {large['ref']}")
    undo = saga.get("undo") or {}
    if status == "rollback_failed" and undo.get("failed"):
        yield _line("Once its cause is gone, undo the rest with", f"rollback {me}")
    if status in FINISHED:
        if status in ("completed", "failed", "cancelled") and undo.get("undoable"):
            yield _line("See what would be undone with", f"rollback {me} --dry-run")
        return
    yield from _answering(str(me), saga.get("questions") or ())
    if status == "parked":
        yield _line("Let it try again with", f"resume {me}")
    seen = set()
    for item in saga.get("active") or ():
        name, child = item.get("signal"), item.get("saga")
        if (breaker := item.get("breaker")) and breaker not in seen:
            yield _line("See what is wrong with", f"breakers show {breaker}")
            seen.add(breaker)
        if name and name not in seen:
            yield _line("Send the signal with", f"signal {me} {shlex.quote(str(name))}{_payload(item)}")
        if child:
            yield _line("Look at its child with", f"show {child}")
        seen.add(name)


def answers_to(question: Mapping[str, Any]) -> str:
    """What can be typed as the answer to a question of a saga or of a list."""
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
    return why, plain(typed(command))


def _payload(item: Mapping[str, Any]) -> str:
    schema = item.get("payload")
    if schema is None:
        return " [--payload JSON]"
    value = example_of(schema)
    return " --payload " + (
        "JSON" if value is None else shlex.quote(json.dumps(value[0], ensure_ascii=False))
    )
