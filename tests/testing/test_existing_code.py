"""Code that was there before Baton: typed functions, exception classes and dataclasses, in a workflow function."""

from __future__ import annotations

from baton import WorkflowContext, raises, workflow
from baton.testing import run
from baton.tools.define import Registry

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
