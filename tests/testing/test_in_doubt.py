"""A step whose answer was lost is undone without a person: its inverse is called with the key of the call, and the service matches the two."""

from __future__ import annotations

import pytest

from baton import Context, StepFailure, tool
from baton.testing import run
from baton.tools.define import Registry

DOCUMENT = """
name: seats
on_failure: {any: [rollback]}
nodes:
  a: {tool: seat.hold, with: {seat: "7"}}
"""


@pytest.mark.parametrize("acts", [True, False])
def test_the_inverse_gets_the_key_of_the_call_whose_answer_was_lost(acts: bool) -> None:
    registry, held, released = Registry(), list[str](), list[str]()

    @tool("seat.hold", undo="seat.release", registry=registry)
    async def hold(seat: str, context: Context) -> None:
        if acts:
            held.append(context.idempotency_key)
        raise StepFailure("unavailable", "no answer", status=503)

    @tool("seat.release", registry=registry)
    async def release(seat: str, step_key: str) -> None:
        released.append(step_key)
        if step_key in held:
            held.remove(step_key)

    result = run(DOCUMENT, tools=registry)
    assert (result.status, held, len(released)) == ("rolled_back", [], 1)
    assert released[0]
