"""Sagas whose steps a model may put something else in the place of. No assertions here."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.risk import Risk
from baton.core.log import events as ev
from baton.core.log.scopes import Replanning
from baton.core.nodes.registry import KINDS
from tests.core.build import Saga, failed, tool_spec

N = {"type": "integer"}
TEXT = {"type": "string"}
PAY = Risk(action="payment", amount="n", currency_is="USD")
TOOLS = {
    spec.name: spec
    for spec in (
        tool_spec("book", TEXT, n=N),
        replace(tool_spec("other", TEXT, n=N), effect="idempotent"),
        replace(tool_spec("third", TEXT, n=N), effect="once"),
        replace(tool_spec("pay", TEXT, n=N), effect="once", risk=PAY),
        tool_spec("look", {"type": "object"}, n=N),
        replace(tool_spec("roll", TEXT), repeatable=True),
        replace(tool_spec("stand_in", TEXT, n=N), instead_of=("book",)),
    )
}
REPLAN = "{model: m, tools: [other, third, look, roll]%s}"


def compiled(more: str = "", node: str = "", rest: str = "", with_: str = "{n: '${input}'}") -> Program:
    """`a` calls `book`; `more` is of its `replan`, `node` of the node, `rest` comes after it."""
    text = f"name: w\nnodes:\n  a: {{tool: book, with: {with_}, replan: {REPLAN % more}{node}}}{rest}\noutput: '${{ctx.a.output?}}'"
    return Program(compile_document(text, {k: v for k, v in TOOLS.items() if k != "stand_in"}), KINDS)


def broken(**how: Any) -> Saga:
    """The step has failed for a reason that another way helps with: the model is to be asked."""
    saga = Saga(compiled(**how), 4)
    saga.go()
    saga.go(failed("a", "not_found"))
    return saga


def step(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def way(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"steps": list(steps), "why": "it may work", "trade_offs": "", "score": 50.0}


def plan(*alternatives: dict[str, Any], slot: str = "a#plan", **more: Any) -> Outcome:
    return outcome(slot, {"alternatives": list(alternatives), "dropped": []}, **more)


def outcome(slot: str, value: Any, attempt: int = 1, **more: Any) -> Outcome:
    return Outcome(slot=slot, attempt=attempt, started_at=1, ended_at=2, output=ev.Value(v=value), **more)


def at_work(saga: Saga) -> Replanning:
    work = saga.state.open["a"]
    assert isinstance(work, Replanning)
    return work


def again(outcome: Outcome, attempt: int) -> Outcome:
    """The same of a later attempt."""
    return replace(outcome, attempt=attempt)


def program_of(text: str) -> Program:
    """Of a document that may call all of `TOOLS`."""
    return Program(compile_document(text, TOOLS), KINDS)
