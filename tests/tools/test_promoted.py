"""A pipeline with a name is a tool like any other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import StepFailure, pipeline
from baton.core.limits import Limits
from baton.ports import StepContext
from baton.tools.define import Registry, ToolError
from baton.tools.perform import ToolPerformer
from tests.kit.sentences import Says

STEPS = [{"op": "table_sort", "by": "price"}, {"op": "top_k", "k": 2}]
CONTEXT = StepContext(saga="s", tenant="acme", user="ann", node="n")
ROWS = [{"price": 3}, {"price": 1}, {"price": 2}]


def declared(steps: list[Any] | None = None, inputs: tuple[str, ...] = ("rows",)) -> Registry:
    registry = Registry()
    pipeline("pipeline.cheapest", "The two cheapest.", steps or STEPS, inputs=inputs, registry=registry)
    return registry


def called(registry: Registry, data: Any) -> Any:
    return asyncio.run(ToolPerformer(registry).perform("pipeline.cheapest", {"data": data}, CONTEXT))


def test_it_does_its_steps_with_the_data_that_it_is_given() -> None:
    registry = declared()
    assert called(registry, {"rows": ROWS}) == [{"price": 1}, {"price": 2}]
    assert called(registry, {"rows": []}) == []
    spec = registry.specs()["pipeline.cheapest"]
    assert (spec.effect, spec.description) == ("pure", "The two cheapest.")
    assert spec.parameters["properties"]["data"]["required"] == ["rows"]


def test_its_version_says_which_steps_and_inputs_it_has() -> None:
    version = declared().specs()["pipeline.cheapest"].version
    assert version == declared().specs()["pipeline.cheapest"].version
    other = declared([{"op": "top_k", "k": 3}]).specs()["pipeline.cheapest"]
    assert other.version != version


@pytest.mark.parametrize("data", [{}, {"row": ROWS}, {"rows": ROWS, "more": 1}])
def test_data_of_other_names_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(StepFailure, match="it takes rows") as caught:
        called(declared(), data)
    assert caught.value.code == "input_invalid"


def test_data_that_a_step_cannot_work_with_are_a_failure_with_the_place() -> None:
    with pytest.raises(StepFailure, match="/0") as caught:
        called(declared(), {"rows": [{"price": 1}, {"price": "x"}]})
    assert caught.value.code == "pipeline_data"


def test_a_mistake_in_its_steps_stops_the_import_with_all_of_them(says: Says) -> None:
    with says.raised(ToolError) as caught:
        declared([{"op": "tabel_sort"}, {"op": "top_k", "k": "two"}])
    assert "pipeline.cheapest" in str(caught.value)


def test_it_sends_no_requests() -> None:
    with pytest.raises(ToolError, match="sends no requests"):
        declared([{"op": "http_request", "url": "https://a.example"}])


def test_one_name_has_one_pipeline(says: Says) -> None:
    registry = declared()
    pipeline("pipeline.cheapest", "The two cheapest.", STEPS, inputs=["rows"], registry=registry)
    with says.raised(ToolError):
        pipeline("pipeline.cheapest", "x", STEPS[1:], inputs=["rows"], registry=registry)


def test_its_result_is_no_larger_than_that_of_any_step() -> None:
    registry = declared([{"op": "transform", "expression": "join('', rows)", "input": "all"}], ("all",))
    with pytest.raises(StepFailure) as caught:
        called(registry, {"all": {"rows": ["x" * 1_000] * (Limits().result_bytes // 1_000 + 1)}})
    assert caught.value.code == "pipeline_too_large"
