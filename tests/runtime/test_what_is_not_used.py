"""What a step does not use is not made for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from baton import Context, tool
from baton.core.effects.keys import KeyRule
from baton.core.effects.toolspec import ToolSpec
from baton.core.failures.alternatives import Alternative
from baton.core.log.events import Failure, Value
from baton.ports import StepContext
from baton.runtime.invocation.attempt import Values
from baton.runtime.steps.steps import Steps
from baton.tools.define import Registry
from tests.runtime.desk import Desk, run, state, step

REGISTRY = Registry()


@tool("blind", registry=REGISTRY)
async def blind(n: int) -> int:
    return n


@tool("sighted", registry=REGISTRY)
async def sighted(n: int, context: Context) -> int:
    return n


@tool("helper", registry=REGISTRY, carries_out="refresh_credentials")
async def helper(context: Context) -> None: ...


class Watched:
    """A performer that keeps the keys of what it is to call."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        self.keys.append(context.idempotency_key)
        return {}


def keys(spec: ToolSpec | None, **more: Any) -> list[str]:
    """Those of one attempt of a step of this tool."""
    desk, performer, once = Desk(), Watched(), Any
    specs = {**REGISTRY.specs(), **({} if spec is None else {"t": spec})}
    here = desk.context()
    steps = Steps(here, performer, specs, desk.ledger, once, Values(here))  # type: ignore[arg-type]  # nothing here happens only once
    outcome = run(steps.run(state(), replace(step(), arguments={"n": 1}, **more), "", []))
    assert outcome.output == Value(v={}), outcome
    return performer.keys


def test_a_tool_that_cannot_see_its_key_gets_none() -> None:
    assert keys(REGISTRY["blind"].spec) == [""]


@pytest.mark.parametrize(
    ("spec", "more"),
    [
        (REGISTRY["sighted"].spec, {}),
        (replace(REGISTRY["blind"].spec, key=KeyRule(strategy="saga")), {}),
        (REGISTRY["blind"].spec, {"hooks": ("helper",)}),
        (REGISTRY["blind"].spec, {"way": Alternative(name="helper", tool="helper")}),
        (None, {}),
    ],
    ids=["takes the context", "says what its key is", "has a hook", "another way", "is not known"],
)
def test_where_a_key_may_matter_every_call_has_one(spec: ToolSpec | None, more: dict[str, Any]) -> None:
    failure = Failure("unauthorized", "who are you?", "a", attempt=1) if more else None
    found = keys(spec, failure=failure, **more)
    assert found
    assert all(len(key) == 32 for key in found)
