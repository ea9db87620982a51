"""Code that was there before Baton: typed functions, exception classes and dataclasses, in a workflow function."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pytest
from pydantic import BaseModel

from baton import StepFailure, WorkflowContext, raises, tool, workflow
from baton.testing import run
from baton.tools.define import Registry
from tests.kit.sentences import Says

REGISTRY = Registry()


class CardDeclinedError(Exception):
    pass


raises({CardDeclinedError: ("card_declined", "permanent")}, registry=REGISTRY)


def charge(order: str) -> str:
    raise CardDeclinedError("no cover")


@workflow("plain", registry=REGISTRY)
async def plain(order: str, context: WorkflowContext) -> str:
    return await context.step(charge, order)


def test_what_an_application_raises_has_its_code_in_a_plain_function_too() -> None:
    result = run(plain, {"order": "o1"}, tools=REGISTRY)
    assert str(result.error).startswith("card_declined: ")
    assert result.attempts("charge") == 1


class OutError(Exception):
    """A class whose instances cannot be made of a message, nor written."""

    __slots__ = ("left",)

    def __init__(self, *, left: int) -> None:
        self.left = left

    def __str__(self) -> str:
        return f"{self.left} left"

    @property
    def code(self) -> int:
        return 7

    def __setattr__(self, name: str, value: object) -> None:
        if name == "code":
            raise AttributeError(name)
        super().__setattr__(name, value)


class NoAnswerError(ConnectionError):
    """Of a class of Python that makes its instances itself."""


class LimitError(CardDeclinedError):
    """Derived, and declared with the same code."""


class LoudError(Exception):
    def __init_subclass__(cls) -> None:
        raise RuntimeError("it has no subclasses")


RAISED: dict[str, BaseException] = {
    "out": OutError(left=2),
    "no": NoAnswerError(111, "refused"),
    "declined": CardDeclinedError("no cover"),
    "limit": LimitError("too much"),
    "loud": LoudError("no"),
    "stop": StepFailure("stopped", "no", kind="permanent"),
    "key": KeyError("k"),
}
CODES: dict[type[BaseException], tuple[str, str]] = {
    OutError: ("out_of_stock", "permanent"),
    NoAnswerError: ("no_answer", "permanent"),
    LimitError: ("card_declined", "permanent"),
    LoudError: ("loud", "permanent"),
    StopIteration: ("stopped", "permanent"),
    KeyError: ("not_listed", "permanent"),
}


@tool("existing.reserve", registry=REGISTRY, raises=CODES)
async def reserve(how: str) -> None:
    raise RAISED[how]


@workflow("catches", registry=REGISTRY)
async def catches(how: str, context: WorkflowContext) -> str:
    try:
        await context.step(reserve, how)
    except OutError as error:
        return f"out: {error} {error.code}"
    except NoAnswerError as error:
        return f"no answer: {error} {error!r}"
    except CardDeclinedError as error:
        return f"declined: {error}"
    except KeyError as error:
        return f"key: {error}"
    except StepFailure as failure:
        return f"step: {failure.code}"
    return ""


@pytest.mark.parametrize("kills", [{}, {"reserve": "after"}])
@pytest.mark.parametrize(
    ("how", "caught"),
    [
        ("out", "out: OutError: 2 left"),
        ("no", "no answer: NoAnswerError: [Errno 111] refused"),
        ("declined", "declined: CardDeclinedError: no cover"),
        ("limit", "declined: LimitError: too much"),
        ("key", "key: KeyError: 'k'"),
        ("loud", "step: loud"),
        ("stop", "step: stopped"),
    ],
)
def test_a_failure_is_caught_as_the_class_that_is_declared_with_its_code(
    how: str, caught: str, kills: dict[str, str]
) -> None:
    result = run(catches, {"how": how}, tools=REGISTRY, kills=kills)
    assert str(result.output).startswith(caught)


@workflow("passes", registry=REGISTRY)
async def passes(how: str, context: WorkflowContext) -> str:
    try:
        await context.step(reserve, how)
    except OutError as error:
        if how == "out":
            raise
        return str(error.left)
    except StepFailure as failure:
        return f"{type(failure).__name__} {failure.code} {isinstance(failure, CardDeclinedError)}"
    return ""


def test_it_is_a_step_failure_too_and_fails_the_saga_with_its_code() -> None:
    assert run(passes, {"how": "declined"}, tools=REGISTRY).output == "LimitError card_declined True"
    assert str(run(passes, {"how": "out"}, tools=REGISTRY).error).startswith("out_of_stock: OutError: 2 left")


def test_what_an_instance_of_its_class_would_have_is_missed_with_what_it_has(says: Says) -> None:
    @workflow("looks", registry=(registry := Registry()))
    async def looks(context: WorkflowContext) -> int:
        try:
            await context.step(reserve, "out")
        except OutError as error:
            return error.left
        return 0

    tool("existing.reserve", registry=registry, raises=CODES)(reserve)
    says(run(looks, tools=registry).error)


class Address(BaseModel):
    city: str


@dataclass
class Order:
    id: str
    cents: Decimal
    to: Address


@workflow("ordered", registry=REGISTRY)
async def ordered(order: Order, context: WorkflowContext) -> str:
    paid = await context.signal("paid", schema=Order)
    return f"{order.id} {order.cents} {order.to.city} {paid == order}"


def test_dataclasses_and_models_are_an_input_and_a_payload_as_they_are() -> None:
    order = Order("o1", Decimal("1.50"), Address(city="Ulm"))
    result = run(ordered, {"order": order}, tools=REGISTRY, signals={"paid": order})
    assert result.output == "o1 1.50 Ulm True"
    with pytest.raises(ValueError, match="the input is not JSON"):
        run(ordered, {"order": object()}, tools=REGISTRY)
