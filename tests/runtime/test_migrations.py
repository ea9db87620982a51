"""Open sagas go over to another version of their workflow, and each that cannot says why."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.log import events as ev
from baton.errors import NotFound, UserError
from baton.runtime.requests.migrating import Migration
from baton.runtime.requests.patching import Patch
from baton.runtime.requests.steering import Part, SagaFilter, SteeredPage
from tests.kit.faults import CRASH_BEFORE, Crash
from tests.kit.sentences import Says
from tests.kit.world import World

PAY = """
name: pay
nodes:
  a: {value: 1}
  ok: {wait: {signal: ok}, after: a}
  b: {value: 2, after: ok}
output: ${ctx.b.output}
"""
MORE = PAY.replace("value: 2, after: ok", "value: 3, after: x").replace(
    "  b:", "  x: {value: 9, after: ok}\n  b:"
)
OTHER_WAIT = PAY.replace("signal: ok", "signal: fine")
RENAMED = PAY.replace("  b: {value: 2", "  end: {value: 5").replace("ctx.b", "ctx.end")
READS = PAY.replace("value: 2", "value: '${ctx.a.output}'")


async def with_sagas(*documents: str, sagas: int = 1) -> tuple[World, list[str]]:
    """Sagas of the first version, which wait; the other versions are registered then."""
    world, found = World.start(), list[str]()
    await world.service().register(documents[0], json_only=False)
    for number in range(sagas):
        view, _ = await world.service().start("pay", {}, f"k-{number}")
        found.append(str(view["id"]))
    await asyncio.sleep(2)
    for document in documents[1:]:
        await world.service().register(document, json_only=False)
    return world, found


async def migrate(
    world: World, to: str = "2", names: dict[str, str] | None = None, **more: Any
) -> SteeredPage:
    labels, of = more.pop("labels", {}), more.pop("of", ())
    wanted = SagaFilter(workflow="pay", labels=labels)
    migration = Migration(to=to, names=names or {}, of=of)
    return await world.service(user="mia").many.migrate(wanted, migration, Part(**more))


async def end(world: World, saga: str) -> Any:
    await world.service().signal(saga, "ok", {}, "k")
    await asyncio.sleep(2)
    return (await world.queries().show(saga))["result"]


def changes(world: World, saga: str) -> list[ev.GraphChanged]:
    return [event for event in world.events(saga) if isinstance(event, ev.GraphChanged)]


def told(page: SteeredPage) -> tuple[int, int, list[tuple[str, int]]]:
    return page.matched, page.changed, [(one.workflow, one.sagas) for one in page.counts]


async def test_open_sagas_go_on_with_the_other_version_and_their_logs_say_so() -> None:
    world, (saga, done) = await with_sagas(PAY, MORE, sagas=2)
    await end(world, done)
    assert told(await migrate(world, dry_run=True)) == (1, 0, [("pay@1", 1)])
    assert changes(world, saga) == []
    page = await migrate(world)
    assert told(page) == (1, 1, [("pay@1", 1)])
    (change,) = changes(world, saga)
    assert (change.by, change.reason) == ("mia", "migrated to `pay@2`")
    assert told(await migrate(world)) == (0, 0, []), "the same request again"
    assert (await world.queries().show(saga))["workflow_version"] == 2
    assert await end(world, saga) == 3
    assert changes(world, done) == [], "it has ended"


async def test_sagas_are_chosen_by_version_and_label_and_a_tag_names_the_target() -> None:
    world, (first,) = await with_sagas(PAY, MORE, READS)
    view, _ = await world.service().start("pay@2", {}, "second", labels={"team": "a"})
    await asyncio.sleep(2)
    await world.service().versions.move_tag("pay", "main", 3, None, "")
    assert told(await migrate(world, "main", of=(2,), dry_run=True))[2] == [("pay@2", 1)]
    assert told(await migrate(world, "main", labels={"team": "b"}))[0] == 0
    assert told(await migrate(world, "main", labels={"team": "a"}))[2] == [("pay@2", 1)]
    assert told(await migrate(world, "main"))[2] == [("pay@1", 1)]
    assert await end(world, first) == 1, "an output that the state had dropped is found in the log"
    assert await end(world, str(view["id"])) == 1


async def test_a_saga_that_cannot_move_says_why_and_stays(says: Says) -> None:
    world, (saga,) = await with_sagas(PAY, OTHER_WAIT, RENAMED)
    for page in (await migrate(world, "2", dry_run=True), await migrate(world, "2")):
        (refused,) = page.refused
        assert (refused.id, page.changed) == (saga, 0)
        says(refused.why)
    for names in ({"ok": "end"}, {"b": "a"}):
        (refused,) = (await migrate(world, "3", names)).refused
        says(refused.why)
    assert changes(world, saga) == []
    assert await end(world, saga) == 2


async def test_nodes_have_other_names_by_a_map() -> None:
    world, (saga,) = await with_sagas(PAY, RENAMED)
    assert told(await migrate(world, "2", {"b": "end", "gone": "a"}))[1] == 1
    assert changes(world, saga)[0].renamed == {"b": "end"}
    assert await end(world, saga) == 5


async def test_an_output_that_was_dropped_is_found_under_the_name_that_its_node_had() -> None:
    other = PAY.replace("  a:", "  one:").replace("after: a}", "after: one}")
    world, (saga,) = await with_sagas(PAY, other, other.replace("value: 2", "value: '${ctx.one.output}'"))
    await migrate(world, "2", {"a": "one"})
    await migrate(world, "3")
    assert await end(world, saga) == 1


async def test_a_target_that_is_none_is_refused(says: Says) -> None:
    world, _ = await with_sagas(PAY, RENAMED)
    for to in ("7", "main"):
        with says.raised(NotFound):
            await migrate(world, to)
    for names in ({"b": "ende"}, {"b": "end", "a": "end"}):
        with says.raised(UserError):
            await migrate(world, "2", names)


async def test_many_are_migrated_page_by_page() -> None:
    world, sagas = await with_sagas(PAY, MORE, sagas=5)
    cursor, total, requests = "", 0, 0
    while True:
        page = await migrate(world, limit=2, cursor=cursor)
        total, requests = total + page.changed, requests + 1
        if page.next is None:
            break
        cursor = page.next
    assert (total, requests > 1) == (5, True)
    assert [len(changes(world, saga)) for saga in sagas] == [1] * 5


async def test_a_signal_that_comes_first_has_the_saga_checked_again() -> None:
    world, (saga,) = await with_sagas(PAY, MORE)
    world.slow["append"] = 3
    late = asyncio.ensure_future(migrate(world))
    await asyncio.sleep(1)
    world.slow.clear()
    assert await end(world, saga) == 2
    page = await late
    assert (page.changed, changes(world, saga)) == (0, [])


async def test_a_patch_that_comes_first_takes_the_saga_out_of_those_of_the_version() -> None:
    world, (saga,) = await with_sagas(PAY, MORE)
    view = await world.queries().show(saga)
    world.slow["append"] = 3
    late = asyncio.ensure_future(migrate(world, of=(1,)))
    await asyncio.sleep(1)
    world.slow.clear()
    operations = [{"op": "replace", "path": "/nodes/b/value", "value": 7}]
    await world.service().patch(saga, Patch(operations=operations, made_for=view["graph"]), "")
    assert (await late).changed == 0
    assert await end(world, saga) == 7


async def test_two_migrations_at_once_move_a_saga_once() -> None:
    world, (saga,) = await with_sagas(PAY, MORE)
    both = await asyncio.gather(migrate(world), migrate(world))
    assert sorted(page.changed for page in both) == [0, 1]
    assert len(changes(world, saga)) == 1


async def test_a_request_that_dies_is_repeated_as_a_whole() -> None:
    world, sagas = await with_sagas(PAY, MORE, sagas=3)
    world.plan.at[len(world.plan.writes) + 2] = CRASH_BEFORE
    with pytest.raises(Crash):
        await migrate(world)
    await migrate(world)
    assert [len(changes(world, saga)) for saga in sagas] == [1] * 3
