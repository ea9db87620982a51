"""Sends the notices that are due by a saga's log, has the inbox follow it, and notes what was done."""

from __future__ import annotations

from baton.core.decide.commands import SendNotices
from baton.runtime.engine.log_writer import LogWriter
from baton.runtime.engine.run import Run


class NoticeSender:
    """Sends beside the steps of a saga, and never instead of them."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    async def perform(self, run: Run, command: SendNotices) -> bool:
        if run.history.state.ended is not None:
            return False
        teller, is_busy = run.teller, run.attempts.is_busy
        teller.begin(run.history.state, command.owed)
        if not is_busy:
            await teller.wait()
        news = teller.heard()
        if news is None or (is_busy and teller.can_wait):
            return False
        if await self._writer.append(run.lease, run.history, (news,)):
            teller.noted((news,))
        else:
            await self._writer.catch_up(run)
        return True
