"""What the processes of a simulation derive from the same bytes, derived once: graphs of documents, programs of graphs,
and of an engine's limits those of its accounts.

Each process of a world is a cold start, and would compile and index the same documents anew. Both are values that depend
on nothing else and that nothing changes; every request to a store is made as ever. A bug planted in how they are derived
would not be seen here: tests/core is for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from baton.core.decide.spending import SpendingLimits
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.graph.graph import Graph
from baton.runtime.requests import registering
from baton.runtime.starting import catalog

_graphs: dict[bytes, Graph] = {}


def _compiled(text: str, tools: Mapping[str, ToolSpec], *, has_time: Callable[[], bool], **how: Any) -> Graph:
    """As `compile_document`. A document that is refused is compiled each time, and so is one of a deployed application."""
    if type(tools) is not dict or how["kinds"] or not has_time():
        return compile_document(text, tools, has_time=has_time, **how)
    key = msgspec.json.encode((text, tools, how))
    if key not in _graphs:
        _graphs[key] = compile_document(text, tools, has_time=has_time, **how)
    return _graphs[key]


# In place of the engine's own, for every world there is.
registering.compile_document = _compiled  # type: ignore[assignment,attr-defined]
catalog.program_of = lru_cache(512)(catalog.program_of)
setattr(SpendingLimits, "of", lru_cache(64)(SpendingLimits.of))  # noqa: B010
