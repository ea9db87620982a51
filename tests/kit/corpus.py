"""The workflows of the simulation, one per shape of a saga's life, with the outside services they act on.

Each `Scenario` drives one saga through the API as a patient client would: an answer that did not come is
asked for again with the same key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from baton.core.limits import Limits
from baton.core.log.events import QuestionOpened
from baton.core.log.questions import APPROVE, Answer
from baton.errors import EngineFault, NotAllowedNow, NotFound
from baton.runtime.requests.service import Service
from tests.kit import polls_and_children
from tests.kit.assisted_functions import OF_ASSISTED
from tests.kit.documents import (
    APPROVED,
    BIG,
    CROWD,
    EARLY_END,
    ESCALATED,
    FAILING,
    HAULED,
    LEFT_ALONE,
    LIMITED,
    LONG_WAIT,
    LOSERS,
    LOSERS_AT_THE_END,
    PARENT,
    QUESTIONS,
    REPORTING,
    RETRIED,
    ROUTES,
    ROWS,
    SUMS,
    TWICE_HAULED,
    WAITING,
    chain_of,
    fan_of,
)
from tests.kit.faults import Crash
from tests.kit.function_scenarios import OF_FUNCTIONS, changes, lends_in_turn
from tests.kit.journal_scenarios import journalled
from tests.kit.map_scenarios import ITEMS
from tests.kit.mishaps import EFFECTS, MISHAPS, OFTEN, SELDOM_S, answering, with_books
from tests.kit.model_scenarios import HASTY, MODELLED
from tests.kit.order_scenarios import OF_ORDERS
from tests.kit.patch_scenarios import OF_PATCHES
from tests.kit.remote_tools import REMOTE, with_the_crm
from tests.kit.roles import Acknowledged, ask_unless_done
from tests.kit.shared_budget import family, resume_parked
from tests.kit.undoable_tools import finds_closed, lends, lends_again
from tests.kit.virtual_time import VirtualClock, until_something_happens
from tests.kit.world import USER, World

T = TypeVar("T")


async def patiently(world: World, use: Callable[[Service], Awaitable[T]], user: str = USER) -> T:
    """Ask until there is an answer: a client that repeats with the same key."""
    return await _until_answered(lambda: use(world.service(user=user)))


async def shown(world: World, saga: str) -> dict[str, Any]:
    """Look until there is an answer."""
    return await _until_answered(lambda: world.queries().show(saga))


async def _until_answered(ask: Callable[[], Awaitable[T]]) -> T:
    for _ in range(40):
        try:
            return await ask()
        except (Crash, EngineFault):
            await asyncio.sleep(0.5)
    raise AssertionError("the API never answered")


@dataclass(frozen=True)
class Scenario:
    """A workflow's life. `drive` starts the saga and does all that happens to it; it returns its id.

    `same_steps` False: which steps got done before the end depends on time, by design. `has_open_end`: so does the end.
    """

    name: str
    drive: Callable[[World], Awaitable[str]]
    expected: str = "completed"
    same_steps: bool = True
    has_open_end: bool = False
    limits: Limits = field(default_factory=Limits)


async def start(world: World, document: str, given: Any, name: str) -> str:
    await patiently(world, lambda service: service.register(document, json_only=False))
    view, _ = await patiently(world, lambda service: service.start(name, given, "key-1"))
    return str(view["id"])


async def _chain(world: World) -> str:
    return await start(world, chain_of(8, 1.1), {"n": 0}, "chain")


async def _go(service: Service, saga: str, key: str) -> None:
    await service.signal(saga, "go", {}, key)


async def _sums(world: World) -> str:
    """Pure steps before, between and beside those that act, and a signal while some of them wait for their entry."""
    saga = await start(world, SUMS, {"n": 1}, "sums")
    for key in ("early", "late"):
        await asyncio.sleep(0.55)
        with suppress(NotAllowedNow):  # it has ended before the second
            await patiently(world, partial(_go, saga=saga, key=key))
    return saga


async def _fan(world: World) -> str:
    return await start(world, fan_of(6), {}, "fan")


async def _waiting(world: World) -> str:
    saga = await start(world, WAITING, {}, "waiting")
    await asyncio.sleep(30)
    await patiently(world, lambda service: service.signal(saga, "answer", {"yes": True}, "sig-1"))
    return saga


async def _early_signal(world: World) -> str:
    saga = await start(world, WAITING, {}, "waiting")
    await patiently(world, lambda service: service.signal(saga, "answer", {"yes": True}, "sig-1"))
    await patiently(world, lambda service: service.signal(saga, "answer", {"yes": True}, "sig-1"))
    return saga


async def _long_wait(world: World) -> str:
    return await start(world, LONG_WAIT, {}, "long-wait")


async def _big(world: World) -> str:
    return await start(world, BIG, {"note": "y" * 20_000}, "big")


async def _parent(world: World) -> str:
    child = chain_of(2)
    await patiently(world, lambda service: service.register(child, json_only=False))
    return await start(world, PARENT, {}, "parent")


async def _reporting(world: World) -> str:
    """Children end while their parent is at work, and while it waits."""
    await patiently(world, lambda service: service.register(chain_of(2), json_only=False))
    return await start(world, REPORTING, {}, "reporting")


async def _signal_then_end(world: World) -> str:
    document = "name: w\nnodes: {go: {wait: {signal: go}}}"
    saga = await start(world, document, {}, "w")
    for _ in range(2):
        await patiently(world, lambda service: service.signal(saga, "go", 1, "k"))
        await asyncio.sleep(5)
    return saga


async def _one(world: World, tool: str) -> str:
    return await start(world, f"name: w\nnodes: {{a: {{tool: {tool}}}}}", {}, "w")


async def _resumed(world: World) -> str:
    saga, looks = await _one(world, "die"), 0
    while (await shown(world, saga))["status"] != "parked" and world.end(saga) is None:
        looks += 1
        await asyncio.sleep(30 if looks < OFTEN else SELDOM_S)
    await patiently(world, lambda service: ask_unless_done(service.resume(saga)))
    await asyncio.sleep(400)  # longer than the sweep
    for _ in range(20):  # and as long as faults on top of it take: the head says `parked` all the time
        if (await shown(world, saga))["status"] == "parked":
            break
        await asyncio.sleep(30)
    return saga


async def _parent_cancelled(world: World) -> str:
    await patiently(
        world, lambda service: service.register("name: slow\nnodes: {a: {wait: {for: 1h}}}", json_only=False)
    )
    saga = await start(world, "name: parent\nnodes: {child: {workflow: slow}}", {}, "parent")
    await asyncio.sleep(20)
    await _cancel(world, saga, 0)
    return saga


async def _parent_forked(world: World) -> str:
    await patiently(
        world, lambda service: service.register("name: slow\nnodes: {a: {wait: {for: 10m}}}", json_only=False)
    )
    document = "name: parent\nnodes:\n  go: {wait: {signal: go}}\n  child: {workflow: slow, after: go}\n"
    saga = await start(world, document, {}, "parent")
    await asyncio.sleep(20)
    await patiently(world, lambda service: service.signal(saga, "go", None, "k"))
    await asyncio.sleep(20)
    await patiently(world, lambda service: service.fork(saga, 2, "before the child", "f"))
    await asyncio.sleep(20)
    await patiently(world, lambda service: service.signal(saga, "go", None, "k2"))
    return saga


async def _routes(world: World) -> str:
    await patiently(
        world, lambda service: service.register("name: slow\nnodes: {a: {wait: {for: 10m}}}", json_only=False)
    )
    return await start(world, ROUTES, {}, "routes")


async def _limited(world: World) -> str:
    return await start(world, LIMITED, {}, "limited")


async def _failing(world: World) -> str:
    return await start(world, FAILING, {}, "failing")


async def _cancelled(world: World) -> str:
    saga = await start(world, WAITING, {}, "waiting")
    await asyncio.sleep(10)
    await _cancel(world, saga, 5_000)
    return saga


async def _cancel(world: World, saga: str, grace_ms: int) -> None:
    try:
        await patiently(world, lambda service: service.cancel(saga, "changed my mind", grace_ms))
    except NotAllowedNow:
        return


async def _forked(world: World) -> str:
    saga = await start(world, chain_of(3), {"n": 0}, "chain")
    while world.end(saga) is None:
        await asyncio.sleep(20)
        await resume_parked(world, patiently)
    branch = 0
    while branch == 0:  # a repeated fork would be a second one, so look before asking again
        try:
            await world.service().fork(saga, 2, "again from the first step")
        except (Crash, EngineFault):
            await asyncio.sleep(0.5)
        branch = (await shown(world, saga))["branch"]
    return saga


async def _effects(world: World) -> str:
    saga = await start(world, EFFECTS, {}, "effects")
    await answering(world, saga, shown, with_books(world.books))
    return saga


async def _remote(world: World) -> str:
    saga = await start(world, REMOTE, {}, "remote")
    await answering(world, saga, shown, with_the_crm(world.books))
    return saga


async def _freed(world: World) -> str:
    """Two sagas with one key, and an operator who frees its claim whenever that is harmless, and answers what they ask."""
    saga = await start(world, TWICE_HAULED, {}, "w")
    await patiently(world, lambda service: service.start("w", {}, "key-2"))
    both = [head.ref.id for head in world.log.heads()]

    async def free() -> None:
        while not all(world.end(one) is not None for one in both):
            for _, key in list(world.effects.stored):
                with suppress(Crash, EngineFault, NotAllowedNow):
                    await world.service().claims.free(key, "it takes long", force=False)
            await asyncio.sleep(1)

    await asyncio.gather(free(), *(answering(world, one, shown, with_books(world.books)) for one in both))
    return saga


async def _mishaps(world: World) -> str:
    saga = await start(world, MISHAPS, {}, "mishaps")
    await answering(world, saga, shown, with_books(world.books))
    return saga


async def _losers(world: World) -> str:
    return await start(world, LOSERS, {}, "losers")


async def _losers_at_the_end(world: World) -> str:
    return await start(world, LOSERS_AT_THE_END, {}, "losers")


async def _early_end(world: World) -> str:
    """An end that is reached while a step spends money, a wait is open and a child runs."""
    slow = "name: slow\nnodes: {a: {wait: {for: 10m}}}"
    await patiently(world, lambda service: service.register(slow, json_only=False))
    return await start(world, EARLY_END, {}, "early")


async def _asked(world: World) -> str:
    """A person who answers at once."""
    saga = await start(world, "name: w\nnodes: {a: {tool: send, with: {n: 3}}}", {}, "w")
    await answering(world, saga, shown, with_books(world.books), every_s=0.3)
    return saga


async def _say(service: Service, saga: str, answer: Answer) -> None:
    await service.answer(saga, answer, "k")


async def _questions(world: World) -> str:
    """A person who answers each question twice: the second time is none."""
    saga = await start(world, QUESTIONS, {}, "questions")
    for node, answer in (
        ("approve", Answer(ask="0.approve", action="approve")),
        ("form", Answer(ask="0.form", action="submit", data={"n": 4})),
    ):
        looks = 0
        while world.end(saga) is None:
            if any(one["node"] == node for one in (await shown(world, saga))["questions"]):
                break
            looks += 1
            await (until_something_happens(1) if looks < OFTEN else asyncio.sleep(SELDOM_S))
        for _ in range(2):
            await ask_unless_done(patiently(world, partial(_say, saga=saga, answer=answer)))
    return saga


async def _approved(world: World, document: str = APPROVED, name: str = "approved") -> str:
    """A person who approves each call twice, and resumes a parked saga so: the second time is none."""
    saga = await start(world, document, {}, name)
    known = 0
    while world.end(saga) is None:
        is_news, known = known != len(world.entries(saga)), len(world.entries(saga))
        asked = (await shown(world, saga))["questions"] if is_news else []
        for question in asked * 2:
            if APPROVE not in question["options"] and world.troubles is not None:
                return saga  # another person answers from here on (people.py)
            said = partial(_say, saga=saga, answer=Answer(ask=question["id"], action=question["options"][0]))
            await ask_unless_done(patiently(world, said))
        await until_something_happens(1)
    return saga


async def _escalated(world: World) -> str:
    """A person who claims one question and lets it go by, and says of another at the last moment what it would come to."""
    saga = await start(world, ESCALATED, {}, "escalated")
    while not (opened := [one.ask for one in world.events(saga) if isinstance(one, QuestionOpened)]):
        if world.end(saga) is not None:
            return saga
        await resume_parked(world, patiently)
        await until_something_happens(0.5)
    began = opened[0].asked_at
    with suppress(NotAllowedNow, NotFound):  # it was closed meanwhile
        await patiently(world, lambda service: service.questions.claim(saga, "0.who"))
        world.acknowledged.append(Acknowledged("claim", saga, key="0.who"))
    await asyncio.sleep(max(0, (began + 19_800 - VirtualClock().now()) / 1_000))
    answer = Answer(ask="0.late", action="approve")
    with suppress(NotAllowedNow, NotFound):
        await patiently(world, partial(_say, saga=saga, answer=answer))
    return saga


async def _crowd(world: World) -> str:
    """Four callers who speak at the same moment, twice over."""
    saga = await start(world, CROWD, {}, "crowd")

    async def say(word: str) -> None:
        with suppress(NotAllowedNow):  # a repetition that comes when all was heard
            await patiently(world, lambda service: service.signal(saga, "word", word, word))

    for turn in range(2):
        await asyncio.gather(*(say(f"{turn}-{caller}") for caller in range(4)))
        await asyncio.sleep(2)
    return saga


PAUSED = """
name: paused
nodes:
  one: {tool: work, with: {n: 1, seconds: 1.1}}
  go: {wait: {signal: go, timeout: 5m}}
  two: {tool: work, after: [one, go], with: {n: 2}}
output: '${ctx.go.output}'
"""


async def _paused(world: World) -> str:
    """An operator who pauses and resumes twice, a signal meanwhile, and a wait whose time would be over."""
    saga = await start(world, PAUSED, {}, "paused")
    for _ in range(2):
        await patiently(world, lambda service: ask_unless_done(service.pause(saga, "for an hour")))
    await asyncio.sleep(20)
    await patiently(world, lambda service: ask_unless_done(service.signal(saga, "go", 7, "k")))
    await asyncio.sleep(300)
    for _ in range(2):
        await patiently(world, lambda service: ask_unless_done(service.wake(saga)))
        await patiently(world, lambda service: ask_unless_done(service.resume(saga)))
    return saga


async def _cancelled_early(world: World) -> str:
    """A cancel that comes while a parent may still be about to start its child."""
    await patiently(
        world, lambda service: service.register("name: slow\nnodes: {a: {wait: {for: 20s}}}", json_only=False)
    )
    saga = await start(world, "name: parent\nnodes: {child: {workflow: slow}}", {}, "parent")
    await asyncio.sleep(5)
    await _cancel(world, saga, 0)
    return saga


POLITE = "name: w\nnodes: {a: {tool: listen}}\noutput: '${ctx.a.output}'"
RENTED = "name: w\nnodes: {a: {tool: rent, with: {stall: corner}}}"
RENEWED = Limits(lease_ms=3_000)  # of invocations that last twice as long
LOOKED_AT = Limits(sweep_shortest_ms=300_000)
_FAMILY = partial(family, start=start, patiently=patiently)
_IN_TIME, _TOO_LATE, _HANDLED = (
    partial(one, start=start, patiently=patiently) for one in polls_and_children.OTHERS
)

CORPUS = (
    Scenario("chain", _chain),
    Scenario("sums", _sums),
    Scenario("fan", _fan),
    Scenario("waiting", _waiting),
    Scenario("early-signal", _early_signal),
    Scenario("long-wait", _long_wait, limits=LOOKED_AT),
    Scenario("big", _big),
    Scenario("parent", _parent),
    Scenario("reporting", _reporting),
    Scenario("rows", partial(start, document=ROWS, given={}, name="rows")),
    Scenario("snapshots", _chain, limits=replace(RENEWED, snapshot_tail_bytes=300)),
    Scenario("signal-then-end", _signal_then_end),
    Scenario("killer", partial(_one, tool="die"), "parked"),
    Scenario("resumed", _resumed, "parked", limits=LOOKED_AT),
    Scenario("overlong", partial(_one, tool="hang"), "parked"),
    Scenario("parent-cancelled", _parent_cancelled, "cancelled"),
    Scenario("parent-forked", _parent_forked),
    Scenario("routes", _routes),
    Scenario("limited", _limited, "failed"),
    Scenario("failing", _failing, "failed", same_steps=False),
    Scenario("cancelled", _cancelled, "cancelled", same_steps=False),
    Scenario("forked", _forked),
    Scenario("effects", _effects, limits=RENEWED),
    Scenario("mishaps", _mishaps),
    Scenario("remote", _remote),
    Scenario("losers", _losers, same_steps=False),
    Scenario("losers-at-the-end", _losers_at_the_end, same_steps=False),
    Scenario("early-end", _early_end, same_steps=False),
    Scenario("rented", partial(start, document=RENTED, given={}, name="w")),
    Scenario("asked", _asked),
    Scenario("questions", _questions),
    Scenario("escalated", _escalated),
    Scenario("left-alone", partial(start, document=LEFT_ALONE, given={}, name="left")),
    Scenario("approved", _approved),
    Scenario("items", partial(_approved, document=ITEMS, name="items")),
    Scenario("crowd", _crowd),
    Scenario("paused", _paused),
    Scenario(
        "retried",
        partial(start, document=RETRIED, given={}, name="w"),
        same_steps=False,
        limits=Limits(snapshot_tail_bytes=300),
    ),
    Scenario("freed", _freed, same_steps=False),
    Scenario("hauled", partial(start, document=HAULED, given={}, name="w")),
    Scenario("cancelled-early", _cancelled_early, "cancelled", has_open_end=True),
    Scenario("polite", partial(start, document=POLITE, given={}, name="w")),
    Scenario("lends-again", partial(lends_again, start=start, patiently=patiently), "rolled_back"),
    Scenario("lends", partial(lends, start=start, patiently=patiently), "rolled_back"),
    Scenario("just-in-time", _IN_TIME, has_open_end=True, same_steps=False),
    Scenario("too-late", _TOO_LATE, has_open_end=True, same_steps=False),
    Scenario("handled", _HANDLED, "rolled_back"),
    *(
        Scenario(name, partial(drive, start=start, patiently=patiently), same_steps=name not in HASTY)
        for name, drive in (*MODELLED.items(), *polls_and_children.DRIVES)
    ),
    *(
        Scenario(
            name,
            partial(drive, start=start, patiently=patiently),
            same_steps=name
            not in ("races", "moves", "durable"),  # a process that has not run a handler does nothing
        )
        for name, drive in {**OF_FUNCTIONS, **OF_ASSISTED}.items()
    ),
    Scenario("journalled", partial(journalled, start=start, patiently=patiently)),
    Scenario("changes", partial(changes, start=start, patiently=patiently), "parked", same_steps=False),
    Scenario("lends-in-turn", partial(lends_in_turn, start=start, patiently=patiently), "rolled_back"),
    *(
        Scenario(name, partial(drive, start=start, patiently=patiently), status, same_steps=False)
        for name, (drive, status) in OF_ORDERS.items()
    ),
    *(
        Scenario(name, partial(drive, start=start, patiently=patiently), status)
        for name, (drive, status) in OF_PATCHES.items()
    ),
    Scenario("finds-closed", partial(finds_closed, start=start, patiently=patiently), "rolled_back"),
    Scenario(
        "family", _FAMILY, same_steps=False, limits=Limits(saga_budget_usd="0.50", user_day_budget_usd="0")
    ),
    Scenario("announced", partial(polls_and_children.announced, patiently=patiently)),
)
