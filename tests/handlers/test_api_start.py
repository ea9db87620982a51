"""Starting sagas over HTTP: what is kept of a request, and what a repeated one finds."""

from __future__ import annotations

import json

import pytest

from baton.core.log.events import SagaStarted
from baton.ports import SagaRef
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ECHO, PARTY
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STRICT = """
name: strict
input:
  type: object
  required: [city]
  additionalProperties: false
  properties:
    city: {type: string}
    party: {type: integer, minimum: 1}
nodes:
  say: {tool: trial.echo, with: {value: "${input}"}}
"""


def started(deployment: Deployment, saga: str, tenant: str = "acme") -> SagaStarted:
    """The first event of a log that has one entry."""
    (entry,) = deployment.entries(SagaRef(tenant, saga))
    (event,) = entry.events
    assert isinstance(event, SagaStarted)
    return event


def test_a_started_saga_is_shown_where_the_answer_says(http: Http, deployment: Deployment) -> None:
    http.register(ECHO)
    answer = http.post("/sagas", {"workflow": "echo", "input": {"n": 1}})
    assert answer.status == 201
    assert answer.headers["location"] == f"/sagas/{answer.body['id']}"
    shown = http.get(answer.headers["location"])
    assert shown.status == 200
    assert (shown.body["workflow"], shown.body["user"], shown.body["version"]) == ("echo", "ada", 1)
    assert started(deployment, answer.body["id"]).input.v == {"n": 1}


def test_a_start_wakes_the_saga_and_makes_it_due_within_a_minute(http: Http, deployment: Deployment) -> None:
    http.register(ECHO)
    ref = SagaRef("acme", http.start("echo"))
    items = deployment.saga_items(ref)
    assert json.loads(items["LOG#0000#0000000001"]["wake"]["S"]) == {"v": 1}
    head = deployment.head(ref)
    assert head.due_at == head.created + 45_000


def test_a_traceparent_is_taken_over(http: Http, deployment: Deployment) -> None:
    http.register(ECHO)
    saga = http.start("echo", headers={"traceparent": TRACE})
    assert deployment.entries(SagaRef("acme", saga))[0].traceparent == TRACE


@pytest.mark.parametrize(
    "given",
    [
        "",
        "garbage",
        TRACE.upper(),
        TRACE.replace("00-", "ff-", 1),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        TRACE + "-more",
    ],
)
def test_a_traceparent_that_is_none_is_replaced_by_a_new_one(
    given: str, http: Http, deployment: Deployment
) -> None:
    http.register(ECHO)
    saga = http.start("echo", headers={"traceparent": given} if given else None)
    made = deployment.entries(SagaRef("acme", saga))[0].traceparent
    version, trace, span, flags = made.split("-")
    assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")
    assert made != given


def test_the_same_key_and_body_give_the_same_saga(http: Http, deployment: Deployment) -> None:
    http.register(ECHO)
    body = {"workflow": "echo", "input": {"a": 1, "b": 2}}
    first = http.post("/sagas", body, key="k")
    again = http.post("/sagas", '{"input": {"b": 2, "a": 1}, "workflow": "echo"}', key="k")
    assert (first.status, again.status) == (201, 200)
    assert again.body["id"] == first.body["id"]
    assert started(deployment, first.body["id"]).input.v == {"a": 1, "b": 2}


def test_the_same_key_with_another_body_is_refused_and_the_saga_is_as_it_was(
    http: Http, deployment: Deployment
) -> None:
    http.register(ECHO)
    http.start("echo", 1, key="k")
    before = deployment.items()
    problem = http.post("/sagas", {"workflow": "echo", "input": 2}, key="k").problem(
        422, "idempotency-key-reused"
    )
    assert "another body" in problem["detail"]
    assert deployment.items() == before


def test_a_repeated_start_finds_its_saga_although_the_workflow_is_newer(http: Http) -> None:
    http.register(ECHO)
    saga = http.start("echo", 1, key="k")
    http.register(ECHO + "description: the same, with words\n")
    assert http.start("echo", 1, key="k") == saga


def test_a_key_belongs_to_one_user_of_one_tenant(http: Http) -> None:
    for tenant in ("acme", "other"):
        http.register(ECHO, tenant=tenant)
    sagas = {
        http.start("echo", 1, key="k"),
        http.start("echo", 1, key="k", user="grace"),
        http.start("echo", 1, key="k", tenant="other"),
    }
    assert len(sagas) == 3


def test_without_a_key_every_start_is_another_saga(http: Http) -> None:
    http.register(ECHO)
    assert http.start("echo", 1) != http.start("echo", 1)


@pytest.mark.parametrize("how", ["the same start", "a look"])
def test_a_start_that_died_half_way_is_rolled_forward(how: str, http: Http, deployment: Deployment) -> None:
    http.register(ECHO)
    saga = http.start("echo", {"n": 1}, key="k")
    ref = SagaRef("acme", saga)
    key = {"pk": {"S": str(ref)}, "sk": {"S": "LOG#0000#0000000001"}}
    deployment.dynamodb.delete_item(TableName=deployment.table, Key=key)
    if how == "a look":
        assert http.get(f"/sagas/{saga}").body["version"] == 1
    else:
        assert http.start("echo", {"n": 1}, key="k") == saga
    assert started(deployment, saga).input.v == {"n": 1}
    assert "wake" in deployment.saga_items(ref)["LOG#0000#0000000001"]


def test_a_large_input_is_kept_outside_the_entry(http: Http, deployment: Deployment) -> None:
    http.register(ECHO)
    saga = http.start("echo", "x" * 100_000)
    value = started(deployment, saga).input
    assert (value.v, value.size) == (None, 100_002)
    assert value.ref.startswith("cas://sha256/")


def test_a_version_can_be_named(http: Http) -> None:
    http.register(ECHO)
    first = http.get(f"/sagas/{http.start('echo')}").body["graph"]
    http.register(ECHO.replace("say:", "tell:").replace("ctx.say", "ctx.tell"))
    assert http.get(f"/sagas/{http.start('echo@1')}").body["graph"] == first
    assert http.get(f"/sagas/{http.start('echo')}").body["graph"] != first


@pytest.mark.parametrize(
    "workflow",
    [
        "ecko",
        "echo@7",
        "echo@latest",
    ],
)
def test_an_unknown_workflow_is_answered_with_the_nearest(workflow: str, http: Http, says: Says) -> None:
    http.register(ECHO)
    http.register(PARTY)
    problem = http.post("/sagas", {"workflow": workflow}).problem(404, "not-found")
    says(problem["detail"])


def test_where_there_is_no_workflow_at_all_the_answer_says_how_to_get_one(http: Http) -> None:
    problem = http.post("/sagas", {"workflow": "echo"}).problem(404, "not-found")
    assert "POST /workflows" in problem["detail"]


def test_an_input_that_does_not_match_is_answered_with_every_path(http: Http, deployment: Deployment) -> None:
    http.register(STRICT)
    before = deployment.items()
    given = {"party": 0, "citty": "Bern"}
    problem = http.post("/sagas", {"workflow": "strict", "input": given}).problem(422, "invalid-input")
    found = {error["path"]: error["message"] for error in problem["errors"]}
    assert set(found) == {"/input", "/input/party"}
    assert "/input" in problem["detail"]
    assert any("city" in error["message"] for error in problem["errors"])
    assert any("citty" in error["message"] for error in problem["errors"])
    assert deployment.items() == before
