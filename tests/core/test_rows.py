"""A tool's own rows: what can be one, and that they travel with the outcomes that an entry takes in."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any

import pytest

from baton.core.decide.decide import advance
from baton.core.decide.outcomes import Outcome, refused_rows
from baton.core.decide.spending import Bounds
from baton.core.effects.rows import MAX_BYTES, MAX_KEY_BYTES, MAX_LEVELS, Row, RowRoom, check_row, row_bytes
from baton.core.log.events import Value
from tests.core.build import T0, Saga, program, task
from tests.kit.sentences import Says

ROOM = RowRoom(rows=90, bytes=3_500_000)


def nested(containers: int) -> Any:
    value: Any = 1
    for number in range(containers):
        value = [value] if number % 2 else {"in": value}
    return value


@pytest.mark.parametrize(
    "attributes",
    [
        {"seat": 4, "vip": True, "tags": ["a", None, ""], "near": {"x": -1.5}},
        {"a": 10**38 - 1, "b": -(10**38 - 1)},
        {"a": 1e-130, "b": -9.99e125, "c": 0.0, "d": 1e16},
        {"deepest": nested(MAX_LEVELS - 1)},
        {"ttl": 1_790_000_000},
        {},
    ],
)
def test_a_row_is_what_it_was(attributes: dict[str, Any]) -> None:
    row = Row("g" * MAX_KEY_BYTES, "s" * MAX_KEY_BYTES, attributes)
    assert check_row(row) == row


class Seat(int, Enum):
    WINDOW = 4


class Mood(StrEnum):
    GOOD = "good"


def test_a_tuple_is_written_as_a_list_and_a_member_of_an_enumeration_as_what_it_is() -> None:
    row = check_row(Row("k", "s", {"a": (1, (2.5,)), "b": Seat.WINDOW, "c": Mood.GOOD}))
    assert row.attributes == {"a": [1, [2.5]], "b": 4, "c": "good"}
    assert [type(value) for value in row.attributes.values()] == [list, int, str]


def test_what_a_tool_changes_after_a_row_was_checked_is_not_in_it() -> None:
    attributes: dict[str, Any] = {"seats": [1, {"for": "ada"}]}
    row = check_row(Row("k", "s", attributes))
    attributes["seats"][1]["for"] = object()
    attributes["pk"] = "mine"
    assert row.attributes == {"seats": [1, {"for": "ada"}]}


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "row",
    [
        Row("", "a", {}),
        Row("k", "", {}),
        Row("ü" * 513, "s", {}),
        Row("k", "\U0001f372" * 257, {}),
        Row("k", "half \ud800", {}),
        Row(7, "s", {}),  # type: ignore[arg-type]  # tools are not type-checked
        Row("k", "s", {"a": "x" * MAX_BYTES}),
        Row("k", "s", {"a": ["half \ud800"]}),
        Row("k", "s", {"": 1}),
        Row("k", "s", {"a": {"": 1}}),
        Row("k", "s", {"a": {7: 1}}),
        Row("k", "s", ["a"]),  # type: ignore[arg-type]  # the same
        Row("k", "s", {"a": datetime(2026, 1, 1, tzinfo=UTC)}),
        Row("k", "s", {"a": [Decimal("1.5")]}),
        Row("k", "s", {"a": {"b": {1, 2}}}),
        Row("k", "s", {"a": b"x"}),
        Row("k", "s", {"a": 10**38}),
        Row("k", "s", {"a": -(10**5000)}),
        Row("k", "s", {"a": float("nan")}),
        Row("k", "s", {"a": float("-inf")}),
        Row("k", "s", {"a": 1e126}),
        Row("k", "s", {"a": 9.9e-131}),
        Row("k", "s", {"a": nested(MAX_LEVELS)}),
        Row("k", "s", {"a": CYCLE}),
    ],
)
def test_what_cannot_be_a_row_is_refused_with_its_reason(row: Row, says: Says) -> None:
    with says.raised(ValueError) as caught:
        check_row(row)
    assert type(caught.value) is ValueError
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["pk", "sk", "wake", "due_at", "due_shard", "st_at", "st_key"])
def test_names_that_the_engine_looks_for_in_its_table_are_refused(name: str, says: Says) -> None:
    with says.raised(ValueError):
        check_row(Row("k", "s", {name: "1"}))
    assert check_row(Row("k", "s", {"inner": {name: 1}})).attributes, "deeper inside nothing is checked"


def test_the_size_of_a_row_is_never_less_than_that_of_its_item() -> None:
    row = Row("ü", "s", {"name": [True, None, 12, -1.5, "ü", {"a": {}}]})
    keys = len("pk") + len(b"\xc3\xbc") + len("sk") + 1
    by_rule = len("name") + 3 + 6 + 1 + 1 + 2 + 3 + 2 + (3 + 1 + 1 + 3)
    assert row_bytes(row) >= keys + by_rule


def outcome(slot: str, *rows: Row) -> Outcome:
    return Outcome(slot=slot, attempt=1, started_at=T0, ended_at=T0, output=Value(v=1), rows=rows)


def test_the_rows_of_settled_steps_go_with_their_entry_and_those_of_dropped_ones_do_not() -> None:
    saga = Saga(program(task("a"), task("b")))
    mine, lost = Row("k", "mine", {}), Row("k", "lost", {})
    step = advance(saga.program, saga.state, [outcome("a", mine), outcome("gone", lost)], T0, ["b"])
    assert (step.taken, step.rows) == (2, (mine,))


def test_rows_that_no_transaction_has_room_for_wait_with_their_outcome() -> None:
    saga = Saga(program(task("a"), task("b")))
    many = tuple(Row("k", str(number), {}) for number in range(90))
    step = advance(
        saga.program, saga.state, [outcome("a", *many), outcome("b", *many[:1])], T0, bounds=Bounds(rows=ROOM)
    )
    assert (step.taken, step.more, step.rows) == (1, True, many)


def test_rows_that_are_too_large_together_wait_with_their_outcome() -> None:
    saga = Saga(program(task("a"), task("b"), task("c")))
    large = tuple(Row("k", str(number), {"a": "x" * 95_000}) for number in range(18))
    outcomes = [outcome("a", *large), outcome("b", *large), outcome("c", *large)]
    step = advance(saga.program, saga.state, outcomes, T0, bounds=Bounds(rows=ROOM))
    assert (step.taken, step.more, len(step.rows)) == (2, True, 36)
    assert sum(map(row_bytes, step.rows)) <= 3_500_000


def test_a_store_without_a_bound_takes_the_rows_of_all_steps() -> None:
    saga = Saga(program(task("a"), task("b")))
    many = tuple(Row("k", str(number), {"a": "x" * 95_000}) for number in range(90))
    step = advance(saga.program, saga.state, [outcome("a", *many), outcome("b", *many)], T0)
    assert (step.taken, len(step.rows)) == (2, 180)
    assert RowRoom(rows=1).takes(many[:1])
    assert not RowRoom(rows=1).takes(many)


def test_rows_of_several_steps_can_be_kept_apart() -> None:
    saga = Saga(program(task("a"), task("b"), task("c")))
    outcomes = [outcome("a"), outcome("b", Row("k", "b", {})), outcome("c", Row("k", "c", {}))]
    first = advance(saga.program, saga.state, outcomes, T0, together=False)
    assert (first.taken, first.rows) == (1, ())
    second = advance(saga.program, saga.state, outcomes[1:], T0, ["a"], together=False)
    assert (second.taken, [row.sort for row in second.rows]) == (1, ["b"])


def test_a_step_whose_rows_the_table_refuses_has_failed_and_any_other_stays_as_it_was(says: Says) -> None:
    plain = outcome("b")
    assert refused_rows(plain, "why") is plain
    bad = refused_rows(outcome("a", Row("k", "s", {})), "too odd")
    assert (bad.output, bad.rows) == (None, ())
    assert bad.failure is not None
    assert (bad.failure.code, bad.failure.node) == ("rows_refused", "a")
    says(bad.failure.message)
