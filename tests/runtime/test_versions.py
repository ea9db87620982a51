"""Tags of workflows and what is started by one, and patches that make versions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.adapters.memory.store import MemoryDefinitions
from baton.errors import InvalidDefinition, InvalidInput, NotFound, Outdated, UserError
from baton.runtime.requests.steering import Part, SagaFilter
from baton.runtime.requests.versions import WorkflowPatch
from baton.runtime.starting import catalog
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_events import did, event, take

PAY = "name: pay\nnodes: {a: {value: %s}}\noutput: ${ctx.a.output}"


async def register(world: World, *documents: str) -> None:
    for document in documents:
        await world.service().register(document, json_only=False)


async def with_versions(*numbers: int) -> World:
    """A world whose workflow `pay` has a version for each number, which is its result."""
    world = World.start()
    await register(world, *(PAY % number for number in numbers))
    return world


async def move(world: World, version: int, was: int | None = None, tag: str = "main") -> int | None:
    return (await world.service(user="mia").versions.move_tag("pay", tag, version, was, "tried")).version


async def ended(world: World, reference: str, key: str = "") -> dict[str, Any]:
    view, _ = await world.service().start(reference, {}, key)
    await asyncio.sleep(5)
    return dict(await world.queries().show(str(view["id"])))


async def test_a_start_by_tag_takes_the_version_that_it_names_and_the_saga_says_both() -> None:
    world = await with_versions(1, 2, 3)
    await move(world, 2)
    saga = await ended(world, "pay@main", "k")
    assert (saga["result"], saga["workflow"], saga["workflow_version"]) == (2, "pay", 2)
    assert saga["workflow_tag"] == "main"
    await move(world, 3)
    assert (await ended(world, "pay@main", "k"))["id"] == saga["id"], "the same request"
    assert (await ended(world, "pay@main"))["result"] == 3
    plain = await ended(world, "pay@1")
    assert (plain["result"], plain["workflow_tag"]) == (1, None)


async def test_a_tag_is_moved_by_one_who_has_seen_the_version_that_it_names(says: Says) -> None:
    world = await with_versions(1, 2, 3)
    assert await move(world, 2, was=0) == 2
    assert await move(world, 3, was=2) == 3
    assert await move(world, 3, was=2) == 3, "the same request again"
    with says.raised(Outdated):
        await move(world, 1, was=2)
    with says.raised(Outdated):
        await move(world, 1, was=3, tag="canary")
    assert await move(world, 0, was=3) is None
    with says.raised(Outdated):
        await move(world, 1, was=3)
    found = await world.service().versions.tag("pay", "main")
    assert [(one.version, one.by, one.reason) for one in found.moves] == [
        (None, "mia", "tried"),
        (3, "mia", "tried"),
        (2, "mia", "tried"),
    ]
    assert (await world.queries().workflow("pay"))["tags"] == [], "a deleted one is in no list"
    assert await move(world, 2) == 2
    (shown,) = (await world.queries().workflow("pay"))["tags"]
    assert (shown["tag"], shown["version"], len(shown["moves"])) == ("main", 2, 4)


async def test_a_tag_that_is_not_there_is_named_with_the_nearest(
    says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await with_versions(1)
    with says.raised(NotFound):
        await world.service().start("pay@main", {}, "")
    await move(world, 1)
    with says.raised(NotFound):
        await world.service().start("pay@mian", {}, "")
    with says.raised(NotFound):
        await move(world, 7)
    with says.raised(NotFound):
        await move(world, 0, tag="canary")
    with says.raised(NotFound):
        await world.service().versions.tag("pay", "canary")
    monkeypatch.setattr(catalog, "MOST_TAGS", 1)
    with says.raised(UserError):
        await move(world, 1, tag="canary")


async def test_of_two_who_move_a_tag_at_once_the_second_learns_of_the_first(says: Says) -> None:
    world = await with_versions(1, 2, 3)
    await move(world, 1)
    both = await asyncio.gather(move(world, 2, was=1), move(world, 3, was=1), return_exceptions=True)
    (refused,) = [one for one in both if isinstance(one, Outdated)]
    says(refused.detail.replace("version 3", "version 2"))


async def test_the_history_of_a_tag_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await with_versions(1, 2)
    monkeypatch.setattr(catalog, "MOVES_KEPT", 3)
    for number in range(6):
        await move(world, 1 + number % 2)
    assert [one.version for one in (await world.service().versions.tag("pay", "main")).moves] == [2, 1, 2]


async def test_a_paused_workflow_holds_back_what_is_started_by_tag() -> None:
    world = await with_versions(1, 2)
    await move(world, 1)
    await world.service().many.pause(SagaFilter(workflow="pay"), "", Part())
    assert (await ended(world, "pay@main"))["status"] == "paused"


async def test_a_child_a_schedule_and_an_event_start_by_tag() -> None:
    world = await with_versions(1, 2)
    triggers = """
schedule: {rate: 5m, tag: main}
events: {start: [{type: paid, tag: main}]}
"""
    await register(
        world, PAY % 3 + triggers, "name: shop\nnodes: {a: {workflow: pay@main}}\noutput: ${ctx.a.output}"
    )
    await move(world, 2)
    assert (await ended(world, "shop"))["result"] == 2
    (done,) = await take(world, event("paid", "p-1"))
    assert did([done]) == [("pay", "started")]
    await asyncio.sleep(400)
    shown = await world.service().schedules.show("pay")
    sagas = [done["saga"], shown.recent[0].saga]
    for saga in sagas:
        view = await world.queries().show(str(saga))
        assert (view["workflow_version"], view["workflow_tag"]) == (2, "main")
    view, _ = await world.service().schedules.trigger("pay", "now", world.service().start)
    assert (await world.queries().show(str(view["id"])))["workflow_tag"] == "main"
    assert shown.tag == "main"


async def test_a_start_without_a_tag_reads_none(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await with_versions(1)
    monkeypatch.delattr(MemoryDefinitions, "tag")
    monkeypatch.delattr(MemoryDefinitions, "tags")
    assert (await ended(world, "pay"))["result"] == 1
    assert (await ended(world, "pay@1"))["result"] == 1


async def test_a_child_by_tag_that_does_not_take_its_input_is_a_note(says: Says) -> None:
    world = World.start()
    await register(
        world,
        "name: pay\ninput: {type: object, required: [n], properties: {n: {type: integer}}}\nnodes: {a: {value: 1}}",
    )
    await move(world, 1)
    found = await world.service().register(
        "name: shop\nnodes: {a: {workflow: pay@main, with: {m: 1}}}", json_only=False
    )
    says(found.notes)


# ---- patches

LIMIT = [{"op": "replace", "path": "/nodes/a/value", "value": 7}]


async def patch(
    world: World, operations: list[Any], made_for: int, description: str = "", **more: Any
) -> Any:
    wanted = WorkflowPatch(operations=operations, made_for=made_for, description=description, **more)
    return await world.service(user="mia").versions.patch("pay", wanted)


async def test_a_patch_makes_the_next_version_of_the_newest_document() -> None:
    world = await with_versions(1, 2)
    made = await patch(world, LIMIT, 2, "a higher limit")
    assert (made.is_new, made.definition.version) == (True, 3)
    assert (await ended(world, "pay"))["result"] == 7
    (newest, second, _) = (await world.queries().workflow("pay"))["versions"]
    assert (newest["by"], newest["description"]) == ("mia", "a higher limit")
    assert second["description"] == ""
    assert (await world.queries().workflow("pay"))["document"] == (
        'name: pay\nnodes:\n  a:\n    value: 7\noutput: "${ctx.a.output}"\n'
    )
    again = await patch(world, LIMIT, 2, "a higher limit")
    assert (again.is_new, again.definition.version) == (False, 3), "the same request"


async def test_a_patch_of_another_version_than_the_newest_is_refused(says: Says) -> None:
    world = await with_versions(1, 2)
    for made_for in (1, 3):
        with says.raised(Outdated):
            await patch(world, LIMIT, made_for)
    other = [{"op": "replace", "path": "/nodes/a/value", "value": 8}]
    both = await asyncio.gather(patch(world, LIMIT, 2), patch(world, other, 2), return_exceptions=True)
    (refused,) = [one for one in both if isinstance(one, Outdated)]
    says(refused.detail)
    with pytest.raises(NotFound):
        await world.service().versions.patch("nothing", WorkflowPatch(operations=LIMIT, made_for=1))


@pytest.mark.parametrize(
    ("path", "value"), [("/nodes/b/value", 7), ("/name", "other")], ids=["no place", "a name"]
)
async def test_a_patch_that_cannot_be_applied_says_why(path: str, value: Any, says: Says) -> None:
    world = await with_versions(1)
    with says.raised(InvalidInput):
        await patch(world, [{"op": "replace", "path": path, "value": value}], 1)


async def test_a_patch_is_refused_with_all_problems_of_the_document() -> None:
    world = await with_versions(1)
    wrong = [
        {"op": "add", "path": "/nodes/b", "value": {"tool": "gone"}},
        {"op": "remove", "path": "/nodes/a/value"},
    ]
    with pytest.raises(InvalidDefinition) as refused:
        await patch(world, wrong, 1)
    assert len(refused.value.problems) > 1


async def test_a_dry_run_compiles_and_stores_nothing() -> None:
    world = await with_versions(1)
    made = await patch(world, LIMIT, 1, dry_run=True)
    assert made.definition.version == 2
    assert len((await world.queries().workflow("pay"))["versions"]) == 1
    stored = await patch(world, LIMIT, 1)
    assert stored.definition.graph == made.definition.graph


async def test_breaking_changes_are_notes_of_the_registration_and_of_a_dry_run(says: Says) -> None:
    world = await with_versions(1)
    typed = "name: pay\ninput: {type: object, required: [n]}\nnodes: {b: {value: 1}}"
    found = await world.service().register(typed, json_only=False)
    says(found.notes)
    assert (await world.service().register(typed, json_only=False)).notes == found.notes
    renamed = [{"op": "move", "from": "/nodes/b", "path": "/nodes/c"}]
    says((await patch(world, renamed, 2, dry_run=True)).notes)
    assert (
        await world.service().register(typed.replace("value: 1", "value: 2"), json_only=False)
    ).notes == ()
