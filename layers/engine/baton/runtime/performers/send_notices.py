"""Sends the notices that are due by a saga's log, and notes those that were sent."""

from __future__ import annotations

from baton.core.decide.commands import SendNotices
from baton.core.log.events import NoticesSent
from baton.runtime.log_writer import LogWriter
from baton.runtime.run import Run


class NoticeSender:
    """Sends beside the steps of a saga, and never instead of them."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    async def perform(self, run: Run, command: SendNotices) -> bool:
        if run.history.state.ended is not None:
            return False
        run.teller.begin(run.history.state, command.notices)
        if not run.steps.is_busy:
            await run.teller.wait()
        keys = run.teller.heard()
        if not keys:
            return False
        if not await self._writer.append(run.lease, run.history, (NoticesSent(keys=keys),)):
            await self._writer.catch_up(run)
        return True
