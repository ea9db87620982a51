"""Contract of `Blobs`."""

from __future__ import annotations

import hashlib

import pytest

from baton.errors import CorruptLog
from baton.ports.log import period_of, reference_of
from tests.contract.stores import Stores


@pytest.mark.parametrize("data", [b"", b"soup", bytes(range(256)) * 5_000])
def test_a_blob_comes_back_whole_under_the_hash_of_its_content(stores: Stores, data: bytes) -> None:
    ref = stores.blobs.put("acme", data)
    assert ref == f"cas://sha256/{hashlib.sha256(data).hexdigest()}"
    assert stores.blobs.get("acme", ref) == data


def test_storing_the_same_bytes_again_gives_the_same_reference(stores: Stores) -> None:
    ref = stores.blobs.put("acme", b"soup")
    assert stores.blobs.put("acme", b"soup") == ref
    assert stores.blobs.get("acme", ref) == b"soup"


def test_a_tenant_does_not_see_another_tenants_blob(stores: Stores) -> None:
    ref = stores.blobs.put("acme", b"soup")
    with pytest.raises(CorruptLog, match="not there"):
        stores.blobs.get("globex", ref)


def test_a_blob_that_was_never_stored_is_reported(stores: Stores) -> None:
    with pytest.raises(CorruptLog, match="not there"):
        stores.blobs.get("acme", f"cas://sha256/{'0' * 64}")


@pytest.mark.parametrize("ref", ["", "soup", "cas://sha256/../../T/globex", f"cas://md5/{'0' * 64}"])
def test_what_is_no_reference_is_reported(stores: Stores, ref: str) -> None:
    with pytest.raises(CorruptLog):
        stores.blobs.get("acme", ref)


def test_a_blob_that_was_tampered_with_is_noticed(stores: Stores) -> None:
    ref = stores.blobs.put("acme", b"two for eight")
    stores.overwrite_blob("acme", ref, b"ten for eight")
    with pytest.raises(CorruptLog, match="its name"):
        stores.blobs.get("acme", ref)


# -- periods

DAY = 86_400_000
NOW = 20_000 * DAY


def test_what_is_needed_for_ever_has_no_period() -> None:
    assert period_of(NOW, 0) == ""


@pytest.mark.parametrize(
    ("days", "kept"), [(1, 8), (8, 8), (9, 16), (16, 16), (17, 32), (456, 512), (7_300, 8_192)]
)
def test_a_blob_is_kept_for_at_least_as_long_as_it_is_needed(days: int, kept: int) -> None:
    assert period_of(NOW, NOW + days * DAY) == f"{kept}d{20_000 // kept}"


def test_an_object_is_never_put_again_at_the_end_of_its_days() -> None:
    """Not even with the last bytes of its period: they were put less than its days ago."""
    first = 512 * DAY * 40
    assert (
        period_of(first, first + 500 * DAY) == period_of(first + 512 * DAY - 1, first + 900 * DAY) == "512d40"
    )
    assert period_of(first + 512 * DAY, first + 900 * DAY) == "512d41"


def test_a_blob_with_a_period_comes_back_by_its_reference_and_by_no_other(stores: Stores) -> None:
    ref = stores.blobs.put("acme", b"soup", "512d40")
    assert ref == f"{reference_of(b'soup')}@512d40"
    assert stores.blobs.get("acme", ref) == b"soup"
    for other in (reference_of(b"soup"), reference_of(b"soup", "512d41"), reference_of(b"soup", "8d40")):
        with pytest.raises(CorruptLog, match="not there"):
            stores.blobs.get("acme", other)
    stores.overwrite_blob("acme", ref, b"fish")
    with pytest.raises(CorruptLog, match="its name"):
        stores.blobs.get("acme", ref)
