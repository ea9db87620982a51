"""Operators act on many sagas: a workflow or a tenant is paused and resumed, failed sagas are retried."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.errors import NotAllowedNow, NotFound, UserError
from baton.runtime.requests.steering import Part, SagaFilter, SteeredPage
from tests.kit.tampering import spoil
from tests.kit.world import World

WAITS = "name: waits\nnodes: {q: {wait: {signal: go, timeout: 1h}}, a: {tool: work, after: q, with: {n: 1}}}"
OTHER = WAITS.replace("name: waits", "name: other")
PAUSE = SagaFilter(workflow="waits")
ALL = SagaFilter()


async def register(world: World, *documents: str) -> None:
    for document in documents:
        await world.service().register(document, json_only=False)


async def begin(world: World, name: str, key: str = "", **more: Any) -> str:
    view, _ = await world.service().start(name, {}, key, **more)
    return str(view["id"])


async def status(world: World, saga: str) -> str:
    return str((await world.queries().show(saga))["status"])


async def statuses(world: World, *sagas: str) -> list[str]:
    return [await status(world, saga) for saga in sagas]


async def whole(world: World, do: str, wanted: SagaFilter, *more: Any, limit: int = 1_000) -> Counter[str]:
    """All parts of an action, one request for each."""
    total, cursor = Counter[str](), ""
    while True:
        act = getattr(world.service().many, do)
        page: SteeredPage = await act(wanted, *more, Part(limit=limit, cursor=cursor))
        total.update(matched=page.matched, changed=page.changed, requests=1, refused=len(page.refused))
        if page.next is None:
            return total
        cursor = page.next


async def test_a_workflow_is_paused_those_that_run_and_those_that_begin() -> None:
    world = World.start()
    await register(world, WAITS, OTHER)
    before, other = await begin(world, "waits"), await begin(world, "other")
    await asyncio.sleep(5)
    assert (await whole(world, "pause", PAUSE, "the shop moves"))["changed"] == 1
    after, pinned = await begin(world, "waits"), await begin(world, "waits@1")
    await asyncio.sleep(60)
    assert await statuses(world, before, after, pinned, other) == ["paused"] * 3 + ["waiting"]
    shown = {one["name"]: one["pauses"] for one in (await world.queries().workflows())["workflows"]}
    assert shown["other"] == []
    assert [(one["code"], one["by"], one["reason"]) for one in shown["waits"]] == [
        ("workflow_paused", "ann", "the shop moves")
    ]
    assert (await whole(world, "pause", PAUSE, "once more"))["matched"] == 0
    assert (await whole(world, "resume", PAUSE))["changed"] == 3
    last = await begin(world, "waits")
    await asyncio.sleep(60)
    assert await statuses(world, before, after, pinned, last) == ["waiting"] * 4
    assert (await whole(world, "resume", PAUSE))["matched"] == 0


async def test_a_saga_that_cannot_be_read_is_named_and_keeps_no_other_from_being_paused() -> None:
    world = World.start()
    await register(world, WAITS)
    damaged, well = await begin(world, "waits"), await begin(world, "waits")
    await asyncio.sleep(5)
    spoil(world, damaged, 2)
    page = await world.service().many.pause(PAUSE, "the shop moves", Part())
    assert ([one.id for one in page.refused], page.changed) == ([damaged], 1)
    assert f"baton doctor {damaged}" in page.refused[0].why
    assert await status(world, well) == "paused"


async def test_a_resume_of_the_workflow_leaves_what_is_held_for_another_reason() -> None:
    world = World.start()
    await register(world, WAITS, OTHER)
    alone, both, plain = [await begin(world, "waits") for _ in range(3)]
    other = await begin(world, "other")
    await asyncio.sleep(5)
    await world.service().pause(alone, "this one")
    await whole(world, "pause", PAUSE, "the workflow")
    await whole(world, "pause", ALL, "everything")
    born = await begin(world, "waits")
    await asyncio.sleep(60)
    assert set(await statuses(world, alone, both, plain, other, born)) == {"paused"}
    await world.service().resume(both)  # an exception, by name
    await whole(world, "resume", ALL)
    await asyncio.sleep(60)
    assert await statuses(world, alone, both, plain, other, born) == [
        *("paused", "waiting", "paused", "waiting", "paused")
    ]
    await whole(world, "resume", PAUSE)
    await asyncio.sleep(60)
    assert await statuses(world, alone, both, plain, other, born) == [
        *("paused", "waiting", "waiting", "waiting", "waiting")
    ]


async def test_a_paused_tenant_pauses_what_is_registered_later_and_the_next_version() -> None:
    world = World.start()
    await register(world, WAITS)
    await whole(world, "pause", ALL, "")
    await register(world, OTHER, WAITS + "\n# another\n", WAITS.replace("1h", "2h"))
    sagas = [await begin(world, name) for name in ("waits", "other")]
    assert (await world.queries().workflow("waits"))["version"] > 1
    await asyncio.sleep(30)
    assert await statuses(world, *sagas) == ["paused", "paused"]
    await whole(world, "resume", ALL)
    await asyncio.sleep(30)
    assert await statuses(world, *sagas) == ["waiting", "waiting"]


async def test_graphs_of_the_document_and_children_are_paused_with_the_workflow() -> None:
    world = World.start()
    parent = """
name: waits
nodes: {g: {graph: inner}, c: {wait: {signal: go}, after: g}}
graphs: {inner: {nodes: {w: {wait: {for: 1h}}}}}
"""
    await register(world, parent, "name: outer\nnodes: {c: {workflow: waits}}")
    saga = await begin(world, "waits")
    await asyncio.sleep(5)
    await whole(world, "pause", PAUSE, "")
    outer = await begin(world, "outer")
    await asyncio.sleep(30)
    heads = {head.ref.id: head.status for head in world.log.heads()}
    assert heads.pop(outer) == "waiting"
    assert len(heads) == 3
    assert set(heads.values()) == {"paused"}
    assert saga in heads


async def test_a_part_stops_at_its_limit_and_its_cursor_goes_on() -> None:
    world = World.start()
    await register(world, WAITS)
    sagas = [await begin(world, "waits") for _ in range(7)]
    await asyncio.sleep(20)
    done = await whole(world, "pause", PAUSE, "", limit=3)
    assert (done["changed"], done["requests"] > 2) == (7, True)
    with pytest.raises(UserError):
        await world.service().many.resume(PAUSE, Part(cursor="x"))
    with pytest.raises(NotFound):
        await world.service().many.pause(SagaFilter(workflow="wait"), "", Part())
    counted = await world.service().many.resume(PAUSE, Part(dry_run=True))
    assert (counted.matched, counted.changed) == (7, 0)
    assert await status(world, sagas[0]) == "paused"


# ---- retry


def broken_shop(world: World) -> list[str]:
    """Tools of which one is out of order until `mended` is said."""
    done: list[str] = []
    keys = set[str]()

    @tool("untake", registry=world.registry)
    async def untake() -> None:
        return None

    @tool("reserve", undo="untake", registry=world.registry)
    async def reserve() -> None:
        return None

    @tool("take", registry=world.registry)
    async def take(context: Context) -> str:
        done.extend(["take"] if context.idempotency_key not in keys else [])
        keys.add(context.idempotency_key)
        return "t"

    @tool("ship", registry=world.registry)
    async def ship() -> str:
        done.append("try")
        if "mended" not in done:
            raise StepFailure("bad_request", "out of order")
        return "s"

    world.tools = world.registry.specs()
    return done


FAILS = """
name: fails
on_failure: fail
nodes: {a: {tool: take}, b: {tool: ship, after: a}, c: {value: '${ctx.b.output}', after: b}}
output: '${ctx.c.output}'
"""


async def test_a_failed_saga_is_retried_from_its_failed_step_once() -> None:
    world = World.start()
    done = broken_shop(world)
    await register(world, FAILS)
    saga = await begin(world, "fails")
    await world.settle()
    assert (await status(world, saga), done) == ("failed", ["take", "try"])
    done.append("mended")
    for changed in (True, False):
        assert (await world.service().retry(saga, "k"))["changed"] is changed
    await world.settle()
    assert (await status(world, saga), done) == ("completed", ["take", "try", "mended", "try"])
    with pytest.raises(NotAllowedNow):
        await world.service().retry(saga, "k2")


async def test_attempts_before_the_last_are_tried_anew() -> None:
    world = World.start()
    done = broken_shop(world)
    await register(
        world,
        FAILS.replace(
            "on_failure: fail", "on_failure: fail\nretry: {max_attempts: 3, base: 1s, on: [bad_request]}"
        ),
    )
    saga = await begin(world, "fails")
    await world.settle()
    assert (await status(world, saga), done.count("try")) == ("failed", 3)
    await world.service().retry(saga, "")
    await world.settle()
    assert (await status(world, saga), done.count("try"), done.count("take")) == ("failed", 6, 1)


async def test_a_parent_whose_child_has_failed_starts_another_child() -> None:
    world = World.start()
    done = broken_shop(world)
    await register(world, FAILS, "name: outer\non_failure: fail\nnodes: {c: {workflow: fails}}")
    saga = await begin(world, "outer")
    await world.settle()
    assert await status(world, saga) == "failed"
    done.append("mended")
    child = next(head.ref.id for head in world.log.heads() if head.ref.id != saga)
    with pytest.raises(NotAllowedNow):
        await world.service().retry(child, "")
    await world.service().retry(saga, "")
    await world.settle()
    assert (await status(world, saga), done.count("take")) == ("completed", 1)


async def test_failed_sagas_are_counted_by_code_and_retried_with_reasons_for_the_rest() -> None:
    world = World.start()
    done = broken_shop(world)
    undone = FAILS.replace("name: fails", "name: undone").replace("on_failure: fail", "on_failure: rollback")
    undone = undone.replace("tool: take", "tool: reserve")
    await register(
        world, FAILS, undone, WAITS, "name: outer\non_failure: fail\nnodes: {c: {workflow: fails}}"
    )
    for name in ("fails", "fails", "undone", "waits", "outer"):
        await begin(world, name)
    await world.settle(60)
    counted = await world.service().many.retry(ALL, "k", Part(dry_run=True))
    assert {(one.workflow, one.code): one.sagas for one in counted.counts} == {
        ("fails", "bad_request"): 3,
        ("undone", "bad_request"): 1,
        ("outer", "child_failed"): 1,
    }
    assert len(counted.refused) == 2
    assert done.count("mended") == 0
    wanted = SagaFilter(workflow="fails", code="bad_request")
    assert (await whole(world, "retry", SagaFilter(code="timeout"), "k"))["matched"] == 0
    for _ in range(2):  # it fails again meanwhile: the same key retries none twice
        await whole(world, "retry", wanted, "k")
        await world.settle(60)
    forks = Counter(
        head.ref.id
        for head in world.log.heads()
        for one in world.events(head.ref.id)
        if isinstance(one, ev.Forked)
    )
    assert sorted(forks.values()) == [1, 1]
    done.append("mended")
    assert (await whole(world, "retry", wanted, "other"))["changed"] == 2
    await world.settle(60)
    found = Counter(head.status for head in world.log.heads() if head.workflow == "fails")
    assert found == {"completed": 2, "failed": 1}


async def test_failed_sagas_go_on_with_the_corrected_version_of_their_workflow() -> None:
    """The mistake is in the document. A version that one of them cannot take is told before and after."""
    world = World.start()
    done = broken_shop(world)
    await register(world, FAILS)
    first, second = await begin(world, "fails"), await begin(world, "fails")
    await world.settle(60)
    corrected = FAILS.replace("{tool: ship, after: a}", "{tool: reserve, after: a}")
    moved = (
        FAILS.replace("b: {tool: ship, after: a}", "x: {tool: reserve, after: a}")
        .replace("ctx.b", "ctx.x")
        .replace("after: b", "after: x")
    )
    await register(world, moved, corrected)
    wanted, dry = SagaFilter(workflow="fails"), Part(dry_run=True)
    many = world.service().many
    counted = await many.retry(wanted, "k", dry, "2")
    assert (counted.matched, sorted(one.id for one in counted.refused)) == (2, sorted([first, second]))
    counted = await world.service().many.retry(wanted, "k", dry, "3")
    assert (counted.matched, counted.changed, counted.refused) == (2, 0, [])
    with pytest.raises(NotFound):
        await world.service().many.retry(wanted, "k", Part(), "9")
    page = await world.service().many.retry(wanted, "k", Part(), "3")
    assert (page.matched, page.changed) == (2, 2)
    await world.settle(60)
    assert await statuses(world, first, second) == ["completed", "completed"]
    assert (done.count("take"), done.count("try")) == (2, 2)


async def test_parked_sagas_are_resumed_by_their_code_and_open_ones_cancelled() -> None:
    world = World.start()
    escalating = "name: waits\non_failure: escalate\nnodes: {a: {tool: refuse}}"
    await register(world, escalating, OTHER)
    parked, other = await begin(world, "waits"), await begin(world, "other")
    await world.settle(60)
    page = await world.service().many.resume(SagaFilter(code="escalated"), Part(dry_run=True))
    assert [(one.workflow, one.code, one.sagas) for one in page.counts] == [("waits", "escalated", 1)]
    assert (await whole(world, "resume", SagaFilter(code="escalated")))["changed"] == 1
    await world.settle(60)
    resumed = [one for one in world.events(parked) if isinstance(one, ev.Resumed)]
    assert [(one.by, one.code) for one in resumed] == [("ann", "")]
    assert (await whole(world, "cancel", ALL, "over", 0))["changed"] == 2
    await world.settle(60)
    assert await statuses(world, parked, other) == ["cancelled", "cancelled"]


@pytest.mark.soak
async def test_ten_thousand_sagas_of_a_workflow_are_paused_and_resumed_page_by_page() -> None:
    limits = Limits(tenant_sagas=1_000_000)
    world = World.start(limits=limits, stream_on=False, reconciler_on=False)
    await register(world, WAITS)
    for _ in range(100):
        service = world.service()
        for _ in range(100):
            await service.start("waits", {}, "")
    done = await whole(world, "pause", PAUSE, "the shop moves")
    assert (done["changed"], done["refused"]) == (10_000, 0)
    assert done["requests"] <= 12
    assert (await whole(world, "pause", PAUSE, ""))["matched"] == 0
    assert (await whole(world, "resume", PAUSE))["changed"] == 10_000
