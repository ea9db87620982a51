"""Which way a saga went, and why a node did not run: asked of logs of many pages and branches."""

from __future__ import annotations

from typing import Any

import pytest

from baton.errors import CorruptLog, NotFound, TooLarge
from baton.runtime import explaining
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.toolbox import Books
from tests.kit.world import World
from tests.runtime.conftest import Stage


class Clock:
    """It is always that late."""

    def __init__(self, at: int) -> None:
        self.at = at

    def now(self) -> int:
        return self.at


def test_the_way_of_a_forked_saga_is_that_of_its_present_branch_however_it_is_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World, books: Books) -> None:
        saga = await start(world, chain_of(7), {"n": 0}, "chain")
        await world.settle()
        await world.service().fork(saga, 3, "again from the third step")
        await world.settle()
        whole = await world.queries().way(saga, 0, 100)
        assert [step["version"] for step in whole["steps"]] == [2, 3, 10, 11, 12, 13, 14]
        assert (whole["end"], whole["branch"], whole["status"]) == ("the saga completed", 1, "completed")
        for size in (1, 2, 4):
            monkeypatch.setattr(explaining, "PAGE", size)
            assert await world.queries().way(saga, 0, 100) == whole
        first = await world.queries().way(saga, 0, 3)
        rest = await world.queries().way(saga, first["next"], 100)
        assert first["steps"] + rest["steps"] == whole["steps"]

    stage(story)


def test_a_node_is_explained_and_an_unknown_one_refused(stage: Stage) -> None:
    document = 'name: w\nnodes: {a: {tool: add, with: {numbers: [1]}, when: "input.go"}}'

    async def story(world: World, books: Books) -> None:
        saga = await start(world, document, {"go": False}, "w")
        await world.settle()
        found = await world.queries().explain(saga, "a")
        assert (found["saga"], found["node"], found["kind"]) == (saga, "a", "task")
        assert [one["text"] for one in found["iterations"]] == [
            "`a` did not run, because its `when` says no, `input.go`"
        ]
        with pytest.raises(NotFound, match="no node `b`"):
            await world.queries().explain(saga, "b")
        with pytest.raises(NotFound, match="no saga"):
            await world.queries().explain("nowhere", "a")

    stage(story)


def test_a_log_that_cannot_be_read_before_the_request_ends_is_refused_with_how_far_it_came(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "PAGE", 4)

    async def story(world: World, books: Books) -> None:
        saga = await start(world, chain_of(7), {"n": 0}, "chain")
        await world.settle()
        opened = await world.queries()._request.open(saga)
        call = world.queries()._parts.call
        with pytest.raises(TooLarge, match="of 8 versions it came to 4"):
            await explaining.story_of(world.log, call, Clock(call.deadline), opened)
        monkeypatch.setattr(explaining, "PAGE", 8)
        await explaining.story_of(world.log, call, Clock(call.deadline), opened)

    stage(story)


def test_a_log_that_is_shorter_than_its_state_is_damaged(stage: Stage) -> None:
    async def nothing(*_: Any) -> list[Any]:
        return []

    async def story(world: World, books: Books) -> None:
        saga = await start(world, chain_of(2), {"n": 0}, "chain")
        opened = await world.queries()._request.open(saga)
        with pytest.raises(CorruptLog, match="no version 1 in branch 0"):
            await explaining.story_of(world.log, nothing, Clock(0), opened)  # type: ignore[arg-type]  # reads nothing

    stage(story)
