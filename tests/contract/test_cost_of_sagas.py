"""What a log says that a saga used is what the requests really sent for it were, on a table and by DynamoDB's rule.

Whole sagas of the corpus in virtual time, their log in memory and on moto at once; see tests/kit/mirror.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from baton.adapters.aws import Aws
from baton.core.decide.program import Program
from baton.core.graph.graph import decode_graph
from baton.core.limits import Limits
from baton.core.log.codec import decode_entry
from baton.core.log.events import ChildReported
from baton.core.nodes.registry import KINDS
from baton.core.read.costs import BillingSettings, Usage
from baton.core.read.usage import Ledger
from baton.ports import Head
from tests.kit.corpus import CORPUS, Scenario, start
from tests.kit.documents import chain_of
from tests.kit.meter import Meter, Spent
from tests.kit.mirror import MeteredWorld
from tests.kit.table import create_table
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

BY_NAME = {scenario.name: scenario for scenario in CORPUS}


@dataclass
class Found:
    """One saga: what its log says, and what the meter does. `outside`: entries that no worker wrote.

    `reports`: those of its children; its own, in the inbox of its parent, is on its bill.
    """

    says: Usage
    writes: float
    reads: float
    outside: int
    reports: int


async def _long_chain(world: World) -> str:
    return await start(world, chain_of(50, 0.25), {"n": 0, "note": "ten bytes." * 40}, "chain")


LONG = Scenario("long-chain", _long_chain, limits=Limits(snapshot_tail_bytes=4_096))


async def _large_state(world: World) -> str:
    fills = "".join(f"  f{i}: {{tool: fill, with: {{size: 8000}}}}\n" for i in range(10))
    output = ", ".join(f"'${{ctx.f{i}.output.text}}'" for i in range(10))
    document = f"name: w\nnodes:\n{fills}  go: {{wait: {{for: 30s}}}}\noutput: [{output}]\n"
    return await start(world, document, {}, "w")


LARGE = Scenario("large-state", _large_state)


@pytest.fixture(scope="module")
def _shared_meter(_no_real_account: None) -> Meter:
    """Clients cost more than what is watched through them. Its own: it listens to them for good."""
    return Meter(Aws())


@pytest.fixture
def meter(moto_aws: Aws, _shared_meter: Meter) -> Meter:
    create_table(moto_aws.dynamodb, "sagas")
    _shared_meter.clear()
    return _shared_meter


def metered(scenario: Scenario, meter: Meter) -> tuple[MeteredWorld, dict[str, Found]]:
    """Run it to its end. What each saga used, by its id."""

    async def main() -> tuple[MeteredWorld, dict[str, Found]]:
        world = MeteredWorld(make_registry(Books()), meter=meter, limits=scenario.limits)
        world.switch_on()
        await scenario.drive(world)
        await world.settle()
        written, read = list(world.meter.written), list(world.meter.read)  # before this test itself looks
        found = {}
        for head in world.log.heads():
            limits = replace(scenario.limits, worker_timeout_s=round(world.timeout_s))
            says, outside = read_log(world, head, BillingSettings.of(limits))
            pk, reports = str(head.ref), world.events(head.ref.id)
            own = _sum(written, pk) + sum(one.units for one in written if one.sk.endswith(f"#{head.ref.id}"))
            told = sum(isinstance(event, ChildReported) for event in reports)
            found[head.ref.id] = Found(says, own, _sum(read, pk), outside, told)
        return world, found

    return run_virtual(main())


def _sum(spent: list[Spent], pk: str) -> float:
    return sum(one.units for one in spent if one.pk == pk)


def read_log(world: World, head: Head, deployment: BillingSettings) -> tuple[Usage, int]:
    graph = world.blobs.get(head.ref.tenant, f"cas://sha256/{head.graph}")
    ledger = Ledger(Program(decode_graph(graph, KINDS), KINDS), deployment)
    outside = 0
    for branch in range(head.branch + 1):
        for record in world.log.read_tail(head.ref, branch, 0):
            entry = decode_entry(record.data)
            outside += entry.version > 1 and not entry.epoch
            ledger.add(entry, record.data, record.size)
    return ledger.total(head.epoch, is_held=bool(head.owner)), outside


@pytest.mark.parametrize("name", ["chain", "long-wait", "snapshots", "killer", "big"])
def test_the_log_of_a_saga_left_to_itself_says_exactly_what_was_sent(name: str, meter: Meter) -> None:
    world, found = metered(BY_NAME[name], meter)
    ((_, saga),) = found.items()
    assert saga.outside == 0
    assert saga.says.write_units == saga.writes
    definition = 1  # of the workflow: read, but here from memory
    assert saga.says.read_units == saga.reads + definition
    roles = world.roles
    assert saga.says.lambda_requests == 1 + roles["relay"] + roles["worker"], "one of the API's is the start"


def test_units_of_a_tools_work_cost_a_write_each_and_a_further_attempt_reads_them(meter: Meter) -> None:
    _, found = metered(BY_NAME["journalled"], meter)
    ((_, saga),) = found.items()
    assert saga.says.write_units == saga.writes
    assert saga.says.blob_puts == 3, "each of three journals has a large result"
    assert saga.says.read_units <= saga.reads + 1, "what further attempts read is not in the log"


@pytest.mark.parametrize("name", ["waiting", "early-signal", "forked"])
def test_an_entry_from_outside_may_cost_a_nudge_and_a_refused_write_more_or_less(
    name: str, meter: Meter
) -> None:
    """Whether it met a worker at work is not in the log; see `Ledger`."""
    _, found = metered(BY_NAME[name], meter)
    for saga in found.values():
        assert abs(saga.says.write_units - saga.writes) <= 2 * saga.outside


@pytest.mark.parametrize("name", ["parent", "reporting"])
def test_reports_of_children_that_come_together_are_counted_apart_and_a_refused_release_is_not(
    name: str, meter: Meter
) -> None:
    _, found = metered(BY_NAME[name], meter)
    assert any(saga.reports for saga in found.values())
    for saga in found.values():
        assert abs(saga.says.write_units - saga.writes) <= saga.reports


def test_a_long_saga_with_a_large_start_and_snapshots_is_exact_too(meter: Meter) -> None:
    world, found = metered(LONG, meter)
    ((_, saga),) = found.items()
    snapshots = [spent for spent in world.meter.written if spent.sk.startswith("SNAP")]
    assert len(snapshots) >= 2
    assert saga.says.write_units == saga.writes


def test_a_snapshot_that_is_a_blob_costs_one_unit_and_a_put_and_a_get(meter: Meter) -> None:
    world, found = metered(LARGE, meter)
    ((_, saga),) = found.items()
    (snapshot,) = (spent for spent in world.meter.written if spent.sk.startswith("SNAP"))
    assert snapshot.units == 1
    assert saga.says.write_units == saga.writes
    document_and_graph = 2
    assert saga.says.blob_puts == len(world.blobs.stored) - document_and_graph
    result, resume = 1, 1
    assert saga.says.blob_gets == result + resume


def test_a_tools_own_rows_and_their_transaction_are_what_the_log_does_not_say(meter: Meter) -> None:
    world, found = metered(BY_NAME["rows"], meter)
    ((_, saga),) = found.items()
    transactions = world.plan.writes.count("append_with_rows")
    assert saga.writes - saga.says.write_units == transactions > 0


def test_a_question_costs_two_units_to_list_and_two_to_withdraw(meter: Meter) -> None:
    world, found = metered(BY_NAME["questions"], meter)
    ((_, saga),) = found.items()
    rows = [spent.units for spent in world.meter.written if spent.sk.startswith("ASK#")]
    assert rows
    assert set(rows) == {2}
    assert abs(saga.says.write_units - saga.writes) <= 2 * saga.outside
