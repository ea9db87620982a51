"""JSON Schema: validation that reports every violation with its path, and never fetches anything."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from baton.core.expressions import escape
from baton.errors import Problem


class SchemaError(Exception):
    """The schema itself is not valid."""


def _refuse(uri: str) -> Any:
    raise ValueError(f"references to other documents are not allowed: {uri}")


@lru_cache(maxsize=512)
def _validator(encoded: bytes) -> Any:
    import jsonschema_rs  # twelve megabytes, which most cold starts do not need

    schema = msgspec.json.decode(encoded)
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True, retriever=_refuse)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise SchemaError(getattr(error, "message", None) or str(error)) from error


def check_schema(schema: Any) -> None:
    """Raises `SchemaError` for what is not a JSON Schema or refers outside itself."""
    if not isinstance(schema, (dict, bool)):
        raise SchemaError("a schema is an object")
    _validator(msgspec.json.encode(schema))


def is_schema(schema: Any) -> bool:
    """Whether it is a JSON Schema that refers only into itself."""
    try:
        check_schema(schema)
    except SchemaError:
        return False
    return True


def violations(schema: Any, value: Any, pointer: str = "") -> tuple[Problem, ...]:
    """Everything in `value` that `schema` does not allow; `pointer` is prefixed to each path."""
    return tuple(
        Problem(pointer + "".join(f"/{escape(step)}" for step in error.instance_path), error.message)
        for error in _validator(msgspec.json.encode(schema)).iter_errors(value)
    )


def input_violations(schema: Any, value: Any) -> tuple[Problem, ...]:
    """`violations` of a saga's input, which is null when it is left out."""
    found = violations(schema, value, "/input")
    if not found or value is not None:
        return found
    required = schema.get("required") if isinstance(schema, dict) else None
    needs = f"; it needs: {', '.join(map(str, required))}" if isinstance(required, list) and required else ""
    return (Problem("/input", f"`input` is missing{needs}"),)
