"""Runs functions of sagas on, by the core's command; loaded with the first function.

A function stays in memory between two results. When this worker has not run it, or the log has gone another
way, it is run again from its beginning with the results in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct, field

from baton.core.decide.decision import RunFunctions
from baton.core.expressions import duration_text
from baton.core.failures.codes import FUNCTION_BLOCKS, FUNCTION_CHANGED, FUNCTION_DEFECT
from baton.core.log.folding.received import promise_of
from baton.core.log.functions import AskedOperation, FunctionCall, FunctionProgress, Heard
from baton.core.log.records import Failure, Segment, Value, failed_with
from baton.core.log.slots import Slot
from baton.core.log.state import Origin
from baton.ports import StepFailure
from baton.ports.functions import (
    FunctionFacts,
    FunctionSession,
    FunctionStep,
    NoTokensError,
    WorkflowFunctions,
)
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.engine.run import Run
from baton.runtime.people import links

LONG_MS, MOST_MS = 1_000, 10_000
"""Milliseconds between two operations after which a function is warned about, and is over."""
TAIL = 32
"""Number of results in the state; then they become a segment."""
MOST_CHECKPOINTS = 100
"""Most checkpoints without an operation between them."""
MOST_ARGUMENTS = 65_536
"""Most bytes of arguments in one entry."""
logger = logging.getLogger("baton.functions")
_encode = msgspec.json.Encoder().encode
_decode_heard = msgspec.json.Decoder(tuple[Heard, ...]).decode


class _Changed(Exception):
    """The function asks for other operations than the log has."""


class _Live(Struct):
    """A function in memory, after so many `checkpoints`.

    `began`: the time of its start; `heard`: the results that it has got since then, in order; `asked`: the
    digests of its operations without a result; `left`: those that it no longer waits for.
    `steps`: what it has done since the log was written; `end`: that of them with which it is over, or begins
    again.
    """

    name: str
    session: FunctionSession
    passed: Callable[[], int]
    branch: int
    arguments: Any
    checkpoints: int
    began: int = 0
    heard: list[Heard] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)
    steps: list[FunctionStep] = field(default_factory=list)
    end: FunctionStep | None = None

    def start(self, at: int) -> None:
        self.began, since = at, self.passed()
        self._took(self.session.start(at), self.passed() - since)

    def deliver(self, heard: Heard, output: Any) -> None:
        """Give it one result. Raises `_Changed` if it has not asked for that operation."""
        if heard.item in self.left or self.end is not None:  # it has left it just when it ended
            self.left.pop(heard.item, None)
            self.heard.append(heard)
            self.steps.append(msgspec.structs.replace(self.steps[-1], asked=(), left=(), changes=()))
            return
        digest = self.asked.pop(heard.item, None)
        if digest is None:
            raise _Changed(f"the log has the operation `{heard.item}`, {self._words()}")
        if digest != heard.digest:
            raise _Changed(f"the function calls `{heard.item}` with other arguments than the log has")
        self.heard.append(heard)
        since = self.passed()
        step = self.session.deliver(heard.item, heard.at, output, heard.failure, heard.by)
        self._took(step, self.passed() - since)

    def check(self, asked: Mapping[str, AskedOperation]) -> None:
        """Raise `_Changed` if its operations are not those that the log waits for."""
        for item, operation in asked.items():
            if item not in self.asked:
                raise _Changed(f"the log waits for the operation `{item}`, {self._words()}")
            if self.asked[item] != operation.digest:
                raise _Changed(f"the function calls `{item}` with other arguments than the log has")
        if more := [item for item in self.asked if item not in asked]:
            raise _Changed(f"the function asks for `{more[0]}`, and the log does not have it")

    def news(self, call: FunctionCall) -> int:
        """Return how many of the results of the call it has got."""
        return len(self.heard) - max(call.work.heard - 1, 0)

    def at(self, call: FunctionCall) -> int:
        """Return the time of all that it does in the call: when it got the first result of it, if it has.

        The log has one time for them, at which they are delivered again.
        """
        if not call.work.heard or self.checkpoints != call.work.checkpoints:
            return self.began
        news = self.news(call)
        return self.heard[-news].at if news else call.now

    def continues(self, call: FunctionCall) -> bool:
        """Return true if it has heard what the log says, and no more than results of the call.

        Forget what it has done before that.
        """
        if self.branch != call.branch or self.checkpoints != call.work.checkpoints:
            return False
        news, results = self.news(call), call.results
        if news < 0 or news > len(results) or (self.end is not None and news < len(results)):
            return False
        if news and [one.item for one in self.heard[-news:]] != [one.item for one in results[:news]]:
            return False
        since = news if call.work.heard else news + 1  # with its start
        if len(self.steps) < since:  # what ran ahead of an entry that is not in the log has forgotten some
            return False
        self.steps = self.steps[len(self.steps) - since :]
        return True

    def requests(self) -> Sequence[AskedOperation]:
        """Return the operations that it has asked for since the log was written, and has not left."""
        if len(self.steps) == 1 and not self.left:
            return self.steps[0].asked
        return [one for step in self.steps for one in step.asked if one.item not in self.left]

    def progress(
        self,
        call: FunctionCall,
        at: int,
        operations: tuple[AskedOperation, ...],
        segments: tuple[Segment, ...] | None = None,
        state: Value | None = None,
    ) -> FunctionProgress:
        """Return how far it has run, at this time. `state`: that with which it has begun again."""
        if self.end is not None:
            output = None if self.end.failure is not None else Value(v=self.end.output)
            return FunctionProgress(at=at, output=output, failure=self.end.failure)
        work = call.work
        left: tuple[str, ...] = ()
        if self.left:
            left = tuple(item for item in self.left if item in work.asked and item not in work.ended)
        return FunctionProgress(
            at=at,
            operations=operations,
            left=left,
            segments=segments,
            checkpoint=state,
            checkpoints=self.checkpoints - work.checkpoints,
            changes=sum((step.changes for step in self.steps), ()),
            published=self.published,
        )

    @property
    def published(self) -> dict[str, Any] | None:
        """All that it has published, if that has changed since the log was written."""
        changes = (step.published for step in reversed(self.steps) if step.published is not None)
        return next(changes, None)

    def _words(self) -> str:
        if self.end is not None:
            failed = "" if self.end.failure is None else f": {self.end.failure.message}"
            return f"and the function is over before it{failed}"
        names = ", ".join(f"`{item}`" for item in self.asked)
        return f"and the function asks for {names}" if names else "and the function asks for nothing"

    def _took(self, step: FunctionStep, lasted_ms: int) -> None:
        if lasted_ms > MOST_MS:
            text = f"`{self.name}` has computed for {duration_text(lasted_ms)} between two operations"
            step = FunctionStep(is_over=True, failure=failed_with(FUNCTION_BLOCKS, text))
        elif lasted_ms > LONG_MS:
            logger.warning(
                "a workflow function computes for long", extra={"function": self.name, "ms": lasted_ms}
            )
        for one in step.asked:
            self.asked[one.item] = one.digest
        for item in step.left:
            if self.asked.pop(item, None) is not None:
                self.left[item] = None
        self.steps.append(step)
        if step.is_over or step.begins_again:
            self.end = step


def _no_time() -> int:
    return 0


class _Memory:
    """The functions of one saga in memory, by slot, and the progress that they have `made` from a `version`.

    A decision that lacks something is made again from its beginning, when the functions are further already.
    """

    def __init__(self, inline_bytes: int) -> None:
        self.live: dict[str, _Live] = {}
        self.made: dict[tuple[Any, ...], FunctionProgress] = {}
        self._version = 0
        self._inline_bytes = inline_bytes

    def begin(self, version: int) -> None:
        """Forget the progress from another version of the log."""
        if version != self._version:
            self._version = version
            self.made.clear()

    def progress(self, call: FunctionCall) -> FunctionProgress | None:
        """Return how far a function has run, if that needs nothing but memory."""
        self.begin(call.version)
        if self.made and (made := self.made.get(_key(call))) is not None:
            return made
        live = self.live.get(call.slot)
        if live is not None and call.work.heard and not call.results and live.branch == call.branch:
            return FunctionProgress(at=call.now)  # it only has to be in memory
        if live is None or not live.continues(call) or _is_segment_due(call):
            return None
        at = live.at(call)
        for result in call.results[live.news(call) :]:
            if result.output.ref:
                return None
            try:
                live.deliver(msgspec.structs.replace(result, at=at), result.output.v)
            except _Changed as error:
                return _changed(call, error)
            except NoTokensError:
                self.live.pop(call.slot).session.close()
                return None
        if live.end is not None and live.end.begins_again:
            return None
        asked = live.requests()
        most = _most_inline(asked, self._inline_bytes)
        if any(one.given is not None and len(_encode(one.given.v)) > most for one in asked):
            return None
        return live.progress(call, at, tuple(asked))


def _most_inline(asked: Sequence[AskedOperation], most: int) -> int:
    """Return the most bytes of arguments that stay in the entry, which holds those of all operations."""
    return min(most, MOST_ARGUMENTS // len(asked)) if asked else most


def _key(call: FunctionCall) -> tuple[Any, ...]:
    return call.slot, call.branch, call.work.heard, *(one.item for one in call.results)


def _is_segment_due(call: FunctionCall) -> bool:
    return len(call.work.tail) + len(call.results) >= TAIL


def _changed(call: FunctionCall, error: _Changed) -> FunctionProgress:
    return FunctionProgress(at=call.now, failure=failed_with(FUNCTION_CHANGED, str(error)))


def _memory_of(run: Run) -> _Memory:
    memory = run.found.functions
    assert isinstance(memory, _Memory), "the performer has made it"
    return memory


def close(run: Run) -> None:
    """Forget the functions of a run."""
    for live in _memory_of(run).live.values():
        live.session.close()


class FunctionRunner:
    """Performer that runs functions on whose values or results are not in memory."""

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def perform(self, run: Run, command: RunFunctions) -> bool:
        if run.found.functions is None:
            run.found = msgspec.structs.replace(run.found, functions=_Memory(self._p.limits.inline_bytes))
        memory = _memory_of(run)
        for call in command.calls:
            memory.begin(call.version)
            memory.made[_key(call)] = await self._progress(run, memory, call)
        return True

    async def _progress(self, run: Run, memory: _Memory, call: FunctionCall) -> FunctionProgress:
        try:
            return await self._ran_on(run, memory, call)
        except NoTokensError:  # what it has done without tokens is forgotten
            if (without := memory.live.pop(call.slot, None)) is not None:
                without.session.close()
            await links.ensure_key(self._p.context, self._p.secrets)
            return await self._ran_on(run, memory, call)

    async def _ran_on(self, run: Run, memory: _Memory, call: FunctionCall) -> FunctionProgress:
        live, state = memory.live.get(call.slot), None
        try:
            if live is None or not live.continues(call):
                if live is not None:
                    live.session.close()
                memory.live[call.slot] = live = await self._again(run, call)
            at = live.at(call)
            for result in call.results[live.news(call) :]:
                heard = msgspec.structs.replace(result, at=at)
                live.deliver(heard, await self._content(run, result))
            while live.end is not None and live.end.begins_again:
                if live.checkpoints - call.work.checkpoints >= MOST_CHECKPOINTS:
                    text = f"`{call.name}` has made {MOST_CHECKPOINTS} checkpoints without an operation"
                    return FunctionProgress(at=call.now, failure=failed_with(FUNCTION_DEFECT, text))
                state = live.end.output
                memory.live[call.slot] = live = self._from_checkpoint(run, call, live)
        except _Changed as error:
            return _changed(call, error)
        except StepFailure as error:
            return FunctionProgress(at=call.now, failure=Failure(error.code, error.message, kind=error.kind))
        operations, asked = [], live.requests()
        most, origin = _most_inline(asked, self._p.limits.inline_bytes), run.history.state.origin
        for one in asked:
            if one.given is not None:
                given = await self._p.values.inline_or_blob(origin, one.given.v, most)
                one = msgspec.structs.replace(one, given=given)
            operations.append(one)
        if live.checkpoints != call.work.checkpoints:
            kept = await self._p.values.inline_or_blob(origin, state)
            return live.progress(call, live.at(call), tuple(operations), state=kept)
        segments = await self._segments(run, call, live) if _is_segment_due(call) else None
        return live.progress(call, at, tuple(operations), segments)

    def _open(
        self,
        run: Run,
        call: FunctionCall,
        arguments: Any,
        state: Any,
        checkpoints: int,
        published: dict[str, Any] | None = None,
    ) -> _Live:
        functions: WorkflowFunctions | None = self._p.functions
        assert functions is not None, "a worker has functions"
        origin = run.history.state.origin
        facts = FunctionFacts(
            saga=origin.saga,
            tenant=origin.tenant,
            user=origin.user,
            workflow=origin.workflow,
            slot=call.slot,
            node=Slot.parse(call.slot).node,
            tools=[one.tool for one in call.calls],
            state=state,
            checkpoints=checkpoints,
            token=partial(self._token, origin, call.slot) if links.has_key(self._p.secrets) else None,
            api_url=self._p.api_url,
            graphs=run.program.graphs,
            changes=call.work.changes if checkpoints == call.work.checkpoints else (),
            published=call.work.published if published is None else published,
        )
        session = functions.open(call.name, arguments, facts)
        passed = _no_time if self._p.meter is None else self._p.meter.passed
        return _Live(call.name, session, passed, call.branch, arguments, checkpoints)

    def _token(self, origin: Origin, slot: str, item: str) -> str:
        """Return the token of the callback of an item."""
        callback = promise_of(f"{slot}#{item}")
        holder = links.Holder(tenant=origin.tenant, saga=origin.saga, callback=callback)
        return links.known_token(self._p.secrets, holder)

    def _from_checkpoint(self, run: Run, call: FunctionCall, before: _Live) -> _Live:
        """Return the function that begins again with the state of its checkpoint."""
        assert before.end is not None, "the caller has looked"
        before.session.close()
        shown, number = before.published, before.checkpoints + 1
        live = self._open(run, call, before.arguments, before.end.output, number, shown)
        live.start(call.now)
        if live.published is None and live.steps:
            live.steps[0] = msgspec.structs.replace(live.steps[0], published=shown)
        return live

    async def _again(self, run: Run, call: FunctionCall) -> _Live:
        """Return the function after the results in the log. Raises `_Changed`, `StepFailure`."""
        work = call.work
        state = None if work.checkpoint is None else await self._value(run, work.checkpoint)
        arguments = await self._value(run, work.given)
        live = self._open(run, call, arguments, state, work.checkpoints)
        try:
            await self._replay(run, call, live)
        except BaseException:
            live.session.close()
            raise
        return live

    async def _replay(self, run: Run, call: FunctionCall, live: _Live) -> None:
        work, tenant = call.work, run.history.state.origin.tenant
        if not work.heard:
            live.start(call.now)
            return
        live.session.mark_replay(on=True)
        live.start(work.began)
        for part in work.segments:
            for heard in _decode_heard(await self._p.call(self._p.blobs.get, tenant, part.ref)):
                live.deliver(heard, await self._content(run, heard))
        for heard in work.tail:
            live.deliver(heard, await self._content(run, heard))
        live.check(work.asked)
        live.session.mark_replay(on=False)
        live.steps = []

    async def _content(self, run: Run, heard: Heard) -> Any:
        return None if heard.failure is not None else await self._value(run, heard.output)

    async def _value(self, run: Run, value: Value) -> Any:
        if not value.ref:
            return value.v
        if value.ref not in run.blobs:
            data = await self._p.call(self._p.blobs.get, run.lease.ref.tenant, value.ref)
            run.blobs[value.ref] = msgspec.json.decode(data)
        return run.blobs[value.ref]

    async def _segments(self, run: Run, call: FunctionCall, live: _Live) -> tuple[Segment, ...]:
        """Return the segments with a new one.
        They are merged like a binary counter: of n results there are at most log n.
        """
        count = len(call.work.tail) + len(call.results)
        parts = list(call.work.segments)
        while parts and parts[-1].turns <= count:
            count += parts.pop().turns
        heard: Sequence[Heard] = live.heard[-count:]
        ref = (await self._p.values.blob(run.history.state.origin, heard)).ref
        return (*parts, Segment(ref, count))
