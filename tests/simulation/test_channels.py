"""Channels fail, hang, die and land late, one write at a time: each tells at least once, and twice only after a death.

What a single failing channel comes to over days is in tests/runtime/test_telling.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from itertools import chain
from typing import Any

import pytest
from msgspec.structs import replace

from baton.adapters.memory.people import MemoryNotices
from baton.core.log.events import NoticeDue, NoticesSent
from baton.runtime.people import notices as telling
from baton.runtime.people.notices import Channels
from tests.kit.corpus import start
from tests.kit.faults import CLASSIC, EVERYTHING, HANG, LATE, NO_ANSWER, THROTTLE, Plan
from tests.kit.notice_oracles import of_notices
from tests.kit.process import HANGS, REFUSES, Outage
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation

DOCUMENT = """
name: w
nodes:
  how: {human: {title: How?, options: [{id: a, default: true}, {id: b}], expires: 90s}}
  after: {after: how, human: {title: Well?, options: [{id: c, default: true}, {id: d}], expires: 90s}}
"""
BUSY = f"{DOCUMENT}  long: {{tool: work, with: {{n: 1, seconds: 80}}, timeout: 2m}}\n"
OTHERS = ("mail", "webhook")
AT_ONCE_S, IN_THE_END_S = 8, 900


def run(
    plan: Plan | None = None, outage: Outage | None = None, timeout_s: float = 6, document: str = DOCUMENT
) -> tuple[World, list[str], list[str]]:
    """The world, and by which channels something was told after a few seconds, and what is wrong in the end."""

    async def main() -> tuple[World, list[str], list[str]]:
        world = World.start(plan=plan or Plan(), timeout_s=timeout_s)
        world.other_channels = tuple(MemoryNotices(name) for name in OTHERS)
        world.outages = () if outage is None else (outage,)
        saga = await start(world, document, {}, "w")
        await asyncio.sleep(AT_ONCE_S)
        early = [channel.name for channel in channels(world) if channel.told]
        await asyncio.sleep(IN_THE_END_S)
        return world, early, list(wrong(world, saga))

    return run_virtual(main())


def channels(world: World) -> tuple[MemoryNotices, ...]:
    return (world.notices, *world.other_channels)


def wrong(world: World, saga: str) -> Iterator[str]:
    """What does not hold in the end, though every channel is well again."""
    events = world.events(saga)
    due = {event.notice.key for event in events if isinstance(event, NoticeDue)}
    noted = Counter(key for event in events if isinstance(event, NoticesSent) for key in event.keys)
    if world.end(saga) is None:
        yield "the saga has not come to its end"
    if len(due) != 2 or noted != Counter(due):
        yield f"due were {sorted(due)}, noted {sorted(noted.elements())}"
    for channel in channels(world):
        for key in sorted(due - {notice.key for notice in channel.said}):
            yield f"{channel.name} has not told {key}"
    yield from of_notices(world)


WRITES = ("claim", "tell", "sent")


@cache
def places() -> range:
    """The numbers of the writes by which people are told of the first notice, and of the one after that notes it."""
    world, early, broken = run()
    assert broken == []
    assert early == ["memory", *OTHERS]
    writes = world.plan.writes
    assert [writes.count(name) for name in WRITES] == [6, 6, 6], (
        "two notices, three channels: two writes for each"
    )
    first = writes.index("claim") + 1
    assert writes[first + 8] == "append"
    return range(first, first + 10)


def crashes(at: range, fates: tuple[str, ...] = EVERYTHING) -> Iterator[list[str]]:
    for number in at:
        for fate in fates:
            _, _, broken = run(Plan({number: fate}))
            yield [f"{fate} at {number}: {text}" for text in broken]


def test_whatever_happens_at_a_write_each_channel_tells_and_twice_only_after_a_death() -> None:
    assert [broken for broken in crashes(places()) if broken] == []


@pytest.mark.parametrize("fate", [THROTTLE, NO_ANSWER, HANG, LATE])
def test_what_a_worker_has_sent_and_could_not_note_it_notes_as_long_as_it_lives_and_sends_no_more(
    fate: str,
) -> None:
    """Its saga has other work, so that it is there when the note is tried again."""
    writes = run()[0].plan.writes
    notes = [number for number in places() if writes[number - 1] == "sent"]
    assert len(notes) == 3
    for number in notes:
        world, _, broken = run(Plan({number: fate}), timeout_s=600, document=BUSY)
        assert broken == [], f"{fate} at {number}"
        assert any(f"{fate} at sent" in fault for fault in world.faults)
        for channel in channels(world):
            assert Counter(notice.key for notice in channel.said).most_common(1)[0][1] == 1, fate


@pytest.mark.parametrize("how", [HANGS, REFUSES])
@pytest.mark.parametrize("name", ["memory", *OTHERS])
def test_a_channel_that_is_away_blocks_no_other_and_tells_when_it_is_back(name: str, how: str) -> None:
    _, early, broken = run(outage=Outage(name, how, 0, 60))
    assert early == [one for one in ("memory", *OTHERS) if one != name]
    assert broken == []


# ---- bugs that the above must find


async def in_turn(self: Any, call: Any, state: Any, notices: Any) -> tuple[tuple[str, ...], tuple[()]]:
    """A channel that fails stops those behind it."""
    told: list[str] = []
    for notice in notices:
        for channel in self._channels:
            await self._by(call, channel, telling._telling(state, notice, self._clock.now()))
            if (notice.key, channel.name) not in self._settled:
                return tuple(told), ()
        told.append(notice.key)
    return tuple(told), ()


async def one_claim(call: Any, kept: Any, channel: Any, told: Any, sent: Any, **_: Any) -> None:
    """All channels share the claim of the first."""
    await SEND(call, kept, channel, told, sent, is_first=True)


async def noted_first(call: Any, kept: Any, channel: Any, told: Any, _: Any, *, is_first: bool) -> None:
    """What is noted before it is sent is lost by a death between the two."""
    key = told.notice.key if is_first else f"{told.notice.key} {channel.name}"
    if await call(kept.claim, told.tenant, told.saga, replace(told.notice, key=key), told.now):
        await call(kept.sent, told.tenant, key, told.now)
        await call(channel.tell, told)


async def without_a_claim(call: Any, _: Any, channel: Any, told: Any, *__: Any, **___: Any) -> None:
    """What another try has sent is sent again."""
    await call(channel.tell, told)


SEND = telling.send
Send = Callable[..., Awaitable[None]]


def test_a_channel_that_stops_those_behind_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Channels, "tell", in_turn)
    assert run()[1:] == (["memory", *OTHERS], []), "as long as none fails"
    _, early, _ = run(outage=Outage("mail", HANGS, 0, 60))
    assert early == ["memory"]


@pytest.mark.parametrize("planted", [one_claim, noted_first, without_a_claim])
def test_a_planted_bug_of_the_claim_is_found(planted: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    at = places()
    monkeypatch.setattr(telling, "send", planted)
    away = (run(outage=Outage("mail", REFUSES, 0, 60))[2] for _ in range(1))
    found = next(filter(None, chain(away, crashes(at, (*CLASSIC[:2], HANG, LATE)))), None)
    assert found, planted.__doc__
