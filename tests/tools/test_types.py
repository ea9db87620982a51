"""Types of existing code in parameters and results: what travels, in which form, and what is refused with its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, condecimal

from baton import Workflow
from baton.core.conditions import schema
from baton.core.effects.toolspec import ToolSpec
from baton.ports import StepContext, StepFailure
from baton.testing import run
from baton.tools.define import Registry, tool
from baton.tools.perform import ToolPerformer
from tests.kit.sentences import Says

CONTEXT = StepContext(saga="s1", tenant="acme", user="ada", node="n", idempotency_key="k", deadline_ms=9)


class Price(BaseModel):
    amount: Decimal
    fee: Annotated[Decimal, Field(ge=0, max_digits=6, decimal_places=2)] = Decimal("0.50")


@dataclass
class Order:
    total: Decimal
    tags: set[str] = field(default_factory=set)


def echo(hint: Any) -> Callable[..., Any]:
    async def give(value: Any) -> Any:
        return value

    give.__annotations__.update({"value": hint, "return": hint})
    return give


def made(hint: Any) -> Registry:
    registry = Registry()
    tool("echo", registry=registry)(echo(hint))
    return registry


def through(hint: Any, value: Any) -> Any:
    """What a tool gives that returns its argument."""
    return asyncio.run(ToolPerformer(made(hint)).perform("echo", {"value": value}, CONTEXT))


def returned(hint: Any, value: Any) -> Any:
    registry = Registry()

    async def give() -> Any:
        return value

    give.__annotations__["return"] = hint
    tool("give", registry=registry)(give)
    return asyncio.run(ToolPerformer(registry).perform("give", {}, CONTEXT))


def refused(hint: Any, value: Any) -> str:
    with pytest.raises(StepFailure) as caught:
        returned(hint, value)
    assert caught.value.code == "result_invalid"
    return caught.value.message


# ---- Decimal -------------------------------------------------------------------------------------------------


def spec(hint: Any) -> ToolSpec:
    return made(hint)["echo"].spec


@pytest.mark.parametrize("hint", [Decimal, Decimal | None, dict[str, Decimal], Price, Order, list[Price]])
def test_the_schemas_of_a_decimal_can_be_used_everywhere(hint: Any) -> None:
    schema.check_schema(spec(hint).parameters)
    schema.check_schema(spec(hint).result)


def test_a_decimal_travels_as_its_text_and_comes_from_text_or_number() -> None:
    assert through(Decimal, "1.50") == "1.50"
    assert through(Decimal, 0.1) == "0.1"
    assert through(Decimal, "12345678901234567890.123456789") == "12345678901234567890.123456789"
    assert returned(Decimal, Decimal("1E+5")) == "1E+5"


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (Decimal, ["1", "-1.5", "+.5", "1.", "1E+5", 1.5, 7], ["", ".", "-", "1.2.3", "x", "NaN", True]),
        (condecimal(max_digits=6, decimal_places=2), ["9999.99", "0001.5000"], ["12345", "1.555"]),
        (condecimal(max_digits=3), ["123", "1.23"], ["1234"]),
        (condecimal(max_digits=2, decimal_places=2), ["0.99", ".5"], ["1.0"]),
        (condecimal(decimal_places=0), ["12", "12.0"], ["12.5"]),
        (condecimal(gt=0, le=100), ["5", 5], ["-5", -5, 101]),
    ],
)
def test_the_schema_of_a_decimal_takes_what_the_type_takes(
    hint: Any, good: list[Any], bad: list[Any]
) -> None:
    its = spec(hint).parameters
    assert [one for one in good if schema.violations(its, {"value": one})] == []
    assert [one for one in bad if not schema.violations(its, {"value": one})] == []


def test_what_a_decimal_tool_gives_fits_its_own_schema() -> None:
    for value in (Decimal("1E+5"), Decimal("-0.10"), Decimal(3)):
        assert schema.violations(spec(Decimal).result, returned(Decimal, value)) == ()


def test_a_model_with_decimals_is_the_input_of_a_workflow() -> None:
    workflow = Workflow("pay", input=Price)
    step = workflow.task("step", "echo", with_={"value": workflow.input})
    workflow.output(step.output)
    result = run(workflow, {"amount": "1.10"}, tools=made(Price))
    assert result.output == {"amount": "1.10", "fee": "0.50"}


# ---- aliases, strict models, bytes ---------------------------------------------------------------------------


class Aliased(BaseModel):
    count: int = Field(alias="theCount")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    amount: Decimal


class Blob(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    data: bytes


def test_a_result_has_the_names_that_its_schema_has_and_that_the_next_tool_takes() -> None:
    assert through(Aliased, {"theCount": 1}) == {"theCount": 1}


def test_a_strict_model_is_read_as_json() -> None:
    assert through(Strict, {"amount": "1.5"}) == {"amount": "1.5"}


def test_bytes_in_base64_come_back_as_they_were() -> None:
    assert through(Blob, {"data": "_wA="}) == {"data": "_wA="}
    assert returned(Blob, Blob(data=b"\xff\x00")) == {"data": "_wA="}


# ---- what JSON cannot hold -----------------------------------------------------------------------------------


def test_a_number_that_is_none_is_refused_with_its_place(says: Says) -> None:
    message = refused(dict[str, list[float]], {"a": [1.0, float("nan")]})
    says(message)
    assert "inf at /" in refused(float, float("inf"))


def test_a_number_that_is_none_is_refused_as_an_argument() -> None:
    with pytest.raises(StepFailure, match="finite number"):
        through(float, "NaN")


@pytest.mark.parametrize("hint", [Any, dict[Any, Any], dict[int | str, str], object])
def test_two_keys_that_become_one_are_refused_with_their_place(hint: Any, says: Says) -> None:
    says(refused(hint, {1: "a", "1": "b"}))


def test_two_keys_that_become_one_are_found_inside(says: Says) -> None:
    @dataclass
    class Holder:
        rows: Any

    value = {"a": [{"x": 1}, Holder(rows=({None: 1, "None": 2},))]}
    says(refused(Any, value))
    assert returned(Any, {1: "a", "2": ["b", {True: 1}]}) == {"1": "a", "2": ["b", {"true": 1}]}


def test_bytes_that_are_no_text_are_refused_with_what_would_be_right(says: Says) -> None:
    says(refused(bytes, b"\xff"))
