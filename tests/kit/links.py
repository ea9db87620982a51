"""Answers by links in the simulation: who shows which link when, and what must hold of those that counted.

The readers of messages are no processes of the engine: nothing stops them, and they click again where there is no answer.
"""

from __future__ import annotations

import asyncio
import random
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from baton.core.log.events import Entry, NoticeDue, SignalReceived
from baton.core.log.folding.fold import fold
from baton.core.log.folding.forks import fork_in, fork_to
from baton.core.log.questions import Answer, is_answer_to, unclosed_questions
from baton.core.log.state import ANSWER, State
from baton.errors import Forbidden, LinkOver, NotAllowedNow, NotFound
from baton.runtime.people.links import seal_of
from tests.kit.virtual_time import EPOCH

if TYPE_CHECKING:
    from baton.ports import Telling
    from tests.kit.world import World

PAGE = "https://desk.example/answer"
CONFIRMED = """
name: confirmed
nodes:
  on:
    human:
      title: Who goes on?
      to: {group: hosts}
      options: [{id: a}, {id: b}, {id: c}]
      escalate: [{after: 6s, remind: true}, {after: 12s, hand_on: {group: leads}}, {after: 24s, decide: c}]
  by: {human: {title: By when?, to: {group: hosts}, options: [{id: a}, {id: b}, {id: c, default: true}], expires: 12s}}
  after: {tool: work, with: {n: 1}, after: [on, by]}
output: {on: '${ctx.on.output.answer}', by: '${ctx.by.output.answer}', n: '${ctx.after.output.n}'}
"""
"""A question that is told again, handed on and decided, and one that expires when the other is handed on."""
MOMENTS_S = (3, 6, 12, 24)
"""When the links are shown: alone, with a reminder, with a hand-on and an expiry, with a decision by default."""
_REFUSALS = (Forbidden, LinkOver, NotAllowedNow, NotFound)
Click = Callable[[], Awaitable[Any]]


async def confirmed(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """Both links are shown twice in one moment, or nearly, while a colleague answers otherwise. The seed has the moment."""
    world.confirm_url, world.groups = PAGE, {"ada": frozenset({"hosts"})}
    saga = await start(world, CONFIRMED, {}, "confirmed")
    number, turn = divmod(world.seed, len(MOMENTS_S))
    draw, spread = random.Random(f"clicks {world.seed}"), 0.2 if number else 0
    began = await _asked_at(world, saga)
    await asyncio.sleep(max(0, began + MOMENTS_S[turn] - spread - asyncio.get_running_loop().time()))

    async def say(click: Click) -> None:
        await asyncio.sleep(2 * spread * draw.random())
        with suppress(*_REFUSALS):
            await click()

    clicks: list[Click] = []
    for ask in ("0.on", "0.by"):
        if (told := newest(world, ask)) is not None:
            clicks += 2 * [_shows(world, told, patiently)]
        clicks.append(_answers(world, saga, ask, patiently))
    await asyncio.gather(*map(say, clicks))
    return saga


async def _asked_at(world: World, saga: str) -> float:
    """When people have been told of both questions, or will not be any more."""
    loop = asyncio.get_running_loop()
    for _ in range(600):
        if (newest(world, "0.on") and newest(world, "0.by")) or world.end(saga) is not None:
            break
        await asyncio.sleep(0.1)
    due = [event.notice.at for event in world.events(saga) if isinstance(event, NoticeDue)]
    return (min(due) - EPOCH) / 1_000 if due else loop.time()


def newest(world: World, ask: str) -> Telling | None:
    """The last message about a question."""
    return next((one for one in reversed(world.notices.told) if one.notice.ask == ask and one.link), None)


def _shows(world: World, told: Telling, patiently: Callable[..., Any]) -> Click:
    token = told.link.partition("#")[2]
    about = msgspec.json.decode(urlsafe_b64decode(token.partition(".")[0] + "=="))
    world.shown[about["s"], about["q"]] = about["d"]
    use = Answer(ask="", action="a")

    async def confirm(_: Any) -> Any:
        return await world.service(user=f"link:{about['p']}", tenant=about["t"]).confirm(token, use)

    return lambda: patiently(world, confirm)


def _answers(world: World, saga: str, ask: str, patiently: Callable[..., Any]) -> Click:
    async def answer(_: Any) -> Any:
        return await world.service(user="ada").answer(saga, Answer(ask=ask, action="b"), "colleague")

    return lambda: patiently(world, answer)


def of_links(world: World, logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """A link that counted is of the question as it was when it was answered."""
    for (saga, ask), seal in world.shown.items():
        states = [State()]
        for entry in logs.get(saga, []):
            state, fork = states[-1], fork_in(entry)
            for event in entry.events:
                if not isinstance(event, SignalReceived) or event.name != ANSWER:
                    continue
                if is_answer_to(event.key, ask) and event.by.startswith("link:"):
                    there = {seal_of(state, one) for _, one in unclosed_questions(state) if one.id == ask}
                    if there != {seal}:
                        yield f"{ask} was answered by a link of what people were told before"
            before = states[fork.cut] if fork is not None else state
            states.append(fold(state, entry) if fork is None else fork_to(state, before, entry, fork))
