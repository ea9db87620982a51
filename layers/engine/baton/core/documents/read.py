"""read_definition(value) -> the model of a document, and everything
that is wrong with its shape, in plain words.

It words pydantic's refusals. read.py repairs a broken document, so that
the rest of it can be checked too; the shapes are in the models.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial, reduce
from itertools import islice
from operator import getitem
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError

from baton.core.documents.familiar import (
    MAX_HINTS,
    OTHER_END,
    advice,
    belongs,
    deep_copy,
    existing_part,
    fields_around,
    nearest_valid_form,
    pointer_of,
    right_name,
)
from baton.core.documents.models import BY_KEY, KINDS, NodeModel, WorkflowModel
from baton.core.documents.nodes.base import COMMON
from baton.core.documents.nodes.registry import HOLDER, NODE_TYPES, SIMPLEST, STAND_IN
from baton.core.documents.parts.fields import MAX_NODES, NO_VALUE, as_list, document_form
from baton.core.expressions import escape
from baton.errors import Problem

Faults = Sequence[Any]
Written = dict[str, str]
"""By pointer to a key that was meant: the key that is written there, or the number of an item of a list."""
_Object = dict[str, Any]
# One that may hold or not, as the one that was meant.
_SOME_CONDITION = "loop.iteration > 1"
_SOME_CODE = "child_failed"  # that a node of any kind may have


def repair(document: _Object, faults: Faults, written: Written) -> tuple[WorkflowModel | None, Faults]:
    """Return the document without its faults, and the faults that come to light only then;
    None if there are no nodes.

    These are where the document would have them if it had the keys that
    were meant, which are added to `written`.
    """
    nodes = document.get("nodes")
    if not isinstance(nodes, dict) or not 1 <= len(nodes) <= MAX_NODES:
        return None, ()
    top: list[Any] = []
    at: dict[str, list[Any]] = {}
    for fault in faults:
        if fault["loc"][0] != "nodes":
            top.append(fault)
        elif fault["loc"][-1] != "[key]":
            at.setdefault(fault["loc"][1], []).append({**fault, "loc": fault["loc"][2:]})
    rest = {key: value for key, value in document.items() if key != "nodes"}
    rest, more = _settled(rest, top, partial(_without, written=written), _faults_of_rest)
    kept = dict(nodes)
    for name, found in at.items():
        repair = partial(_repaired, name=name, names=nodes.keys(), written=written)
        kept[name], others = _settled(nodes[name], found, repair, _faults_of_node)
        more += [{**fault, "loc": ("nodes", name, *fault["loc"])} for fault in others]
    # Nodes are known by their names even if these are none.
    model = WorkflowModel.model_validate(
        {**rest, "nodes": {f"n{i}": node for i, node in enumerate(kept.values())}}
    )
    model = model.model_copy(update={"nodes": dict(zip(kept, model.nodes.values(), strict=True))})
    return model, more


def _settled(
    value: Any, faults: Faults, repair: Callable[[Any, Faults], Any], check: Callable[[Any], Faults]
) -> tuple[Any, list[Any]]:
    """Return the value once nothing is wrong with it, and the faults that came to light meanwhile.

    It comes to an end: a repair leaves no key that is unknown, and nothing in a field that was wrong.
    """
    more: list[Any] = []
    while faults:
        value = repair(value, faults)
        faults = check(value)
        more += [{**fault, "loc": tuple(existing_part(fault["loc"], value))} for fault in faults]
    return value, more


def faults_of_document(document: _Object) -> Faults:
    """Return the faults in the shape of a document."""
    return _faults_of(WorkflowModel, document)


def _faults_of_rest(rest: _Object) -> Faults:
    return _faults_of(WorkflowModel, {**rest, "nodes": {"n": STAND_IN}})


def _faults_of_node(node: _Object) -> Faults:
    return _faults_of(NodeModel, node)


def _faults_of(model: type[WorkflowModel | NodeModel], value: _Object) -> Faults:
    try:
        model.model_validate(value)
    except ValidationError as error:
        return error.errors(include_url=False)
    return ()


def _rekeyed(value: Any, faults: Faults, written: Written, before: tuple[str, ...] = ()) -> Any:
    """Return the value with each unknown key under the one that was meant, if that is free,
    or else without it.

    `before` leads to the value in its document. What is moved is added to `written`.
    """
    unknown = [existing_part(fault["loc"], value) for fault in faults if fault["type"] == "extra_forbidden"]
    if not unknown:
        return value
    value = deep_copy(value)
    objects = [reduce(getitem, location[:-1], value) for location in unknown]
    held = [owner.pop(location[-1]) for owner, location in zip(objects, unknown, strict=True)]
    for owner, location, item in zip(objects[:MAX_HINTS], unknown, held, strict=False):
        known = nearest_valid_form((*before, *location))
        if known and known not in owner and not (before and belongs((*before, *location), value)):
            owner[known] = item
            written[pointer_of((*before, *location[:-1], known))] = escape(location[-1])
    return value


# ---- the document ----------------------------------------------------------------------------------------------


def gather_nodes(document: _Object, written: Written) -> tuple[_Object, list[Problem]]:
    """Return the document with its nodes by their names under `nodes`,
    and the problem of their standing elsewhere.

    What is moved is added to `written`.
    """
    problems = []
    if "nodes" not in document:
        key = next((key for key in islice(document, MAX_HINTS) if nearest_valid_form((key,)) == "nodes"), "")
        if isinstance(document.get(key), (dict, list)):
            written["/nodes"] = escape(key)
            document = {"nodes" if name == key else name: item for name, item in document.items()}
            problems.append(Problem(f"/{escape(key)}", f"`{key}` is not known here", "did you mean `nodes`?"))
    if isinstance(nodes := document.get("nodes"), list) and (named := _by_name(nodes)):
        written |= {pointer_of(("nodes", name)): str(index) for index, name in enumerate(named)}
        document = {**document, "nodes": named}
        first = next(iter(named))
        hint = f"write each under its name, without a dash: `{first}:`; its order says nothing, `after` does"
        problems.append(Problem("/nodes", "nodes are an object, not a list", hint))
    elif isinstance(nodes, dict) and (beside := _beside(nodes)):
        kept = {name: beside.get(name, node) for name, node in nodes.items()}
        moved = {key for keys in beside.values() for key in keys}
        document = {**document, "nodes": {name: node for name, node in kept.items() if name not in moved}}
        for name, keys in beside.items():
            hint = f"indent {_listed(keys)} below `{name}`"
            problems.append(Problem(pointer_of(("nodes", name)), f"`{name}` has nothing below it", hint))
    return document, problems


def _beside(nodes: _Object) -> dict[str, _Object]:
    """Return, by the name of a node without anything below it, the keys of a node that follow it,
    as they do in YAML that is not indented.
    """
    found: dict[str, _Object] = {}
    name = None
    for key, value in nodes.items():
        is_node = isinstance(value, dict) and not BY_KEY.keys().isdisjoint(value)
        if name is not None and key in fields_around(("nodes", name, key)) and not is_node:
            found.setdefault(name, {})[key] = value
        else:
            name = key if value is None else None
    return found


def _listed(keys: Iterable[str]) -> str:
    *others, last = (f"`{key}`" for key in keys)
    return f"{', '.join(others)} and {last}" if others else last


def _by_name(nodes: Sequence[Any]) -> _Object:
    """Return the nodes of a list by what they call themselves; empty if not each has a name of its own."""
    named: _Object = {}
    for node in nodes if len(nodes) <= MAX_NODES else ():
        key = next((key for key in ("name", "id", "key") if isinstance(node, dict) and key in node), "")
        if not key or not isinstance(node[key], str) or node[key] in named:
            return {}
        named[node[key]] = {field: item for field, item in node.items() if field != key}
    return named


def _without(rest: _Object, faults: Faults, *, written: Written) -> _Object:
    rest = _rekeyed(rest, faults, written)
    broken = [fault["loc"] for fault in faults if fault["type"] != "extra_forbidden"]
    for key in dict.fromkeys(location[0] for location in broken):
        inside = [location[1:] for location in broken if location[0] == key]
        if key == "name":
            rest = {**rest, "name": "unnamed"}
        elif key == "schemas" and () not in inside:
            rest = {**rest, key: _schemas(rest[key], inside)}
        else:
            rest = {name: item for name, item in rest.items() if name != key}
    return rest


def _schemas(schemas: _Object, broken: Sequence[tuple[str, ...]]) -> _Object:
    """Return the schemas; broken ones allow everything,
    so that they can still be referred to by their names, if these are any.
    """
    unnamed = {location[0] for location in broken if location[-1] == "[key]"}
    known = {name: item for name, item in schemas.items() if name not in unnamed}
    return {**known, **{location[0]: True for location in broken if location[0] in known}}


# ---- a node ----------------------------------------------------------------------------------------------------


def _repaired(value: Any, faults: Faults, *, name: str, names: Collection[str], written: Written) -> _Object:
    if not isinstance(value, dict):
        return dict(STAND_IN)
    told_of_a_key = any(fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1 for fault in faults)
    place = pointer_of(("nodes", name))
    node: _Object = _rekeyed(value, faults, written, ("nodes", name))
    broken = {fault["loc"][:1] for fault in faults if fault["type"] != "extra_forbidden"}
    for (field,) in filter(None, broken):
        node = _repaired_field(node, field, names)
    # Without a kind the only problem is that a key is unknown, which has been told.
    if () in broken or (told_of_a_key and not BY_KEY.keys() & node.keys()):
        node = _of_one_kind(node, place, written)
    return node


def _of_one_kind(node: _Object, place: str, written: Written) -> _Object:
    chosen = [kind for kind in NODE_TYPES if kind.key in node]
    if len(chosen) == 1:
        known = (chosen[0].key, *chosen[0].fields)
        return {key: value for key, value in node.items() if key in known}
    common = {key: value for key, value in node.items() if key in COMMON}
    if not isinstance(node.get("with"), dict):
        return common | dict(STAND_IN)
    # The expressions in it are looked at as those of a value, of which nothing else is known.
    written[f"{place}/{HOLDER}"] = "with"
    return common | {HOLDER: node["with"], "output_schema": True}


def _repaired_field(node: _Object, field: str, names: Collection[str]) -> _Object:
    if field in BY_KEY:
        return {key: value for key, value in node.items() if key in COMMON} | dict(STAND_IN)
    rest = {key: value for key, value in node.items() if key != field}
    make = _EDGES.get(field)
    made = make(node.get(field), names) if make else None
    return {**rest, field: made} if made else rest


def _texts(value: Any) -> list[str]:
    return (
        [value]
        if isinstance(value, str)
        else [item for item in value if isinstance(item, str)]
        if isinstance(value, list)
        else []
    )


def _existing(value: Any, names: Collection[str]) -> list[str]:
    return [name for name in dict.fromkeys(_texts(value)) if name in names]


def _after(value: Any, names: Collection[str]) -> list[str]:
    return _texts(value)


def _branch(value: Any, names: Collection[str]) -> _Object | None:
    """Return a branch to the same nodes."""
    branch = value if isinstance(value, dict) else {}
    rules = branch.get("rules")
    parts = [branch.get("among"), branch.get("default")]
    parts += [rule.get("then") for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
    found = _existing([name for part in parts for name in _texts(part)], names)
    return {"rules": [{"if": "true", "then": found}]} if found else None


def _loop(value: Any, names: Collection[str]) -> _Object | None:
    """Return a loop over the same nodes, with the same edges out."""
    if not isinstance(value, dict):
        return None
    condition, back_to = value.get("while"), value.get("back_to")
    made: _Object = {"while": _SOME_CONDITION if condition is None else condition}
    if isinstance(back_to, str):
        made["back_to"] = back_to
    for way in ("break_path", "timeout_path"):
        if found := _existing(value.get(way), names):
            made[way] = found
    return made


def _catch(value: Any, names: Collection[str]) -> list[_Object] | None:
    """Return rules that lead to the same nodes."""
    rules = value if isinstance(value, list) else [value]
    thens = [rule.get("then") if isinstance(rule, dict) else rule for rule in rules]
    found = (_existing(then, names) for then in thens)
    made = [{"code": _SOME_CODE, "then": then} for then in found if then]
    return made or None


_EDGES: Mapping[str, Callable[[Any, Collection[str]], Any]] = {
    "after": _after,
    "branch": _branch,
    "loop": _loop,
    "catch": _catch,
}


# ---- the edges between the nodes ------------------------------------------------------------------------------


def keeps_ways(faults: Faults, document: _Object, written: Written) -> bool:
    """Return true if no fault can concern the edges between the nodes.

    A key that is not known, and that no known one stands for, is an edge between nodes only if it names one.
    """
    return all(
        _keeps_ways(fault, document["nodes"], written) for fault in faults if fault["loc"][0] == "nodes"
    )


def _keeps_ways(fault: Any, nodes: _Object, written: Written) -> bool:
    location = fault["loc"]
    if fault["type"] == "extra_forbidden":
        taken = pointer_of((*location[:-1], nearest_valid_form(location)))
        return written.get(taken) == escape(location[-1]) or not _names_one(fault["input"], nodes)
    if len(location) < 3 or location[-1] == "[key]":
        return isinstance(nodes[location[1]], dict)
    return location[2] != "when" and location[2] not in _EDGES


def _names_one(value: Any, names: Collection[str]) -> bool:
    if isinstance(value, (dict, list)):
        return any(_names_one(item, names) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and value in names


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

    With problems, the model is of what could be made out of the rest, so that this can be checked
    too; None when there is too little of it. Not `is_whole`: the edges between the nodes may not be
    those that are meant. The problems are where the keys that were meant would be: see `as_written`.
    """

    model: WorkflowModel | None
    problems: tuple[Problem, ...] = ()
    written: Mapping[str, str] = MappingProxyType({})
    is_whole: bool = True


def read_definition(value: Any) -> Definition:
    """Read the definition of a parsed document."""
    if not isinstance(value, dict):
        return Definition(None, (Problem("", "a workflow document is an object with `name` and `nodes`"),))
    twice = tuple(_same_time_twice(value))
    try:
        return Definition(WorkflowModel.model_validate(value), twice)
    except ValidationError as error:
        faults: Faults = error.errors(include_url=False)
    written: Written = {}
    moved, problems = gather_nodes(value, written)
    if problems:
        value, faults = moved, faults_of_document(moved)
    model, more = repair(value, faults, written)
    told = _told(
        [*({**fault, "loc": tuple(existing_part(fault["loc"], value))} for fault in faults), *more], value
    )
    problems += (_problem(fault, value, has_hint=index < MAX_HINTS) for index, fault in enumerate(told))
    if model is None:
        return Definition(None, (*twice, *problems), written)
    # The order of a list may be what was meant.
    is_list = any(key.isdigit() for key in written.values())
    has_ways = not is_list or any(node.after for node in model.nodes.values())
    is_whole = has_ways and keeps_ways([*faults, *more], value, written)
    return Definition(model, (*twice, *problems), written, is_whole)


def as_written(problems: Sequence[Problem], written: Mapping[str, str]) -> tuple[Problem, ...]:
    """Return the problems where the document has them.
    What is wrong with a value under the key that was meant is no other one.

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
    """Return true if the problem is about the whole value under a guessed key. A list's item has no key."""
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
    """Return the fault in plain words."""
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
    """Return a suggestion for a key that is not known; empty without one."""
    if near := nearest_valid_form(location):
        return f"did you mean `{near}`?"
    return _advice(location, value) or _of_no_kind(location, document)


def _home(location: Sequence[Any], document: Any) -> tuple[str, ...]:
    """Return the place in its node of a key that stands elsewhere; empty if that is not known."""
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
    """Return the message for a key without a value, which in YAML is a line begun and forgotten."""
    field = fields_around(location).get(location[-1])
    return NO_VALUE if field is None or field.is_required() else f"{NO_VALUE}, or leave the field out"


def _told(faults: Faults, document: Any) -> list[Any]:
    """Return the faults without those of a missing key that is there, misspelt."""
    lacking = {fault["loc"][:-1] for fault in faults if fault["type"] == "missing"}
    unknown = [fault["loc"] for fault in faults if fault["type"] == "extra_forbidden"]
    misspelt = {(*at[:-1], nearest_valid_form(at)) for at in unknown[:MAX_HINTS] if at[:-1] in lacking}
    strays = [fault["loc"] for fault in faults if fault["type"] in ("extra_forbidden", "model_type")]
    misspelt |= {(*at[:2], *_home(at, document)) for at in strays[:MAX_HINTS]}
    return [fault for fault in faults if fault["type"] != "missing" or fault["loc"] not in misspelt]


def _meant(location: Sequence[Any], value: Any) -> str:
    """Return a suggestion for a value that must be an object; empty without a guess."""
    if list(location) == ["nodes"]:
        return f"write each node under its name: `nodes: {{first: {{{SIMPLEST}: NAME}}}}`"
    if location[0] != "nodes" or not isinstance(value, str | list):
        return ""
    if len(location) == 2:
        return f"write `{{{SIMPLEST}: {document_form(value)}}}`" if isinstance(value, str) else ""
    if len(location) == 3 and location[-1] in BY_KEY:
        return BY_KEY[location[-1]].nearest_valid_form(value)
    return (
        f"write `loop: {{while: {document_form(value)}}}`"
        if location[-1] == "loop" and len(location) == 3
        else ""
    )


def _advice(location: Sequence[Any], value: Any) -> str:
    said = advice(location)
    if said == OTHER_END and isinstance(value, str):
        return f"write `after: {location[1]}` at `{document_form(value)}`; a `branch` chooses between nodes"
    return said


def _of_no_kind(location: Sequence[Any], document: Any) -> str:
    """Return the message about an unknown key of a node without a kind."""
    node = document["nodes"][location[1]] if len(location) == 3 and location[0] == "nodes" else {}
    if not 0 < len(node) <= _MOST_KEYS:
        return ""
    keys = {key if key in BY_KEY else nearest_valid_form(("nodes", "", key)) for key in node}
    return f"a node has exactly one of {', '.join(KINDS)}" if BY_KEY.keys().isdisjoint(keys) else ""
