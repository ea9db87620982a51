"""What requests to models cost whose answers never came: counted once, at their node and their saga, and shown."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.outcomes import STOPPED, Outcome
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.workflow_limits import UNANSWERED
from baton.core.money import Assumed, assumed_in, micro_dollars
from baton.core.read.costs import ModelCosts
from tests.core.build import T0, Saga, failed
from tests.core.nodes.thinking import answered, at_work, call, thinking
from tests.kit.views import as_json


def revived(saga: Saga, **assumed: int) -> None:
    """Slots with a `_` for their `#`."""
    by_slot = {slot.replace("_", "#"): cost for slot, cost in assumed.items()}
    saga.put(ev.Revived(dead="i1", dead_epoch=1, dead_until=T0, at=T0, assumed=by_slot), epoch=2)


def of_log(saga: Saga) -> dict[str, tuple[int, float]]:
    costs = ModelCosts()
    for entry in saga.entries:
        costs.add(entry)
    return {line["what"]: (line["requests"], line["usd"]) for line in as_json(costs.lines())}


def test_an_assumed_amount_is_a_part_of_the_sum() -> None:
    spent = [Decimal("0.1"), Assumed("0.2")]
    assert (micro_dollars(spent), assumed_in(spent), assumed_in(spent[:1]), assumed_in([])) == (
        300_000,
        200_000,
        0,
        0,
    )


def test_a_revival_pays_for_the_requests_of_the_dead_and_its_node_has_them_in_its_limits() -> None:
    saga = thinking(node=", limits: {cost_usd: 1}")
    revived(saga, a_t1=300)
    assert saga.state.money.spent == 300
    assert saga.state.used["a"].cost == 300
    assert saga.state.recovery.consecutive_crashes == 1
    saga.go(answered("a#t1", data="done"))
    assert saga.state.money.spent == 320
    assert of_log(saga) == {UNANSWERED: (1, 0.0003), "m": (1, 0.0)}


def test_deaths_are_known_until_the_log_says_what_was_spent() -> None:
    saga = thinking()
    revived(saga)
    revived(saga)
    assert saga.state.recovery.deaths["a#t1"] == 2
    cut = ev.StepInterrupted(node="a", item="t1", started_at=T0, ended_at=T0, budget_ms=1)
    assert apply(saga.state, cut).recovery.deaths["a#t1"] == 2, "no request was made"
    for why in ("", "money", "fault"):
        assert "a#t1" not in apply(saga.state, replace(cut, cost=300, why=why)).recovery.deaths
    saga.go(failed("a#t1", "rate_limited"))
    assert "a#t1" not in saga.state.recovery.deaths


def test_an_answer_ends_the_deaths_before_it() -> None:
    saga = thinking()
    revived(saga)
    saga.go(answered("a#t1", data="done"))
    assert "a#t1" not in saga.state.recovery.deaths


def test_a_slot_that_is_settled_was_paid_for_all_the_same() -> None:
    saga = thinking()
    revived(saga, b=7)
    assert saga.state.money.spent == 7


@pytest.mark.parametrize("kind", [ev.AttemptFailed, ev.StepInterrupted, ev.StepFailed])
def test_an_event_says_how_much_of_its_cost_is_assumed(kind: type[Any]) -> None:
    saga = thinking(node=", on_failure: {bad_request: fail}")
    outcomes: dict[type, Outcome] = {
        ev.AttemptFailed: failed("a#t1", "timeout"),
        ev.StepFailed: failed("a#t1", "bad_request"),
        ev.StepInterrupted: Outcome(slot="a#t1", attempt=1, started_at=1, ended_at=2, budget_ms=1),
    }
    saga.go(replace(outcomes[kind], cost=500, assumed=400))
    event: Any = next(event for event in saga.entries[-1].events if isinstance(event, kind))
    assert (event.cost, event.assumed) == (500, 400)
    assert saga.state.money.spent == 500
    assert of_log(saga) == {UNANSWERED: (1, 0.0004)}


def test_what_the_saga_does_not_wait_for_any_more_says_so_too() -> None:
    saga = thinking()
    saga.go(Outcome(slot="a#t1", attempt=1, started_at=1, ended_at=2, cost=5, assumed=5, why=STOPPED))
    (event,) = [event for event in saga.entries[-1].events if isinstance(event, ev.StepInterrupted)]
    assert (event.cost, event.assumed, event.why) == (5, 5, STOPPED)


def test_a_call_that_has_failed_is_forgotten_by_its_agent_and_by_nothing_else() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1), call("look", n=2), call("look", n=1)))
    assert sorted(at_work(saga).made.values()) == ["t1-0", "t1-1"]
    assert at_work(saga).again == {"t1-2": "t1-0"}
    failure = ev.Failure("business_rule", "no")
    about = {
        "attempt": 1,
        "started_at": 1,
        "ended_at": 2,
        "tool": "look",
        "tool_version": "1",
        "schema_hash": "",
    }
    told = ev.StepFailed(node="a", item="t1-0", failure=failure, is_result=True, **about)  # type: ignore[arg-type]
    after = apply(saga.state, told)
    assert [*after.open["a"].made.values()] == ["t1-1"]  # type: ignore[union-attr]
    without = replace(saga.state, open={})
    assert apply(without, told).open == {}


def test_the_tokens_of_a_request_whose_worker_died_count_by_their_most() -> None:
    saga = thinking(node=", limits: {tokens: 5000}")
    slot = "a#t1"
    died = ev.Revived(
        dead="i1", dead_epoch=1, dead_until=T0, at=T0, assumed={slot: 40}, tokens={slot: (700, 300)}
    )
    saga.put(died, epoch=2)
    assert saga.state.used["a"].tokens == at_work(saga).used.tokens == 1_000
    assert saga.state.money.models == {UNANSWERED: (700, 300, 40)}
    costs = ModelCosts()
    costs.add(saga.entries[-1])
    (line,) = as_json(costs.lines())
    assert (line["input"], line["output"], line["requests"]) == (700, 300, 1)
