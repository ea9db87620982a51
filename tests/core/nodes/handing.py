"""Sagas that hand work over, and what is said of it, for the tests of callbacks. No assertions here."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.folding.received import CALLBACK, CallbackReport, callback_of
from baton.core.log.work import Callback
from baton.core.nodes.registry import KINDS
from tests.core.build import Saga, tool_spec

MINUTE = 60_000
HOUR = 60 * MINUTE
SKEW = 3_000
TOOLS = {
    "t": tool_spec(),
    "print": replace(tool_spec("print"), effect="idempotent", timeout_ms=5_000),
    "send": replace(tool_spec("send"), effect="once", timeout_ms=5_000),
    "mute": replace(tool_spec("mute"), sees_key=False),
}
ON = "\n  then: {tool: t, after: a}\n  no: {value: '${last_error.code}'}"
RULES = "retry: {max_attempts: 3, base: 1s}, on_failure: {any: fail}"


def compiled(
    callback: str = "{timeout: 1h, heartbeat: 5m}", tool: str = "print", more: str = ON, skew: int = SKEW
) -> Program:
    node = f"tool: {tool}, callback: {callback}, {RULES}, catch: no"
    return Program(compile_document(f"name: w\nnodes:\n  a: {{{node}}}{more}", TOOLS), KINDS, skew_ms=skew)


def beginning(**more: Any) -> Saga:
    """The tool is to be called."""
    saga = Saga(compiled(**more))
    saga.go()
    return saga


def handing(**more: Any) -> Saga:
    """The tool has handed its work over."""
    saga = beginning(**more)
    hand_over(saga)
    return saga


def hand_over(saga: Saga, **more: Any) -> None:
    saga.go(handed(saga, **more))


def handed(saga: Saga, slot: str = "a", *, code: str = "", callback: str = "") -> Outcome:
    """The end of a run of the tool: it has returned, or failed with this code."""
    failing = saga.state.failing.get(slot)
    return Outcome(
        slot=slot,
        attempt=1 if failing is None else failing.attempts + 1,
        started_at=saga.now,
        ended_at=saga.now,
        output=None if code else ev.Value(),
        failure=ev.Failure(code, "it broke", "a") if code else None,
        handed=callback or callback_of(saga.state, slot),
        cost=7,
    )


def say(saga: Saga, callback: str = "", **said: Any) -> None:
    """What work elsewhere says: a success, or a failure where there is a code."""
    of = callback or callback_of(saga.state, "a")
    told = CallbackReport(status="failure" if "code" in said else "success", **said)
    event = ev.SignalReceived(
        name=CALLBACK, key=of, payload=ev.Value(v=told.output), by="c", at=saga.now, failure=told.failure()
    )
    saga.put(event, epoch=0, invocation="api")


def beat(saga: Saga, callback: str = "0.a.1") -> None:
    event = ev.CallbackHeartbeat(node="a", callback=callback, at=saga.now)
    saga.put(event, epoch=0, invocation="api")


def kinds_since(saga: Saga, version: int) -> list[str]:
    found = [event for entry in saga.entries[version:] for event in entry.events]
    return [str(event.__struct_config__.tag) for event in found]


def last(saga: Saga, kind: type[Any]) -> Any:
    return [event for entry in saga.entries for event in entry.events if isinstance(event, kind)][-1]


def work(saga: Saga) -> Callback:
    one = saga.state.open["a"]
    assert isinstance(one, Callback)
    return one
