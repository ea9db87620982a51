"""Rows that cannot be written: refused where the tool puts them, and if only the table refuses, no reason to go round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton import Context, tool
from baton.core.effects.rows import Row
from baton.core.log.events import StepFailed, StepSucceeded
from baton.errors import RowsRefused
from baton.ports import Record, SagaRef, Wake
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World

THREE = """
name: three
nodes:
  one: {tool: seat, with: {guest: ada}}
  two: {tool: seat, with: {guest: bob}}
  three: {tool: seat, with: {guest: cyd}}
"""


def refuse(world: World, guest: str) -> list[list[str]]:
    """Let the table refuse a guest's row. Returns the guests of each transaction, as they are asked for."""
    asked: list[list[str]] = []
    real = world.log.append_with_rows

    def append_with_rows(ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None) -> bool:
        asked.append(sorted(row.sort for row in rows))
        if guest in asked[-1]:
            raise RowsRefused("The parameter cannot be converted to a numeric value")
        return real(ref, record, rows, wake)

    any_log: Any = world.log
    any_log.append_with_rows = append_with_rows
    return asked


async def test_rows_that_only_the_table_refuses_fail_their_step_and_no_other() -> None:
    world = World.start()
    asked = refuse(world, "bob")
    saga = await start(world, THREE, {}, "three")
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], view["error"]["code"], view["error"]["node"]) == (
        "failed",
        "rows_refused",
        "two",
    )
    assert "cannot be converted to a numeric value" in view["error"]["message"]
    done = {event.node for event in world.events(saga) if isinstance(event, StepSucceeded)}
    assert done == {"one", "three"}
    assert {sort for _, _, sort in world.log.rows} == {"ada", "cyd"}
    assert (asked[0], sorted(asked[1:])) == (["ada", "bob", "cyd"], [["ada"], ["bob"], ["cyd"]])
    assert (len(world.invocations), view["revivals"]) == (1, 0)


async def test_a_row_that_no_table_would_take_fails_its_step_with_the_reason(says: Says) -> None:
    world = World.start()

    @tool("numbers", registry=world.registry)
    async def numbers(context: Context) -> None:
        context.put_row("primes", "largest", {"value": 2**607 - 1})

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\non_failure: [rollback]\nnodes: {a: {tool: numbers}}", {}, "w")
    await world.settle()
    (failed,) = [event for event in world.events(saga) if isinstance(event, StepFailed)]
    assert failed.failure.code == "tool_error"
    says.within(failed.failure.message)
    where = f"(tests/runtime/test_refused_rows.py:{numbers.__code__.co_firstlineno + 2} in numbers)"
    assert failed.failure.message.endswith(where)


async def test_rows_of_many_steps_are_written_in_as_many_transactions_as_it_takes() -> None:
    world = World.start()

    @tool("heavy", registry=world.registry)
    async def heavy(n: int, context: Context) -> None:
        for number in range(10):
            context.put_row("heavy", f"{n}-{number}", {"text": "x" * 90_000})

    world.tools = world.registry.specs()
    asked = refuse(world, "nothing")
    nodes = "".join(f"  n{i}: {{tool: heavy, with: {{n: {i}}}}}\n" for i in range(8))
    saga = await start(world, f"name: w\nnodes:\n{nodes}", {}, "w")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert [len(rows) for rows in asked] == [30, 30, 20], "3.5 MB at most in each"
