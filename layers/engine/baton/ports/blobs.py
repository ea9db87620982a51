"""Blobs: content-addressed bytes, outside of the store."""

from __future__ import annotations

import hashlib
from typing import Protocol

from baton.core.limits import DAY_MS

CAS = "cas://sha256/"
_SHORTEST_DAYS = 8


def period_of(now: int, until: int) -> str:
    """Where bytes go that are needed until then (0: for ever, the empty text): `<days>d<number>`.

    They are deleted `days`, a power of two, after they were last put. A period is as long as that, and `number` counts
    the periods since 1970: what is put again is put again in its first days, or at another place. So no put comes
    at the moment at which what it would renew is being deleted.
    """
    if not until:
        return ""
    days = _SHORTEST_DAYS
    while days * DAY_MS < until - now:
        days *= 2
    return f"{days}d{now // (days * DAY_MS)}"


def reference_of(data: bytes, period: str = "") -> str:
    """The reference under which `Blobs` keep these bytes, whether or not they are stored yet."""
    ref = CAS + hashlib.sha256(data).hexdigest()
    return f"{ref}@{period}" if period else ref


class Blobs(Protocol):
    """Content-addressed bytes, per tenant. A reference is `cas://sha256/<hex>`, with `@<period>` where they are not kept for ever."""

    def put(self, tenant: str, data: bytes, period: str = "") -> str:
        """Store and return the reference; storing the same bytes again in a period renews their age, and no more."""
        ...

    def get(self, tenant: str, ref: str) -> bytes:
        """Raises `CorruptLog` when it is not there or its content does not match its name."""
        ...
