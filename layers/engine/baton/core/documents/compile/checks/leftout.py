"""Parts of a saga's input that may be left out, where a tool or a child cannot do without.

Only what the input's schema says of that. Types are in expressions.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from baton.core.conditions.reading import text_of
from baton.core.conditions.schemapaths import Schema
from baton.core.documents.compile.checks.known import known_steps
from baton.core.expressions import Path
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source


def check(
    source: Source, place: str, path: Path, taker: str, key: str, *, takes_null: bool
) -> Iterator[Problem]:
    """An argument that is needed, and one expression that gives nothing, or null, when the input has no such field."""
    steps = known_steps(path)
    parts = list(_may_be_missing(source, path)) if path.root == "input" else []
    found = next((part for part in parts if not (takes_null and part[0] in path.marks)), None)
    if found is None:
        return
    taken, schema = found
    name, text = steps[taken - 1], text_of("input", steps[:taken])
    if _is_asked_for(source, text, str(name)):
        return
    is_filled = isinstance(schema, dict) and "default" in schema
    default = "; a `default` is not filled in" if is_filled else ""
    message = f"`{path.text}`: the input may be without `{name}`, and `{taker}` needs `{key}`{default}"
    hint = f"add `{name}` to `required` of the input's schema, or let the node run `when: has({text})`"
    if takes_null:
        marked = _marked(steps, frozenset(taken for taken, _ in parts))
        hint = f"write `${{{marked}}}`, which is null without it; or {hint}"
    yield Problem(place, message, hint)


def _may_be_missing(source: Source, path: Path) -> Iterator[tuple[int, Any]]:
    """The parts of the path that the input may be without: how many steps lead to each, and its schema."""
    root = source.model.input
    here = Schema(root, root).resolved()
    for taken, step in enumerate(path.inner, 1):
        fields = here.value.get("properties") if isinstance(here.value, dict) else None
        if not isinstance(fields, dict) or step not in fields:
            return  # of which nothing is known, or which has been told
        required = here.value.get("required")
        if not isinstance(required, list) or step not in required:
            yield taken, fields[step]
        here = Schema(fields[step], root).resolved()


def _marked(steps: tuple[str | int, ...], marks: frozenset[int]) -> str:
    """The expression with `?` behind what may be missing."""
    texts = [text_of("input", steps[:taken]) for taken in range(len(steps) + 1)]
    marked = (
        text.removeprefix(before) + "?" * (taken in marks)
        for taken, (before, text) in enumerate(pairwise(texts), 1)
    )
    return texts[0] + "".join(marked)


def _is_asked_for(source: Source, text: str, name: str) -> bool:
    """Whether any condition of the document may see to it that the node runs only with it."""
    if text not in source.asked_for:
        source.asked_for[text] = any(_asks(value, text, name) for value in source.asked)
    return source.asked_for[text]


def _asks(value: Any, text: str, name: str) -> bool:
    if isinstance(value, str):
        return re.search(rf"has\(\s*{re.escape(text)}\s*\)", value) is not None
    if isinstance(value, dict) and (inner := value.get("cel")) is not None:
        return _asks(inner, text, name)
    if (
        isinstance(value, dict)
        and (inner := value.get("not", value.get("all", value.get("any")))) is not None
    ):
        return any(_asks(one, text, name) for one in (inner if isinstance(inner, list) else [inner]))
    return name in str(value)  # the other kinds of condition have many ways to ask
