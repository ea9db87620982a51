"""Sagas that are parked for a defect learn that other code is deployed, and are tried once with it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from baton import tool
from baton.adapters.memory.outside import MemoryEntities
from baton.core.log import events as ev
from baton.core.log.events import CancelRequested
from baton.ports import PARKED, SWEEP, Head, Message, SagaRef
from baton.ports.outside import Entity
from baton.runtime.invocation.context import inline
from baton.runtime.mending import BUILDS_KEPT, ROLLING_MS, DeployedBuild
from tests.kit.corpus import start
from tests.kit.virtual_time import VirtualClock, run_virtual
from tests.kit.world import TENANT, World

DAY_S, SELDOM_S = 86_400, 1_800
PAID = "name: w\nnodes: {pay: {tool: shop.pay}, mail: {tool: shop.mail, after: pay}}"
KEY = ("/deployment", "code", "deployed")


@dataclass
class Shop:
    """A tool whose code is wrong in some builds, and what was done."""

    world: World
    bad: set[str] = field(default_factory=set)
    bad_refunds: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        @tool("shop.pay", undo="shop.refund", registry=self.world.registry)
        async def pay() -> str:
            self.done.append("paid")
            return "p"

        @tool("shop.refund", registry=self.world.registry)
        async def refund() -> None:
            if self.world.limits.build in self.bad_refunds:
                self.tried.append(self.world.limits.build)
                raise KeyError("id")
            self.done.append("refunded")

        @tool("shop.mail", registry=self.world.registry)
        async def mail() -> None:
            self.tried.append(self.world.limits.build)
            if self.world.limits.build in self.bad:
                raise KeyError("to")
            self.done.append("mailed")

        self.world.tools = self.world.registry.specs()

    def deploy(self, build: str) -> None:
        self.world.limits = replace(self.world.limits, build=build)


def head_of(world: World, saga: str) -> Head:
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    return head


async def parked(world: World, build: str = "b1") -> tuple[Shop, str]:
    shop = Shop(world, bad={"b1", "b2"})
    shop.deploy(build)
    saga = await start(world, PAID, {}, "w")
    await world.settle()
    assert head_of(world, saga).status == "parked"
    return shop, saga


async def days(world: World, number: float = 1) -> None:
    """Let days go by, in which the reconciler runs seldom; in the end it runs each minute again."""
    gap, world.reconciler_gap_s = world.reconciler_gap_s, SELDOM_S
    await asyncio.sleep(number * DAY_S - SELDOM_S)
    world.reconciler_gap_s = gap
    await asyncio.sleep(SELDOM_S)


async def test_a_saga_goes_on_by_itself_within_minutes_of_a_deploy_that_mends_it() -> None:
    world = World.start()
    shop, saga = await parked(world)
    await days(world, 3)
    assert shop.tried == ["b1"], "nothing is tried again under the same code"
    shop.deploy("b3")
    await asyncio.sleep(180)
    assert (shop.tried, shop.done) == (["b1", "b3"], ["paid", "mailed"])
    assert head_of(world, saga).status == "completed"
    incidents = (await world.queries().incidents())["incidents"]
    assert [(one["code"], one["status"], one["resolved_by"]) for one in incidents] == [
        ("tool_defect", "resolved", "deploy")
    ]
    resumed = [event for event in world.events(saga) if isinstance(event, ev.Resumed)]
    assert [(event.by, event.build) for event in resumed] == [("deploy", "b3")]


async def test_a_deploy_that_mends_nothing_tries_it_once_and_tells_no_one_again() -> None:
    world = World.start()
    shop, saga = await parked(world)
    shop.deploy("b2")
    await days(world, 2)
    assert shop.tried == ["b1", "b2"]
    assert len([event for event in world.events(saga) if isinstance(event, ev.NoticeDue)]) == 1
    incidents = (await world.queries().incidents())["incidents"]
    assert [one["status"] for one in incidents] == ["open"]
    assert (head_of(world, saga).status, head_of(world, saga).lane) == ("parked", PARKED)


async def test_a_parked_saga_costs_a_look_a_day() -> None:
    world = World.start()
    _, saga = await parked(world)
    await asyncio.sleep(3_600)
    world.plan.writes.clear()
    epoch = head_of(world, saga).epoch
    await days(world, 5.2)  # it comes to be looked at half an hour late at most
    assert head_of(world, saga).epoch - epoch == 5
    assert world.plan.writes == ["invoke", "take", "release"] * 5


def test_a_person_lets_it_go_on_at_once_and_can_cancel_it() -> None:
    async def resumed() -> None:
        world = World.start()
        shop, saga = await parked(world)
        shop.bad.clear()
        await world.service().resume(saga)
        await asyncio.sleep(5)
        assert (head_of(world, saga).status, shop.done) == ("completed", ["paid", "mailed"])

    run_virtual(resumed())

    async def cancelled() -> None:
        world = World.start()
        shop, saga = await parked(world)
        await world.service().cancel(saga, "no", 0)
        await asyncio.sleep(5)
        assert (head_of(world, saga).status, shop.done) == ("cancelled", ["paid"])

    run_virtual(cancelled())


def test_where_the_code_is_not_known_it_is_looked_at_like_any_other_and_a_person_lets_it_go_on() -> None:
    async def unknown() -> None:
        world = World.start()
        shop = Shop(world, bad={""})
        saga = await start(world, PAID, {}, "w")
        await world.settle()
        await days(world)
        assert (head_of(world, saga).lane, shop.tried) == (SWEEP, [""])
        await world.service().resume(saga)
        await asyncio.sleep(5)
        assert shop.tried == ["", ""]

    run_virtual(unknown())


async def test_a_worker_of_other_code_drops_the_message_and_so_does_one_that_comes_too_late() -> None:
    world = World.start(stream_on=False, queue_on=True)
    shop, saga = await parked(world)
    head, name = head_of(world, saga), str(SagaRef(TENANT, saga))
    assert head.due_at is not None
    world.reconciler_on = False
    shop.deploy("b2")
    for build, due in (("b1", head.due_at), ("b3", head.due_at), ("b2", head.due_at - 1)):
        assert await world.work([Message(name, build=build, due=due)]) == []
    assert head_of(world, saga) == head
    await world.work([Message(name, build="b2", due=head.due_at)])
    after = head_of(world, saga)
    assert (shop.tried, after.epoch) == (["b1", "b2"], head.epoch + 1)
    await world.work([Message(name, build="b2", due=head.due_at)])
    assert head_of(world, saga) == after


# ---- which code is deployed


def deployment(world: World, build: str) -> DeployedBuild:
    return DeployedBuild(world.store.entities, VirtualClock(), inline, build)


async def test_the_first_process_of_new_code_says_so_and_all_others_hear_it() -> None:
    world = World.start(reconciler_on=False)
    first = VirtualClock().now()
    assert await deployment(world, "b1").tries_before() == first
    await asyncio.sleep(60)
    again = deployment(world, "b1")
    assert await again.tries_before() == first
    await asyncio.sleep(ROLLING_MS / 1_000)
    assert await again.tries_before() == first + ROLLING_MS
    assert await deployment(world, "").tries_before() is None


async def test_code_from_before_a_deploy_has_no_say_for_a_while_and_may_come_back() -> None:
    world = World.start(reconciler_on=False)
    old = deployment(world, "b1")
    begun = await old.tries_before()
    await asyncio.sleep(60)
    now = VirtualClock().now()
    assert await deployment(world, "b2").tries_before() == now
    assert await deployment(world, "b1").tries_before() is None
    assert await old.tries_before() == begun
    await asyncio.sleep(ROLLING_MS / 1_000)
    back = VirtualClock().now()
    assert await deployment(world, "b1").tries_before() == back
    there = world.store.entities.get(*KEY)
    assert there is not None
    assert there.data == {"build": "b1", "at": back, "before": ["b2"]}


async def test_of_two_processes_that_say_it_at_once_one_does_and_few_builds_are_remembered() -> None:
    world = World.start(reconciler_on=False)
    for number in range(20):
        found = await asyncio.gather(*(deployment(world, f"b{number}").tries_before() for _ in range(2)))
        assert VirtualClock().now() in found
        await asyncio.sleep(60)
    there = world.store.entities.get(*KEY)
    assert there is not None
    assert len(there.data["before"]) == BUILDS_KEPT


async def test_a_process_that_loses_against_another_hears_of_it_in_the_next_run() -> None:
    class Overtaken(MemoryEntities):
        """Another process writes between the first read and the write."""

        def get(self, tenant: str, type: str, id: str) -> Entity | None:
            there = super().get(tenant, type, id)
            if there is None:
                self.put(*KEY, {"build": "b2", "at": 7}, key="x", expected=0)
            return there

    mine = DeployedBuild(Overtaken(), VirtualClock(), inline, "b2")
    assert await mine.tries_before() is None
    assert await mine.tries_before() == 7 + ROLLING_MS


# ---- a child

PARENT = "name: p\nnodes: {c: {workflow: w, timeout: 1h}}\noutput: '${ctx.c.output}'"
SLOW = PAID.replace("}}", "}, rest: {wait: {for: 2h}, after: mail}}")


async def with_child(world: World, child: str) -> tuple[Shop, str]:
    shop = Shop(world, bad={"b1", "b2"})
    shop.deploy("b1")
    await world.service().register(child, json_only=False)
    saga = await start(world, PARENT, {}, "p")
    await asyncio.sleep(60)
    assert head_of(world, f"{saga}.0.c").status == "parked"
    return shop, saga


async def test_the_time_of_a_child_stands_still_while_it_is_parked_and_its_parent_waits() -> None:
    world = World.start()
    shop, saga = await with_child(world, PAID)
    await days(world, 5)
    assert (head_of(world, saga).status, shop.done) == ("waiting", ["paid"])
    told = [event for event in world.events(saga) if isinstance(event, ev.ChildOverdue) and event.until]
    assert 4 <= len(told) <= 12, "the longer it stands still, the more seldom its parent looks"
    shop.deploy("b3")
    await asyncio.sleep(180)
    assert (head_of(world, saga).status, shop.done) == ("completed", ["paid", "mailed"])


async def test_a_child_that_goes_on_has_at_least_as_much_time_left_as_before_and_then_is_out_of_it() -> None:
    world = World.start()
    shop, saga = await with_child(world, SLOW.replace("2h", "60h"))
    await days(world)
    shop.deploy("b3")
    await asyncio.sleep(3_000)
    assert (head_of(world, saga).status, shop.done) == ("waiting", ["paid", "mailed"])
    await days(world, 2)
    assert (head_of(world, saga).status, shop.done) == ("failed", ["paid", "mailed", "refunded"])


async def test_a_parent_that_is_cancelled_ends_a_child_that_is_parked() -> None:
    world = World.start()
    _, saga = await with_child(world, PAID)
    await world.service().cancel(saga, "no", 0)
    await asyncio.sleep(600)
    assert head_of(world, f"{saga}.0.c").status == "cancelled"


async def test_the_end_of_its_days_ends_it_and_undoes_nothing() -> None:
    world = World.start()
    world.limits = replace(world.limits, saga_days=2)
    shop, saga = await parked(world)
    await days(world, 3.1)
    assert (head_of(world, saga).status, shop.done, shop.tried) == ("failed", ["paid"], ["b1"])


BOUND = "name: b\nlimits: {wall_time: 2h}\nnodes: {k: {%s}, then: {tool: shop.pay, after: k}}"
MIDDLE = "name: m\nnodes: {k: {workflow: w}}"


TIMED = BOUND.replace("limits: {wall_time: 2h}\n", "").replace("k: {%s}", "k: {%s, timeout: 2h}")


@pytest.mark.parametrize(
    ("bound", "child", "count"),
    [
        (BOUND, "workflow: w", 1),
        (BOUND, "workflow: m", 1),
        (BOUND, "map: [1, 2], workflow: w", 2),
        (TIMED, "workflow: w", 1),
    ],
    ids=["wall_time", "of a grandchild", "of children", "timeout"],
)
async def test_the_time_of_a_saga_above_stands_still_too(bound: str, child: str, count: int) -> None:
    world = World.start()
    shop = Shop(world, bad={"b1"})
    shop.deploy("b1")
    for below in (PAID, MIDDLE):
        await world.service().register(below, json_only=False)
    saga = await start(world, bound % child, {}, "b")
    await days(world)
    assert head_of(world, saga).status == ("parked" if bound is BOUND else "waiting")
    assert len(world.entries(saga)) < 40, "it is looked at each hour"
    assert len(world.notices.said) == count, "of the defect alone"
    shop.deploy("b3")
    await asyncio.sleep(2 * 3_600)
    assert head_of(world, saga).status == "completed"
    assert "refunded" not in shop.done


async def test_it_is_over_where_no_child_stands_still() -> None:
    world = World.start()
    Shop(world)
    await world.service().register("name: w\nnodes: {a: {wait: {for: 1d}}}", json_only=False)
    saga = await start(world, BOUND % "workflow: w", {}, "b")
    await asyncio.sleep(3 * 3_600)
    assert head_of(world, saga).status == "failed"


async def undoing(world: World) -> tuple[Shop, str]:
    """A saga that is rolled back, and whose refund has a defect."""
    shop = Shop(world, bad_refunds={"b1", "b2"})
    shop.deploy("b1")
    saga = await start(world, PAID, {}, "w")
    await world.settle()
    await world.service().rollback(saga, CancelRequested(reason="no", by="", at=0, grace_ms=0, undo=True))
    await world.settle()
    assert head_of(world, saga).status == "parked"
    return shop, saga


async def test_a_rollback_waits_for_code_that_mends_what_undoes_a_step() -> None:
    world = World.start()
    shop, saga = await undoing(world)
    await days(world)
    shop.deploy("b2")
    await asyncio.sleep(1_800)
    assert (shop.tried[1:], head_of(world, saga).status) == (["b1", "b2"], "parked")
    shop.deploy("b3")
    await asyncio.sleep(1_800)
    assert (head_of(world, saga).status, shop.done) == ("rolled_back", ["paid", "mailed", "refunded"])
    incidents = (await world.queries().incidents())["incidents"]
    assert [(one["code"], one["status"], one["resolved_by"]) for one in incidents] == [
        ("tool_defect", "resolved", "deploy")
    ]


async def test_a_parent_waits_for_a_child_whose_rollback_waits() -> None:
    world = World.start()
    shop = Shop(world, bad_refunds={"b1"})
    shop.deploy("b1")
    await world.service().register(PAID, json_only=False)
    saga = await start(world, "name: p\nnodes: {k: {workflow: w}}", {}, "p")
    await world.settle()
    await world.service().rollback(saga, CancelRequested(reason="no", by="", at=0, grace_ms=0, undo=True))
    await days(world, 1 / 4)
    assert head_of(world, saga).status == "compensating"
    shop.deploy("b3")
    await days(world, 1 / 2)
    assert (head_of(world, saga).status, shop.done[-1]) == ("rolled_back", "refunded")
