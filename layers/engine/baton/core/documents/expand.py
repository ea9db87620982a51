"""Nodes of an application's own kinds become nodes of built-in kinds,
before anything else reads the document.

The last node of an expansion has the name that its author gave, so that its output
is read by that; the others have names that no node of the document has. What leads
to the node leads to the first. What is wrong inside is told at the author's node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import ValidationError

from baton.core.documents.models import BY_KEY, KINDS, RESERVED
from baton.core.documents.nodes.own import AT_THE_BEGIN, AT_THE_END, FIELDS, OwnKind, OwnKinds
from baton.core.documents.nodes.registry import HOLDER
from baton.core.expressions import escape, nearest
from baton.core.graph.graph import NODE_NAME
from baton.errors import Problem

_Object = dict[str, Any]
_ALIKE = 0.8


class Written(NamedTuple):
    """Origin of a node of an expansion: the author's node, the key of its kind, and its other fields."""

    name: str
    key: str
    rest: Mapping[str, Any]


@dataclass
class Expansion:
    """A document without own kinds, the problems of those that it had, and the origin of its nodes."""

    value: Any
    problems: list[Problem] = field(default_factory=list)
    origin: dict[str, Written] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    """By the author's node, the first of its expansion, where that has another name."""

    def for_author(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Return the problems where the author can mend them, each once."""
        return tuple(dict.fromkeys(map(self._at_its_author, problems)))

    def _at_its_author(self, problem: Problem) -> Problem:
        _, *steps = problem.path.split("/")
        written = self.origin.get(steps[1]) if len(steps) > 1 and steps[0] == "nodes" else None
        if written is None:
            return problem
        below = steps[2:]
        if below and below[0] not in written.rest:
            below = [escape(written.key)]
        return replace(problem, path="/".join(("", "nodes", written.name, *below)))


class _Refused(Exception):
    """An expansion that cannot be. `below`: where, from the node on."""

    def __init__(self, below: str, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.below, self.suggestion = below, suggestion


def expand_own_kinds(document: Any, kinds: OwnKinds) -> Expansion:
    """Replace each node of an own kind of the document by the nodes that it stands for."""
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, dict):
        return Expansion(document)
    found, made = Expansion(document), _Object()
    for key in kinds.keys() & RESERVED:
        message = f"`{key}` cannot be the name of a kind of node of an application"
        found.problems.append(Problem("", message, "give the kind another name"))
    kinds = {key: kind for key, kind in kinds.items() if key not in RESERVED}
    for name, node in nodes.items():
        key = _key_of(node, kinds)
        if not key:
            made[name] = node
            continue
        kind = kinds.get(key) or kinds[_near(key, kinds)]
        if key not in kinds:
            hint = f"did you mean `{kind.key}`?"
            found.problems.append(Problem(_at(name, f"/{escape(key)}"), f"`{key}` is not known here", hint))
        rest = {other: value for other, value in node.items() if other != key}
        names = _Names(name, nodes.keys() | made.keys())
        try:
            inner = _nodes_of(kind, node[key], rest, names)
        except ValidationError as error:
            found.problems += _faults(error, name, key, kind)
            inner = _stand_in(name, rest)
        except _Refused as error:
            below = error.below.replace(f"/{kind.key}", f"/{escape(key)}", 1)
            found.problems.append(Problem(_at(name, below), str(error), error.suggestion))
            inner = _stand_in(name, rest)
        made |= inner
        found.origin |= dict.fromkeys(inner, Written(name, key, rest))
        if (first := next(iter(inner))) != name:
            found.first[name] = first
    if found.origin:
        found.value = _led_to_first({**document, "nodes": made}, found)
    return found


def _near(key: str, kinds: OwnKinds) -> str:
    """Return the own kind that a key nearly is, or an empty string."""
    return next(iter(get_close_matches(key, kinds, n=1, cutoff=_ALIKE)), "")


def _key_of(node: Any, kinds: OwnKinds) -> str:
    """Return the key that makes the node one of an own kind, if only nearly."""
    if not isinstance(node, dict):
        return ""
    if own := [key for key in node if key in kinds]:
        return str(own[0])
    if not BY_KEY.keys().isdisjoint(node):
        return ""
    unknown = (key for key in node if isinstance(key, str) and key not in FIELDS)
    return next((key for key in unknown if _near(key, kinds)), "")


class _Names:
    """Names for the nodes of an expansion, which no other node has."""

    def __init__(self, author: str, taken: Iterable[str]) -> None:
        self._author, self._taken = author, set(taken)
        self._given: dict[str, str] = {}

    def __call__(self, step: str) -> str:
        if step not in self._given:
            name = f"{self._author}__{step}"
            while name in self._taken:
                name += "_"
            self._given[step] = name
            self._taken.add(name)
        return self._given[step]

    def last(self, step: str) -> None:
        self._given[step] = self._author


def _nodes_of(kind: OwnKind, fields: Any, rest: Mapping[str, Any], names: _Names) -> _Object:
    read: Any = kind.model.model_validate(fields)
    try:
        steps = list(read.nodes(names))
        names.last(steps[-1])
        inner = {step: dict(node) for step, node in read.nodes(names).items()}
    except Exception as error:
        raise _Refused(f"/{kind.key}", f"`{kind.key}` cannot be expanded: {error!r}") from error
    _check(kind, inner, rest, names)
    first, last = inner[steps[0]], inner[steps[-1]]
    first |= {key: rest[key] for key in AT_THE_BEGIN if key in rest}
    # Problems of unknown fields, or of fields of other kinds, are told where the fields stand.
    known = (*AT_THE_BEGIN, "catch")
    last |= {key: value for key, value in rest.items() if key not in known}
    if isinstance(loop := last.get("loop"), dict) and "loop" in rest and len(inner) > 1:
        last["loop"] = {"back_to": names(steps[0]), **loop}
    if "catch" in rest:
        inner = {step: {"catch": rest["catch"], **node} for step, node in inner.items()}
    return {names(step): node for step, node in inner.items()}


def _check(kind: OwnKind, inner: Mapping[str, _Object], rest: Mapping[str, Any], names: _Names) -> None:
    (first, *others), last, at = inner, list(inner)[-1], f"/{kind.key}"
    for step in inner:
        if not re.fullmatch(NODE_NAME, names(step)):
            what = f"`{names(step)}` cannot be the name of a node, and `{kind.key}` makes one of it"
            raise _Refused("", what, "give this node a shorter name")
    named = str([node.get(way) for node in inner.values() for way in ("branch", "loop", "catch")])
    for step in others:
        if "after" not in inner[step] and repr(names(step)) not in named:
            raise _Refused(at, f"`{kind.key}` makes a node `{step}` that comes after none of its others")
    for owner, keys in ((first, AT_THE_BEGIN), (last, AT_THE_END)):
        for key in keys:
            if key in rest and key in inner[owner]:
                raise _Refused(f"/{key}", f"the kind `{kind.key}` itself says `{key}`", "leave it out here")
    for key in sorted(rest.keys() & RESERVED - set(FIELDS)):
        if key in BY_KEY:
            raise _Refused("", f"a node has exactly one of {', '.join(KINDS)}, {kind.key}")
        message = f"a node of kind `{kind.key}` takes no `{key}`: what it needs stands under `{kind.key}`"
        raise _Refused(f"/{key}", message)


def _stand_in(name: str, rest: Mapping[str, Any]) -> _Object:
    kept = {key: value for key, value in rest.items() if key in FIELDS or key not in RESERVED}
    return {name: {**kept, HOLDER: None, "output_schema": True}}


def _faults(error: ValidationError, name: str, key: str, kind: OwnKind) -> Iterator[Problem]:
    faults = error.errors(include_url=False)
    unknown = [str(fault["loc"][-1]) for fault in faults if fault["type"] == "extra_forbidden"]
    for fault in faults:
        *_, step = "", *fault["loc"]
        message, hint = fault["msg"].removeprefix("Value error, "), ""
        place = fault["loc"]
        if fault["type"] == "missing":
            if get_close_matches(str(step), unknown):
                continue  # it is there, misspelt
            message, place = f"`{step}` is missing", place[:-1]
        elif fault["type"] == "extra_forbidden":
            message, hint = f"`{step}` is not known here", nearest(str(step), kind.model.model_fields)
        yield Problem(_at(name, "".join(f"/{escape(one)}" for one in (key, *place))), message, hint)


def _at(name: str, below: str) -> str:
    return f"/nodes/{escape(name)}{below}"


# ---- what leads to a node leads to the first of its expansion -------------------------------------------------


def _led_to_first(document: _Object, found: Expansion) -> _Object:
    if not found.first:
        return document
    nodes = {name: _led(name, node, found) for name, node in document["nodes"].items()}
    document = {**document, "nodes": nodes}
    rails = document.get("guardrails")
    if isinstance(rails, dict) and isinstance(allowed := rails.get("allowed_transitions"), dict):
        allowed = {src: _first(names, found.first) for src, names in allowed.items()}
        document["guardrails"] = {**rails, "allowed_transitions": allowed}
    return document


def _led(name: str, node: Any, found: Expansion) -> Any:
    if not isinstance(node, dict):
        return node
    ways: Mapping[str, Callable[[Any], Any]] = {
        "branch": lambda branch: _each(
            branch, found.first, "default", "among", rules=lambda rules: _thens(rules, found.first)
        ),
        "loop": lambda loop: _each(loop, found.first, "back_to", "break_path", "timeout_path"),
        "catch": lambda rules: _thens(rules, found.first),
    }
    branch = node.get("branch")
    for index, target in enumerate(_list(branch.get("among")) if isinstance(branch, dict) else ()):
        if target in found.first:
            message = f"`choose` cannot name `{target}`, which begins with another node"
            hint = f"let a node with a `value` come before `{target}`, and name that"
            found.problems += found.for_author([Problem(_at(name, f"/branch/among/{index}"), message, hint)])
    return {key: ways[key](value) if key in ways else value for key, value in node.items()}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _each(value: Any, first: Mapping[str, str], *keys: str, **more: Callable[[Any], Any]) -> Any:
    if not isinstance(value, dict):
        return value
    make = dict.fromkeys(keys, lambda names: _first(names, first)) | more
    return {key: make[key](item) if key in make else item for key, item in value.items()}


def _thens(rules: Any, first: Mapping[str, str]) -> Any:
    """Return the rules with names in place of them."""
    if isinstance(rules, list):
        return [_thens(rule, first) for rule in rules]
    return _each(rules, first, "then") if isinstance(rules, dict) else _first(rules, first)


def _first(names: Any, first: Mapping[str, str]) -> Any:
    if isinstance(names, list):
        return [_first(name, first) for name in names]
    return first.get(names, names) if isinstance(names, str) else names
