"""Contract of `Blobs`."""

from __future__ import annotations

import hashlib

import pytest

from baton.errors import CorruptLog
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
