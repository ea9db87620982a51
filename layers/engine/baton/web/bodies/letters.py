"""Dead letters as models of answers. The values are made in runtime/desks/letter_desk.py."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from baton.core.letters import SOURCES, STATUSES
from baton.web.bodies.models import Answer, Cursor, Time


class DeadLetter(Answer):
    """What could not be delivered or read: a saga whose wakes died, or a message that names no saga."""

    id: str = Field(description="That of its saga; `message~…` for a message that names none.")
    status: Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATUSES)})]
    saga: str | None
    node: str | None = Field(description="What the entry that cannot be read is about.")
    version: int | None = Field(ge=1, description="Of the entry that cannot be read, if it is one.")
    code: str = Field(examples=["unreadable_log", "missing_graph", "unknown_entry", "received_too_often"])
    reason: str
    source: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SOURCES)})] = Field(
        description="Whose messages they are: wakes, or what the relay could not pass on."
    )
    messages: int = Field(ge=1, description="Messages that have died.")
    attempts: int = Field(ge=1, description="Deliveries of these messages, all of which failed.")
    first_at: Time = Field(description="When the first of them was sent.")
    last_at: Time
    pending_since: Time | None
    age_ms: int = Field(ge=0, description="Since the first of them was sent.")
    redrives: int = Field(ge=0)
    redrives_left: int = Field(ge=0, description="Before one needs `force`.")
    decided_at: Time | None = Field(description="When it was redriven or discarded last.")
    decided_by: str | None
    why: str | None = Field(description="Why it was discarded.")
    expires_at: Time
    message: str = Field(description="The newest message, cut where it is long.")


class DeadLetterPage(Answer):
    """Dead letters, the oldest first."""

    dead_letters: list[DeadLetter]
    next: Cursor


class LeftLetter(Answer):
    """A dead letter that was left as it was."""

    id: str
    why: str


class RedrivenPage(Answer):
    """What came of a redrive of many: it goes on at `next`, if that is there."""

    matched: int = Field(ge=0)
    redriven: int = Field(ge=0)
    refused: list[LeftLetter]
    next: Cursor


class DiscardedPage(Answer):
    """What came of discarding many: it goes on at `next`, if that is there."""

    matched: int = Field(ge=0)
    discarded: int = Field(ge=0)
    refused: list[LeftLetter]
    next: Cursor
