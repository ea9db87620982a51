"""Texts of values in the log: those of a handler's own, and the default.

The default keeps JSON as it is, so that the log shows it. Other types of Python stand in an object of one key.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar
from uuid import UUID

from baton.compat.aws_durable.exceptions import InvocationError, SerDesError

T = TypeVar("T")
_MARK = "$python:"


@dataclass(frozen=True)
class SerDesContext:
    """The operation whose value is written or read."""

    operation_id: str = ""
    durable_execution_arn: str = ""


class SerDes(ABC, Generic[T]):
    """Writer and reader of values."""

    @abstractmethod
    def serialize(self, value: T, serdes_context: SerDesContext) -> str:
        """Return the text of a value."""

    @abstractmethod
    def deserialize(self, data: str, serdes_context: SerDesContext) -> T:
        """Return the value of a text."""


class PassThroughSerDes(SerDes[Any]):
    """Texts as they are."""

    def serialize(self, value: Any, serdes_context: SerDesContext) -> Any:
        """Return the text."""
        return value

    def deserialize(self, data: str, serdes_context: SerDesContext) -> Any:
        """Return the text."""
        return data


class JsonSerDes(SerDes[Any]):
    """JSON."""

    def serialize(self, value: Any, serdes_context: SerDesContext) -> str:
        """Return the JSON of a value."""
        return json.dumps(value)

    def deserialize(self, data: str, serdes_context: SerDesContext) -> Any:
        """Return the value of JSON."""
        return json.loads(data)


class ExtendedTypeSerDes(SerDes[Any]):
    """JSON with dates, decimals, bytes, UUIDs and tuples."""

    def serialize(self, value: Any, serdes_context: SerDesContext | None = None) -> str:
        """Return the JSON of a value."""
        return json.dumps(marked(value), separators=(",", ":"))

    def deserialize(self, data: str, serdes_context: SerDesContext | None = None) -> Any:
        """Return the value of JSON."""
        return unmarked(json.loads(data))


_WRITE: dict[type, Callable[[Any], Any]] = {
    bytes: lambda value: base64.b64encode(value).decode(),
    UUID: str,
    Decimal: str,
    datetime: lambda value: value.isoformat(),
    date: lambda value: value.isoformat(),
    tuple: lambda value: [marked(one) for one in value],
}
_READ: dict[str, Callable[[Any], Any]] = {
    "bytes": base64.b64decode,
    "UUID": UUID,
    "Decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "tuple": lambda value: tuple(unmarked(one) for one in value),
}


def marked(value: Any) -> Any:
    """Return a value as JSON. Raises `TypeError` for a type that it does not know."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, list):
        return [marked(one) for one in value]
    if isinstance(value, dict):
        if any(not isinstance(key, str) for key in value):
            raise TypeError("the keys of a dictionary are texts")
        return {key: marked(one) for key, one in value.items()}
    write = _WRITE.get(type(value))
    if write is None:
        raise TypeError(f"a {type(value).__name__} has no form in JSON; give the operation a `serdes`")
    return {_MARK + type(value).__name__: write(value)}


def unmarked(value: Any) -> Any:
    """Return the value of JSON that `marked` has made."""
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, inner),) = value.items()
        read = _READ.get(key.removeprefix(_MARK)) if key.startswith(_MARK) else None
        if read is not None:
            return read(inner)
    return {key: unmarked(one) for key, one in value.items()}


def written(serdes: SerDes[Any] | None, value: Any, context: SerDesContext) -> Any:
    """Return a value as JSON: by default itself, otherwise the text of `serdes`. Raises `SerDesError`."""
    try:
        return marked(value) if serdes is None else serdes.serialize(value, context)
    except (SerDesError, InvocationError):
        raise
    except Exception as error:  # code of the application runs in there
        raise SerDesError(f"the value of `{context.operation_id}` cannot be written: {error}") from error


def read(serdes: SerDes[Any] | None, data: Any, context: SerDesContext) -> Any:
    """Return the value of what `written` has returned. Raises `SerDesError`."""
    if data is None:
        return None
    try:
        return unmarked(data) if serdes is None else serdes.deserialize(data, context)
    except (SerDesError, InvocationError):
        raise
    except Exception as error:  # code of the application runs in there
        raise SerDesError(f"the value of `{context.operation_id}` cannot be read: {error}") from error
