"""The stores' rules that all adapters share: packing, shards, and DynamoDB's sizes."""

from __future__ import annotations

import base64
import random
import zlib

import pytest

from baton.adapters.dynamo.items import ITEM_BYTES, item_size
from baton.errors import CorruptLog
from baton.ports.log import ItemTooLarge, pack, shard_of, unpack, write_units

SOFT = b'{"s":"' + b"x" * 3_000 + b'"}'


def test_what_fits_one_write_unit_stays_plain() -> None:
    assert pack(SOFT[:500], 100, ITEM_BYTES) == SOFT[:500]


def test_the_rest_of_the_item_counts_for_its_write_units() -> None:
    assert pack(SOFT[:1_000], 24, ITEM_BYTES) == SOFT[:1_000]
    assert pack(SOFT[:1_000], 25, ITEM_BYTES) == zlib.compress(SOFT[:1_000])


def test_data_is_compressed_when_that_saves_a_write_unit() -> None:
    assert pack(SOFT, 100, ITEM_BYTES) == zlib.compress(SOFT)


def test_data_stays_plain_when_compressing_saves_bytes_but_no_write_unit() -> None:
    data = b'{"n":"' + base64.b64encode(random.Random(1).randbytes(1_100)) + b'"}'
    squeezed = zlib.compress(data)
    assert len(squeezed) < len(data)
    assert write_units(100 + len(squeezed)) == write_units(100 + len(data)) == 2
    assert pack(data, 100, ITEM_BYTES) == data


def test_what_does_not_look_like_json_is_always_compressed() -> None:
    for data in (b"", b"[1]", zlib.compress(b"{}")):
        assert unpack(pack(data, 0, ITEM_BYTES)) == data
        assert not pack(data, 0, ITEM_BYTES).startswith(b"{")


@pytest.mark.parametrize("size", [1, 900, 1_024, 5_000])
def test_what_was_packed_unpacks_to_the_same(size: int) -> None:
    data = b"{" + b"a" * size + b"}"
    assert unpack(pack(data, 100, ITEM_BYTES)) == data


def test_an_item_may_have_the_tables_limit_and_not_a_byte_more() -> None:
    data = b"{}"
    assert pack(data, ITEM_BYTES - 2, ITEM_BYTES) == data
    with pytest.raises(ItemTooLarge) as refused:
        pack(data, ITEM_BYTES - 1, ITEM_BYTES)
    assert refused.value.size == ITEM_BYTES + 1


@pytest.mark.parametrize("stored", [b"", b"[1]", zlib.compress(SOFT)[:-4], b"x\x9cgarbage"])
def test_bytes_that_were_never_packed_are_a_corrupt_log(stored: bytes) -> None:
    with pytest.raises(CorruptLog):
        unpack(stored)


@pytest.mark.parametrize(("size", "units"), [(0, 1), (1, 1), (1_024, 1), (1_025, 2), (2_048, 2), (2_049, 3)])
def test_a_write_unit_is_a_kilobyte_begun(size: int, units: int) -> None:
    assert write_units(size) == units


def test_shards_are_the_same_in_every_process_and_for_ever() -> None:
    assert [shard_of(f"dinner-{number}", 4) for number in range(8)] == [0, 2, 0, 2, 1, 3, 1, 3]
    assert shard_of("Abendessen für zwei", 32) == 6


def test_the_size_of_an_item_is_that_of_dynamodbs_rule() -> None:
    assert item_size({}) == 0
    assert item_size({"pk": {"S": "abc"}}) == 5
    assert item_size({"pk": {"S": "ü"}}) == 4
    assert item_size({"d": {"B": b"\x00\x01\x02"}}) == 4
    assert item_size({"n": {"N": "1"}}) == 3
    assert item_size({"n": {"N": "12"}}) == 3
    assert item_size({"n": {"N": "123"}}) == 4
    assert item_size({"n": {"N": "-12"}}) == 4
    assert item_size({"due_at": {"N": "1795000000000"}, "owner": {"S": "me"}}) == 6 + 8 + 5 + 2


def test_the_size_of_a_type_that_the_table_does_not_use_is_not_guessed() -> None:
    with pytest.raises(TypeError, match="flag"):
        item_size({"flag": {"BOOL": True}})
