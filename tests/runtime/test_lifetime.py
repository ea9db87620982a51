"""How long a saga may last, and that all of it is gone at one moment afterwards, in whatever order it is deleted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from baton.core.limits import Limits
from baton.core.log.events import SignalReceived
from baton.errors import NotAllowedNow, NotFound
from baton.ports import Head, SagaRef
from tests.kit.corpus import start
from tests.kit.process import Environment, Process
from tests.kit.sentences import Says
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, World

DAY_S, DAY_MS = 86_400, 86_400_000
LIMITS = Limits(saga_days=10, retention_days=5)
WAITS = "name: w\nnodes: {a: {wait: {signal: go}}}"
SHORT = "name: w\nnodes: {a: {wait: {for: 1s}}}"
PARENT = "name: p\nnodes: {a: {wait: {for: 2d}}, b: {workflow: w, after: a}}"


def head_of(world: World, saga: str) -> Head:
    return next(head for head in world.log.heads() if head.ref.id == saga)


async def days(world: World, count: float) -> None:
    world.runaway, world.reconciler_gap_s = 20_000, 3_600
    await asyncio.sleep(count * DAY_S)


async def test_a_saga_that_lasts_too_long_fails_on_its_last_day(says: Says) -> None:
    world = World.start(limits=LIMITS)
    saga = await start(world, WAITS, {}, "w")
    await days(world, 9.9)
    assert world.end(saga) is None
    await days(world, 0.2)
    end = world.end(saga)
    assert end is not None
    assert end.failure is not None
    assert (end.status, end.failure.code) == ("failed", "limit_wall_time")
    says(end.failure.message)


async def test_a_parked_saga_fails_as_well() -> None:
    world = World.start(limits=LIMITS)
    saga = await start(world, "name: w\non_failure: escalate\nnodes: {a: {tool: refuse}}", {}, "w")
    await days(world, 1)
    assert head_of(world, saga).status == "parked"
    await days(world, 9.2)
    end = world.end(saga)
    assert end is not None
    assert end.failure is not None
    assert end.failure.code == "limit_wall_time"


async def test_a_saga_that_kills_its_workers_fails_as_well() -> None:
    world = World.start(limits=LIMITS)
    saga = await start(world, "name: w\nnodes: {a: {tool: kill}}", {}, "w")
    await days(world, 9.9)
    assert head_of(world, saga).status == "parked"
    await days(world, 0.2)
    assert head_of(world, saga).status == "failed"


async def test_a_saga_keeps_what_it_was_started_with() -> None:
    world = World.start(limits=LIMITS)
    saga = await start(world, WAITS, {}, "w")
    world.limits = Limits(saga_days=2, retention_days=2)
    await days(world, 9.9)
    assert world.end(saga) is None


async def test_everything_of_a_saga_expires_at_one_moment() -> None:
    world = World.start(limits=LIMITS)
    saga = await start(
        world, "name: w\nnodes: {a: {wait: {signal: go}}, b: {wait: {for: 1s}, after: a}}", {}, "w"
    )
    await asyncio.sleep(1)
    await world.service().signal(saga, "go", {"note": "x" * 9_000}, "")
    await world.settle()
    ref, head = SagaRef(TENANT, saga), head_of(world, saga)
    assert head.expires == -(-(head.created + 15 * DAY_MS) // 1_000) * 1_000
    assert {record.expires for record in world.log.read_tail(ref, 0, 0)} == {head.expires}
    (payload,) = [ref for _, ref in world.blobs.stored if "@" in ref]
    assert payload.partition("@")[2].startswith("16d")  # which is enough for fifteen


async def test_a_saga_whose_time_is_over_cannot_be_forked(says: Says) -> None:
    world = World.start(limits=LIMITS)
    saga = await start(world, SHORT, {}, "w")
    await days(world, 9.9)
    await world.service().fork(saga, 1, "")
    await days(world, 0.2)
    with says.raised(NotAllowedNow):
        await world.service().fork(saga, 1, "")


async def test_what_a_child_has_made_outlives_its_parent() -> None:
    """The parent refers to its values, and the operator may have lowered both settings meanwhile."""
    world = World.start(limits=LIMITS)
    await world.service().register(SHORT, json_only=False)
    parent = await start(world, PARENT, {}, "p")
    await asyncio.sleep(60)
    world.limits = Limits(saga_days=1, retention_days=2)
    await days(world, 2)
    await world.settle()
    heads = {head.workflow: head for head in world.log.heads()}
    assert heads["w"].expires == heads["p"].expires == head_of(world, parent).expires


class Ticking(VirtualClock):
    """Each look at it takes a millisecond."""

    def now(self) -> int:
        self.skew += 1
        return super().now()


async def test_a_payload_is_where_its_entry_says_though_its_period_ends_while_it_is_written() -> None:
    world = World.start(limits=LIMITS, stream_on=False, reconciler_on=False)
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(1)
    boundary = head_of(world, saga).expires - 8 * DAY_MS  # from there on, eight days are enough
    for early in range(60):
        clock = Ticking()
        clock.skew = boundary - VirtualClock().now() - early
        process = Process(world, "api", f"api-{early}", Environment(clock))
        await world.service(process).signal(saga, "go", {"n": early, "note": "x" * 9_000}, "")
    named = {event.payload.ref for event in world.events(saga) if isinstance(event, SignalReceived)}
    assert len({ref.partition("@")[2][:2] for ref in named}) == 2, "the moment was between them"
    assert named <= {ref for _, ref in world.blobs.stored}


ORDERS: dict[str, Callable[[random.Random, int], bool]] = {
    "nothing is deleted yet": lambda _, __: False,
    "the head first": lambda _, version: version == -1,
    "the head last": lambda _, version: version != -1,
    "all": lambda _, __: True,
    "the first entry only": lambda _, version: version == 1,
} | {f"at random {seed}": lambda draw, _: draw.random() < 0.5 for seed in range(5)}


@pytest.mark.parametrize("order", ORDERS)
async def test_a_saga_that_has_expired_is_gone_and_its_key_starts_another_in_whatever_order_it_is_deleted(
    order: str,
) -> None:
    world = World.start(limits=LIMITS)
    await world.service().register(WAITS, json_only=False)
    (first, _), lived = await world.service().start("w", {}, "monday"), ORDERS[order]
    saga = str(first["id"])
    await world.service().signal(saga, "go", {"was": "before"}, "")
    await days(world, 14.9)
    assert (await world.queries().show(saga))["status"] == "completed"
    await days(world, 0.2)
    draw = random.Random(order)
    world.log.delete(lambda ref, branch, version: lived(draw, version))
    with pytest.raises(NotFound):
        await world.queries().show(saga)
    second, is_new = await world.service().start("w", {}, "monday")
    assert (second["id"], is_new) == (saga, True)
    await asyncio.sleep(3_600)
    assert (await world.queries().show(saga))["status"] == "waiting"  # not where the first one has been
    world.log.delete(lambda *_: True)
    await world.service().signal(saga, "go", {"was": "after"}, "")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert [entry.version for entry in world.entries(saga)] == list(range(1, len(world.entries(saga)) + 1))
    assert all(entry.at > head_of(world, saga).created - 1 for entry in world.entries(saga))
