"""Answers to questions about failures: which questions are open, whom they are for, and what can be an answer to one.

Belongs here: checking what a person says against the question and the step. Does not belong here: what an answer
comes to (core/decide/retries.py), and asking (core/decide/failure_handling.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from baton.core.conditions.schema import violations
from baton.core.expressions import escape
from baton.core.expressions.spelling import nearest
from baton.core.failures import sanitised
from baton.core.failures.strategies.base import ON_CALL
from baton.core.graph.graph import Node
from baton.core.log.events import Ask
from baton.core.log.state import ANSWER, Failing, State
from baton.errors import Problem

TRY_AGAIN, USE, GIVE_UP = "retry", "use", "fail"
ACTIONS: Mapping[str, str] = {
    TRY_AGAIN: "Try the step again, with other arguments if some are given.",
    USE: "Take this output in place of the step's own.",
    GIVE_UP: "Let the step fail with its last failure.",
}
"""What a person can answer, each with what it does."""

MAX_ARGUMENTS = 32_768  # bytes; they are in the state until the step is done
OPERATORS = "operate"  # the role of callers who may answer every question
_SHOWN = 10
_REMEMBERED = f"{ANSWER}/"  # what keys of answers begin with in a state


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a person says to the question `ask`. `arguments` goes with `retry`, `output` with `use`."""

    ask: str
    action: str
    arguments: dict[str, Any] = {}
    output: Any = msgspec.UNSET

    def payload(self) -> dict[str, Any]:
        """As the log keeps it: what was said and nothing else."""
        said: dict[str, Any] = {"ask": self.ask, "action": self.action}
        if self.arguments:
            said["arguments"] = self.arguments
        if self.output is not msgspec.UNSET:
            said["output"] = self.output
        return said


def asked(state: State) -> Iterator[tuple[str, Ask]]:
    """Each question that is not closed, with the slot of its step; an answer may be there already."""
    for slot, failing in state.failing.items():
        if failing.ask is not None:
            yield slot, failing.ask


def open_questions(state: State) -> Iterator[tuple[str, Ask]]:
    """Each question that nobody has answered yet, with the slot of its step."""
    for slot, ask in asked(state):
        if not is_answered(state, ask.id):
            yield slot, ask


def answer_key(ask: str, key: str) -> str:
    """The key of an answer's signal. An `Idempotency-Key` counts for its question only; no id has a slash."""
    return f"{ask}/{key}" if key else ask


def is_answered(state: State, ask: str) -> bool:
    """Whether an answer has come, be it closed with it or not heard yet. Of those of long ago the key is forgotten."""
    said = [signal.key for signal in state.signals if signal.name == ANSWER]
    said += [key.removeprefix(_REMEMBERED) for key in state.keys if key.startswith(_REMEMBERED)]
    return any(key == ask or key.startswith(f"{ask}/") for key in said)


def named(state: State) -> str:
    """The open questions, for somebody who has asked for one that is not."""
    ids = [ask.id for _, ask in open_questions(state)]
    if not ids:
        return "no question is open"
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"open: {', '.join(ids[:_SHOWN])}{more}"


def may_answer(state: State, ask: Ask) -> tuple[tuple[str, str], ...]:
    """Whom a question is for, as kinds and names: operators, and the saga's user unless it is for operators only."""
    operators = ("role", OPERATORS)
    return (operators,) if ask.to == ON_CALL else (("user", state.origin.user), operators)


def refusal(state: State, ask: Ask, user: str, roles: Collection[str]) -> str:
    """Why this caller may not answer, and who may; empty for one who may."""
    audience = may_answer(state, ask)
    if any(name == user if kind == "user" else name in roles for kind, name in audience):
        return ""
    named = " or ".join(f"{'the user' if kind == 'user' else 'the role'} `{name}`" for kind, name in audience)
    return f"question `{ask.id}` is for {named}; the caller is the user `{user}`"


def tool_asked_about(node: Node, failing: Failing) -> str:
    """The tool that would run if the answer is `retry`."""
    way = failing.way
    return way.tool if way is not None and way.tool and not way.first else node.tool


def changeable(ask: Ask, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """The JSON Schema of the arguments that an answer may change; None when it may change none.

    `parameters`: the schema of the arguments of the tool that would run.
    """
    known = parameters.get("properties", {})
    is_open = parameters.get("additionalProperties") is not False
    properties = {name: known.get(name, {}) for name in ask.may_change if is_open or name in known}
    if not properties:
        return None
    shared = {"$defs": parameters["$defs"]} if "$defs" in parameters else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **shared}


def check_answer(
    ask: Ask,
    node: Node,
    parameters: Mapping[str, Any],
    answer: Answer,
    result: Mapping[str, Any] | None = None,
) -> tuple[Problem, ...]:
    """Everything that is wrong with an answer.

    `parameters`: the schema of the arguments of the tool that would run; `result`: that of what an output has to be like.
    """
    if answer.action not in ask.options:
        hint = nearest(answer.action, ask.options)
        return (Problem("/action", f"must be one of {', '.join(ask.options)}", hint),)
    found = []
    if answer.arguments and answer.action != TRY_AGAIN:
        found.append(Problem("/arguments", f"goes with `retry`, not with `{answer.action}`"))
    elif answer.arguments:
        found += _arguments(ask, parameters, answer.arguments)
    if answer.action == USE and answer.output is msgspec.UNSET:
        found.append(Problem("/output", "is missing: `use` needs what to take in place of the step's output"))
    elif answer.action != USE and answer.output is not msgspec.UNSET:
        found.append(Problem("/output", f"goes with `use`, not with `{answer.action}`"))
    elif answer.action == USE:
        for schema in (node.output_schema, result):
            found += violations(schema, answer.output, "/output") if schema is not None else ()
    if _has_secret("", answer.arguments):
        found.append(
            Problem(
                "/arguments",
                "has what looks like a secret, and what is answered stays in the log for ever",
                "put it where the tool reads it, such as a secret store, and answer `retry`",
            )
        )
    return tuple(found)


_SECRET = frozenset(
    {
        "password",
        "passwd",
        "passphrase",
        "secret",
        "api_key",
        "apikey",
        "client_secret",
        "private_key",
        "access_token",
        "refresh_token",
        "secret_key",
        "pwd",
    }
)


def _has_secret(name: str, value: Any) -> bool:
    """Whether a text in it has the shape of a secret, or a name that only secrets have."""
    if isinstance(value, str):
        return bool(value) and (name.lower().replace("-", "_") in _SECRET or sanitised(value) != value)
    if isinstance(value, Mapping):
        return any(_has_secret(str(key), inner) for key, inner in value.items())
    return isinstance(value, list) and any(_has_secret(name, inner) for inner in value)


def _arguments(ask: Ask, parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """They take the place of the step's own, so none of them has to be there."""
    open_to = (changeable(ask, parameters) or {}).get("properties", {})
    which = ", ".join(f"`{name}`" for name in open_to)
    which = which or "none; the document's `may_change` names those that are"
    for name in sorted(arguments.keys() - open_to.keys()):
        hint = nearest(name, open_to) or f"open to change: {which}"
        yield Problem(f"/arguments/{escape(name)}", f"an answer may not change the argument `{name}`", hint)
    arguments = {name: value for name, value in arguments.items() if name in open_to}
    yield from violations({**parameters, "required": []}, arguments, "/arguments")
