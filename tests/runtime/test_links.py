"""A link in a message answers one question, once, for a quarter of an hour, as it was when people were told of it."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.log.events import SignalReceived
from baton.core.log.questions import Answer
from baton.errors import InvalidInput, LinkOver, NotAllowedNow, NotFound
from baton.ports import SagaRef
from baton.runtime.engine.parts import Engine
from baton.runtime.people.links import LASTS_MS
from baton.runtime.requests.service import Service
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

PAGE = "https://desk.example/answer"
DOCUMENT = """
name: w
nodes:
  may:
    human: {title: May it?, type: approval, to: {group: hosts}, expires: 2h, escalate: [{after: 1h, hand_on: {group: leads}}]}
  form:
    human: {title: How many?, type: input, schema: {type: object, required: [n]}, expires: 2h}
"""
APPROVE = Answer(ask="", action="approve")


class Linked(World):
    """A deployment whose messages have links."""

    def _new_engine(self, process: Any) -> Engine:
        return changed(super()._new_engine(process), confirm_url=PAGE)


async def asked(world: World) -> tuple[str, dict[str, str]]:
    """A saga that asks, and the newest token of each of its questions."""
    saga = await start(world, DOCUMENT, {}, "w")
    await asyncio.sleep(5)
    return saga, tokens(world)


def tokens(world: World) -> dict[str, str]:
    found = {}
    for telling in world.notices.told:
        page, _, token = telling.link.partition("#")
        assert page == PAGE
        found[telling.notice.ask] = token
    return found


def holder(world: World) -> Service:
    """The API for the reader of a message."""
    return world.service(tenant="acme", user="link:group:hosts")


def said(world: World, saga: str) -> list[str]:
    return [event.by for event in world.events(saga) if isinstance(event, SignalReceived)]


async def test_a_link_answers_without_a_sign_in_once_and_says_by_whom() -> None:
    world = Linked.start()
    saga, of = await asked(world)
    await holder(world).confirm(of["0.may"], APPROVE)
    with pytest.raises(NotAllowedNow, match="has been answered"):
        await holder(world).confirm(of["0.may"], APPROVE)
    with pytest.raises(InvalidInput, match="/data"):
        await holder(world).confirm(of["0.form"], Answer(ask="", action="submit"))
    await holder(world).confirm(of["0.form"], Answer(ask="", action="submit", data={"n": 4}))
    await asyncio.sleep(5)
    assert (await world.queries().show(saga))["status"] == "completed"
    assert said(world, saga) == ["link:group:hosts"] * 2


async def test_of_a_hundred_at_once_one_counts() -> None:
    world = Linked.start()
    saga, of = await asked(world)
    found = await asyncio.gather(
        *(holder(world).confirm(of["0.may"], APPROVE) for _ in range(100)), return_exceptions=True
    )
    assert Counter(type(one) for one in found) == {dict: 1, NotAllowedNow: 99}
    assert len(said(world, saga)) == 1


async def test_a_link_ends_after_a_quarter_of_an_hour_and_the_question_goes_on() -> None:
    world = Linked.start()
    saga, of = await asked(world)
    await asyncio.sleep(LASTS_MS / 1_000)
    with pytest.raises(LinkOver, match="15 minutes"):
        await holder(world).confirm(of["0.may"], APPROVE)
    await world.service().answer(saga, replace(APPROVE, ask="0.may"), "")


async def test_who_is_told_again_has_a_new_link_and_the_old_one_is_dead(says: Says) -> None:
    world = Linked.start()
    saga, old = await asked(world)
    await asyncio.sleep(600)
    await world.service().questions.remind(saga, "0.may")
    await asyncio.sleep(5)
    new = tokens(world)
    assert new["0.may"] != old["0.may"]
    with says.raised(LinkOver):
        await holder(world).confirm(old["0.may"], APPROVE)
    await holder(world).confirm(new["0.may"], APPROVE)


async def test_a_link_that_was_used_stays_dead_after_a_fork_to_before_its_answer() -> None:
    world = Linked.start()
    saga, old = await asked(world)
    cut = (await world.queries().show(saga))["version"]
    await holder(world).confirm(old["0.may"], Answer(ask="", action="reject"))
    await asyncio.sleep(5)
    await world.service().fork(saga, cut, "a slip")
    await asyncio.sleep(5)
    with pytest.raises(LinkOver, match="newer"):
        await holder(world).confirm(old["0.may"], APPROVE)
    await holder(world).confirm(tokens(world)["0.may"], APPROVE)


async def test_what_was_handed_on_is_not_for_the_former_readers() -> None:
    world = Linked.start()
    _, old = await asked(world)
    await asyncio.sleep(3_600)
    new = tokens(world)["0.may"]
    with pytest.raises(LinkOver):
        await holder(world).confirm(old["0.may"], APPROVE)
    await world.service(user="link:group:leads").confirm(new, APPROVE)


def forged(token: str, **said: str) -> str:
    """With other claims, and the proof of the right ones."""
    claims, _, proof = token.partition(".")
    text = urlsafe_b64decode(claims + "=" * (-len(claims) % 4)).decode()
    for before, after in said.items():
        assert before in text
        text = text.replace(before, after)
    return f"{urlsafe_b64encode(text.encode()).rstrip(b'=').decode()}.{proof}"


async def test_what_is_guessed_changed_or_swapped_is_refused_alike(says: Says) -> None:
    world = Linked.start()
    saga, of = await asked(world)
    other = str((await world.service().start("w", {}, "another"))[0]["id"])
    token = of["0.may"]
    claims, _, proof = token.partition(".")
    wrong = [
        "", ".", token[:-1], f"{claims}.", f"{claims}.{'A' * len(proof)}", f"{of['0.form'].partition('.')[0]}.{proof}",
        forged(token, acme="evil"), forged(token, may="form"), forged(token, **{saga: other}), "é" + token,
    ]  # fmt: skip
    refusals: set[str] = set()
    for one in wrong:
        with pytest.raises(NotFound) as error:
            await holder(world).confirm(one, APPROVE)
        refusals.add(str(error.value))
    says(list(refusals))
    with says.raised(NotFound):
        await world.service(tenant="evil").confirm(token, APPROVE)
    assert said(world, saga) == []


def test_no_token_is_in_the_log_and_a_deployment_without_a_page_makes_none() -> None:
    async def linked() -> None:
        world = Linked.start()
        saga, of = await asked(world)
        await holder(world).confirm(of["0.may"], APPROVE)
        records = world.log.read_tail(SagaRef("acme", saga), 0, 0)
        assert records
        assert not any(token.encode() in record.data for token in of.values() for record in records)

    async def without() -> None:
        world = World.start()
        await start(world, DOCUMENT, {}, "w")
        await asyncio.sleep(5)
        assert [telling.link for telling in world.notices.told] == ["", ""]

    run_virtual(linked())
    run_virtual(without())
