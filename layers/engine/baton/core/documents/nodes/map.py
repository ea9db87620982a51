"""How a map is written: a list, and what is done for each of its items. This version cannot run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.types import JsonValue

from baton.core.documents.nodes.planned import Loose, Planned, like
from baton.core.documents.parts.fields import Given


class _Shape(Loose):
    over: Annotated[JsonValue, Given]


class Map(Planned):
    kind = "map"
    key = "map"
    title = "Map"
    description = "Does the same for each item of a list; this version cannot run it."
    own = ("with", "timeout")
    example: ClassVar[Mapping[str, Any]] = {"map": {"over": "${input.guests}", "workflow": "invitation"}}
    advice: ClassVar[Mapping[str, str]] = {
        "for_each for map_over loop_over items with_items each matrix iterate": (
            "let a tool take the whole list; `map` is known, and this version cannot run it"
        )
    }
    field = (
        Annotated[like(_Shape, "mapOf") | None, Given],
        Field(default=None, description="The list, and what is to be done for each of its items."),
    )
    definitions: ClassVar[Mapping[str, dict[str, Any]]] = {
        "mapOf": {
            "type": "object",
            "required": ["over"],
            "properties": {
                "over": {
                    "description": "The list.",
                    "type": ["string", "array", "object", "number", "boolean"],
                }
            },
        }
    }
    has_items = True
