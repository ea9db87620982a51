"""Spans by the semantic conventions of OpenTelemetry for generative AI:
what is said of a request to a model, and of a call of a tool.

Names and values only: no message, argument or result is in a span.
How spans are sent is in adapters/spans.
Source: OpenTelemetry, "Semantic conventions for generative client AI
spans" (1.37 and later: `gen_ai.provider.name`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

CLIENT, INTERNAL = 3, 1
"""The kinds of a span, by their numbers in OTLP."""
FINISHES: Mapping[str, str] = {"calls": "tool_calls"}
"""Reasons why an answer ended for which the conventions have another word than ports/models.py."""
Attribute = str | int | float | list[str]

_TRACE = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f][13579bdf]")
_CALL = re.compile("t[0-9]+-[0-9]+")
_CHOSEN = re.compile("[ta][0-9]+-[0-9]+")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Tracing:
    """Port to which finished spans are sent."""

    traces_url: Annotated[
        str,
        Meta(
            pattern=r"^(https?://[^\s@?#]+)?$",
            description="Destination of spans of requests to models, and of calls of their tools, as OTLP by HTTP, such as "
            "`http://127.0.0.1:4318/v1/traces` of a collector in a layer of the worker. Empty: nowhere.",
        ),
    ] = ""


class Span(Struct, frozen=True, kw_only=True):
    """A timed operation, in epoch milliseconds. `error`: the code of its failure."""

    trace: str
    parent: str
    id: str
    name: str
    kind: int
    started: int
    ended: int
    attributes: Mapping[str, Attribute]
    error: str = ""


def parent_of(traceparent: str) -> tuple[str, str] | None:
    """Trace and span of a W3C `traceparent`; None where there is none, or it is not sampled."""
    found = _TRACE.fullmatch(traceparent)
    return None if found is None else (found[1], found[2])


def is_chosen_by_model(item: str) -> bool:
    """Return true if an item of a node is a call that a model asked for, or planned in place of a step."""
    return _CHOSEN.fullmatch(item) is not None


def is_call(item: str) -> bool:
    """Return true if an item of a node is a call of a tool that a model has asked for."""
    return _CALL.fullmatch(item) is not None
