"""The answers of the API about money, as models: budgets, and what sagas and models have cost."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from baton.web.bodies.models import Answer, Status, Time


class DayBudget(Answer):
    """What was spent on a day (UTC), and may be."""

    spent_usd: float = Field(ge=0)
    reserved_usd: float = Field(ge=0, description="Held for steps under way, or drawn by the tenant's users.")
    limit_usd: float | None = Field(description="Null: any amount, and nothing is counted.")
    left_usd: float | None
    blocked_until: Time | None = Field(description="When something can begin again, if it is all spent.")


class UserBudget(DayBudget):
    """Of one user."""

    user: str
    blocked: bool = Field(description="An operator has blocked the user: nothing begins, whatever is left.")


class Budget(UserBudget):
    """Spending of a user's sagas on a day (UTC), and its limits."""

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    tenant: DayBudget | None = Field(description="Of all its users, as they have told. Null: no limit.")
    saga_limit_usd: float | None = Field(description="What one saga may spend. Null: any amount.")


class User(UserBudget):
    """Spending of a user today (UTC), and the operator's rule about the user."""

    state: Literal["open", "spent", "blocked"] = Field(
        description="`spent`: nothing more begins today. `blocked`: until an operator unblocks the user."
    )
    own_limit_usd: float | None = Field(description="What this user may spend on a day. Null: as all users.")
    by: str | None = Field(description="The operator who has decided last. Null: none has.")
    at: Time | None
    note: str | None


class UserPage(Answer):
    """A part of the users with sagas that have not ended, or ended today, and of those about whom an operator has decided.

    A user can be on several pages.
    """

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    users: list[User]
    next: str | None


class CostRow(Answer):
    """What models or AWS have cost the sagas of a workflow or a user, or what one model has."""

    key: str = Field(description="The name of the workflow, of the user, or of the model.")
    sagas: int = Field(ge=0)
    input: int = Field(ge=0, description="Tokens that models have read; 0 of AWS.")
    output: int = Field(ge=0, description="Tokens that they have written.")
    usd: float = Field(ge=0)


class CostPage(Answer):
    """A part of a day's sagas. A key is on several pages: their sums add up."""

    # Only those of AWS have `left_out`.
    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    day: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    by: str
    costs: list[CostRow]
    looked_at: int = Field(ge=0, description="So many sagas this page was made of.")
    next: str | None
    left_out: list[str] | None = Field(
        default=None,
        description="Of AWS: sagas whose logs could not be read within this request. The cost of one saga says what each has cost.",
    )


class Priced(Answer):
    """Which prices were taken."""

    region: str
    date: str


class Dollars(Answer):
    """Sums in US dollars."""

    total: float = Field(ge=0)
    aws: float = Field(ge=0)
    models: float = Field(ge=0)


class CostLine(BaseModel):
    """So much of something."""

    what: str
    quantity: float = Field(ge=0)
    unit: str
    usd: float = Field(ge=0)


class ModelLine(CostLine):
    """What one model has read and written for one node; `what` is the model."""

    node: str
    requests: int = Field(ge=0)
    input: int = Field(ge=0, description="Tokens.")
    cached: int = Field(ge=0, description="Of these, what the provider still had.")
    output: int = Field(ge=0, description="Tokens, reasoning included.")


class Cost(Answer):
    """An estimate from the saga's log and dated prices."""

    saga: str
    status: Status
    estimated: Literal[True]
    priced: Priced
    usd: Dollars
    aws: list[CostLine]
    models: list[ModelLine]
    steps: int = Field(ge=0)
    agent_steps: int = Field(
        ge=0, description="Turns of agents, and the calls that they have made: steps within these steps."
    )
    invocations: int = Field(ge=0)
    usd_per_million_steps: float | None = Field(
        description="What AWS charges for a million steps of this mix, those of agents among them."
    )
