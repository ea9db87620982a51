"""People are told beside the steps: a topic that is away holds up neither a step nor the end of a saga."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from baton import Context, StepFailure, tool
from baton.adapters.memory.notices import MemoryNotices
from baton.core.limits import Limits
from baton.core.log.answers import Answer
from baton.core.log.events import Notice, NoticesSent, SagaEnded, StepSucceeded
from baton.errors import StoreUnavailable
from tests.kit.corpus import start
from tests.kit.toolbox import Books
from tests.kit.world import World
from tests.runtime.conftest import Stage

UNTOLD = Limits().untold_end_ms


@dataclass
class Topic:
    """What can go wrong with telling: the topic does not answer, or some notices are refused. `tries` counts by code."""

    is_away: bool = True
    refused: set[str] = field(default_factory=set)
    tries: Counter[str] = field(default_factory=Counter)

    def hang_in(self, world: World) -> None:
        topic = self

        class Notices(MemoryNotices):
            def tell(self, tenant: str, saga: str, user: str, notice: Notice, now: int) -> None:
                topic.tries[notice.code] += 1
                if topic.is_away or notice.code in topic.refused:
                    raise StoreUnavailable("the topic is gone")
                super().tell(tenant, saga, user, notice, now)

        world.notices = Notices()

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


def test_who_is_asked_again_by_a_fork_is_told_again_and_can_answer(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        topic = Topic(is_away=False)
        topic.hang_in(world)
        saga = await start(
            world, "name: w\nnodes: {ask: {tool: login, with: {code: login_required}}}", {}, "w"
        )
        await world.settle(60)
        view = await world.queries().show(saga)
        (question,) = view["questions"]
        await world.service().answer(saga, Answer(ask=question["id"], action="fail"), "")
        await world.settle(60)
        assert await status(world, saga) == "failed"
        await world.service().fork(saga, view["version"], "ask again")
        await world.settle(60)
        assert await status(world, saga) == "suspended"
        first, again = (notice for *_, notice in world.notices.told)
        assert (first.code, again.code) == ("login_required", "login_required")
        assert (first.message, first.key == again.key) == (again.message, False)
        await world.service().answer(saga, Answer(ask=question["id"], action="use", output=1), "")
        await world.settle()
        assert await status(world, saga) == "completed"

    stage(story)


def test_steps_go_on_while_no_notice_can_be_sent_and_it_is_sent_later(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
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
        assert [notice.code for *_, notice in world.notices.told] == ["login_required"]
        assert [event for event in world.events(saga) if isinstance(event, NoticesSent)]

    stage(story, timeout_s=60)


def test_a_saga_ends_although_no_notice_could_be_sent(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        topic = Topic()
        topic.hang_in(world)
        saga = await start(world, SPENDING, {}, "w")
        await asyncio.sleep(60)
        assert await status(world, saga) == "running"
        await asyncio.sleep(2 * UNTOLD / 1_000)
        assert await status(world, saga) == "completed"
        assert len(world.invocations) < 15

    stage(story, timeout_s=60)


def test_a_saga_that_is_cancelled_ends_with_notices_still_to_be_sent(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        topic = Topic()
        topic.hang_in(world)
        saga = await start(world, ASKING, {}, "w")
        await asyncio.sleep(100)
        await world.service().cancel(saga, "enough", 0)
        await asyncio.sleep(UNTOLD / 1_000)
        assert await status(world, saga) == "cancelled"
        assert isinstance(world.events(saga)[-1], SagaEnded)

    stage(story, timeout_s=60)


def test_a_notice_that_is_refused_keeps_no_other_back(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
        topic = Topic(is_away=False, refused={"login_required"})
        topic.hang_in(world)
        nodes = "a: {tool: login, with: {code: login_required}}, b: {tool: login, with: {code: missing_credentials}}"
        saga = await start(world, f"name: w\nnodes: {{{nodes}}}", {}, "w")
        await asyncio.sleep(60)
        assert [notice.code for *_, notice in world.notices.told] == ["missing_credentials"]
        assert await status(world, saga) == "suspended"

    stage(story, timeout_s=60)
