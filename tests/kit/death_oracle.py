"""What must hold of deaths: a revival names an invocation that has died, or could not say that it had not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from baton.core.log.events import Entry, Revived, SagaEnded
from baton.ports import SagaRef
from tests.kit.world import TENANT, World


def of_deaths(world: World, logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """A revival names an invocation that died, or stood still; or one that could not give its lease back.

    That is one that gave up, and whose take landed after that, or whose giving back had no answer either: the table refused
    to free the lease, and took longer to append an entry than an invocation keeps for it (ADR 27 says how long that is), or never answered; or the saga had
    ended, was forked later, and nothing may follow an end. Or one that does not know that it has told of the death before it, or cannot since
    it is of an older release: it stands for that, also where its entry is there in the end. One of an older release
    that met a newer entry appends nothing, so a single answer that does not come until its time is over is enough.
    """
    for saga, entries in logs.items():
        for event in (event for entry in entries for event in entry.events):
            process = world.processes.get(event.dead) if isinstance(event, Revived) else None
            if process is None:
                continue
            is_stuck = (process.has_failed or process.home.is_old) and (
                process.lost_leases
                or process.unanswered > (not process.home.is_old)
                or process.was_slow
                or _has_ended_it(entries, process.id)
                or _has_left_it(world, saga, entries, process.id)
            )
            if not (process.is_dead or process.is_frozen or process.has_overrun or is_stuck):
                yield f"{saga}: {process.id} is said to have died, and has not"


def _has_ended_it(entries: list[Entry], process: str) -> bool:
    mine = [entry for entry in entries if entry.invocation == process]
    return bool(mine) and isinstance(mine[-1].events[-1], SagaEnded)


def _has_left_it(world: World, saga: str, entries: list[Entry], process: str) -> bool:
    key = str(SagaRef(TENANT, saga))
    before = world.epochs.get((process, key), 1) - 1
    unsure = world.processes[process].unsure
    has_written = any(
        entry.invocation == process and entry.epoch and (key, entry.version) not in unsure
        for entry in entries
    )
    return before > 0 and (key, before) not in world.given_back and not has_written
