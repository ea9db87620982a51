"""Which way a saga went, and why a node did not run, as models. The values are made in core/read/explain.py.

Imported only where the OpenAPI document is made: see answers.py.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from baton.core.read.explain import STATES
from baton.core.read.places import BECAME
from baton.web.bodies.failing import FailedAttempt
from baton.web.bodies.models import ITEM, Answer, SparseAnswer, Status, Time


class WayStep(SparseAnswer):
    """A round of a node that is settled, or one of the several things that the node does in it."""

    node: str
    iteration: list[int] = Field(description="Its round in each loop around it, outermost first.")
    item: str = Field(default="", description=ITEM)
    became: Annotated[str, WithJsonSchema({"type": "string", "enum": list(BECAME)})]
    version: int = Field(ge=1, description="Of the entry that says so.")
    at: Time
    by: list[str] = Field(
        description="The nodes whose live edges led to it; empty text: the start of the saga."
    )
    way: str = Field(description="What its loop and its branch chose, as in the log.")
    to: list[str] = Field(
        description="The rounds of nodes that its live edges lead to, as NODE or NODE@ROUND."
    )
    not_to: list[str] = Field(description="Those that it does not go on to.")
    text: str = Field(
        description="For a person: which turn or call of an agent it is, which way it went on, or why it did not run."
    )
    child: str = Field(default="", description="The saga that it has started, if it starts any.")


class OpenNode(SparseAnswer):
    """A round of a node that is not settled yet."""

    node: str
    iteration: list[int]
    item: str = Field(default="", description=ITEM)
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATES)})]
    text: str = Field(description="What it is doing, for a person.")
    child: str = Field(default="", description="The saga that it has started.")


class _AboutSaga(Answer):
    saga: str
    workflow: str
    status: Status
    version: int = Field(ge=1, description="Version of its log that this was read to.")
    branch: int = Field(
        ge=0, description="What an earlier branch did behind the fork is not part of the answer."
    )


class Way(_AboutSaga):
    """Which way a saga went."""

    start: str | None = Field(
        description="By which event from outside it was started, for a person; on the first page only."
    )
    steps: list[WayStep] = Field(description="In the order in which they were settled.")
    open: list[OpenNode] = Field(max_length=100, description="What is not settled; on the last page only.")
    end: str | None = Field(
        description="How the saga ended or is about to, for a person; on the last page only."
    )
    next: int | None = Field(description="The `after` of the next page; null at the end.")


class ExplainedEdge(Answer):
    """What an edge into the node has said."""

    from_: str = Field(alias="from", description="The sender; empty: the start of the saga.")
    alive: bool | None = Field(description="Whether this way was taken; null: not known yet.")
    late: bool = Field(description="It came when the join had fired already.")
    version: int | None
    at: Time | None
    text: str


class Reason(Answer):
    """One step back to a cause."""

    node: str = Field(description="Empty: the saga as a whole.")
    iteration: list[int]
    version: int | None
    at: Time | None
    text: str


class ExplainedRound(Answer):
    """What became of one round of a node, and why."""

    iteration: list[int]
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATES)})]
    version: int | None = Field(description="Of the entry that settled it.")
    at: Time | None
    text: str = Field(description="The whole answer, for a person.")
    edges: list[ExplainedEdge]
    attempts: list[FailedAttempt] = Field(
        max_length=50, description="Those that failed before the last; of more, the first and the last ones."
    )
    items: list[WayStep | OpenNode] = Field(
        max_length=50, description="The turns and calls of an agent; of more, the first and the last ones."
    )
    causes: list[Reason] = Field(
        description="Why it did not run: from its own edges back to the cause, the shortest way."
    )
    causes_left_out: int = Field(ge=0, description="How many are not shown before the last.")
    waits_for: list[OpenNode] = Field(max_length=100, description="What holds it up.")
    way: str
    to: list[str]
    not_to: list[str]


class Explanation(_AboutSaga):
    """Why a node ran, or did not."""

    node: str
    kind: str
    iterations: list[ExplainedRound] = Field(
        description="Its rounds, as far as its loops have come; else the only one."
    )
    left_out: int = Field(ge=0, description="Earlier rounds that the answer has no room for.")
