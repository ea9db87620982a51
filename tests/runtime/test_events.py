"""Events from outside: which sagas they start, which they reach, and that a repetition does nothing again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.limits import Limits
from baton.core.read.views import entry_view
from baton.errors import InvalidDefinition, KeyReused, TooManyRequests, UserError
from baton.runtime.invocation.watch import Metrics
from baton.runtime.requests import events
from baton.runtime.starting.start import Quota
from baton.words.event_words import EventWords
from tests.kit import emf
from tests.kit.bugs import replaced
from tests.kit.sentences import Says
from tests.kit.world import World

SHIP = """
name: ship
input: {type: object, required: [order], properties: {order: {type: string}}}
events:
  start:
    - {type: payment.settled, source: shop, when: event.data.amount > 0, labels: {order: "${event.data.order}"}}
nodes: {pack: {value: "${input.order}"}}
"""
ORDER = """
name: order
events:
  start:
    - {type: order.placed, correlation_key: "${event.data.order}"}
  signal:
    - {type: payment.settled, correlation_key: "${event.data.order}", signal: paid, payload: "${event.data.amount}"}
nodes:
  paid: {wait: {signal: paid}}
output: ${ctx.paid.output}
"""


def event(kind: str, number: str = "e1", source: str = "shop", **data: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": number, "source": source, "type": kind, "data": data}


def settled(order: str = "A-17", number: str = "e1", amount: int = 20) -> dict[str, Any]:
    return event("payment.settled", number, order=order, amount=amount)


async def register(world: World, *documents: str, user: str = "mia") -> None:
    for document in documents:
        await world.service(user=user).register(document, json_only=False)


async def full(self: Quota, tenant: str) -> None:
    raise TooManyRequests("no room", 5)


async def take(world: World, event: dict[str, Any], tenant: str = "acme") -> list[dict[str, Any]]:
    return await world.service(tenant=tenant).event_service.take(event)


def did(outcomes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["workflow"], one["did"]) for one in outcomes]


async def test_an_event_starts_a_saga_with_its_data_for_who_has_registered_the_rule() -> None:
    world = World.start()
    await register(world, SHIP)
    (done,) = await take(world, settled())
    assert (done["workflow"], done["did"], done["signal"], done["why"]) == ("ship", "started", None, None)
    await asyncio.sleep(60)
    shown = await world.queries().show(done["saga"])
    assert (shown["status"], shown["user"]) == ("completed", "mia")
    (head,) = world.log.heads()
    assert head.labels == {"order": "A-17"}


async def test_a_repetition_is_known_by_source_and_id_whatever_has_become_of_the_saga_and_the_rule() -> None:
    world = World.start()
    await register(world, SHIP)
    (done,) = await take(world, settled())
    assert await take(world, settled()) == [{**done, "did": "duplicate"}]
    await asyncio.sleep(60)
    await register(world, SHIP.replace("when: event.data.amount > 0, ", "input: {order: x}, "))
    assert await take(world, settled(amount=-1)) == [{**done, "did": "duplicate"}]
    assert did(await take(world, settled(number="e2"))) == [("ship", "started")]
    assert len(world.log.heads()) == 2


async def test_one_event_twice_at_once_starts_one_saga() -> None:
    world = World.start()
    await register(world, SHIP)
    found = await asyncio.gather(*(take(world, settled()) for _ in range(5)))
    assert sorted(done["did"] for (done,) in found) == ["duplicate"] * 4 + ["started"]
    assert len({done["saga"] for (done,) in found}) == len(world.log.heads()) == 1


async def test_what_an_event_did_not_do_is_counted() -> None:
    """By what is in the way; a repetition of what was done is nothing to count."""
    lines: list[str] = []
    world = World.start(metrics=Metrics(lines.append, "w"))
    await register(world, SHIP, ORDER)
    await take(world, event("unknown"))
    await take(world, event("payment.settled", source="bank", order="A-1", amount=1))
    await take(world, event("payment.settled", "e2", order=7, amount=1))
    await take(world, settled(number="e3"))
    await take(world, settled(number="e3"))
    found = emf.read(lines)
    counted = {name: emf.total(found, f"Events{name}", function="w") for name in EVENTS}
    assert counted == {"Unmatched": 1, "Unreached": 4, "Refused": 1}


EVENTS = ("Unmatched", "Unreached", "Refused")


async def test_an_event_that_no_rule_is_for_does_nothing() -> None:
    world = World.start()
    await register(world, SHIP)
    assert await take(world, event("payment.failed")) == []
    assert await take(world, event("payment.settled", source="bank", order="A", amount=1)) == []
    assert await take(world, settled(amount=0)) == []
    assert await take(world, settled(), tenant="globex") == []
    assert world.log.heads() == []


async def test_what_a_rule_cannot_do_is_told_with_the_reason() -> None:

    world = World.start()
    await register(world, SHIP)
    for data, why in (
        ({"order": "A"}, "amount"),
        ({"amount": 1}, "`order`, only amount"),
        ({"amount": 1, "order": ""}, "value of label `order`"),
        ({"amount": 1, "order": 5}, "at /input/order"),
    ):
        (done,) = await take(world, event("payment.settled", **data))
        assert (done["did"], done["saga"]) == ("refused", None)
        assert why in done["why"]
    assert world.log.heads() == []


async def test_what_is_full_for_now_is_started_when_the_event_comes_again() -> None:
    world = World.start()
    await register(world, SHIP)
    with replaced(Quota, "admit", full):
        (later,) = await take(world, settled())
    assert (later["did"], later["saga"], later["why"]) == ("later", None, "no room")
    assert did(await take(world, settled())) == [("ship", "started")]


async def test_an_event_reaches_the_saga_with_its_correlation_key(says: Says) -> None:
    world = World.start()
    await register(world, ORDER)
    placed = [event("order.placed", f"p{order}", order=order) for order in ("A-17", "B-4")]
    ((first,), (other,)) = [await take(world, one) for one in placed]
    assert did(await take(world, settled("C-1", "e9"))) == [("order", "no_saga")]
    (done,) = await take(world, settled())
    assert done == {
        "workflow": "order",
        "signal": "paid",
        "did": "signalled",
        "saga": first["saga"],
        "why": None,
    }
    assert await take(world, settled()) == [{**done, "did": "duplicate"}], "before a worker has looked"
    await asyncio.sleep(60)
    assert (await world.queries().show(first["saga"]))["result"] == 20
    assert (await world.queries().show(other["saga"]))["status"] == "waiting"
    assert await take(world, settled()) == [{**done, "did": "duplicate"}], "the saga has ended"
    (late,) = await take(world, settled(number="e2"))
    assert late["did"] == "refused"
    says(late["why"])


async def test_a_saga_says_which_event_has_started_it_and_which_was_a_signal(says: Says) -> None:
    world = World.start()
    await register(world, ORDER)
    (begun,) = await take(world, event("order.placed", "p1", order="A-17"))
    await take(world, settled())
    await asyncio.sleep(60)
    queries, by = world.queries(), "by the event `order.placed` from `shop` (id `p1`)"
    way = await queries.way(begun["saga"], 0, 100)
    assert (way["start"], (await queries.way(begun["saga"], 2, 100))["start"]) == (by, None)
    (iteration,) = (await queries.explain(begun["saga"], "paid"))["iterations"]
    assert by in iteration["text"]
    said, words = EventWords(), []
    for entry in world.entries(begun["saga"]):
        words += [said.of(one) for one in entry_view(entry)["events"]]
    told = [text for text, _ in filter(None, words)]
    says(told)
    own, _ = await world.service().start("order", {}, "")
    await asyncio.sleep(1)
    assert (await queries.way(own["id"], 0, 100))["start"] is None


async def test_there_is_one_saga_with_a_correlation_key_however_it_is_started(says: Says) -> None:
    world = World.start()
    await register(world, ORDER)
    service = world.service()
    view, is_new = await service.start("order", {"n": 1}, "", correlation_key="A-17")
    assert is_new
    again, is_new = await world.service(user="tom").start("order", {"n": 1}, "", correlation_key="A-17")
    assert (again["id"], is_new) == (view["id"], False)
    with pytest.raises(KeyReused, match=view["id"]):
        await service.start("order", {"n": 2}, "", correlation_key="A-17")
    with says.raised(UserError):
        await service.start("order", {"n": 2}, "k", correlation_key="A-17")
    placed = event("order.placed", order="A-17")
    assert [(one["did"], one["saga"]) for one in await take(world, placed)] == [("exists", view["id"])]
    assert [one["did"] for one in await take(world, settled())] == ["signalled"]
    assert len(world.log.heads()) == 1


async def test_two_events_at_once_with_one_key_start_one_saga() -> None:
    world = World.start()
    await register(world, ORDER)
    placed = [event("order.placed", f"p{number}", order="A-17") for number in range(4)]
    found = await asyncio.gather(*(take(world, one) for one in placed))
    assert sorted(done["did"] for (done,) in found) == ["exists"] * 3 + ["started"]


@pytest.mark.parametrize("key", [None, "", True, 1.5, ["a"], "x" * 257])
async def test_a_correlation_key_is_a_text_or_a_whole_number(key: Any, says: Says) -> None:
    world = World.start()
    await register(world, ORDER)
    (done,) = await take(world, event("order.placed", order=key))
    assert done["did"] == "refused"
    says(done["why"])


async def test_an_event_can_start_a_saga_and_be_its_first_signal() -> None:
    world = World.start()
    rule = '{type: said, correlation_key: "${event.subject}"'
    await register(
        world,
        f"""
name: chat
events: {{start: [{rule}}}], signal: [{rule}, signal: words}}, {rule}, signal: words, payload: 0}}]}}
nodes: {{hear: {{wait: {{signal: words}}}}}}
output: ${{ctx.hear.output}}
""",
    )
    said = {**event("said", text="hello"), "subject": "u1"}
    assert [one["did"] for one in await take(world, said)] == ["started", "signalled"]
    assert [one["did"] for one in await take(world, said)] == ["duplicate", "duplicate"]
    await asyncio.sleep(60)
    (head,) = world.log.heads()
    assert (await world.queries().show(head.ref.id))["result"] == {"text": "hello"}


async def test_a_workflow_that_has_no_rule_any_more_is_asked_in_vain() -> None:
    world = World.start()
    await register(world, SHIP, "name: ship\nnodes: {a: {value: 1}}")
    world.store.subscriptions.subscribe("acme", "payment.settled", "ship", "mia", 3)
    world.store.subscriptions.subscribe("acme", "payment.settled", "not-there-yet", "mia", 1)
    assert await take(world, settled()) == []


@pytest.mark.parametrize(("version", "is_left"), [(1, False), (2, False), (3, True)])
async def test_what_an_event_meets_in_vain_is_given_up_unless_its_version_may_be_about_to_be_stored(
    version: int, is_left: bool
) -> None:
    """A registration that has died, or that was stored before versions said their types, has left it."""
    world = World.start()
    plain = "name: ship\nnodes: {a: {value: 1}}"
    await register(world, plain, plain + "\noutput: 1")
    place = "acme", "payment.settled"
    world.store.subscriptions.subscribe(*place, "ship", "mia", version)
    assert await take(world, settled()) == []
    assert bool(world.store.subscriptions.subscribed(*place, 9)) == is_left
    await register(world, SHIP)
    assert did(await take(world, settled())) == [("ship", "started")]


async def test_so_many_workflows_and_no_more_have_rules_for_a_type(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(events, "MOST_WORKFLOWS", 2)
    world = World.start()
    await register(world, SHIP, SHIP.replace("name: ship", "name: bill"))
    await register(world, SHIP + "output: 1")
    with says.raised(InvalidDefinition) as refused:
        await register(world, SHIP.replace("name: ship", "name: third"))
    (problem,) = refused.value.problems
    assert problem.path == "/events/start/0/type"
    assert [one["workflow"] for one in await take(world, settled())] == ["bill", "ship"]
    await register(world, "name: ship\nnodes: {a: {value: 1}}")
    await register(world, SHIP.replace("name: ship", "name: third"))
    assert [one["workflow"] for one in await take(world, settled(number="e2"))] == ["bill", "third"]


async def test_a_signal_that_no_fresh_wait_is_open_for_is_lost_and_the_log_says_so() -> None:
    """However many come: they do not fill the place that is kept for signals."""
    beats = "name: beats\nnodes: {work: {wait: {for: 1h}}, beat: {wait: {signal: beat, fresh: true}, after: work}}"
    world = World.start(limits=Limits(signals_kept=2))
    await register(world, beats)
    view, _ = await world.service().start("beats", {}, "")
    for number in range(5):
        await world.service().signal(view["id"], "beat", number, f"k{number}")
    said = EventWords()
    entries = [entry_view(entry) for entry in world.entries(view["id"])]
    told = [said.of(event) for entry in entries for event in entry["events"]]
    assert sum("is lost" in words[0] for words in told if words) == 5
    await asyncio.sleep(3_700)
    await world.service().signal(view["id"], "beat", "now", "k9")
    await asyncio.sleep(60)
    assert (await world.queries().show(view["id"]))["status"] == "completed"
