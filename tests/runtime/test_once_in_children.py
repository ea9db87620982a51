"""Tools that act only once in child sagas whose parent is forked to before them: a new child, and the same place.

A child's place in the sagas above it is in its keys, whatever its id and the branch. So what the child of an old branch
has done is not done by that of the new one, which gets its result, and its rows too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from baton import Context, Key, tool
from baton.core.effects.keys import KeyRule
from baton.core.log.questions import Answer
from tests.kit.corpus import start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, Plan
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.test_once_in_sagas import question, view_of

CHILD = "name: child\nnodes: {a: {tool: bill, with: {invoice: i}}}\noutput: ${ctx.a.output}"
PARENT = "name: w\nnodes: {k: {workflow: child}}\noutput: ${ctx.k.output}"
BEFORE = 1
"""The version of the parent before it has a child."""


@dataclass
class Bank:
    """Moves money, and writes a row that says when: with the number of the move. `hangs`: after the first has moved."""

    moved: Counter[str] = field(default_factory=Counter)
    asked: list[str] = field(default_factory=list)
    found: int = 0
    hangs: bool = False

    def open(self, world: World, *, verify: bool = False, key: KeyRule | None = None) -> None:
        more: dict[str, Any] = {"verify": "find"} if verify else {}
        if key is not None:
            more["key"] = key

        @tool("bill", effect="once", timeout="2s", registry=world.registry, **more)
        async def bill(invoice: str, context: Context) -> int:
            self.moved[invoice] += 1
            number = self.moved[invoice]
            self.asked.append(context.saga)
            context.put_row("bills", invoice, {"number": number, "by": context.saga})
            if self.hangs and number == 1:
                await asyncio.sleep(60)
            return number

        @tool("find", effect="pure", registry=world.registry)
        async def find(invoice: str) -> dict[str, Any]:
            self.found += bool(self.moved[invoice])
            return {"happened": bool(self.moved[invoice]), "result": self.moved[invoice]}

        world.tools = world.registry.specs()


async def begin(world: World, *children: str, parent: str = PARENT) -> str:
    for document in (CHILD, *children):
        await world.service().register(document, json_only=False)
    return await start(world, parent, {}, "w")


async def child_of(world: World, saga: str) -> str:
    return str((await view_of(world, saga))["active"][0]["saga"])


def numbers(world: World) -> list[Any]:
    """What the rows say."""
    return [attributes["number"] for attributes in world.log.rows.values()]


@pytest.mark.parametrize(
    "key", [None, Key.user("invoice"), Key.business("invoice", "invoice"), Key.request()]
)
async def test_what_the_child_of_an_old_branch_has_done_is_not_done_again(key: KeyRule | None) -> None:
    world = World.start()
    bank = Bank()
    bank.open(world, key=key)
    saga = await begin(world)
    for _ in range(3):
        await world.settle()
        view = await view_of(world, saga)
        assert (view["status"], view["result"]) == ("completed", 1)
        assert (bank.moved["i"], numbers(world)) == (1, [1])
        await world.service().fork(saga, BEFORE, "again")


async def test_nor_by_a_child_of_a_child() -> None:
    world = World.start()
    bank = Bank()
    bank.open(world)
    middle = "name: middle\nnodes: {m: {workflow: child}}\noutput: ${ctx.m.output}"
    saga = await begin(world, middle, parent=PARENT.replace("workflow: child", "workflow: middle"))
    for _ in range(2):
        await world.settle()
        view = await view_of(world, saga)
        assert (view["status"], view["result"], bank.moved["i"]) == ("completed", 1, 1)
        await world.service().fork(saga, BEFORE, "again")


async def test_the_next_round_of_a_loop_is_another_place_and_a_fork_repeats_neither() -> None:
    world = World.start()
    bank = Bank()
    bank.open(world)
    loop = "loop: {while: output < 5, max_iterations: 2, timeout_path: z}"
    saga = await begin(world, parent=f"name: w\nnodes: {{k: {{workflow: child, {loop}}}, z: {{value: end}}}}")
    for _ in range(2):
        await world.settle()
        assert ((await view_of(world, saga))["status"], bank.moved["i"]) == ("completed", 2)
        await world.service().fork(saga, BEFORE, "again")


async def test_what_has_an_unknown_outcome_when_it_is_forked_away_is_looked_for_by_the_next_child() -> None:
    world = World.start()
    bank = Bank(hangs=True)
    bank.open(world, verify=True)
    saga = await begin(world)
    await asyncio.sleep(1.5)
    old = await child_of(world, saga)
    await world.service().fork(saga, BEFORE, "while it acts")
    await world.settle()
    view = await view_of(world, saga)
    assert (view["status"], view["result"], bank.moved["i"]) == ("completed", 1, 1)
    assert (await view_of(world, old))["status"] == "cancelled"


@pytest.mark.parametrize("action", ["use", "retry"])
async def test_or_by_a_person_who_alone_can_have_it_done_again(action: str) -> None:
    world = World.start()
    bank = Bank(hangs=True)
    bank.open(world)
    saga = await begin(world)
    await asyncio.sleep(1.5)
    old = await child_of(world, saga)
    await world.service().fork(saga, BEFORE, "while it acts")
    await world.settle(600)
    new = await child_of(world, saga)
    view = await view_of(world, new)
    assert (new == old, view["status"], bank.moved["i"]) == (False, "suspended", 1)
    assert "unknown_outcome" in view["questions"][0]["message"]
    told = {notice.to for notice in world.notices.said if notice.code == "unknown_outcome"}
    assert told == {"on_call", "user"}, (
        "of the old child's step that was stopped, and of the new one's question"
    )
    more: dict[str, Any] = {"output": 7} if action == "use" else {}
    await world.service().answer(new, Answer(ask=await question(world, new), action=action, **more), "")
    await world.settle()
    view = await view_of(world, saga)
    assert (view["status"], view["result"]) == ("completed", 7 if action == "use" else 2)
    assert bank.moved["i"] == (1 if action == "use" else 2)


async def test_a_wider_key_gives_the_result_to_a_child_elsewhere_and_its_row_is_written_once() -> None:
    world = World.start()
    bank = Bank()
    bank.open(world, key=Key.business("invoice", "invoice"))
    nodes = "k: {workflow: child}, l: {workflow: child, after: k}"
    saga = await begin(world, parent=f"name: w\nnodes: {{{nodes}}}\noutput: ${{ctx.l.output}}")
    for _ in range(2):
        await world.settle()
        view = await view_of(world, saga)
        assert (view["status"], view["result"], bank.moved["i"]) == ("completed", 1, 1)
        assert [attributes["by"] for attributes in world.log.rows.values()] == bank.asked
        await world.service().fork(saga, BEFORE, "again")


@pytest.mark.parametrize("verify", [True, False])
def test_a_crash_at_any_write_of_the_child_and_a_fork_are_never_a_second_bill(verify: bool) -> None:
    crashed = set[str]()
    for fate in (CRASH_BEFORE, CRASH_AFTER):
        for number in range(16, 21):

            async def crashes_at(number: int, fate: str) -> None:
                world = World.start(plan=Plan({number: fate}))
                bank = Bank()
                bank.open(world, verify=verify)
                saga = await begin(world)
                await asyncio.sleep(3)
                crashed.update(fault.rpartition(" ")[2] for fault in world.faults)
                await world.service_without_faults().fork(saga, BEFORE, "whatever has happened")
                await world.settle(600)
                assert bank.moved["i"] <= 1
                view = await view_of(world, saga)
                if verify:
                    assert (view["status"], view["result"]) == ("completed", 1)
                if view["status"] == "completed":
                    assert numbers(world) == ([] if bank.found else [1]), "who only looks has no rows to give"
                else:
                    new = await view_of(world, await child_of(world, saga))
                    assert "unknown_outcome" in new["questions"][0]["message"]

            run_virtual(crashes_at(number, fate))
    assert crashed == {"take", "claim", "change", "append_with_rows", "release"}
