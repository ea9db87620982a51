"""Which messages of a queue are received next: those of groups that have used little of the workers, as in SQS.

Source: SQS developer guide, "How Amazon SQS fair queues work": a group is noisy when it has more than a tenth of what is in
flight, or has had more than a tenth of the workers' time of late. Messages of other groups are received before its own.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

NOISY_SHARE = 0.1
OF_LATE_S = 30.0
"""A message counts as used by its group for so long after it was worked on. How long SQS looks back is not documented."""


def fairest(groups: Sequence[str], used: Mapping[str, int], count: int) -> list[int]:
    """Positions of the `count` messages to receive next, of those that wait in the order of `groups`.

    `used`: by group, the messages that it has in flight or had of late. A group that is not noisy counts as one without
    any; of two groups the one with less is first, and the one that came first where these are equal.
    """
    waiting: dict[str, deque[int]] = {}
    for position, group in enumerate(groups):
        waiting.setdefault(group, deque()).append(position)
    known, taken = Counter(used), list[int]()

    def rank(group: str) -> tuple[int, int]:
        mine = known[group]
        return (mine if mine > NOISY_SHARE * known.total() else 0), waiting[group][0]

    while waiting and len(taken) < count:
        group = min(waiting, key=rank)
        taken.append(waiting[group].popleft())
        known[group] += 1
        if not waiting[group]:
            del waiting[group]
    return taken
