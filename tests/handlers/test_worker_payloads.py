"""The worker function against every payload in events/worker: it runs what it can, and sets poison aside."""

from __future__ import annotations

import logging

import pytest

from baton.core.log.events import SagaEnded
from baton.ports import SagaRef
from tests.handlers.deployment import Deployment, Interference, payload, payload_names, throttled
from tests.handlers.pauses import Pauses
from tests.handlers.sagas import ADA, ECHO, GRACE, batch, begin, wake
from tests.handlers.workers import Worker
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
MISSING = SagaRef("acme", "missing")
CHAIN = """
name: chain
nodes:
  one: {tool: trial.echo, with: {value: 1}}
  two: {tool: trial.echo, after: one, with: {value: "${ctx.one.output}"}}
output: "${ctx.two.output}"
"""
FAILING = """
name: failing
on_failure: [rollback]
nodes:
  bad: {tool: trial.fail, with: {code: no_table, message: the house is full}}
"""
LARGE = """
name: large
nodes:
  big: {tool: trial.large, with: {size: 5242880}}
"""


def ending(deployment: Deployment, ref: SagaRef) -> SagaEnded | None:
    last = deployment.entries(ref)[-1].events[-1]
    return last if isinstance(last, SagaEnded) else None


@pytest.fixture
def both(worker: Worker, deployment: Deployment) -> Worker:
    """Ada's saga, started and not yet run; and Grace's, whose first wake was lost, so that it is due."""
    begin(worker.engine, ADA, CHAIN)
    begin(worker.engine, GRACE, ECHO, "hello")
    deployment.make_due(GRACE, worker.engine.clock.now())
    return worker


def test_every_payload_has_a_test_of_its_own() -> None:
    known = ["direct", "poison", "redelivered", "same-saga-twice", "timer", "wakes"]
    assert payload_names("worker") == known


@pytest.mark.parametrize("name", ["wakes", "direct", "redelivered"])
def test_a_batch_of_wakes_runs_each_saga_to_its_end(name: str, both: Worker, deployment: Deployment) -> None:
    assert both.send(payload("worker", name)) == []
    for ref, output in ((ADA, 1), (GRACE, "hello")):
        end = ending(deployment, ref)
        assert end is not None
        assert (end.status, end.output.v) == ("completed", output)
        head = deployment.head(ref)
        assert (head.owner, head.due_at, head.status, head.group) == ("", None, "completed", "done")


def test_a_wake_that_comes_again_after_its_work_was_done_changes_nothing(
    both: Worker, deployment: Deployment
) -> None:
    assert both.send(payload("worker", "wakes")) == []
    before = deployment.items()
    assert both.send(payload("worker", "redelivered")) == []
    assert deployment.items() == before


def test_a_timers_message_runs_the_saga_that_is_due_by_now(both: Worker, deployment: Deployment) -> None:
    assert both.send(payload("worker", "timer")) == []
    end = ending(deployment, GRACE)
    assert end is not None
    assert end.status == "completed"
    assert ending(deployment, ADA) is None


def test_two_wakes_of_one_saga_in_a_batch_run_it_once(both: Worker, deployment: Deployment) -> None:
    assert both.send(payload("worker", "same-saga-twice")) == []
    assert deployment.head(ADA).epoch == 1
    nodes = [getattr(e, "node", "") for entry in deployment.entries(ADA) for e in entry.events]
    assert (nodes.count("one"), nodes.count("two")) == (1, 1)


def test_poison_goes_to_the_dead_letters_with_its_reason_and_harms_no_other(
    both: Worker, deployment: Deployment, says: Says
) -> None:
    event = payload("worker", "poison")
    assert both.send(event) == []
    end = ending(deployment, ADA)
    assert end is not None
    assert end.status == "completed"
    letters = dict(deployment.dead_letters())
    poison = [record["body"] for record in event["Records"][1:]]
    assert sorted(letters) == sorted(poison)
    assert all(reason.startswith("not a wake: ") for reason in letters.values())
    says(letters['{"saga":"not a saga"}'])


def test_a_message_that_no_delivery_makes_readable_is_set_aside_at_once(
    both: Worker, deployment: Deployment
) -> None:
    bodies = [
        "",
        "null",
        "[]",
        '{"saga":7}',
        '{"saga":"T#acme#WF#dinner"}',
        '{"saga":"T##SAGA#x"}',
        '{"saga":"T#acme#SAGA#"}',
        '{"saga":"T#acme#SAGA#x","v":-1}',
        '{"saga":"T#acme#SAGA#x","v":"seven"}',
        "\ud83d",
        "x" * 100_000,
    ]
    assert both.send(batch(*bodies, wake(ADA))) == []
    assert ending(deployment, ADA) is not None
    reasons = [reason for _, reason in deployment.dead_letters()]
    assert len(reasons) == len(bodies)
    for reason in reasons:
        assert reason.startswith("not a wake: ")
        assert len(reason) <= 1_000


def test_poison_that_cannot_be_set_aside_now_is_delivered_again(
    both: Worker, deployment: Deployment, pauses: Pauses
) -> None:
    with Interference(both.dead_letters).answering("SendMessage", lambda _: throttled()):
        assert both.send(batch("hello", wake(ADA))) == ["m0"]
    # The clock moves on with each pause of the other message: the saga may have had no time left.
    assert both.send(batch(wake(ADA))) == []
    assert ending(deployment, ADA) is not None
    assert deployment.dead_letters() == []


def test_poison_that_may_not_be_set_aside_is_delivered_again_and_harms_no_other(
    both: Worker, deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    refusal = 403, {"Error": {"Code": "AccessDenied", "Message": "Access to the resource is denied."}}
    with (
        caplog.at_level(logging.ERROR, logger="baton"),
        Interference(both.dead_letters).answering("SendMessage", lambda _: refusal),
    ):
        assert both.send(batch("hello", wake(ADA))) == ["m0"]
    assert ending(deployment, ADA) is not None
    assert deployment.dead_letters() == []
    assert "AccessDenied" in caplog.text


def test_a_message_as_large_as_the_queue_takes_is_set_aside_with_its_reason(
    both: Worker, deployment: Deployment, says: Says
) -> None:
    assert both.send(batch("x" * 1_048_576, wake(ADA))) == []
    ((body, reason),) = deployment.dead_letters()
    assert len(body) < 1_048_576
    says(reason)


def test_a_wake_for_a_saga_that_is_not_there_is_dropped(worker: Worker, deployment: Deployment) -> None:
    assert worker.wake(MISSING) == []
    assert deployment.items() == []


def test_a_wake_that_knows_no_version_runs_only_what_is_due(worker: Worker, deployment: Deployment) -> None:
    begin(worker.engine, ADA, CHAIN)
    before = deployment.items()
    assert worker.send({"wakes": [{"saga": str(ADA)}]}) == []
    assert deployment.items() == before
    deployment.make_due(ADA, worker.engine.clock.now())
    assert worker.send({"wakes": [{"saga": str(ADA)}]}) == []
    assert ending(deployment, ADA) is not None


def test_a_wake_with_nothing_new_writes_nothing(both: Worker, deployment: Deployment) -> None:
    both.wake(ADA)
    before = deployment.items()
    assert both.wake(ADA) == []
    assert deployment.items() == before


def test_a_saga_whose_step_fails_ends_failed_with_the_steps_reason(
    worker: Worker, deployment: Deployment
) -> None:
    begin(worker.engine, ADA, FAILING)
    assert worker.wake(ADA) == []
    end = ending(deployment, ADA)
    assert end is not None
    assert end.failure is not None
    assert (end.status, end.failure.code, end.failure.node) == ("failed", "no_table", "bad")
    assert end.failure.message == "the house is full"


def test_a_result_that_is_too_large_fails_its_step_and_names_the_limit(
    worker: Worker, deployment: Deployment
) -> None:
    begin(worker.engine, ADA, LARGE)
    assert worker.wake(ADA) == []
    end = ending(deployment, ADA)
    assert end is not None
    assert end.failure is not None
    assert (end.status, end.failure.code, end.failure.node) == ("failed", "result_too_large", "big")
    assert "5242880 bytes" in end.failure.message


def test_an_entry_says_by_whom_and_whether_the_process_was_new(both: Worker, deployment: Deployment) -> None:
    both.module._cold[0] = True
    both.wake(ADA)
    both.wake(GRACE)
    first, second = deployment.entries(ADA)[1:], deployment.entries(GRACE)[1:]
    assert {entry.cold for entry in first} == {True}
    assert {entry.cold for entry in second} == {False}
    assert all(entry.epoch == 1 and entry.invocation.startswith("request-") for entry in first + second)
    assert first[0].invocation != second[0].invocation
    step = first[0].events[0]
    assert (getattr(step, "tool", ""), getattr(step, "tool_version", "")) == ("trial.echo", "1")
    assert len(getattr(step, "schema_hash", "")) == 12
    assert first[0].traceparent.startswith("00-" + "a" * 32)


# -- wakes that a worker of other code hands over


def test_wakes_of_another_worker_end_by_its_time(both: Worker, deployment: Deployment) -> None:
    wakes = [{"saga": str(ADA), "v": 1}]
    now = both.engine.clock.now()
    assert both.send({"wakes": wakes, "until": now + 1}) == ["0"]
    assert both.send({"wakes": wakes, "until": now + 60_000, "build": both.engine.limits.build}) == []
    assert ending(deployment, ADA) is not None


def test_an_alias_that_leads_to_other_code_is_a_fault(both: Worker) -> None:
    with pytest.raises(LookupError, match="build 12"):
        both.send({"wakes": [{"saga": str(ADA)}], "until": 1, "build": "12.3.4"})
