"""How a task says that a model may put something else in its place: the shape of `replan`.

What it becomes in a graph is in nodes/replanned.py, what is done with it in core/nodes/replanning.py.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from baton.core.documents.parts.fields import (
    OPERATIONS_SAY,
    Duration,
    Given,
    Model,
    Operations,
    ToolPatterns,
    between,
    counted,
    defined,
    one_of,
    words,
)
from baton.core.documents.parts.models import MOST_OUTPUT, ModelName, PriceModel

MOST_ALTERNATIVES, MOST_STEPS = 5, 8
USUAL_MS = 300_000
BEST, PERSON = "best", "person"


class ReplanModel(Model):
    """A model suggests what is called in place of a tool that has failed."""

    model: ModelName = Field(description="The model that is asked.")
    tools: ToolPatterns = Field(description="The tools that it may call.")
    operations: Operations = Field(default_factory=dict, description=OPERATIONS_SAY)
    alternatives: Annotated[int, between(1, MOST_ALTERNATIVES), counted(1, MOST_ALTERNATIVES)] = Field(
        default=3, description="The most that it suggests."
    )
    steps: Annotated[int, between(1, MOST_STEPS), counted(1, MOST_STEPS)] = Field(
        default=1, description="The most calls of one."
    )
    within: Annotated[Duration, Given] = Field(default=USUAL_MS, description="None begins later; else `5m`.")
    choose: Annotated[str, one_of(BEST, PERSON), words(BEST, PERSON), Given] = Field(
        default=BEST, description="Whether the best is tried first, or a person chooses one."
    )
    max_output: Annotated[int, between(1, MOST_OUTPUT), counted(1, MOST_OUTPUT)] | None = Field(
        default=None, description="As of a `model`."
    )
    price: Annotated[PriceModel | None, Given, defined("modelPrice")] = Field(
        default=None, description="What it costs, if unknown or more."
    )
