"""Protocols that the standard tools need: HTTP, credentials, mail, objects, versioned entities and facts of
users.

This file holds no behaviour. The guarantees of a tool on top of these are in tools/standard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """HTTP request.

    `within_ms` bounds the whole exchange, to the last byte of the answer; `most` is the answer's largest size
    in bytes. `named`: the address is the deployment's own and no argument of a step, so its host need not be
    on the allow-list.
    """

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    within_ms: int
    most: int
    named: bool = False


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """HTTP answer. Names of headers are in lower case; the body is complete."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient(Protocol):
    """The only client for HTTP. It follows no redirects, keeps no cookies and uses no proxy."""

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """Send the request and return the answer, of any status.

        Raises `StepFailure`: timeout, connection_failed, result_too_large, invalid_response;
        permission_denied for an address that no tool may call from here. Its message names the host and
        nothing else of the address.
        """
        ...

    async def aclose(self) -> None:
        """End the connections of the running event loop. Another request may follow."""
        ...


class Credentials(Protocol):
    """Credentials by name, such as that of an API."""

    async def of(self, name: str, *, is_optional: bool = False, is_refused: bool = False) -> str:
        """Return the credential; an empty text if none exists and `is_optional`.

        `is_refused`: the service has just refused the last one that was returned; it is read again, unless
        that was done a moment ago. Raises `StepFailure`.
        """
        ...


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """Mail to one person."""

    sender: str
    to: str
    subject: str
    text: str
    html: str = ""
    headers: Mapping[str, str] = {}


class Mailer(Protocol):
    """Sender of mail. Synchronous."""

    def send(self, letter: Letter) -> str:
        """Send the mail and return the service's id of the message. Sending again sends again."""
        ...


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """Stored entity; `version` counts its writes from 1."""

    version: int
    data: Any


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a write.
    `is_new`: this call made it; otherwise an earlier call did.

    `conflict`: it was refused, because the entity is at `version` and not where the caller expected it.
    `before`: the value stored until then, at version 0 for none; None if it was not kept, or was lost by a
    later write.
    """

    version: int
    is_new: bool = False
    conflict: bool = False
    before: Entity | None = None


KEYS_KEPT = 64  # writes of an entity that a repetition is recognised of


class Entities(Protocol):
    """Versioned JSON by tenant, type and id. Synchronous; one atomic write each."""

    def put(
        self,
        tenant: str,
        type: str,
        id: str,
        data: Any,
        *,
        key: str,
        expected: int | None = None,
        keeps_before: bool = False,
    ) -> Written:
        """Replace the stored value and increment its version, unless the write with this key is done already.

        `expected`: the version that must be stored, 0 for none. A repeated write is recognised as long as
        fewer than half of `KEYS_KEPT` others have come after it. `keeps_before`: the value that is replaced
        stays stored until the next write, so that a repetition can still return it.
        """
        ...

    def delete(self, tenant: str, type: str, id: str, *, key: str, expected: int) -> Written:
        """Delete the stored value, unless the write with this key is done already.

        Its version and the keys of its writes stay: a write that comes late is still recognised.
        """
        ...

    def get(self, tenant: str, type: str, id: str) -> Entity | None:
        """Read an entity, strongly consistent. Return None if none is stored."""
        ...


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    """Place of an object. `is_new`: this call has written it, or an earlier one with its key."""

    ref: str
    sha256: str
    size: int
    is_new: bool


class Objects(Protocol):
    """Named, immutable bytes of a tenant: the hash of the content is part of the name. Synchronous."""

    def put(self, tenant: str, name: str, data: bytes, content_type: str, *, key: str = "") -> StoredObject:
        """Write the object only if none is stored. A written object remembers the key."""
        ...

    def get(self, tenant: str, name: str, sha256: str) -> bytes | None:
        """Return the bytes; None for an object that is not stored."""
        ...

    def delete(self, tenant: str, name: str, sha256: str) -> None:
        """Delete the object; a no-op if none is stored."""
        ...


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Fact of a user. `saga` is its source, `model` embeds its text. `expires`: 0 for never."""

    id: str
    text: str
    saga: str
    at: int
    model: str
    expires: int = 0


class NearestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts with their cosine (-1 to 1), the nearest first.

    `other_models`: number of facts that were not compared, because another model has embedded them; None if
    that is not known. `more`: the user has more facts than were compared.
    """

    found: Sequence[tuple[Fact, float]]
    other_models: int | None = 0
    more: bool = False


class Facts(Protocol):
    """Facts of users, by tenant and user, found by vectors of their texts. Synchronous."""

    def put(self, tenant: str, user: str, fact: Fact, vector: Sequence[float]) -> None:
        """Write a fact, once: a no-op if its id is in use, or was deleted."""
        ...

    def nearest(
        self, tenant: str, user: str, model: str, vector: Sequence[float], most: int, now: int
    ) -> NearestFacts:
        """Return the nearest facts that have not expired; of facts with equal texts, one. Strongly consistent
        as to facts that were deleted.
        """
        ...

    def listed(self, tenant: str, user: str, before: str, limit: int) -> tuple[Sequence[Fact], str]:
        """Return the next facts, and the id that the next page begins before; empty after the last."""
        ...

    def delete(self, tenant: str, user: str, ids: Sequence[str], now: int) -> int:
        """Delete facts with all that was derived from them. Return the number of those that were stored."""
        ...
