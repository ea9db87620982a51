"""Repairs a document whose shape is wrong, so that the rest of it can be checked too.

A key that is nearly one that is missing counts as that one, which is what its author will make of it. What is wrong
otherwise is left out, or something harmless takes its place, but the edges between the nodes stay: without them, other
nodes would be told of what is not their fault.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial, reduce
from itertools import islice
from operator import getitem
from typing import Any

from pydantic import ValidationError

from baton.core.documents.models import WorkflowModel
from baton.core.documents.nodes.base import COMMON
from baton.core.documents.nodes.node_model import BY_KEY, NodeModel
from baton.core.documents.nodes.registry import HOLDER, NODE_TYPES, STAND_IN
from baton.core.documents.parts.fields import MAX_NODES
from baton.core.documents.places import MAX_HINTS, belongs, fields_around, meant, pointer_of, there, unshared
from baton.core.expressions import escape
from baton.errors import Problem

Faults = Sequence[Any]
Written = dict[str, str]
"""By pointer to a key that was meant: the key that is written there, or the number of an item of a list."""
_Object = dict[str, Any]
# One that may hold or not, as the one that was meant.
_SOME_CONDITION = "loop.iteration > 1"
_SOME_CODE = "child_failed"  # that a node of any kind may have


def mended(document: _Object, faults: Faults, written: Written) -> tuple[WorkflowModel | None, Faults]:
    """The document without its faults, and those that come to light only then; None if there are no nodes.

    These are where the document would have them if it had the keys that were meant, which are added to `written`.
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
    """The value once nothing is wrong with it, and what came to light meanwhile.

    It comes to an end: a repair leaves no key that is unknown, and nothing in a field that was wrong.
    """
    more: list[Any] = []
    while faults:
        value = repair(value, faults)
        faults = check(value)
        more += [{**fault, "loc": tuple(there(fault["loc"], value))} for fault in faults]
    return value, more


def faults_of_document(document: _Object) -> Faults:
    """What is wrong with the shape of a document."""
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
    """The value with each unknown key under the one that was meant, if that is free, or else without it.

    `before` leads to the value in its document. What is moved is added to `written`.
    """
    unknown = [there(fault["loc"], value) for fault in faults if fault["type"] == "extra_forbidden"]
    if not unknown:
        return value
    value = unshared(value)
    objects = [reduce(getitem, location[:-1], value) for location in unknown]
    held = [owner.pop(location[-1]) for owner, location in zip(objects, unknown, strict=True)]
    for owner, location, item in zip(objects[:MAX_HINTS], unknown, held, strict=False):
        known = meant((*before, *location))
        if known and known not in owner and not (before and belongs((*before, *location), value)):
            owner[known] = item
            written[pointer_of((*before, *location[:-1], known))] = escape(location[-1])
    return value


# ---- the document ----------------------------------------------------------------------------------------------


def rearranged(document: _Object, written: Written) -> tuple[_Object, list[Problem]]:
    """The document with its nodes by their names under `nodes`, and the problem of their standing elsewhere.

    What is moved is added to `written`.
    """
    problems = []
    if "nodes" not in document:
        key = next((key for key in islice(document, MAX_HINTS) if meant((key,)) == "nodes"), "")
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
    """By the name of a node without anything below it: the keys of a node that follow it, as they do in YAML that is not
    indented.
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
    """Nodes of a list by what they call themselves; empty if not each has a name of its own."""
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
    """Those that are broken allow everything, so that they can still be asked for by their names, if these are any."""
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
    """A branch to the same nodes."""
    branch = value if isinstance(value, dict) else {}
    rules = branch.get("rules")
    parts = [branch.get("among"), branch.get("default")]
    parts += [rule.get("then") for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
    found = _existing([name for part in parts for name in _texts(part)], names)
    return {"rules": [{"if": "true", "then": found}]} if found else None


def _loop(value: Any, names: Collection[str]) -> _Object | None:
    """A loop over the same nodes, with the same edges out."""
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
    """Rules that lead to the same nodes."""
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
    """Whether what is wrong can have nothing to do with the edges between the nodes.

    A key that is not known, and that no known one stands for, is an edge between nodes only if it names one.
    """
    return all(
        _keeps_ways(fault, document["nodes"], written) for fault in faults if fault["loc"][0] == "nodes"
    )


def _keeps_ways(fault: Any, nodes: _Object, written: Written) -> bool:
    location = fault["loc"]
    if fault["type"] == "extra_forbidden":
        taken = pointer_of((*location[:-1], meant(location)))
        return written.get(taken) == escape(location[-1]) or not _names_one(fault["input"], nodes)
    if len(location) < 3 or location[-1] == "[key]":
        return isinstance(nodes[location[1]], dict)
    return location[2] != "when" and location[2] not in _EDGES


def _names_one(value: Any, names: Collection[str]) -> bool:
    if isinstance(value, (dict, list)):
        return any(_names_one(item, names) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and value in names
