"""Tags of workflows: names such as `main` that move over the versions of a workflow."""

from __future__ import annotations

import logging
from typing import Annotated

from baton.core.expressions import iso
from baton.core.read.answers import Time, Version, View
from baton.ports.records import Tag, TagMove
from baton.runtime.engine.request import Request

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


class VersionService:
    """The versions of the workflows of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
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
