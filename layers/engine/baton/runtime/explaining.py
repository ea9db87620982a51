"""Which way a saga went, and why a node did not run: the log of its present branch read, page by page.

No answers here: core/explain.py gives them.
"""

from __future__ import annotations

from baton.core.events import decode_entry
from baton.core.forks import lineage_to
from baton.core.story import Story
from baton.errors import CorruptLog, TooLarge
from baton.ports import Clock, Log
from baton.runtime.patience import Patience
from baton.runtime.request import Opened

PAGE = 200  # entries read at once, so that a long log is never in memory as a whole


async def story_of(log: Log, call: Patience, clock: Clock, opened: Opened) -> Story:
    """What the log says up to the state that was opened; what a fork left is no part of it.

    Raises `TooLarge` for a log that cannot be read before the end of the request.
    """
    ref, state = opened.head.ref, opened.history.state
    story = Story(opened.program)
    for segment in lineage_to(state):
        after = segment.first - 1
        while after < segment.last:
            if after and clock.now() >= call.deadline:
                raise TooLarge(
                    f"the log of this saga is too long to be explained within one request: of {state.version} "
                    f"versions it came to {after}"
                )
            page = await call(log.read_tail, ref, segment.branch, after, min(PAGE, segment.last - after))
            if not page:
                raise CorruptLog(f"{ref} has no version {after + 1} in branch {segment.branch}")
            for record in page:
                story.add(decode_entry(record.data))
            after = page[-1].version
    story.agree_with(state)
    return story
