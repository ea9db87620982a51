"""Base of the API's answers, and types that many of them share.

An answer is one struct, beside the code that makes it. The OpenAPI document is generated from the same
struct. A string in `Annotated` describes the field in that document.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from baton.core.log.state import FINISHED, WAITING

STATUSES = ("pending", "running", *sorted(WAITING), *sorted(FINISHED))

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-11-21T10:00:00.123Z"])]
Day = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
Count = Annotated[int, Meta(ge=0)]
Version = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
Status = Annotated[str, Meta(extra_json_schema={"enum": list(STATUSES)})]
Schema = Annotated[dict[str, Any], "A JSON Schema."]
Cursor = Annotated[str | None, "Value of `cursor` for the next page. Null on the last page."]


def _without_underscore(name: str) -> str:
    """Return the field's name in JSON: `from_` is `from`."""
    return name.rstrip("_")


class View(
    msgspec.Struct,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename=_without_underscore,
):
    """An object with exactly these fields. A field with a default is absent while it has this value."""
