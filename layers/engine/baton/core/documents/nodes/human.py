"""How a question to a person is written. This version cannot run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from baton.core.documents.nodes.planned import Loose, Planned, like
from baton.core.documents.parts.fields import Given


class Human(Planned):
    kind = "human"
    key = "human"
    title = "Question"
    description = "Asks a person and waits for the answer; this version cannot run it."
    own = ("with", "timeout")
    example: ClassVar[Mapping[str, Any]] = {"human": {"question": "Shall we book it?"}}
    field = (
        Annotated[like(Loose, "humanOf") | None, Given],
        Field(default=None, description="The question."),
    )
    definitions: ClassVar[Mapping[str, dict[str, Any]]] = {"humanOf": {"type": "object"}}
