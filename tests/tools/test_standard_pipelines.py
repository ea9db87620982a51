"""`std.pipeline` and `std.http_pipeline`, as a worker runs them: results, failures, and requests to a server on loopback."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.core.effects.toolspec import Grants
from baton.ports import StepFailure
from baton.tools.perform import ToolPerformer
from baton.tools.standard import standard_tools, with_standard
from tests.kit.sentences import Says
from tests.tools.outside import Outside, context, failure, perform, services
from tests.tools.test_performing import run
from tests.tools.test_standard import app

HERE = services()
FLIGHTS = [
    {"airline": "Delta", "price": 299},
    {"airline": "United", "price": 199},
    {"airline": "Delta", "price": 399},
]
CHEAPEST = [
    {"op": "table_filter", "where": {"field": "price", "op": "lt", "value": 350}},
    {"op": "table_sort", "by": "price"},
]


def test_a_pipeline_gives_its_table_the_number_of_its_rows_and_a_preview() -> None:
    assert perform("std.pipeline", HERE, data={"flights": FLIGHTS}, steps=CHEAPEST, preview=1) == {
        "result": [FLIGHTS[1], FLIGHTS[0]], "row_count": 2, "preview": [FLIGHTS[1]], "notes": [],
    }  # fmt: skip


def test_it_is_pure_and_runs_in_a_thread_and_one_with_requests_is_idempotent() -> None:
    tools = standard_tools()
    assert (tools["std.pipeline"].spec.effect, tools["std.pipeline"].is_async) == ("pure", False)
    assert (tools["std.http_pipeline"].spec.effect, tools["std.http_pipeline"].is_async) == (
        "idempotent",
        True,
    )


def test_a_model_or_an_author_sees_every_step_in_its_schema() -> None:
    steps = {
        name: standard_tools()[name].spec.parameters["properties"]["steps"]
        for name in ("std.pipeline", "std.http_pipeline")
    }
    ops = {
        name: [one["properties"]["op"]["const"] for one in one["items"]["anyOf"]]
        for name, one in steps.items()
    }
    assert len(ops["std.pipeline"]) == 9
    assert set(ops["std.http_pipeline"]) - set(ops["std.pipeline"]) == {"http_request"}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"steps": [{"op": "table_sorted"}], "data": {"t": []}}, "pipeline_invalid"),
        ({"steps": [{"op": "http_request", "url": "https://x"}], "data": {}}, "pipeline_invalid"),
        ({"steps": CHEAPEST, "data": {"t": [{"price": "1"}]}}, "pipeline_data"),
        ({"steps": CHEAPEST, "data": {"t": ["x" * 200_000]}}, "pipeline_too_large"),
        ({"steps": CHEAPEST, "data": []}, "input_invalid"),
        ({"steps": CHEAPEST, "data": {"t": []}, "preview": 51}, "input_invalid"),
    ],
)  # fmt: skip
def test_a_failure_has_its_code_and_all_that_is_wrong(given: dict[str, Any], code: str, says: Says) -> None:
    error = failure("std.pipeline", HERE, **given)
    assert error.code == code
    says(error.message)


def test_requests_are_sent_by_the_rules_of_std_http_and_their_answers_are_tables(server: Outside) -> None:
    flights = server.page("/flights", body=json.dumps({"found": FLIGHTS}).encode())
    names = server.page("/names", body=b'[{"airline": "Delta", "name": "Delta Air Lines"}]')
    steps = [
        {"op": "http_request", "url": names, "as": "names"},
        {"op": "http_request", "url": flights, "method": "POST", "json": {"from": "NYC"}, "query": {"to": "LAX"}, "headers": {"x-a": "1"}, "timeout": "5s"},
        {"op": "transform", "expression": "found"},
        {"op": "join", "with": "names", "on": "airline"},
        {"op": "groupby", "by": "name", "aggregates": {"low": {"fn": "min", "field": "price"}}},
    ]  # fmt: skip
    before = len(server.seen)
    for attempt in (1, 2):
        made = perform("std.http_pipeline", HERE, context("k7", attempt=attempt), steps=steps)
        assert made["result"] == [{"name": "Delta Air Lines", "low": 299}]
    assert [(method, path) for method, path, _, _ in server.seen[before:]] == [
        ("GET", "/names"),
        ("POST", "/flights?to=LAX"),
    ] * 2
    assert [headers.get("idempotency-key") for _, _, headers, _ in server.seen[before:]] == [None, "k7-1"] * 2
    assert (server.headers["x-a"], server.seen[-1][3]) == ("1", b'{"from":"NYC"}')


def test_a_request_that_fails_is_the_steps_failure_with_its_place(server: Outside) -> None:
    good, bad = (
        server.page("/good", body=b"[]"),
        server.page("/bad", 429, b'{"detail": "slow"}', retry_after="7"),
    )
    steps = [
        {"op": "http_request", "url": good, "as": "a"},
        {"op": "http_request", "url": bad},
        {"op": "join", "with": "a", "on": "k"},
    ]
    error = failure("std.http_pipeline", HERE, steps=steps)
    assert (error.code, error.status, error.retry_after) == ("rate_limited", 429, "7")
    assert error.message == "/1: 127.0.0.1 answered 429: slow"


def test_nothing_is_sent_for_a_pipeline_with_a_mistake(server: Outside) -> None:
    before = len(server.seen)
    steps = [{"op": "http_request", "url": server.page("/"), "method": "POST"}, {"op": "table_sort"}]
    error = failure("std.http_pipeline", HERE, steps=steps)
    assert (error.code, error.happened) == ("pipeline_invalid", False)
    assert len(server.seen) == before


def test_it_comes_with_std_http_and_a_pipeline_alone_reaches_nothing() -> None:
    assert set(with_standard(app(), grants=Grants.of("std.pipeline"))) == {"table.hold", "std.pipeline"}
    assert "std.http_pipeline" in with_standard(app(), grants=Grants.of("std.http"))
    tools = ToolPerformer(with_standard(app(), HERE, Grants.of("std.pipeline=acme")))
    given = {"steps": CHEAPEST, "data": {"t": FLIGHTS}}
    assert run(tools.perform("std.pipeline", given, context(tenant="acme")))["row_count"] == 2
    with pytest.raises(StepFailure, match="StandardTools") as caught:
        run(tools.perform("std.pipeline", given, context(tenant="globex")))
    assert caught.value.code == "permission_denied"
