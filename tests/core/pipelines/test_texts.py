"""`regex_extract`, `parse_date`, `transform` and requests."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.pipelines import pipeline
from tests.core.pipelines.kit import MOST, broken, run
from tests.kit.sentences import Says


def extracted(text: Any, pattern: str, into: str | None = "found") -> Any:
    step = {"op": "regex_extract", "field": "text", "pattern": pattern} | ({"into": into} if into else {})
    (row,) = run([{"text": text}], step)
    assert row.pop("text") == text
    return row


def test_a_match_a_group_or_named_groups_become_fields() -> None:
    assert extracted("order 42, 43", "[0-9]+") == {"found": "42"}
    assert extracted("order 42, 43", "(ord)er ([0-9]+)") == {"found": "ord"}
    assert extracted("ü 2026-11", "(?P<year>[0-9]{4})-(?P<month>[0-9]{2})(?P<day>-..)?", None) == {
        "year": "2026", "month": "11", "day": None,
    }  # fmt: skip
    assert extracted("none", "[0-9]+") == {"found": None}
    assert extracted("none", "(?P<year>[0-9]{4})", None) == {"year": None}
    assert extracted(None, "[0-9]+") == {"found": None}


def test_only_texts_are_searched(says: Says) -> None:
    code, message = broken(
        [{"a": "1"}, {"a": 1}], {"op": "regex_extract", "field": "a", "pattern": ".", "into": "b"}
    )
    assert code == "pipeline_data"
    says(message)


@pytest.mark.parametrize(
    ("given", "step", "read"),
    [
        ("2026-11-21", {}, "2026-11-21T00:00:00.000Z"),
        ("2026-11-21T10:00:00.1239+02:00", {}, "2026-11-21T08:00:00.123Z"),
        ("2026-11-21 10:00", {"timezone": "Europe/Berlin"}, "2026-11-21T09:00:00.000Z"),
        ("2026-07-21 10:00", {"timezone": "Europe/Berlin"}, "2026-07-21T08:00:00.000Z"),
        ("2026-07-21T10:00Z", {"timezone": "Europe/Berlin"}, "2026-07-21T10:00:00.000Z"),
        ("21.11.2026", {"format": "%d.%m.%Y"}, "2026-11-21T00:00:00.000Z"),
        ("Nov 21, 2026 +0100", {"format": ["iso", "%b %d, %Y %z"]}, "2026-11-20T23:00:00.000Z"),
        (1_000_000_000, {"format": "unix"}, "2001-09-09T01:46:40.000Z"),
        ("1000000000", {"format": "unix"}, "2001-09-09T01:46:40.000Z"),
        (1_000_000_000_123, {"format": "unix_ms"}, "2001-09-09T01:46:40.123Z"),
        (None, {}, None),
        ("soon", {"strict": False}, None),
        (7, {"strict": False}, None),
        (True, {"strict": False, "format": "unix"}, None),
        ("21.11.2026" + " " * 100 + "x", {"strict": False, "format": "%d.%m.%Y x"}, None),
        (1e300, {"strict": False, "format": "unix"}, None),
        (10**400, {"strict": False, "format": "unix"}, None),
        ("0001-01-01T00:00+05:00", {"strict": False}, None),
    ],
)
def test_dates_become_iso_8601_in_utc(given: Any, step: dict[str, Any], read: str | None) -> None:
    assert run([{"at": given}], {"op": "parse_date", "field": "at", **step}) == [{"at": read}]
    assert run([{"at": given}], {"op": "parse_date", "field": "at", "into": "utc", **step}) == [
        {"at": given, "utc": read}
    ]


@pytest.mark.parametrize("value", ["soon", 7])
def test_what_is_no_date_is_told_with_its_row(value: Any, says: Says) -> None:
    rows = [{"at": "2026-11-21"}, {"at": value}]
    code, message = broken(rows, {"op": "parse_date", "field": "at", "format": ["iso", "%d.%m.%Y"]})
    assert code == "pipeline_data"
    says(message)


def test_any_json_becomes_other_json() -> None:
    answer = {"flights": [{"carrier": {"name": "Delta"}, "price": "299"}, {"carrier": {"name": "United"}}]}
    expression = "flights[].{airline: carrier.name, price: to_number(price || '0')}"
    assert run(answer, {"op": "transform", "expression": expression}) == [
        {"airline": "Delta", "price": 299},
        {"airline": "United", "price": 0},
    ]
    assert run(answer, {"op": "transform", "expression": "flights[?price != null] | length(@)"}) == 1
    assert (
        run(answer, {"op": "transform", "expression": "join('-', flights[].carrier.name)"}) == "Delta-United"
    )
    assert run([{"a": [1, [2]]}], {"op": "transform", "expression": "[].a[]"}) == [1, [2]]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("sum(@)", "/0/expression: In function sum(), invalid type for value: None, expected one of: ['array-number']"),
        ("foo(@)", "/0/expression: Unknown function: foo()"),
        ("join(`1`)", "/0/expression: Expected 2 arguments for function join(), received 1"),
        ("`[1]`[::0]", "/0/expression: "),
        ("ceil(to_number('1e999'))", "/0/expression: "),
    ],
)  # fmt: skip
def test_what_an_expression_cannot_work_with_is_told(expression: str, said: str) -> None:
    code, message = broken(None, {"op": "transform", "expression": expression})
    assert code == "pipeline_data"
    assert message.startswith(said)


@pytest.mark.parametrize("expression", ["to_number('1e999')", "to_number('nan')", "'\ud800'"])
def test_what_json_cannot_hold_is_no_result(expression: str, says: Says) -> None:
    code, message = broken(1, {"op": "transform", "expression": expression})
    assert code == "pipeline_invalid"
    says(message)


def test_answers_stand_where_requests_are_and_are_inputs_like_others() -> None:
    request = {"op": "http_request", "url": "https://x"}
    steps = [
        request | {"as": "prices"},
        request,
        {"op": "join", "with": "prices", "on": "id"},
        {"op": "join", "with": "names", "on": "id"},
    ]
    names = [{"id": 1, "name": "a"}]
    plan = pipeline.read_pipeline(steps, {"names": names}, requests=True)
    made = pipeline.run_pipeline(
        plan, {"names": names}, {0: [{"id": 1, "price": 2}], 1: [{"id": 1}]}, most_bytes=MOST
    )
    assert made.value == [{"id": 1, "price": 2, "name": "a"}]
