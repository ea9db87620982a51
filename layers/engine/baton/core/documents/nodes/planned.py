"""Kinds of node that are known and cannot be run yet.

Only so much of their shape is looked at as other nodes and other checks need; the rest may be anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.types import JsonValue

from baton.core.documents.nodes.base import Compiler, NodeDocument
from baton.core.documents.parts.fields import defined
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel


class Loose(BaseModel):
    """An object that may have other keys besides."""

    model_config = ConfigDict(extra="allow", frozen=True)


def like(model: type[Loose], name: str) -> Any:
    """The value as it stands in the document, if it has the shape. `name`: its definition in the schema."""

    def read(value: Any) -> Any:
        model.model_validate(value)
        return value

    return Annotated[dict[str, JsonValue], BeforeValidator(read), defined(name)]


class Planned(NodeDocument):
    """A kind that is read and checked, and refused."""

    runs = False

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        message = f"nodes of kind `{self.key}` cannot be run by this version"
        yield Problem(f"/nodes/{name}/{self.key}", message)
