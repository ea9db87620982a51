"""What became of a step, and the event that says so: tokens consumed, tokens emitted, outputs forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from baton.core import events as ev
from baton.core.graph import Node
from baton.core.program import Program
from baton.core.rows import Row
from baton.core.state import State, node_of, slot_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of one attempt of the step at `slot`: exactly one of output, failure or interruption.

    `tool_version` and `schema_hash` are those of the code that ran. `budget_ms` is set for an
    interruption: the time from the step's start to the cut. `rows` go into the transaction of its entry.
    """

    slot: str
    attempt: int
    started_at: int
    ended_at: int
    tool_version: str = ""
    schema_hash: str = ""
    output: ev.Value | None = None
    failure: ev.Failure | None = None
    budget_ms: int = 0
    rows: tuple[Row, ...] = ()


def refused(outcome: Outcome, why: str) -> Outcome:
    """What becomes of an outcome whose rows the table will not take; one without rows stays as it is."""
    if not outcome.rows:
        return outcome
    name, _ = node_of(outcome.slot)
    failure = ev.Failure("rows_refused", f"the table refuses the rows of this step: {why}"[:2_000], name)
    return replace(outcome, output=None, failure=failure, rows=())


class _Place(Protocol):
    @property
    def program(self) -> Program: ...
    @property
    def state(self) -> State: ...


@dataclass(frozen=True, slots=True)
class _At:
    program: Program
    state: State


def settling(place: _Place, slot: str, node: Node, *, alive: bool, output: bool = False) -> dict[str, Any]:
    """The token part of the event that settles `slot`: `emits`, `forget`, and `keep` where there is output."""
    program, state = place.program, place.state
    _, iteration = node_of(slot)
    emits = tuple(ev.Token(node.name, follower, iteration, alive) for follower in node.after)
    in_flight = [other for other in state.tokens if other != slot]
    ahead = program.ahead_of(in_flight + [slot_of(token.dst, token.iteration) for token in emits])
    forget = tuple(name for name in state.outputs if not program.is_needed(name, ahead))
    result: dict[str, Any] = {"emits": emits, "forget": forget}
    if output:
        result["keep"] = program.is_needed(node.name, ahead)
    return result


def settle(program: Program, state: State, outcome: Outcome) -> Iterator[ev.Event]:
    """The event for an outcome; none when its slot is not waiting any more, or the saga has ended."""
    name, iteration = node_of(outcome.slot)
    if (
        len(state.tokens.get(outcome.slot, ())) < max(program.joins.get(name, 1), 1)
        or state.ended is not None
    ):
        return
    node = program.nodes[name]
    place: dict[str, Any] = {
        "node": name,
        "iteration": iteration,
        "started_at": outcome.started_at,
        "ended_at": outcome.ended_at,
    }
    ran: dict[str, Any] = {
        "attempt": outcome.attempt,
        "tool": node.tool,
        "tool_version": outcome.tool_version,
        "schema_hash": outcome.schema_hash,
    }
    if outcome.failure is not None:
        yield ev.StepFailed(failure=outcome.failure, **place, **ran)
    elif outcome.output is not None:
        more = settling(_At(program, state), outcome.slot, node, alive=True, output=True)
        yield ev.StepSucceeded(output=outcome.output, **place, **ran, **more)
    else:
        yield ev.StepInterrupted(budget_ms=outcome.budget_ms, **place)
