"""People are told beside the steps: a topic that is away holds up neither a step nor the end of a saga."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from baton import Context, StepFailure, tool
from baton.adapters.memory.people import MemoryNotices
from baton.core.limits import Limits
from baton.core.log.events import NoticesSent, SagaEnded, StepSucceeded
from baton.core.log.questions import Answer
from baton.errors import ChannelRefused, StoreUnavailable
from baton.ports import Telling
from tests.kit.corpus import start
from tests.kit.process import Outage
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

UNTOLD = Limits().untold_end_ms


@dataclass
class Topic:
    """What can go wrong with telling: the topic does not answer, or some notices are refused. `tries` counts by code."""

    is_away: bool = True
    refused: set[str] = field(default_factory=set)
    tries: Counter[str] = field(default_factory=Counter)

    def hang_in(self, world: World) -> None:
        topic = self

        def fails(telling: Telling) -> None:
            code = telling.notice.code
            topic.tries[code] += 1
            if topic.is_away or code in topic.refused:
                raise StoreUnavailable("the topic is gone")

        world.notices.fails = fails

        @tool("spender", registry=world.registry, cost_usd="0.9")
        async def spender(context: Context) -> int:
            """A user is told of it: it has spent most of what its saga may."""
            context.spend("0.85")
            return 1

        @tool("login", registry=world.registry)
        async def login(code: str) -> int:
            raise StepFailure(code, "no")

        @tool("slow", registry=world.registry)
        async def slow(seconds: float = 1) -> int:
            await asyncio.sleep(seconds)
            return 1

        world.tools = world.registry.specs()

    @property
    def all_tries(self) -> int:
        return self.tries.total()


async def status(world: World, saga: str) -> str:
    return str((await world.queries().show(saga))["status"])


ASKING = """
name: w
nodes:
  ask: {tool: login, with: {code: login_required}}
  a: {tool: slow}
  b: {tool: slow, after: a}
  c: {tool: slow, after: b, with: {seconds: 20}}
"""
SPENDING = "name: w\nnodes: {s: {tool: spender}, a: {tool: slow, after: s}, b: {tool: slow, after: a}}"


async def test_who_is_asked_again_by_a_fork_is_told_again_and_can_answer() -> None:
    world = World.start()
    topic = Topic(is_away=False)
    topic.hang_in(world)
    saga = await start(world, "name: w\nnodes: {ask: {tool: login, with: {code: login_required}}}", {}, "w")
    await world.settle(60)
    view = await world.queries().show(saga)
    (question,) = view["questions"]
    await world.service().answer(saga, Answer(ask=question["id"], action="fail"), "")
    await world.settle(60)
    assert await status(world, saga) == "failed"
    await world.service().fork(saga, view["version"], "ask again")
    await world.settle(60)
    assert await status(world, saga) == "suspended"
    first, again = (notice for notice in world.notices.said)
    assert (first.code, again.code) == ("login_required", "login_required")
    assert (first.message, first.key == again.key) == (again.message, False)
    await world.service().answer(saga, Answer(ask=question["id"], action="use", output=1), "")
    await world.settle()
    assert await status(world, saga) == "completed"


async def test_steps_go_on_while_no_notice_can_be_sent_and_it_is_sent_later() -> None:
    world = World.start(timeout_s=60)
    topic = Topic()
    topic.hang_in(world)
    saga = await start(world, ASKING, {}, "w")
    await asyncio.sleep(45)
    done = [event for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert [(event.node, event.ended_at - done[0].started_at < 23_000) for event in done] == [
        ("a", True),
        ("b", True),
        ("c", True),
    ]
    assert topic.all_tries < 20, "one try of a few seconds, and no other soon"
    assert await status(world, saga) == "suspended"
    await asyncio.sleep(4 * 3_600)
    assert topic.all_tries < 100
    assert len(world.invocations) < 30
    topic.is_away = False
    await asyncio.sleep(6 * 3_600)
    assert [notice.code for notice in world.notices.said] == ["login_required"]
    assert [event for event in world.events(saga) if isinstance(event, NoticesSent)]


async def test_a_saga_ends_although_no_notice_could_be_sent() -> None:
    world = World.start(timeout_s=60)
    topic = Topic()
    topic.hang_in(world)
    saga = await start(world, SPENDING, {}, "w")
    await asyncio.sleep(60)
    assert await status(world, saga) == "running"
    await asyncio.sleep(2 * UNTOLD / 1_000)
    assert await status(world, saga) == "completed"
    assert len(world.invocations) < 15


async def test_a_saga_that_is_cancelled_ends_with_notices_still_to_be_sent() -> None:
    world = World.start(timeout_s=60)
    topic = Topic()
    topic.hang_in(world)
    saga = await start(world, ASKING, {}, "w")
    await asyncio.sleep(100)
    await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(UNTOLD / 1_000)
    assert await status(world, saga) == "cancelled"
    assert isinstance(world.events(saga)[-1], SagaEnded)


async def test_a_notice_that_is_refused_keeps_no_other_back() -> None:
    world = World.start(timeout_s=60)
    topic = Topic(is_away=False, refused={"login_required"})
    topic.hang_in(world)
    nodes = (
        "a: {tool: login, with: {code: login_required}}, b: {tool: login, with: {code: missing_credentials}}"
    )
    saga = await start(world, f"name: w\nnodes: {{{nodes}}}", {}, "w")
    await asyncio.sleep(60)
    assert [notice.code for notice in world.notices.said] == ["missing_credentials"]
    assert await status(world, saga) == "suspended"


# ---- several channels

QUESTION = (
    "name: w\nnodes: {how: {human: {title: How?, options: [{id: a, default: true}, {id: b}], expires: 10d}}}"
)
DAY_S = 86_400


def outage(_: Telling) -> None:
    raise StoreUnavailable("the channel is gone")


def defect(_: Telling) -> None:
    raise ValueError("a defect of the channel")


def never(_: Telling) -> None:
    raise ChannelRefused("no such address; password=hunter2xyz " + "x" * 9_000)


def with_mail(
    world: World, fails: Callable[[Telling], None] | None = None
) -> tuple[MemoryNotices, MemoryNotices]:
    """A channel behind the first that fails so, and one behind that which does not."""
    mail, hook = MemoryNotices("mail", fails), MemoryNotices("webhook")
    world.other_channels = (mail, hook)
    return mail, hook


def sent(world: World, saga: str) -> list[NoticesSent]:
    return [event for event in world.events(saga) if isinstance(event, NoticesSent) and event.keys]


@pytest.mark.parametrize("fails", [outage, defect, None], ids=["fails", "has a defect", "hangs"])
async def test_a_channel_that_fails_blocks_neither_another_nor_the_saga_and_is_tried_alone(
    fails: Callable[[Telling], None] | None,
) -> None:
    world = World.start(timeout_s=60)
    mail, hook = with_mail(world, fails)
    world.outages = () if fails else (Outage("mail", "hangs", 0, 600),)
    saga = await start(world, QUESTION, {}, "w")
    await asyncio.sleep(1)
    assert [len(one.told) for one in (world.notices, mail, hook)] == [1, 0, 1]
    await asyncio.sleep(600)
    assert sent(world, saga) == []
    mail.fails = None
    await asyncio.sleep(1_800)
    assert [len(one.told) for one in (world.notices, mail, hook)] == [1, 1, 1]
    assert [len(one.untold) for one in sent(world, saga)] == [0], "one entry notes all"
    assert not any(process.has_failed for process in world.processes.values())
    assert await status(world, saga) == "suspended"


async def test_in_one_invocation_only_the_channel_that_failed_is_claimed_again() -> None:
    world = World.start(timeout_s=300)
    with_mail(world, outage)
    Topic(is_away=False).hang_in(world)
    slow = "".join(f", s{n}: {{tool: slow, with: {{seconds: 20}}, after: s{n - 1}}}" for n in range(1, 8))
    how = "how: {human: {title: How?, options: [{id: a, default: true}]}}"
    await start(world, f"name: w\nnodes: {{{how}, s0: {{tool: slow}}{slow}}}", {}, "w")
    await asyncio.sleep(140)
    assert world.plan.writes.count("claim") == 3 + 1, "three channels, then the one that failed"


def test_a_channel_that_refuses_for_ever_is_asked_once_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        world = World.start(timeout_s=60)
        tries: list[Telling] = []

        def refuses(telling: Telling) -> None:
            tries.append(telling)
            never(telling)

        _, hook = with_mail(world, refuses)
        hook.fails = outage  # so that the invocation that heard the refusal is not the one that notes it
        saga = await start(world, QUESTION, {}, "w")
        await asyncio.sleep(200)
        hook.fails = None
        await asyncio.sleep(1_800)
        (event,) = sent(world, saga)
        ((key, channel, why),) = [(one.key, one.channel, one.why) for one in event.untold]
        assert (event.keys, channel) == ((key,), "mail")
        assert "no such address" in why
        assert len(why) <= 300
        assert "hunter2" not in f"{why} {caplog.text}"
        assert len(tries) == 1

    with caplog.at_level(logging.ERROR, "baton.worker"):
        run_virtual(scenario())
    assert {getattr(line, "channel", "") for line in caplog.records if "given up" in line.message} == {"mail"}


@pytest.mark.parametrize(
    ("expires", "given_up_after", "within"), [("60d", 3 * DAY_S, 2 * DAY_S), ("12h", DAY_S / 2, 300)]
)
async def test_what_no_try_could_send_is_given_up_in_time(
    expires: str, given_up_after: float, within: float
) -> None:
    world = World.start(timeout_s=60, reconciler_gap_s=600)
    with_mail(world, outage)
    later = f"expires: {expires}}}}}, b: {{after: how, wait: {{signal: go}}"
    saga = await start(world, QUESTION.replace("expires: 10d}", later), {}, "w")
    await asyncio.sleep(given_up_after - 60)
    assert sent(world, saga) == []
    await asyncio.sleep(60 + within)
    ((untold,),) = [event.untold for event in sent(world, saga)]
    assert (untold.channel, "the channel is gone" in untold.why) == ("mail", True)
    assert await status(world, saga) == ("suspended" if expires == "60d" else "waiting")


async def test_a_channel_that_does_not_reach_a_person_is_not_asked_and_costs_nothing() -> None:
    class Mail(MemoryNotices):
        def reaches(self, telling: Telling) -> bool:
            return False

    world = World.start(timeout_s=60)
    mail = Mail("mail")
    world.other_channels = (mail,)
    saga = await start(world, QUESTION, {}, "w")
    await asyncio.sleep(5)
    assert (len(mail.told), len(sent(world, saga))) == (0, 1)
    assert [world.plan.writes.count(name) for name in ("claim", "tell", "sent")] == [1, 1, 1]


async def test_a_channel_that_is_away_for_days_has_no_other_channel_tell_again() -> None:
    world = World.start()

    def fails(telling: Telling) -> None:
        raise StoreUnavailable("the mail is away")

    world.other_channels = (MemoryNotices("mail", fails),)
    await start(world, "name: w\nnodes: {ask: {human: {title: t, expires: 7d}}}", None, "w")
    await asyncio.sleep(4 * 86_400)
    assert [one.ask for one in world.notices.said] == ["0.ask"]
