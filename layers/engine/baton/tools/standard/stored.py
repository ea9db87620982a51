"""`std.upsert` and `std.get`: versioned entities; `std.put_object` and `std.get_object`: content under its
own hash.

`std.restore` and `std.restore_object` take back what they have written. Where they are kept is the adapters'
business. All of it belongs to the tenant of the step.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Final

import msgspec
from pydantic import BaseModel, Field

from baton.ports import StepContext, StepFailure
from baton.ports.outside import Written
from baton.tools.define import Registry
from baton.tools.standard.kit import Services, standard_tool

MOST_BYTES = 100_000  # of an entity, as JSON
# Pointers to the newest object of each name are entities of a type that no document can write.
LATEST = "~latest"
_NOTHING: Final = object()
_AS: Final = "~as/{}"
_NO_VERSION: Final = 2**52

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
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
NoneOrSha256 = Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
Expected = Annotated[int, Field(ge=0)]
Version = Annotated[int, Field(ge=1)]
ContentType = Annotated[str, Field(pattern=r"^[\w.+-]+/[\w.+-]+(; ?charset=[\w-]+)?$", max_length=200)]


class Before(BaseModel):
    """Value before a write. Version 0 and no data: none."""

    version: Annotated[int, Field(ge=0)] = 0
    data: Any = None


class Upserted(BaseModel):
    """`version` is the one that this call made, or that an earlier call with its key had made.

    `before` is what it has replaced; null where that was not kept, or other writes have come in between.
    """

    type: str
    id: str
    version: int
    changed: bool
    before: Before | None = None


class Restored(BaseModel):
    """`version` is the one that this call made; `there`: there is an entity now."""

    type: str
    id: str
    version: int
    there: bool


class Found(BaseModel):
    """Version 0 and no data: there is none."""

    type: str
    id: str
    version: int
    data: Any


class Put(BaseModel):
    """Place of the content.
    `written`: it was not there before this call, or an earlier one with its key.
    `latest`: version of the pointer by name.

    `before`: the hash that the name has pointed to, empty for none; null where other puts have come in
    between.
    """

    ref: str
    name: str
    sha256: str
    size: int
    written: bool
    latest: int
    before: str | None = None


class RestoredObject(BaseModel):
    """The hash that the name points to now, empty for none. `deleted`: the content of the put is gone."""

    name: str
    sha256: str
    deleted: bool


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
    @standard_tool("std.upsert", registry=registry, domain="database", undo="std.restore")
    async def upsert(
        type: Type, id: Id, data: Any, context: StepContext,
        expected_version: Expected | None = None, keep_before: bool = True,
    ) -> Upserted:  # fmt: skip
        """Write an entity, new or in place of what is there, and count its version up.
        A repeated call changes nothing.

        expected_version: what it must be at, 0 for not there; anything else is the failure
        `conflict`. keep_before: what is replaced is given, so that it can be restored.
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
            keeps_before=keep_before,
        )
        if done.conflict:
            there = f"it is at version {done.version}" if done.version else "it is not there"
            raise StepFailure("conflict", f"{type} {id}: {there}, and {expected_version} was expected")
        before = None if done.before is None else Before(version=done.before.version, data=done.before.data)
        return Upserted(type=type, id=id, version=done.version, changed=done.is_new, before=before)

    @standard_tool("std.restore", registry=registry, domain="database")
    async def restore(
        type: Type, id: Id, version: Version, before: Before | None, context: StepContext
    ) -> Restored:
        """Undo an upsert: write what was there before it, or delete what it has created.
        A repeated call changes nothing.

        version: the one that the upsert has made.
        If the entity has been written since, nothing is changed: `conflict`.
        """
        if before is None:
            raise StepFailure(
                "conflict", f"{type} {id}: it is not known what was there before version {version}"
            )
        where, key = (context.tenant, type, id), _key(context)
        done = await _set(services, where, before.data if before.version else _NOTHING, key, version)
        if done.conflict:
            there = f"it is at version {done.version}" if done.version else "it is not there"
            raise StepFailure(
                "conflict", f"{type} {id}: {there}, and was at {version} when it was written: left as it is"
            )
        return Restored(type=type, id=id, version=done.version, there=before.version > 0)

    @standard_tool("std.get", registry=registry, effect="pure", domain="database", repeatable=True)
    async def get(type: Type, id: Id, context: StepContext) -> Found:
        """Read an entity with its version."""
        found = await services.stored(services.entities.get, context.tenant, type, id)
        if found is None:
            return Found(type=type, id=id, version=0, data=None)
        return Found(type=type, id=id, version=found.version, data=found.data)


def _declare_objects(registry: Registry, services: Services) -> None:
    @standard_tool("std.put_object", registry=registry, domain="file_operation", undo="std.restore_object")
    async def put_object(
        name: Name, context: StepContext, text: str | None = None, base64: str | None = None, json: Any = None,
        content_type: ContentType | None = None,
    ) -> Put:  # fmt: skip
        """Store content under its name and its hash, once however often it is put; and point the name to it.

        The content is one of `text`, `base64` and `json`.
        """
        (data, kind), key = _content(text, base64, json), _key(context)
        # By the step's key: a repetition knows that it has written the content, and that is deleted when the put is undone.
        made = await services.stored(
            services.objects.put, context.tenant, name, data, content_type or kind, key=key
        )
        pointer = {"sha256": made.sha256, "size": made.size, "ref": made.ref}
        # By the step's key, too: an old attempt that comes late does not point the name back to what was there before.
        done: Written = await services.stored(
            services.entities.put, context.tenant, LATEST, name, pointer, key=key, keeps_before=True
        )
        before = None if done.before is None else (done.before.data or {}).get("sha256", "")
        return Put(
            ref=made.ref, name=name, sha256=made.sha256, size=made.size, written=made.is_new, latest=done.version,
            before=before,
        )  # fmt: skip

    @standard_tool("std.restore_object", registry=registry, domain="file_operation", timeout="10s")
    async def restore_object(
        name: Name, sha256: Sha256, written: bool, latest: Version,
        before: NoneOrSha256 | None, context: StepContext,
    ) -> RestoredObject:  # fmt: skip
        """Undo a put: point the name to what it has pointed to before, or to
        nothing, and delete the content that the put has written.

        latest: the version of the pointer that the put has made.
        If the name has been put since, nothing is changed: `conflict`.
        """
        if before is None:
            raise StepFailure("conflict", f"it is not known what `{name}` has pointed to before")
        where, key = (context.tenant, LATEST, name), _key(context)
        earlier: Any = {"sha256": before} if before else _NOTHING
        done = await _set(services, where, earlier, key, latest)
        if done.conflict:
            raise StepFailure("conflict", f"`{name}` has been put again since, or restored: left as it is")
        gone = written and before != sha256 and await _delete(services, where, sha256)
        return RestoredObject(name=name, sha256=before, deleted=gone)

    @standard_tool(
        "std.get_object", registry=registry, effect="pure", domain="file_operation", repeatable=True
    )
    async def get_object(name: Name, context: StepContext, sha256: Sha256 | None = None) -> Got:
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


async def _set(services: Services, where: tuple[str, str, str], data: Any, key: str, version: int) -> Written:
    """Write or delete an entity that is at a version, or was taken back to it in this way."""
    entities, now = services.entities, version
    while True:
        if data is _NOTHING:
            done = await services.stored(entities.delete, *where, key=key, expected=now)
        else:
            # The name of this write tells what takes back the one before it that it stands for that.
            done = await services.stored(
                entities.put, *where, data, key=_AS.format(version - 1), expected=now
            )
        if not done.conflict:
            return done
        # Only a write that is there is found: no entity is at this version.
        stands = await services.stored(entities.put, *where, None, key=_AS.format(now), expected=_NO_VERSION)
        if stands.conflict or stands.version <= now:
            return done
        now = stands.version


async def _delete(services: Services, where: tuple[str, str, str], sha256: str) -> bool:
    """Delete content that its name does not point to; true if gone. A concurrent put puts it back."""
    tenant, _, name = where

    async def is_named() -> bool:
        there = await services.stored(services.entities.get, *where)
        return there is not None and there.data["sha256"] == sha256

    data = await services.stored(services.objects.get, tenant, name, sha256)
    if data is None or await is_named():
        return data is None
    await services.stored(services.objects.delete, tenant, name, sha256)
    if not await is_named():
        return True
    await services.stored(services.objects.put, tenant, name, data, "application/octet-stream")
    return False


def _key(context: StepContext) -> str:
    if not context.idempotency_key:
        raise StepFailure("input_invalid", "what is written is written under the idempotency key of its step")
    return context.idempotency_key


def _content(text: str | None, encoded: str | None, json: Any) -> tuple[bytes, str]:
    """Return the bytes, and their type if the caller gives none. Raises `StepFailure`."""
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
