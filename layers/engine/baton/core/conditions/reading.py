"""Values that expressions name: one at a time, or gathered and pruned to the named parts.

Values are composed in the form that CEL and Python read. The grammar of expressions is in
core/expressions.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

from baton.core.conditions.model import MISSING, ConditionError
from baton.core.expressions import ExpressionError, Lookup, Path, parse, walk

path_of = lru_cache(maxsize=4_096)(parse)
"""`parse`, with a cache."""


def expression_text(root: str, steps: Iterable[str | int], optional: bool = False) -> str:
    """Return the expression of these steps, as written between `${` and `}`."""
    text = root
    for index, step in enumerate(steps):
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier() and step.isascii():
            text += f".{step}"
        else:
            text += f"['{step}']" if '"' in step else f'["{step}"]'
        if optional and index == 1:
            text += "?"
    return text


def value_of(text: str, lookup: Lookup) -> Any:
    """Return the value of an expression. Raises `ConditionError` if there is none."""
    path = path_of(text)
    try:
        return walk(path.picked(lookup), lookup(path))
    except ExpressionError as error:
        raise ConditionError(MISSING, f"{error}") from error


def prune(value: Any, wanted: Collection[tuple[str, ...]]) -> Any:
    """Return the value with only the parts on one of the paths in `wanted`. Missing parts are left out."""
    if not isinstance(value, dict):
        return value if () in wanted else _hollow(value)
    parts: dict[str, list[tuple[str, ...]]] = {}
    for way in wanted:
        if not way:
            return value
        parts.setdefault(way[0], []).append(way[1:])
    return {key: prune(value[key], rest) for key, rest in parts.items() if key in value}


def _hollow(value: Any) -> Any:
    """Return an empty value of the same type: a condition reads no key of it, but can see its type."""
    return type(value)() if isinstance(value, (list, str)) else value


def _filled(value: Any, keys: tuple[str, ...], marks: Collection[int], taken: int = 1) -> Any:
    """Return the value, with null for the first missing part on this path if that part is optional."""
    if not keys or not isinstance(value, dict):
        return value
    key = keys[0]
    if key not in value:
        return {**value, key: None} if taken in marks else value
    return {**value, key: _filled(value[key], keys[1:], marks, taken + 1)}


def keys_of(path: Path) -> tuple[str, ...]:
    """Return the inner steps up to the first index, which is the limit of pruning."""
    keys: list[str] = []
    for step in path.inner:
        if not isinstance(step, str):
            break
        keys.append(step)
    return tuple(keys)


def gather(paths: Iterable[Path], lookup: Lookup, asked: Iterable[Path] = ()) -> dict[str, Any]:
    """Return the values that the paths name, by root and pruned; nodes stand under `ctx`.
    Missing values are left out.

    For paths in `asked` only the presence of a value matters; alone, they yield null.
    """
    named = tuple(paths)
    sources: dict[tuple[str, ...], list[Path]] = {}
    for path in (*named, *asked):
        key: tuple[str, ...] = (path.root,)
        if path.root == "ctx":
            key = (path.root, path.node, str(path.steps[1]))
        elif path.root == "join":  # its fields are looked up one by one: another one may be large
            key = (path.root, str(path.steps[0]))
        sources.setdefault(key, []).append(path)
    found: dict[str, Any] = {}
    for key, source in sources.items():
        try:
            value = lookup(source[0])
        except ExpressionError:
            continue
        wanted = [keys_of(path) for path in source if path in named]
        pruned = prune(value, wanted) if wanted else None
        for path in source:
            pruned = _filled(pruned, keys_of(path), path.marks) if path.marks else pruned
        if len(key) == 3:
            found.setdefault("ctx", {}).setdefault(key[1], {})[key[2]] = pruned
        else:
            found[key[0]] = pruned if len(key) == 1 else found.get(key[0], {}) | pruned
    return found
