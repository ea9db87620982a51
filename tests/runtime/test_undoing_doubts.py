"""A person is asked whether a step in doubt has happened before it is undone, and the answer takes the undoing up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import UNSET

from baton import Context, StepFailure, tool
from baton.core.log.events import CancelRequested
from baton.core.log.questions import Answer
from baton.errors import InvalidInput
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.undoing import Ledger, add_ledger

SILENT = """
name: w
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {tool: trip.rent, with: {what: car}, after: a, on_failure: [rollback]}
"""
CHARGE = """
name: w
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {tool: trip.charge, with: {what: deposit}, after: a}
"""
CANCEL = CancelRequested(reason="changed my mind", by="", at=0, grace_ms=0, undo=True)


def add_silent(world: World, ledger: Ledger, error: Exception | None = None) -> None:
    """`rent` and `charge` act and then have no answer; `charge` may happen only once, and nothing looks whether it has."""

    @tool("trip.rent", undo="trip.cancel", registry=world.registry)
    async def rent(what: str, context: Context) -> dict[str, str]:
        ledger.begin("rent", what, context.idempotency_key)
        ledger.in_force["r-1"] = what
        raise error or StepFailure("timeout", "no answer")

    @tool("trip.charge", effect="once", undo="trip.cancel", registry=world.registry)
    async def charge(what: str, context: Context) -> dict[str, str]:
        ledger.begin("charge", what, context.idempotency_key)
        ledger.in_force["c-1"] = what
        raise StepFailure("timeout", "no answer")

    world.tools = world.registry.specs()


async def question_of(world: World, saga: str) -> dict[str, Any]:
    [question] = (await world.queries().show(saga))["questions"]
    found: dict[str, Any] = question
    return found


async def say(world: World, saga: str, action: str, output: Any = UNSET) -> None:
    ask = (await question_of(world, saga))["id"]
    await world.service().answer(saga, Answer(ask=ask, action=action, output=output), "")
    await world.settle(600)


@pytest.mark.parametrize(
    "error",
    [
        None,
        StepFailure("connection_failed", "it broke"),
        StepFailure("server_error", "oh", status=500),
        ValueError("id"),
    ],
    ids=["timeout", "connection", "5xx", "error"],
)
@pytest.mark.parametrize(
    ("action", "status", "left"),
    [
        ("use", "rolled_back", []),
        ("retry", "rolled_back", ["car"]),
        ("fail", "rollback_failed", ["car"]),
    ],
)
async def test_the_answer_says_what_is_undone(
    error: Exception | None, action: str, status: str, left: list[str]
) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_silent(world, ledger, error)
    saga = await start(world, SILENT, {}, "w")
    await world.settle(600)
    view = await world.queries().show(saga)
    assert (view["status"], view["undo"]["doubtful"]) == ("suspended", [])
    assert list(ledger.in_force.values()) == ["hotel", "car"], "nothing older is undone before"
    assert len([one for one in world.notices.said if one.to == "user"]) == 1
    await say(world, saga, action, {"id": "r-1"} if action == "use" else UNSET)
    view = await world.queries().show(saga)
    assert (view["status"], list(ledger.in_force.values())) == (status, left)
    assert ledger.deeds.count("rent car") == 1, "nothing is called again"
    assert view["undo"]["doubtful"] == (["b"] if action == "fail" else [])


async def test_the_wait_for_the_answer_costs_nothing() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_silent(world, ledger)
    saga = await start(world, SILENT, {}, "w")
    await world.settle(600)
    before = (len(world.entries(saga)), len(world.running))
    await asyncio.sleep(20 * 3_600)
    assert (len(world.entries(saga)), len(world.running)) == before
    await asyncio.sleep(5 * 3_600)
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], view["undo"]["doubtful"]) == ("rollback_failed", ["b"])
    assert list(ledger.in_force.values()) == ["car"], "the rest is undone all the same"
    assert [one.code for one in world.notices.said if one.to == "on_call"] == ["unknown_outcome"]


async def test_a_once_only_step_without_verify_is_asked_about_again_when_the_saga_is_cancelled(
    says: Says,
) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_silent(world, ledger)
    saga = await start(world, CHARGE, {}, "w")
    await world.settle(600)
    first = await question_of(world, saga)
    await world.service().cancel(saga, "changed my mind", 0, undo=True)
    await world.settle(600)
    second = await question_of(world, saga)
    assert first["id"] != second["id"]
    says.within(second["message"])
    with pytest.raises(InvalidInput, match="/output"):
        await say(world, saga, "use", 7)
    await say(world, saga, "use", {"id": "c-1"})
    view = await world.queries().show(saga)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert view["error"]["code"] == "cancelled"


async def test_a_later_rollback_asks_about_what_no_person_has_said() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_silent(world, ledger)
    saga = await start(world, SILENT, {}, "w")
    await world.settle(600)
    await say(world, saga, "fail")
    answer = await world.service().rollback(saga, CANCEL)
    assert answer["plan"]["doubtful"] == 1
    await world.settle(600)
    await say(world, saga, "use", {"id": "r-1"})
    view = await world.queries().show(saga)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})


async def test_a_plan_counts_steps_in_doubt_as_far_as_the_rollback_goes_back() -> None:
    world = World.start()
    add_ledger(world, Ledger())
    add_silent(world, Ledger())
    caught = SILENT.replace("on_failure: [rollback]", "retry: none, catch: c")
    saga = await start(world, caught + "  c: {tool: trip.book, with: {what: bike}}", {}, "w")
    await world.settle(600)
    plan = (await world.service().rollback_plan(saga, 0))["plan"]
    assert [(one["step"], one["doubtful"]) for one in plan["steps"]] == [
        ("c", False),
        ("b", True),
        ("a", False),
    ]
    versions = [0, *(one["version"] for one in reversed(plan["steps"][1:]))]
    plans = [(await world.service().rollback_plan(saga, version))["plan"] for version in versions]
    assert [(one["undoable"], one["doubtful"]) for one in plans] == [(2, 1), (1, 1), (1, 0)]


async def test_a_plan_names_a_call_in_doubt_that_its_step_has_left_for_another_beside_it() -> None:
    world = World.start()
    add_ledger(world, Ledger())
    add_silent(world, Ledger())
    other = "failover: [{name: p, when: {code: timeout}, then: {tool: trip.pay, with: {what: car}}}]"
    document = SILENT.replace("on_failure: [rollback]", f"retry: none, {other}")
    saga = await start(world, document, {}, "w")
    await world.settle(600)
    plan = (await world.service().rollback_plan(saga, 0))["plan"]
    assert [(one["step"], one["by"], one["doubtful"]) for one in plan["steps"]] == [
        ("b", "trip.refund", False),
        ("b", "trip.cancel", True),
        ("a", "trip.cancel", False),
    ]
    assert (plan["undoable"], plan["doubtful"]) == (2, 1)


async def test_a_call_of_an_agent_that_was_cut_off_is_made_again_with_its_own_arguments() -> None:
    """Its answer says what there is to undo."""
    world = World.start()
    add_ledger(world, ledger := Ledger())
    world.models = Scripted(by_turn(asks_for(("trip_book", {"what": "hotel", "seconds": 5})), says("done")))
    document = """
name: w
on_failure: [rollback]
nodes:
  plan: {agent: {model: m, prompt: Go., tools: [trip.book]}}
  end: {tool: trip.fail, with: {after: 4}}
"""
    saga = await start(world, document, {}, "w")
    while not [process for process in world.running if process[0] == saga and "plan" in process[1]]:
        await asyncio.sleep(0.5)
    await asyncio.sleep(1)
    for process in {id(one): one for one in world.running.values()}.values():
        process.is_dead = True
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})


PAID = """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {tool: trip.pay, with: {what: deposit}, after: a}
  c: {tool: trip.fail, after: b}
"""


@pytest.mark.parametrize(
    ("action", "status", "calls"),
    [("retry", "rolled_back", 6), ("use", "rolled_back", 5), ("fail", "rollback_failed", 5)],
)
async def test_a_once_only_inverse_that_failed_too_long_ago_is_not_called_again_before_a_person_has_looked(
    action: str, status: str, calls: int, says: Says
) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund": 5}))
    saga = await start(world, PAID, {}, "w")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "rollback_failed"
    world.reconciler_gap_s = 600  # seldom, while days go by
    await asyncio.sleep(8 * 86_400)
    world.reconciler_gap_s = 60
    await world.service().rollback(saga, CANCEL)
    await world.settle(600)
    question = await question_of(world, saga)
    says(question["message"])
    assert ledger.deeds.count("refund deposit") == 5
    await say(world, saga, action, None if action == "use" else UNSET)
    view = await world.queries().show(saga)
    assert (view["status"], ledger.deeds.count("refund deposit")) == (status, calls)


async def test_an_inverse_of_which_it_is_not_known_whether_it_has_happened_asks_as_any_step() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    silent = [True]

    @tool("trip.repay", effect="once", registry=world.registry)
    async def repay(id: str) -> None:
        ledger.deeds.append("repay")
        if silent.pop():
            raise StepFailure("timeout", "no answer")

    world.tools = world.registry.specs()
    document = PAID.replace("{what: deposit}", "{what: deposit}, compensate: {tool: trip.repay}")
    saga = await start(world, document, {}, "w")
    await world.settle(600)
    assert (await world.queries().show(saga))["status"] == "suspended"
    silent.append(False)
    await say(world, saga, "retry")
    view = await world.queries().show(saga)
    assert (view["status"], ledger.deeds.count("repay")) == ("rolled_back", 2)


def add_hanging(world: World) -> list[float]:
    """`hang` takes an hour. When each call of it began and ended."""
    calls: list[float] = []
    loop = asyncio.get_running_loop()

    @tool("trip.hang", registry=world.registry)
    async def hang(id: str) -> None:
        calls.append(loop.time())
        try:
            await asyncio.sleep(3_600)
        finally:
            calls.append(loop.time())

    world.tools = world.registry.specs()
    return calls


def with_hanging(more: str) -> str:
    return PAID.replace("{what: deposit}", f"{{what: deposit}}, compensate: {{tool: trip.hang, {more}}}")


async def test_all_attempts_to_undo_a_step_have_their_time_together() -> None:
    world = World.start()
    add_ledger(world, Ledger())
    calls = add_hanging(world)
    saga = await start(world, with_hanging("timeout: 3s, retry: {budget: 6s, base: 500ms}"), {}, "w")
    await world.settle(7_200)
    assert (await world.queries().show(saga))["status"] == "rollback_failed"
    assert len(calls) == 4
    assert calls[3] - calls[0] <= 6
    assert calls[3] - calls[2] < 2.9, "the last attempt has what is left"


async def test_an_inverse_for_which_no_invocation_is_long_enough_is_given_up_and_the_rest_is_undone(
    says: Says,
) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_hanging(world)
    saga = await start(world, with_hanging("timeout: 4m"), {}, "w")
    await world.settle(7_200)
    view = await world.queries().show(saga)
    assert (view["status"], list(ledger.in_force.values())) == ("rollback_failed", ["deposit"])
    says(view["undo"]["failed"][0]["message"])
