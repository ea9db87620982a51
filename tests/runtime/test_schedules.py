"""Schedules as callers see them and change them: registering, listing, pausing, resuming, triggering."""

from __future__ import annotations

import asyncio

import pytest

from baton.errors import NotFound, UserError
from baton.runtime.engine.request import write_cursor
from baton.runtime.invocation.watch import Metrics
from tests.kit import emf
from tests.kit.sentences import Says
from tests.kit.views import JsonAnswers
from tests.kit.world import World

DOCUMENT = "name: {name}\nnodes: {{a: {{wait: {{for: {wait}}}}}}}\nschedule: {{rate: 5m, input: '${{schedule.name}}'}}"


async def register(world: World, name: str = "report", wait: str = "1s") -> tuple[str, ...]:
    found = await world.service().register(DOCUMENT.format(name=name, wait=wait), json_only=False)
    return found.notes


async def test_a_registration_says_when_the_first_saga_is_started(says: Says) -> None:
    world = World.start()
    (note,) = await register(world)
    shown = await JsonAnswers(world.service().schedules).show("report")
    assert shown["next_at"][:19] in note
    says(note)
    assert await register(world) == (note,), "the same again"
    await JsonAnswers(world.service().schedules).pause("report")
    says(await register(world))


async def test_a_document_without_a_schedule_has_none_to_show(says: Says) -> None:
    world = World.start()
    await world.service().register("name: plain\nnodes: {a: {value: 1}}", json_only=False)
    desk = JsonAnswers(world.service().schedules)
    for ask in (desk.show, desk.pause, desk.resume):
        with says.raised(NotFound):
            await ask("plain")
    assert await desk.page(10, "") == {"schedules": [], "next": None}
    assert world.store.schedules.listed("acme", "", 10) == ([], "")


async def test_schedules_are_listed_in_pages_for_one_tenant() -> None:
    world = World.start()
    for name in ("c", "a", "b"):
        await register(world, name)
    await world.service().register("name: b\nnodes: {a: {value: 1}}", json_only=False)
    first = await JsonAnswers(world.service().schedules).page(2, "")
    assert [one["name"] for one in first["schedules"]] == ["a"], "b has none any more"
    rest = await JsonAnswers(world.service().schedules).page(2, first["next"])
    assert ([one["name"] for one in rest["schedules"]], rest["next"]) == (["c"], None)
    assert (await JsonAnswers(world.service(tenant="globex").schedules).page(2, ""))["schedules"] == []
    for cursor in (write_cursor(b"\xff"), write_cursor(b"No Name")):
        with pytest.raises(UserError, match="cursor"):
            await JsonAnswers(world.service().schedules).page(2, cursor)


async def test_a_paused_schedule_starts_nothing_until_it_is_resumed() -> None:
    world = World.start()
    await register(world)
    paused = await JsonAnswers(world.service().schedules).pause("report")
    assert (paused["state"], paused["paused_by"], paused["next_at"]) == ("paused", "ann", None)
    assert await JsonAnswers(world.service().schedules).pause("report") == paused
    await asyncio.sleep(1_000)
    assert world.log.heads() == []
    resumed = await JsonAnswers(world.service().schedules).resume("report")
    assert (resumed["state"], resumed["paused_at"]) == ("active", None)
    assert await JsonAnswers(world.service().schedules).resume("report") == resumed
    await asyncio.sleep(301)
    assert len(world.log.heads()) == 1
    assert (await JsonAnswers(world.service().schedules).show("report"))["ticks"] == {
        "started": 1,
        "skipped": 0,
        "missed": 0,
        "refused": 0,
    }


async def test_a_saga_that_is_triggered_is_the_callers_and_in_the_way_of_the_next_tick() -> None:
    world = World.start()
    await register(world, wait="10m")
    service = world.service(user="tom")
    view, is_new = await world.service(user="tom").schedules.trigger("report", "key", service.start)
    again, is_newer = await world.service(user="tom").schedules.trigger("report", "key", service.start)
    assert (again["id"], is_new, is_newer) == (view["id"], True, False)
    (head,) = world.log.heads()
    assert head.user == "tom"
    await asyncio.sleep(330)
    shown = await JsonAnswers(world.service().schedules).show("report")
    assert [(one["what"], one["saga"]) for one in shown["recent"]] == [
        ("skipped", view["id"]),
        ("triggered", view["id"]),
    ]
    other, _ = await world.service().schedules.trigger("report", "", world.service().start)
    assert other["id"] != view["id"], "whatever is at work"


async def test_ticks_that_start_nothing_are_counted_by_what_is_in_the_way() -> None:
    lines: list[str] = []
    world = World.start(metrics=Metrics(lines.append, "w"), reconciler_on=False)
    await register(world, wait="12m")
    await asyncio.sleep(4_000)
    world.reconciler_on = True
    world.switch_on()
    await asyncio.sleep(600)
    ticks = (await JsonAnswers(world.service().schedules).show("report"))["ticks"]
    found = emf.read(lines)
    for name in ("skipped", "missed", "refused"):
        for where in ({"function": "w"}, {"function": "w", "workflow": "report"}):
            assert emf.total(found, f"Ticks{name.capitalize()}", **where) == ticks[name]
    assert ticks["skipped"] > 0
    assert ticks["missed"] > 10
