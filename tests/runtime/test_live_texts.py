"""Text as it comes: viewers see what models are writing, and nothing is done for it without one."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from baton.core.log.events import Revived
from baton.errors import NotFound, StoreUnavailable
from baton.ports import SagaRef
from baton.ports.models import Draft, ModelAnswer, ModelRequest
from baton.runtime.invocation.live import EVERY_S, MOST_BYTES, live_tail, texts_of
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.world import TENANT, World
from tests.runtime.test_agents import Desk, document

WORDS = " ".join(f"word{number}" for number in range(100))
ADD = asks_for(("sum_add", {"a": 1, "b": 2}))


def slowly(*answers: ModelAnswer) -> Scripted:
    """It writes a hundred words in ten seconds, whatever it answers then."""
    return Scripted(by_turn(*answers), takes_s=10, types=WORDS)


async def texts(world: World, saga: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await world.queries().live(saga))["texts"]
    return found


async def watching(world: World, saga: str, seconds: int) -> list[tuple[float, str, int]]:
    """A viewer who asks each second: when, of which item, how many words were shown."""
    seen: list[tuple[float, str, int]] = []
    for _ in range(seconds):
        found, now = await texts(world, saga), asyncio.get_running_loop().time()
        seen += [(now, one["item"], len(one["text"].split())) for one in found]
        await asyncio.sleep(1)
    return seen


class Counted:
    """The calls to what viewers are shown, by name, with their times."""

    def __init__(self, world: World) -> None:
        self.calls: list[tuple[str, float, bool]] = []
        live: Any = world.store.live
        for name in ("watch", "put_texts", "read"):
            setattr(live, name, self._counted(name, getattr(live, name)))

    def _counted(self, name: str, real: Any) -> Any:
        def call(*arguments: Any) -> Any:
            done = real(*arguments)
            self.calls.append((name, asyncio.get_running_loop().time(), bool(done)))
            return done

        return call

    def made(self, name: str) -> list[float]:
        return [at for called, at, done in self.calls if called == name and done]


# -- no viewer


async def test_a_saga_without_viewers_reads_and_writes_nothing_for_viewers() -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = slowly(ADD, says("done"))
    counted = Counted(world)
    await start(world, document(), {"a": 1}, "w")
    await world.settle()
    assert counted.calls == []


# -- viewers


async def test_a_viewer_sees_an_answer_grow_while_it_is_written() -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = slowly(ADD, says("done"))
    saga = await start(world, document(), {"a": 1}, "w")
    seen = await watching(world, saga, 25)
    first, second = ([words for _, item, words in seen if item == turn] for turn in ("t1", "t2"))
    assert first == sorted(first)
    assert second == sorted(second)
    assert len(set(first)) >= 5, seen
    assert len(set(second)) >= 8, seen
    assert max(second) >= 80, "the last word is withheld while it may go on"
    assert await texts(world, saga) == [], "what has ended is not shown"


async def test_a_viewer_who_says_what_it_has_seen_gets_each_answer_whole_and_once() -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = Scripted(by_turn(ADD, says(WORDS)), takes_s=10, types=WORDS)
    saga = await start(world, document(), {"a": 1}, "w")
    found = await world.queries().live(saga)
    done, drafts, version = list[str](), list[str](), found["version"]
    for _ in range(200):
        found = await world.queries().live(saga, version)
        assert found["version"] >= version
        version = found["version"]
        done += [one["text"] for one in found["texts"] if one["done"]]
        drafts += [one["text"] for one in found["texts"] if not one["done"]]
        await asyncio.sleep(0.13)
    assert done == [WORDS]
    assert all(WORDS.startswith(one.rstrip()) for one in drafts)


async def test_the_first_words_are_shown_at_once() -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = Scripted(by_turn(says("done")), takes_s=10, types=" ".join(["", *["x"] * 9]))
    saga = await start(world, document(), {"a": 1}, "w")
    for _ in range(80):
        if any(one["text"].strip() for one in await texts(world, saga)):
            break
        await asyncio.sleep(0.05)
    (request,) = world.asked
    waited = asyncio.get_running_loop().time() - request.at
    assert waited < 2 + 0.3, "the second word was made after two seconds"


async def test_a_viewer_who_comes_while_a_worker_is_at_it_is_heard_with_its_next_entry() -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = slowly(ADD, ADD, says("done"))
    saga = await start(world, document(), {"a": 1}, "w")
    await asyncio.sleep(5)
    seen = await watching(world, saga, 30)
    assert {item for _, item, _ in seen} == {"t2", "t3"}


async def test_a_viewer_who_comes_while_a_saga_waits_sees_the_first_answer_after_it() -> None:
    text = """
name: w
nodes:
  go: {wait: {signal: go}}
  say: {model: {name: m, prompt: Hello.}, after: go}
output: '${ctx.say.output}'
"""
    world = World.start(timeout_s=60)
    world.models = slowly(says("done"))
    saga = await start(world, text, {}, "w")
    await asyncio.sleep(5)
    assert (await world.queries().live(saga))["texts"] == []
    await world.service().signal(saga, "go", None, "k")
    assert len(await watching(world, saga, 9)) >= 6


async def test_there_are_two_writes_a_second_at_most_and_viewers_write_once_in_ten() -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = slowly(ADD, ADD, says("done"))
    counted = Counted(world)
    saga = await start(world, document(), {"a": 1}, "w")
    await asyncio.gather(*(watching(world, saga, 33) for _ in range(2)))
    shows, words = counted.made("put_texts"), counted.made("watch")
    assert len(shows) >= 20
    assert min(b - a for a, b in pairwise(shows)) > 0.99 * EVERY_S
    assert len(words) <= 4
    assert min(b - a for a, b in pairwise(words)) > 9.99


async def test_writing_ends_when_the_last_viewer_has_gone() -> None:
    world = World.start(timeout_s=120)
    Desk(world)
    world.models = slowly(*[ADD] * 8, says("done"))
    counted = Counted(world)
    saga = await start(world, document(), {"a": 1}, "w")
    await watching(world, saga, 5)
    await world.settle()
    last = [at for name, at, _ in counted.calls if name == "put_texts"][-1]
    assert counted.made("put_texts")[-1] <= 45
    assert last <= 46, "one refused write, and then none"


async def test_twenty_agents_at_once_share_one_write_and_its_room() -> None:
    nodes = "\n".join(f"  n{n}: {{agent: {{model: m, prompt: p, tools: [sum.*]}}}}" for n in range(20))
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = Scripted(by_turn(ADD, says("done")), takes_s=20, types=" ".join(["wordy"] * 2_000))
    counted = Counted(world)
    saga = await start(world, f"name: w\nnodes:\n{nodes}\noutput: 1\n", {}, "w")
    await asyncio.gather(*(watching(world, saga, 15) for _ in range(2)))
    found = await texts(world, saga)
    assert {one["node"] for one in found} == {f"n{n}" for n in range(20)}
    assert all(one["text"] for one in found)
    assert sum(len(one["text"].encode()) for one in found) <= MOST_BYTES
    shows = counted.made("put_texts")
    assert min(b - a for a, b in pairwise(shows)) > 0.99 * EVERY_S


async def test_what_a_killed_worker_has_left_is_not_shown_for_long_and_the_next_one_goes_on() -> None:
    world = World.start(timeout_s=30)
    Desk(world)
    world.models = slowly(*[ADD] * 5, says("done"))
    saga = await start(world, document(), {"a": 1}, "w")
    await watching(world, saga, 5)
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    world.processes[head.owner].is_dead = True
    seen = await watching(world, saga, 90)
    at = [when for when, _, _ in seen]
    gap = max(pairwise(at), key=lambda pair: pair[1] - pair[0])
    assert gap[0] <= 5 + 16, "older than 15 s was left behind"
    assert gap[1] > head.until / 1_000 - 1_790_000_000, "the next worker has the lease"
    assert any(isinstance(event, Revived) for event in world.events(saga))


@pytest.mark.parametrize("fault", ["refused", "hangs", "broken"])
async def test_a_store_that_refuses_what_is_shown_holds_up_no_answer(fault: str) -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = slowly(ADD, says("done"))

    def put_texts(*_: Any) -> bool:
        raise StoreUnavailable("no answer") if fault == "refused" else RuntimeError("broken")

    live: Any = world.store.live
    if fault == "hangs":
        world.slow["put_texts"] = 100_000
    else:
        live.put_texts = put_texts
    saga = await start(world, document(), {"a": 1}, "w")
    await watching(world, saga, 21)
    view = await world.queries().show(saga)
    assert (view["status"], view["result"]) == ("completed", "done")


async def test_a_saga_that_there_is_not_is_not_found_and_one_that_has_ended_is_not_watched() -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = slowly(says("done"))
    saga = await start(world, document(), {"a": 1}, "w")
    await world.settle()
    counted = Counted(world)
    assert await world.queries().live(saga) == {
        "id": saga,
        "version": 3,
        "watched_until": None,
        "texts": [],
    }
    assert counted.made("watch") == []
    for name in ("nothing", "no/id"):
        with pytest.raises(NotFound):
            await world.queries().live(name)
    with pytest.raises(NotFound):
        await world.queries("other").live(saga)


# -- what is shown of a text


def test_the_word_that_is_being_written_is_withheld_and_words_without_spaces_are_not() -> None:
    assert live_tail("A table for fo", 100) == "A table for "
    assert live_tail("Ein Tisch für Zoë", 100) == "Ein Tisch für Zoë"
    assert live_tail("四人分のテーブル", 100) == "四人分のテーブル"
    assert live_tail("", 100) == ""


def test_half_a_character_and_half_a_secret_are_not_shown() -> None:
    assert live_tail("good \ud83d", 100) == "good "
    secret = "sk-proj-" + "a1B2" * 12
    assert "sk-proj" not in live_tail(f"Their key is {secret[:30]}", 100)
    assert secret not in live_tail(f"Their key is {secret} and more ", 100)
    long = f"{secret} " + "x " * 5_000
    for most in range(9_990, 10_060, 7):
        assert "a1B2a1B2" not in live_tail(long, most)


def test_of_a_long_text_the_end_is_shown_and_whole_characters_of_it() -> None:
    found = live_tail("é " * 10_000, 1_001)
    assert len(found.encode()) <= 1_001
    assert set(found) <= {"é", " "}
    assert live_tail("a " * 10_000 + "end ", 1_000).endswith("a end ")


def test_of_too_many_texts_the_newest_are_shown() -> None:
    drafts = {f"a#t{n}": (n, Draft()) for n in range(100)}
    found = texts_of(drafts)
    assert [one.slot for one in found] == [f"a#t{n}" for n in range(36, 100)]


def test_a_request_without_a_viewer_has_a_draft_that_is_empty() -> None:
    assert Draft().read() == ""
    assert ModelRequest(model="m", messages=()).draft is None
