"""For the tests of what a saga used: a log with the sizes of its items, added up with nothing in it that does not matter."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec

from baton.core.log import codec
from baton.core.read.costs import BillingSettings, Usage
from baton.core.read.usage import Ledger
from tests.core.build import Saga, done

AROUND = 60  # bytes of an entry's item besides its data
START, TAKE, YIELD, FINISH, TO_WAIT = 4, 1, 3, 4, 5
EARLY = 3  # a take before the saga is due
# Times that do not matter here are none, so that what is left is what the log says.
BARE = BillingSettings(worker_mb=1_024, api_mb=0, relay_mb=0, handover=0, init=0)


def used(saga: Saga, takes: int = 0, *, held: bool = False, deployment: BillingSettings = BARE) -> Usage:
    ledger = Ledger(saga.program, deployment)
    for entry in saga.entries:
        data = codec.encode_entry(entry)
        ledger.add(entry, data, len(data) + AROUND)
    return ledger.total(takes, is_held=held)


def writes(saga: Saga, takes: int = 0, *, held: bool = False, **deployment: Any) -> int:
    return used(saga, takes, held=held, deployment=msgspec.structs.replace(BARE, **deployment)).write_units


def noise(size: int) -> str:
    """Text that zlib makes little of, the same in every run."""
    blocks = (hashlib.sha256(bytes([n])).digest() for n in range(size // 32))
    return base64.b64encode(b"".join(blocks)).decode()[:size]


def next_turn(saga: Saga) -> None:
    saga.epoch += 1


def run(saga: Saga, *nodes: str, value: Any = None, each_ms: int = 0) -> None:
    for node in nodes:
        saga.go(done(node, value), after_ms=each_ms)
