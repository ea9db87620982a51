"""Steering sagas over HTTP: cancel, signal, resume, fork; also when another writer is quicker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from baton.core.log.events import (
    Event,
    Parked,
    Resumed,
    SagaEnded,
    SignalReceived,
    Token,
    Value,
    WaitClosed,
    WaitOpened,
)
from baton.ports import SagaRef
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, PARTY, append, begin
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
SAGA = f"/sagas/{ADA.id}"


def signal(number: int, payload: Any = None) -> SignalReceived:
    return SignalReceived(name="guests_changed", key=f"k{number}", payload=Value(v=payload), by="ada", at=1)


def end(http: Http, status: str = "completed", output: Any = None) -> None:
    append(http.engine, SagaEnded(status=status, output=Value(v=output)))


def kinds(deployment: Deployment, ref: SagaRef = ADA) -> list[Any]:
    return [event.__struct_config__.tag for entry in deployment.entries(ref) for event in entry.events]


def wakes(deployment: Deployment, ref: SagaRef = ADA) -> list[Any]:
    """The wakes that the entries of a saga carry, in order."""
    items = deployment.saga_items(ref)
    return [items[key].get("wake", {}).get("S") for key in sorted(items) if key.startswith("LOG#")]


# ---- cancel


@pytest.mark.parametrize(
    ("body", "grace_ms"),
    [
        (None, 30_000),
        ({}, 30_000),
        ({"grace_s": 5}, 5_000),
        ({"grace_s": "2m"}, 120_000),
        ({"grace_s": 0}, 0),
        ({"mode": "forced"}, 0),
        ({"mode": "forced", "grace_s": 5}, 0),
    ],
)
def test_a_cancel_is_appended_with_its_grace_and_wakes_the_saga(
    body: Any, grace_ms: int, http: Http, deployment: Deployment
) -> None:
    begin(http.engine, ADA, PARTY)
    answer = http.post(f"{SAGA}/cancel", body)
    assert (answer.status, answer.body["version"]) == (202, 2)
    (request,) = deployment.entries(ADA)[1].events
    assert getattr(request, "grace_ms", None) == grace_ms
    assert wakes(deployment)[1] == '{"v":2}'


def test_a_second_cancel_is_a_no_op_unless_it_is_more_urgent(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    versions = [
        http.post(f"{SAGA}/cancel", body).body["version"]
        for body in ({"grace_s": 60}, {"grace_s": 90}, {"mode": "forced"}, {"mode": "forced"})
    ]
    assert versions == [2, 2, 3, 3]
    assert kinds(deployment) == ["saga_started", "cancel_requested", "cancel_requested"]


def test_cancelling_what_was_cancelled_says_so_and_what_has_ended_otherwise_is_refused(
    http: Http, deployment: Deployment, says: Says
) -> None:
    begin(http.engine, ADA, PARTY)
    end(http, "cancelled")
    before = deployment.items()
    answer = http.post(f"{SAGA}/cancel")
    assert (answer.status, answer.body["status"]) == (202, "cancelled")
    other = SagaRef("acme", "another")
    begin(http.engine, other, PARTY)
    append(http.engine, SagaEnded(status="failed"), ref=other)
    problem = http.post(f"/sagas/{other.id}/cancel").problem(409, "not-allowed-now")
    says(problem["detail"])
    assert [item for item in deployment.items() if item["pk"]["S"] == str(ADA)] == [
        item for item in before if item["pk"]["S"] == str(ADA)
    ]


# ---- signals


def test_a_signal_is_appended_with_its_payload_and_wakes_the_saga(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    answer = http.post(f"{SAGA}/signals/guests_changed", {"payload": {"party": 5}}, key="k")
    assert (answer.status, answer.body["version"]) == (202, 2)
    (event,) = deployment.entries(ADA)[1].events
    assert isinstance(event, SignalReceived)
    assert (event.name, event.key, event.payload.v, event.by) == ("guests_changed", "k", {"party": 5}, "ada")
    assert wakes(deployment)[1] == '{"v":2}'


def test_a_signal_may_carry_a_failure_in_place_of_a_payload(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    failure = {"code": "Courier-Lost", "message": "password=hunter2secret is gone"}
    assert http.post(f"{SAGA}/signals/guests_changed", {"failure": failure}, key="k").status == 202
    assert http.post(f"{SAGA}/signals/guests_changed", {"failure": failure}, key="k").status == 202
    (event,) = deployment.entries(ADA)[1].events
    assert isinstance(event, SignalReceived)
    assert event.failure is not None
    assert (event.failure.code, event.payload.v) == ("courier_lost", None)
    assert "hunter2secret" not in event.failure.message
    http.post(f"{SAGA}/signals/guests_changed", {"payload": None}, key="k").problem(
        422, "idempotency-key-reused"
    )


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"payload": None, "failure": {"code": "x"}}, ""),
        ({"failure": {}}, "/failure/code"),
        ({"failure": {"code": "no code!"}}, "/failure/code"),
        ({"failure": {"code": "x", "reason": "y"}}, "/failure/reason"),
        ({"failure": "x"}, "/failure"),
    ],
)
def test_a_failure_of_a_signal_that_is_none_is_refused(
    http: Http, deployment: Deployment, body: Any, path: str, says: Says
) -> None:
    begin(http.engine, ADA, PARTY)
    problem = http.post(f"{SAGA}/signals/guests_changed", body).problem(422, "invalid-input")
    (found,) = problem["errors"]
    assert found["path"] == path
    says(found["message"])
    assert len(deployment.entries(ADA)) == 1


def test_an_unknown_signal_is_answered_with_the_nearest(
    http: Http, deployment: Deployment, says: Says
) -> None:
    begin(http.engine, ADA, PARTY)
    problem = http.post(f"{SAGA}/signals/guest_changed").problem(404, "not-found")
    says(problem["detail"])
    assert len(deployment.entries(ADA)) == 1


def test_a_workflow_that_waits_for_no_signal_says_so(http: Http) -> None:
    begin(http.engine, ADA, ECHO)
    problem = http.post(f"{SAGA}/signals/go").problem(404, "not-found")
    assert problem["detail"].endswith("It waits for none")


STRICT = """
name: strict
nodes:
  first: {wait: {signal: go}, output_schema: {type: integer}}
  then: {wait: {signal: go}, after: first, output_schema: {type: object, required: [party]}}
  other: {wait: {signal: any}, after: then}
"""


def test_a_payload_that_no_wait_takes_is_refused_with_what_is_wrong(
    http: Http, deployment: Deployment, says: Says
) -> None:
    begin(http.engine, ADA, STRICT)
    problem = http.post(f"{SAGA}/signals/go", {"payload": {"guests": 5}}).problem(422, "invalid-input")
    says(problem["detail"])
    says(problem["errors"])
    assert kinds(deployment) == ["saga_started"]


@pytest.mark.parametrize("payload", [5, {"party": 5}])
def test_a_payload_that_some_wait_takes_that_can_still_be_reached_is_accepted(
    http: Http, payload: Any
) -> None:
    begin(http.engine, ADA, STRICT)
    assert http.post(f"{SAGA}/signals/go", {"payload": payload}).status == 202
    assert http.post(f"{SAGA}/signals/any", {"payload": payload}).status == 202


def test_a_repeated_signal_with_a_payload_that_would_not_be_taken_now_is_a_no_op_still(http: Http) -> None:
    begin(http.engine, ADA, STRICT)
    assert http.post(f"{SAGA}/signals/go", {"payload": 5}, key="k").status == 202
    closed = WaitClosed(node="first", by="k", output=Value(v=5), emits=(Token("first", "then"),))
    append(http.engine, WaitOpened(node="first", signal="go"), closed)
    assert http.post(f"{SAGA}/signals/go", {"payload": 5}, key="k").status == 202
    http.post(f"{SAGA}/signals/go", {"payload": 5}, key="l").problem(422, "invalid-input")


def test_a_repeated_signal_is_a_no_op_whatever_else_came_in_between(
    http: Http, deployment: Deployment
) -> None:
    begin(http.engine, ADA, PARTY)
    path = f"{SAGA}/signals/guests_changed"
    versions = [http.post(path, key=key).body["version"] for key in ("a", "b", "a", "b")]
    assert versions == [2, 3, 3, 3]
    assert kinds(deployment) == ["saga_started", "signal_received", "signal_received"]


def test_signals_without_a_key_are_two_signals(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    for _ in range(2):
        assert http.post(f"{SAGA}/signals/guests_changed").status == 202
    assert kinds(deployment).count("signal_received") == 2


def test_a_key_that_comes_again_with_another_payload_is_refused(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    path = f"{SAGA}/signals/guests_changed"
    assert http.post(path, {"payload": 4}, key="k").status == 202
    http.post(path, {"payload": 5}, key="k").problem(422, "idempotency-key-reused")
    assert kinds(deployment) == ["saga_started", "signal_received"]


def test_signals_that_no_wait_takes_are_kept_up_to_a_limit_that_is_named(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    limit = http.engine.limits.signals_kept
    append(http.engine, *(signal(number) for number in range(limit)))
    problem = http.post(f"{SAGA}/signals/guests_changed").problem(409, "not-allowed-now")
    assert str(limit) in problem["detail"]
    assert http.post(f"{SAGA}/cancel").status == 202  # that is always possible


def test_an_ended_saga_takes_no_signal(http: Http, deployment: Deployment, says: Says) -> None:
    begin(http.engine, ADA, PARTY)
    end(http)
    problem = http.post(f"{SAGA}/signals/guests_changed").problem(409, "not-allowed-now")
    says(problem["detail"])
    assert kinds(deployment) == ["saga_started", "saga_ended"]


def test_a_large_payload_is_kept_outside_the_entry(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    http.post(f"{SAGA}/signals/guests_changed", {"payload": "x" * 50_000})
    (event,) = deployment.entries(ADA)[1].events
    assert isinstance(event, SignalReceived)
    assert event.payload.ref.startswith("cas://sha256/")


# ---- resume


def test_only_a_parked_saga_is_resumed_and_only_once(http: Http, deployment: Deployment, says: Says) -> None:
    begin(http.engine, ADA, ECHO)
    problem = http.post(f"{SAGA}/resume", {"budget_usd": "2"}).problem(409, "not-allowed-now")
    says(problem["detail"])
    append(http.engine, Parked(code="worker_killed", message="three died"))
    assert http.post(f"{SAGA}/resume").status == 202
    assert kinds(deployment) == ["saga_started", "parked", "resumed"]
    assert wakes(deployment)[2] == '{"v":3}'
    assert http.post(f"{SAGA}/resume").body["changed"] is False


def test_an_ended_saga_cannot_be_resumed(http: Http) -> None:
    begin(http.engine, ADA, ECHO)
    end(http)
    http.post(f"{SAGA}/resume").problem(409, "not-allowed-now")


# ---- forks


def test_a_fork_of_an_ended_saga_makes_it_due_before_it_is_appended(
    http: Http, deployment: Deployment
) -> None:
    begin(http.engine, ADA, PARTY)
    end(http)
    took_out = "REMOVE due_at"  # what the worker's release of a finished saga does
    deployment.dynamodb.update_item(
        TableName=deployment.table,
        Key={"pk": {"S": str(ADA)}, "sk": {"S": "HEAD"}},
        UpdateExpression=took_out,
    )
    answer = http.post(f"{SAGA}/forks", {"version": 1, "reason": "once more"})
    assert (answer.status, answer.body) == (
        202,
        {
            "id": ADA.id,
            "status": "running",
            "version": 3,
            "changed": True,
            "plan": {"cut": 1, "left": [], "more": 0, "unsure": 0},
        },
    )
    head = deployment.head(ADA)
    assert head.armed > 0
    assert head.due_at == head.armed
    assert wakes(deployment)[2] == '{"v":3}'
    assert kinds(deployment) == ["saga_started", "saga_ended", "forked"]
    shown = http.get(SAGA).body
    assert (shown["status"], shown["branch"]) == ("running", 1)


def test_a_fork_as_a_new_saga_names_that_one_and_leaves_the_other(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    end(http)
    body = {"version": 1, "as": "saga", "reason": "compare"}
    answer = http.post(f"{SAGA}/forks", body, key="k")
    assert (answer.status, answer.body["status"], answer.body["version"]) == (202, "running", 2)
    new = answer.body["id"]
    assert answer.headers["location"] == f"/sagas/{new}"
    assert kinds(deployment) == ["saga_started", "saga_ended"]
    assert kinds(deployment, SagaRef("acme", new)) == ["saga_started", "forked"]
    assert http.get(f"/sagas/{new}").body["forked_from"] == {"saga": ADA.id, "version": 1}
    assert http.post(f"{SAGA}/forks", body, key="k").body["changed"] is False
    http.post(f"{SAGA}/forks", {**body, "version": 2}, key="k").problem(422, "idempotency-key-reused")
    head = deployment.saga_items(SagaRef("acme", new))["HEAD"]
    assert head["wake"]["S"] == '{"v":2}'


@pytest.mark.parametrize("version", [3, 10**12])
def test_a_fork_from_a_version_that_is_not_there_is_refused(
    version: int, http: Http, deployment: Deployment, says: Says
) -> None:
    begin(http.engine, ADA, PARTY)
    end(http)
    before = deployment.items()
    problem = http.post(f"{SAGA}/forks", {"version": version}).problem(400, "bad-request")
    says(problem["detail"])
    assert deployment.items() == before


def test_the_end_of_a_branch_is_nothing_to_go_on_from(http: Http, deployment: Deployment, says: Says) -> None:
    begin(http.engine, ADA, PARTY)
    end(http)
    problem = http.post(f"{SAGA}/forks", {"version": 2}).problem(400, "bad-request")
    says(problem["detail"])
    assert kinds(deployment) == ["saga_started", "saga_ended"]


def test_a_repeated_fork_is_one_fork(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    append(http.engine, signal(1))
    answers = [http.post(f"{SAGA}/forks", {"version": 1}, key="k") for _ in range(2)]
    assert [(answer.status, answer.body["version"]) for answer in answers] == [(202, 3)] * 2
    http.post(f"{SAGA}/forks", {"version": 2}, key="k").problem(422, "idempotency-key-reused")
    assert kinds(deployment).count("forked") == 1


# ---- another writer is quicker


@contextmanager
def right_before_the_next_puts(http: Http, *events: Event) -> Iterator[None]:
    """Another writer puts an entry with one of these events before each of the next puts."""
    pending = list(events)
    hooks = http.engine.log._client.meta.events

    def before_put(**_: Any) -> None:
        hooks.unregister("before-call.dynamodb.PutItem", before_put)  # for the rival's own put
        if pending:
            append(http.engine, pending.pop(0))
            hooks.register_first("before-call.dynamodb.PutItem", before_put)

    hooks.register_first("before-call.dynamodb.PutItem", before_put)
    yield
    hooks.unregister("before-call.dynamodb.PutItem", before_put)


@pytest.mark.parametrize("action", ["cancel", "signals/guests_changed", "forks"])
def test_a_lost_put_reads_the_winner_and_tries_again(action: str, http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    with right_before_the_next_puts(http, signal(1), signal(2)):
        answer = http.post(f"{SAGA}/{action}", {"version": 1} if action == "forks" else {}, key="mine")
    assert (answer.status, answer.body["version"]) == (202, 4)
    assert [entry.version for entry in deployment.entries(ADA)] == [1, 2, 3, 4]
    assert kinds(deployment)[1:3] == ["signal_received", "signal_received"]


def test_a_signal_that_loses_to_the_end_is_refused(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    with right_before_the_next_puts(http, SagaEnded(status="completed")):
        answer = http.post(f"{SAGA}/signals/guests_changed")
    answer.problem(409, "not-allowed-now")
    assert kinds(deployment) == ["saga_started", "saga_ended"]


def test_a_resume_that_loses_to_another_resume_changes_nothing(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, ECHO)
    append(http.engine, Parked(code="worker_killed", message="three died"))
    with right_before_the_next_puts(http, Resumed(by="grace", at=1)):
        answer = http.post(f"{SAGA}/resume")
    assert answer.body["changed"] is False
    assert kinds(deployment).count("resumed") == 1
