"""A workflow function in a test: its operations are named by their labels, as its author reads them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from baton import StepFailure, WorkflowContext, tool, workflow
from baton.builder.found import text_of
from baton.core.limits import Limits
from baton.errors import InvalidInput, NotFound
from baton.testing import Elsewhere, Unanswered, run
from baton.testing.deployment import Deployment
from baton.testing.loop import VirtualLoop, run_virtual
from baton.testing.result import Result
from baton.tools.define import Registry
from tests.kit.sentences import Says

REGISTRY = Registry()
GIVEN = {"order": "o1", "guests": ["ann", "bob"]}


@tool("shop.charge", registry=REGISTRY, undo="shop.refund")
async def charge(order: str) -> dict[str, str]:
    return {"payment": f"pay-{order}"}


@tool("shop.refund", registry=REGISTRY)
async def refund(payment: str) -> None:
    return None


@tool("shop.ticket", registry=REGISTRY)
async def ticket(guest: str) -> str:
    return f"ticket of {guest}"


@workflow("party", registry=REGISTRY, on_failure="rollback")
async def party(order: str, guests: list[str], context: WorkflowContext) -> list[str]:
    await context.step(charge, order)

    async def invite(guest: str) -> str:
        said = await context.ask(f"Invite {guest}?", options=["yes", "no"])
        if said["answer"] == "no":
            context.fail("not_wanted", f"{guest} is not wanted", kind="permanent")
        return await context.step(ticket, guest)

    return [str(one) for one in await context.map(invite, guests)]


@workflow("patient", registry=REGISTRY)
async def patient(context: WorkflowContext) -> Any:
    first = await context.signal("go", timeout="1h")
    return [first, await context.call("party", GIVEN)]


@dataclass
class Scan:
    pages: int


def scanned(output: Any = None, sent: list[str] | None = None, **options: Any) -> Result:
    registry = Registry()
    kills = options.pop("kills", {})

    @tool("send", registry=registry)
    async def send(token: str) -> None:
        if sent is not None:
            sent.append(token)

    @workflow("scan", registry=registry)
    async def scan(context: WorkflowContext) -> Any:
        done = context.callback(timeout="2h", heartbeat="5m" if "heartbeat" in options else None, schema=Scan)
        await context.step(send, done.token)
        try:
            return (await done).pages
        except TimeoutError as error:
            return f"late: {error}"
        except StepFailure as failure:
            return f"{failure.code}: {failure.message}"

    plan = Elsewhere(output=output, **options)
    return run(scan, tools=registry, callbacks={"callback": plan}, kills=kills)


@workflow("begins", registry=REGISTRY)
async def begins(order: str, context: WorkflowContext) -> list[str]:
    given = {"order": order, "guests": ["ann"]}
    return [await context.start("party", given), await context.start("party", given)]


def party_with(**options: Any) -> Result:
    return run(party, GIVEN, tools=REGISTRY, **{"answers": {"ask": "yes"}, **options})


def test_its_operations_are_steps_and_the_way() -> None:
    result = party_with()
    assert result.output == ["ticket of ann", "ticket of bob"]
    assert result.steps["invite[2]/ticket"].output == "ticket of bob"
    assert result.steps["charge"].tool == "shop.charge"
    assert result.way[0] == "charge"
    assert {"invite[1]/ask", "invite[2]/ticket"} < set(result.way)
    assert "  invite[2]/ticket: succeeded = 'ticket of bob'" in repr(result)
    assert result.why("invite[2]/ticket") == "invite[2]/ticket"
    assert result.attempts("charge") == 1
    assert result.attempts("party") == 0


def test_an_exact_label_is_answered_before_a_name_and_a_name_before_the_node() -> None:
    failed = party_with(answers={"ask": "yes", "invite[2]/ask": "no"})
    assert failed.error == "not_wanted: bob is not wanted"
    assert failed.undone == ["charge"]
    assert party_with(answers={"party": "yes"}).status == "completed"
    assert party_with(answers={"party": "no", "ask": "yes"}).status == "completed"


def test_a_question_without_an_answer_is_named_as_it_would_be_answered() -> None:
    with pytest.raises(Unanswered) as caught:
        party_with(answers={"invite[1]/ask": "yes"})
    assert 'run(…, answers={"invite[2]/ask": "yes"})' in str(caught.value)


@pytest.mark.parametrize("place", ["charge", "ticket", "invite[2]/ticket", "party"])
@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_a_worker_dies_at_an_operation(place: str, moment: str) -> None:
    assert party_with(kills={place: moment}).status == "completed"


@pytest.mark.parametrize("place", ["charge#undo", "party#undo-charge"])
def test_a_worker_dies_at_the_inverse_of_an_operation(place: str) -> None:
    result = party_with(answers={"ask": "no"}, kills={place: "after"})
    assert (result.status, result.undone, result.view["revivals"]) == ("rolled_back", ["charge"], 1)


def test_a_question_about_what_is_undone_is_named_by_its_operation() -> None:
    async def lost(order: str) -> dict[str, str]:
        raise ConnectionResetError("gone")

    lose = {"shop.charge": lost}
    with pytest.raises(Unanswered) as caught:
        party_with(stand_ins=lose)
    assert 'run(…, answers={"charge": "retry"})' in str(caught.value)
    assert "in the document" not in str(caught.value)
    assert party_with(stand_ins=lose, answers={"charge": "retry"}).status == "rolled_back"
    used = {"action": "use", "output": {"payment": "p"}}
    assert party_with(stand_ins=lose, answers={"charge": used}).undone == ["charge"]


@pytest.mark.parametrize("place", ["chrage", "invite[3]/ticket", "charge#2"])
def test_a_kill_at_an_operation_that_never_came_fails_the_test(place: str) -> None:
    with pytest.raises(AssertionError) as caught:
        party_with(kills={place: "after"})
    assert f"`{place}`" in str(caught.value)


def test_what_is_no_name_of_an_operation_is_refused(says: Says) -> None:
    with says.raised(ValueError):
        party_with(answers={"ask": "yes", "invite-2": "yes"})


def test_a_stand_in_takes_the_place_of_a_tool_and_not_of_its_name() -> None:
    def declined(order: str) -> dict[str, str]:
        raise StepFailure("card_declined", "no", kind="permanent")

    result = party_with(stand_ins={"shop.charge": declined})
    assert result.error == "card_declined: no"
    assert result.steps["charge"].error == "card_declined: no"
    assert result.undone == []


def test_signals_and_children_of_a_function_are_known_only_when_it_runs() -> None:
    done = run(patient, tools=REGISTRY, signals={"go": 3}, answers={"ask": "yes"}, workflows=[party])
    assert done.output == [3, ["ticket of ann", "ticket of bob"]]
    timed = run(
        patient, tools=REGISTRY, signals=[("10s", "go", 4)], answers={"ask": "yes"}, workflows=[party]
    )
    assert timed.output[0] == 4
    late = run(patient, tools=REGISTRY)
    assert (late.status, late.took_s) == ("failed", 3600)


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_a_callback_is_completed_by_the_holder_of_its_token(moment: str) -> None:
    sent: list[str] = []
    result = scanned({"pages": 4}, after="1h", sent=sent, kills={"send": moment})
    assert (result.output, result.took_s) == (4, 3600)
    assert len(set(sent)) == 1
    assert sent[0].startswith("eyJ")
    assert result.steps["callback"].output == {"pages": 4}


def test_what_a_callback_reports_is_raised_at_once_and_its_time_is_a_timeout() -> None:
    assert scanned(code="jammed", message="paper").output == "jammed: paper"
    silent, dead = scanned(silent=True), scanned(silent=True, heartbeat="4m", after="30m")
    assert (silent.output[:5], silent.took_s) == ("late:", 7200)
    assert (dead.output[:5], 1_700 < dead.took_s < 2_100) == ("late:", True)


def test_a_report_that_does_not_fit_the_schema_of_a_callback_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        scanned({"pages": "many"})
    assert [one.path for one in caught.value.problems] == ["/output/pages"]


@pytest.mark.parametrize(("heartbeat", "timeout"), [("5s", "1h"), ("2h", "1h")])
def test_a_heartbeat_is_longer_than_clocks_differ_and_shorter_than_its_callback(
    heartbeat: str, timeout: str
) -> None:
    registry = Registry()

    @workflow("beats", registry=registry)
    async def beats(context: WorkflowContext) -> None:
        await context.callback(timeout=timeout, heartbeat=heartbeat)

    result = run(beats, tools=registry)
    assert result.status == "parked"
    assert f"heartbeat={heartbeat!r}" in result.error


def test_a_payload_that_says_that_time_is_over_is_a_payload() -> None:
    said = run(patient, tools=REGISTRY, signals={"go": {"timed_out": True}}, answers={"ask": "yes"})
    assert said.error.startswith("child_failed"), "the signal came, and the workflow is not registered"


def test_a_started_saga_has_no_parent_and_is_not_waited_for() -> None:
    async def main(loop: VirtualLoop) -> tuple[Result, Result]:
        deployment = Deployment(loop, REGISTRY, Limits(), begin=0, worker_timeout=60_000, caller=("t", "ann"))
        for function in (party, begins):
            await deployment.service().register(text_of(function, REGISTRY), json_only=False)
        view, _ = await deployment.service().start("begins", {"order": "o1"}, key="")
        await deployment.settle({})
        result = await deployment.result(view["id"])
        return result, await deployment.result(result.output[1])

    result, other = run_virtual(main)
    assert (result.status, len(set(result.output)), other.status) == ("completed", 2, "suspended")


def test_a_saga_that_cannot_be_started_is_a_failure() -> None:
    result = run(begins, {"order": "o1"}, tools=REGISTRY, workflows=[patient])
    assert result.steps["party"].error.startswith("child_failed")


@workflow("shows", registry=REGISTRY)
async def shows(rounds: int, context: WorkflowContext) -> int:
    done: int = context.state or 0
    context.publish("done", done)
    if done == 0:
        context.publish("rounds", rounds)
    if done < rounds:
        await context.sleep("1h")
        context.publish("slept", [done])
        context.checkpoint(done + 1)
    return (await context.signal("more", schema=Scan)).pages


def test_what_a_function_publishes_is_seen_while_it_runs() -> None:
    result = run(shows, {"rounds": 2}, tools=REGISTRY)
    assert result.status == "waiting"
    (active,) = [one for one in result.view["active"] if "published" in one]
    assert active["published"] == {"done": 2, "rounds": 2, "slept": [1]}


@pytest.mark.parametrize(("payload", "is_taken"), [({"pages": 3}, True), ({"pages": "many"}, False)])
def test_the_sender_of_a_signal_is_told_whether_it_is_accepted(payload: Any, is_taken: bool) -> None:
    if is_taken:
        assert run(shows, {"rounds": 0}, tools=REGISTRY, signals={"more": payload}).output == 3
        return
    with pytest.raises(InvalidInput) as caught:
        run(shows, {"rounds": 0}, tools=REGISTRY, signals={"more": payload})
    assert [one.path for one in caught.value.problems] == ["/payload/pages"]


def test_a_payload_that_came_before_and_does_not_fit_is_a_failure() -> None:
    registry = Registry()

    @workflow("late", registry=registry)
    async def late(context: WorkflowContext) -> str:
        await context.sleep("2h")
        try:
            return str((await context.signal("more", schema=Scan)).pages)
        except StepFailure as failure:
            return failure.code

    assert run(late, tools=registry, signals=[("1h", "more", {"pages": "many"})]).output == "output_invalid"


@pytest.mark.parametrize("is_awaited", [True, False])
def test_an_operation_that_has_failed_and_was_never_awaited_is_a_mistake(is_awaited: bool) -> None:
    registry = Registry()

    @tool("declines", registry=registry)
    async def declines() -> None:
        raise StepFailure("declined", "no", kind="permanent")

    @workflow("forgets", registry=registry)
    async def forgets(context: WorkflowContext) -> str:
        left = context.step(declines)
        await context.sleep("1h")
        if is_awaited:
            with pytest.raises(StepFailure):
                await left
        return "done"

    result = run(forgets, tools=registry)
    assert result.status == ("completed" if is_awaited else "parked")
    assert is_awaited or "`declines`" in result.error


@pytest.mark.parametrize(("names", "size"), [(17, 1), (1, 5_000)])
def test_a_function_publishes_little(names: int, size: int) -> None:
    registry = Registry()

    @workflow("much", registry=registry)
    async def much(context: WorkflowContext) -> None:
        for number in range(names):
            context.publish(f"n{number}", "x" * size)
        await context.sleep("1h")

    assert "it publishes" in str(run(much, tools=registry).error)


def test_a_function_without_workflow_above_it_is_refused(says: Says) -> None:
    with says.raised(NotFound):
        run(refund, tools=REGISTRY)


def test_a_cancelled_function_ends_its_operations_and_undoes_what_they_did() -> None:
    async def main(loop: VirtualLoop) -> Result:
        deployment = Deployment(loop, REGISTRY, Limits(), begin=0, worker_timeout=60_000, caller=("t", "ann"))
        await deployment.service().register(text_of(party, REGISTRY), json_only=False)
        view, _ = await deployment.service().start("party", GIVEN, key="")
        await deployment.settle({})
        await deployment.service().cancel(view["id"], "changed my mind", 0, undo=True)
        await deployment.settle({})
        return await deployment.result(view["id"])

    result = run_virtual(main)
    assert (result.status, result.undone) == ("rolled_back", ["charge"])
    assert result.steps["invite[1]/ask"].status == "stopped"


def test_a_function_ends_with_the_first_of_results_that_come_together() -> None:
    registry = Registry()
    tool("shop.ticket", registry=registry)(ticket)

    @workflow("first", registry=registry)
    async def first(context: WorkflowContext) -> str:
        asked = [context.step(ticket, guest) for guest in ("ann", "bob", "cem")]
        done, others = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        for one in others:
            one.cancel()
        return min(one.result() for one in done)

    result = run(first, tools=registry)
    assert (result.status, result.output) == ("completed", "ticket of ann")
