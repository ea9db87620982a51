"""What a provider of models announces: requests of the form of Standard Webhooks, signed with a secret that both know. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

import msgspec

TOLERANCE_MS: Final = 300_000
_SIGNS, _VERSION = "whsec_", "v1"
_OVER: Final = frozenset(
    {"response.completed", "response.failed", "response.cancelled", "response.incomplete"}
)


class _Data(msgspec.Struct):
    id: str


class _Event(msgspec.Struct):
    type: str
    data: _Data


def is_signed(headers: Mapping[str, str], body: bytes, secret: str, now: int) -> bool:
    """Whether the signature is by this secret and not older, nor newer, than five minutes. Names of headers are in small letters."""
    named, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (at.isascii() and at.isdecimal() and len(at) <= 12 and abs(now - int(at) * 1_000) <= TOLERANCE_MS):
        return False
    try:
        key = base64.b64decode(secret.removeprefix(_SIGNS), validate=True)
    except (binascii.Error, ValueError):
        return False
    if not key:
        return False
    content = f"{named}.{at}.".encode() + body
    wanted = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
    given = [one.partition(",") for one in headers.get("webhook-signature", "").split()]
    # All are compared, so that the time says nothing of which one it was.
    proofs = [
        hmac.compare_digest(wanted, proof.encode()) for version, _, proof in given if version == _VERSION
    ]
    return any(proofs)


def over_in(body: bytes) -> str:
    """The response that an event says is over; empty for any other event."""
    try:
        event = msgspec.json.decode(body, type=_Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return event.data.id if event.type in _OVER else ""
