"""A kind of node of an application's own: a macro over kinds that are
built in, expanded when a document is compiled.

It is declared in tools/define.py and expanded in documents/expand.py.
A worker may import this: nothing here loads pydantic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from pydantic import BaseModel

Step = Callable[[str], str]
"""The name that a node of an expansion has in the graph, for `after` and for `ctx.NAME.output`."""


class Expands(Protocol):
    """One node of an application's own kind: its fields, as its model has read them."""

    def nodes(self, step: Step) -> Mapping[str, Mapping[str, Any]]:
        """Return nodes of built-in kinds by names of their own.
        The first begins; the last gives the output.
        """
        ...


class OwnKind(NamedTuple):
    """A kind of node that an application defines.
    `model` has the fields under it and `nodes` of `Expands`.
    """

    key: str
    model: type[BaseModel]
    title: str
    description: str
    version: str
    icon: str
    example: Mapping[str, Any]


OwnKinds = Mapping[str, OwnKind]
# What a node of such a kind may have besides: its first node comes after others, its last goes on.
AT_THE_BEGIN = ("after", "when", "join")
AT_THE_END = ("branch", "loop", "output_schema")
FIELDS = (*AT_THE_BEGIN, "branch", "loop", "catch", "output_schema", "description")
