"""Looking without changing: lists of sagas page by page, workflows with their versions, tools."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from baton.errors import NotFound, UserError
from baton.runtime.requests import lists
from baton.runtime.starting import catalog
from tests.kit.documents import chain_of
from tests.kit.sentences import Says
from tests.kit.world import World

WAITS = "name: waits\nnodes: {pause: {wait: {signal: go}}}"
FAILS = "name: fails\non_failure: [rollback]\nnodes: {a: {tool: refuse}}"
ADD = "{tool: add, with: {numbers: [1]}}"


async def start(world: World, document: str, given: Any, workflow: str) -> str:
    await world.service().register(document, json_only=False)
    view, _ = await world.service().start(workflow, given, "")
    return str(view["id"])


async def many(world: World, count: int) -> list[str]:
    """Sagas that were started one after the other and have all completed."""
    await world.service().register(chain_of(1), json_only=False)
    found = []
    for _ in range(count):
        view, _ = await world.service().start("chain", {"n": 0}, "")
        found.append(view["id"])
        await asyncio.sleep(0.05)
    await world.settle()
    return found


async def pages(world: World, limit: int, **filters: Any) -> list[list[dict[str, Any]]]:
    """All pages of a list."""
    found: list[list[dict[str, Any]]] = []
    cursor = ""
    while len(found) < 200:
        page = await world.queries().sagas(limit=limit, cursor=cursor, **filters)
        found.append(page["sagas"])
        if page["next"] is None:
            return found
        cursor = page["next"]
    raise AssertionError("the pages have no end")


def ids(found: list[list[dict[str, Any]]]) -> list[str]:
    return [row["id"] for page in found for row in page]


@pytest.mark.parametrize("limit", [1, 3, 10, 100])
async def test_pages_of_any_size_show_every_saga_once_the_latest_change_first(limit: int) -> None:
    world = World.start()
    sagas = await many(world, 23)
    found = await pages(world, limit)
    assert all(len(page) <= limit for page in found)
    assert sorted(ids(found)) == sorted(sagas)
    changes = [row["changed_at"] for page in found for row in page]
    assert changes == sorted(changes, reverse=True)


async def test_a_list_shows_status_workflow_user_and_times() -> None:
    world = World.start()
    saga = await start(world, chain_of(1), {"n": 0}, "chain")
    (row,) = (await world.queries().sagas())["sagas"]
    assert (row["id"], row["workflow"], row["status"], row["user"]) == (saga, "chain", "running", "ann")
    assert row["created_at"] == row["changed_at"]
    await world.settle()
    (row,) = (await world.queries().sagas())["sagas"]
    assert row["status"] == "completed"
    assert row["changed_at"] > row["created_at"]


async def test_a_list_can_be_of_one_status_of_the_unfinished_or_of_the_finished() -> None:
    world = World.start()
    done = await start(world, chain_of(1), {"n": 0}, "chain")
    failed = await start(world, FAILS, {}, "fails")
    waiting = await start(world, WAITS, {}, "waits")
    await asyncio.sleep(60)

    async def with_status(status: str) -> set[str]:
        return set(ids(await pages(world, 10, status=status)))

    assert await with_status("completed") == {done}
    assert await with_status("failed") == {failed}
    assert await with_status("waiting") == await with_status("open") == {waiting}
    assert await with_status("done") == {done, failed}
    assert await with_status("running") == await with_status("parked") == set()


async def test_a_list_can_be_of_one_workflow_and_since_a_moment() -> None:
    world = World.start()
    await many(world, 3)
    failed = await start(world, FAILS, {}, "fails")
    await world.settle()
    assert ids(await pages(world, 2, workflow="fails")) == [failed]
    changes = sorted(row["changed_at"] for page in await pages(world, 10) for row in page)
    since = round(datetime.fromisoformat(changes[2]).timestamp() * 1_000)
    assert len(ids(await pages(world, 1, since=since))) == 2


async def test_a_rare_workflow_is_found_behind_more_sagas_than_one_page_looks_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lists, "LOOKED_AT", 2)
    world = World.start()
    failed = await start(world, FAILS, {}, "fails")
    await world.settle()
    await many(world, 40)
    found = await pages(world, 1, workflow="fails")
    assert len(found) > 1, "it looks at a few rows of each shard at a time"
    assert ids(found) == [failed]


async def test_an_order_holds_across_shards_that_a_filter_lets_look_unequally_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lists, "LOOKED_AT", 2)
    world = World.start()
    for document in (FAILS, chain_of(1)):
        await world.service().register(document, json_only=False)
    wanted = []
    for number in range(36):
        workflow = "fails" if number % 3 == 0 else "chain"
        view, _ = await world.service().start(workflow, {"n": 0}, "")
        wanted += [view["id"]] if workflow == "fails" else []
        await world.settle()
    found = await pages(world, 2, workflow="fails")
    assert sorted(ids(found)) == sorted(wanted)
    changes = [row["changed_at"] for page in found for row in page]
    assert changes == sorted(changes, reverse=True)


async def test_a_list_is_of_the_callers_tenant() -> None:
    world = World.start()
    await many(world, 2)
    assert await world.queries(tenant="rival").sagas() == {"sagas": [], "next": None}
    assert await world.queries(tenant="rival").workflows() == {"workflows": [], "next": None}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"status": "runing"}, "there is no status `runing`. Did you mean `running`?"),
        ({"status": "xyzzy"}, "There are open, done, running"),
        ({"limit": 0}, "limit is 1 to 100"),
        ({"limit": 101}, "limit is 1 to 100"),
        ({"cursor": "nonsense!"}, "not one that a list has answered with"),
        ({"cursor": "AAAA"}, "not one that a list has answered with"),
    ],
)
async def test_what_a_list_cannot_be_asked_for_is_refused(asked: dict[str, Any], said: str) -> None:
    world = World.start()
    with pytest.raises(UserError) as refusal:
        await world.queries().sagas(**asked)
    assert said in refusal.value.detail


async def test_a_cursor_of_a_list_with_other_filters_is_refused() -> None:
    world = World.start()
    await many(world, 5)
    cursor = (await world.queries().sagas(limit=1))["next"]
    with pytest.raises(UserError, match="other filters"):
        await world.queries().sagas(limit=1, status="open", cursor=cursor)
    with pytest.raises(UserError, match="other filters"):
        await world.queries().sagas(limit=1, workflow="chain", cursor=cursor)


async def test_workflows_come_in_pages_by_name_each_with_its_newest_version() -> None:
    world = World.start()
    for name in ("d", "b", "c", "a"):
        await world.service().register(f"name: {name}\nnodes: {{x: {ADD}}}", json_only=False)
    await world.service().register(f"name: b\nnodes: {{y: {ADD}}}", json_only=False)
    first = await world.queries().workflows(3)
    assert [(row["name"], row["version"]) for row in first["workflows"]] == [("a", 1), ("b", 2), ("c", 1)]
    rest = await world.queries().workflows(3, first["next"])
    assert ([row["name"] for row in rest["workflows"]], rest["next"]) == (["d"], None)
    with pytest.raises(UserError, match="cursor"):
        await world.queries().workflows(3, "####")


async def test_a_workflow_is_shown_with_its_document_its_shape_and_its_versions() -> None:
    first = f"name: pair\nnodes: {{x: {ADD}}}"
    second = f"name: pair\nnodes: {{x: {ADD}, y: {{wait: {{for: 5s}}, after: [x]}}}}  # as it was written"
    world = World.start()
    await world.service().register(first, json_only=False)
    await world.service().register(second, json_only=False)
    newest = await world.queries().workflow("pair")
    assert (newest["version"], newest["document"]) == (2, second)
    assert newest["edges"] == [{"from": "x", "to": "y", "kind": "after"}]
    assert [node["kind"] for node in newest["nodes"]] == ["task", "wait"]
    assert [version["version"] for version in newest["versions"]] == [2, 1]
    old = await world.queries().workflow("pair", "1")
    assert (old["version"], old["document"], "versions" in old) == (1, first, False)
    with pytest.raises(NotFound, match="the newest is 2"):
        await world.queries().workflow("pair", "3")
    with pytest.raises(NotFound, match="Did you mean `pair`"):
        await world.queries().workflow("pear")


async def test_a_wrong_name_is_compared_with_so_many_names_only(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    world = World.start()
    for name in ("aa", "bb", "cc"):
        await world.service().register(f"name: {name}\nnodes: {{x: {ADD}}}", json_only=False)
    with pytest.raises(NotFound, match="Did you mean `cc`"):
        await world.queries().workflow("ccc")
    monkeypatch.setattr(catalog, "NAMES_COMPARED", 2)
    with says.raised(NotFound):
        await world.queries().workflow("ccc")


async def test_tools_are_shown_by_name_with_their_schemas() -> None:
    world = World.start()
    tools = (await world.queries().tools())["tools"]
    names = [tool["name"] for tool in tools]
    assert names == sorted(world.tools)
    (add,) = (tool for tool in tools if tool["name"] == "add")
    assert add["effect"] in {"pure", "idempotent"}
    assert add["input"]["properties"]
    assert add["schema_hash"] == world.tools["add"].schema_hash
