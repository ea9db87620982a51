"""The pause before the next round of a loop, and when a poll gives up.

Loaded with the first loop that rests between its rounds. Waiting is scheduling.py's.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from baton.core.decide.context import EvaluationContext
from baton.core.decide.settlement import RouteError
from baton.core.expressions import ExpressionError, compile_template
from baton.core.expressions.durations import LONGEST_MS, lasting, parse_duration
from baton.core.failures import quoted
from baton.core.graph.graph import Loop, Node, Pause
from baton.core.log.records import Paused
from baton.core.log.state import node_of
from baton.core.summary import summary_of

GIVEN_UP = "poll_exhausted"
LONGEST_ANSWER = 4_096
"""Bytes of the last answer that the failure of a poll keeps; of a longer one it keeps the beginning."""
_NONE_AT_ALL = re.compile(r" *0+(\.0+)? *(ms|s|m|h|d)? *")


def paused(context: EvaluationContext, node: Node, now: int, began: int) -> Paused | None:
    """The pause before the round that follows on this one. The last try of a poll is made at its deadline.

    Raises `RouteError`, `LackingError`.
    """
    loop = _loop_of(node)
    by = _deadline(context, loop, began)
    until = now + (0 if loop.pause is None else _length(context, node, loop.pause))
    until = min(until, by) if by else until
    return Paused(until=until, ends_by=by) if by or until > now else None


def given_up(context: EvaluationContext, node: Node, now: int, began: int, *, is_over: bool) -> None:
    """Raises `RouteError` for a poll whose tries are used up (`is_over`), or whose time is."""
    loop = _loop_of(node)
    by = _deadline(context, loop, began)
    if not is_over and (not by or now < by):
        return
    assert context.output is not None, "it has answered"
    last = context.content(context.output)
    encoded = msgspec.json.encode(last)
    rounds = node_of(context.slot)[1][-1] + 1
    times = f"{rounds} time{'s' * (rounds > 1)}"
    most = "the most there may be" if is_over else f"for {lasting(loop.poll.within_ms if loop.poll else 0)}"
    text = (
        f"it was asked {times}, {most}, and `until` does not hold; the last answer: {encoded.decode()[:300]}"
    )
    if len(encoded) > LONGEST_ANSWER:
        last = summary_of(last, LONGEST_ANSWER, len(encoded), "in the log")
    raise RouteError(GIVEN_UP, quoted(text), msgspec.json.encode(last).decode())


def _loop_of(node: Node) -> Loop:
    assert node.loop is not None, "the caller has looked"
    return node.loop


def _deadline(context: EvaluationContext, loop: Loop, began: int) -> int:
    """That of the poll, counted from its first attempt; 0: none."""
    if loop.poll is None or not loop.poll.within_ms:
        return 0
    if (before := context.state.pauses.get(context.slot)) is not None:
        return before.ends_by
    failing = context.state.failing.get(context.slot)
    since = 0 if failing is None else failing.history.since
    return (since or began) + loop.poll.within_ms


def _length(context: EvaluationContext, node: Node, pause: Pause) -> int:
    if pause.of is None:
        rounds = node_of(context.slot)[1][-1]
        # A large power is no number any more.
        grown = pause.ms * pause.factor ** min(rounds, 100)
        return round(min(grown, pause.most_ms or LONGEST_MS))
    try:
        given: Any = context.render(compile_template(pause.of))
        return 0 if _NONE_AT_ALL.fullmatch(str(given)) else parse_duration(given)
    except (ExpressionError, ValueError) as error:
        which = "poll.every" if node.loop is not None and node.loop.poll is not None else "loop.pause"
        raise RouteError("wait_invalid", f"{which}: {error}") from error
