"""The model of a node, made of the kinds that the registry lists, and the kind of a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import create_model, model_validator

from baton.core.documents.nodes.base import NodeDocument
from baton.core.documents.nodes.map import Map
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.documents.parts import node as parts
from baton.core.documents.parts.fields import refuse

_NAMES = {field.alias: name for name, field in parts.NodeModel.model_fields.items() if field.alias}
BY_KEY: Mapping[str, NodeDocument] = {kind.key: kind for kind in NODE_TYPES}
BY_KIND: Mapping[str, NodeDocument] = {kind.kind: kind for kind in (*NODE_TYPES, Map())}
KINDS = tuple(kind.key for kind in NODE_TYPES if kind.runs)
KINDS_TO_COME = tuple(kind.key for kind in NODE_TYPES if not kind.runs)
_FIELDS = {kind.key: {kind.key, *(_NAMES.get(name, name) for name in kind.fields)} for kind in NODE_TYPES}
"""By key, the fields that such a node may have, as the model calls them."""


def kind_named(kind: str) -> NodeDocument:
    """Return the kind of this name; the simplest for one that only a newer version knows."""
    return BY_KIND.get(kind, NODE_TYPES[0])


def kind_of(node: parts.NodeModel) -> NodeDocument:
    """Return the kind whose field the node has."""
    (key,) = node.model_fields_set & BY_KEY.keys()
    return BY_KEY[key]


class _OneKind(parts.NodeModel):
    @model_validator(mode="after")
    def _one_kind(self) -> _OneKind:
        chosen = self.model_fields_set & BY_KEY.keys()
        if len(chosen) != 1:
            found = " and ".join(key for key in BY_KEY if key in chosen) or "none"
            message = f"a node has exactly one of {', '.join(KINDS)}; found {found}"
            hint = (
                "write beside `map` what is done for each item, such as a `tool`"
                if self.map is not None
                else ""
            )
            raise refuse(message, hint)
        kind = BY_KEY[chosen.pop()]
        if strange := self.model_fields_set - _FIELDS[kind.key]:
            raise refuse(kind.refuses({name.rstrip("_") for name in strange}))
        return self


if TYPE_CHECKING:
    NodeModel = parts.NodeModel
else:
    # One model for all kinds, not a union of them: pydantic then knows the place of a misspelt key.
    NodeModel = create_model(
        "NodeModel",
        __base__=_OneKind,
        __doc__=parts.NodeModel.__doc__,
        **{kind.key: kind.field for kind in NODE_TYPES},
    )

RESERVED = frozenset(
    (*BY_KIND, *BY_KEY, *(field.alias or name for name, field in NodeModel.model_fields.items()))
)
"""Names that no kind of an application can have."""
