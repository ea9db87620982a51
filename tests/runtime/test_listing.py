"""Lists of sagas while sagas move, over many shards, and with cursors that no list has made."""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from typing import Any

import pytest

from baton.adapters.memory.log import MemoryLog
from baton.core.limits import Limits
from baton.errors import UserError
from baton.ports import Head, Listed, Release, SagaRef
from baton.runtime.invocation.context import StoreRetrier, inline
from baton.runtime.requests.lists import Listing
from baton.web.parameters import MAX_CURSOR
from tests.kit.sentences import Says

NOON = 1_795_000_000_000
ALL = Listing(tenant="acme")


class Idle:
    """A clock and a source of randomness that are never asked: the log in memory never fails."""

    def now(self) -> int:
        return NOON

    def uniform(self) -> float:
        return 0.0

    def token(self, bits: int) -> str:
        return "0"


CALL = StoreRetrier(inline, Idle(), Idle(), Limits(), NOON)


def begin(log: MemoryLog, saga: str, at: int, tenant: str = "acme") -> SagaRef:
    ref = SagaRef(tenant, saga)
    head = Head(ref=ref, workflow="w", graph="g", user="u", created=at, start_hash="h")
    assert log.create_head(head) is None
    return ref


def finish(log: MemoryLog, ref: SagaRef, at: int) -> None:
    assert log.take(ref, "me", at + 1_000, 0, at + 4_000) is not None
    end = Release(
        folded=1, status="completed", group="done", group_at=at, branch=0, snapshot=0, due_at=None, armed=0
    )
    assert log.release(ref, "me", 1, end)


def page(log: MemoryLog, limit: int, cursor: str = "", of: Listing = ALL) -> tuple[list[Listed], str | None]:
    found, after = asyncio.run(of.page(log, CALL, limit, cursor))
    return list(found), after


def rest(log: MemoryLog, limit: int, cursor: str | None) -> list[str]:
    """The ids on all pages from a cursor on."""
    found: list[str] = []
    while cursor is not None:
        rows, cursor = page(log, limit, cursor)
        found += [row.id for row in rows]
    return found


def a_log(count: int, shards: int = 4) -> tuple[MemoryLog, list[SagaRef]]:
    """Sagas that began one after the other, the newest last."""
    log = MemoryLog(shards)
    return log, [begin(log, f"s{number:02d}", NOON + number) for number in range(count)]


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_a_saga_that_was_shown_is_not_shown_again_when_it_moves_to_another_group(limit: int) -> None:
    log, refs = a_log(12)
    for number in range(12):  # so that there is more to read of the group that they move to
        old = begin(log, f"old{number:02d}", NOON - 1_000)
        finish(log, old, NOON - 500 + number)
        refs.insert(number, old)
    first, cursor = page(log, limit)
    for row in first:
        finish(log, SagaRef("acme", row.id), NOON + 60_000)
    found = [row.id for row in first] + rest(log, limit, cursor)
    assert found == [ref.id for ref in reversed(refs)]


class Busy(MemoryLog):
    """Its sagas end as soon as a list has read them as open."""

    def listed(self, tenant: str, group: str, shard: int, **options: Any) -> Any:
        found = super().listed(tenant, group, shard, **options)
        for row in found[0] if group == "open" else ():
            finish(self, SagaRef(tenant, row.id), NOON + 60_000)
        return found


def test_a_saga_that_moves_while_a_page_is_read_is_on_it_once_as_it_is_then() -> None:
    log = Busy(4)
    refs = [begin(log, f"s{number:02d}", NOON + number) for number in range(12)]
    rows, cursor = page(log, 100)
    assert sorted((row.id, row.status) for row in rows) == [(ref.id, "completed") for ref in refs]
    assert cursor is None


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_sagas_that_begin_while_pages_are_read_belong_before_the_first(limit: int) -> None:
    log, refs = a_log(12)
    first, cursor = page(log, limit)
    for number in range(20):
        begin(log, f"late{number}", NOON + 60_000 + number)
    found = [row.id for row in first] + rest(log, limit, cursor)
    assert found == [ref.id for ref in reversed(refs)]


def test_the_cursor_of_a_list_over_many_shards_of_sagas_with_long_names_fits_into_a_request() -> None:
    log = MemoryLog(32)
    for number in range(300):
        parent = base64.b16encode(zlib.crc32(bytes([number % 256])).to_bytes(4, "big") * 3).decode()
        child = "".join(f".{number % 3}.collect_offers_of_suppliers-{number}" for _ in range(3))
        begin(log, f"k{parent}{child}", NOON + number)
    first, cursor = page(log, 100)
    assert cursor is not None
    assert len(cursor) <= MAX_CURSOR // 2
    assert len({row.id for row in first} | set(rest(log, 100, cursor))) == 300


def test_a_cursor_of_another_tenant_is_refused() -> None:
    log, _ = a_log(9)
    _, cursor = page(log, 1)
    assert cursor is not None
    with pytest.raises(UserError, match="other filters"):
        page(log, 1, cursor, Listing(tenant="rival"))


def reads_of(cursor: str) -> list[Any]:
    packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_")
    decoded: list[Any] = json.loads(zlib.decompress(packed))
    return decoded


def made(decoded: Any) -> str:
    packed = zlib.compress(json.dumps(decoded).encode())
    return base64.b64encode(packed, b"-_").decode().rstrip("=")


@pytest.mark.parametrize(
    "place",
    [
        [10**16, "x"],  # DynamoDB answers a number of more than 38 digits with a fault
        [-1, "x"],
        [NOON - 1, "x"],  # before `since`: outside of what is asked for
        [NOON, ""],
        [NOON, "x" * 401],
        [NOON, "x\n"],
        [NOON, "x#SAGA#y"],
        [NOON, "\x00"],
        [NOON, "\ud800"],
        [str(NOON), "x"],
        [NOON],
        "x",
    ],
)
def test_a_place_that_no_list_can_have_come_to_is_refused(place: Any, says: Says) -> None:
    log, _ = a_log(9)
    recent = Listing(tenant="acme", since=NOON)
    _, cursor = page(log, 1, of=recent)
    assert cursor is not None
    decoded = reads_of(cursor)
    assert page(log, 1, made(decoded), recent)[0], "what is only packed anew is still good"
    decoded[-1] = [[place, False]] * len(decoded[-1])
    with says.raised(UserError):
        page(log, 1, made(decoded), recent)


@pytest.mark.parametrize(
    "packed",
    [b"", b"x", zlib.compress(b"[]")[:-5], zlib.compress(b"0" * 10_000_000), zlib.compress(b"[]") + b"x"],
)
def test_what_no_cursor_can_be_is_refused_and_not_unpacked_to_any_size(packed: bytes, says: Says) -> None:
    log, _ = a_log(2)
    with says.raised(UserError):
        page(log, 1, base64.b64encode(packed, b"-_").decode().rstrip("=") or "A")
