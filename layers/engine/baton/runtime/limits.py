"""Every number that the runtime works with, and its default. All times in milliseconds, sizes in bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of the runtime.

    lease_grace: how long after an invocation's hard deadline its lease ends.
    yield_reserve: what is held back for the hand-over; two thirds of it before steps are cut off.
    step_estimate: how long a step is expected to take that was never seen.
    step_timeout: of a step whose tool names none. news_every: how often a waiting holder looks for news.
    inline: a value above this goes to a blob. entry: what the events of one entry may have together.
    answer: what is left of an invocation, at least, when the engine gives up on a store and says so.
    snapshot_tail: no snapshot before the tail to read has this size.
    fault_pause: before a saga is tried again that a fault of the engine kept from going on.
    unreadable_pause: the same, of a saga whose log this version cannot read.
    concurrent_steps: of one saga in one invocation. children_at_once: port calls for children side by side.
    depth: of sagas that start sagas. signals_kept: that nobody has waited for yet.
    """

    lease_grace: int = 1_000
    yield_reserve: int = 1_000
    step_estimate: int = 1_500
    step_timeout: int = 300_000
    news_every: int = 5_000
    sweep_shortest: int = 300_000
    sweep_longest: int = 86_400_000
    start_due: int = 60_000
    timer_by_message: int = 900_000
    fork_deadline: int = 60_000
    inline: int = 8_192
    result: int = 5_242_880
    entry: int = 196_608
    snapshot_tail: int = 8_192
    answer: int = 200
    fault_pause: int = 60_000
    unreadable_pause: int = 3_600_000
    concurrent_steps: int = 100
    children_at_once: int = 8
    depth: int = 8
    signals_kept: int = 100
    pause_first: int = 20
    pause_longest: int = 2_000
