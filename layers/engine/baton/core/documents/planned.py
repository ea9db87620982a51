"""The fields of kinds of node that are known and cannot be run yet: agent, human, map.

Only so much of their shape is looked at as other nodes and other checks need; the rest may be anything.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.types import JsonValue

from baton.core.documents.parts.fields import Given, ToolPatterns, defined


class _Loose(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _Agent(_Loose):
    model: Annotated[str | None, Given] = None
    tools: Annotated[ToolPatterns | None, Given] = None


class _Map(_Loose):
    over: Annotated[JsonValue, Given]


def _like(model: type[_Loose]) -> BeforeValidator:
    """The value as it stands in the document, if it has the shape."""

    def read(value: Any) -> Any:
        model.model_validate(value)
        return value

    return BeforeValidator(read)


_Object = dict[str, JsonValue]
Agent = Annotated[_Object, _like(_Agent), defined("agentOf")]
Human = Annotated[_Object, _like(_Loose), defined("humanOf")]
Map = Annotated[_Object, _like(_Map), defined("mapOf")]
