"""A stand-in that cannot take what it is given is refused before the run, with what would be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from baton import Context, tool
from baton.testing import Result, run
from baton.tools.define import Registry, ToolError

BEGUN: list[str] = []


def shop() -> Registry:
    registry = Registry()

    @tool("shop.look", registry=registry)
    def look() -> None:
        BEGUN.append("look")

    @tool("shop.charge", registry=registry)
    async def charge(cents: int, context: Context, note: str = "") -> str:
        return f"{cents}{note}{context.user}"

    return registry


def with_(stand_in: Any) -> Result:
    BEGUN.clear()
    document = "name: w\nnodes: {a: {tool: shop.look}, b: {tool: shop.charge, after: a, with: {cents: 1}}}"
    return run(document, tools=shop(), stand_ins={"shop.charge": stand_in})


RIGHT = (
    "its arguments are passed by keyword: write `def charge(cents, note)`, with `context` if it is wanted, or `**given` for "
    "what it has no use for"
)


@pytest.mark.parametrize(
    ("stand_in", "message"),
    [
        (lambda: "", "it takes no `cents` and no `note`"),
        (lambda cents: "", "it takes no `note`"),
        (lambda cent, note: "", "it takes no `cents`, and wants `cent`, which it is not given"),
        (lambda cents, /, note: "", "it takes `cents` by position only"),
        (lambda cents, note, clock: "", "it wants `clock`, which it is not given"),
        (lambda cents, *, clock, **given: "", "it wants `clock`, which it is not given"),
        (lambda *given: "", "it takes no `cents` and no `note`"),
    ],
)
def test_a_stand_in_with_the_wrong_signature_is_refused_before_the_run(
    stand_in: Callable[..., Any], message: str
) -> None:
    with pytest.raises(ToolError) as error:
        with_(stand_in)
    assert str(error.value) == f"stand-in for `shop.charge`: {message}; {RIGHT}"
    assert BEGUN == []


@pytest.mark.parametrize("thing", [7, "paid"])
def test_what_is_no_function_is_refused(thing: object) -> None:
    with pytest.raises(
        ToolError, match=r"^stand-in for `shop.charge`: it is a (int|str), and no function; write `def "
    ):
        with_(thing)


@pytest.mark.parametrize(
    "stand_in",
    [
        lambda cents, note: "",
        lambda note, cents, context: context.user,
        lambda cents, note="x", clock=None: "",
        lambda **given: str(given["context"].user),
        lambda cents, **given: "",
    ],
)
def test_one_that_takes_all_of_it_is_called(stand_in: Callable[..., Any]) -> None:
    assert with_(stand_in).status == "completed"
