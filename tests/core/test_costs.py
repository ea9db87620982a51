"""What usage costs: the prices by hand, and the answer that shows them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from baton.core.log import events as ev
from baton.core.models.usage import Usage as Tokens
from baton.core.read import costs
from baton.core.read.costs import (
    ModelCosts,
    Price,
    Usage,
    bill,
    charge,
    cost_view,
    per_million_steps,
    total_of,
)
from tests.core.build import entry
from tests.kit.views import as_json

USAGE = Usage(
    write_units=21,
    read_units=3,
    sqs_requests=3,
    http_requests=1,
    lambda_requests=3,
    gb_seconds=0.15,
    blob_puts=2,
    blob_gets=4,
)


def test_a_bill_is_usage_times_prices() -> None:
    assert {line.what: (line.quantity, line.unit) for line in bill(USAGE)} == {
        "DynamoDB writes": (21, "write units"),
        "DynamoDB reads": (3, "read units"),
        "SQS requests": (3, "requests"),
        "API Gateway HTTP requests": (1, "requests"),
        "Lambda requests": (3, "requests"),
        "Lambda time": (0.15, "GB-seconds"),
        "S3 PUT": (2, "requests"),
        "S3 GET": (4, "requests"),
    }
    dollars = 21 * 0.625 + 3 * 0.125 + 3 * 0.4 + 1.0 + 3 * 0.2 + 0.15 * 13.3334 + 2 * 5 + 4 * 0.4
    assert total_of(bill(USAGE)) == pytest.approx(dollars / 1e6)
    assert per_million_steps(bill(USAGE), 10) == pytest.approx(dollars / 10)


def test_no_steps_cost_nothing_per_step() -> None:
    assert per_million_steps(bill(USAGE), 0) == 0


def test_what_was_not_used_is_on_the_bill_for_nothing() -> None:
    assert {line.usd for line in bill(Usage())} == {0.0}


def test_the_answer_says_what_was_estimated_by_which_prices() -> None:
    view = as_json(cost_view("s1", "running", USAGE, 10, 2))
    assert view["saga"] == "s1"
    assert (view["status"], view["estimated"], view["steps"], view["invocations"]) == ("running", True, 10, 2)
    assert view["priced"] == {"region": "us-east-1", "date": costs.DATE}
    assert (
        view["usd"]["total"] == view["usd"]["aws"] == pytest.approx(sum(line["usd"] for line in view["aws"]))
    )
    assert (view["usd"]["models"], view["models"]) == (0.0, [])
    assert view["aws"][0] == {
        "what": "DynamoDB writes",
        "quantity": 21,
        "unit": "write units",
        "usd": pytest.approx(21 * 0.625e-6),
    }
    assert view["usd_per_million_steps"] == pytest.approx(view["usd"]["total"] * 1e5, abs=1e-3)


def test_what_models_were_paid_is_in_the_sum() -> None:
    costs = ModelCosts()
    asked = Tokens(model="m", input=100, cached=50, output=10, reasoning=5, cost=200)
    about: dict[str, Any] = {"attempt": 1, "started_at": 1, "ended_at": 2, "tool": "std.model"}
    about |= {"tool_version": "1", "schema_hash": "h", "usage": (asked,)}
    costs.add(entry(1, ev.StepSucceeded(node="a", item="t1", output=ev.Value(), **about)))
    costs.add(entry(2, ev.AttemptFailed(node="a", failure=ev.Failure("x", "y"), **about), ev.GaveUp()))
    for cache in (ev.HIT, ev.HIT, ev.MISS, ""):
        costs.add(
            entry(3, ev.StepSucceeded(node="b", output=ev.Value(), cache=cache, **about | {"usage": ()}))
        )
    assert costs.cache == {ev.HIT: 2, ev.MISS: 1}
    (line,) = as_json(costs.lines())
    assert line == {
        "what": "m", "node": "a", "quantity": 220, "unit": "tokens", "usd": 0.0004,
        "requests": 2, "input": 200, "cached": 100, "output": 20,
    }  # fmt: skip
    view = as_json(cost_view("s1", "running", USAGE, 10, 2, costs.lines()))
    assert view["usd"]["models"] == 0.0004
    assert view["usd"]["total"] == pytest.approx(view["usd"]["aws"] + 0.0004)


def test_a_saga_without_steps_has_no_price_per_step() -> None:
    assert as_json(cost_view("s1", "waiting", USAGE, 0, 1))["usd_per_million_steps"] is None


def test_every_price_has_a_page_of_aws_and_says_how_it_was_confirmed() -> None:
    table = [price for price in vars(costs).values() if isinstance(price, Price)]
    assert len(table) == 13
    for price in table:
        assert re.match(r"https://(aws|docs\.aws)\.amazon\.com/", price.page)
        assert price.confirmed in {costs.ON_AWS, costs.BY_OTHERS}
        assert charge(price, 1_000_000).usd == pytest.approx(price.usd_per_million)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", costs.DATE)
