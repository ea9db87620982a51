"""read_definition(value) -> the model of a document, and everything that is wrong with its shape, in plain words.

Belongs here: how pydantic's refusals are told. What is made of a broken document, so that the rest of it can be
checked too, is mend.py's; the shapes themselves are the models'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from baton.core.definition.fields import MAX_NODES, NO_VALUE, NODE_NAME, check_time
from baton.core.definition.mend import Faults, Written, mended
from baton.core.definition.models import WorkflowModel
from baton.core.definition.places import MAX_HINTS, fields_around, meant, pointer_of, there
from baton.core.durations import parse_duration
from baton.errors import Problem

# What pydantic says in the words of Python.
_PLAIN_WORDS = {
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "too_short": "a workflow has at least one node",
    "too_long": f"a workflow has at most {MAX_NODES} nodes",
}


def read_definition(value: Any) -> tuple[WorkflowModel | None, tuple[Problem, ...], Written]:
    """The model of a parsed document, everything that is wrong with its shape, and which keys are written otherwise.

    With problems, the model is of what could be made out of the rest, so that this can be checked too;
    None when there is too little of it. The problems are where the keys that were meant would be: see `as_written`.
    """
    if not isinstance(value, dict):
        return None, (Problem("", "a workflow document is an object with `name` and `nodes`"),), {}
    twice = tuple(_same_time_twice(value))
    try:
        return WorkflowModel.model_validate(value), twice, {}
    except ValidationError as error:
        faults = error.errors(include_url=False)
    model, more, written = mended(value, faults)
    faults = [{**fault, "loc": tuple(there(fault["loc"], value))} for fault in faults]
    told = enumerate(_told([*faults, *more]))
    return model, (*twice, *(_problem(fault, has_hint=index < MAX_HINTS) for index, fault in told)), written


def as_written(problems: Sequence[Problem], written: Written) -> tuple[Problem, ...]:
    """The problems where the document has them. What is wrong with a value under the key that was meant is no other one.

    It is told with that key: perhaps something else was meant.
    """
    if not written:
        return tuple(problems)
    refused: dict[str, Problem] = {}
    for problem in problems:
        if problem.path in written:
            refused.setdefault(_place(problem, written), problem)
    return tuple(
        _where_written(problem, written, refused) for problem in problems if problem.path not in written
    )


def _place(problem: Problem, written: Written) -> str:
    found, meant_at = "", ""
    for step in problem.path.split("/")[1:]:
        meant_at += f"/{step}"
        found += f"/{written.get(meant_at, step)}"
    return found


def _where_written(problem: Problem, written: Written, refused: Mapping[str, Problem]) -> Problem:
    place, suggestion = _place(problem, written), problem.suggestion
    if (other := refused.get(place)) is not None:
        what = other.message
        what = f"It {what}" if what.startswith("must ") else what[:1].upper() + what[1:]
        suggestion += f" {what}" + (f"; {other.suggestion}" if other.suggestion else "")
    return Problem(place, problem.message, suggestion)


def _same_time_twice(value: dict[str, Any]) -> Sequence[Problem]:
    limits = value.get("limits")
    if "timeout" in value and isinstance(limits, dict) and "wall_time" in limits:
        return [Problem("/timeout", "`timeout` and `limits.wall_time` say the same; write one of them")]
    return []


def _problem(fault: Any, *, has_hint: bool) -> Problem:
    """The fault in plain words."""
    location = [step for step in fault["loc"] if step != "[key]"]
    pointer = pointer_of(location)
    kind, suggestion = fault["type"], ""
    message = _PLAIN_WORDS.get(kind, fault["msg"])
    if kind == "extra_forbidden":
        message = f"`{location[-1]}` is not known here"
        near = meant(location) if has_hint else ""
        suggestion = f"did you mean `{near}`?" if near else ""
    elif kind == "missing":
        message = f"`{location[-1]}` is missing"
    elif kind == "string_pattern_mismatch":
        message = f"`{fault['input']}` is not a name"
        suggestion = f"names match {fault['ctx']['pattern']}"
    elif kind == "model_type":
        suggestion = _meant(location, fault["input"])
    elif kind == "refused":
        suggestion = fault["ctx"]["suggestion"]
    elif kind == "value_error":
        message = message.removeprefix("Value error, ")
    if fault["input"] is None and (kind == "refused" or kind.endswith("_type")):
        message, suggestion = _nothing_here(location), ""
    return Problem(pointer, message, suggestion)


def _nothing_here(location: Sequence[Any]) -> str:
    """What is there without a value: in YAML that is a line begun and forgotten."""
    field = fields_around(location).get(location[-1])
    return NO_VALUE if field is None or field.is_required() else f"{NO_VALUE}, or leave the field out"


def _told(faults: Faults) -> list[Any]:
    """Without those that say that a key is missing when it is there, misspelt."""
    lacking = {fault["loc"][:-1] for fault in faults if fault["type"] == "missing"}
    unknown = [fault["loc"] for fault in faults if fault["type"] == "extra_forbidden"]
    misspelt = {(*at[:-1], meant(at)) for at in unknown[:MAX_HINTS] if at[:-1] in lacking}
    return [fault for fault in faults if fault["type"] != "missing" or fault["loc"] not in misspelt]


def _meant(location: Sequence[Any], value: Any) -> str:
    """What was meant by something else than an object, where that can be guessed."""
    if len(location) == 3 and location[0] == "nodes" and location[-1] == "wait":
        return _wait_for(value)
    return ""


def _wait_for(value: Any) -> str:
    for key, read in (("for", parse_duration), ("until", check_time)):
        try:
            read(value)
        except ValueError:
            continue
        return f"write `wait: {{{key}: {value}}}`"
    if isinstance(value, str) and re.fullmatch(NODE_NAME, value):
        return f"write `wait: {{signal: {value}}}`"
    return "write `wait: {for: 5s}` or `wait: {signal: NAME}`"
