"""The runner's everyday behaviour: yields, budgets, cancels, large values, failures, and flat resumes."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from baton.core.limits import Limits
from baton.core.log.events import SagaEnded, StepFailed, StepInterrupted, StepSucceeded
from baton.errors import InvalidInput, KeyReused, NotAllowedNow, NotFound
from baton.ports import SagaRef
from tests.kit.corpus import start
from tests.kit.documents import BIG, chain_of, fan_of
from tests.kit.faults import THROTTLE, Plan
from tests.kit.sentences import Says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World


async def finish(world: World, document: str, given: Any, name: str) -> tuple[str, dict[str, Any]]:
    saga = await start(world, document, given, name)
    await world.settle()
    return saga, await world.queries().show(saga)


async def test_a_saga_longer_than_its_budget_yields_and_goes_on_within_a_second() -> None:
    world = World.start()
    saga, view = await finish(world, chain_of(14, 0.9), {"n": 0}, "chain")
    assert view["status"] == "completed"
    assert view["invocations"] == 3
    assert not any(isinstance(event, StepInterrupted) for event in world.events(saga))
    entries = [entry for entry in world.entries(saga) if entry.epoch]
    gaps = [b.at - a.at for a, b in itertools.pairwise(entries) if a.epoch != b.epoch]
    assert all(gap < 1_000 + 900 for gap in gaps)


async def test_a_chain_costs_exactly_one_log_write_per_step() -> None:
    world = World.start()
    saga, _ = await finish(world, chain_of(10), {"n": 0}, "chain")
    assert len(world.entries(saga)) == 1 + 10
    assert world.plan.writes.count("append") == 1 + 10


async def test_siblings_that_settle_together_share_one_entry() -> None:
    world = World.start()
    saga, view = await finish(world, fan_of(30), {}, "fan")
    assert view["status"] == "completed"
    assert len(world.entries(saga)) <= 1 + 1 + 3 + 1


async def test_the_time_of_a_step_is_learned_so_that_it_is_not_started_too_late() -> None:
    world = World.start()
    saga, view = await finish(world, chain_of(4, 3.2), {"n": 0}, "chain")
    cuts = [event for event in world.events(saga) if isinstance(event, StepInterrupted)]
    assert view["status"] == "completed"
    assert len(cuts) <= 1, "at most the first, unknown one is started too late"


async def test_a_large_value_is_a_blob_and_comes_back_only_where_it_is_read() -> None:
    world = World.start()
    saga, view = await finish(world, BIG, {"note": "y" * 20_000}, "big")
    assert view["result"] == {"n": 30_000, "text": "x" * 30_000}
    largest = max(len(record.data) for record in world.log.read_tail(SagaRef(TENANT, saga), 0, 0))
    assert largest < 2_000


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("name: w\non_failure: [rollback]\nnodes: {a: {tool: refuse}}", "tool_error"),
        ("name: w\non_failure: [rollback]\nnodes: {a: {tool: hang, timeout: 2s}}", "timeout"),
        ("name: w\non_failure: [rollback]\nnodes: {a: {tool: quits}}", "tool_error"),
        (
            "name: w\non_failure: {result_invalid: rollback}\nnodes: {a: {tool: odd, with: {what: nan}}}",
            "result_invalid",
        ),
        ("name: w\nnodes: {a: {tool: odd, with: {what: huge}}}", "result_too_large"),
        ("name: w\nnodes: {a: {tool: odd, with: {what: '${input.what}'}}}", "input_unbound"),
    ],
)
async def test_a_failing_step_ends_the_saga_with_its_code_and_node(document: str, code: str) -> None:
    world = World.start()
    saga, view = await finish(world, document, {}, "w")
    assert view["status"] == "failed"
    assert view["error"]["code"] == code
    assert view["error"]["node"] == "a"
    assert any(isinstance(event, StepFailed) for event in world.events(saga))


async def test_a_graceful_cancel_lets_the_running_step_finish_and_starts_no_other() -> None:
    world = World.start()
    saga = await start(world, chain_of(5, 2.0), {"n": 0}, "chain")
    await asyncio.sleep(1)
    await world.service().cancel(saga, "changed my mind", 30_000)
    await world.settle()
    done = [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert done == ["s0"]
    assert (await world.queries().show(saga))["status"] == "cancelled"


async def test_a_forced_cancel_stops_a_running_step() -> None:
    world = World.start(timeout_s=60)
    saga = await start(world, "name: w\nnodes: {a: {tool: hang}}", {}, "w")
    await asyncio.sleep(1)
    asked = asyncio.get_running_loop().time()
    await world.service().cancel(saga, "now", 0)
    while world.end(saga) is None:
        await asyncio.sleep(0.1)
    assert asyncio.get_running_loop().time() - asked < 6
    assert (await world.queries().show(saga))["status"] == "cancelled"


async def test_grace_that_runs_out_becomes_force() -> None:
    world = World.start(timeout_s=60)
    saga = await start(world, "name: w\nnodes: {a: {tool: hang}}", {}, "w")
    await asyncio.sleep(1)
    await world.service().cancel(saga, "soon", 10_000)
    asked = asyncio.get_running_loop().time()
    while world.end(saga) is None:
        await asyncio.sleep(0.1)
    assert 9 < asyncio.get_running_loop().time() - asked < 16


async def test_cancelling_a_parent_cancels_its_children() -> None:
    world = World.start()
    await world.service().register("name: slow\nnodes: {a: {wait: {for: 1h}}}", json_only=False)
    saga = await start(world, "name: parent\nnodes: {child: {workflow: slow}}", {}, "parent")
    await asyncio.sleep(5)
    child = (await world.queries().show(saga))["active"][0]["saga"]
    await world.service().cancel(saga, "stop", 0)
    await world.settle()
    assert (await world.queries().show(child))["status"] == "cancelled"


async def test_a_child_of_an_unknown_workflow_fails_its_node_with_the_nearest_name(says: Says) -> None:
    world = World.start()
    await world.service().register(chain_of(1), json_only=False)
    _, view = await finish(world, "name: parent\nnodes: {child: {workflow: chian}}", {}, "parent")
    assert view["status"] == "failed"
    says(view["error"]["message"])


async def test_the_same_key_with_another_body_is_refused_and_with_the_same_is_a_read() -> None:
    world = World.start()
    await world.service().register(chain_of(1), json_only=False)
    first, is_new = await world.service().start("chain", {"n": 0}, "key")
    again, is_new_again = await world.service().start("chain", {"n": 0}, "key")
    assert (first["id"], is_new, is_new_again) == (again["id"], True, False)
    with pytest.raises(KeyReused):
        await world.service().start("chain", {"n": 1}, "key")


async def test_wrong_requests_are_refused_before_anything_is_written() -> None:
    world = World.start()
    document = "name: w\ninput: {type: object, required: [n], properties: {n: {type: integer}}}\nnodes: {a: {tool: work, with: {n: '${input.n}'}}}"
    await world.service().register(document, json_only=False)
    with pytest.raises(InvalidInput, match="/input/n"):
        await world.service().start("w", {"n": "many"}, "")
    with pytest.raises(NotFound, match="Did you mean `w`"):
        await world.service().start("ww", {"n": 1}, "")
    with pytest.raises(NotFound, match="no version"):
        await world.service().start("w@9", {"n": 1}, "")
    with pytest.raises(NotFound):
        await world.queries().show("missing")
    assert world.log.heads() == []


async def test_a_saga_that_has_ended_takes_no_signal() -> None:
    world = World.start()
    saga, _ = await finish(world, "name: w\nnodes: {a: {wait: {signal: go, timeout: 1s}}}", {}, "w")
    with pytest.raises(NotAllowedNow):
        await world.service().signal(saga, "go", None, "k")
    with pytest.raises(NotFound, match="Did you mean `go`"):
        await world.service().signal(saga, "goo", None, "k")


async def test_another_tenant_sees_nothing() -> None:
    world = World.start()
    saga, _ = await finish(world, chain_of(1), {"n": 0}, "chain")
    with pytest.raises(NotFound):
        await world.queries(tenant="rival").show(saga)
    with pytest.raises(NotFound):
        await world.service(tenant="rival").start("chain", {"n": 0}, "")


def test_a_resume_reads_no_more_of_a_long_saga_than_of_a_short_one() -> None:
    def read_per_resume(length: int) -> float:
        reads: list[int] = []

        async def scenario() -> None:
            world = World.start()
            real = world.log.read_tail

            def read_tail(ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Any:
                records = real(ref, branch, after, limit)
                reads.append(sum(len(record.data) for record in records))
                return records

            any_log: Any = world.log
            any_log.read_tail = read_tail
            saga = await start(world, chain_of(length, 0.9), {"n": 0}, "chain")
            await world.settle()
            end = world.end(saga)
            assert isinstance(end, SagaEnded)

        run_virtual(scenario())
        return sum(reads) / (length / 5)

    assert read_per_resume(400) < 1.5 * read_per_resume(100)


async def test_a_throttled_table_is_asked_again_with_growing_jittered_pauses() -> None:
    world = World.start(plan=Plan(dict.fromkeys((8, 9, 10, 11), THROTTLE)))
    _, view = await finish(world, chain_of(3), {"n": 0}, "chain")
    assert view["status"] == "completed"
    assert view["revivals"] == 0
    assert len(world.faults) == 4


async def test_a_table_throttled_for_longer_than_the_budget_gives_the_message_back() -> None:
    world = World.start(
        plan=Plan(dict.fromkeys(range(8, 30), THROTTLE)), limits=Limits(store_pause_longest_ms=1_000)
    )
    _, view = await finish(world, chain_of(3), {"n": 0}, "chain")
    assert view["status"] == "completed"
    assert len(world.invocations) > 1
