"""Calls that have to be approved, as the runtime tells of them; for the tests of approvals. No assertions about behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.core.decide.decision import RunStep
from baton.core.decide.outcomes import APPROVAL, Outcome
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.risk import Risk
from baton.core.effects.toolspec import ApprovalRequest, ToolSpec, request_for
from baton.core.log import events as ev
from baton.core.log.questions import open_questions
from baton.core.nodes.registry import KINDS
from tests.core.asked import steps_of
from tests.core.build import Saga

PAY = Risk(action="payment", amount="amount", currency_is="USD")


def spec(name: str, **more: Any) -> ToolSpec:
    parameters = {"type": "object", "properties": {"amount": {}, "to": {}}, "additionalProperties": False}
    return ToolSpec(name=name, version="1", effect="once", parameters=parameters, result={}, **more)


TOOLS = {one.name: one for one in (
    spec("pay", risk=PAY), spec("wipe", requires_approval=True), spec("t"), spec("pay.other", instead_of=("pay",), hints=("find_alternative_resource",), risk=PAY),
)}  # fmt: skip
WITH = "with: {amount: '${input.amount}', to: bob}"
CATCH = "catch: {code: rejected, then: no}"
AFTER = "\n  then: {tool: t, after: pay}\n  no: {value: '${last_error.message}'}"


def compiled(node: str = f"tool: pay, {WITH}, {CATCH}", more: str = AFTER) -> Program:
    return Program(compile_document(f"name: w\nnodes:\n  pay: {{{node}}}{more}", TOOLS), KINDS)


def paying(given: Any = None, **more: Any) -> Saga:
    return Saga(compiled(**more), {"amount": 600} if given is None else given)


def request_of(step: RunStep, **changes: Any) -> ApprovalRequest | None:
    """What the runtime finds before the call."""
    approval = step.node.approval
    found = request_for(
        step.node.tool,
        step.arguments,
        TOOLS[step.node.tool],
        always=approval is not None and approval.always,
        rules=step.risk,
    )
    return None if found is None else msgspec.structs.replace(found, **changes)


def unapproved(saga: Saga, step: RunStep, request: ApprovalRequest | None = None) -> Outcome:
    found = request or request_of(step)
    assert found is not None, "it needs none"
    return Outcome(
        slot=step.slot, attempt=step.attempt, started_at=saga.now, ended_at=saga.now, why=APPROVAL, request=found
    )  # fmt: skip


def asking(saga: Saga, **changes: Any) -> ev.Ask:
    (step,) = steps_of(saga.go())
    request = request_of(step, **changes)
    saga.go(unapproved(saga, step, request))
    (pair,) = open_questions(saga.state)
    return pair[1]


def run(saga: Saga) -> RunStep:
    (step,) = (one for one in steps_of(saga.go()) if one.slot.startswith("pay"))
    return step
