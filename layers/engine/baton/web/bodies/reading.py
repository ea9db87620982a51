"""Request bodies and headers: parse, check, and say exactly what is wrong with them.

Queries are in web/parameters.py. Which bodies there are is in the other files of this folder.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ValidationError,
)

from baton.core.documents.text import parse_document
from baton.core.expressions import escape
from baton.core.expressions.spelling import nearest
from baton.core.failures import sanitised
from baton.errors import InvalidInput, Problem, TooLarge, UserError

MAX_KEY = 255
B = TypeVar("B", bound="Body")

# Pydantic's messages in the words of JSON.
_PLAIN_WORDS = {
    "missing": "`{name}` is missing",
    "string_type": "must be a string",
    "bool_type": "must be `true` or `false`",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "int_type": "must be a whole number",
    "string_too_short": "must not be empty",
    "string_too_long": "has at most {max_length} characters; this one has {length}",
    "greater_than_equal": "must be at least {ge}",
}


Plainly = AfterValidator(sanitised)
"""Of words of people that are kept: without the secrets in them."""


class Body(BaseModel):
    """Read strictly: a number is no text, and a text is no number."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)  # few are read by a process


def whole(value: Any) -> Any:
    """JSON knows one kind of number: 1.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text_of(body: str, is_base64: bool, limit: int) -> str:
    """The body as text. Raises `TooLarge` or `UserError`."""
    try:
        raw = base64.b64decode(body, validate=True) if is_base64 else body.encode()
        if len(raw) > limit:
            raise TooLarge(f"a request body has at most {limit} bytes; this one has {len(raw)}")
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"the body is not UTF-8: byte {error.start}") from error
    except ValueError as error:
        raise UserError(f"the body cannot be decoded: {error}") from error


def read_body(model: type[B], text: str) -> B:
    """The body as a model. Raises `MalformedDocument` or `InvalidInput` with every problem and its place.

    Read as strictly as a workflow document: what the log could not hold as it is (NaN, 1e999, half a
    surrogate pair, a key that is there twice) is refused, not changed.
    """
    document = parse_document(text if text.strip() else "{}", json_only=True)
    if not isinstance(document.value, dict):
        problem = document.locate(Problem("", "must be an object"))
        raise InvalidInput("the body must be a JSON object", (problem,))
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems = tuple(document.locate(_problem(model, detail)) for detail in details)
        raise InvalidInput(f"at {problems[0].path or '/'}: {problems[0].message}", problems) from error


def _problem(model: type[BaseModel], detail: Any) -> Problem:
    pointer = "".join(f"/{escape(step)}" for step in detail["loc"])
    if detail["type"] == "extra_forbidden":
        name = str(detail["loc"][-1])
        return Problem(pointer, f"`{name}` is not known here", nearest(name, model.model_fields))
    if detail["type"] == "literal_error":
        words = re.findall("'([^']*)'", detail["ctx"]["expected"])
        known = detail["ctx"]["expected"].replace("'", "`")
        return Problem(pointer, f"must be {known}", nearest(str(detail["input"])[:40], words))
    if (plain := _PLAIN_WORDS.get(detail["type"])) is None:
        return Problem(pointer, detail["msg"].removeprefix("Value error, "))
    length = len(detail["input"]) if isinstance(detail["input"], str) else 0
    return Problem(pointer, plain.format(name=detail["loc"][-1], length=length, **detail.get("ctx", {})))


def idempotency_key(headers: Mapping[str, str]) -> str:
    """The `Idempotency-Key`, empty if there is none. Raises `UserError` for one that is too long."""
    key = headers.get("idempotency-key", "").strip()
    if len(key) > MAX_KEY:
        raise UserError(f"an Idempotency-Key has at most {MAX_KEY} characters")
    return key
