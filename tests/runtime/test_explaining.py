"""Which way a saga went, and why a node did not run: asked of logs of many pages and branches."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.decide.program import Program
from baton.core.read.story import Story
from baton.errors import CorruptLog, NotFound, TooLarge
from baton.runtime.requests import queries as explaining
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.sentences import Says
from tests.kit.world import World


class Clock:
    """It is always that late."""

    def __init__(self, at: int) -> None:
        self.at = at

    def now(self) -> int:
        return self.at


async def test_the_way_of_a_forked_saga_is_that_of_its_present_branch_however_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World.start()
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


async def test_a_node_is_explained_and_an_unknown_one_refused(says: Says) -> None:
    document = 'name: w\nnodes: {a: {tool: add, with: {numbers: [1]}, when: "input.go"}}'
    world = World.start()
    saga = await start(world, document, {"go": False}, "w")
    await world.settle()
    found = await world.queries().explain(saga, "a")
    assert (found["saga"], found["node"], found["kind"]) == (saga, "a", "task")
    says([one["text"] for one in found["iterations"]])
    with pytest.raises(NotFound, match="no node `b`"):
        await world.queries().explain(saga, "b")
    with pytest.raises(NotFound, match="no saga"):
        await world.queries().explain("nowhere", "a")


async def test_a_log_that_cannot_be_read_before_the_request_ends_is_refused_with_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(explaining, "PAGE", 4)
    world = World.start()
    saga = await start(world, chain_of(7), {"n": 0}, "chain")
    await world.settle()
    opened = await world.queries()._request.open(saga)
    call = world.queries()._parts.call
    with says.raised(TooLarge):
        await explaining.story_of(world.log, call, Clock(call.deadline), opened)
    monkeypatch.setattr(explaining, "PAGE", 8)
    await explaining.story_of(world.log, call, Clock(call.deadline), opened)


LOOPS = """name: w
nodes:
  a: {tool: add, with: {numbers: [1]}, loop: {while: "true", max_iterations: 5, timeout_path: b}}
  b: {tool: add, with: {numbers: [2]}, when: input.b, loop: {while: "true", back_to: a, max_iterations: 6, timeout_path: z}}
  c: {tool: add, after: b, with: {numbers: [3]}}
  z: {tool: add, with: {numbers: [4]}}
"""


@pytest.mark.parametrize(
    ("document", "given"), [(LOOPS, {"b": True}), (LOOPS, {"b": False}), (chain_of(30), {"n": 0})]
)
async def test_a_page_of_the_way_reads_no_further_than_it_shows_and_all_pages_together_are_the_whole(
    monkeypatch: pytest.MonkeyPatch, document: str, given: dict[str, Any]
) -> None:
    world = World.start()
    saga = await start(world, document, given, "chain" if "n" in given else "w")
    await world.settle()
    whole = await world.queries().way(saga, 0, 100)
    monkeypatch.setattr(explaining, "PAGE", 2)
    for limit in (1, 3, 7):
        found: list[Any] = []
        page: dict[str, Any] = {"next": 0}
        while page["next"] is not None:
            told: list[Story] = []

            def tell(program: Program, wants: Any, told: list[Story] = told) -> Story:
                told.append(Story(program, wants))
                return told[0]

            monkeypatch.setattr(explaining, "Story", tell)
            page = await world.queries().way(saga, page["next"], limit)
            found += page["steps"]
            assert page["next"] is None or told[0].version <= page["next"] + 4
        assert found == whole["steps"]
        assert (page["end"], page["open"]) == (whole["end"], whole["open"])


async def test_reading_leaves_a_third_of_the_requests_time_for_the_answer(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(explaining, "PAGE", 1)
    world = World.start()
    saga = await start(world, chain_of(7), {"n": 0}, "chain")
    await world.settle()
    queries = world.queries()
    opened = await queries._request.open(saga)
    call = queries._parts.call
    began = call.deadline - 15_000
    clock = Clock(began)

    class Slow:
        """A page takes a fifth of the request's time."""

        async def __call__(self, *args: Any) -> Any:
            clock.at += (call.deadline - began) // 5
            return await call(*args)

    slow: Any = Slow()
    slow.deadline = call.deadline
    with says.raised(TooLarge):
        await explaining.story_of(world.log, slow, clock, opened)
    assert clock.at < call.deadline


async def test_a_log_that_is_shorter_than_its_state_is_damaged(says: Says) -> None:
    async def nothing(*_: Any) -> list[Any]:
        return []

    nothing.deadline = 1  # type: ignore[attr-defined]  # as that of a request
    world = World.start()
    saga = await start(world, chain_of(2), {"n": 0}, "chain")
    opened = await world.queries()._request.open(saga)
    with says.raised(CorruptLog):
        await explaining.story_of(world.log, nothing, Clock(0), opened)  # type: ignore[arg-type]  # reads nothing
