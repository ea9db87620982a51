"""Syntax of a wait: a time to pass, a time to come, or a signal with an optional time limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, model_validator

from baton.core.documents.nodes.base import MAP, Compiler, KnownInterfaces, NodeDocument, Words
from baton.core.documents.parts.fields import (
    TIME_PATTERN,
    Defined,
    Duration,
    Given,
    Model,
    NodeName,
    Reads,
    WaitDuration,
    check_time,
    is_template,
    refuse,
    template,
)
from baton.core.expressions import parse_duration
from baton.core.graph.graph import NODE_NAME
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel


def _until(value: Any) -> str:
    if not is_template(value):
        check_time(value)
    return str(value)


_TIME = {"anyOf": [{"title": "a time", "type": "string", "pattern": TIME_PATTERN}, template("a time")]}


class WaitModel(Model):
    """A duration (`for`), a time (`until`), or a signal with an optional `timeout`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "title": "a time to pass",
                    "required": ["for"],
                    "properties": {"until": False, "signal": False, "timeout": False, "fresh": False},
                },
                {
                    "title": "a time to come",
                    "required": ["until"],
                    "properties": {"for": False, "signal": False, "timeout": False, "fresh": False},
                },
                {"title": "a signal", "required": ["signal"], "properties": {"for": False, "until": False}},
            ]
        }
    )

    for_: Annotated[WaitDuration | None, Given] = Field(
        default=None,
        alias="for",
        description="Time to wait.",
        examples=["10m", "${input.pause}"],
    )
    until: Annotated[str | None, Reads(_until, _TIME), Defined("waitTime"), Given] = Field(
        default=None,
        description="Time to wait for, with its offset from UTC. A time in the past ends the wait at once.",
        examples=["2026-12-01T09:00:00Z", "${input.when}"],
    )
    signal: Annotated[NodeName | None, Given] = Field(
        default=None,
        description="Name of the signal. A signal that came before ends the wait at once.",
        examples=["approved"],
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None,
        description="Longest time to wait for the signal. Without it, the wait has no end.",
        examples=["2d"],
    )

    fresh: Annotated[bool, Given] = Field(
        default=False,
        description=(
            "Takes only a signal that comes while the wait is open. Earlier signals of its name are "
            "discarded."
        ),
    )

    @model_validator(mode="after")
    def _one_way(self) -> WaitModel:
        if sum(value is not None for value in (self.for_, self.until, self.signal)) != 1:
            is_at_most = self.signal is not None and self.for_ is not None
            raise refuse(
                "write exactly one of `for` (a duration), `until` (a time) and `signal` (a name)",
                "the longest time to wait for a signal is its `timeout`: write that in place of `for`"
                if is_at_most
                else "",
            )
        if self.timeout is not None and self.signal is None:
            raise refuse("`timeout` goes with `signal`")
        if self.fresh and self.signal is None:
            raise refuse("`fresh` goes with `signal`")
        return self


class Wait(NodeDocument):
    kind = "wait"
    key = "wait"
    title = "Wait"
    description = (
        "Waits for a duration, a time, or a signal with an optional timeout. No invocation runs "
        "meanwhile. The output is the payload of the signal, `{timed_out: true}` after the "
        "timeout, or null for a duration or a time."
    )
    icon = "○"
    outline = ('(["', '"])')
    own = (MAP,)
    refusal = "a wait takes neither `with` nor `timeout` of the node; use wait.timeout"
    example: ClassVar[Mapping[str, Any]] = {
        "wait": {"signal": "approved", "timeout": "2d"},
        "description": "A person has to approve.",
    }
    is_idle = True
    takes_signals = True
    output: ClassVar[Mapping[str, Any]] = {
        "description": "The payload of the signal, `{timed_out: true}`, or null for a wait for a time alone."
    }
    familiar = "sleep delay pause wait_for await event"
    field = (Annotated[WaitModel | None, Given], Field(default=None))
    model = WaitModel
    inside = Words(
        keys={
            "for": "seconds duration delay sleep time",
            "until": "timestamp at date",
            "signal": "event name message for_signal on",
            "timeout": "deadline max at_most",
            "fresh": "new next transient keep ignore_earlier",
        }
    )

    def nearest_valid_form(self, value: Any) -> str:
        for key, read in (("for", parse_duration), ("until", check_time)):
            try:
                read(value)
            except ValueError:
                continue
            return f"write `wait: {{{key}: {value}}}`"
        if isinstance(value, str) and re.fullmatch(NODE_NAME, value):
            return f"write `wait: {{signal: {value}}}`"
        return "write `wait: {for: 5s}` or `wait: {signal: NAME}`"

    def gives(self, known: KnownInterfaces, node: NodeModel, declared: Any) -> Any:
        """Return the schema of a payload, or of the sign that its time is over."""
        if declared is None or self.of(node).timeout is None:
            return declared
        properties = declared.get("properties") if isinstance(declared, dict) else None
        if isinstance(properties, dict):
            return {**declared, "properties": {**properties, "timed_out": {}}}
        return {"anyOf": [declared, {"type": "object"}]}

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        wait: WaitModel = self.of(node)
        if not wait.fresh:
            return
        for other, its in compiler.takers(str(wait.signal)):
            if self.of(its) is None:
                message = f"`{other}` takes the signal `{wait.signal}`, too, and would lose what came for it before this wait opens"
                yield Problem(f"/nodes/{name}/wait/fresh", message, "give one of the two another signal")

    def values(self, node: NodeModel) -> Iterator[tuple[str, Any]]:
        wait: WaitModel = self.of(node)
        yield "/wait/for", wait.for_
        yield "/wait/until", wait.until

    def signal(self, node: NodeModel) -> str:
        return self.of(node).signal or ""

    def compile(self, compiler: Compiler, name: str, node: NodeModel) -> dict[str, Any]:
        wait: WaitModel = self.of(node)
        is_known = isinstance(wait.for_, int)
        return {
            "kind": self.kind,
            "wait_ms": wait.for_ if is_known else wait.timeout,
            "wait_for": None if is_known else wait.for_,
            "wait_until": wait.until,
            "signal": wait.signal or "",
            "fresh": wait.fresh,
        }

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        for key, word in (("wait_for", "for"), ("wait_until", "until")):
            if key in node:
                return f"wait {word} {node[key]}"
        ms, signal = node.get("wait_ms"), node.get("signal")
        if not signal:
            return f"wait {span(ms)}"
        fresh = "a fresh " if node.get("fresh") else ""
        return f"wait for {fresh}{signal}" + (f", at most {span(ms)}" if ms else "")
