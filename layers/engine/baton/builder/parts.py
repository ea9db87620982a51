"""Parts of a document that are made before their workflow is known: conditions, branches, loops, joins.

Each is held here, and becomes a JSON value in the end. The parts themselves are in conditions.py and control.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from baton.builder.references import Node, Reference
from baton.builder.values import Collector
from baton.core.expressions import escape
from baton.errors import Problem

Writer = Callable[[Collector, str, Any], Any]
"""Makes the JSON value of what a user handed in, at a path; notes what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Part:
    """An object of a document: the key, the writer and the value of each of its fields."""

    fields: tuple[tuple[str, Writer, Any], ...]


def given(*fields: tuple[str, Writer, Any]) -> tuple[tuple[str, Writer, Any], ...]:
    """The fields that are not None, which stands for those that were left out."""
    return tuple(field for field in fields if field[2] is not None)


def written(made: Collector, path: str, part: Part) -> dict[str, Any]:
    """The object that a part becomes."""
    return {key: write(made, f"{path}/{key}", value) for key, write, value in part.fields}


def only(kind: type[Part], what: str, suggestion: str) -> Writer:
    """The writer of a field that takes nothing but one kind of part."""

    def write(made: Collector, path: str, value: Any) -> Any:
        if isinstance(value, kind):
            return written(made, path, value)
        return made.replace(path, f"`{made.shown(value)}` is not {what}", suggestion)

    return write


def list_of(write: Writer) -> Writer:
    """The writer of a list, or tuple, whose items all have that one."""

    def write_all(made: Collector, path: str, values: Any) -> Any:
        if not isinstance(values, (list, tuple)):
            return made.replace(path, f"`{made.shown(values)}` is not a list", "write [ ] around it")
        return [write(made, f"{path}/{index}", value) for index, value in enumerate(values)]

    return write_all


# ---- what is made last -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Later:
    """A value that is made when the document is asked for, because making it loads what a worker need not pay for."""

    make: Callable[[Collector, str], Any]


def finished(made: Collector, path: str, value: Any) -> Any:
    """A copy of the value, with everything in it made."""
    if isinstance(value, Later):
        return value.make(made, path)
    if isinstance(value, dict):
        return {key: finished(made, f"{path}/{escape(key)}", item) for key, item in value.items()}
    if isinstance(value, list):
        return [finished(made, f"{path}/{index}", item) for index, item in enumerate(value)]
    return value


def raise_if(problems: list[Problem]) -> None:
    if problems:
        from baton.core.documents.compile import refusal_of

        raise refusal_of(problems)


# ---- JSON Schemas ------------------------------------------------------------------------------------------------


def schema(made: Collector, path: str, value: Any) -> Any:
    """A JSON Schema: as it is, the name of one, or of a type that pydantic describes."""
    if isinstance(value, (Mapping, bool, str)):
        return made.value(path, value)
    if isinstance(value, (Reference, Node, Part)):
        return made.replace(path, f"`{made.shown(value)}` is not a schema", "write a type, or a JSON Schema")
    return Later(lambda made, path: _described(made, path, value))


def schema_by_name(made: Collector, path: str, value: Any) -> Any:
    """JSON Schemas by name."""
    return made.members(path, value, schema)


def _described(made: Collector, path: str, described: Any) -> Any:
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError

    from baton.tools.schemas import JsonSchemas

    try:
        return made.value(path, TypeAdapter(described).json_schema(schema_generator=JsonSchemas))
    except (PydanticUserError, PydanticSchemaGenerationError, NameError) as error:
        return made.replace(path, f"no JSON Schema for {described!r}: {error}")
