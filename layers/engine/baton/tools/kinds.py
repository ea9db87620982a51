"""@node_kind: a pydantic model becomes a kind of node, made of built-in ones when a document is compiled.

A node of it is expanded in core/documents/expand.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from baton.core.documents.nodes.own import OwnKind
from baton.tools.define import ToolError

M = TypeVar("M", bound=type[BaseModel])
NODE_KINDS: dict[str, OwnKind] = {}
"""The kinds that a process has imported, by their keys."""
_NAME = re.compile("[a-z][a-z0-9_]{0,31}")


def node_kind(
    name: str,
    *,
    example: Mapping[str, Any],
    title: str = "",
    version: str = "1",
    icon: str = "●",
    kinds: dict[str, OwnKind] | None = None,
) -> Callable[[M], M]:
    """Declare a pydantic model as a kind of node: a document writes its fields under `name`.

    The model's method `nodes(step)` gives the nodes of built-in kinds that stand for it, each under a name of its own, as a
    document writes them. The first begins; the last gives the output. `step("search")` is the name that `search` has in
    the graph. A field that may hold an expression must take a text. `example` is what a document has under `name`.
    Raises `ToolError`.
    """

    def declare(declared: M) -> M:
        model = declared
        known = NODE_KINDS if kinds is None else kinds
        if not _NAME.fullmatch(name):
            raise ToolError(
                f"`{name}` cannot be the name of a kind of node; write for example search_and_hold"
            )
        if not callable(getattr(model, "nodes", None)):
            raise ToolError(f"the kind `{name}` has no method `nodes(self, step)`")
        there = known.get(name)
        if there is not None and _origin(there.model) != _origin(model):
            raise ToolError(
                f"the kind `{name}` is declared by {_origin(there.model)} and by {_origin(model)}"
            )
        if "extra" not in model.model_config:
            model = _strict(model)
        words = inspect.cleandoc(model.__doc__ or "")
        known[name] = OwnKind(name, model, title or name, words, version, icon, {name: dict(example)})
        return declared

    return declare


def _strict(model: M) -> M:
    """What it does not know is refused, as everywhere in documents."""
    said = {"__module__": model.__module__, "__qualname__": model.__qualname__, "__doc__": model.__doc__}
    make: Any = type(model)
    made: M = make(model.__name__, (model,), {**said, "model_config": ConfigDict(extra="forbid")})
    return made


def _origin(model: type[BaseModel]) -> str:
    return f"{model.__module__}.{model.__qualname__}"
