"""The questions of a saga as something a person reads. Pure: documents in, lines out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from baton.words.text import epoch_ms, one_line, since, when


def question_lines(saga: Mapping[str, Any], now: int) -> list[str]:
    """What is asked since when, what can be answered until when, by whom, and what happens without an answer."""
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
    """Who may answer it."""
    return " or ".join(map(_named, question.get("for") or ()))


def _named(one: Mapping[str, Any]) -> str:
    return str(one["name"]) if one["kind"] == "user" else f"the {one['kind']} {one['name']}"


def _step(step: Mapping[str, Any], now: int) -> str:
    """One thing that happens while there is no answer."""
    said = {"remind": "told again", "decide": f"decided {step['answer']}"}.get(step["action"])
    said = said or f"handed on to {_named(step['to'])}"
    return f"{said} {when(epoch_ms(step['at']) or 0, now)}"


def _open_to_change(question: Mapping[str, Any]) -> str:
    """What `--with` may name."""
    names = (question.get("arguments") or {}).get("properties") or ()
    return f"retry --with may change {', '.join(names)}" if names else "an answer may change no arguments"
