"""What a child workflow is given, held against the input that it takes, where that is known.

Belongs here: arguments of children. Does not belong here: where documents and definitions are looked up, which is the
caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from baton.core.conditions.schemapaths import Schema, in_words
from baton.core.documents.compile.expressions import types
from baton.core.documents.compile.tools import needs, takes
from baton.core.effects.toolspec import PURE, ToolSpec
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.source import Source

Children = Mapping[str, Any]
"""By reference (`NAME` or `NAME@VERSION`): the schema of what a child takes; None for one that takes anything."""


def check(source: Source) -> Iterator[Problem]:
    """What is missing for a child, what it does not take, and what is of another type."""
    for name, node in source.nodes.items():
        schema = source.children.get(node.workflow or "")
        if isinstance(schema, dict):
            yield from _given(source, name, str(node.workflow), schema)


def _given(source: Source, name: str, child: str, schema: dict[str, Any]) -> Iterator[Problem]:
    place, given = f"/nodes/{name}", source.nodes[name].with_
    wanted = Schema(schema, schema).resolved()
    if "object" not in wanted.types():
        message = f"`{child}` takes {in_words(wanted.types())} as its input, and `with` is an object"
        yield Problem(place, message, "let the input of the child be an object")
        return
    properties = wanted.value.get("properties") if isinstance(wanted.value, dict) else None
    if not isinstance(properties, dict):
        return
    plain = {key: value if isinstance(value, dict) else {} for key, value in properties.items()}
    required = wanted.value.get("required")
    parameters = {**wanted.value, "properties": plain, "$defs": schema.get("$defs", {})}
    parameters["required"] = (
        [key for key in required if isinstance(key, str)] if isinstance(required, list) else []
    )
    spec = ToolSpec(name=child, version="", effect=PURE, parameters=parameters, result={})
    yield from needs(child, parameters, given, place)
    yield from takes(source, spec, given, f"{place}/with")
    yield from types(source, name, given, spec, f"{place}/with")
