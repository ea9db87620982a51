"""What must hold of notices and the channels by which people are told, read off the calls as they landed.

A channel claims a notice for itself, sends it, and notes that (ADR 42). So it sends one again only with a claim of its own,
which it is given only where nothing was noted; and nothing is noted only of what an invocation was kept from noting: it died
or stood still, or had no answer from the channel or the table.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from baton.core.log.events import Notice
from baton.ports import Telling
from baton.ports.people import WINDOW_MS

if TYPE_CHECKING:
    from tests.kit.process import Process
    from tests.kit.world import World

MOST_SKEW_S = 3  # of the clocks by which a claim judges when a notice was sent


@dataclass(frozen=True)
class Landed:
    """A call about a notice that its service carried out: `claim` only if it was granted. `at`: of the notice."""

    call: str
    process: Process
    time: float
    at: int = 0


@dataclass
class Told:
    """What happened in a world to each notice, by the key under which a channel claims it. `lost`: the calls without an answer, by process."""

    landed: dict[tuple[str, str], list[Landed]] = field(default_factory=lambda: defaultdict(list))
    lost: dict[tuple[str, str], dict[str, set[str]]] = field(default_factory=lambda: defaultdict(dict))

    def note(self, process: Process, call: str, service: str, args: tuple[Any, ...], result: Any) -> None:
        if call == "claim" and result is None:
            return
        now, at = asyncio.get_running_loop().time(), 0
        if call == "claim":
            at = result.at
        elif call == "tell":
            at = args[0].notice.at
        self.landed[_place(process.world, call, service, args)].append(Landed(call, process, now, at))

    def had_no_answer(self, process: Process, call: str, service: str, args: tuple[Any, ...]) -> None:
        self.lost[_place(process.world, call, service, args)].setdefault(process.id, set()).add(call)


def is_of_notices(call: str, args: tuple[Any, ...]) -> bool:
    """Whether a call is one of the three by which a channel tells: effects are claimed, too."""
    return call in ("tell", "sent") or (call == "claim" and any(isinstance(one, Notice) for one in args))


def _place(world: World, call: str, service: str, args: tuple[Any, ...]) -> tuple[str, str]:
    """Tenant, and the key under which the channel claims."""
    if call == "tell":
        telling: Telling = args[0]
        is_first = service == world.notices.name
        return telling.tenant, telling.notice.key if is_first else f"{telling.notice.key} {service}"
    if call == "claim":
        notice: Notice = args[2]
        return args[0], notice.key
    return args[0], args[1]


def of_notices(world: World) -> Iterator[str]:
    """Promises about all that was told."""
    for place, landed in world.told.landed.items():
        yield from (f"{place[1]}: {text}" for text in _of_one(landed, world.told.lost[place]))


def _of_one(landed: list[Landed], lost: Mapping[str, set[str]]) -> Iterator[str]:
    """The tellings in the order of their claims: one that stood still over its claim may be the last to tell."""
    tellings = list[tuple[Landed, Landed]]()
    for number, one in enumerate(landed):
        if one.call == "tell":
            claims = [c for c in landed[:number] if c.call == "claim" and c.process is one.process]
            if not claims:
                yield f"told by {one.process.id} without a claim"
            else:
                tellings.append((claims[-1], one))
    tellings.sort(key=lambda pair: landed.index(pair[0]))
    for (_, before), (again, one) in pairwise(tellings):
        noted = [c for c in landed[: landed.index(again)] if c.call == "sent"]
        if noted:
            if one.at == before.at or again.time - noted[-1].time < WINDOW_MS / 1_000 - MOST_SKEW_S:
                yield f"told by {one.process.id}, though it was noted as sent"
        elif not _was_hindered(before, one, lost):
            yield f"told by {one.process.id} once more, and nothing had kept {before.process.id} from noting it"


def _was_hindered(told: Landed, again: Landed, lost: Mapping[str, set[str]]) -> bool:
    """Whether the first was kept from noting what it told.

    One whose channel has answered knows that it has told, as long as it lives. One that stood still may have lost its lease,
    and is then beside another.
    """
    process, calls = told.process, lost.get(told.process.id, set())
    if process is again.process:
        return "tell" in calls
    return bool(calls) or process.is_dead or bool(process.still)
