"""What the API answers about incidents, as models: a part of answers.py, which says what they are for.

The values are made in runtime/incidents.py.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from baton.core.failures.policy import SEVERITIES
from baton.web.models import Answer, Cursor, Time


class Incident(Answer):
    """Something that went wrong and needs a person. It is resolved once a person has decided about its saga."""

    id: str
    status: Annotated[str, WithJsonSchema({"type": "string", "enum": ["open", "resolved"]})]
    saga: str
    node: str | None
    code: str
    message: str
    severity: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SEVERITIES)})]
    opened_at: Time
    resolved_at: Time | None
    resolved_by: str | None = Field(description="Who answered, resumed, cancelled, forked or said so.")


class IncidentPage(Answer):
    """Incidents, the newest first."""

    incidents: list[Incident]
    next: Cursor
