"""Contract of `Checkpoints`, and LangGraph's public conformance suite for the saver on it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate

from baton.adapters.clock import SystemClock
from baton.compat.langgraph import BatonSaver
from baton.compat.langgraph.saver import INLINE_BYTES, config_of
from baton.ports import CheckpointRow, ThreadStore
from baton.runtime.invocation.context import inline
from tests.contract.conftest import MOTO
from tests.contract.stores import Stores

NOW = 1_790_000_000_000


def keys(stores: Stores, first: str = "", last: str = "z", **of: Any) -> list[str]:
    place = {"tenant": "acme", "thread": "t", **of}
    return [row.key for row in stores.store.checkpoints.rows(first=first or "A", last=last, **place)]


def test_rows_come_back_the_greatest_key_first_and_only_those_of_a_thread(stores: Stores) -> None:
    rows = stores.store.checkpoints
    for key in ("C#1", "C#2", "C#3", "W#1"):
        assert rows.put("acme", "t", CheckpointRow(key=key, data=key.encode(), expires=NOW))
    rows.put("acme", "u", CheckpointRow(key="C#9", data=b"x"))
    rows.put("globex", "t", CheckpointRow(key="C#9", ref="cas://x"))
    assert keys(stores) == ["W#1", "C#3", "C#2", "C#1"]
    assert keys(stores, "C#1", "C#2") == ["C#2", "C#1"]
    assert keys(stores, "C#", "C#z", limit=1) == ["C#3"]
    assert keys(stores, tenant="globex") == ["C#9"]
    (row,) = rows.rows("acme", "t", "C#2", "C#2")
    assert row == CheckpointRow(key="C#2", data=b"C#2", expires=NOW)


def test_a_new_row_replaces_none_and_a_deleted_one_is_absent(stores: Stores) -> None:
    rows = stores.store.checkpoints
    assert rows.put("acme", "t", CheckpointRow(key="a", data=b"1"), is_new=True)
    assert not rows.put("acme", "t", CheckpointRow(key="a", data=b"2"), is_new=True)
    assert [row.data for row in rows.rows("acme", "t", "a", "a")] == [b"1"]
    assert rows.put("acme", "t", CheckpointRow(key="a", data=b"3"))
    rows.put("acme", "t", CheckpointRow(key="b", data=b"4"))
    rows.delete("acme", "t", ["a", "none"], NOW)
    assert [row.key for row in rows.rows("acme", "t", "a", "z", 1)] == ["b"]
    assert keys(stores, "a", "z") == ["b"]
    assert rows.put("acme", "t", CheckpointRow(key="a", data=b"5"), is_new=True)


def saver_of(stores: Stores, tenant: str = "acme", **options: Any) -> BatonSaver:
    store = ThreadStore(tenant, stores.store.checkpoints, stores.blobs, SystemClock(), inline)
    return BatonSaver(store, **options)


def test_a_large_checkpoint_is_in_the_bucket_and_another_tenant_does_not_see_it(stores: Stores) -> None:
    saver, other = saver_of(stores), saver_of(stores, "globex")
    large = {**empty_checkpoint(), "channel_values": {"text": "x" * INLINE_BYTES}}
    saved = saver.put(config_of("t", "", ""), large, {"step": 1}, {})
    (row,) = stores.store.checkpoints.rows("acme", "t", "C", "D")
    assert (row.data, row.ref[:4]) == (b"", "cas:")
    found = saver.get_tuple(saved)
    assert found is not None
    assert found.checkpoint == large
    assert other.get_tuple(saved) is None


def test_a_type_that_is_not_allowed_comes_back_as_plain_data(stores: Stores) -> None:
    saver = saver_of(stores)
    checkpoint = {**empty_checkpoint(), "channel_values": {"it": CheckpointRowLike("rm -rf")}}
    saved = saver.put(config_of("t", "", ""), checkpoint, {}, {})
    found = saver.get_tuple(saved)
    assert found is not None
    assert not isinstance(found.checkpoint["channel_values"]["it"], CheckpointRowLike)


class CheckpointRowLike:
    """A class that msgpack of LangGraph writes, as it has `model_dump`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def model_dump(self) -> dict[str, str]:
        return {"text": self.text}


SLOW = [pytest.mark.ministack, pytest.mark.soak]


@pytest.mark.parametrize("stores", ["memory", MOTO, pytest.param("embedded", marks=SLOW)], indirect=True)
def test_langgraphs_conformance_suite_passes(stores: Stores) -> None:
    @checkpointer_test(name="BatonSaver")
    async def saver() -> Any:
        yield saver_of(stores)

    report = asyncio.run(validate(saver))
    assert not [one for result in report.results.values() for one in result.failures]
    assert sum(result.tests_passed for result in report.results.values()) == 74
    assert [name for name, result in report.results.items() if not result.detected] == ["delete_for_runs"]
