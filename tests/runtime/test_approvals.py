"""Calls that a person has to approve, through the engine in virtual time: nothing is done, claimed or reserved before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import StepFailure, tool
from baton.core.log.events import AttemptFailed, QuestionClosed, QuestionOpened, StepSucceeded
from baton.core.log.questions import Answer
from baton.errors import NotAllowedNow
from baton.runtime.people.question_rows import PLACES_DAY
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.banking import AMOUNT, FAILED, Bank, asked, ended, of, say


async def test_before_its_approval_nothing_is_done_claimed_reserved_or_held() -> None:
    world = World.start()
    bank = Bank()
    bank.open(world, cost_usd="0.10")
    saga = await start(world, of(AMOUNT, "\n  side: {tool: work, with: {n: 1}}"), {}, "w")
    question = await asked(world, saga)
    assert question["details"]["arguments"] == {"amount": 600}
    (head,) = world.log.heads()
    assert (head.status, head.owner) == ("suspended", "")
    assert [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)] == ["side"]
    assert (bank.paid, [*world.store.effects.stored.values()]) == ([], [])
    held = {account.day: world.budgets.read(account).held for account in list(world.budgets.spent())}
    assert {day for day, amount in held.items() if amount} == {PLACES_DAY}, "a place, and no money"
    ran = len(world.invocations)
    await asyncio.sleep(3_600)
    assert len(world.invocations) <= ran + 8, "only the sweep looks"
    await say(world, saga, "approve")
    assert (await ended(world, saga))["result"] == 600
    assert bank.paid == [("pay", 600)]


async def test_an_approved_act_in_doubt_is_looked_at_and_no_person_is_asked_again() -> None:
    world = World.start()
    bank = Bank(fate=["dies"])
    bank.open(world)
    saga = await start(world, of(AMOUNT), {}, "w")
    await say(world, saga, "approve")
    view = await ended(world, saga)
    assert (view["status"], view["result"], bank.paid) == ("completed", 600, [("pay", 600)])
    assert len([event for event in world.events(saga) if isinstance(event, QuestionOpened)]) == 1


@pytest.mark.parametrize(("action", "paid"), [("approve", [("pay", 700)]), ("reject", [])])
async def test_other_arguments_are_asked_about_anew(action: str, paid: list[Any]) -> None:
    world = World.start()
    bank = Bank(fate=[FAILED])
    bank.open(world)
    policy = "{name: more, when: {code: declined}, then: {strategy: replan, with: {amount: 700}}}"
    saga = await start(world, of(f"{AMOUNT}, failover: [{policy}]"), {}, "w")
    first = await say(world, saga, "approve")
    second = await say(world, saga, action)
    view = await ended(world, saga)
    assert second["digest"] != first["digest"]
    assert second["details"]["arguments"] == {"amount": 700}
    assert (view["status"], bank.paid) == ("completed" if paid else "failed", paid)
    assert paid or view["error"]["code"] == "rejected"


async def test_a_retry_asks_no_more_and_has_the_key_of_the_approved_attempt() -> None:
    world = World.start()
    bank = Bank(fate=[StepFailure("service_unavailable", "no", happened=False)])
    bank.open(world)
    saga = await start(world, of(AMOUNT), {}, "w")
    await say(world, saga, "approve")
    assert (await ended(world, saga))["status"] == "completed"
    assert (len(bank.keys), len(set(bank.keys)), bank.paid) == (2, 1, [("pay", 600)])


@pytest.mark.parametrize("effect", ["once", "idempotent"])
async def test_what_a_hook_makes_of_the_arguments_is_asked_about_and_then_done_without_it(
    effect: str,
) -> None:
    world = World.start()
    bank = Bank(fate=[StepFailure("unauthorized", "no", happened=False)])
    bank.open(world, effect=effect, verify="bank.find" if effect == "once" else "")

    @tool(
        "log_in_to_pay",
        effect="pure",
        registry=world.registry,
        carries_out="refresh_credentials",
        for_tools="bank.pay",
    )
    async def log_in() -> dict[str, str]:
        bank.helped += 1
        return {"note": f"session {bank.helped}"}

    bank.refresh(world)
    saga = await start(world, of(AMOUNT), {}, "w")
    await say(world, saga, "approve")
    second = await say(world, saga, "approve")
    assert second["details"]["arguments"] == {"amount": 600, "note": "session 1"}
    claims = [effect.status for effect in world.store.effects.stored.values()]
    assert claims == (["failed"] if effect == "once" else []), "the claim of the first attempt, and no other"
    assert (await ended(world, saga))["status"] == "completed"
    assert (bank.paid, bank.helped) == ([("pay", 600)], 1)
    assert len([one for one in world.events(saga) if isinstance(one, AttemptFailed)]) == 1


async def test_a_guard_of_a_deploy_holds_for_graphs_that_were_compiled_before(says: Says) -> None:
    world = World.start()
    bank = Bank()
    bank.open(world, risk=None)
    await world.service().register(of(AMOUNT), json_only=False)
    bank.open(world, risk=None, requires_approval=True)
    view, _ = await world.service().start("w", {}, "k")
    saga = str(view["id"])
    question = await asked(world, saga)
    assert question["risk"] == "low"
    says(question["message"])
    assert bank.paid == []
    await say(world, saga, "approve")
    assert (await ended(world, saga))["result"] == 600


async def test_a_shorter_text_of_an_act_that_happens_once_is_another_call_and_leaves_no_claim() -> None:
    world = World.start()
    sent: list[str] = []

    @tool("post", registry=world.registry, effect="once", context="text", requires_approval=True)
    async def post(text: str) -> str:
        if len(text) > 500:
            raise StepFailure("context_exceeded", "too long", happened=False)
        sent.append(text)
        return text

    world.tools = world.registry.specs()
    text = "word " * 160
    saga = await start(world, f"name: w\nnodes: {{pay: {{tool: post, with: {{text: '{text}'}}}}}}\noutput: ${{ctx.pay.output}}", {}, "w")  # fmt: skip
    await say(world, saga, "approve")
    shorter = await asked(world, saga)
    assert len(shorter["details"]["arguments"]["text"]) < 500
    assert [effect.status for effect in [*world.store.effects.stored.values()]] in (["freed"], ["failed"])
    await say(world, saga, "approve")
    assert (await ended(world, saga))["status"] == "completed"
    assert len(sent) == 1
    closed = [event.action for event in world.events(saga) if isinstance(event, QuestionClosed)]
    assert closed == ["approve", "approve"]


async def test_a_call_in_parts_asks_for_each_part_and_loses_none() -> None:
    world = World.start()
    sent: list[str] = []

    @tool("post", registry=world.registry, context="text", requires_approval=True)
    async def post(text: str) -> str:
        if len(text) > 500:
            raise StepFailure("context_exceeded", "too long")
        sent.append(text)
        return text

    world.tools = world.registry.specs()
    text = " ".join(f"w{n}" for n in range(160))
    policy = "{name: parts, when: {code: context_exceeded}, then: {strategy: replan, hint: chunk_context}}"
    saga = await start(world, f"name: w\nnodes: {{pay: {{tool: post, with: {{text: '{text}'}}, failover: [{policy}]}}}}\noutput: ${{ctx.pay.output}}", {}, "w")  # fmt: skip
    for _ in range(3):
        await say(world, saga, "approve")
    assert (await ended(world, saga))["status"] == "completed"
    assert " ".join(dict.fromkeys(sent)) == text


@pytest.mark.parametrize(("amount", "paid"), [(90, [("pay", 90)]), (600, [])])
async def test_a_question_about_a_call_escalates_and_approves_by_itself_only_what_is_not_risky(
    amount: int, paid: list[Any]
) -> None:
    world = World.start()
    bank = Bank()
    bank.open(world)
    steps = "[{after: 1h, remind: true}, {after: 2h, decide: approve}]"
    rules = "risk: [{action: payment, above: 500, level: critical}]\nnodes:"
    node = f"tool: bank.pay, with: {{amount: {amount}}}, requires_approval: {{escalate: {steps}}}"
    saga = await start(world, of(node).replace("nodes:", rules), {}, "w")
    await asked(world, saga)
    await asyncio.sleep(3_600)
    assert (await asked(world, saga))["told_at"]
    assert bank.paid == []
    await asyncio.sleep(3_600)
    await ended(world, saga)
    assert bank.paid == paid
    (closed,) = (one for one in world.events(saga) if isinstance(one, QuestionClosed))
    assert (closed.action, closed.by) == ("approve" if paid else "reject", "")


async def test_of_a_hundred_answers_at_once_one_counts() -> None:
    world = World.start()
    bank = Bank()
    bank.open(world)
    saga = await start(world, of(AMOUNT), {}, "w")
    question = await asked(world, saga)

    async def answer(number: int) -> str:
        action = "approve" if number % 2 else "reject"
        try:
            said = await world.service().answer(saga, Answer(ask=question["id"], action=action), f"k{number}")
        except NotAllowedNow:
            return ""
        return action if said["changed"] else ""

    accepted = [action for action in await asyncio.gather(*map(answer, range(100))) if action]
    view = await ended(world, saga)
    closed = [event.action for event in world.events(saga) if isinstance(event, QuestionClosed)]
    assert len(accepted) == 1
    assert closed == accepted
    assert (view["status"], len(bank.paid)) == (
        ("completed", 1) if accepted == ["approve"] else ("failed", 0)
    )


async def test_an_answer_after_the_time_is_refused_although_an_attempt_has_failed_before() -> None:
    world = World.start()
    bank = Bank(fate=[FAILED])
    bank.open(world)
    policy = "{name: more, when: {code: declined}, then: {strategy: replan, with: {amount: 700}}}"
    saga = await start(world, of(f"{AMOUNT}, failover: [{policy}]"), {}, "w")
    await say(world, saga, "approve")
    question = await asked(world, saga)
    world.queue_on = world.reconciler_on = False
    await asyncio.sleep(86_400)
    with pytest.raises(NotAllowedNow, match="has expired"):
        await world.service().answer(saga, Answer(ask=question["id"], action="approve"), "k")
    world.queue_on = world.reconciler_on = True
    await ended(world, saga)
    assert bank.paid == []
