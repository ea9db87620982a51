"""A provider bills a request whose caller has died or has given it up: the most that it can cost is spent, once, and shown as assumed."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from decimal import Decimal

import pytest

from baton import StepFailure, WorkflowContext, workflow
from baton.core.log.events import AttemptFailed, Revived, StepInterrupted, StepSucceeded
from baton.core.models.usage import Usage
from baton.core.money import micro_dollars
from baton.ports import Account, SagaRef, Sums
from baton.ports.models import ModelAnswer, ModelFailure, ModelRequest
from baton.runtime.money.ledger import Ledger
from baton.tools.functions.define import document_of
from tests.kit.corpus import start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, Crash
from tests.kit.scripted import Scripted, in_turn, says
from tests.kit.virtual_time import VirtualClock, run_virtual
from tests.kit.world import TENANT, USER, World
from tests.runtime.desk import LIMITS, NOON, Desk, graph, run, state, step
from tests.runtime.test_agents import Desk as AgentsDesk
from tests.runtime.test_agents import document, of_kind, ran

MODEL = "name: w\nnodes: {ask: {model: {name: m, prompt: hi, max_output: 100}%s}}\noutput: ${ctx.ask.output}"


def dies_at_first(_: ModelRequest, number: int) -> ModelAnswer:
    if not number:
        raise Crash
    return says("hello")


def sums(world: World) -> Sums:
    return world.budgets.read(Account(TENANT, USER, VirtualClock().now() // 86_400_000))


# ---- by the engine


async def test_a_request_that_dies_with_its_worker_is_spent_in_full_and_the_revival_says_so() -> None:
    world = World.start()
    world.models = Scripted(dies_at_first)
    shown = await ran(world, MODEL % "", {})
    assert shown["result"] == "hello"
    (revived,) = of_kind(world, shown["id"], Revived)
    ((slot, assumed),) = revived.assumed.items()
    assert (slot, assumed > 1_000) == ("ask", True), (
        "a hundred tokens at ten micro-dollars, and what was sent"
    )
    (done,) = of_kind(world, shown["id"], StepSucceeded)
    assert (done.cost, done.assumed) == (200, 0)
    assert shown["spent_usd"] * 1_000_000 == pytest.approx(assumed + 200)
    assert sums(world) == Sums(assumed + 200, assumed + 200, 0)


async def test_so_is_a_request_of_a_function_whose_saga_has_spent_nothing_before() -> None:
    world = World.start()
    world.models = Scripted(dies_at_first)

    @workflow("w", registry=world.registry)
    async def asks(context: WorkflowContext) -> str:
        return await context.model("m", "hi", max_output=100)

    world.tools = world.registry.specs()
    shown = await ran(world, json.dumps(document_of(world.registry["w"])), {})
    (revived,) = of_kind(world, shown["id"], Revived)
    assert [*revived.assumed] == ["asks#model"]
    spent = sum(revived.assumed.values()) + 200
    assert shown["spent_usd"] * 1_000_000 == pytest.approx(spent)
    assert sums(world) == Sums(spent, spent, 0)


async def test_an_agents_node_and_its_saga_have_what_was_assumed_in_their_limits() -> None:
    world = World.start()
    AgentsDesk(world)
    world.models = model = Scripted(dies_at_first)
    shown = await ran(world, document(node=", limits: {cost_usd: 0.05}, on_failure: fail"), {"a": 1})
    (revived,) = of_kind(world, shown["id"], Revived)
    assert revived.assumed.keys() == {"find#t1"}
    assert (shown["status"], shown["error"]["code"]) == ("failed", "limit_cost"), shown["error"]
    assert len(model.requests) == 1


@pytest.mark.parametrize(("timeout", "kind"), [("3s", AttemptFailed), ("10m", StepInterrupted)])
async def test_a_request_that_is_given_up_is_billed_all_the_same(timeout: str, kind: type) -> None:  # noqa: ASYNC109  # of a document
    world = World.start()

    class Slow(Scripted):
        async def answer(self, request: ModelRequest) -> ModelAnswer:
            self.takes_s = 1 if self.requests else 3_600
            return await super().answer(request)

    world.models = Slow(in_turn(says("hello")))
    shown = await ran(world, MODEL % f", timeout: {timeout}", {})
    assert shown["result"] == "hello"
    (cut,) = of_kind(world, shown["id"], kind)
    assert cut.cost == cut.assumed > 1_000
    assert sums(world) == Sums(cut.cost + 200, cut.cost + 200, 0)
    assert shown["spent_usd"] * 1_000_000 == pytest.approx(cut.cost + 200)


@pytest.mark.parametrize("happened", [None, True])
async def test_a_refusal_costs_nothing_unless_the_provider_bills_it(happened: bool | None) -> None:
    world = World.start()
    failure = StepFailure("rate_limited", "slow down", happened=happened)
    world.models = Scripted(in_turn(failure, says("hello")))
    shown = await ran(world, MODEL % "", {})
    (failed,) = of_kind(world, shown["id"], AttemptFailed)
    assert failed.cost == failed.assumed
    assert bool(failed.cost) == bool(happened)
    assert sums(world).spent == failed.cost + 200


@pytest.mark.parametrize("usage", [None, Usage(input=7, output=3)])
async def test_an_answer_that_is_of_no_use_costs_what_the_provider_says_or_else_the_most(
    usage: Usage | None,
) -> None:
    world = World.start()
    world.models = Scripted(in_turn(ModelFailure("invalid_response", "cut off", usage), says("hello")))
    shown = await ran(world, MODEL % "", {})
    (failed,) = of_kind(world, shown["id"], AttemptFailed)
    assert failed.cost == (37 if usage else failed.assumed)
    assert bool(failed.assumed) == (usage is None)
    assert sums(world).spent == failed.cost + 200


async def test_a_request_to_a_model_makes_two_writes_to_the_account() -> None:
    world = World.start()
    world.models = Scripted(in_turn(says("hello")))
    await ran(world, MODEL % "", {})
    assert world.plan.writes.count("move") == 2, (
        "what it may cost is held, and what it has cost takes its place"
    )


# ---- by the ledger


def left_by_the_dead(desk: Desk) -> str:
    """An invocation that dies with a request that is billed, and another call that is not."""
    context = desk.context()
    ledger = Ledger(context, desk.cache)
    run(ledger.reserve(state(), step(0), []))
    run(ledger.cover(state(), step(0), "std.model", 300, billed=()))
    run(ledger.reserve(state("other"), step(50), []))
    assert desk.sums() == Sums(0, 350, 1)
    return context.invocation.id


def test_of_a_dead_invocation_that_is_spent_which_is_billed_and_the_rest_is_free() -> None:
    desk = Desk()
    dead = left_by_the_dead(desk)
    until = NOON + 2_000 + LIMITS.lease_grace_ms
    desk.clock.at = until + LIMITS.clock_skew_ms
    mine, others = state(tokens={"a": {"": True}}), state("other", tokens={"a": {"": True}})
    assert run(desk.ledger().revived(mine, graph(1), until, [dead])).costs == {"a": 300}
    assert desk.sums() == Sums(300, 300, 0)
    assert run(desk.ledger().revived(mine, graph(1), until, [dead])).costs == {"a": 300}, (
        "also where it was freed before"
    )
    assert run(desk.ledger().revived(others, graph(1), until, [dead])).costs == {}
    assert run(desk.ledger().revived(mine, graph(1), until, ["another"])).costs == {}
    assert run(desk.ledger().revived(state(), graph(1), until, [dead])).costs == {}, (
        "its outcome is in the log"
    )
    assert desk.sums() == Sums(300, 300, 0)


def test_what_a_holder_says_that_it_has_spent_is_a_part_of_what_was_assumed() -> None:
    desk = Desk()
    late, spent = desk.ledger(), list[Decimal]()
    run(late.reserve(state(), step(0), spent))
    run(late.cover(state(), step(0), "std.model", 300, billed=()))
    desk.clock.at += 60_000
    run(desk.ledger().revived(state(), graph(1), NOON + 2_000))
    assert desk.sums() == Sums(300, 300, 0)
    run(late.settle(state(), step(0), 120))
    run(late.drain(SagaRef("acme", "s1")))
    assert desk.sums() == Sums(300, 300, 0)
    run(late.reserve(state("s2"), step(0), spent))
    run(late.settle(state("s2"), step(0), 200))
    assert desk.sums() == Sums(320, 320, 0), "180 of it were counted before"


def test_what_was_answered_is_not_assumed() -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(0), []))
    run(ledger.cover(state(), step(0), "std.model", 300, billed=()))
    run(ledger.reserve(state("other"), step(50), []))
    run(ledger.settle(state(), step(0), 120))
    desk.clock.at += 60_000
    run(desk.ledger().revived(state(), graph(1), NOON + 2_000))
    assert desk.sums() == Sums(120, 120, 0)


def test_a_reservation_that_was_made_for_less_becomes_one_for_a_request() -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(0), [], 300))
    run(ledger.cover(state(), step(0), "std.model", 300, billed=()))
    desk.clock.at += 60_000
    run(desk.ledger().revived(state(), graph(1), NOON + 2_000))
    assert desk.sums() == Sums(300, 300, 0)


async def test_a_worker_that_dies_when_its_money_is_held_has_made_no_request_and_pays_all_the_same() -> None:
    """No write could tell the two apart that comes no more often than once a request."""
    world = World.start()
    world.models = model = Scripted(in_turn(says("hello")))
    world.plan.at = {8: CRASH_AFTER}
    shown = await ran(world, MODEL % "", {})
    assert world.plan.writes[7] == "move"
    assert len(model.requests) == 1
    (revived,) = of_kind(world, shown["id"], Revived)
    assert sums(world).spent == revived.assumed["ask"] + 200


def test_a_second_worker_that_dies_before_it_has_said_so_hides_nothing() -> None:
    """The log has what the account has, whatever the second worker was reading."""
    deaths = first_move = 0

    async def undisturbed() -> None:
        nonlocal first_move
        world = World.start()
        AgentsDesk(world)
        world.models = Scripted(in_turn(says("hello")))
        await ran(world, document(), {"a": 1})
        first_move = world.plan.writes.index("move") + 1

    run_virtual(undisturbed())
    for number in range(1, 30):

        async def disturbed(number: int) -> None:
            nonlocal deaths
            world = World.start()
            AgentsDesk(world)
            world.models = Scripted(in_turn(says("hello")))
            world.plan.at, world.plan.at_reads = {first_move: CRASH_AFTER}, {number: CRASH_BEFORE}
            with suppress(Crash):  # it was a read of the caller's
                shown = await ran(world, document(), {"a": 1})
                assert shown["result"] == "hello"
                assert sums(world).spent == round(shown["spent_usd"] * 1_000_000), world.plan.reads[:number]
                deaths += len(of_kind(world, shown["id"], Revived)) == 1 and len(world.faults) > 1

        run_virtual(disturbed(number))
    assert deaths > 2


def test_the_tokens_of_a_request_of_the_dead_count_where_they_are_limited() -> None:
    desk = Desk()
    context, spent = desk.context(), list[Decimal]()
    ledger = Ledger(context, desk.cache)
    run(ledger.reserve(state(), step(0), spent))
    run(ledger.cover(state(), step(0), "std.model", 200, billed=(700, 300)))
    spent.append(Decimal("0.0001"))  # it was answered, and another request of the same attempt is made
    run(ledger.cover(state(), step(0), "std.model", 200, billed=(1_500, 600)))
    desk.clock.at = (until := NOON + 2_000 + LIMITS.lease_grace_ms) + LIMITS.clock_skew_ms
    mine = state(tokens={"a": {"": True}})
    left = run(desk.ledger().revived(mine, graph(1), until, [context.invocation.id]))
    assert (left.costs, left.tokens) == ({"a": 200}, {"a": (1_500, 600)})
    assert desk.sums() == Sums(300, 300, 0)


async def test_a_request_that_a_worker_makes_again_after_an_interruption_is_assumed_when_it_dies() -> None:
    def dies_second(_: ModelRequest, number: int) -> ModelAnswer:
        if number == 1:
            raise Crash
        return says("hello")

    world = World.start()
    world.timeout_s = 120
    world.models = Scripted(dies_second, takes_s=8)
    saga = await start(world, MODEL % ", timeout: 5m", {}, "w")
    await asyncio.sleep(5)
    await world.service().fork(saga, 1, "again")  # it stops the first request, and makes another
    await world.settle()
    assert len(world.asked) == 3
    spent = micro_dollars([Decimal(str((await world.queries().show(saga))["spent_usd"]))])
    assert spent == sums(world).spent
