"""Tokens: each proves that this deployment has made it, for this callback or this question of this saga.

A token is what it is about, and a proof of 256 bits by a key that never leaves the deployment. So nothing is written when
one is made, none is stored, and one that was guessed or changed is refused before anything is read. Loaded where one is
made or shown.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import ClassVar, Final, TypeVar

import msgspec

from baton.errors import CorruptLog
from baton.runtime.invocation.context import InvocationContext

_KEY: Final = ("/deployment", "key", "callbacks")
"""The entity that holds the key. No tenant's name has a slash, so no tool of a tenant can read it."""
_FIRST: Final = "made"

Secrets = dict[str, bytes]
"""The keys that a process has read, by their names."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What a token is about. As an object of JSON, so that a token begins as a JWT does and is masked like one.

    `purpose` goes into the proof: a token of one kind is none of another.
    """

    purpose: ClassVar[bytes]
    tenant: str = msgspec.field(name="t")
    saga: str = msgspec.field(name="s")


class Holder(Claims, frozen=True, kw_only=True):
    """Of work elsewhere, that holds a callback."""

    purpose = b"callback\n"
    callback: str = msgspec.field(name="c")


C = TypeVar("C", bound=Claims)


async def token_for(context: InvocationContext, secrets: Secrets, about: Claims) -> str:
    """The token: for the same claims the same. Raises engine faults."""
    key = await _key(context, secrets, may_make=True)
    assert key is not None, "it is made where there is none"
    said = _text(msgspec.json.encode(about))
    return f"{said}.{_proof(key, about.purpose, said)}"


async def claims_of(context: InvocationContext, secrets: Secrets, kind: type[C], token: str) -> C | None:
    """What a token is about; None for one that this deployment has not made, or for something else. Raises engine faults."""
    key = await _key(context, secrets, may_make=False)
    said, _, proof = token.encode("ascii", "replace").decode().partition(".")
    if key is None or not hmac.compare_digest(_proof(key, kind.purpose, said), proof):
        return None
    return msgspec.json.decode(urlsafe_b64decode(said + "=" * (-len(said) % 4)), type=kind)


async def _key(context: InvocationContext, secrets: Secrets, *, may_make: bool) -> bytes | None:
    """Made by the first process that makes a token, and the same for all from then on. None: no token was made yet."""
    if _FIRST not in secrets:
        entities, call = context.store.entities, context.call
        there = await call(entities.get, *_KEY)
        if there is None and not may_make:
            return None
        if there is None:
            fresh = context.entropy.token(256)
            await call(entities.put, *_KEY, fresh, key=_FIRST, expected=0)
            there = await call(entities.get, *_KEY)
        if there is None:
            raise CorruptLog("the key of callbacks is gone as soon as it is made")
        secrets[_FIRST] = bytes.fromhex(there.data)
    return secrets[_FIRST]


def _proof(key: bytes, purpose: bytes, said: str) -> str:
    return _text(hmac.new(key, purpose + said.encode(), hashlib.sha256).digest())


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
