"""The bodies of requests about dead letters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from baton.runtime.desks.letter_desk import MOST_REDRIVEN
from baton.runtime.engine.request import SAGA_ID
from baton.web.bodies.reading import Body, Plainly

_MAX_REASON = 500


class RedriveBody(Body):
    """How a dead letter is redriven."""

    force: bool = Field(
        False, description="Though it was redriven as often as it may, or is redriven already."
    )


class _Matching(Body):
    saga: str = Field("", pattern=rf"^({SAGA_ID})?$")
    node: str = Field("", max_length=128)
    reason: str = Field(
        "", max_length=_MAX_REASON, description="The code, or a part of the reason in any case."
    )
    dry_run: bool = Field(False, description="Only count them.")
    limit: int = Field(100, ge=1, le=MOST_REDRIVEN, description="How many at most.")
    cursor: str = Field("", max_length=8_192, description="The `next` of the answer before.")


class RedriveAllBody(_Matching):
    """Which pending dead letters are redriven: of a saga, about a node, with a code or with words in their reason."""

    force: bool = Field(False, description="Those, too, that were redriven as often as they may.")


class DiscardAllBody(_Matching):
    """Which pending dead letters are discarded, chosen as for redriving, and why."""

    why: Annotated[str, Plainly] = Field(min_length=1, max_length=_MAX_REASON)


class DiscardBody(Body):
    """Why a dead letter is not to be redriven."""

    reason: Annotated[str, Plainly] = Field(min_length=1, max_length=_MAX_REASON)
