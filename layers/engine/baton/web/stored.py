"""A value that is kept outside of its entry, as a model. It is made in runtime/stored.py.

Imported only where the OpenAPI document is made: see answers.py.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from baton.web.models import Answer


class StoredValue(Answer):
    """A value that the log names by `cas://sha256/…`: whole, or a part of its JSON where no answer has room for it."""

    ref: str = Field(description="Its name, which is the SHA-256 of its JSON.")
    size: int = Field(ge=1, description="Bytes of its JSON.")
    value: Any = Field(description="The value; null where it comes in parts.")
    part: str | None = Field(description="The next characters of its JSON, where it comes in parts.")
    next: int | None = Field(description="The `after` of the next part; null at the end.")
