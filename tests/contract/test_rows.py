"""Contract of `Log`: a tool's own rows go with its step's entry, both or neither."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from baton.adapters.aws import Aws, translated
from baton.adapters.dynamo.items import ATTRIBUTES, row_item
from baton.adapters.dynamo.log import DynamoLog
from baton.core.effects.rows import (
    MAX_BYTES,
    MAX_KEY_BYTES,
    MAX_LEVELS,
    MAX_PER_STEP,
    RESERVED,
    Row,
    check_row,
    row_bytes,
)
from baton.errors import RowsRefused, Throttled
from baton.ports import Record, StepContext, Wake
from tests.contract.stores import SAGA, Stores, as_written
from tests.kit.table import table_properties

ENTRY = Record(0, 1, b'{"format":1}')
ROW = Row("guests", "ada", {"seat": 4, "vip": True, "tags": ["a", None], "near": {"x": 1.5}})


def rows_of(stores: Stores) -> dict[tuple[str, str], Any]:
    return stores.rows(SAGA.tenant)


def test_an_entry_and_its_rows_are_there_together(stores: Stores) -> None:
    assert stores.log.append_with_rows(SAGA, ENTRY, [ROW], Wake(v=1))
    assert [as_written(record) for record in stores.log.read_tail(SAGA, 0, 0)] == [ENTRY]
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


def test_what_may_be_a_row_at_most_is_taken(stores: Stores) -> None:
    deep: Any = "ü"
    for _ in range(MAX_LEVELS - 1):
        deep = [deep]
    row = Row("k" * MAX_KEY_BYTES, "\U0001f372" * (MAX_KEY_BYTES // 4), {"deep": deep, "big": 10**38 - 1})
    assert stores.log.append_with_rows(SAGA, ENTRY, [check_row(row)])
    assert rows_of(stores) == {(row.key, row.sort): row.attributes}


def test_the_largest_step_fits_into_an_entry_of_its_own(stores: Stores) -> None:
    largest = Row("k" * MAX_KEY_BYTES, "s" * MAX_KEY_BYTES, {"a": "x" * (MAX_BYTES - 4)})
    assert row_bytes(check_row(largest)) > MAX_BYTES
    assert stores.log.limits.rows.takes((largest,) * MAX_PER_STEP)


def test_the_store_in_memory_takes_what_the_table_takes(memory: Stores, moto: Stores) -> None:
    assert memory.store.limits == memory.log.limits == moto.store.limits


def test_no_row_can_be_taken_for_an_item_of_the_engines() -> None:
    """Neither an index nor the stream's filter finds any other attribute than these."""
    keys = {definition["AttributeName"] for definition in table_properties()["AttributeDefinitions"]}
    assert keys | {"wake"} == RESERVED
    assert ATTRIBUTES.keys() >= RESERVED


INVALID = {"code": "ValidationException", "message": "One or more parameter values are not valid."}
CANCELLED = {
    "code": "TransactionCanceledException",
    "message": "Transaction cancelled, please refer cancellation reasons for specific reasons",
    "modeled_fields": {
        "CancellationReasons": [
            {"Code": "None"},
            {"Code": "ValidationError", "Message": "Item size has exceeded the maximum allowed size"},
        ]
    },
}


def refusing(aws: Aws, code: str, message: str, **more: Any) -> None:
    """A transaction that the table refuses."""
    with Stubber(aws.dynamodb) as table:
        table.add_client_error("transact_write_items", code, message, http_status_code=400, **more)
        DynamoLog(aws.dynamodb, "sagas", 4).append_with_rows(SAGA, ENTRY, [ROW])


@pytest.mark.parametrize(("answer", "says"), [(INVALID, "not valid"), (CANCELLED, "^Item size has exceeded")])
def test_rows_that_the_table_will_never_take_are_told_from_a_fault(
    shared_aws: Aws, answer: dict[str, Any], says: str
) -> None:
    with pytest.raises(RowsRefused, match=says):
        refusing(shared_aws, **answer)


def test_a_right_that_is_missing_is_no_fault_of_the_rows(shared_aws: Aws) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        refusing(shared_aws, "AccessDeniedException", "not yours")
