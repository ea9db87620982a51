"""What a browser keeps between requests: values that are signed, and that end. Pure.

Nothing in them is secret from their owner; nothing in them can be changed by their owner.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

SESSION_MS: Final = 8 * 3_600_000
SIGNING_IN_MS: Final = 600_000
MOST_COOKIE: Final = 3_800  # bytes; browsers keep 4,096 with the name and the attributes
SESSION, SIGNING_IN = "session", "signing-in"


class Seal:
    """Signs values with a secret. Each purpose has a key of its own: a value for one is none for another."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def close(self, purpose: str, value: Mapping[str, Any], until: int) -> str:
        """The value with its end (epoch ms), as text for a cookie."""
        body = _encoded(json.dumps([until, value], separators=(",", ":")).encode())
        return f"{body}.{_encoded(self._mac(purpose, body))}"

    def open(self, purpose: str, text: str, now: int) -> dict[str, Any] | None:
        """The value; None for one that has ended, or that was not signed here for this purpose."""
        body, _, mac = text.partition(".")
        if not hmac.compare_digest(_encoded(self._mac(purpose, body)).encode(), mac.encode()):
            return None
        try:
            until, value = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except (ValueError, binascii.Error):
            return None
        return value if isinstance(value, dict) and now < until else None

    def _mac(self, purpose: str, body: str) -> bytes:
        key = hmac.digest(self._secret, f"baton console {purpose}".encode(), "sha256")
        return hmac.digest(key, body.encode(), "sha256")


@dataclass(frozen=True, slots=True)
class Session:
    """Who has signed in: the claims of the issuer that say so, and what a form must show to be one of ours."""

    claims: Mapping[str, Any]
    csrf: str

    @property
    def user(self) -> str:
        return str(self.claims.get("sub", ""))

    def close(self, seal: Seal, now: int) -> str:
        return seal.close(SESSION, {"claims": dict(self.claims), "csrf": self.csrf}, now + SESSION_MS)

    @classmethod
    def open(cls, seal: Seal, text: str, now: int) -> Session | None:
        found = seal.open(SESSION, text, now) if text else None
        return None if found is None else cls(found["claims"], found["csrf"])

    def admits(self, shown: str) -> bool:
        """Whether a form was made for this session."""
        return hmac.compare_digest(self.csrf.encode(), shown.encode())


def challenge_of(verifier: str) -> str:
    """What stands for a verifier in the request for a code (RFC 7636, S256)."""
    return _encoded(hashlib.sha256(verifier.encode()).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
