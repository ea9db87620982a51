"""Versions of workflows: tags that move over them, and patches that make the next one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from baton.core.expressions import iso
from baton.core.on_demand import OnDemand
from baton.core.read.answers import Time, Version, View
from baton.ports.records import Tag, TagMove
from baton.runtime.engine.request import Request
from baton.runtime.starting.catalog import Registered

if TYPE_CHECKING:
    from baton.core.documents import changes
    from baton.runtime.requests import registering
else:
    changes = OnDemand("baton.core.documents.changes")
    registering = OnDemand("baton.runtime.requests.registering")

logger = logging.getLogger("baton.versions")


class TagMoveView(View):
    """Version that a tag was set to, or its deletion."""

    version: Annotated[Version | None, "Null: the tag was deleted."]
    by: Annotated[str, "Person who set it."]
    at: Time
    reason: str


class WorkflowTag(View):
    """Tag of a workflow. `NAME@TAG` starts the version that it names."""

    workflow: str
    tag: str
    version: Annotated[Version | None, "Version that it names. Null for a deleted tag."]
    moves: Annotated[list[TagMoveView], "Its newest 20 moves, newest first."]


def tag_view(tag: Tag) -> WorkflowTag:
    """Return the answer about a tag."""
    moves = [
        TagMoveView(version=one.version or None, by=one.by, at=iso(one.at), reason=one.reason)
        for one in tag.moves
    ]
    return WorkflowTag(workflow=tag.workflow, tag=tag.name, version=tag.version or None, moves=moves)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowPatch:
    """JSON Patch of a workflow's document, made for a version. `dry_run`: nothing is stored."""

    operations: Sequence[Mapping[str, Any]]
    made_for: int
    description: str = ""
    dry_run: bool = False


class VersionService:
    """The versions of the workflows of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._catalog, self._clock = request.parts.catalog, request.engine.clock
        self._tenant, self._by = request.caller.tenant, request.caller.by

    async def tag(self, workflow: str, tag: str) -> WorkflowTag:
        """Return a tag with its history. Raises `NotFound`."""
        return tag_view(await self._catalog.tag(self._tenant, workflow, tag))

    async def move_tag(
        self, workflow: str, tag: str, version: int, was: int | None, reason: str
    ) -> WorkflowTag:
        """Set a tag to a version, or delete it (version 0). Repeated, a no-op.
        Raises `NotFound`, and `Outdated` if it does not name the version `was`.
        """
        move = TagMove(version=version, by=self._by, at=self._clock.now(), reason=reason)
        moved, has_changed = await self._catalog.move_tag(self._tenant, workflow, tag, move, was)
        if has_changed:
            said = {"tenant": self._tenant, "workflow": workflow, "tag": tag, "to": version, "by": self._by}
            logger.warning("tag moved", extra=said)
        return tag_view(moved)

    async def patch(self, workflow: str, patch: WorkflowPatch) -> Registered:
        """Register the patched document of the newest version as the next one. Repeated, a no-op.
        Raises `NotFound`, `Outdated`, `InvalidInput` for the patch, and as a registration.
        """
        newest = next(iter(await self._catalog.versions(self._tenant, workflow, 1)), None)
        of = newest = newest or await self._catalog.find(self._tenant, workflow)
        if newest.version == patch.made_for + 1 and newest.description == patch.description:
            of = await self._catalog.find(self._tenant, f"{workflow}@{patch.made_for}")
        elif newest.version != patch.made_for:
            raise registering.outdated(workflow, newest.version, patch.made_for)
        text = changes.patched_text(await self._catalog.document(of), patch.operations)
        request, change = self._request, registering.Change(of, patch.description, patch.dry_run)
        if of is newest:
            known = request.parts, request.engine, request.caller
            return await registering.register_workflow(*known, text, json_only=False, change=change)
        if text != await self._catalog.document(newest):
            raise registering.outdated(workflow, newest.version, patch.made_for)
        return Registered(newest, is_new=False)
