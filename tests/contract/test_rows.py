"""Contract of `Log`: a tool's own rows go with its step's entry, both or neither."""

from __future__ import annotations

from typing import Any

import pytest

from baton.adapters.aws import Aws, translated
from baton.adapters.dynamo_items import row_item
from baton.core.rows import MAX_PER_STEP, Row
from baton.errors import Throttled
from baton.ports import Record, StepContext, Wake
from tests.contract.stores import SAGA, Stores

ENTRY = Record(0, 1, b'{"format":1}')
ROW = Row("guests", "ada", {"seat": 4, "vip": True, "tags": ["a", None], "near": {"x": 1.5}})


def rows_of(stores: Stores) -> dict[tuple[str, str], Any]:
    return stores.rows(SAGA.tenant)


def test_an_entry_and_its_rows_are_there_together(stores: Stores) -> None:
    assert stores.log.append_with_rows(SAGA, ENTRY, [ROW], Wake(v=1))
    assert list(stores.log.read_tail(SAGA, 0, 0)) == [ENTRY]
    assert rows_of(stores) == {("guests", "ada"): ROW.attributes}
    assert stores.wakes() == [(SAGA, Wake(v=1))]


def test_a_version_that_is_taken_leaves_no_row_behind(stores: Stores) -> None:
    assert stores.log.append(SAGA, ENTRY)
    assert not stores.log.append_with_rows(SAGA, ENTRY, [ROW])
    assert rows_of(stores) == {}


def test_a_row_replaces_the_one_with_its_key_and_the_last_of_two_counts(stores: Stores) -> None:
    assert stores.log.append_with_rows(SAGA, ENTRY, [Row("g", "a", {"n": 1}), Row("g", "a", {"n": 2})])
    assert stores.log.append_with_rows(
        SAGA, Record(0, 2, b"{}"), [Row("g", "a", {"n": 3}), Row("g", "b", {"n": 4})]
    )
    assert rows_of(stores) == {("g", "a"): {"n": 3}, ("g", "b"): {"n": 4}}


def test_rows_belong_to_their_tenant() -> None:
    assert row_item("acme", ROW)["pk"] == {"S": "T#acme#ROW#guests"}


def test_a_step_writes_a_bounded_number_of_rows() -> None:
    context = StepContext(saga="s", tenant="t", user="u", node="n")
    for number in range(MAX_PER_STEP):
        context.put_row("k", str(number), {})
    with pytest.raises(ValueError, match="at most 25"):
        context.put_row("k", "one more", {})
    assert StepContext(saga="s", tenant="t", user="u", node="n").rows == [], "contexts share nothing"


def test_a_transaction_that_met_another_is_tried_again() -> None:
    error = Aws("http://127.0.0.1:1").dynamodb.exceptions.TransactionCanceledException(
        {
            "Error": {"Code": "TransactionCanceledException"},
            "CancellationReasons": [{"Code": "TransactionConflict"}],
        },
        "TransactWriteItems",
    )
    with pytest.raises(Throttled), translated():
        raise error
