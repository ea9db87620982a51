"""A tool's own rows: what can be one, and that they travel with the outcomes that an entry takes in."""

from __future__ import annotations

import pytest

from baton.core.decide import advance
from baton.core.events import Value
from baton.core.outcomes import Outcome
from baton.core.rows import MAX_BYTES, MAX_PER_ENTRY, Row, check_row
from tests.core.build import T0, Saga, program, task


def test_a_row_is_what_it_was() -> None:
    row = Row("guests", "ada", {"seat": 4})
    assert check_row(row) is row


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (Row("", "a", {}), "1 to 500"),
        (Row("k", "s" * 501, {}), "1 to 500"),
        (Row("k", "s", {"pk": 1}), "pk"),
        (Row("k", "s", {"a": "x" * MAX_BYTES}), "bytes"),
    ],
)
def test_what_cannot_be_a_row_is_refused_with_its_reason(row: Row, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        check_row(row)


def outcome(slot: str, *rows: Row) -> Outcome:
    return Outcome(slot=slot, attempt=1, started_at=T0, ended_at=T0, output=Value(v=1), rows=rows)


def test_the_rows_of_settled_steps_go_with_their_entry_and_those_of_dropped_ones_do_not() -> None:
    saga = Saga(program(task("a"), task("b")))
    mine, lost = Row("k", "mine", {}), Row("k", "lost", {})
    step = advance(saga.program, saga.state, [outcome("a", mine), outcome("gone", lost)], T0, ["b"])
    assert (step.taken, step.rows) == (2, (mine,))


def test_rows_that_no_transaction_has_room_for_wait_with_their_outcome() -> None:
    saga = Saga(program(task("a"), task("b")))
    many = tuple(Row("k", str(number), {}) for number in range(MAX_PER_ENTRY))
    step = advance(saga.program, saga.state, [outcome("a", *many), outcome("b", *many[:1])], T0)
    assert (step.taken, step.more, step.rows) == (1, True, many)
