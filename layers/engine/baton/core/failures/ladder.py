"""next_rung(cell, history, …): which strategy is used now, given what was tried; and history as data.

A failure's cell is in matrix.py, the length of pauses in retry.py. Nothing is carried out here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from baton.core.failures.alternatives import Way, choose
from baton.core.failures.cells import ASK_USER, ESCALATE, FAIL, REPLAN, RETRY, ROLLBACK, Cell
from baton.core.failures.retry import LONGEST_RETRY_AFTER_MS, listed, pause


class Bounds(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How often each strategy is used for one step, whatever its failures are.

    `retries` counts since a person last decided; a policy that allows more has its own number. `question_ms`: how long a
    person has to answer.
    """

    retries: int = 20
    replans: int = 3
    questions: int = 3
    rollbacks: int = 1
    escalations: int = 3
    question_ms: int = 86_400_000

    def of(self, strategy: str) -> int:
        """The number for a strategy besides retry."""
        return {
            REPLAN: self.replans,
            ASK_USER: self.questions,
            ROLLBACK: self.rollbacks,
            ESCALATE: self.escalations,
        }[strategy]


class History(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What was done about the failures of one step since it began.

    `since`: the time of the first failure after anything but a retry, 0 for never. `retries`: retries after that, whatever
    their failures were. `total`: retries since a person last decided. `used`: uses of each other strategy. `ways`: the names
    of the ways that were tried.
    """

    since: int = 0
    retries: int = 0
    total: int = 0
    used: dict[str, int] = {}
    ways: tuple[str, ...] = ()


class Rung(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The next step of the ladder.

    `strategy`: one of the ladder's, or `fail` at its end. A retry has `delay_ms`, and `hooks` to carry out before it.
    A replan has `way`, and the `hint` that it carries out. `why`: why the rungs below it were passed, for people.
    """

    strategy: str
    delay_ms: int = 0
    hooks: tuple[str, ...] = ()
    hint: str = ""
    way: Way | None = None
    why: tuple[str, ...] = ()


def next_rung(
    cell: Cell,
    history: History,
    *,
    code: str,
    now: int,
    retry_after_ms: int | None = None,
    draw: float = 0.5,
    possible: Collection[str] | None = None,
    ways: Sequence[Way] = (),
    bounds: Bounds = Bounds(),  # noqa: B008  # frozen
) -> Rung:
    """The first strategy of the cell's ladder that is not used up.

    `possible`: the strategies besides `retry` that can be carried out here; None for all. `ways`: how else the step can be
    done, the best first; a replan is one of them.
    """
    why: list[str] = []
    for strategy in ladder_of(cell, code):
        if strategy == RETRY:
            delay = _delay(cell, history, now, retry_after_ms, draw, bounds)
            if delay is not None:
                return Rung(strategy=RETRY, delay_ms=delay, hooks=cell.before_retry, why=tuple(why))
            has_attempts = history.retries < cell.policy.max_attempts - 1
            is_late = retry_after_ms is not None and retry_after_ms > LONGEST_RETRY_AFTER_MS
            words = "the pause that is asked for is too long" if is_late else "its time is used up"
            why.append(f"retry: {words}" if has_attempts else "retry: used up")
            continue
        if possible is not None and strategy not in possible:
            why.append(f"{strategy}: not possible here")
        elif history.used.get(strategy, 0) >= cell.at_most.get(strategy, bounds.of(strategy)):
            why.append(f"{strategy}: used up")
        elif strategy != REPLAN:
            return Rung(strategy=strategy, why=tuple(why))
        elif way := choose(cell.hints, ways, history.ways):
            hint = next((hint for hint in cell.hints if hint in way.hints), "")
            return Rung(strategy=REPLAN, hint=hint, way=way, why=tuple(why))
        else:
            why.append("replan: no other way is known")
    return Rung(strategy=FAIL, why=tuple(why))


def climbed(history: History, rung: Rung, *, now: int) -> History:
    """The history with a rung that is carried out for a failure at `now`."""
    if rung.strategy == RETRY:
        return msgspec.structs.replace(
            history,
            since=history.since or now,
            retries=history.retries + 1,
            total=history.total + 1,
        )
    # A step that is done another way, or again by a person's decision, has all its retries anew.
    by_person = rung.strategy in {ASK_USER, ESCALATE}
    return History(
        total=0 if by_person else history.total,
        used=_one_more(history.used, rung.strategy),
        ways=history.ways if rung.way is None else (*history.ways, rung.way.name),
    )


def decided(history: History) -> History:
    """The history once a person has decided that the step is tried again: people can be asked again."""
    used = {name: count for name, count in history.used.items() if name not in {ASK_USER, ESCALATE}}
    return msgspec.structs.replace(history, used=used)


def ladder_of(cell: Cell, code: str) -> tuple[str, ...]:
    """The strategies for a code: with `retry` where the policy's own lists want it, and without where they do not."""
    said = listed(cell.policy, code, cell.kind)
    if said is None:
        return cell.ladder
    rest = tuple(strategy for strategy in cell.ladder if strategy != RETRY)
    return (RETRY, *rest) if said else rest


def _delay(
    cell: Cell,
    history: History,
    now: int,
    retry_after_ms: int | None,
    draw: float,
    bounds: Bounds,
) -> int | None:
    done = history.retries
    retries = min(cell.policy.max_attempts - 1, cell.at_most.get(RETRY, cell.policy.max_attempts - 1))
    if done >= retries or history.total >= max(bounds.retries, retries):
        return None
    elapsed = now - history.since if history.since else 0
    return pause(cell.policy, done + 1, elapsed_ms=max(0, elapsed), retry_after_ms=retry_after_ms, draw=draw)


def _one_more(counts: Mapping[str, int], name: str) -> dict[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}
