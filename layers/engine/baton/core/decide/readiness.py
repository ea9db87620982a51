"""When a node is ready: what has arrived at a join, held against what it waits for.

The table of joins is in docs/semantics.md. `when` is not read here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from baton.core.graph.graph import Join, Node

WAITS, FIRES, SKIPPED, FAILS = "waits", "fires", "skipped", "fails"

_ALL = Join()


def turn_of(
    node: Node,
    tails: frozenset[str],
    arrived: Mapping[str, bool],
    failed: Collection[str] = (),
    lost: Collection[str] = (),
) -> str:
    """WAITS, FIRES, SKIPPED or FAILS.

    `arrived` maps senders to alive; `failed` are those of the dead that carry errors, `lost` those that carry only
    failures which were caught, and are not rescued here. `tails` are the nodes from which a loop comes back to this
    one: a round after the first has no other edges.
    """
    if tails and not tails.isdisjoint(arrived):
        return FIRES
    join = node.join or _ALL
    alive, missing = sum(arrived.values()), max(len(node.before), 1) - len(arrived)
    if join.tolerated < 0:
        return _plain(join.need, alive, missing, bool(failed or lost))
    if len(failed) > join.tolerated:
        return FAILS
    if join.need == 0:
        if missing:
            return WAITS
        # An edge that has not arrived could have rescued what was lost.
        if len(failed) + len(lost) > join.tolerated:
            return FAILS
        return FIRES if alive or failed or lost else SKIPPED
    if alive >= join.need:
        return FIRES
    if failed and alive + missing < join.need:
        return FAILS
    return WAITS if missing else SKIPPED


def _plain(need: int, alive: int, missing: int, lacks: bool) -> str:
    """A join that tolerates nothing passes on what has failed or is lost."""
    if need:
        return FIRES if alive >= need else WAITS if missing else SKIPPED
    if missing:
        return WAITS
    return FIRES if alive and not lacks else SKIPPED
