"""What the standard tools need of the outside: HTTP, credentials, mail,
objects and versioned entities, as Protocols.

No behaviour here. What a tool promises on top of these is in tools/standard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange.
    `within_ms` bounds all of it, to the last byte of the answer; `most` is that answer's size.

    named: the address is the deployment's own and no argument of a step, so
    its host need not be on the allow-list.
    """

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    within_ms: int
    most: int
    named: bool = False


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Names of headers are in lower case; the body is whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient(Protocol):
    """The one way out by HTTP. It follows no redirects, keeps no cookies and asks no proxy."""

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """Whatever was answered, of any status.

        Raises `StepFailure`: timeout, connection_failed, result_too_large,
        invalid_response; permission_denied for an address that no tool may call
        from here. Its message names the host and nothing else of the address.
        """
        ...

    async def aclose(self) -> None:
        """End the connections of the running event loop. Another request may follow."""
        ...


class Credentials(Protocol):
    """Credentials by name, such as that of an API."""

    async def of(self, name: str, *, is_optional: bool = False, is_refused: bool = False) -> str:
        """The credential; empty where there is none and `is_optional`.

        is_refused: the service has just not accepted the one that was given; it
        is read anew, unless that was done a moment ago. Raises `StepFailure`.
        """
        ...


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """One mail to one person."""

    sender: str
    to: str
    subject: str
    text: str
    html: str = ""
    headers: Mapping[str, str] = {}


class Mailer(Protocol):
    """Sends mail. Synchronous."""

    def send(self, letter: Letter) -> str:
        """The service's name for the message. Sending again sends again."""
        ...


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity as it stands: `version` counts its writes from 1."""

    version: int
    data: Any


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a write. `is_new`: it was done by this call; otherwise an earlier call had done it.

    `conflict`: it was refused, because the entity is at `version` and not where the caller expected it.
    `before`: what was
    stored until then, at version 0 for nothing; None where that was not
    kept, or was lost by a write that came after it.
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
        """Replace the stored value and count its version up, unless the write with this key has been done
        already.

        expected: the version that must be there, 0 for none. A repeated write is recognised as long as fewer
        than half of `KEYS_KEPT` others have come after it. keeps_before: the value that is replaced stays
        stored until the next write, so that a repetition can still give it.
        """
        ...

    def delete(self, tenant: str, type: str, id: str, *, key: str, expected: int) -> Written:
        """Delete the stored value, unless the write with this key has been done already.

        Its version and the keys of its writes stay: a write that comes late is still recognised.
        """
        ...

    def get(self, tenant: str, type: str, id: str) -> Entity | None:
        """Strongly consistent."""
        ...


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    """The place of an object. `is_new`: this call has written it, or an earlier one with its key."""

    ref: str
    sha256: str
    size: int
    is_new: bool


class Objects(Protocol):
    """Named bytes of a tenant, which never change: the hash of the content is part of the name. Synchronous."""

    def put(self, tenant: str, name: str, data: bytes, content_type: str, *, key: str = "") -> StoredObject:
        """Writes the object only if none is stored. One that is written remembers the key."""
        ...

    def get(self, tenant: str, name: str, sha256: str) -> bytes | None:
        """None for an object that is not stored."""
        ...

    def delete(self, tenant: str, name: str, sha256: str) -> None:
        """Nothing happens where none is stored."""
        ...
