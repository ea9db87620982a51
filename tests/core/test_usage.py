"""What a saga has written and reads again, counted from its log: each protocol once.

That the write units are those of the requests really sent is in tests/contract/test_cost_of_sagas.py.
"""

from __future__ import annotations

import msgspec
import pytest

from baton.core.limits import Limits
from baton.core.log import codec
from baton.core.log import events as ev
from baton.core.log.snapshots import encode_state
from baton.core.read.costs import stored_bytes, units
from baton.core.read.usage import Claims, DueRow, Ledger
from tests.core.build import Saga, chain, child, done, failed, program, task, wait
from tests.core.spending import (
    AROUND,
    BARE,
    EARLY,
    FINISH,
    START,
    TAKE,
    TO_WAIT,
    YIELD,
    next_turn,
    noise,
    run,
    used,
    writes,
)

# ---- units


@pytest.mark.parametrize(
    ("size", "of", "cost"), [(0, 1_024, 1), (1_024, 1_024, 1), (1_025, 1_024, 2), (1_025, 4_096, 1)]
)
def test_a_unit_is_begun_by_its_first_byte_and_one_is_always_paid(size: int, of: int, cost: int) -> None:
    assert units(size, of) == cost


def test_data_is_stored_compressed_only_where_that_saves_a_unit() -> None:
    small, dull = b'{"x":1}', b'{"x":"' + b"a" * 5_000 + b'"}'
    random = noise(1_000).encode()
    assert stored_bytes(small, 100) == 107
    assert stored_bytes(dull, 100) < 300
    assert stored_bytes(random, 400) == 400 + len(random)


# ---- write units


def test_a_saga_of_one_invocation_costs_its_entries_and_eleven_units_less_one_entry() -> None:
    saga = Saga(chain(3))
    run(saga, "n0", "n1", "n2")
    assert writes(saga, 1) == START + TAKE + 3 + FINISH


@pytest.mark.parametrize(
    ("timeout_s", "lasted_s", "renewals"),
    [(60, 22, 0), (60, 59, 1), (30, 29, 0), (900, 22, 0), (900, 23, 1), (900, 899, 39)],
)
def test_a_lease_that_is_held_for_long_costs_its_renewals(
    timeout_s: int, lasted_s: int, renewals: int
) -> None:
    row = DueRow(limits=Limits(worker_timeout_s=timeout_s))
    assert row.renewals(lasted_s * 1_000) == renewals


def test_a_saga_that_no_worker_took_yet_costs_its_start() -> None:
    assert writes(Saga(chain(1))) == START
    assert used(Saga(chain(1))).lambda_requests == 3, "the API, the relay, and the worker that is on its way"


def test_a_further_invocation_costs_a_yield_and_a_take() -> None:
    saga = Saga(chain(3))
    run(saga, "n0")
    next_turn(saga)
    run(saga, "n1")
    next_turn(saga)
    run(saga, "n2")
    assert writes(saga, 3) == START + TAKE + 3 + 2 * (YIELD + TAKE) + FINISH


def test_a_lease_that_is_held_is_not_given_back_yet() -> None:
    saga = Saga(chain(2))
    run(saga, "n0")
    assert writes(saga, 1, held=True) == START + TAKE + 1
    assert writes(saga, 1) == START + TAKE + 1 + YIELD
    assert writes(saga, 2, held=True) == START + TAKE + 1 + YIELD + TAKE
    assert writes(Saga(chain(1)), 1, held=True) == START + TAKE
    assert writes(Saga(chain(1)), 0, held=True) == START, "an older head than the log"


def test_an_entry_costs_a_unit_for_each_kilobyte_begun() -> None:
    saga = Saga(chain(1))
    run(saga, "n0", value="x" * 3_000)
    assert writes(saga, 1) == START + TAKE + 4 + FINISH


def test_an_input_is_paid_with_the_head_until_that_is_given_back() -> None:
    """The head carries entry 1: in the start, the take and the first release, and no longer."""
    saga = Saga(chain(2), {"x": noise(1_500)})
    run(saga, "n0")
    next_turn(saga)
    run(saga, "n1")
    without = START + TAKE + 2 + YIELD + TAKE + FINISH
    assert writes(saga, 2) == without + 3 + 1, "the head three times, and the entry itself"


def test_waiting_moves_the_saga_in_the_list_and_waiting_again_does_not() -> None:
    saga = Saga(program(wait("w", signal="s"), task("a", "w")))
    saga.go()
    assert writes(saga, 1) == START + TAKE + 1 + TO_WAIT
    assert writes(saga, 3) == START + TAKE + 1 + TO_WAIT + 2 * (TAKE + 3), (
        "two looks at a saga that still waits"
    )
    saga.signal("s")
    next_turn(saga)
    saga.go()
    assert writes(saga, 2) == START + TAKE + 1 + TO_WAIT + 1 + EARLY + 1 + TO_WAIT


def test_a_saga_that_is_parked_while_it_waits_changes_its_row_in_place() -> None:
    saga = Saga(program(wait("w", signal="s")))
    saga.go()
    next_turn(saga)
    saga.put(ev.Parked(code="deaths", message="thrice"))
    assert writes(saga, 2) == START + TAKE + 1 + TO_WAIT + EARLY + 1 + 3 + 1


def test_an_outside_entry_under_way_costs_a_nudge_and_a_refused_put() -> None:
    saga = Saga(program(task("a"), wait("w", "a", signal="s"), task("b", "a")))
    run(saga, "a")
    saga.signal("s")
    run(saga, "b")
    assert writes(saga, 1) == START + TAKE + 1 + (1 + 1 + 1) + 1 + FINISH


def test_an_outside_entry_between_two_invocations_costs_itself() -> None:
    saga = Saga(chain(2))
    run(saga, "n0")
    saga.cancel()
    next_turn(saga)
    saga.go()
    assert writes(saga, 2) == START + TAKE + 1 + YIELD + 1 + TAKE + 1 + FINISH


def test_a_dead_invocation_gave_nothing_back() -> None:
    saga = Saga(chain(2))
    run(saga, "n0")
    saga.die()
    run(saga, "n1")
    assert writes(saga, 2) == START + TAKE + 1 + TAKE + 1 + 1 + FINISH


def test_a_dead_invocation_that_wrote_nothing_was_a_take_as_well() -> None:
    saga = Saga(chain(1))
    saga.die()
    run(saga, "n0")
    assert writes(saga, 2) == START + TAKE + TAKE + 1 + 1 + FINISH


def test_a_look_between_two_invocations_is_a_take_and_a_release() -> None:
    saga = Saga(program(wait("w", signal="s")))
    saga.go()
    saga.epoch += 2
    saga.signal("s")
    saga.go()
    assert writes(saga, 3) == START + TAKE + 1 + TO_WAIT + (TAKE + 3) + 1 + EARLY + 1 + FINISH


def test_looks_between_two_invocations_are_one_update_each() -> None:
    """After an hour, and then after twice that."""
    saga = Saga(program(wait("w", signal="s")))
    saga.go()
    before = used(saga, 1)
    saga.now += 3 * 3_600_000 - 1
    saga.signal("s")
    next_turn(saga)
    saga.go()
    after = used(saga, 2)
    assert after.write_units - before.write_units == 2 * 3 + 1 + EARLY + 1 + FINISH
    assert after.lambda_requests - before.lambda_requests == 2 + 3, "a look is one, and a signal three"


def test_what_is_due_by_itself_ends_the_looks_before_it() -> None:
    saga = Saga(program(wait("w", ms=3 * 3_600_000 + 600_000)))
    saga.go()
    before = writes(saga, 1)
    saga.now += 3 * 3_600_000 + 700_000
    next_turn(saga)
    saga.go()
    assert writes(saga, 2) - before == 2 * 3 + TAKE + 1 + FINISH


def test_a_saga_whose_children_are_open_is_not_looked_at_without_its_lease() -> None:
    saga = Saga(program(child("c")))
    saga.go()
    plain = writes(saga, 1)
    saga.now += 3 * 3_600_000
    saga.cancel()
    next_turn(saga)
    saga.go()
    assert writes(saga, 2) == plain + 1 + TAKE + 3 + FINISH, (
        "its row is due long since; the report moves the inbox, too"
    )


def test_a_fork_arms_the_head_and_goes_on() -> None:
    saga = Saga(chain(2))
    run(saga, "n0", "n1")
    end = START + TAKE + 2 + FINISH
    saga.now += 1_000_000
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    next_turn(saga)
    saga.go(msgspec.structs.replace(done("n1"), started_at=saga.now), after_ms=46_000)
    assert writes(saga, 2) == end + (2 + 1) + TAKE + 1 + 1 + 2, (
        "the saga was and is in the list of what is done"
    )


def test_an_end_within_the_time_of_a_fork_leaves_the_saga_due_for_one_more_look() -> None:
    saga = Saga(chain(2))
    run(saga, "n0", "n1")
    end = START + TAKE + 2 + FINISH
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    next_turn(saga)
    run(saga, "n1")
    assert writes(saga, 3) == end + (2 + 1) + TAKE + 1 + 3 + (TAKE + 2)


def test_a_fork_of_a_saga_that_runs_moves_it_in_the_due_index() -> None:
    saga = Saga(chain(2))
    run(saga, "n0")
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    assert writes(saga, 1) == START + TAKE + 1 + YIELD + (3 + 1)


def test_steps_of_all_branches_count() -> None:
    saga = Saga(chain(2))
    run(saga, "n0", "n1")
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    next_turn(saga)
    run(saga, "n1")
    ledger = Ledger(saga.program, BARE)
    for entry in saga.entries:
        ledger.add(entry, b"", 1)
    assert (ledger.steps, saga.state.counts.steps) == (3, 2)


def test_of_the_past_only_the_cuts_of_forks_are_kept() -> None:
    saga = Saga(chain(2))
    run(saga, "n0", "n1")
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    next_turn(saga)
    run(saga, "n1")
    whole, lean = Ledger(saga.program, BARE), Ledger(saga.program, BARE, cuts={2})
    for entry in saga.entries:
        whole.add(entry, b"", 1)
        lean.add(entry, b"", 1)
    assert (len(whole._past), list(lean._past)) == (len(saga.entries), [2])
    assert whole.total(2, is_held=False) == lean.total(2, is_held=False)


def test_a_log_without_forks_needs_no_past() -> None:
    saga = Saga(chain(2))
    run(saga, "n0", "n1")
    ledger = Ledger(saga.program, BARE, cuts=())
    for entry in saga.entries:
        ledger.add(entry, codec.encode_entry(entry), 1)
    assert ledger.total(1, is_held=False).write_units == START + TAKE + 2 + FINISH


def test_an_effect_that_may_happen_only_once_is_two_writes_more_whatever_comes_of_it() -> None:
    saga = Saga(program(task("a"), task("b", "a")))
    run(saga, "a")
    saga.go(failed("b"))
    found = []
    for once in ((), ("a",), ("a", "b")):
        ledger = Ledger(saga.program, BARE, claims=Claims(once))
        for entry in saga.entries:
            ledger.add(entry, codec.encode_entry(entry), 1)
        found.append(ledger.total(1, is_held=False).write_units)
    assert [units - found[0] for units in found] == [0, 2, 4]


# ---- snapshots


def test_a_snapshot_is_written_with_a_release_once_the_tail_has_outgrown_it() -> None:
    saga = Saga(chain(30))
    run(saga, *(f"n{n}" for n in range(10)))
    tail = sum(len(codec.encode_entry(entry)) for entry in saga.entries)
    state = len(encode_state(saga.state))
    plain = writes(saga, 1, snapshot_tail=tail + 1)
    assert state < tail
    assert writes(saga, 1, snapshot_tail=tail) == plain + units(state + 50)
    next_turn(saga)
    run(saga, "n10")
    assert writes(saga, 2, snapshot_tail=tail) == plain + units(state + 50) + TAKE + 1 + YIELD


def test_a_state_larger_than_the_tail_and_one_that_has_ended_are_not_worth_a_snapshot() -> None:
    saga = Saga(chain(4), {"x": noise(600)})
    run(saga, "n0", "n1")
    assert writes(saga, 1, snapshot_tail=0) == writes(saga, 1) + 1
    next_turn(saga)
    run(saga, "n2")
    assert writes(saga, 2, snapshot_tail=0) == writes(saga, 2) + 1, "one entry is read faster than a state"
    next_turn(saga)
    run(saga, "n3")
    assert writes(saga, 3, snapshot_tail=0) == writes(saga, 3) + 1


def test_a_snapshot_that_is_a_blob_is_one_unit_and_a_put_and_each_resume_gets_it_until_a_fork() -> None:
    saga = Saga(chain(60), {"x": noise(3_000)})
    run(saga, *(f"n{n}" for n in range(50)))
    next_turn(saga)
    run(saga, "n50")
    next_turn(saga)
    run(saga, "n51")
    snapshot = encode_state(saga.states[51])
    size = len(snapshot)
    item = msgspec.structs.replace(BARE, snapshot_blob=size)
    blob = msgspec.structs.replace(BARE, snapshot_blob=size - 1)
    plain, moved = used(saga, 3, deployment=item), used(saga, 3, deployment=blob)
    assert plain.write_units - moved.write_units == units(stored_bytes(snapshot, 50)) - 1 > 0
    assert (plain.blob_puts, plain.blob_gets) == (0, 0)
    assert (moved.blob_puts, moved.blob_gets) == (1, 2)
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now), epoch=0)
    next_turn(saga)
    run(saga, "n1")
    assert used(saga, 4, deployment=blob).blob_gets == 3, (
        "of these the fork's caller has read one, and its branch none"
    )


def test_a_resume_reads_the_snapshot_and_what_comes_behind_it() -> None:
    def reads(snapshot_tail: int) -> int:
        deployment = msgspec.structs.replace(BARE, snapshot_tail=snapshot_tail)
        return used(saga, 2, deployment=deployment).read_units

    saga = Saga(chain(60))
    run(saga, *(f"n{n}" for n in range(50)))
    tail = sum(len(codec.encode_entry(entry)) + AROUND for entry in saga.entries)
    next_turn(saga)
    run(saga, "n50")
    start, next_wake = 1, 1
    assert reads(10**9) == start + (1 + 1) + (1 + units(tail, 4_096)) + next_wake
    assert reads(8_192) == start + (1 + 1) + (1 + 1 + 1) + next_wake


def test_a_question_costs_two_units_to_list_and_two_to_withdraw_also_at_the_end() -> None:
    def cost(*said: ev.Event) -> int:
        saga = Saga(chain(1))
        saga.go()
        for event in said:
            saga.put(event)
        return writes(saga)

    told = ev.NoticesSent(keys=())
    rows = {ask: ev.Shown(to="user:ada", until=1, told=True) for ask in ("0.a", "0.b", "0.c")}
    shown, withdrawn = ev.NoticesSent(keys=(), shown=rows), ev.NoticesSent(keys=(), withdrawn=("0.a",))
    end = ev.SagaEnded(status="completed")
    assert cost(shown) == cost(told) + 3 * 2
    assert cost(shown, withdrawn) == cost(told, told) + 3 * 2 + 2
    assert cost(shown, withdrawn, end) == cost(told, told, end) + 3 * 2 + 2 + 2 * 2


def test_copied_entries_cost_their_writes_alone() -> None:
    saga = Saga(chain(3))
    run(saga, "n0", "n1")
    ledger = Ledger(saga.program, BARE)
    for one in saga.entries:
        data = codec.encode_entry(one)
        ledger.add_copy(one, data, len(data) + AROUND)
    total = ledger.total(0, is_held=False)
    assert (ledger.steps, total.write_units) == (0, START + len(saga.entries) - 1)
