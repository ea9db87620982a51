"""Events from outside for sagas that began with an earlier version of their workflow: they go on with its rules."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.limits import DAY_MS, Limits
from baton.runtime.starting import start
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_events import did, event, register, settled, take

ONE = """
name: order
events:
  start: [{type: order.placed, correlation_key: "${event.data.order}"}]
  signal: [{type: payment.settled, correlation_key: "${event.data.order}", signal: paid, payload: "${event.data.amount}"}]
nodes: {paid: {wait: {signal: paid}}}
output: ${ctx.paid.output}
"""
RENAMED = ONE.replace("signal: paid", "signal: settled").replace("${event.data.amount}", "renamed")
WITHOUT = "name: order\nnodes: {a: {value: 1}}"
UNSIGNALLED = "\n".join(line for line in ONE.splitlines() if not line.startswith("  signal"))
OTHER_KEY = ONE.replace('signal: [{type: payment.settled, correlation_key: "${event.data.order}"', 'signal: [{type: payment.settled, correlation_key: "${event.data.booking}"')  # fmt: skip
NARROWED = ONE.replace("signal: [{", "signal: [{when: event.data.amount > 100, ")
OTHER_TYPE = ONE.replace("signal: [{type: payment.settled", "signal: [{type: payment.done")


async def placed(world: World, order: str = "A-17") -> str:
    (done,) = await take(world, event("order.placed", f"p-{order}", order=order))
    assert done["did"] == "started"
    return str(done["saga"])


async def notes(world: World, document: str) -> tuple[str, ...]:
    return (await world.service(user="mia").register(document, json_only=False)).notes


def subscribed(world: World, kind: str = "payment.settled") -> list[str]:
    return [name for name, _, _ in world.store.subscriptions.subscribed("acme", kind, 9)]


@pytest.mark.parametrize(
    "later", [RENAMED, WITHOUT, UNSIGNALLED, OTHER_KEY, NARROWED, OTHER_TYPE], ids=lambda one: str(len(one))
)
async def test_a_saga_takes_signals_by_the_rules_of_the_version_that_it_began_with(later: str) -> None:
    world = World.start()
    await register(world, ONE)
    saga = await placed(world)
    await register(world, later)
    (done,) = await take(world, settled())
    assert done == {"workflow": "order", "signal": "paid", "did": "signalled", "saga": saga, "why": None}
    assert did(await take(world, settled())) == [("order", "duplicate")]
    await asyncio.sleep(60)
    assert (await world.queries().show(saga))["result"] == 20, "by its own rule's payload"


async def test_a_saga_of_the_newest_version_takes_them_by_that() -> None:
    world = World.start()
    await register(world, ONE)
    first = await placed(world)
    await register(world, RENAMED)
    second = await placed(world, "B-4")
    for order, saga, signal in (("A-17", first, "paid"), ("B-4", second, "settled")):
        (done,) = await take(world, settled(order, f"e-{order}"))
        assert (done["did"], done["saga"], done["signal"]) == ("signalled", saga, signal)
    assert did(await take(world, settled("C-1", "e-C"))) == [("order", "no_saga")]
    await asyncio.sleep(60)
    assert (await world.queries().show(second))["result"] == "renamed"


async def test_a_version_that_is_pinned_is_the_one_that_a_saga_began_with() -> None:
    world = World.start()
    await register(world, ONE, RENAMED)
    view, _ = await world.service().start("order@1", {}, "", correlation_key="A-17")
    (done,) = await take(world, settled())
    assert (done["signal"], done["did"], done["saga"]) == ("paid", "signalled", view["id"])


async def test_a_rule_that_a_running_saga_did_not_begin_with_is_not_for_it_and_that_is_said() -> None:
    world = World.start()
    await register(world, UNSIGNALLED)
    saga = await placed(world)
    await register(world, ONE)
    (done,) = await take(world, settled())
    assert (done["did"], done["signal"]) == ("refused", "paid")
    assert saga in done["why"]
    assert "another version" in done["why"]


async def test_what_an_earlier_rule_cannot_do_is_said() -> None:
    world = World.start()
    await register(world, NARROWED)
    await placed(world)
    await register(world, RENAMED)
    (done,) = await take(world, event("payment.settled", order="A-17"))
    assert (done["did"], done["signal"]) == ("refused", "paid")
    assert "amount" in done["why"]


async def test_an_event_that_only_earlier_versions_had_rules_for_and_no_saga_waits_for_does_nothing() -> None:
    world = World.start()
    await register(world, ONE, WITHOUT)
    assert await take(world, settled()) == []
    assert await take(world, event("payment.settled", "e2", amount=3)) == []
    assert subscribed(world) == ["order"]


async def test_what_sagas_of_a_version_take_is_known_as_long_as_they_can_last() -> None:
    world = World.start(limits=Limits(saga_days=2))
    await register(world, ONE, RENAMED, WITHOUT)
    newest = world.store.definitions.get("acme", "order")
    assert newest is not None
    assert [one[:2] for one in newest.heard] == [("payment.settled", "${event.data.order}")]
    await asyncio.sleep(3 * DAY_MS / 1000)
    assert await take(world, settled()) == []
    assert subscribed(world) == []
    await register(world, WITHOUT + "\noutput: 1")
    newest = world.store.definitions.get("acme", "order")
    assert newest is not None
    assert (newest.heard, newest.past) == ((), ("payment.settled", "order.placed"))


async def test_versions_with_the_same_rules_for_a_type_leave_nothing_behind() -> None:
    world = World.start()
    await register(world, ONE, ONE + "description: x", OTHER_TYPE)
    newest = world.store.definitions.get("acme", "order")
    assert newest is not None
    assert [kind for kind, _, _ in newest.heard] == ["payment.settled"]
    await register(world, OTHER_TYPE + "description: x")
    newest = world.store.definitions.get("acme", "order")
    assert newest is not None
    assert [kind for kind, _, _ in newest.heard] == ["payment.settled"]


async def test_so_many_rules_of_earlier_versions_and_no_more_are_known_and_the_answer_says_which_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start, "MOST_HEARD", 1)
    world = World.start()
    assert await notes(world, ONE) == await notes(world, OTHER_TYPE) == ()
    (said, *_) = await notes(world, WITHOUT)
    assert "`payment.settled`" in said
    assert "${event.data.order}" in said
    assert await take(world, settled()) == []
    assert subscribed(world) == []
    assert subscribed(world, "payment.done") == ["order"]


async def test_what_is_full_is_signalled_when_the_event_comes_again(says: Says) -> None:
    many: dict[str, Any] = {"limits": Limits(signals_kept=2)}
    world = World.start(**many)
    await register(world, ONE.replace("nodes: {", "nodes: {rest: {wait: {for: 1h}}, ").replace("{signal: paid}", "{signal: paid}, after: rest"))  # fmt: skip
    await placed(world)
    for number in range(2):
        assert did(await take(world, settled(number=f"e{number}"))) == [("order", "signalled")]
    (later,) = await take(world, settled(number="e2"))
    assert later["did"] == "later"
    says(later["why"])
