"""An approval over HTTP: the worker asks before the call, the inbox lists it, and the answer lets the worker make exactly that call."""

from __future__ import annotations

from typing import Any

import pytest

from baton.ports import SagaRef
from tests.handlers.http import Http
from tests.handlers.sagas import batch, wake
from tests.handlers.workers import Worker

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
DOCUMENT = """
name: paid
nodes:
  pay:
    tool: trial.echo
    with: {value: "${input.amount}"}
    requires_approval: {to: {group: finance}, title: "Pay ${input.amount}?", escalate: [{after: 1h, remind: true}]}
output: "${ctx.pay.output}"
"""


def go_on(http: Http, worker: Worker, ref: SagaRef) -> Any:
    """The stream tells a worker of the newest entry."""
    version = http.get(f"/sagas/{ref.id}").body["version"]
    assert worker.send(batch(wake(ref, version))) == []
    return http.get(f"/sagas/{ref.id}").body


def of_finance(http: Http, method: str, path: str, body: Any = None) -> Any:
    event = http.event(method, path, body, user="eve", roles="[answer read]")
    event["requestContext"]["authorizer"]["jwt"]["claims"]["groups"] = "finance"
    return http.send(event)


@pytest.mark.parametrize(
    ("action", "status", "result"), [("approve", "completed", 600), ("reject", "failed", None)]
)
def test_a_call_waits_in_the_inbox_until_its_answer_and_then_is_made_or_not(
    action: str, status: str, result: Any, http: Http, worker: Worker
) -> None:
    http.register(DOCUMENT)
    ref = SagaRef("acme", http.start("paid", {"amount": 600}))
    assert go_on(http, worker, ref)["status"] == "suspended"
    (listed,) = of_finance(http, "GET", "/questions").body["questions"]
    assert (listed["saga"], listed["type"], listed["title"]) == (ref.id, "approval", "Pay 600?")
    (question,) = http.get(f"/sagas/{ref.id}").body["questions"]
    assert question["details"]["arguments"] == {"value": 600}
    assert [step["action"] for step in question["escalate"]] == ["remind"]
    said = {"ask": question["id"], "action": action}
    http.send(http.event("POST", f"/sagas/{ref.id}/answer", said, user="bob", roles="[answer]")).problem(
        403, "forbidden"
    )
    assert of_finance(http, "POST", f"/sagas/{ref.id}/answer", said).status == 202
    view = go_on(http, worker, ref)
    assert (view["status"], view["result"]) == (status, result)
    assert (view["error"] or {}).get("code") == (None if result else "rejected")
    assert of_finance(http, "GET", "/questions").body["questions"] == []
    other = said | {"action": "reject" if result else "approve"}
    of_finance(http, "POST", f"/sagas/{ref.id}/answer", other).problem(409, "not-allowed-now")
