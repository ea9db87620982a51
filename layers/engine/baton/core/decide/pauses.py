"""The pause before the next round of a loop, and when a poll gives up.

Loaded with the first loop that rests between its rounds. Waiting is scheduling.py's.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import msgspec

from baton.core.decide.context import EvaluationContext
from baton.core.decide.settlement import RouteError
from baton.core.expressions import ExpressionError, compile_template
from baton.core.expressions.durations import LONGEST_MS, lasting, parse_duration
from baton.core.failures import quoted
from baton.core.graph.graph import Loop, Pause, Poll
from baton.core.log.records import Paused
from baton.core.log.state import node_of
from baton.core.summary import summary_of

GIVEN_UP = "poll_exhausted"
LONGEST_ANSWER = 4_096
"""Bytes of the last answer that the failure of a poll keeps; of a longer one it keeps the beginning."""
_NONE_AT_ALL = re.compile(r" *0+(\.0+)? *(ms|s|m|h|d)? *")


def paused(context: EvaluationContext, loop: Loop, now: int, began: int) -> Paused | None:
    """The pause before the round that follows on this one. The last try of a poll is made at its deadline.

    Raises `RouteError`, for a poll also where its tries or its time are used up, and `LackingError`.
    """
    by = 0
    if loop.poll is not None:
        by = _deadline(context, loop.poll, began)
        rounds = node_of(context.slot)[1][-1] + 1
        if rounds >= loop.max_iterations:
            _give_up(context, rounds, "the most there may be")
        if by and now >= by:
            _give_up(context, rounds, f"for {lasting(loop.poll.within_ms)}")
    until = now + (0 if loop.pause is None else _length(context, loop, loop.pause))
    until = min(until, by) if by else until
    return Paused(until=until, ends_by=by) if by or until > now else None


def _give_up(context: EvaluationContext, rounds: int, most: str) -> NoReturn:
    assert context.output is not None, "it has answered"
    last = context.content(context.output)
    encoded = msgspec.json.encode(last)
    text = f"it was asked {rounds} time{'s' * (rounds > 1)}, {most}, and `until` does not hold; the last answer: {encoded.decode()[:300]}"
    if len(encoded) > LONGEST_ANSWER:
        last = summary_of(last, LONGEST_ANSWER, len(encoded), "in the log")
    raise RouteError(GIVEN_UP, quoted(text), msgspec.json.encode(last).decode())


def _deadline(context: EvaluationContext, poll: Poll, began: int) -> int:
    """Counted from the first attempt of the first try; 0: none."""
    if not poll.within_ms:
        return 0
    if (before := context.state.pauses.get(context.slot)) is not None:
        return before.ends_by
    failing = context.state.failing.get(context.slot)
    since = 0 if failing is None else failing.history.since
    return (since or began) + poll.within_ms


def _length(context: EvaluationContext, loop: Loop, pause: Pause) -> int:
    if pause.of is None:
        rounds = node_of(context.slot)[1][-1]
        # A large power is no number any more.
        grown = pause.ms * pause.factor ** min(rounds, 100)
        return round(min(grown, pause.most_ms or LONGEST_MS))
    try:
        given: Any = context.render(compile_template(pause.of))
        return 0 if _NONE_AT_ALL.fullmatch(str(given)) else parse_duration(given)
    except (ExpressionError, ValueError) as error:
        which = "loop.pause" if loop.poll is None else "poll.every"
        raise RouteError("wait_invalid", f"{which}: {error}") from error
