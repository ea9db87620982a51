"""Fetch the blobs that an expression names, and entries of the log."""

from __future__ import annotations

import msgspec

from baton.core.decide.commands import FetchValues
from baton.errors import CorruptLog
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run


class ValueFetcher:
    """Puts values into the memory of a run. One that is not there is the document's fault where the document names it."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

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
