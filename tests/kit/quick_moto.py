"""moto, in half the time: nothing of what it answers is changed, only how long it looks for it.

Only the few inner parts of moto that cost most of a test's time are replaced. Of ours, descriptions of services are unpacked once.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from moto import backend_index
from moto.core import models
from moto.core.model import StructureShape
from moto.core.serialize import BaseJSONSerializer

from baton.adapters import aws_models

OURS = frozenset({"dynamodb", "dynamodbstreams", "lambda", "sns", "sqs"})
RULES = "endpoint-rule-set-1"
_structure = BaseJSONSerializer._serialize_type_structure


def hasten() -> None:
    """For the whole process; to ask for it again changes nothing."""
    # For the library `requests`, which no client of AWS uses: 1,300 patterns at every start.
    models.RESPONSES_METHODS.clear()
    # Whose address it is, is looked for one service after the other.
    backend_index.backend_url_patterns.sort(key=lambda known: known[0] not in OURS)
    BaseJSONSerializer._serialize_type_structure = _of_what_is_there
    # Each deployment has a session of its own, which would read what a service can do once more.
    aws_models._Files.load_file = _unpack_once  # type: ignore[method-assign]


def _unpack_once(self: aws_models._Files, file_path: str) -> object:
    """Parsed each time, since botocore writes into some of them. Into the rules of endpoints, the largest, it does not."""
    return _parsed_once(file_path) if Path(file_path).name == RULES else _parsed(file_path)


def _parsed(file_path: str) -> object:
    content = _content(file_path)
    return None if content is None else msgspec.json.decode(content)


@cache
def _parsed_once(file_path: str) -> object:
    return _parsed(file_path)


@cache
def _content(file_path: str) -> bytes | None:
    for suffix, unpack in aws_models._FORMS.items():
        if (file := Path(file_path + suffix)).exists():
            return unpack(file.read_bytes())
    return None


def _of_what_is_there(
    self: BaseJSONSerializer, serialized: Any, value: Any, shape: StructureShape, key: str
) -> None:
    """An attribute of an item has one of ten members; moto would look for each under all its names."""
    if shape.name != "AttributeValue" or type(value) is not dict:
        _structure(self, serialized, value, shape, key)
        return
    found: dict[str, Any] = {}
    for name, member in value.items():
        self._serialize(found, member, shape.members[name], name)
    self._default_serialize(serialized, found, shape, key)
