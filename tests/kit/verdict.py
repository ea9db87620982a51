"""Runs a scenario under a plan of faults and says what came of it, and which promises it broke."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from baton.core.log.events import Entry, Event
from baton.core.log.questions import Answer
from baton.errors import NotAllowedNow
from baton.ports import Head
from tests.kit.callback_oracles import after_the_end
from tests.kit.corpus import Scenario
from tests.kit.faults import Plan
from tests.kit.oracles import CALLBACKS, DOCTOR, LIVENESS, of_saga, of_world, settled, unhealthy
from tests.kit.virtual_time import EPOCH, Livelock, run_virtual
from tests.kit.world import World

MOST_RESUMES = 20
MOST_ROUNDS = 90_000
"""Of the loop, in one run: twice what the longest that comes to an end has, whose sagas wait for days."""
LOOKED_AT, ENDLESS = 100, "endless"


@dataclass(frozen=True)
class Verdict:
    """The end of a scenario: what it came to, and every broken promise in a sentence."""

    status: str
    output: Any
    done: tuple[str, ...]
    writes: tuple[str, ...]
    broken: tuple[str, ...]
    faults: tuple[str, ...]
    kinds: frozenset[str]
    logs: tuple[tuple[Head, Sequence[Entry]], ...] = ()

    @property
    def result(self) -> tuple[str, Any, tuple[str, ...]]:
        """What must be the same whatever went wrong on the way."""
        return self.status, self.output, self.done

    @property
    def story(self) -> tuple[str, ...]:
        """Every log, entry by entry: for who asks why a promise was broken."""
        return tuple(_story(self.logs))


def run(scenario: Scenario, plan: Plan, setup: Callable[[World], None] | None = None) -> Verdict:
    """Run it in a new world. What goes on for ever is a broken promise of liveness, and the world is told as it is then."""
    worlds: list[World] = []

    async def main() -> Verdict:
        world = World.start(plan=plan, limits=scenario.limits)
        worlds.append(world)
        if setup is not None:
            setup(world)
        saga = await scenario.drive(world)
        await world.settle()
        held = {"parked", "suspended"} if scenario.has_open_end else {"parked"}
        for _ in range(0 if scenario.expected == "parked" else MOST_RESUMES):
            if not (stuck := [head for head in world.log.heads() if head.status in held]):
                break
            for head in stuck:  # deaths in a row: that is what a person is for
                with suppress(NotAllowedNow):
                    await _helped(world, head)
            await asyncio.sleep(400)  # longer than the sweep
            await world.settle()
        if world.faults:  # until whatever stood still or was on its way has come
            await asyncio.sleep(2 * max(world.stall_s, world.late_s))
            await world.settle()
        view = await world.queries_without_faults().show(saga)
        broken = (*of_saga(world, saga), *of_world(world))
        broken += tuple([f"{CALLBACKS}: {text}" async for text in after_the_end(world)])
        broken += tuple([f"{DOCTOR}: {text}" async for text in unhealthy(world)])
        return Verdict(
            status=view["status"],
            output=view["result"],
            done=_done(world, saga) if scenario.same_steps else (),
            writes=tuple(plan.writes),
            broken=broken,
            faults=tuple(world.faults),
            kinds=frozenset(_kinds(world)),
            logs=_logs(world),
        )

    try:
        return run_virtual(main(), MOST_ROUNDS)
    except Livelock as error:
        return run_virtual(_endless(worlds[0], str(error)))


async def _endless(world: World, why: str) -> Verdict:
    """A run that was stopped: what is not at its end, and the calls that went round."""
    last = Counter([*world.plan.reads[-LOOKED_AT:], *world.plan.writes[-LOOKED_AT:]])
    calls = ", ".join(f"`{call}` {count} times" for call, count in last.most_common(4))
    open_ = ", ".join(f"{head.ref.id} {head.status}" for head in world.log.heads() if head.group != "done")
    text = f"{LIVENESS}: {why}; {open_ or 'every saga'} is as it was, and the last calls were {calls}"
    return Verdict(
        status=ENDLESS,
        output=None,
        done=(),
        writes=tuple(world.plan.writes),
        broken=(text,),
        faults=tuple(world.faults),
        kinds=frozenset(_kinds(world)),
        logs=_logs(world),
    )


def _done(world: World, saga: str) -> tuple[str, ...]:
    """The steps of the current history, by name; how often is checked elsewhere."""
    return tuple(sorted({slot for slot, _ in settled(world.entries(saga))}))


def _kinds(world: World) -> set[str]:
    """The kinds of event in all logs."""
    return {
        str(event.__struct_config__.tag) for head in world.log.heads() for event in world.events(head.ref.id)
    }


def _logs(world: World) -> tuple[tuple[Head, Sequence[Entry]], ...]:
    return tuple((head, world.entries(head.ref.id)) for head in world.log.heads())


async def _helped(world: World, head: Head) -> None:
    """A person resumes what is parked. Of an effect whose outcome is unknown, this one knows nothing either."""
    if head.status == "parked":
        await world.service_without_faults().resume(head.ref.id)
        return
    for question in (await world.queries_without_faults().show(head.ref.id))["questions"]:
        answer = Answer(ask=question["id"], action="fail")
        await world.service_without_faults().answer(head.ref.id, answer, f"helped-{question['id']}")


def _story(logs: Sequence[tuple[Head, Sequence[Entry]]]) -> Iterator[str]:
    for head, entries in logs:
        yield f"{head.ref.id}: {head.workflow}, {head.status}"
        for entry in entries:
            when = (entry.at - EPOCH) / 1_000
            yield f"  {entry.version:4} at {when:10.3f} s by {entry.invocation or '-'}, epoch {entry.epoch}"
            yield from (f"       {_told(event)}" for event in entry.events)


def _told(event: Event) -> str:
    """An event with the fields that say something."""
    fields = msgspec.to_builtins(event)
    kind = event.__struct_config__.tag
    return f"{kind} " + " ".join(f"{name}={value!r:.60}" for name, value in fields.items() if value != kind)
