"""Which messages of a queue are received next: those of tenants with little in flight come first, as in SQS.

Source: SQS developer guide, "How Amazon SQS fair queues work": a message group is noisy when it has at least 30 messages
in flight and more than a tenth of all that are; messages of other groups are received before its own.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

NOISY_FROM, NOISY_SHARE = 30, 0.1  # of SQS


def fairest(
    groups: Sequence[str],
    in_flight: Mapping[str, int],
    count: int,
    *,
    noisy_from: int = 0,
    noisy_share: float = 0.0,
) -> list[int]:
    """Positions of the `count` messages to receive next, of those that wait in the order of `groups`.

    Of two groups the one with fewer messages in flight is first, and the one that came first where these are equal. A
    group that is not noisy counts as one without any. The defaults call every group noisy: a machine with room for two
    batches never has the thirty in flight from which SQS would look.
    """
    waiting: dict[str, deque[int]] = {}
    for position, group in enumerate(groups):
        waiting.setdefault(group, deque()).append(position)
    flying, taken = Counter(in_flight), list[int]()

    def rank(group: str) -> tuple[int, int]:
        mine = flying[group]
        is_noisy = mine >= noisy_from and mine > noisy_share * flying.total()
        return (mine if is_noisy else 0), waiting[group][0]

    while waiting and len(taken) < count:
        group = min(waiting, key=rank)
        taken.append(waiting[group].popleft())
        flying[group] += 1
        if not waiting[group]:
            del waiting[group]
    return taken
