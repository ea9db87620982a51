"""`std.upsert` and `std.get`: versioned entities; `std.put_object` and `std.get_object`: content under its own hash.

Where they are kept is the adapters' business. All of it belongs to the tenant of the step.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

import msgspec
from pydantic import BaseModel, Field

from baton.ports import StepContext, StepFailure
from baton.ports.outside import Written
from baton.tools.define import Registry, tool
from baton.tools.standard.kit import Services

MOST_BYTES = 100_000  # of an entity, as JSON
# Pointers to the newest object of each name are entities of a type that no document can write.
LATEST = "~latest"

Type = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$", description="What kind of thing it is.")
]
Id = Annotated[str, Field(min_length=1, max_length=200)]
Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$",
        max_length=500,
        description="Such as `reports/march.pdf`.",
    ),
]
ContentType = Annotated[str, Field(pattern=r"^[\w.+-]+/[\w.+-]+(; ?charset=[\w-]+)?$", max_length=200)]


class Upserted(BaseModel):
    """`version` is the one that this call made, or that an earlier call with its key had made."""

    type: str
    id: str
    version: int
    changed: bool


class Found(BaseModel):
    """Version 0 and no data: there is none."""

    type: str
    id: str
    version: int
    data: Any


class Put(BaseModel):
    """Where the content is. `written`: it was not there before. `latest`: version of the pointer by name."""

    ref: str
    name: str
    sha256: str
    size: int
    written: bool
    latest: int


class Got(BaseModel):
    """Text, or the bytes in base64 where they are no text."""

    name: str
    sha256: str
    size: int
    text: str | None = None
    base64: str | None = None


def declare(registry: Registry, services: Services) -> None:
    _declare_entities(registry, services)
    _declare_objects(registry, services)


def _declare_entities(registry: Registry, services: Services) -> None:
    @tool("std.upsert", registry=registry, domain="database")
    async def upsert(
        type: Type, id: Id, data: Any, context: StepContext,
        expected_version: Annotated[int, Field(ge=0)] | None = None,
    ) -> Upserted:  # fmt: skip
        """Write an entity, new or in place of what is there, and count its version up. A repeated call changes nothing.

        expected_version: what it must be at, 0 for not there; anything else is the failure `conflict`.
        """
        if len(msgspec.json.encode(data)) > MOST_BYTES:
            raise StepFailure("input_too_large", f"an entity has at most {MOST_BYTES} bytes of JSON")
        done = await services.stored(
            services.entities.put,
            context.tenant,
            type,
            id,
            data,
            key=_key(context),
            expected=expected_version,
        )
        if done.conflict:
            there = f"it is at version {done.version}" if done.version else "it is not there"
            raise StepFailure("conflict", f"{type} {id}: {there}, and {expected_version} was expected")
        return Upserted(type=type, id=id, version=done.version, changed=done.is_new)

    @tool("std.get", registry=registry, effect="pure", domain="database", repeatable=True)
    async def get(type: Type, id: Id, context: StepContext) -> Found:
        """Read an entity with its version."""
        found = await services.stored(services.entities.get, context.tenant, type, id)
        if found is None:
            return Found(type=type, id=id, version=0, data=None)
        return Found(type=type, id=id, version=found.version, data=found.data)


def _declare_objects(registry: Registry, services: Services) -> None:
    @tool("std.put_object", registry=registry, domain="file_operation")
    async def put_object(
        name: Name, context: StepContext, text: str | None = None, base64: str | None = None, json: Any = None,
        content_type: ContentType | None = None,
    ) -> Put:  # fmt: skip
        """Store content under its name and its hash, once however often it is put; and point the name to it.

        The content is one of `text`, `base64` and `json`.
        """
        data, kind = _content(text, base64, json)
        made = await services.stored(services.objects.put, context.tenant, name, data, content_type or kind)
        pointer = {"sha256": made.sha256, "size": made.size, "ref": made.ref}
        # By the step's key: an old attempt that comes late does not point the name back to what was there before.
        done: Written = await services.stored(
            services.entities.put, context.tenant, LATEST, name, pointer, key=_key(context)
        )
        return Put(
            ref=made.ref, name=name, sha256=made.sha256, size=made.size, written=made.is_new, latest=done.version
        )  # fmt: skip

    @tool("std.get_object", registry=registry, effect="pure", domain="file_operation", repeatable=True)
    async def get_object(
        name: Name,
        context: StepContext,
        sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None,
    ) -> Got:
        """Read the content with this hash, or the newest of the name."""
        if sha256 is None:
            latest = await services.stored(services.entities.get, context.tenant, LATEST, name)
            if latest is None:
                raise StepFailure("file_not_found", f"there is no object `{name}`")
            sha256 = str(latest.data["sha256"])
        data = await services.stored(services.objects.get, context.tenant, name, sha256)
        if data is None:
            raise StepFailure("file_not_found", f"there is no object `{name}` with the hash {sha256[:8]}…")
        try:
            return Got(name=name, sha256=sha256, size=len(data), text=data.decode())
        except UnicodeDecodeError:
            return Got(name=name, sha256=sha256, size=len(data), base64=_base64(data))


def _key(context: StepContext) -> str:
    if not context.idempotency_key:
        raise StepFailure("input_invalid", "what is written is written under the idempotency key of its step")
    return context.idempotency_key


def _content(text: str | None, encoded: str | None, json: Any) -> tuple[bytes, str]:
    """The bytes, and their type if the caller gives none. Raises `StepFailure`."""
    if sum(one is not None for one in (text, encoded, json)) != 1:
        raise StepFailure("input_invalid", "the content is one of `text`, `base64` and `json`")
    if json is not None:
        return msgspec.json.encode(json, order="sorted"), "application/json"
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True), "application/octet-stream"
        except (binascii.Error, ValueError) as error:
            raise StepFailure("input_invalid", f"base64: {error}") from error
    assert text is not None
    return text.encode(errors="replace"), "text/plain; charset=utf-8"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
