"""Registering a workflow: what the author is told besides, and what the children that it starts have to do with it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from baton.errors import InvalidDefinition
from baton.ports import Meter
from baton.runtime.engine.parts import Engine
from tests.kit.sentences import Says
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import SimulationLoop
from tests.kit.world import World

PARENT = "name: parent\nnodes: {a: {workflow: %s, with: {n: 1}}}"
CHILD = "name: child\ninput: {type: object, required: [%s]%s}\nnodes: {a: {wait: {for: 1s}}}"
TYPED = ", properties: {n: {type: integer}, city: {type: string}}"


async def notes(world: World, text: str) -> tuple[str, ...]:
    return (await world.service().register(text, json_only=False)).notes


async def test_a_child_may_be_registered_after_its_parent_which_is_told(says: Says) -> None:
    world = World(make_registry(Books()))
    assert await notes(world, CHILD.replace("child", "delivery") % ("n", TYPED)) == ()
    says(await notes(world, PARENT % "delivry"))
    says(await notes(world, PARENT % "delivery@7"))


async def test_what_a_child_takes_today_is_a_note(says: Says) -> None:
    world = World(make_registry(Books()))
    await notes(world, CHILD % ("city", TYPED))
    says(await notes(world, PARENT % "child"))
    await notes(world, CHILD % ("n", TYPED))
    assert await notes(world, PARENT % "child") == ()


async def test_what_a_version_of_a_child_takes_it_takes_for_ever(says: Says) -> None:
    world = World(make_registry(Books()))
    await notes(world, CHILD % ("city", TYPED))
    await notes(world, CHILD % ("n", TYPED))
    assert await notes(world, PARENT % "child@2") == ()
    try:
        await notes(world, PARENT % "child@1")
    except InvalidDefinition as error:
        (problem,) = error.problems
        assert (problem.path, problem.line) == ("/nodes/a", 2)
        says(problem.message)
    else:
        raise AssertionError("it was registered")
    both = "name: parent\nnodes: {a: {workflow: child@2, with: {n: 1}}, b: {workflow: child}}"
    says(await notes(world, both))


async def test_a_known_document_has_its_notes_again() -> None:
    world = World(make_registry(Books()))
    text = "name: long\nnodes: {a: {workflow: nowhere}}"
    first = await world.service().register(text, json_only=False)
    again = await world.service().register(text, json_only=False)
    assert (first.is_new, again.is_new) == (True, False)
    assert len(first.notes) == len(again.notes) == 1


class Metered(World):
    """Its API has this meter."""

    meter: Meter

    def engine(self, process: Any) -> Engine:
        return replace(super().engine(process), meter=self.meter)


class Working:
    """A process that has worked for so long more whenever it is asked."""

    def __init__(self, each_ms: int) -> None:
        self._moments = count(0, each_ms)

    def passed(self) -> int:
        raise AssertionError("the time that passes is not asked for")

    def worked(self) -> int:
        return next(self._moments)


async def test_a_document_is_refused_for_what_a_processor_has_worked_and_not_for_what_it_has_waited(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    world = Metered(make_registry(Books()))
    reads = world.store.definitions.get

    def slow(*name: Any) -> Any:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulationLoop)
        loop.pass_time(5)
        return reads(*name)

    world.meter = Working(1)
    await notes(world, CHILD % ("n", TYPED))
    monkeypatch.setattr(world.store.definitions, "get", slow)
    assert await notes(world, PARENT % "child@1") == ()
    world.meter = Working(2_001)
    with pytest.raises(InvalidDefinition) as refused:
        await notes(world, (PARENT % "child@1").replace("parent", "other"))
    says(refused.value.problems[0].message)
