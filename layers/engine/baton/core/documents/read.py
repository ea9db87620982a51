"""read_definition(value) -> the model of a document, and everything that is wrong with its shape, in plain words.

It words pydantic's refusals. repair.py repairs a broken document, so that the rest of it can be checked too; the
shapes are in the models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError

from baton.core.documents.familiar import OTHER_END
from baton.core.documents.models import WorkflowModel
from baton.core.documents.names import right_name
from baton.core.documents.nodes.node_model import BY_KEY, KINDS
from baton.core.documents.nodes.registry import SIMPLEST
from baton.core.documents.parts.fields import MAX_NODES, NO_VALUE, as_list, shown
from baton.core.documents.places import MAX_HINTS, advice, belongs, fields_around, meant, pointer_of, there
from baton.core.documents.repair import (
    Faults,
    Written,
    faults_of_document,
    keeps_ways,
    mended,
    rearranged,
)
from baton.errors import Problem

# A node with more of them is no slip of the pen.
_MOST_KEYS = 20
# Pydantic's messages in the words of Python.
_PLAIN_WORDS = {
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "bool_type": "must be `true` or `false`",
    "bool_parsing": "must be `true` or `false`",
    "too_short": "a workflow has at least one node",
    "too_long": f"a workflow has at most {MAX_NODES} nodes",
}


class Definition(NamedTuple):
    """The model of a document, everything that is wrong with its shape, and which keys are written otherwise.

    With problems, the model is of what could be made out of the rest, so that this can be checked too; None when there
    is too little of it. Not `is_whole`: the edges between the nodes may not be those that are meant. The problems are
    where the keys that were meant would be: see `as_written`.
    """

    model: WorkflowModel | None
    problems: tuple[Problem, ...] = ()
    written: Mapping[str, str] = MappingProxyType({})
    is_whole: bool = True


def read_definition(value: Any) -> Definition:
    """The definition that a parsed document is."""
    if not isinstance(value, dict):
        return Definition(None, (Problem("", "a workflow document is an object with `name` and `nodes`"),))
    twice = tuple(_same_time_twice(value))
    try:
        return Definition(WorkflowModel.model_validate(value), twice)
    except ValidationError as error:
        faults: Faults = error.errors(include_url=False)
    written: Written = {}
    moved, problems = rearranged(value, written)
    if problems:
        value, faults = moved, faults_of_document(moved)
    model, more = mended(value, faults, written)
    told = _told([*({**fault, "loc": tuple(there(fault["loc"], value))} for fault in faults), *more], value)
    problems += (_problem(fault, value, has_hint=index < MAX_HINTS) for index, fault in enumerate(told))
    if model is None:
        return Definition(None, (*twice, *problems), written)
    # The order of a list may be what was meant.
    is_list = any(key.isdigit() for key in written.values())
    has_ways = not is_list or any(node.after for node in model.nodes.values())
    is_whole = has_ways and keeps_ways([*faults, *more], value, written)
    return Definition(model, (*twice, *problems), written, is_whole)


def as_written(problems: Sequence[Problem], written: Mapping[str, str]) -> tuple[Problem, ...]:
    """The problems where the document has them. What is wrong with a value under the key that was meant is no other one.

    It is told with that key: perhaps something else was meant.
    """
    if not written:
        return tuple(problems)
    refused: dict[str, Problem] = {}
    for problem in problems:
        if _is_refused(problem, written):
            refused.setdefault(_place(problem, written), problem)
    return tuple(
        _where_written(problem, written, refused) for problem in problems if not _is_refused(problem, written)
    )


def _is_refused(problem: Problem, written: Mapping[str, str]) -> bool:
    """Whether it is about the whole value under a key that was meant. An item of a list is under none."""
    return not written.get(problem.path, "0").isdigit()


def _place(problem: Problem, written: Mapping[str, str]) -> str:
    found, meant_at = "", ""
    for step in problem.path.split("/")[1:]:
        meant_at += f"/{step}"
        found += f"/{written.get(meant_at, step)}"
    return found


def _where_written(problem: Problem, written: Mapping[str, str], refused: Mapping[str, Problem]) -> Problem:
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


def _problem(fault: Any, document: Any, *, has_hint: bool) -> Problem:
    """The fault in plain words."""
    location = [step for step in fault["loc"] if step != "[key]"]
    pointer = pointer_of(location)
    kind, suggestion = fault["type"], ""
    message = _PLAIN_WORDS.get(kind, fault["msg"])
    if kind == "extra_forbidden":
        message = f"`{location[-1]}` is not known here"
        if has_hint:
            suggestion = _elsewhere(location, document) or _suggestion(location, fault["input"], document)
    elif kind == "missing":
        message = f"`{location[-1]}` is missing"
    elif kind == "string_pattern_mismatch":
        message = f"`{fault['input']}` is not a name"
        suggestion = right_name(fault["input"], fault["ctx"]["pattern"])
    elif kind == "list_type" and isinstance(fault["input"], str):
        suggestion = f"write {as_list(fault['input'])}"
    elif kind in {"model_type", "dict_type"}:
        suggestion = _elsewhere(location, document) or _meant(location, fault["input"])
    elif kind == "refused":
        suggestion = fault["ctx"]["suggestion"]
    elif kind == "value_error":
        message = message.removeprefix("Value error, ")
    if fault["input"] is None and (kind == "refused" or kind.endswith("_type")):
        message, suggestion = _nothing_here(location), ""
    return Problem(pointer, message, suggestion)


def _suggestion(location: Sequence[Any], value: Any, document: Any) -> str:
    """What was meant by a key that is not known."""
    if near := meant(location):
        return f"did you mean `{near}`?"
    return _advice(location, value) or _of_no_kind(location, document)


def _home(location: Sequence[Any], document: Any) -> tuple[str, ...]:
    """Where in its node a key belongs that stands elsewhere; empty if that is not known."""
    if len(location) < 3 or location[0] != "nodes":
        return ()
    node = document["nodes"][location[1]]
    return belongs(location, node) if isinstance(node, dict) else ()


def _elsewhere(location: Sequence[Any], document: Any) -> str:
    home, below = _home(location, document), location[2:-1]
    if not home:
        return ""
    if home[0] in BY_KEY or (home[0] != "limits" and home[1:]):
        return f"write `{home[1]}` below `{home[0]}`"
    what = f"`limits: {{{home[1]}: …}}`" if home[1:] else f"`{home[0]}`"
    return f"write {what} beside `{below[0]}`, as a field of the node" if below else f"write {what}"


def _nothing_here(location: Sequence[Any]) -> str:
    """What is there without a value: in YAML that is a line begun and forgotten."""
    field = fields_around(location).get(location[-1])
    return NO_VALUE if field is None or field.is_required() else f"{NO_VALUE}, or leave the field out"


def _told(faults: Faults, document: Any) -> list[Any]:
    """Without those that say that a key is missing when it is there, misspelt."""
    lacking = {fault["loc"][:-1] for fault in faults if fault["type"] == "missing"}
    unknown = [fault["loc"] for fault in faults if fault["type"] == "extra_forbidden"]
    misspelt = {(*at[:-1], meant(at)) for at in unknown[:MAX_HINTS] if at[:-1] in lacking}
    strays = [fault["loc"] for fault in faults if fault["type"] in ("extra_forbidden", "model_type")]
    misspelt |= {(*at[:2], *_home(at, document)) for at in strays[:MAX_HINTS]}
    return [fault for fault in faults if fault["type"] != "missing" or fault["loc"] not in misspelt]


def _meant(location: Sequence[Any], value: Any) -> str:
    """What was meant by something else than an object, where that can be guessed."""
    if list(location) == ["nodes"]:
        return f"write each node under its name: `nodes: {{first: {{{SIMPLEST}: NAME}}}}`"
    if location[0] != "nodes" or not isinstance(value, str | list):
        return ""
    if len(location) == 2:
        return f"write `{{{SIMPLEST}: {shown(value)}}}`" if isinstance(value, str) else ""
    if len(location) == 3 and location[-1] in BY_KEY:
        return BY_KEY[location[-1]].meant(value)
    return f"write `loop: {{while: {shown(value)}}}`" if location[-1] == "loop" and len(location) == 3 else ""


def _advice(location: Sequence[Any], value: Any) -> str:
    said = advice(location)
    if said == OTHER_END and isinstance(value, str):
        return f"write `after: {location[1]}` at `{shown(value)}`; a `branch` chooses between nodes"
    return said


def _of_no_kind(location: Sequence[Any], document: Any) -> str:
    """The message about an unknown key of a node without a kind."""
    node = document["nodes"][location[1]] if len(location) == 3 and location[0] == "nodes" else {}
    if not 0 < len(node) <= _MOST_KEYS:
        return ""
    keys = {key if key in BY_KEY else meant(("nodes", "", key)) for key in node}
    return f"a node has exactly one of {', '.join(KINDS)}" if BY_KEY.keys().isdisjoint(keys) else ""
