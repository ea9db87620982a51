"""Every limit that can be set: with two values of it the same saga does two different things; one measure for each field."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import pytest

from baton import Context, Key, StepFailure, tool
from baton.core.limits import (
    Effects,
    Estimates,
    Execution,
    Failing,
    LastResort,
    Lifetime,
    Limits,
    Liveness,
    Money,
    People,
    Questions,
    Registration,
    Replanning,
    Retrying,
    SignalLimits,
    Stores,
    Tenants,
    Values,
)
from baton.core.log.events import CancelRequested, NoticeDue, Parked, Revived, StepFailed
from baton.errors import BudgetSpent, NotAllowedNow, TooManyRequests
from baton.tools.define import Registry
from tests.kit.blocking_tool import Holding
from tests.kit.documents import chain_of, fan_of
from tests.kit.faults import THROTTLE, Plan
from tests.kit.virtual_time import run_virtual
from tests.kit.world import USER, World
from tests.settings import breakers, defaults, lifetimes, people

SECTIONS = (
    *(
        Execution,
        Failing,
        Retrying,
        Registration,
        Replanning,
        Questions,
        LastResort,
        Effects,
        Liveness,
        Lifetime,
    ),
    *(Values, SignalLimits, People, Tenants, Stores, Estimates, Money),
)


@dataclass(frozen=True)
class Case:
    """`measure` in a world with `few` and in one with `many` of something gives these."""

    measure: Callable[[World], Awaitable[Any]]
    few: int | str
    many: int | str
    expected: tuple[Any, Any]
    world: dict[str, Any] | None = None


def add_tools(registry: Registry) -> None:
    @tool("nap", registry=registry)
    async def nap(seconds: float) -> None:
        """Has no timeout of its own."""
        await asyncio.sleep(seconds)

    @tool("buy", registry=registry)
    async def buy(context: Context) -> None:
        context.spend("0.40")

    @tool("reserve_table", effect="once", key=Key.content("table"), registry=registry)
    async def reserve_table(table: str) -> None: ...

    tried: list[str] = []

    @tool("charge_card", undo="refund", registry=registry)
    async def charge_card() -> None: ...

    @tool("refund", effect="once", registry=registry)
    async def refund() -> None:
        tried.append("refund")
        if len(tried) == 1:
            raise StepFailure("closed", "on Mondays", kind="permanent")


def observe(case: Case, setting: str, value: int | str) -> Any:
    async def main() -> Any:
        changed: dict[str, Any] = {setting: value}
        world = World.start(limits=Limits(**changed), **(case.world or {}))
        add_tools(world.registry)
        world.tools = world.registry.specs()
        return await case.measure(world)

    return run_virtual(main())


async def finished(world: World, document: str, given: Any = None) -> str:
    """The id of a saga of the document, once nothing happens any more."""
    registered = await world.service().register(document, json_only=False)
    view, _ = await world.service().start(registered.definition.name, given or {}, "")
    await world.settle()
    return str(view["id"])


async def status(world: World, document: str, given: Any = None) -> str:
    return str((await world.queries().show(await finished(world, document, given)))["status"])


# ---- execution -----------------------------------------------------------------------------------------------


async def a_nap_of_three_seconds(world: World) -> str:
    return await status(world, "name: w\non_failure: [rollback]\nnodes: {a: {tool: nap, with: {seconds: 3}}}")


async def fate_of_a_step_that_never_succeeds(world: World) -> str:
    registered = await world.service().register("name: w\nnodes: {a: {tool: refuse}}", json_only=False)
    view, _ = await world.service().start(registered.definition.name, {}, "")
    await world.settle(3_600)
    return str((await world.queries().show(view["id"]))["status"])


async def invocations_for_two_new_tools(world: World) -> int:
    document = """
        name: w
        nodes:
          a: {tool: work, with: {n: 1}}
          b: {tool: measure, with: {text: x}, after: a}
    """
    return int((await world.queries().show(await finished(world, document)))["invocations"])


async def invocations_for_ten_steps(world: World) -> int:
    return int(
        (await world.queries().show(await finished(world, chain_of(10, 0.4), {"n": 0})))["invocations"]
    )


async def life_of_a_dead_invocation(world: World) -> int:
    saga = await finished(world, "name: w\nnodes: {a: {tool: kill}}")
    death = next(event for event in world.events(saga) if isinstance(event, Revived))
    begun = next(entry.at for entry in world.entries(saga) if entry.version == 1)
    return round((death.dead_until - begun) / 1_000)


async def seconds_until_a_dead_invocation_is_succeeded(world: World) -> int:
    saga = await finished(world, "name: w\nnodes: {a: {tool: kill}}")
    death = next(event for event in world.events(saga) if isinstance(event, Revived))
    begun = next(entry.at for entry in world.entries(saga) if entry.version == 1)
    return round((death.at - begun) / 1_000)


async def entries_of_ten_siblings(world: World) -> int:
    return len(world.entries(await finished(world, fan_of(10), {})))


async def deaths_before_a_person_is_asked(world: World) -> int:
    saga = await finished(world, "name: w\nnodes: {a: {tool: kill}}")
    assert any(isinstance(event, Parked) for event in world.events(saga))
    return sum(isinstance(event, Revived) for event in world.events(saga))


async def times_that_a_blocked_loop_is_told_of(world: World) -> int:
    holding = Holding(world.limits.loop_blocked_ms)
    holding.add_to(world.registry)
    world.tools, world.watch = world.registry.specs(), holding.watch
    await finished(world, "name: w\nnodes: {a: {tool: hold, with: {ms: 3000}}}")
    return len(holding.told)


async def end_of_a_saga_with_a_grandchild(world: World) -> str:
    await world.service().register(chain_of(1), json_only=False)
    inner = "name: inner\nnodes: {a: {workflow: chain, with: {n: 1}}}"
    await world.service().register(inner, json_only=False)
    return await status(world, "name: outer\nnodes: {a: {workflow: inner, with: {}}}")


async def seconds_until_a_cancel_is_heard(world: World) -> int:
    await world.service().register("name: w\nnodes: {a: {tool: nap, with: {seconds: 25}}}", json_only=False)
    saga = (await world.service().start("w", {}, ""))[0]["id"]
    await asyncio.sleep(2)
    await world.service().cancel(saga, "changed my mind", 0)
    await world.settle()
    asked, *_, ended = [entry.at for entry in world.entries(saga)][1:]
    return round((ended - asked) / 1_000)


async def invocations_of_ten_seconds_while_others_wait(world: World) -> int:
    await world.service().register(chain_of(20, 0.5), json_only=False)
    first, _ = [(await world.service().start("chain", {"n": 0}, ""))[0]["id"] for _ in range(2)]
    await world.settle()
    return int((await world.queries().show(first))["invocations"])


async def fate_of_twenty_rounds(world: World) -> str:
    loop = "{while: 'loop.iteration < 19', back_to: a, max_iterations: 50}"
    return await status(world, f"name: w\nnodes: {{a: {{tool: work, with: {{n: 1}}, loop: {loop}}}}}")


async def snapshots_of_twenty_invocations(world: World) -> bool:
    saga = await finished(world, chain_of(40, 2.0), {"n": 0})
    (head,) = (head for head in world.log.heads() if head.ref.id == saga)
    return head.snapshot > 0


# ---- failing -----------------------------------------------------------------------------------------------------


async def invocations_of_a_step_that_is_tried_again(world: World) -> int:
    """After a pause of half a second, more or less."""
    document = """
        name: w
        retry: {base: 500ms}
        nodes: {a: {tool: fails_as_told, with: {n: 1, fails: [service_unavailable]}}}
    """
    saga = await finished(world, document)
    assert (await world.queries().show(saga))["status"] == "completed"
    return int((await world.queries().show(saga))["invocations"])


# ---- retries ---------------------------------------------------------------------------------------------------

RETRIED = "name: w\non_failure: fail\nretry: {max_attempts: 5, backoff: fixed, base: 3s, on: tool_error}\nnodes: {a: {tool: refuse}}"


async def attempts_of_a_step_that_fails(world: World) -> int:
    saga = await finished(world, RETRIED)
    await asyncio.sleep(60)
    (failed,) = (event for event in world.events(saga) if isinstance(event, StepFailed))
    return failed.attempt


# ---- liveness --------------------------------------------------------------------------------------------------


async def minutes_until_it_is_looked_at(world: World) -> int:
    await world.service().register("name: w\nnodes: {a: {wait: {signal: go}}}", json_only=False)
    await world.service().start("w", {}, "")
    await asyncio.sleep(5)
    (head,) = world.log.heads()
    return round(((head.due_at or 0) - head.created) / 60_000)


async def is_looked_at_hourly_after_a_week(world: World) -> bool:
    """Of a saga that gets no signal."""
    await world.service().register("name: w\nnodes: {a: {wait: {signal: go}}}", json_only=False)
    await world.service().start("w", {}, "")
    world.reconciler_gap_s = 900
    await asyncio.sleep(7 * 86_400)
    (head,) = world.log.heads()
    return (head.due_at or 0) - head.created - 7 * 86_400_000 <= 3_600_000


# ---- effects that happen once ----------------------------------------------------------------------------------

BOOKING = "name: w\nnodes: {a: {tool: reserve_table, with: {table: t-1}}}"


async def days_that_a_booking_is_remembered(world: World) -> int:
    await finished(world, BOOKING)
    (effect,) = world.effects.stored.values()
    return round((effect.expires - effect.updated) / 86_400_000)


async def fate_of_a_rollback_ten_seconds_after_one_that_failed(world: World) -> str:
    saga = await finished(world, "name: w\nnodes: {a: {tool: charge_card}}")
    wanted = CancelRequested(reason="no", by="", at=0, grace_ms=0, undo=True)
    for _ in range(2):
        await world.service().rollback(saga, wanted)
        await asyncio.sleep(10)
    return str((await world.queries().show(saga))["status"])


# ---- money -----------------------------------------------------------------------------------------------------

TWO_PURCHASES = "name: w\nnodes: {a: {tool: buy}, b: {tool: buy, after: a}}"


async def fate_of_a_saga_that_spends_eighty_cents(world: World) -> str:
    return await status(world, TWO_PURCHASES)


async def is_refused_after_eighty_cents(world: World, user: str) -> bool:
    await finished(world, TWO_PURCHASES)
    try:
        await world.service(user=user).start("w", {}, "")
    except BudgetSpent:
        return True
    return False


async def warnings_of_a_saga_that_spends_eighty_cents(world: World) -> int:
    saga = await finished(world, TWO_PURCHASES)
    return sum(isinstance(event, NoticeDue) for event in world.events(saga))


# ---- values, signals, stores -----------------------------------------------------------------------------------


async def blobs_of_two_values_of_three_kilobytes(world: World) -> int:
    document = "name: w\nnodes: {a: {tool: fill, with: {size: 3000}}}\noutput: '${ctx.a.output.text}'"
    await world.service().register(document, json_only=False)
    known = len(world.blobs.stored)
    await finished(world, document)
    return len(world.blobs.stored) - known


async def fate_of_a_result_of_three_kilobytes(world: World) -> str | None:
    saga = await finished(world, "name: w\nnodes: {a: {tool: fill, with: {size: 3000}}}")
    failures = [event.failure.code for event in world.events(saga) if isinstance(event, StepFailed)]
    return failures[0] if failures else None


async def signals_until_one_is_refused(world: World) -> int:
    document = "name: w\nnodes: {a: {wait: {for: 1h}}, b: {wait: {signal: go}, after: a}}"
    await world.service().register(document, json_only=False)
    saga = (await world.service().start("w", {}, ""))[0]["id"]
    for sent in range(20):
        try:
            await world.service().signal(saga, "go", sent, f"k{sent}")
        except NotAllowedNow:
            return sent
    return 20


async def starts_until_one_is_refused(world: World) -> int:
    await world.service().register(chain_of(1, 1.0), json_only=False)
    for started in range(20):
        try:
            await world.service().start("chain", {"n": 0}, "")
        except TooManyRequests:
            return started
    return 20


async def seconds_of_a_throttled_request(world: World) -> int:
    """How long a request takes whose first six writes are refused; a read is not."""
    await world.service().register("name: w\nnodes: {a: {wait: {signal: go}}}", json_only=False)
    world.plan = Plan(dict.fromkeys(range(1, 7), THROTTLE))
    before = asyncio.get_running_loop().time()
    await world.service().start("w", {}, "")
    return round(asyncio.get_running_loop().time() - before)


async def gb_seconds_of_four_steps_of_a_second(world: World) -> int:
    """As the cost of the saga shows them, rounded."""
    saga = await finished(world, chain_of(4, 1.0), {"n": 0})
    charges = (await world.queries().cost(saga))["aws"]
    return sum(round(line["quantity"]) for line in charges if line["unit"] == "GB-seconds")


async def notes_on_a_step_of_two_minutes(world: World) -> int:
    document = "name: long\nnodes: {a: {tool: nap, with: {seconds: 1}, timeout: 2m}}"
    return len((await world.service().register(document, json_only=False)).notes)


CASES: dict[str, Case] = {
    "step_timeout_ms": Case(a_nap_of_three_seconds, 2_000, 30_000, ("failed", "completed")),
    "step_estimate_ms": Case(invocations_for_two_new_tools, 1_500, 4_800, (1, 2)),
    "yield_reserve_ms": Case(invocations_for_ten_steps, 1_000, 4_500, (1, 2)),
    "lease_ms": Case(life_of_a_dead_invocation, 15_000, 45_000, (15, 45), {"timeout_s": 60}),
    "lease_grace_ms": Case(life_of_a_dead_invocation, 1_000, 21_000, (7, 27)),
    "clock_skew_ms": Case(seconds_until_a_dead_invocation_is_succeeded, 1, 10_000, (8, 18)),
    "concurrent_steps": Case(entries_of_ten_siblings, 1, 100, (13, 6)),
    "max_deaths": Case(deaths_before_a_person_is_asked, 1, 3, (1, 3)),
    "turn_ms": Case(
        invocations_of_ten_seconds_while_others_wait,
        2_000,
        900_000,
        (4, 1),
        {"slots": 1, "batch": 1, "timeout_s": 30},
    ),
    "saga_hops": Case(fate_of_twenty_rounds, 19, 20, ("failed", "completed")),
    "nesting_depth": Case(end_of_a_saga_with_a_grandchild, 1, 8, ("failed", "completed")),
    "loop_blocked_ms": Case(times_that_a_blocked_loop_is_told_of, 500, 5_000, (1, 0)),
    "news_every_ms": Case(seconds_until_a_cancel_is_heard, 1_000, 15_000, (0, 13), {"timeout_s": 60}),
    "snapshot_tail_bytes": Case(snapshots_of_twenty_invocations, 1_024, 1_048_576, (True, False)),
    "retry_inside_ms": Case(invocations_of_a_step_that_is_tried_again, 1, 2_000, (2, 1)),
    "breaker_failures": Case(breakers.calls_until_one_opens, 2, 4, (2, 4)),
    "breaker_pause_ms": Case(breakers.minutes_until_a_probe, 1_000, 600_000, (0, 11)),
    "sweep_shortest_ms": Case(minutes_until_it_is_looked_at, 300_000, 1_800_000, (5, 30)),
    "sweep_longest_ms": Case(is_looked_at_hourly_after_a_week, 3_600_000, 86_400_000, (True, False)),
    "on_failure": Case(fate_of_a_step_that_never_succeeds, "ask", "fail", ("suspended", "failed")),
    "error_budget_percent": Case(breakers.failures_that_are_left, "10", "50", (-1, 3)),
    "saga_days": Case(lifetimes.days_until_a_saga_fails_that_gets_no_signal, 2, 10, (2, None)),
    "retention_days": Case(lifetimes.is_a_saga_there_a_year_later, 2, 10, (False, True)),
    "retry_policy": Case(defaults.attempts_of_a_step, "none", "quick", (1, 3)),
    "undo_attempts": Case(defaults.attempts_of_an_inverse, 2, 5, (2, 5)),
    "undo_ms": Case(defaults.attempts_of_an_inverse, 1_000, 600_000, (1, 5)),
    "replan_attempts": Case(defaults.other_ways_of_a_step, 1, 4, (1, 4)),
    "model_replanning": Case(defaults.is_a_model_asked_about_a_failed_step, "off", "on", (False, True)),
    "question_timeout_ms": Case(
        defaults.hours_of_questions, 3 * defaults.HOUR, 24 * defaults.HOUR, ((3, 3, 3, 48), (24, 24, 24, 48))
    ),
    "saga_timeout_ms": Case(
        defaults.fates_after_an_hour, 60_000, 0, (("failed", "waiting"), ("waiting", "waiting"))
    ),
    "saga_retries": Case(attempts_of_a_step_that_fails, 2, 0, (3, 5)),
    "saga_retry_ms": Case(attempts_of_a_step_that_fails, 4_000, 0, (2, 5)),
    "effect_ttl_days": Case(days_that_a_booking_is_remembered, 400, 500, (400, 500)),
    "effect_retry_ms": Case(
        fate_of_a_rollback_ten_seconds_after_one_that_failed, 1_000, 60_000, ("suspended", "rolled_back")
    ),
    "saga_budget_usd": Case(fate_of_a_saga_that_spends_eighty_cents, "0.40", "0.80", ("parked", "completed")),
    "user_day_budget_usd": Case(
        partial(is_refused_after_eighty_cents, user=USER), "0.80", "0.81", (True, False)
    ),
    "tenant_day_budget_usd": Case(
        partial(is_refused_after_eighty_cents, user="eve"), "0.80", "0.81", (True, False)
    ),
    "budget_warning_percent": Case(warnings_of_a_saga_that_spends_eighty_cents, 80, 81, (1, 0)),
    "inline_bytes": Case(blobs_of_two_values_of_three_kilobytes, 1_024, 8_192, (2, 0)),
    "result_bytes": Case(fate_of_a_result_of_three_kilobytes, 1_024, 8_192, ("result_too_large", None)),
    "signals_kept": Case(signals_until_one_is_refused, 2, 10, (2, 10)),
    "pending_per_person": Case(people.told_of_twelve_questions, 2, 10, (2, 10)),
    "tenant_sagas": Case(starts_until_one_is_refused, 2, 10, (2, 10)),
    "store_pause_first_ms": Case(seconds_of_a_throttled_request, 20, 2_000, (1, 8)),
    "store_pause_longest_ms": Case(seconds_of_a_throttled_request, 20, 2_000, (0, 1)),
    "worker_timeout_s": Case(notes_on_a_step_of_two_minutes, 60, 120, (1, 0)),
    "worker_memory_mb": Case(gb_seconds_of_four_steps_of_a_second, 512, 2_048, (2, 10)),
}


def test_every_limit_that_can_be_set_is_measured_here() -> None:
    can_be_set = Counter(field.name for section in SECTIONS for field in fields(section))
    assert can_be_set == Counter(CASES.keys())


@pytest.mark.parametrize("setting", CASES)
def test_changing_a_limit_changes_what_happens(setting: str) -> None:
    case = CASES[setting]
    assert (observe(case, setting, case.few), observe(case, setting, case.many)) == case.expected
