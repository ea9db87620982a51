"""A request that a provider of models works on while no worker runs: when a worker looks at it.

Its end is announced by a callback, or is found by a look. Both lead to the same attempt, which fetches the answer; that is
runtime/models/background.py's. A look that finds it at work still writes nothing: moments are computed, and a worker remembers only
its own looks.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from baton.core.log.folding.callbacks import said_of
from baton.core.log.work import Callback
from baton.core.nodes.base import Activation, Desk, Later, Run

FIRST_MS: Final = 15_000
LONGEST_MS: Final = 300_000
_JITTER: Final = (
    4  # a pause is up to a fourth longer, so that requests that began together are not looked at together
)


def resumed(at: Activation, work: Callback, desk: Desk) -> Run | Later:
    """A look, where one is due: it was said to be over, or the time has come. The last one is at its end."""
    is_said = said_of(desk.state, work.id) is not None
    looked, knew = desk.looked(at) or (work.since, False)
    if (is_said and not knew) or next_look(work, looked) <= desk.now:
        return Run({})
    return Later(next_look(work, desk.now))


def next_look(work: Callback, after: int) -> int:
    """The first moment later than `after` at which a look is due; once its time is over, each one is."""
    pause, at = FIRST_MS, work.since
    assert work.response is not None, "nothing else is looked at"
    stretch = 1 + crc32(work.response.id.encode()) / 2**32 / _JITTER
    while at <= after < work.until:
        if pause == LONGEST_MS:
            longest = int(pause * stretch)
            return min(at + (max(after - at, 0) // longest + 1) * longest, work.until)
        at += int(pause * stretch)
        pause = min(2 * pause, LONGEST_MS)
    return min(at, work.until)
