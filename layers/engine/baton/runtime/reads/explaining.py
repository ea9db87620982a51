"""Reads the log of a saga's present branch, page by page, to explain the path it took and why a node did not run.

The answers are made in core/read/explain.py.
"""

from __future__ import annotations

from collections.abc import Callable

from baton.core.log.codec import decode_entry
from baton.core.log.folding.forks import lineage_to
from baton.core.read.story import Story
from baton.errors import CorruptLog
from baton.ports import Clock, Log
from baton.runtime.engine.request import Opened
from baton.runtime.invocation.store_retrier import StoreRetrier
from baton.runtime.log.longlogs import ReadingTime

PAGE = 200  # entries read at once, so that a long log is never in memory as a whole


def _never(_: Story) -> bool:
    return False


async def story_of(
    log: Log, call: StoreRetrier, clock: Clock, opened: Opened, is_enough: Callable[[Story], bool] = _never
) -> Story:
    """The story of the log up to the state that was opened, without branches that a fork left.

    Reading stops once `is_enough`. That is asked in the present branch only, because a fork undoes what came before it.
    Raises `TooLarge` for a log that takes too much of the request's time.
    """
    ref, state = opened.head.ref, opened.history.state
    story, time = Story(opened.program), ReadingTime(clock, call.deadline)
    for segment in lineage_to(state):
        after = segment.first - 1
        while after < segment.last and not (segment.branch == state.lineage.branch and is_enough(story)):
            if after:
                time.check("explained", state.version, after)
            page = await call(log.read_tail, ref, segment.branch, after, min(PAGE, segment.last - after))
            if not page:
                raise CorruptLog(f"{ref} has no version {after + 1} in branch {segment.branch}")
            for record in page:
                story.add(decode_entry(record.data))
            after = page[-1].version
    story.agree_with(state)
    return story
