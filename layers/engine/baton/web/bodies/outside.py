"""Events from outside as models: what is sent, and what is answered."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel

from baton.core.outside.cloudevents import LONGEST_ID, LONGEST_SOURCE, LONGEST_TYPE
from baton.runtime.triggers.event_desk import DEEDS
from baton.web.bodies.event_bodies import MOST_EVENTS
from baton.web.bodies.models import Answer


class CloudEvent(BaseModel):
    """An event after CloudEvents 1.0. Further attributes have names of lower-case letters and digits."""

    model_config = ConfigDict(extra="allow")

    specversion: Literal["1.0"]
    id: str = Field(min_length=1, max_length=LONGEST_ID, description="Unique among the events of the source.")
    source: str = Field(min_length=1, max_length=LONGEST_SOURCE, examples=["shop"])
    type: str = Field(min_length=1, max_length=LONGEST_TYPE, examples=["payment.settled"])
    data: JsonValue = Field(default=None, description="Anything.", examples=[{"order": "A-17"}])


class CloudEvents(RootModel[Annotated[list[JsonValue], Field(max_length=MOST_EVENTS)]]):
    """Several events, each a CloudEvent. One that is none holds up no other, and the answer is 422 with its place."""


class EventOutcome(Answer):
    """What a workflow's rule has done."""

    workflow: str
    did: str = Field(
        description="; ".join(f"`{deed}`: {means}" for deed, means in DEEDS.items()) + ".",
        json_schema_extra={"enum": list(DEEDS)},
    )
    saga: str | None = Field(description="That was started or reached, or that was there.")
    signal: str | None = Field(description="The rule's signal; null for a rule that starts sagas.")
    why: str | None


class EventTaken(Answer):
    """What became of an event."""

    id: str | None
    source: str | None
    type: str | None
    matched: int = Field(ge=0, description="Rules that were for it.")
    outcomes: list[EventOutcome]


class EventsTaken(Answer):
    """What became of each event, in their order."""

    events: list[EventTaken]
