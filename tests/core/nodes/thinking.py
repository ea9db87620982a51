"""Sagas with an agent, and what its model and its calls come to. No assertions here."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.risk import Risk
from baton.core.log import events as ev
from baton.core.log.scopes import Agent
from baton.core.models.usage import Usage
from baton.core.nodes.registry import KINDS
from tests.core.build import Saga, tool_spec

PAY = Risk(action="payment", amount="n", currency_is="USD")
TOOLS = {
    spec.name: spec
    for spec in (
        tool_spec("t"),
        tool_spec("look", n={"type": "integer"}),
        replace(tool_spec("pay", n={"type": "integer"}), effect="once", risk=PAY),
        replace(tool_spec("roll"), repeatable=True),
    )
}


def compiled(more: str = "", node: str = "", rest: str = "", tools: str = "[look, pay, roll]") -> Program:
    agent = f"agent: {{model: m, prompt: '${{input}}', tools: {tools}{more}}}"
    return Program(
        compile_document(
            f"name: w\nnodes:\n  a: {{{agent}{node}}}{rest}\noutput: '${{ctx.a.output?}}'", TOOLS
        ),
        KINDS,
    )


def thinking(*path: Any, **how: Any) -> Saga:
    """The first turn is to run."""
    saga = Saga(compiled(**how), "find a table")
    saga.go()
    return saga


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def refused(tool: str, code: str = "input_invalid") -> dict[str, Any]:
    return {"tool": tool, "arguments": {}, "text": "{", "error": {"code": code, "message": "no"}}


def answered(slot: str, *calls: dict[str, Any], data: Any = None, **more: Any) -> Outcome:
    """What a turn gives: calls, or data."""
    given = {"text": "", "calls": list(calls), "data": data, "tokens": [100, 10], **more}
    return outcome(slot, given, usage=(Usage(model="m", input=100, output=10),), cost=20)


def outcome(slot: str, value: Any, **more: Any) -> Outcome:
    return Outcome(slot=slot, attempt=1, started_at=1, ended_at=2, output=ev.Value(v=value), **more)


def at_work(saga: Saga, slot: str = "a") -> Agent:
    work = saga.state.open[slot]
    assert isinstance(work, Agent)
    return work
