"""Parts of a saga's input that may be left out, where a tool or a child cannot do without.

Belongs here: what the input's schema says of that. Does not belong here: types (expressions.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from baton.core.conditions.schemapaths import Schema
from baton.core.expressions import Path
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.source import Source


def check(source: Source, place: str, path: Path, taker: str, key: str) -> Iterator[Problem]:
    """An argument that is needed, and one expression that gives nothing when the input has no such field."""
    if path.root != "input" or path.optional or (part := _left_out(source, path)) is None:
        return
    text, name, schema = part
    if _is_asked_for(source, text, name):
        return
    is_filled = isinstance(schema, dict) and "default" in schema
    default = "; a `default` is not filled in" if is_filled else ""
    message = f"`{path.text}`: the input may be without `{name}`, and `{taker}` needs `{key}`{default}"
    hint = f"add `{name}` to `required` of the input's schema, or let the node run `when: has({text})`"
    yield Problem(place, message, hint)


def _left_out(source: Source, path: Path) -> tuple[str, str, Any] | None:
    """(expression, name, schema) of the first part of the path that the input may be without."""
    root = source.model.input
    here = Schema(root, root).resolved()
    for taken, step in enumerate(path.inner):
        fields = here.value.get("properties") if isinstance(here.value, dict) else None
        if not isinstance(fields, dict) or step not in fields:
            return None  # of which nothing is known, or which has been told
        required = here.value.get("required")
        if not isinstance(required, list) or step not in required:
            return path.up_to(taken + 1), str(step), fields[step]
        here = Schema(fields[step], root).resolved()
    return None


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
