"""Agents side by side under one limit of tokens or dollars, and what must hold of it: by the books of their provider it is never passed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from baton.core.log.events import (
    AttemptFailed,
    Entry,
    Revived,
    SagaEnded,
    SagaStarted,
    StepFailed,
    StepInterrupted,
    StepSucceeded,
)
from baton.core.models.messages import request_bytes
from baton.core.models.usage import tokens_of
from baton.core.money import micro_dollars
from baton.ports import SagaRef
from baton.ports.models import ModelAnswer, ModelRequest
from baton.runtime.money.accounts import attempt_name
from tests.kit.scripted import Scripted, asks_for

if TYPE_CHECKING:
    from tests.kit.process import Process
    from tests.kit.simulated_models import Asked
    from tests.kit.world import World

MOST_OUTPUT = 300
AGENT = "agent: {model: m, prompt: Go on., tools: [add], turns: 100, calls: 100, max_output: 300}"


@dataclass(frozen=True)
class Limit:
    """Of a saga and of its node `a`: so many tokens, or micro-dollars. `code`: with which the saga ends."""

    of_saga: int
    of_node: int
    code: str


LIMITS: Mapping[str, Limit] = {
    "tokens": Limit(9_000, 4_000, "limit_tokens"),
    "dollars": Limit(40_000, 12_000, "limit_cost"),
}


def document(what: str) -> str:
    """Three agents that would go on for ever."""
    limit = LIMITS[what]
    said = (
        (f"tokens: {limit.of_saga}", f"tokens: {limit.of_node}")
        if what == "tokens"
        else (f"cost_usd: {limit.of_saga / 1_000_000}", f"cost_usd: {limit.of_node / 1_000_000}")
    )
    own = f"limits: {{{said[1]}}}, catch: {{code: {limit.code}, then: over}}"
    return f"""
name: {what}
limits: {{{said[0]}}}
nodes:
  a: {{{AGENT}, {own}}}
  b: {{{AGENT}}}
  c: {{{AGENT}}}
  over: {{value: 1}}
"""


def _goes_on(request: ModelRequest, number: int) -> ModelAnswer:
    """Asks for another call each time. It reads two bytes as one token, and writes nearly all that it may."""
    spoken = sum(int(message["role"] == "assistant") for message in request.messages)
    read = request_bytes(request.messages, [request.tools, request.schema]) // 2
    return asks_for(("add", {"numbers": [spoken]}), read=read, written=min(request.most_output, 280))


async def spends(
    world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any], what: str
) -> str:
    """The saga of that name, until it is at its limit."""
    world.models = Scripted(_goes_on)
    return await start(world, document(what), {}, what)


THRIFTY = {what: partial(spends, what=what) for what in LIMITS}


def of_limits(world: World, logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """What a provider bills for a saga is within its limits, and the saga ends with the code of the limit."""
    for saga, entries in logs.items():
        events = [event for entry in entries for event in entry.events]
        workflow = next((event.workflow for event in events if isinstance(event, SagaStarted)), "")
        if (limit := LIMITS.get(workflow)) is None:
            continue
        mine = [one for one in world.asked if one.place[0] == saga]
        unsaid = _unsaid(entries, mine, workflow)
        for most, whose, asked in (
            (limit.of_saga, "the saga", mine),
            (limit.of_node, "node `a`", [one for one in mine if one.place[1].startswith("a#")]),
        ):
            billed = sum(_billed(one, workflow) for one in asked)
            if billed > most + unsaid:
                yield f"{whose} may use {most} {workflow}, and its provider bills {billed}"
        end = next((event for event in reversed(events) if isinstance(event, SagaEnded)), None)
        code = end.failure.code if end is not None and end.failure is not None else "none"
        if end is not None and code != limit.code:
            yield f"{saga} has ended with `{code}` and not with `{limit.code}`"


def _billed(one: Asked, what: str) -> int:
    """What the provider counts, whether or not a worker has heard the answer; of dollars then the most that it can be."""
    return micro_dollars(one.bill) if what == "dollars" else tokens_of([_goes_on(one.request, 0).usage])


def _unsaid(entries: list[Entry], asked: list[Asked], what: str) -> int:
    """What the log need not have (docs/money.md): answers whose worker died before it had written them.

    And what it had cut off and settled, and died before it had written that. And all that the dead had asked for, where the next worker died before it could say so; or that a worker had asked for
    which gave up because it had no answer to what it wrote last.
    """
    wrote = {entry.invocation for entry in entries}
    said = {
        (entry.invocation, event.slot)
        for entry in entries
        for event in entry.events
        if isinstance(event, StepSucceeded | StepFailed | AttemptFailed | StepInterrupted)
    }
    is_silent = any(
        isinstance(event, Revived) and event.dead not in wrote for entry in entries for event in entry.events
    )
    return sum(
        _billed(one, what)
        for one in asked
        if (
            (one.heard or _gave_up(one.process) or _has_settled(one))
            and (one.process.id, one.place[1]) not in said
        )
        or (is_silent and not one.heard)
    )


def _has_settled(one: Asked) -> bool:
    from tests.kit.world import TENANT  # it imports this file

    saga, slot = one.place
    return attempt_name(str(SagaRef(TENANT, saga)), slot) in one.process.settled


def _gave_up(process: Process) -> bool:
    return process.has_failed and process.unanswered > 0
