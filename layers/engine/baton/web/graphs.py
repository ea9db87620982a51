"""How a compiled workflow is described to the outside, as models. The values are made in core/read/views.py.

Imported only where the OpenAPI document is made: see answers.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from baton.web.models import Answer, Condition


class WorkflowRule(BaseModel):
    """One rule of a branch."""

    if_: Condition = Field(alias="if")
    then: list[str]


class WorkflowBranch(BaseModel):
    """Where a node goes on: the first rule that holds, or what an expression names."""

    rules: list[WorkflowRule]
    choose: str | None = Field(description="An expression whose value names nodes among `among`.")
    among: list[str]
    default: list[str]


class WorkflowCatch(BaseModel):
    """One way on from a failure: for these codes and classes, none of them for all."""

    code: list[str]
    class_: list[str] = Field(alias="class")
    if_: Condition | None = Field(alias="if")
    then: list[str]


class WorkflowLoop(BaseModel):
    """Of the last node of a loop: when it goes back to which node, and where it leaves to."""

    while_: Condition = Field(alias="while")
    max_iterations: int = Field(ge=1)
    back_to: str
    break_path: list[str]
    timeout_path: list[str]


class WorkflowJoin(BaseModel):
    """What a node waits for."""

    wait_for: Literal["all"] | int = Field(description="So many live edges, or all edges.")
    tolerated_failures: int | None = Field(description="Null: a failure is one of the saga.")
    rest: Literal["cancel", "run"]


class Limit(Answer):
    """The most there may be of something, and what happens beyond it."""

    most: float = Field(ge=0)
    then: Literal["terminate", "throttle", "summarise"]


Limits = Annotated[
    dict[str, Limit], Field(description="By name: fan_out, hops, bytes, wall_time_ms, cost_usd.")
]


class WorkflowNode(BaseModel):
    """A node of the compiled graph; other fields depend on its kind. What it has not is left out."""

    model_config = ConfigDict(extra="allow")

    name: str
    kind: str
    loops: list[str] = Field([], description="The last nodes of the loops around it, outermost first.")
    when: Condition | None = None
    join: WorkflowJoin | None = None
    branch: WorkflowBranch | None = None
    loop: WorkflowLoop | None = None
    catch: list[WorkflowCatch] = Field([], description="The first that fits a failure is taken.")
    output_schema: Any = None
    limits: Limits = {}


class Edge(Answer):
    """`to` comes after `from`; of `again`, in the next round."""

    from_: str = Field(alias="from")
    to: str
    kind: Literal["after", "branch", "catch", "break", "timeout", "again"] = Field(
        description="Whether it is taken: whenever `from` is done; when its branch chooses it; when it failed and its catch chooses it; when its loop is left, "
        "or left because its rounds are used up; when its loop goes round again."
    )
