"""The golden log of calls that have to be approved."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.log import events as ev
from tests.core.approving import WITH, asking, paying, request_of, run, unapproved
from tests.core.build import Saga, failed
from tests.core.nodes.asking import answer

WORDS = "requires_approval: {title: 'Pay ${input.amount}?', to: {group: finance}, expires: 4h}"


def approved() -> Saga:
    """One that is approved and fails, another that what was called before has made, and one that is rejected."""
    saga = paying(
        {"amount": 600},
        node=f"tool: pay, {WITH}, {WORDS}",
        more="\n  pays: {tool: pay, with: {amount: 1}, after: pay}",
    )
    asking(saga)
    saga.tell()
    answer(saga, "approve", comment="Fine.")
    step = run(saga)
    saga.go(replace(failed("pay", "service_unavailable"), attempt=1))
    saga.now = saga.state.failing["pay"].due_at
    made = replace(step, arguments={"amount": 600, "to": "eve"})
    saga.go(unapproved(saga, run(saga), request_of(made, is_changed=True)))
    answer(saga, "approve")
    run(saga)
    saga.go(replace(failed("pay", "service_unavailable"), attempt=2))
    saga.now = saga.state.failing["pay"].due_at
    other = replace(made, arguments={"amount": 700})
    saga.go(unapproved(saga, run(saga), request_of(other)))
    answer(saga, "reject")
    saga.put(ev.NoticesSent(keys=tuple(notice.key for notice in saga.state.outbox.due)))
    return saga
