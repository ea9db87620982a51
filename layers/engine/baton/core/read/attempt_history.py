"""The attempts of a step that failed before its last: as JSON, and in words for a person.

What was done about each of them and why, what was asked, and what comes next. story.py gathers this from the log.
"""

from __future__ import annotations

from typing import Any

from baton.core.expressions.durations import lasting
from baton.core.failures.codes import told
from baton.core.failures.strategies.base import Told
from baton.core.failures.strategies.registry import of
from baton.core.log import events as ev
from baton.core.log.answers import GIVE_UP, TRY_AGAIN, USE
from baton.core.read.places import Attempt, Place
from baton.core.read.question_views import question_view
from baton.core.read.views import failure_view
from baton.core.read.wording import asked_since, listed, said
from baton.core.times import iso

SHOWN = 50  # attempts of one round: the first, and the last ones
_ANSWERS = {
    TRY_AGAIN: "a person said: try it again",
    USE: "a person gave what it was to give",
    GIVE_UP: "a person gave it up",
    "expired": "no answer came in time",
}


def attempts_view(place: Place) -> list[dict[str, Any]]:
    """The attempts of a slot, in their order; of very many, the first and the last ones."""
    shown = place.attempts
    if len(shown) > SHOWN:
        shown = [shown[0], *shown[-SHOWN + 1 :]]
    return [_attempt_view(attempt) for attempt in shown]


def _attempt_view(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.number,
        "tool": attempt.tool,
        "version": attempt.when.version,
        "at": iso(attempt.when.at),
        "lasted_ms": attempt.lasted,
        **failure_view(attempt.failure),
        "then": [_reaction_view(attempt, chosen) for chosen in attempt.then],
        "text": "; ".join([_failed(attempt), *(_done(attempt, chosen) for chosen in attempt.then)]),
    }


def _reaction_view(attempt: Attempt, chosen: ev.StrategyChosen) -> dict[str, Any]:
    answer = attempt.answers.get(chosen.ask.id) if chosen.ask is not None else None
    return {
        "strategy": chosen.strategy,
        "hint": chosen.hint or None,
        "way": chosen.way.name if chosen.way is not None else None,
        "policy": chosen.policy or None,
        "why": list(chosen.why),
        "pause_ms": pause_of(chosen),
        "next_attempt_at": iso(chosen.due_at) if chosen.due_at else None,
        "question": question_view(chosen.node, chosen.iteration, chosen.ask) if chosen.ask is not None else None,
        "answer": answer.action if answer is not None else None,
    }  # fmt: skip


def pause_of(chosen: ev.StrategyChosen) -> int | None:
    """Milliseconds from a failure to the attempt after it; None where it is not a matter of time."""
    return max(chosen.due_at - chosen.at, 0) if of(chosen.strategy).repeats else None


# ---- in words


def _failed(attempt: Attempt) -> str:
    failure = attempt.failure
    means = told(failure.code).says
    after = ", ".join(part for part in (lasting(attempt.lasted), _held(attempt.blocked)) if part)
    return f"attempt {attempt.number} failed after {after}: {said(failure)} ({means})"


def _held(blocked_ms: int) -> str:
    return f"it held the event loop for {lasting(blocked_ms)}" if blocked_ms else ""


def _done(attempt: Attempt, chosen: ev.StrategyChosen) -> str:
    """What was done about it, why not something else, and how a question was answered."""
    text = _words(chosen)
    if chosen.policy:
        text += f", by the policy `{chosen.policy}`" + (f": {chosen.message}" if chosen.message else "")
    if chosen.why:
        text += f" ({'; '.join(chosen.why)})"
    answer = attempt.answers.get(chosen.ask.id) if chosen.ask is not None else None
    if answer is None:
        return text
    with_other = f", with other values of {listed(answer.arguments)}" if answer.arguments else ""
    return f"{text}; {_ANSWERS.get(answer.action, answer.action)}{with_other}"


def _words(chosen: ev.StrategyChosen) -> str:
    ask, way, pause = chosen.ask, chosen.way, pause_of(chosen)
    words = Told(
        pause=f"{lasting(pause)}, at {iso(chosen.due_at)}" if pause else "",
        hooks=listed(chosen.hooks),
        hint=chosen.hint,
        by="" if way is None else way.tool or way.name,
        others=listed(chosen.arguments),
        is_asked=ask is not None,
        until=iso(ask.expires_at) if ask is not None and ask.expires_at else "",
        severity=chosen.severity,
    )
    return of(chosen.strategy).told(words)


def history(place: Place) -> str:
    """How a step that is done came to its last attempt; empty if that was its first."""
    end = place.end
    assert end is not None, "it has ended"
    recorded = "it had happened before, so what came of it then was taken" if end.recorded else ""
    parts = [recorded, _held(end.blocked_ms)]
    if place.attempts:
        last = place.attempts[-1]
        times = "once" if len(place.attempts) == 1 else f"{len(place.attempts)} times"
        is_same = end.failure is not None and said(end.failure) == said(last.failure)
        how = "in the same way" if is_same else f"with {said(last.failure)}"
        parts.insert(0, f"after it had failed {times}, last {how}")
    return "; ".join(part for part in parts if part)


def outlook(place: Place) -> str:
    """What a step that has failed before waits for now; empty if it has not, or if it runs again."""
    if not place.attempts:
        return ""
    last = place.attempts[-1]
    failed = f"failed at attempt {last.number}: {said(last.failure)}"
    if not last.then:
        return failed
    chosen = last.then[-1]
    ask = chosen.ask
    if ask is None:
        return f"{failed}; it is {_words(chosen)}"
    answer = last.answers.get(ask.id)
    if answer is not None:
        return f"{failed}; {_ANSWERS.get(answer.action, answer.action)}"
    until = f", until {iso(ask.expires_at)} at most" if ask.expires_at else ""
    moves = [event for event in place.moves if event.ask == ask.id]
    return f"{failed}; it waits for an answer by {of(chosen.strategy).waits_for} to the question `{ask.id}`{until}{asked_since(moves)}"


def is_asking(place: Place) -> bool:
    """Whether a question about it is open."""
    if not place.attempts or not place.attempts[-1].then:
        return False
    ask = place.attempts[-1].then[-1].ask
    return ask is not None and ask.id not in place.attempts[-1].answers
