"""Performers of commands about steps, values and notices."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from baton.core.decide.commands import Command, FetchValues, JudgeConditions, RunSteps, SendNotices, StopSteps
from baton.core.log.events import Event
from baton.core.log.folding.received import said_of
from baton.core.log.work import Callback, Open, responses_left
from baton.errors import CorruptLog
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.engine.run import LogWriter, Run

C_contra = TypeVar("C_contra", bound=Command, contravariant=True)


class CommandPerformer(Protocol[C_contra]):
    """Performer of one kind of command for the sagas of one invocation."""

    async def perform(self, run: Run, command: C_contra) -> bool:
        """Perform the command.
        Return true when more is known now than before: the saga needs a new decision.
        """
        ...


class StepStarter:
    """Performer that starts steps; those without time here are left to another invocation."""

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def perform(self, run: Run, command: RunSteps) -> bool:
        state = run.history.state
        if run.attempts.start(state, command.steps, self._p.traceparent(state.origin.traceparent)):
            run.wants_more = True
        for step in command.steps:
            run.began[step.slot] = state.version
            work = state.open.get(step.slot)
            if isinstance(work, Callback) and step.slot in run.attempts.slots:
                is_said = said_of(state, work.id) is not None
                run.looked[step.slot] = (self._p.clock.now(), is_said)
        return False


class StepStopper:
    """Performer that stops all running steps, or those at some slots."""

    async def perform(self, run: Run, command: StopSteps) -> bool:
        run.outcomes += await run.attempts.abort(command.slots)
        return True


class ValueFetcher:
    """Performer that loads values into the memory of a run.
    A missing value is the document's fault if the document names it.
    """

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def perform(self, run: Run, command: FetchValues) -> bool:
        for version in command.entries - run.entries.keys():
            run.entries.update({one.version: one for one in await run.history.entries_to(version)})
        for ref in command.refs:
            try:
                data = await self._p.call(self._p.blobs.get, run.lease.ref.tenant, ref)
                run.blobs[ref] = msgspec.json.decode(data)
            except (CorruptLog, msgspec.DecodeError) as error:
                run.absent[ref] = str(error)
        return True


class ConditionJudge:
    """Performer that evaluates conditions and keeps the answers in the memory of a run."""

    def __init__(self, scope: InvocationScope) -> None:
        self._sandbox = scope.sandbox

    async def perform(self, run: Run, command: JudgeConditions) -> bool:
        asked = list(command.questions)
        answers = await asyncio.gather(*map(self._sandbox.answer, asked))
        run.answers.update(zip((question.key for question in asked), answers, strict=True))
        return True


class NoticeSender:
    """Performer that sends notices while the steps of a saga run, and never instead of them."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    async def perform(self, run: Run, command: SendNotices) -> bool:
        if run.history.state.ended is not None:
            return False
        notifier, is_busy = run.notifier, run.attempts.is_busy
        notifier.begin(run.history.state, command.pending)
        if not is_busy:
            await notifier.wait()
        news = notifier.heard()
        if news is None or (is_busy and notifier.can_wait):
            return False
        if await self._writer.append(run.lease, run.history, (news,)):
            notifier.noted((news,))
        else:
            await self._writer.catch_up(run)
        return True


class ResponseCanceller:
    """Canceller of background requests to models, after an append: the log drops a request first, so that its
    end is no failure.
    """

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def left(self, run: Run, before: Mapping[str, Open], events: Sequence[Event]) -> None:
        """Cancel the requests that these events have dropped. `before` is the open work before the events."""
        if not any(isinstance(work, Callback) for work in before.values()):
            return  # most have handed nothing over
        ended = {event.callback for event in events}
        left = responses_left(before, run.history.state.open, ended)
        if left and (models := self._p.models) is not None:
            from baton.runtime.models.model_request import cancel_response

            await cancel_response(models, left)
