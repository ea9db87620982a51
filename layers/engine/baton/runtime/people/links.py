"""Links in messages, by which a question is answered without signing
in: the token in each stands for those who were told.

A token is for one question as its audience was told of it, and for a quarter of an hour.
Telling again, handing on and an answer end it, because it names the question as it
was; so nothing is stored of it. What one is good for is in requests/answers.py.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import ClassVar, Final, TypeVar

import msgspec

from baton.core.log.events import Ask
from baton.core.log.questions import audience
from baton.core.log.state import State
from baton.errors import CorruptLog
from baton.ports.people import LINK_LASTS_MS
from baton.runtime.invocation.context import InvocationContext

_KEY: Final = ("/deployment", "key", "callbacks")
"""The entity that holds the key. No tenant's name has a slash, so no tool of a tenant can read it."""
_FIRST: Final = "made"

Secrets = dict[str, bytes]
"""The keys that a process has read, by their names."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a token.

    It is a JSON object, so that a token begins as a JWT does and is masked like one. `purpose` goes into the
    proof: a token of one kind is none of another.
    """

    purpose: ClassVar[bytes]
    tenant: str = msgspec.field(name="t")
    saga: str = msgspec.field(name="s")


class Holder(Claims, frozen=True, kw_only=True):
    """Content of a token of work elsewhere that holds a callback."""

    purpose = b"callback\n"
    callback: str = msgspec.field(name="c")


C = TypeVar("C", bound=Claims)


async def token_for(context: InvocationContext, secrets: Secrets, about: Claims) -> str:
    """Return the token: for the same claims the same. Raises engine faults."""
    await ensure_key(context, secrets)
    return known_token(secrets, about)


async def ensure_key(context: InvocationContext, secrets: Secrets) -> None:
    """Read the key of tokens, or make it. Raises engine faults."""
    await _key(context, secrets, may_make=True)


def known_token(secrets: Secrets, about: Claims) -> str:
    """Return the token, once the key was read."""
    said = _text(msgspec.json.encode(about))
    return f"{said}.{_proof(secrets[_FIRST], about.purpose, said)}"


def has_key(secrets: Secrets) -> bool:
    """Return true if the key was read."""
    return _FIRST in secrets


async def claims_of(context: InvocationContext, secrets: Secrets, kind: type[C], token: str) -> C | None:
    """Return the content of a token; None for a token of another kind, or one that this deployment has not
    made.

    Raises engine faults.
    """
    key = await _key(context, secrets, may_make=False)
    said, _, proof = token.encode("ascii", "replace").decode().partition(".")
    if key is None or not hmac.compare_digest(_proof(key, kind.purpose, said), proof):
        return None
    return msgspec.json.decode(urlsafe_b64decode(said + "=" * (-len(said) % 4)), type=kind)


async def _key(context: InvocationContext, secrets: Secrets, *, may_make: bool) -> bytes | None:
    """Return the key of tokens, which the first process makes and all others read.
    None: no token was made yet.
    """
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


LASTS_MS = LINK_LASTS_MS


class Confirmation(Claims, frozen=True, kw_only=True):
    """Content of a token for the people notified of a question.
    `until`: its end; `to`: the people; `seal`: the text they got.
    """

    purpose = b"confirmation\n"
    ask: str = msgspec.field(name="q")
    until: int = msgspec.field(name="u")
    to: str = msgspec.field(name="p")
    seal: str = msgspec.field(name="d")


class Links:
    """Links to a page, `url`, that shows the question and sends its reader's answer."""

    def __init__(self, context: InvocationContext, secrets: Secrets, url: str) -> None:
        self._context, self._secrets, self._url = context, secrets, url

    async def to(self, state: State, ask: Ask, now: int) -> str:
        """Return the address, with the token behind a `#`: no server that shows the page gets it.
        Raises engine faults.
        """
        about = Confirmation(
            tenant=state.origin.tenant,
            saga=state.origin.saga,
            ask=ask.id,
            until=min(now + LASTS_MS, ask.ends_at or now + LASTS_MS),
            to=":".join(audience(state, ask.to)),
            seal=seal_of(state, ask),
        )
        return f"{self._url}#{await token_for(self._context, self._secrets, about)}"


def seal_of(state: State, ask: Ask) -> str:
    """Return a seal that tells apart all that a reader was told of: the question, what an approval is for,
    and which time it was.

    And in which branch: a fork to before the answer asks again, and the link of that answer has been used.
    """
    said = [
        state.lineage.branch,
        ask.id,
        ask.told_at,
        ask.moved_at,
        ask.digest,
        ask.title,
        ask.message,
        ask.details,
        ask.actions,
    ]
    encoded = msgspec.json.encode([*said, ask.schema], order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:32]
