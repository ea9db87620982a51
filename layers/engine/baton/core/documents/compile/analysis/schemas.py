"""JSON Schemas in a document: that they are schemas, and that names of them lead somewhere.

`input`, `schemas`, `output_schema`. Schemas in conditions are in conditions/; what follows from a schema is in
checks/known.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from baton.core.conditions.schema import check_schema
from baton.core.conditions.schemafaults import faults, misspelt
from baton.core.conditions.schemaplan import NoSchema, SchemaError
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source


def check(source: Source) -> Iterator[Problem]:
    """Schemas that are none, and names of schemas that are nowhere."""
    model = source.model
    if model.input is not None:
        yield from problems("/input", model.input)
    for name, schema in model.schemas.items():
        yield from problems(f"/schemas/{name}", schema)
    for name, node in source.nodes.items():
        place = f"/nodes/{name}/output_schema"
        if isinstance(node.output_schema, str):
            if node.output_schema not in model.schemas:
                message = f"there is no schema `{node.output_schema}` under `schemas`"
                yield Problem(place, message, source.hint(node.output_schema, model.schemas))
        elif node.output_schema is not None:
            yield from problems(place, node.output_schema)


def output_schema(source: Source, name: str) -> Any:
    """The schema that a node's output has to match; None when it says none."""
    node = source.nodes[name]
    schema = node.output_schema
    if schema is None:
        return source.kinds[name].answers(node)
    return source.model.schemas.get(schema) if isinstance(schema, str) else schema


def problems(place: str, schema: Any) -> Iterator[Problem]:
    """What is no JSON Schema there."""
    try:
        check_schema(schema)
    except SchemaError as error:
        told = list(faults(schema)) if isinstance(error, NoSchema) else []
        found = told or [Problem("", f"not a JSON Schema: {error}")]
    else:
        found = []
    yield from (replace(one, path=place + one.path) for one in (*found, *misspelt(schema)))
