"""An idempotent step whose tool names a `verify`: it looks before anything but a retry is done about a call that may have acted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.documents.compile import compile_document
from baton.core.failures.alternatives import Alternative
from baton.core.failures.policy import ANY, PolicyChange, RetryChange, Rules
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, interrupted, program, ready
from tests.core.test_undoing import undoable
from tests.core.test_undoing_called import spec
from tests.core.undo_asking import CANCEL_WITH_UNDO, asked

ONCE_MORE = RetryChange(max_attempts=2, base_ms=0)
ENDS: Rules = {ANY: PolicyChange(ladder=("retry", "rollback"), retry=ONCE_MORE)}
SILENT = failed("b", "service_unavailable", "transient")


def verified(failures: Rules = ENDS) -> Saga:
    """`a` is done, and `b` begins, of which `verify` can tell whether it has happened."""
    node = replace(undoable("b", "a"), failures=failures, effect="idempotent", verified=True)
    saga = Saga(program(undoable("a"), node))
    saga.go(done("a"))
    return saga


def lost(saga: Saga, attempt: int = 1, **more: Any) -> None:
    saga.go(replace(SILENT, attempt=attempt, **more))
    saga.go(after_ms=60_000)


def looks(saga: Saga) -> list[tuple[str, int, bool]]:
    return [(step.slot, step.attempt, step.look) for step in steps_of(saga.decision)]


def test_it_looks_once_when_retries_do_not_help() -> None:
    saga = verified()
    lost(saga)
    assert looks(saga) == [("b", 2, False)]
    lost(saga, 2)
    assert looks(saga) == [("b", 3, True)]
    saga.go(replace(SILENT, attempt=3))
    assert asked(saga) == ["b#undo"], "it could not tell"


def test_what_it_has_found_is_the_output() -> None:
    saga = verified()
    lost(saga)
    lost(saga, 2)
    saga.go(replace(done("b", {"id": 7}), attempt=3))
    assert saga.state.ended is not None
    assert saga.state.ended.status == "completed"


def test_a_refusal_after_a_lost_answer_is_looked_at_too() -> None:
    saga = verified()
    lost(saga)
    saga.go(replace(failed("b", "gone", "permanent"), attempt=2), after_ms=60_000)
    saga.go(after_ms=60_000)
    assert looks(saga) == [("b", 3, True)]
    last = failed("b", "gone", "permanent")
    assert last.failure is not None
    saga.go(replace(last, attempt=3, failure=replace(last.failure, refused=True)))
    assert (asked(saga), ready(saga.decision)) == ([], ["a#undo"]), "it has not happened"


def test_a_refusal_alone_is_not_looked_at() -> None:
    saga = verified()
    saga.go(failed("b", "gone", "permanent"))
    assert ready(saga.decision) == ["a#undo"]


def test_a_look_after_a_timeout_waits_until_the_call_is_over() -> None:
    saga = verified({ANY: PolicyChange(ladder=("rollback",))})
    saga.go(failed("b", "timeout", "transient"))
    assert saga.decision.due == saga.state.failing["b"].due_at >= saga.now + 5_000


def test_what_another_way_has_done_is_not_looked_at() -> None:
    saga = verified()
    lost(saga)
    before = saga.state.failing["b"]
    saga.state = replace(
        saga.state, failing={"b": replace(before, way=Alternative(name="x", arguments={"n": 4}))}
    )
    saga.go(replace(SILENT, attempt=2), after_ms=60_000)
    assert asked(saga) == ["b#undo"], "`verify` knows the step's own call"


def test_a_question_that_expires_is_not_followed_by_another_look() -> None:
    saga = verified({ANY: PolicyChange(ladder=("ask_user", "rollback"))})
    lost(saga)
    saga.go(replace(SILENT, attempt=2))
    assert asked(saga) == ["b"]
    saga.go(after_ms=86_400_000)
    assert asked(saga) == ["b#undo"]


@pytest.mark.parametrize("attempts", [0, 1, 2])
def test_a_saga_that_is_undone_looks_at_it_and_does_not_call_it_again(attempts: int) -> None:
    saga = verified()
    for number in range(attempts):
        lost(saga, number + 1)
    saga.go(running=["b"])
    saga.die()
    saga.put(CANCEL_WITH_UNDO)
    saga.go()
    assert looks(saga) == [("b", attempts + 1, True)]
    saga.go(replace(SILENT, attempt=attempts + 1))
    assert asked(saga) == ["b#undo"]


def test_one_that_waits_for_its_next_attempt_is_looked_at_when_the_saga_is_undone() -> None:
    saga = verified()
    lost(saga)
    saga.put(CANCEL_WITH_UNDO)
    saga.go()
    assert looks(saga) == [("b", 2, True)]


def test_one_that_is_done_another_way_is_called_again_when_the_saga_is_undone() -> None:
    saga = verified()
    lost(saga)
    before = saga.state.failing["b"]
    saga.state = replace(
        saga.state, failing={"b": replace(before, way=Alternative(name="x", arguments={"n": 4}))}
    )
    saga.go(running=["b"])
    saga.die()
    saga.put(CANCEL_WITH_UNDO)
    saga.go()
    assert looks(saga) == [("b", 2, False)]


@pytest.mark.parametrize(
    ("effect", "more", "found"),
    [
        ("idempotent", "", True),
        ("idempotent", "    callback: {timeout: 1h}\n", False),
        ("once", "", False),
    ],
)
def test_a_graph_says_so_of_an_idempotent_tool_that_has_one(effect: str, more: str, *, found: bool) -> None:
    look = spec("look", effect="pure")
    hold = spec("hold", "city", effect=effect, verify="look")
    text = f"name: w\nnodes:\n  a:\n    tool: hold\n    with: {{city: x}}\n{more}"
    assert compile_document(text, {"hold": hold, "look": look}).nodes[0].verified == found


def test_a_look_that_no_invocation_is_long_enough_for_leaves_the_outcome_unknown() -> None:
    saga = verified()
    lost(saga)
    saga.put(CANCEL_WITH_UNDO)
    saga.go()
    for _ in range(3):
        assert looks(saga) == [("b", 2, True)]
        saga.go(replace(interrupted("b"), attempt=2))
    assert asked(saga) == ["b#undo"]


def test_a_look_that_is_to_come_is_made_where_the_saga_stops_before_it() -> None:
    saga = verified()
    lost(saga)
    saga.go(replace(SILENT, attempt=2))
    saga.put(CANCEL_WITH_UNDO)
    saga.go()
    assert looks(saga) == [("b", 3, True)]
