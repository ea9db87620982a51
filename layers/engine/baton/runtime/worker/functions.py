"""Runs functions of sagas on, by the core's command; loaded with the first function.

A function stays in memory between two results. When this worker has not run it, or the log has gone another
way, it is run again from its beginning with the results in the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from baton.core.decide.decision import RunFunctions
from baton.core.failures.codes import FUNCTION_CHANGED
from baton.core.log.functions import FunctionCall, FunctionProgress, Heard, Operation
from baton.core.log.records import Failure, Segment, Value, failed_with
from baton.core.log.slots import Slot
from baton.ports import StepFailure
from baton.ports.functions import Asked, FunctionFacts, Functions, FunctionSession, FunctionStep
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.engine.run import Run

TAIL = 32
"""Number of results in the state; then they become a segment."""
_decode_heard = msgspec.json.Decoder(tuple[Heard, ...]).decode


class _Changed(Exception):
    """The function asks for other operations than the log has."""


class _Live(Struct):
    """A function in memory. `heard`: the results that it has got, in order; `asked`: the digests of its
    operations without a result; `steps`: what it has done since the log was written.
    """

    session: FunctionSession
    branch: int
    heard: list[Heard] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    steps: list[FunctionStep] = field(default_factory=list)

    async def start(self, at: int) -> None:
        self._took(await self.session.start(at))

    async def deliver(self, heard: Heard, output: Any) -> None:
        """Give it one result. Raises `_Changed` if it has not asked for that operation."""
        digest = self.asked.pop(heard.item, None)
        if digest is None:
            raise _Changed(f"the log has the operation `{heard.item}`, {self._words()}")
        if digest != heard.digest:
            raise _Changed(f"the function calls `{heard.item}` with other arguments than the log has")
        self.heard.append(heard)
        self._took(await self.session.deliver(heard.item, heard.at, output, heard.failure))

    def check(self, asked: Mapping[str, Operation]) -> None:
        """Raise `_Changed` if its operations are not those that the log waits for."""
        for item, operation in asked.items():
            if item not in self.asked:
                raise _Changed(f"the log waits for the operation `{item}`, {self._words()}")
            if self.asked[item] != operation.digest:
                raise _Changed(f"the function calls `{item}` with other arguments than the log has")
        if more := [item for item in self.asked if item not in asked]:
            raise _Changed(f"the function asks for `{more[0]}`, and the log does not have it")

    def _words(self) -> str:
        if self.steps and self.steps[-1].is_over:
            return "and the function is over before it"
        names = ", ".join(f"`{item}`" for item in self.asked)
        return f"and the function asks for {names}" if names else "and the function asks for nothing"

    def _took(self, step: FunctionStep) -> None:
        self.asked.update({one.item: one.digest for one in step.asked})
        for item in step.left:
            self.asked.pop(item, None)
        self.steps.append(step)


def close(run: Run) -> None:
    """Forget the functions of a run."""
    for live in run.functions.values():
        live.session.close()
    run.functions.clear()


class FunctionRunner:
    """Performer that runs functions until they wait for operations or are over."""

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def perform(self, run: Run, command: RunFunctions) -> bool:
        for call in command.calls:
            run.progress[call.key] = await self._progress(run, call)
        return True

    async def _progress(self, run: Run, call: FunctionCall) -> FunctionProgress:
        live = run.functions.get(call.slot)
        try:
            if live is None or not self._continues(live, call):
                run.functions[call.slot] = live = await self._again(run, call, live)
            first = not call.work.heard
            if first and not live.steps:
                await live.start(call.now)
            done = len(live.heard) - max(call.work.heard - 1, 0)
            for result in call.results[done:]:
                heard = msgspec.structs.replace(result, at=call.now)
                await live.deliver(heard, await self._content(run, result))
        except _Changed as error:
            self._close(run, call.slot)
            return FunctionProgress(at=call.now, failure=failed_with(FUNCTION_CHANGED, f"{error}"))
        except StepFailure as error:
            self._close(run, call.slot)
            return FunctionProgress(at=call.now, failure=Failure(error.code, error.message, kind=error.kind))
        last = live.steps[-1]
        if last.is_over:
            self._close(run, call.slot)
            output = None if last.failure is not None else Value(v=last.output)
            return FunctionProgress(at=call.now, output=output, failure=last.failure)
        left = [item for step in live.steps for item in step.left]
        asked = [one for step in live.steps for one in step.asked if one.item not in left]
        known = {*call.work.asked}
        return FunctionProgress(
            at=call.now,
            operations=tuple([await self._operation(run, one) for one in asked]),
            left=tuple(item for item in left if item in known),
            segments=await self._segments(run, call, live),
        )

    def _continues(self, live: _Live, call: FunctionCall) -> bool:
        """Return true if the function in memory has heard what the log says, and no more than the results of
        the call. Forget what it has done before that.
        """
        if live.branch != call.branch:
            return False
        news = len(live.heard) - max(call.work.heard - 1, 0)
        if not call.work.heard:
            return news <= len(call.results) and self._has_heard(live, call, news)
        if news < 0 or news > len(call.results) or not self._has_heard(live, call, news):
            return False
        live.steps = live.steps[len(live.steps) - news :] if news else []
        return True

    def _has_heard(self, live: _Live, call: FunctionCall, news: int) -> bool:
        names = [one.item for one in live.heard[len(live.heard) - news :]] if news else []
        return names == [one.item for one in call.results[:news]]

    async def _again(self, run: Run, call: FunctionCall, live: _Live | None) -> _Live:
        """Return the function after the results in the log. Raises `_Changed`, `StepFailure`."""
        if live is not None:
            live.session.close()
        functions: Functions | None = self._p.functions
        assert functions is not None, "a worker has functions"
        origin, slot = run.history.state.origin, Slot.parse(call.slot)
        facts = FunctionFacts(
            saga=origin.saga,
            tenant=origin.tenant,
            user=origin.user,
            workflow=origin.workflow,
            slot=call.slot,
            node=slot.node,
            tools=call.tools,
        )
        arguments = await self._value(run, call.work.given)
        live = _Live(functions.open(call.name, arguments, facts), call.branch)
        if not call.work.heard:
            return live
        await live.start(call.work.began)
        for part in call.work.segments:
            for heard in _decode_heard(await self._p.call(self._p.blobs.get, origin.tenant, part.ref)):
                await live.deliver(heard, await self._content(run, heard))
        for heard in call.work.tail:
            await live.deliver(heard, await self._content(run, heard))
        live.check(call.work.asked)
        live.steps = []
        return live

    async def _content(self, run: Run, heard: Heard) -> Any:
        return None if heard.failure is not None else await self._value(run, heard.output)

    async def _value(self, run: Run, value: Value) -> Any:
        if not value.ref:
            return value.v
        if value.ref not in run.blobs:
            data = await self._p.call(self._p.blobs.get, run.lease.ref.tenant, value.ref)
            run.blobs[value.ref] = msgspec.json.decode(data)
        return run.blobs[value.ref]

    async def _operation(self, run: Run, asked: Asked) -> Operation:
        given = None
        if asked.arguments:
            given = await self._p.values.inline_or_blob(run.history.state.origin, asked.arguments)
        return Operation(
            item=asked.item,
            digest=asked.digest,
            label="" if asked.label == asked.item else asked.label,
            tool=asked.tool,
            node=asked.node,
            given=given,
            attempts=asked.attempts,
            timeout_ms=asked.timeout_ms,
        )

    async def _segments(self, run: Run, call: FunctionCall, live: _Live) -> tuple[Segment, ...] | None:
        """Return the segments with a new one, where one is due.
        They are merged like a binary counter: of n results there are at most log n.
        """
        count = len(call.work.tail) + len(call.results)
        if count < TAIL:
            return None
        parts = list(call.work.segments)
        while parts and parts[-1].turns <= count:
            count += parts.pop().turns
        heard: Sequence[Heard] = live.heard[-count:]
        ref = (await self._p.values.blob(run.history.state.origin, heard)).ref
        return (*parts, Segment(ref, count))

    def _close(self, run: Run, slot: str) -> None:
        if (live := run.functions.pop(slot, None)) is not None:
            live.session.close()
