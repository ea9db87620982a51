"""Callbacks over HTTP: the whole way without a sign-in, and every token that is guessed, changed, swapped, old or used up."""

from __future__ import annotations

import json
import logging
import time
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from baton.ports import SagaRef
from baton.runtime.requests.rates import WINDOW_MS
from tests.handlers.deployment import Deployment, changed, payload
from tests.handlers.http import Answer, Http
from tests.handlers.sagas import batch, wake
from tests.handlers.workers import Worker
from tests.kit.app import trial
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
DOCUMENT = """
name: film
on_failure: {any: fail}
retry: {max_attempts: 3, base: 1ms}
nodes:
  render:
    tool: trial.hand_over
    callback: {timeout: 1h, heartbeat: 10m}
    output_schema: {type: object, required: [frames]}
output: '${ctx.render.output.frames}'
"""
DONE = {"status": "success", "output": {"frames": 24}}
BEAT = {"status": "heartbeat"}
FAILED = {"status": "failure", "code": "server_error", "message": "Out of order."}


def begun(http: Http, worker: Worker, tenant: str = "acme") -> tuple[SagaRef, str]:
    """A saga whose work was handed over, and its token."""
    http.register(DOCUMENT, tenant=tenant)
    ref = SagaRef(tenant, http.start("film", tenant=tenant))
    return ref, handed(http, worker, ref)


def go_on(http: Http, worker: Worker, ref: SagaRef) -> None:
    """The stream tells a worker of the newest entry."""
    assert worker.send(batch(wake(ref, shown(http, ref)["version"]))) == []


def handed(http: Http, worker: Worker, ref: SagaRef) -> str:
    trial.HANDED.clear()
    go_on(http, worker, ref)
    return trial.HANDED[-1]


def call_back(http: Http, token: str, body: Any) -> Answer:
    """As work elsewhere does, without a sign-in."""
    text = json.dumps(body)
    event = changed(payload("api", "callback"), rawPath=f"/callbacks/{token}", body=text)
    event["requestContext"]["http"]["path"] = event["rawPath"]
    assert "authorizer" not in event["requestContext"]
    return http.send(event)


def shown(http: Http, ref: SagaRef) -> Any:
    return http.get(f"/sagas/{ref.id}", tenant=ref.tenant).body


def test_work_elsewhere_lives_and_is_done_by_its_token_alone(http: Http, worker: Worker, says: Says) -> None:
    ref, token = begun(http, worker)
    assert trial.ADDRESSES[-1] == f"https://api.test/callbacks/{token}"
    view = shown(http, ref)
    assert view["status"] == "waiting"
    (active,) = view["active"]
    assert (active["callback"], active["state"]) == ("0.render.1", "waiting")
    alive = call_back(http, token, BEAT)
    assert (alive.status, alive.body["status"]) == (202, "heartbeat")
    assert (alive.body["until"], alive.body["heartbeat_by"]) == (active["until"], active["heartbeat_by"])
    done = call_back(http, token, DONE)
    assert (done.status, done.body) == (202, {"status": "success", "until": None, "heartbeat_by": None})
    go_on(http, worker, ref)
    view = shown(http, ref)
    assert (view["status"], view["result"]) == ("completed", 24)
    again = call_back(http, token, DONE)
    assert again.body == done.body, "said again it is what it was, after the end of the saga, too"
    call_back(http, token, FAILED).problem(409, "not-allowed-now")
    says(call_back(http, token, BEAT).problem(410, "callback-over")["detail"])


def _encoded(**said: str) -> str:
    return urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()


def test_every_token_that_is_none_gets_one_answer_and_changes_nothing(
    http: Http, worker: Worker, deployment: Deployment
) -> None:
    ref, token = begun(http, worker)
    _, other = begun(http, worker, "globex")
    said, _, proof = token.partition(".")
    its_said, _, its_proof = other.partition(".")
    flipped = proof[:-2] + ("A" if proof[-2] != "A" else "B") + proof[-1]
    wrong = {
        "guessed": f"{said}.{'A' * 43}",
        "without a proof": said,
        "with an empty one": f"{said}.",
        "one letter of the proof": f"{said}.{flipped}",
        "a shorter proof": f"{said}.{proof[:-1]}",
        "the proof of another": f"{said}.{its_proof}",
        "another's saga": f"{its_said}.{proof}",
        "the next handover": f"{_encoded(t=ref.tenant, s=ref.id, c='0.render.2')}.{proof}",
        "another tenant": f"{_encoded(t='globex', s=ref.id, c='0.render.1')}.{proof}",
        "another saga": f"{_encoded(t=ref.tenant, s='sother', c='0.render.1')}.{proof}",
        "the same in other letters": f"{said}=.{proof}",
        "no words": "x",
        "long": "x" * 5_000,
        "not ASCII": "é" * 20,
    }
    before = deployment.items()
    answers = {name: call_back(http, one, DONE).problem(404, "not-found") for name, one in wrong.items()}
    assert len({json.dumps(one) for one in answers.values()}) == 1, answers
    assert call_back(http, wrong["guessed"], {"status": "nonsense"}).status == 404, "whatever the body is"
    assert deployment.items() == before
    assert call_back(http, token, DONE).status == 202


def test_a_saga_that_is_gone_looks_like_one_that_never_was(
    http: Http, worker: Worker, deployment: Deployment
) -> None:
    ref, token = begun(http, worker)
    gone = call_back(http, token + "x", DONE)
    key = {"pk": {"S": f"T#{ref.tenant}#SAGA#{ref.id}"}, "sk": {"S": "HEAD"}}
    deployment.dynamodb.delete_item(TableName=deployment.table, Key=key)
    assert call_back(http, token, DONE).body == gone.body


def test_a_failure_brings_a_new_token_and_the_old_one_is_refused(http: Http, worker: Worker) -> None:
    ref, token = begun(http, worker)
    assert call_back(http, token, FAILED).status == 202
    second = handed(http, worker, ref)
    assert second != token
    for body in (DONE, BEAT):
        detail = call_back(http, token, body).problem(
            409 if body is DONE else 410, "not-allowed-now" if body is DONE else "callback-over"
        )["detail"]
        assert "completed" in detail
    assert call_back(http, second, DONE).status == 202
    go_on(http, worker, ref)
    assert shown(http, ref)["status"] == "completed"


def test_after_a_cancel_work_elsewhere_is_told_to_stop(http: Http, worker: Worker) -> None:
    ref, token = begun(http, worker)
    assert http.post(f"/sagas/{ref.id}/cancel", {"reason": "enough"}).status == 202
    for body in (BEAT, DONE, FAILED):
        assert "cancel" in call_back(http, token, body).problem(410, "callback-over")["detail"]


def test_a_body_that_cannot_be_meant_is_refused_and_the_right_one_still_counts(
    http: Http, worker: Worker, deployment: Deployment
) -> None:
    _, token = begun(http, worker)
    before = deployment.items()
    wrong: list[tuple[Any, str]] = [
        ({}, "/status"),
        ({"status": "done"}, "/status"),
        ({"status": "success", "code": "x"}, ""),
        ({"status": "failure"}, ""),
        ({"status": "failure", "code": "a b"}, "/code"),
        ({"status": "failure", "code": "x", "output": 1}, ""),
        ({"status": "heartbeat", "output": 1}, ""),
        ({"status": "success", "ouput": 1}, "/ouput"),
        ({"status": "success", "output": {"pages": 1}}, "/output"),
        ({"status": "success"}, "/output"),
    ]
    for body, path in wrong:
        problem = call_back(http, token, body).problem(422, "invalid-input")
        assert problem["errors"][0]["path"] == path, body
    assert deployment.items() == before
    assert call_back(http, token, DONE).status == 202


def test_a_token_is_in_no_item_no_log_line_and_no_answer(
    http: Http, worker: Worker, deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        ref, token = begun(http, worker)
        answers = [call_back(http, token, body) for body in (BEAT, {"status": "x"}, FAILED, BEAT)]
        go_on(http, worker, ref)
    proof = token.partition(".")[2]
    answers.append(http.get(f"/sagas/{ref.id}/events"))
    assert all(proof not in json.dumps(one.body) for one in answers)
    assert proof not in repr(deployment.items())
    assert proof not in caplog.text


def test_callbacks_have_a_rate_of_their_own(
    http: Http, worker: Worker, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    _, token = begun(http, worker)
    _, other = begun(http, worker, "globex")
    limiter = http.module._api._limiters["callbacks"]
    monkeypatch.setattr(limiter, "_limit", 3)
    now = 60_000_000 * WINDOW_MS + time.time_ns() // 10**12 * WINDOW_MS
    monkeypatch.setattr(limiter, "_clock", type("Still", (), {"now": lambda self: now})())
    assert [call_back(http, token, BEAT).status for _ in range(3)] == [202] * 3
    refused = call_back(http, token, BEAT)
    detail = refused.problem(429, "too-many-requests")["detail"]
    says(detail)
    assert call_back(http, other, BEAT).status == 202, "another tenant's"
    assert http.get("/tools").status == 200, "its callers are not held up"
