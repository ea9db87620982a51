"""Circuit breakers: calls that are held back while their target is down, and what that costs when it is not."""

from __future__ import annotations

from typing import Any

from baton.core.failures.breakers import CLOSED, OPEN
from baton.core.log.events import AttemptFailed, StepHeld
from tests.kit.corpus import patiently
from tests.kit.down import PAYMENTS, Target, add_down
from tests.kit.toolbox import Books
from tests.kit.world import TENANT, World
from tests.runtime.conftest import Stage


def with_target(world: World, **options: Any) -> Target:
    target = Target(**options)
    add_down(world.registry, target)
    world.tools = world.registry.specs()
    return target


def waits(world: World, saga: str) -> list[StepHeld]:
    return [event for event in world.events(saga) if isinstance(event, StepHeld)]


async def begin(world: World, count: int, document: str = PAYMENTS) -> list[str]:
    name = document.split()[1]
    await patiently(world, lambda service: service.register(document, json_only=False))

    async def one(number: int) -> str:
        view, _ = await patiently(world, lambda service: service.start(name, {}, f"key-{number}"))
        return str(view["id"])

    return [await one(number) for number in range(count)]


def test_a_healthy_call_reads_and_writes_nothing(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        target = with_target(world)
        sagas = await begin(world, 5)
        await world.settle()
        assert len(target.calls) == len(sagas)
        assert not {"read_breaker", "write_breaker"} & {*world.plan.reads, *world.plan.writes}
        assert world.store.breakers.read_breaker(TENANT, "payments") is None

    stage(story)


def test_a_target_that_is_down_is_called_a_few_times_and_every_saga_completes_after_it(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        target = with_target(world, down=((0, 600),))
        sagas = await begin(world, 20)
        await world.settle()
        assert [world.end(saga).status for saga in sagas] == ["completed"] * 20  # type: ignore[union-attr]
        opened = world.store.breakers.read_breaker(TENANT, "payments")
        assert opened is not None
        assert opened.state == CLOSED
        assert (opened.moves[0].to, opened.moves[-1].to) == (OPEN, CLOSED)
        assert len(target.while_down) < 45

    stage(story)


def test_a_step_that_is_held_back_makes_no_attempt(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        with_target(world, down=((0, 300),))
        sagas = await begin(world, 10)
        await world.settle()
        for saga in sagas:
            failed = [event for event in world.events(saga) if isinstance(event, AttemptFailed)]
            assert len(failed) < 3
            assert waits(world, saga)

    stage(story)
