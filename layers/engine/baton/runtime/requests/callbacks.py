"""Callbacks from work elsewhere: it is done, has failed, or is alive.

The worker elsewhere presents a token. Tokens are in people/links.py, the effect of a callback on a saga in
core/log/folding/received.py. Loaded with the first callback.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from baton.core.conditions.schema import violations
from baton.core.decide.program import Program
from baton.core.expressions import iso
from baton.core.log.events import CallbackHeartbeat, Event, SignalReceived, Value
from baton.core.log.folding.received import (
    CALLBACK,
    HEARTBEAT,
    CallbackReport,
    completed_with,
    fingerprint,
    slot_in,
    why_over,
)
from baton.core.log.slots import Slot
from baton.core.log.state import State
from baton.core.log.work import Callback
from baton.errors import CallbackOver, InvalidInput, NotAllowedNow, NotFound, StoreUnavailable
from baton.ports import StepFailure
from baton.ports.models import ModelFailure
from baton.runtime.engine.request import Caller, Request
from baton.runtime.log.history import History
from baton.runtime.people.links import Holder, claims_of

_BY = "callback"
_NONE = "there is no such callback"


async def caller_with(request: Request, token: str) -> Caller:
    """Return the caller that a token stands for, in the place of an identity. Raises `NotFound`."""
    holder = await _holder(request, token)
    return replace(request.caller, tenant=holder.tenant, user=_BY)


async def complete_callback(request: Request, token: str, said: CallbackReport) -> dict[str, Any]:
    """Complete a callback; see `Service.callback`."""
    holder = await _holder(request, token)
    if holder.tenant != request.caller.tenant:
        raise NotFound(_NONE)
    try:
        _, history = await request.read(holder.saga)
    except (
        NotFound
    ) as error:  # the same as for a token that is none: it says nothing of which sagas there are
        raise NotFound(_NONE) from error
    if said.status == HEARTBEAT:
        return await _hear(request, history, holder.callback)
    return await _complete(request, history, holder.callback, said)


async def take_announcement(request: Request, profile: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Take a provider's announcement that a response has ended; see `Service.announced`."""
    models = request.engine.models
    try:
        over = await models.heard(profile, headers, body) if models is not None else None
    except ModelFailure:
        return False  # it is gone
    except StepFailure as error:  # the provider announces it again
        raise StoreUnavailable(f"the provider of models: {error}") from error
    context, secrets = request.parts.context, request.engine.secrets
    holder = await claims_of(context, secrets, Holder, over.token) if over is not None else None
    if over is None or holder is None:
        return False
    caller = replace(request.caller, tenant=holder.tenant, user=profile)
    mine = Request(request.engine, caller, request.parts.invocation.deadline)
    try:
        _, history = await mine.read(holder.saga)
        return await _hear_end(mine, history, holder.callback, over.response)
    except NotFound:
        return False


async def _hear_end(request: Request, history: History, callback: str, response: str) -> bool:
    """Wake the saga. Return false if it does not wait for this response, or has heard of it."""

    def is_known(state: State) -> bool:
        work = state.open.get(slot_in(callback))
        asked = work.response if isinstance(work, Callback) else None
        is_another = asked is not None and asked.id != response
        return is_another or bool(why_over(state, callback))

    def make(state: State, now: int) -> Event:
        return SignalReceived(name=CALLBACK, key=callback, payload=Value(), by=request.caller.by, at=now)

    return await request.put(history, make, is_known)


async def _holder(request: Request, token: str) -> Holder:
    holder = await claims_of(request.parts.context, request.engine.secrets, Holder, token)
    if holder is None:
        raise NotFound(_NONE)
    return holder


async def _complete(
    request: Request, history: History, callback: str, said: CallbackReport
) -> dict[str, Any]:
    """Complete a callback.
    Only a success reads the saga's program, for the schema of the output. A failure is accepted even while
    the bucket that holds the program is unavailable.
    """
    failure = said.failure()
    output = said.output if failure is None else None
    program = await request.program_of(history) if failure is None else None
    value, blob = request.unstored(history, output, "an output")
    told = fingerprint(value, failure)

    def is_known(state: State) -> bool:
        known = completed_with(state, callback)
        if known and known != told:
            raise NotAllowedNow("this callback has been completed with something else")
        if not known:
            _refuse(state, callback)
        return bool(known)

    def make(state: State, now: int) -> Event:
        if program is not None:
            _check(program, state, callback, output)
        by = request.caller.by
        return SignalReceived(name=CALLBACK, key=callback, payload=value, by=by, at=now, failure=failure)

    await request.put(history, make, is_known, blob, value.ref)
    return _answer(said.status)


async def _hear(request: Request, history: History, callback: str) -> dict[str, Any]:
    """Record a heartbeat.
    There is at most one entry for each half of the interval: more often it changes nothing that is not sure
    already.

    It needs no program: a worker that knows it and works on without the
    bucket must not take for silent what speaks.
    """
    slot = slot_in(callback)

    def is_known(state: State) -> bool:
        _refuse(state, callback)
        return False

    def make(state: State, now: int) -> Event | None:
        work = state.open.get(slot)
        if (
            not isinstance(work, Callback)
            or 2 * (now - work.heard_at) < work.heartbeat_ms
            or not work.heartbeat_ms
        ):
            return None
        return CallbackHeartbeat(**Slot.parse(slot).fields, callback=callback, at=now)

    await request.put(history, make, is_known, wakes=False)
    work = history.state.open.get(slot)
    return _answer(HEARTBEAT, work if isinstance(work, Callback) else None)


def _answer(status: str, work: Callback | None = None) -> dict[str, Any]:
    by = None if work is None else work.heartbeat_by
    return {
        "status": status,
        "until": None if work is None else iso(work.until),
        "heartbeat_by": None if by is None else iso(by),
    }


def _refuse(state: State, callback: str) -> None:
    if why := why_over(state, callback):
        raise CallbackOver(f"this callback is over: {why}")


def _check(program: Program, state: State, callback: str, output: Any) -> None:
    """Raise `InvalidInput` for an invalid output: work elsewhere can still give another one."""
    schema = program.node_at(state, slot_in(callback)).output_schema
    problems = violations(schema, output, "/output") if schema is not None else ()
    if problems:
        raise InvalidInput(f"at {problems[0].path}: {problems[0].message}", tuple(problems))
