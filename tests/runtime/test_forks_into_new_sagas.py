"""A fork as a new saga: a log of its own, with ids, keys and an account of its own; and the other one stays as it is."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from baton import Key, WorkflowContext, tool, workflow
from baton.core.log import events as ev
from baton.core.log.questions import Answer
from baton.errors import KeyReused, NotAllowedNow, TooLarge, UserError
from baton.runtime.log import history
from baton.runtime.log.history import ReadingTime
from baton.runtime.requests import copying
from baton.tools.functions.define import document_of
from tests.kit.faults import Crash, Plan, scripted
from tests.kit.schedule import SCENARIOS
from tests.kit.sentences import Says
from tests.kit.verdict import run
from tests.kit.world import World
from tests.runtime.test_forks_with_changes import SHOP, Shop, fork, shown, version_of


async def fork_new(world: World, saga: str, key: str = "k", **wanted: Any) -> str:
    answer = await world.service().fork_with(saga, key, new=True, **{"leave": True, **wanted})
    return str(answer["id"])


async def test_a_new_saga_goes_on_from_the_cut_and_the_other_one_stays_as_it_is() -> None:
    shop = Shop()
    world, saga = await shop.world()
    before = [entry.version for entry in world.entries(saga)]
    shop.acts.clear()
    other = await fork_new(world, saga, before="pay", outputs={"quote": {"price": 9}})
    await world.settle()
    assert other != saga
    assert (await shown(world, other), await shown(world, saga)) == (("completed", 9), ("completed", 3))
    assert shop.acts == [("pay", 9), ("send", "tea")]
    assert [entry.version for entry in world.entries(saga)] == before
    view = await world.queries().show(other)
    cut = version_of(world, saga, "tell")
    assert {one.epoch for one in world.entries(other)[: cut + 1]} == {0}, (
        "no worker of this saga has written them"
    )
    assert view["forked_from"] == {"saga": saga, "version": cut}
    assert (view["user"], view["spent_usd"], view["parent"]) == ("ann", 0, None)
    assert (await world.queries().show(saga))["forked_from"] is None


async def test_it_is_in_lists_with_the_labels_and_expires_with_the_other_one() -> None:
    shop = Shop()
    world = World(shop.registry)
    world.switch_on()
    await world.service().register(shop.document, json_only=False)
    view, _ = await world.service().start("shop", {"item": "tea"}, "key", labels={"customer": "4711"})
    await world.settle()
    other = await fork_new(world, view["id"], version=2)
    await world.settle()
    (head,) = [one for one in world.log.heads() if one.ref.id == other]
    (source,) = [one for one in world.log.heads() if one.ref.id == view["id"]]
    assert (head.labels, head.expires, head.workflow) == ({"customer": "4711"}, source.expires, "shop")
    assert all(record.expires == head.expires for record in world.log.read_tail(head.ref, 0, 0))


async def test_effects_behind_the_cut_stand_without_their_keys_and_refuse_it(says: Says) -> None:
    shop = Shop()
    world, saga = await shop.world()
    with says.raised(NotAllowedNow):
        await fork_new(world, saga, version=1, leave=False)
    assert len(list(world.log.heads())) == 1, "nothing is left of it"
    plan = (await world.service().fork_with(saga, "", new=True, version=1, dry_run=True))["plan"]
    assert {one.key for one in plan.left} == {"unsure"}
    with pytest.raises(UserError):
        await fork_new(world, saga, version=1, repeat=("pay",))


async def test_a_repeated_request_is_one_saga_and_another_body_is_refused() -> None:
    shop = Shop()
    world, saga = await shop.world()
    first = await fork_new(world, saga, before="pay")
    await world.settle()
    again = await world.service().fork_with(saga, "k", new=True, before="pay", leave=True)
    assert (again["id"], again["changed"], again["plan"]) == (first, False, None)
    with pytest.raises(KeyReused):
        await fork_new(world, saga, before="send")
    assert len(list(world.log.heads())) == 2


@pytest.mark.parametrize("write", range(1, 8))
async def test_a_request_that_dies_at_any_write_leaves_nothing_that_anyone_sees_and_its_repetition_completes_it(
    write: int,
) -> None:
    """Meanwhile the other saga has gone on: the cut of the first request holds."""
    shop = Shop()
    world, saga = await shop.world()
    wanted: dict[str, Any] = {"stable": True, "leave": True}
    world.plan = scripted((("write", write, "crash after"),))
    process = world.process("api")
    try:
        await world.service(process).fork_with(saga, "k", new=True, **wanted)
    except Crash:
        assert len(list(world.log.heads())) in (1, 2)
    world.plan = scripted(())
    await world.service().fork_with(saga, "f", version=2)
    await world.settle()
    other = await fork_new(world, saga, stable=True)
    await world.settle()
    assert len(list(world.log.heads())) == 2
    assert await shown(world, other) == ("completed", 3)
    copied = (await world.queries().show(other))["forked_from"]["version"]
    assert [one.version for one in world.entries(other)][: copied + 1] == list(range(1, copied + 2))


async def test_a_crash_with_another_body_behind_it_is_refused() -> None:
    shop = Shop()
    world, saga = await shop.world()
    world.plan = scripted((("write", 1, "crash after"),))
    with pytest.raises(Crash):
        await world.service(world.process("api")).fork_with(saga, "k", new=True, version=2, leave=True)
    world.plan = scripted(())
    with pytest.raises(KeyReused):
        await fork_new(world, saga, version=3)


async def test_what_is_open_at_the_cut_is_asked_and_opened_anew_with_ids_of_its_own() -> None:
    shop = Shop(
        """
name: shop
nodes:
  ask: {human: {title: Go?, message: May we pay?}}
  inner: {workflow: inner}
  pay: {tool: pay, with: {price: 1}, after: [ask, inner]}
"""
    )
    world = World(shop.registry)
    world.switch_on()
    await world.service().register("name: inner\nnodes: {w: {wait: {signal: go}}}", json_only=False)
    await world.service().register(shop.document, json_only=False)
    view, _ = await world.service().start("shop", {}, "key")
    saga = view["id"]
    await asyncio.sleep(60)
    other = await fork_new(world, saga, version=(await world.queries().show(saga))["version"])
    await asyncio.sleep(60)
    assert len({(one.saga, one.notice.ask) for one in world.notices.told if one.notice.ask}) == 2
    children = {head.ref.id for head in world.log.heads()} - {saga, other}
    assert len(children) == 2
    for one in (saga, other):
        (question,) = (await world.queries().show(one))["questions"]
        await world.service().answer(one, Answer(ask=question["id"], action="approve"), "a")
    for child in children:
        await world.service().signal(child, "go", None, "s")
    await world.settle()
    assert [(await shown(world, one))[0] for one in (saga, other)] == ["completed", "completed"]
    assert [one for one in shop.acts if one[0] == "pay"] == [("pay", 1), ("pay", 1)]


async def test_a_rollback_of_the_new_saga_undoes_nothing_of_the_other_one(says: Says) -> None:
    shop = Shop()
    world, saga = await shop.world()
    other = await fork_new(world, saga, before="send")
    await world.settle()
    wanted = ev.CancelRequested(reason="", by="", at=0, grace_ms=0, undo=True)
    with says.raised(NotAllowedNow):
        await world.service().rollback(other, wanted)
    assert not [one for one in shop.acts if one[0] == "refund"]
    for refused in ({"version": 2}, {"before": "tell"}):
        with says.raised(UserError):
            await fork(world, other, **refused)
    await fork(world, other, before="send")
    assert await shown(world, other) == ("completed", 3)


async def test_it_pays_an_invoice_that_the_other_saga_has_paid_and_undone() -> None:
    """The key of the invoice is the same one in each saga: under it stands what was refunded."""
    shop = Shop(SHOP.replace("tool: pay", "tool: settle"))

    @tool(
        "settle", registry=shop.registry, effect="once", undo="refund", key=Key.business("invoice", "price")
    )
    async def settle(price: int) -> int:
        shop.note("settle", price)
        return price

    world, saga = await shop.world()
    cut = version_of(world, saga, "tell")
    back = ev.CancelRequested(reason="", by="", at=0, grace_ms=0, undo=True, back_to=cut)
    for _ in range(2):
        await world.service().rollback(saga, back)
        await world.settle()
        await fork(world, saga, version=cut)
    await world.service().rollback(saga, back)
    await world.settle()
    paid = shop.acts.count(("settle", 3))
    assert (paid, shop.acts.count(("refund", 3))) == (3, 3)
    other = await fork_new(world, saga, version=cut)
    await world.settle()
    assert (await shown(world, other), shop.acts.count(("settle", 3))) == (("completed", 3), paid + 1)


async def test_a_log_that_is_too_long_to_search_is_no_leave_to_pay_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop()
    world, saga = await shop.world()

    def late(_: ReadingTime, done: str, total: int, at: int) -> None:
        raise TooLarge(f"{done} {at} of {total}")

    monkeypatch.setattr(ReadingTime, "check", late)
    with pytest.raises(TooLarge):
        await fork_new(world, saga, version=1, leave=False)
    other = await fork_new(world, saga, version=1)
    await world.settle()
    assert await shown(world, other) == ("completed", 3)


async def test_a_function_that_has_begun_draws_the_random_numbers_of_its_own_saga(says: Says) -> None:
    """Run anew in another saga, it would ask for other operations than the copied log has, and wait for callbacks of that one."""
    shop = Shop()

    @workflow("draws", registry=shop.registry)
    async def draws(context: WorkflowContext) -> Any:
        await context.step("tell", str(context.uuid()))
        return await context.step("send", context.saga)

    world = World(shop.registry)
    world.switch_on()
    await world.service().register(json.dumps(document_of(shop.registry["draws"])), json_only=False)
    view, _ = await world.service().start("draws", {}, "key")
    await world.settle()
    assert (await shown(world, view["id"])) == ("completed", view["id"])
    with says.raised(UserError):
        await fork_new(world, view["id"], version=2)
    other = await fork_new(world, view["id"], version=1)
    await world.settle()
    assert (await shown(world, other)) == ("completed", other)


async def test_its_costs_are_its_own() -> None:
    shop = Shop()
    world, saga = await shop.world()
    other = await fork_new(world, saga, before="send")
    await world.settle()
    costs = [await world.queries().cost(one) for one in (saga, other)]
    assert [one["steps"] for one in costs] == [4, 1]
    assert all(one["usd"]["aws"] > 0 for one in costs)


async def test_a_log_that_is_too_long_or_cannot_be_read_is_refused(
    says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop()
    world, saga = await shop.world()
    monkeypatch.setattr(copying, "MOST_COPIED", 2)
    with says.raised(TooLarge):
        await fork_new(world, saga, before="send")


@pytest.mark.parametrize("lost", ["missing", "damaged", "cut off"])
async def test_a_log_that_is_being_deleted_or_damaged_is_not_copied(
    lost: str, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop()
    world, saga = await shop.world()
    real = history.records_of

    async def lacking(*more: Any) -> AsyncIterator[Any]:
        async for page in real(*more):
            left = [
                one
                for one in page
                if lost == "damaged" or one.version < 2 or (lost == "missing" and one.version > 2)
            ]
            yield [replace(one, data=b"x") if lost == "damaged" and one.version == 2 else one for one in left]

    monkeypatch.setattr(copying, "records_of", lacking)
    with says.raised(NotAllowedNow):
        await fork_new(world, saga, before="send")
    monkeypatch.undo()
    other = await fork_new(world, saga, before="send")
    await world.settle()
    assert (await shown(world, other), len(list(world.log.heads()))) == (("completed", 3), 2)


async def test_a_fork_of_a_forked_saga_is_of_that_one() -> None:
    shop = Shop()
    world, saga = await shop.world()
    other = await fork_new(world, saga, before="pay", input={"item": "coffee"})
    await world.settle()
    third = await fork_new(world, other, before="send")
    await world.settle()
    view = await world.queries().show(third)
    assert (view["forked_from"]["saga"], view["status"], shop.acts[-1]) == (
        other,
        "completed",
        ("send", "coffee"),
    )
    with pytest.raises(UserError):
        await fork_new(world, other, version=2)


@pytest.mark.parametrize("cut", [8, 16])
def test_a_replaced_step_goes_on_in_the_new_saga_with_what_its_model_has_planned(cut: int) -> None:
    """The plan is about a failure, which is therefore kept; its questions are asked once more."""
    scenario, ends = SCENARIOS["chosen"], list[str]()

    async def drive(world: World) -> str:
        saga = str(await scenario.drive(world))
        await world.settle()
        (head,) = world.log.heads()
        other = await fork_new(world, head.ref.id, version=cut)
        view = await world.queries().show(other)
        for _ in range(5):
            await asyncio.sleep(30)
            view = await world.queries().show(other)
            for one in view["questions"]:
                action = next(option for option in ("2", "approve") if option in one["options"])
                await world.service().answer(other, Answer(ask=one["id"], action=action), "a")
        ends.append(view["status"])
        return saga

    run(dataclasses.replace(scenario, drive=drive), Plan())
    assert ends == ["completed"]
