"""From usage to dollars, and the answer that shows them.
What is used is counted in usage.py, prices are in costs.py.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from baton.core.decide.spending import SpendingLimits, day_text, end_of
from baton.core.expressions import iso
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import UNANSWERED
from baton.core.log.slots import Slot
from baton.core.models.usage import Usage as ModelUsage
from baton.core.money import MICRO, NO_RULE, UserRule
from baton.core.read.answers import Amount, Count, Day, Status, Time, View

WRITE_BYTES, READ_BYTES = 1_024, 4_096
REQUESTS_PER_MESSAGE = 3  # it is sent, received and deleted; batches make it less


class BillingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that a bill depends on besides the log. Memory in MB, times in ms, sizes in bytes.

    Four times are assumptions, for a DynamoDB that answers within 5 to 10 ms:
    `init`, the billed time of a new process of the worker before it begins;
    `handover`, from a worker's start to its first step and from its last entry to its end;
    `request` and `passing`, one invocation of the API and of the relay.
    """

    worker_mb: int = 1_024
    api_mb: int = 1_024
    relay_mb: int = 512
    init: int = 800
    handover: int = 50
    request: int = 30
    passing: int = 15
    snapshot_tail: int = 8_192
    snapshot_blob: int = 65_536
    news_every: int = 5_000
    lease_grace: int = 1_000
    fork_deadline: int = 45_000
    timer_by_message: int = 900_000
    limits: Limits = Limits()

    @classmethod
    def of(cls, limits: Limits) -> BillingSettings:
        """Return the settings as the engine is set up; the rest keeps its defaults."""
        return cls(
            worker_mb=limits.worker_memory_mb,
            snapshot_tail=limits.snapshot_tail_bytes,
            snapshot_blob=limits.snapshot_blob_bytes,
            news_every=limits.news_every_ms,
            lease_grace=limits.lease_grace_ms,
            fork_deadline=limits.fork_deadline_ms,
            timer_by_message=limits.timer_by_message_ms,
            limits=limits,
        )


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Resources used. `gb_seconds`: Lambda's time by its memory, all functions together."""

    write_units: int = 0
    read_units: int = 0
    sqs_requests: int = 0
    http_requests: int = 0
    lambda_requests: int = 0
    gb_seconds: float = 0.0
    blob_puts: int = 0
    blob_gets: int = 0


def units(size: int, of: int = WRITE_BYTES) -> int:
    """Return DynamoDB's units for so many bytes: one for each `of` begun, and one at least."""
    return max(1, -(-size // of))


def stored_bytes(data: bytes, around: int) -> int:
    """Return the bytes of an item with this JSON and `around` bytes of other attributes.

    The JSON is compressed if that saves a unit.
    """
    plain = around + len(data)
    if units(plain) == 1:
        return plain
    packed = around + len(zlib.compress(data))
    return packed if units(packed) < units(plain) else plain


REGION = "us-east-1"
DATE = "2026-11-22"

# How a number was confirmed on that date. AWS fills the tables of its pages in the browser; where a number could not be
# read there, two pages of others that agree have to do.
ON_AWS = "AWS's own page"
BY_OTHERS = "others' pages"


class Price(NamedTuple):
    """Dollars for a million of something; `page` is where AWS publishes it."""

    what: str
    unit: str
    usd_per_million: float
    page: str
    confirmed: str

    def usd(self, quantity: float) -> float:
        """Return the dollars for a quantity."""
        return quantity * self.usd_per_million / 1_000_000


_DYNAMODB = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
_LAMBDA = "https://aws.amazon.com/lambda/pricing/"
_STEP_FUNCTIONS = "https://aws.amazon.com/step-functions/pricing/"
_S3 = "https://aws.amazon.com/s3/pricing/"

# A write unit is a kilobyte begun; a read unit is four, strongly consistent.
WRITE_UNIT = Price("DynamoDB writes", "write units", 0.625, _DYNAMODB, BY_OTHERS)
READ_UNIT = Price("DynamoDB reads", "read units", 0.125, _DYNAMODB, BY_OTHERS)
# Lambda's reads of a stream cost nothing.
SQS_REQUEST = Price("SQS requests", "requests", 0.40, "https://aws.amazon.com/sqs/pricing/", BY_OTHERS)
LAMBDA_REQUEST = Price("Lambda requests", "requests", 0.20, _LAMBDA, ON_AWS)
# arm64, the first 7.5 billion GB-seconds of a month; billed by the millisecond, initialisation included.
GB_SECOND = Price("Lambda time", "GB-seconds", 13.3334, _LAMBDA, BY_OTHERS)
S3_PUT = Price("S3 PUT", "requests", 5.00, _S3, BY_OTHERS)
S3_GET = Price("S3 GET", "requests", 0.40, _S3, BY_OTHERS)
HTTP_REQUEST = Price(
    "API Gateway HTTP requests", "requests", 1.00, "https://aws.amazon.com/api-gateway/pricing/", ON_AWS
)

# What runs whether there are sagas or not: the reconciler's schedule and its state machine.
SCHEDULER_INVOCATION = Price(
    "Scheduler invocations", "requests", 1.00, "https://aws.amazon.com/eventbridge/pricing/", BY_OTHERS
)
EXPRESS_REQUEST = Price("Step Functions Express", "executions", 1.00, _STEP_FUNCTIONS, BY_OTHERS)
EXPRESS_GB_SECOND = Price("Step Functions Express time", "GB-seconds", 16.67, _STEP_FUNCTIONS, BY_OTHERS)

# Peers, for comparison. Neither includes the Lambda requests and time of the steps themselves, nor, for
# durable functions, what is written and kept, which AWS charges by the gigabyte.
DURABLE_OPERATION = Price("Lambda durable functions", "operations", 8.00, _LAMBDA, ON_AWS)
STANDARD_TRANSITION = Price("Step Functions Standard", "transitions", 25.00, _STEP_FUNCTIONS, ON_AWS)


_PRICED: tuple[tuple[str, Price], ...] = (
    ("write_units", WRITE_UNIT),
    ("read_units", READ_UNIT),
    ("sqs_requests", SQS_REQUEST),
    ("http_requests", HTTP_REQUEST),
    ("lambda_requests", LAMBDA_REQUEST),
    ("gb_seconds", GB_SECOND),
    ("blob_puts", S3_PUT),
    ("blob_gets", S3_GET),
)


class CostLine(View, forbid_unknown_fields=False):
    """Quantity and cost of one item."""

    what: str
    quantity: Amount
    unit: str
    usd: Amount


def charge(price: Price, quantity: float) -> CostLine:
    """Return the charge of a quantity at a price."""
    return CostLine(what=price.what, quantity=quantity, unit=price.unit, usd=price.usd(quantity))


def bill(usage: Usage) -> list[CostLine]:
    """Return a charge for each thing that has a price, unused ones included."""
    return [charge(price, getattr(usage, name)) for name, price in _PRICED]


def total_of(charges: Sequence[CostLine]) -> float:
    """Return the dollars of all charges."""
    return sum(line.usd for line in charges)


def per_million_steps(charges: Sequence[CostLine], steps: int) -> float:
    """Return the dollars for a million steps at the same mix; 0 when nothing was done."""
    return total_of(charges) / steps * 1_000_000 if steps else 0.0


class DayBudget(View):
    """Spending and limit of one day (UTC)."""

    spent_usd: Amount
    reserved_usd: Annotated[
        Amount, "Amount in US dollars that is reserved for running steps or allocated to users of the tenant."
    ]
    limit_usd: Annotated[float | None, "Limit. Null if there is none; spending is then not counted."]
    left_usd: float | None
    blocked_until: Annotated[Time | None, "For an exhausted limit: time when work can start again."]


class UserBudget(DayBudget):
    """Spending and limit of one user on one day (UTC)."""

    user: str
    blocked: Annotated[bool, "True if an operator has blocked the user: nothing starts."]


class Budget(UserBudget):
    """Spending of a user's sagas on one day (UTC), and the limits that apply."""

    day: Day
    tenant: Annotated[
        DayBudget | None,
        "Spending and limit of the whole tenant, as reported by its users' sagas. Null if the tenant has no limit.",
    ]
    saga_limit_usd: Annotated[float | None, "Maximum cost of one saga. Null if there is no limit."]


class User(UserBudget):
    """Spending of a user today (UTC), and the operator's decision about the user."""

    state: Annotated[
        Literal["open", "spent", "blocked"],
        "`spent`: nothing further starts today. `blocked`: nothing starts until an operator unblocks the user.",
    ]
    own_limit_usd: Annotated[float | None, "Daily limit of this user. Null: the limit of all users applies."]
    by: Annotated[str | None, "Operator who made the last decision. Null if none has decided."]
    at: Time | None
    note: str | None


class UserPage(View):
    """A page of users.

    Contains users with sagas that have not ended or that ended today, and users about whom an operator has
    decided. A user can appear on several pages.
    """

    day: Day
    users: list[User]
    next: str | None


class CostRow(View):
    """Cost of the sagas of one workflow or user, or cost of one model."""

    key: Annotated[str, "Name of the workflow, user or model."]
    sagas: Count
    input: Annotated[Count, "Number of input tokens of models. 0 for costs of AWS."]
    output: Annotated[Count, "Number of output tokens of models. 0 for costs of AWS."]
    usd: Amount


class CostPage(View):
    """A page of the day's costs. A key can appear on several pages; add its sums."""

    day: Day
    by: str
    costs: list[CostRow]
    looked_at: Annotated[Count, "Number of sagas on this page."]
    next: str | None
    left_out: Annotated[
        list[str] | UnsetType,
        "For costs of AWS: sagas whose logs could not be read within this request. `GET /sagas/{saga}/cost` returns the cost of each.",
    ] = UNSET


class Priced(View):
    """Prices used for the estimate."""

    region: str
    date: str


class Dollars(View):
    """Costs in US dollars."""

    total: Amount
    aws: Amount
    models: Amount


class ModelLine(CostLine, forbid_unknown_fields=False):
    """Use of one model by one node. `what` is the name of the model."""

    node: str
    requests: Count
    input: Annotated[Count, "Number of input tokens."]
    cached: Annotated[
        Count, "Number of input tokens that the provider served from its cache. `input` includes them."
    ]
    output: Annotated[Count, "Number of output tokens, including reasoning."]


class Cost(View):
    """Estimated cost of a saga, computed from its log and dated prices."""

    saga: str
    status: Status
    estimated: Literal[True]
    priced: Priced
    usd: Dollars
    aws: list[CostLine]
    models: list[ModelLine]
    steps: Count
    agent_steps: Annotated[Count, "Turns and tool calls of agents, which are part of `steps`."]
    invocations: Count
    cache_hits: Annotated[Count, "Steps that took a kept result of a tool with a `cache`."]
    cache_misses: Annotated[Count, "Steps of such a tool that have called it."]
    usd_per_million_steps: Annotated[
        float | None,
        "Estimated AWS cost in US dollars of one million steps of this mix, including steps of agents.",
    ]


class ErrorBudget(View):
    """Ended sagas of a workflow. Cancelled sagas are not counted."""

    key: Annotated[str, "Name of the workflow."]
    completed: Count
    failed: Count
    allowed: Annotated[int | None, "Number of sagas that may fail. Null without an error budget."]
    left: Annotated[
        int | None,
        "Number of sagas that may still fail. Negative if more sagas have failed than the budget allows.",
    ]


class ErrorBudgetPage(View):
    """A page of the day's sagas. A workflow can appear on several pages; add its sums."""

    day: Day
    percent: Annotated[float | None, "Percentage of sagas that may fail. Null without an error budget."]
    workflows: list[ErrorBudget]
    looked_at: Annotated[Count, "Number of sagas on this page."]
    next: str | None


def cost_view(
    saga: str,
    status: str,
    usage: Usage,
    steps: int,
    invocations: int,
    models: Sequence[ModelLine] = (),
    agent_steps: int = 0,
    cache: tuple[int, int] = (0, 0),
) -> Cost:
    """Return the cost of a saga as `GET /sagas/{id}/cost` shows it.
    An estimate: see `Ledger` for what is in it.

    Dollars, to the billionth. `models` is what models were paid, by the prices of that time. `cache`: hits
    and misses.
    """
    charges, all_steps = bill(usage), steps + agent_steps
    total, paid = total_of(charges), sum(line.usd for line in models)
    return Cost(
        saga=saga,
        status=status,
        estimated=True,
        priced=Priced(region=REGION, date=DATE),
        usd=Dollars(total=_dollars(total + paid), aws=_dollars(total), models=_dollars(paid)),
        aws=[replace(line, quantity=round(line.quantity, 6), usd=_dollars(line.usd)) for line in charges],
        models=[*models],
        steps=steps,
        agent_steps=agent_steps,
        invocations=invocations,
        cache_hits=cache[0],
        cache_misses=cache[1],
        usd_per_million_steps=round(per_million_steps(charges, all_steps), 4) if all_steps else None,
    )


def _dollars(usd: float) -> float:
    return round(usd, 9)


class ModelCosts:
    """Costs of models, summed over a log with all its branches:
    requests of an abandoned branch are paid for, too.
    """

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], list[int]] = {}
        self.agent_steps = 0
        """Turns of agents, and the calls that they have made."""
        self.cache = {ev.HIT: 0, ev.MISS: 0}

    def add(self, entry: ev.Entry) -> None:
        """Add the next entry."""
        for event in entry.events:
            self.agent_steps += isinstance(event, ev.Settles) and bool(event.item)
            if isinstance(event, ev.StepSucceeded) and event.cache:
                self.cache[event.cache] += 1
            if isinstance(event, ev.Attempted):
                for usage in event.usage:
                    self._add(event.node, usage, is_request=usage.model != UNANSWERED)
                if event.assumed:
                    self._add(event.node, ModelUsage(model=UNANSWERED, cost=event.assumed))
            elif isinstance(event, ev.Revived):
                for slot, cost in event.assumed.items():
                    read, *written = event.tokens.get(slot) or (0,)
                    usage = ModelUsage(model=UNANSWERED, input=read, output=sum(written), cost=cost)
                    self._add(Slot.parse(slot).node, usage)

    def _add(self, node: str, usage: ModelUsage, *, is_request: bool = True) -> None:
        sums = self._sums.setdefault((usage.model, node), [0] * 5)
        # What was held for a request and comes back is a request less without an answer.
        for index, number in enumerate(
            (is_request * (1 if usage.cost >= 0 else -1), usage.input, usage.cached, usage.output, usage.cost)
        ):
            sums[index] += number

    def lines(self) -> list[ModelLine]:
        """Return one line for each model at each node: a charge, with the tokens that it is made of."""
        return [
            ModelLine(
                what=model,
                node=node,
                quantity=read + written,
                unit="tokens",
                usd=cost / MICRO,
                requests=requests,
                input=read,
                cached=cached,
                output=written,
            )
            for (model, node), (requests, read, cached, written, cost) in sorted(self._sums.items())
            if requests or cost
        ]


def budget_view(
    user: str,
    spent: int,
    reserved: int,
    terms: SpendingLimits,
    day: int,
    tenant: tuple[int, int] = (0, 0),
    rule: UserRule = NO_RULE,
) -> Budget:
    """Return the answer of `GET /budget`. Without a limit nothing is counted.

    `tenant`: the money that all its users together have reported as spent, and the money drawn besides.
    """
    return Budget(
        user=user,
        day=day_text(day),
        **_of_user(spent, reserved, rule, terms.user_day, day),
        saga_limit_usd=terms.saga / MICRO if terms.saga else None,
        tenant=DayBudget(**_sums(*tenant, terms.tenant_day, day)) if terms.tenant_day else None,
    )


def user_view(user: str, spent: int, reserved: int, rule: UserRule, of_all: int, day: int) -> User:
    """Return a row of `GET /users`: one user's day, and the operator's rule.
    `of_all`: limit of each user for a day.
    """
    view = _of_user(spent, reserved, rule, of_all, day)
    return User(
        user=user,
        state="blocked" if view["blocked"] else "spent" if view["blocked_until"] else "open",
        **view,
        own_limit_usd=None if rule.limit is None else rule.limit / MICRO,
        by=rule.by or None,
        at=iso(rule.at) if rule.at else None,
        note=rule.note or None,
    )


def _of_user(spent: int, reserved: int, rule: UserRule, of_all: int, day: int) -> dict[str, Any]:
    """Return a user's day. A rule counts where there is a limit of all users."""
    limit = rule.limit if of_all and rule.limit is not None else of_all
    if rule.is_blocked and of_all:
        return {**_sums(spent, reserved, limit, day), "left_usd": 0.0, "blocked_until": None, "blocked": True}
    return {**_sums(spent, reserved, limit, day), "blocked": False}


def _sums(spent: int, reserved: int, limit: int, day: int) -> dict[str, Any]:
    return {
        "spent_usd": spent / MICRO,
        "reserved_usd": reserved / MICRO,
        "limit_usd": limit / MICRO if limit else None,
        "left_usd": max(limit - spent - reserved, 0) / MICRO if limit else None,
        "blocked_until": iso(end_of(day)) if limit and spent >= limit else None,
    }


ENDS = ("completed", "failed")


class ErrorBudgets:
    """Numbers of sagas by workflow. `percent` of them may fail; 0: there is no budget."""

    def __init__(self, percent: float) -> None:
        self._percent = percent
        self._sums: dict[str, list[int]] = {}

    def add(self, workflow: str, status: str, count: int = 1) -> None:
        """Add `count` ended sagas.

        Any other end than `completed` counts as failed; a cancelled saga counts as neither.
        """
        if status != "cancelled":
            self._sums.setdefault(workflow, [0, 0])[status != ENDS[0]] += count

    def rows(self) -> list[ErrorBudget]:
        """Return the rows, the workflow with the most failures first.

        `left`: number of sagas that may still fail; below 0, the number of failures over the budget.
        """
        ordered = sorted(self._sums.items(), key=lambda pair: (-pair[1][1], pair[0]))
        return [self._row(workflow, completed, failed) for workflow, (completed, failed) in ordered]

    def _row(self, workflow: str, completed: int, failed: int) -> ErrorBudget:
        allowed = round((completed + failed) * self._percent * 100) // 10_000 if self._percent else None
        left = None if allowed is None else allowed - failed
        return ErrorBudget(key=workflow, completed=completed, failed=failed, allowed=allowed, left=left)


def added_up(pages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the pages of a day into one answer."""
    first = pages[0]
    budgets = ErrorBudgets(first["percent"] or 0)
    for page in pages:
        for row in page["workflows"]:
            for status in ENDS:
                budgets.add(row["key"], status, row[status])
    rows = msgspec.to_builtins(budgets.rows())
    return {"day": first["day"], "percent": first["percent"], "workflows": rows}
