"""The bodies of requests about incidents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from baton.runtime.desks.incidents import MOST_NOTE
from baton.web.bodies.reading import Body, Plainly


class AcknowledgeBody(Body):
    """What the person who has an incident says about it."""

    note: Annotated[str, Plainly] = Field(
        "", max_length=MOST_NOTE, description="For those who look at it next.", examples=["I call the bank."]
    )
