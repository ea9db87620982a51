"""`std.search_tools`: a search for tools, and for an agent's other calls, by words of names and texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field

from baton.core.effects.toolspec import NAMED_PIPELINE, SEARCH, ToolSpec, tools_for
from baton.ports import StepContext
from baton.tools.define import Registry
from baton.tools.standard.kit import standard_tool

_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""The place of a new word in a name such as `listOrders`."""
_OF_NAME, _BEGINNING, _MOST_TEXT = 3, 2, 1_000
"""The weight of a word in a name, the most letters of a word that no other begins with, and the characters of
a description that are given.
"""

Query = Annotated[str, Field(min_length=1, max_length=500, description="Words for what the tool is to do.")]
Limit = Annotated[int, Field(ge=1, le=50, description="So many are given at most.")]
Among = Annotated[
    list[str] | None,
    Field(
        description="Names of the tools to look at. In an agent, and under `allowed_tools`, those that may be called."
    ),
]

Calls = Annotated[
    dict[str, Any] | None,
    Field(
        description="What else to look at, by name, with `description` and `parameters`. In an agent, its delegates and operations."
    ),
]


class FoundTool(BaseModel):
    """A tool: of `parameters`, those in `required` must be given."""

    name: str
    description: str
    parameters: list[str]
    required: list[str]


class Search(BaseModel):
    """The best first. `found`: how many there are, with those that are not given."""

    tools: list[FoundTool]
    found: int


def declare(
    registry: Registry,
    beside: Callable[[], Mapping[str, ToolSpec]],
    pipelines: Callable[[StepContext], Mapping[str, Mapping[str, Any]]],
) -> None:
    """Declare the search. `beside`: all tools. `pipelines`: those named, for callers who may use them."""

    @standard_tool(SEARCH, registry=registry, effect="pure")
    def search_tools(
        query: Query, context: StepContext, limit: Limit = 10, among: Among = None, calls: Calls = None
    ) -> Search:
        """Find tools that may be called, by words of their names and descriptions."""
        known = tools_for(context.tenant, beside())
        names = known if among is None else [name for name in among if name in known]
        wanted = set(_words(query))
        there = [_found(name, known[name].description, known[name].parameters) for name in names]
        there += [_found(name, one["description"], one["parameters"]) for name, one in (calls or {}).items()]
        best = [(-rating, one.name, one) for one in there if (rating := _rating(one, wanted))]
        if NAMED_PIPELINE in names:
            kept = [_named(known[NAMED_PIPELINE], name, one) for name, one in pipelines(context).items()]
            best += [
                (-rating, one.description, one) for one in kept if (rating := _fit(one.description, wanted))
            ]
        best.sort(key=lambda one: one[:2])
        return Search(tools=[one for *_, one in best[:limit]], found=len(best))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(_HUMP.sub(" ", text))]


def _rating(one: FoundTool, wanted: set[str]) -> int:
    """Return the rating of a tool for a search; 0: it does not fit."""
    return _OF_NAME * _fit(one.name, wanted) + _fit(one.description, wanted)


def _fit(text: str, wanted: Collection[str]) -> int:
    """Return the number of the words that are in a text."""
    said = _words(text)
    return sum(any(_same(word, one) for one in said) for word in wanted)


def _named(spec: ToolSpec, name: str, kept: Mapping[str, Any]) -> FoundTool:
    """Return a named pipeline. Its description has its operations and inputs, no words of a model."""
    does = ", ".join(op.removeprefix("table_") for op in kept["ops"])
    described = f'A pipeline: {does}. It takes `name`: "{name}", and as `data`: {", ".join(kept["inputs"])}.'
    return _found(spec.name, described, spec.parameters)


def _same(word: str, other: str) -> bool:
    """Return true if it is the word, or either begins with the other: `pay` and `payments`."""
    short, long = sorted((word, other), key=len)
    return word == other or (len(short) > _BEGINNING and long.startswith(short))


def _found(name: str, description: str, schema: Mapping[str, Any]) -> FoundTool:
    return FoundTool(
        name=name,
        description=description[:_MOST_TEXT],
        parameters=list(schema.get("properties", {})),
        required=list(schema.get("required", [])),
    )
