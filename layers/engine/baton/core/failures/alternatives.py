"""Alternatives to a tool: `ways_of` makes them from the declarations of tools, and `choose` returns the next.

Their use is decided in strategies/ and carried out in runtime/invocation/attempt.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from baton.core.effects.toolspec import ONCE, Merits, ToolSpec
from baton.core.expressions import nearest, with_hint
from baton.core.failures.policy import HOOKS

Specs = Mapping[str, ToolSpec]

FAILURE, ARGUMENTS, TOOL = "failure", "arguments", "tool"
GIVEN = (FAILURE, ARGUMENTS, TOOL)
"""Parameters that the engine passes to a tool which carries out a hint or a hook; others are arguments of the
step.
"""

ANOTHER = (
    "fallback_model",
    "alternative_provider",
    "alternative_source",
    "alternative_path",
    "find_alternative_resource",
)
"""The hints that another value of a parameter carries out."""

_IN_PARTS = Merits(cost=1.5, latency=1.3)
_LONGEST_VALUE = 60


class Alternative(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """An alternative to a tool. `hints` are the hints that it carries out; empty: any.

    `tool` is called in place of the step's tool (`first` False), or before it (`first` True); its output then
    replaces the arguments of the same names. `arguments` replace those of the same names, too. `shorten` and
    `chunk` name the argument that is shortened, or passed in parts.
    """

    name: str
    hints: tuple[str, ...] = ()
    tool: str = ""
    first: bool = False
    arguments: dict[str, Any] = {}
    shorten: str = ""
    chunk: str = ""


def choose(hints: Iterable[str], ways: Sequence[Alternative], used: Collection[str]) -> Alternative | None:
    """Return the best alternative for the first hint that has one left; else the best one that fits any hint.

    `used` are the names of the alternatives that were tried.
    """
    left = [way for way in ways if way.name not in used]
    for hint in hints:
        for way in left:
            if hint in way.hints:
                return way
    return next((way for way in left if not way.hints), None)


def score(merits: Merits) -> float:
    """Return the score of an alternative, for comparisons.

    Above twice the usual cost or latency the score stays the same.
    """
    return (
        _within(merits.reliability, 0) * 30
        + (1 - _within(merits.cost, 0, 2)) * 20
        + (1 - _within(merits.latency, 0, 2)) * 15
        + _within(merits.fit, 0) * 25
        + _within(merits.preference, 0) * 10
    )


def ways_of(tool: str, specs: Specs) -> tuple[Alternative, ...]:
    """Return all alternatives to a tool, the best first, from the tools that may run.

    They are tools that can stand in for it, tools that carry out a hint before it, other values of its
    parameters, a shorter context, and the context in parts. An unknown tool has none.
    """
    spec = specs.get(tool)
    if spec is None:
        return ()
    ways: dict[str, tuple[float, Alternative]] = {}
    for merits, way in (*_instead(spec, specs), *_before(spec, specs), *_values(spec), *_context(spec)):
        ways.setdefault(way.name, (score(merits), way))
    # Sorting keeps what is equal in its order: that of names, and of the values as they were written.
    return tuple(way for _, way in sorted(ways.values(), key=lambda pair: -pair[0]))


def hooks_of(tool: str, specs: Specs) -> dict[str, str]:
    """Return, by hook or hint, the tool that carries it out for this one: the most exact match, then the
    best.
    """
    spec = specs.get(tool)
    if spec is None:
        return {}
    found: dict[str, tuple[tuple[float, ...], str]] = {}
    for one in _remedies(spec, specs):
        rank = (-_exactness(one.for_tools, tool), -score(one.merits))
        for name in one.carries_out:
            if name not in found or rank < found[name][0]:
                found[name] = (rank, one.name)
    return {name: found[name][1] for name in sorted(found)}


def way_by(name: str, tool: str, specs: Specs) -> Alternative | None:
    """Return the alternative for a hint that is the name of a tool; None if that tool can neither stand in
    nor help.

    A tool that carries out a hint is called before the step's own tool, and so is a tool with other
    parameters. A tool that may act only once is never called before, because that call is not claimed.
    """
    spec, other = specs.get(tool), specs.get(name)
    if spec is None or other is None or name == tool:
        return None
    if not other.carries_out and not misfit(other, spec):
        return Alternative(name=name, tool=name, hints=(name,))
    if other.effect == ONCE or _unaided(other, spec):
        return None
    return Alternative(name=f"{name} first", tool=name, hints=(name,), first=True)


# ---- what fits together --------------------------------------------------------------------------------------------


def misfit(other: ToolSpec, spec: ToolSpec) -> str:
    """Return the reason why one tool cannot stand in for another; empty if it can."""
    takes, needs = _properties(other), _required(spec)
    if other.parameters.get("additionalProperties") is False:
        for name in needs:
            if name not in takes:
                return f"it takes no `{name}`"
    for name in _required(other):
        if name not in needs:
            return f"it needs `{name}`, which `{spec.name}` can do without"
    return misfit_of_result(other, spec)


def misfit_of_result(other: ToolSpec, spec: ToolSpec) -> str:
    """Return the reason why the result of one tool cannot stand for another's; empty if it can."""
    theirs, ours = kinds_of(other.result), kinds_of(spec.result)
    is_heard = ours and ours != {"null"}
    if theirs and is_heard and not theirs <= (ours | {"integer"} if "number" in ours else ours):
        return f"it gives {_or(theirs)}, and `{spec.name}` gives {_or(ours)}"
    if ours == theirs == {"object"}:
        properties = _resolved(other.result, other.result).get("properties", {})
        for name in _resolved(spec.result, spec.result).get("required", ()):
            if properties and name not in properties:
                return f"what it gives has no `{name}`"
    return ""


def declaration_problems(specs: Specs) -> Iterator[tuple[str, str]]:
    """Yield the contradictions between the declarations of tools: the tool's name, and the problem.

    A pattern means the tools that fit it; a name means that tool.
    """
    for spec in specs.values():
        if spec.verify:
            yield from ((spec.name, f"verify: {why}") for why in _verify(spec, specs))
        for field, patterns, against in (
            ("instead_of", spec.instead_of, misfit),
            ("for_tools", spec.for_tools, _unaided),
        ):
            for pattern in patterns:
                found = [one for one in specs.values() if one is not spec and fnmatchcase(one.name, pattern)]
                reasons = [why for one in found if (why := against(spec, one))]
                if not found and "*" not in pattern:
                    hint = nearest(pattern, (name for name in specs if name != spec.name))
                    yield spec.name, with_hint(f"{field}: there is no tool `{pattern}`", hint)
                elif reasons and len(reasons) == len(found):
                    yield spec.name, f"{field}: for `{pattern}` it cannot be called: {reasons[0]}"


def _verify(spec: ToolSpec, specs: Specs) -> Iterator[str]:
    other = specs.get(spec.verify)
    if other is None:
        yield with_hint(f"there is no tool `{spec.verify}`", nearest(spec.verify, specs))
        return
    if other.effect == ONCE:
        yield f"`{spec.verify}` has the effect `once` itself; a tool that only looks is `pure` or `idempotent`"
    takes = _properties(spec)
    for name in _required(other):
        if name not in takes:
            yield f"`{spec.verify}` needs `{name}`, which `{spec.name}` does not take"


def _unaided(remedy: ToolSpec, spec: ToolSpec) -> str:
    """Return the reason why a tool that carries out a hint cannot be called for another; empty if it can."""
    for name in _required(remedy):
        if name not in GIVEN and name not in _required(spec):
            return f"it needs `{name}`, which `{spec.name}` does not always have"
    return ""


# ---- the alternatives ----------------------------------------------------------------------------------------------


def _instead(spec: ToolSpec, specs: Specs) -> Iterator[tuple[Merits, Alternative]]:
    for name in sorted(specs):
        other = specs[name]
        if name == spec.name or not _any(other.instead_of, spec.name) or misfit(other, spec):
            continue
        yield other.merits, Alternative(name=name, hints=other.hints, tool=name)


def _before(spec: ToolSpec, specs: Specs) -> Iterator[tuple[Merits, Alternative]]:
    for other in _remedies(spec, specs):
        hints = tuple(name for name in other.carries_out if name not in HOOKS)
        if hints:
            yield (
                other.merits,
                Alternative(name=f"{other.name} first", hints=hints, tool=other.name, first=True),
            )


def _remedies(spec: ToolSpec, specs: Specs) -> Iterator[ToolSpec]:
    """Yield the tools that carry out a hint or a hook for this one, by name."""
    for name in sorted(specs):
        other = specs[name]
        fits = other.carries_out and name != spec.name and _any(other.for_tools or ("*",), spec.name)
        if fits and not _unaided(other, spec):
            yield other


def _values(spec: ToolSpec) -> Iterator[tuple[Merits, Alternative]]:
    for parameter, values in spec.fallbacks.items():
        for number, value in enumerate(values, 1):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            shown = f"={text}" if len(text) <= _LONGEST_VALUE else f" #{number}"
            yield (
                Merits(),
                Alternative(name=f"{parameter}{shown}", hints=ANOTHER, arguments={parameter: value}),
            )


def _context(spec: ToolSpec) -> Iterator[tuple[Merits, Alternative]]:
    if not spec.context:
        return
    yield (
        Merits(),
        Alternative(name=f"{spec.context} shorter", hints=("truncate_context",), shorten=spec.context),
    )
    # What only happens once must not happen once for each part.
    if spec.effect != ONCE and kinds_of(spec.result) in ({"string"}, {"array"}):
        yield (
            _IN_PARTS,
            Alternative(name=f"{spec.context} in parts", hints=("chunk_context",), chunk=spec.context),
        )


# ---- schemas and patterns ------------------------------------------------------------------------------------------


def kinds_of(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> frozenset[str]:
    """Return JSON's types that a schema allows; empty: any. `root` has its definitions."""
    root = schema if root is None else root
    schema = _resolved(schema, root)
    if "anyOf" in schema:
        each = [kinds_of(one, root) for one in schema["anyOf"]]
        return frozenset().union(*each) if all(each) else frozenset()
    said = schema.get("type", ())
    return frozenset((said,) if isinstance(said, str) else said)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a reference names, or the schema itself."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    found: Mapping[str, Any] = root.get("$defs", {}).get(name, schema)
    return found


def _properties(spec: ToolSpec) -> Collection[str]:
    found: Collection[str] = spec.parameters.get("properties", {})
    return found


def _required(spec: ToolSpec) -> Sequence[str]:
    found: Sequence[str] = spec.parameters.get("required", ())
    return found


def _any(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _exactness(patterns: Iterable[str], name: str) -> int:
    """Return the length of the most exact of the patterns that fit a name; the name itself counts most."""
    fitting = (pattern for pattern in patterns if fnmatchcase(name, pattern))
    return max((2 * len(pattern.replace("*", "")) + ("*" not in pattern) for pattern in fitting), default=0)


def _or(kinds: Iterable[str]) -> str:
    return " or ".join(f"`{kind}`" for kind in sorted(kinds))


def _within(value: float, least: float, most: float = 1) -> float:
    return min(max(value, least), most)


_SPACE = re.compile(r"\s+")
_LONGEST_WORD = 100
_SYSTEM = frozenset({"system", "developer"})
_OF_PARTS = frozenset({"text", "image", "file", "name"})


def drop_older_half(value: Any) -> Any:
    """Return the value without its older half; the value itself if nothing can be left out.

    It may be shortened again.
    Of a text the second half stays, from a word's beginning on.
    Of messages the system's and the last stay; if there are no others, the last is shortened itself.
    Of the parts of a prompt, with images and files, none is left out.
    Of any other list the second half of its items stays.
    """
    if isinstance(value, str):
        return _from_middle(value)
    if not isinstance(value, list) or not value:
        return value
    if all(isinstance(one, dict) and one.keys() <= _OF_PARTS for one in value):
        return value
    if not _are_messages(value):
        return value[len(value) // 2 :] if len(value) > 1 else [drop_older_half(value[0])]
    system, middle, last = _sorted_out(value)
    if middle:
        return [*system, *_from_question(middle[(len(middle) + 1) // 2 :]), *last]
    return [*system, *(_with_content(message, drop_older_half(message.get("content"))) for message in last)]


def split_value(value: Any, count: int) -> list[Any]:
    """Return the value in `count` parts, or in as many as it has; one part if it cannot be divided.

    Each part of messages has the system's and the last, because these have the task.
    """
    if isinstance(value, str):
        return _texts(value, count)
    if not isinstance(value, list) or not value:
        return [value]
    if not _are_messages(value):
        return _slices(value, count) if len(value) > 1 else [[part] for part in split_value(value[0], count)]
    system, middle, last = _sorted_out(value)
    if middle:
        return [[*system, *part, *last] for part in _slices(middle, count)]
    if not last:
        return [value]
    contents = split_value(last[0].get("content"), count)
    return [[*system, _with_content(last[0], content)] for content in contents]


def combine_results(results: Sequence[Any], *, as_list: bool = False) -> Any:
    """Return one result from those of the parts: texts below each other, lists one behind the other.

    Other results make a list, if that is allowed. Raises `ValueError`.
    """
    if all(isinstance(result, str) for result in results):
        return "\n".join(results)
    if all(isinstance(result, list) for result in results):
        return [item for result in results for item in result]
    if as_list:
        return list(results)
    raise ValueError("the results for the parts are neither all texts nor all lists")


# ---- texts ---------------------------------------------------------------------------------------------------------


def _from_middle(text: str) -> str:
    if len(text) < 2:
        return text
    return text[_boundary(text, len(text) // 2) :].lstrip() or text[len(text) // 2 :]


def _texts(text: str, count: int) -> list[str]:
    size = -(-len(text) // count)
    parts, begin = [], 0
    while len(text) - begin > size:
        end = _boundary(text, begin + size)
        parts.append(text[begin:end].strip())
        begin = end
    parts.append(text[begin:].strip())
    return [part for part in parts if part] or [text]


def _boundary(text: str, at: int) -> int:
    """Return the next beginning of a word, if one is near; words without end are cut."""
    found = _SPACE.search(text, at - 1, at + _LONGEST_WORD)
    return found.end() if found and found.end() < len(text) else at


# ---- lists ---------------------------------------------------------------------------------------------------------


def _slices(items: list[Any], count: int) -> list[list[Any]]:
    size = -(-len(items) // count)
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def _are_messages(items: list[Any]) -> bool:
    return all(isinstance(item, dict) and isinstance(item.get("role"), str) for item in items)


def _sorted_out(messages: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the system's messages, the others, and the last of them."""
    system = [message for message in messages if message["role"] in _SYSTEM]
    others = [message for message in messages if message["role"] not in _SYSTEM]
    return system, others[:-1], others[-1:]


def _from_question(messages: list[Any]) -> list[Any]:
    """Return the messages without answers of tools at the beginning, whose questions are missing."""
    for index, message in enumerate(messages):
        if message["role"] != "tool":
            return messages[index:]
    return []


def _with_content(message: dict[str, Any], content: Any) -> dict[str, Any]:
    return {**message, "content": content} if "content" in message else message
