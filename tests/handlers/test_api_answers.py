"""Questions and incidents over HTTP: what can be answered, how often, and what is resolved by it."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.log.events import Notice, Parked, QuestionClosed, Resumed, SignalReceived
from baton.core.log.questions import MAX_ARGUMENTS
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, GRACE, PARTY, append, asking, begin
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
SAGA = f"/sagas/{ADA.id}"
ASK = "0.say.3"


def answers(deployment: Deployment) -> list[SignalReceived]:
    return [
        event
        for entry in deployment.entries(ADA)
        for event in entry.events
        if isinstance(event, SignalReceived) and event.name == ":answer"
    ]


# ---- answers


def test_a_saga_shows_what_it_asks_and_what_can_be_answered(http: Http) -> None:
    asking(http.engine)
    (question,) = http.get(SAGA).body["questions"]
    assert (question["id"], question["node"], question["message"]) == (ASK, "say", "What now?")
    assert question["options"] == ["retry", "use", "fail"]
    assert question["for"] == [{"kind": "user", "name": "ada"}, {"kind": "role", "name": "operate"}]
    assert question["arguments"]["properties"].keys() == {"value"}


@pytest.mark.parametrize(
    "said",
    [
        {"action": "retry"},
        {"action": "retry", "arguments": {"value": 7}},
        {"action": "use", "output": {"n": 1}},
        {"action": "use", "output": None},
        {"action": "fail"},
    ],
)
def test_an_answer_is_appended_as_it_was_said_and_wakes_the_saga(
    said: dict[str, Any], http: Http, deployment: Deployment
) -> None:
    asking(http.engine)
    answer = http.post(f"{SAGA}/answer", {"ask": ASK, **said}, roles="[answer]")
    assert (answer.status, answer.body["version"]) == (202, 3)
    (event,) = answers(deployment)
    assert (event.key, event.by, event.payload.v) == (ASK, "ada", {"ask": ASK, **said})
    assert deployment.saga_items(ADA)["LOG#0000#0000000003"]["wake"] == {"S": '{"v":3}'}


@pytest.mark.parametrize(
    ("said", "places"),
    [
        ({"action": "guess"}, ["/action"]),
        ({"action": "fail", "arguments": {"value": 1}}, ["/arguments"]),
        ({"action": "retry", "output": None}, ["/output"]),
        ({"action": "use"}, ["/output"]),
        ({"action": "use", "output": 1, "arguments": {"value": 1}}, ["/arguments"]),
        ({"action": "retry", "arguments": {"valu": 1}}, ["/arguments/valu"]),
        ({"action": "retry", "arguments": [1]}, ["/arguments"]),
        ({}, ["/action"]),
    ],
)
def test_an_answer_that_cannot_be_one_is_refused_with_its_place(
    said: dict[str, Any], places: list[str], http: Http, deployment: Deployment
) -> None:
    asking(http.engine)
    problem = http.post(f"{SAGA}/answer", {"ask": ASK, **said}).problem(422, "invalid-input")
    assert [error["path"] for error in problem["errors"]] == places
    assert answers(deployment) == []


def test_the_nearest_argument_is_named_and_too_many_bytes_are_refused(http: Http, says: Says) -> None:
    asking(http.engine)
    wrong = {"ask": ASK, "action": "retry", "arguments": {"valu": 1}}
    (error,) = http.post(f"{SAGA}/answer", wrong).problem(422, "invalid-input")["errors"]
    says(error["suggestion"])
    wide = {"ask": ASK, "action": "retry", "arguments": {"value": "x" * MAX_ARGUMENTS}}
    assert f"{MAX_ARGUMENTS} bytes" in http.post(f"{SAGA}/answer", wide).problem(413, "too-large")["detail"]


@pytest.mark.parametrize(
    ("escalated", "user", "roles"),
    [
        (False, "bob", "[answer]"),
        (False, "bob", "[read run answer]"),
        (True, "ada", "[answer]"),
    ],
)
def test_an_answer_of_another_caller_is_refused_with_whom_the_question_is_for_and_changes_nothing(
    escalated: bool, user: str, roles: str, http: Http, deployment: Deployment, says: Says
) -> None:
    asking(http.engine, escalated=escalated)
    before = deployment.items()
    for action in ("retry", "guess"):
        said = {"ask": ASK, "action": action}
        problem = http.post(f"{SAGA}/answer", said, user=user, roles=roles).problem(403, "forbidden")
        says(problem["detail"])
    assert deployment.items() == before


def test_an_operator_answers_for_the_user_and_repeats_of_others_are_refused(http: Http) -> None:
    asking(http.engine, user="grace")
    said = {"ask": ASK, "action": "retry"}
    assert http.post(f"{SAGA}/answer", said, user="bob", roles="[operate]").status == 202
    http.post(f"{SAGA}/answer", said, user="eve", roles="[answer]").problem(403, "forbidden")
    assert http.post(f"{SAGA}/answer", said, user="grace", roles="[answer]").status == 202


def test_an_argument_that_may_not_change_is_refused_with_those_that_may(
    http: Http, deployment: Deployment, says: Says
) -> None:
    asking(http.engine)
    said = {"ask": ASK, "action": "retry", "arguments": {"payee": "eve", "value": 7}}
    problem = http.post(f"{SAGA}/answer", said).problem(422, "invalid-input")
    (error,) = problem["errors"]
    assert error["path"] == "/arguments/payee"
    says(error["suggestion"])
    assert "`payee`" in problem["detail"]
    assert answers(deployment) == []


def test_an_unknown_question_is_answered_with_those_that_are_open(http: Http, says: Says) -> None:
    asking(http.engine)
    problem = http.post(f"{SAGA}/answer", {"ask": "0.say.2", "action": "retry"}).problem(404, "not-found")
    says(problem["detail"])
    begin(http.engine, GRACE, PARTY)
    problem = http.post(f"/sagas/{GRACE.id}/answer", {"ask": ASK, "action": "retry"}).problem(
        404, "not-found"
    )
    says(problem["detail"])


def test_the_same_answer_again_changes_nothing_and_another_one_comes_too_late(
    http: Http, deployment: Deployment, says: Says
) -> None:
    asking(http.engine)
    again = {"ask": ASK, "action": "retry"}
    for key, body, status in (
        ("", again, 202),
        ("", again, 202),
        ("", {"ask": ASK, "action": "fail"}, 409),
        ("other", again, 202),
        ("other", {"ask": ASK, "action": "fail"}, 409),
    ):
        assert http.post(f"{SAGA}/answer", body, key=key).status == status, (key, body)
    assert len(answers(deployment)) == 1
    append(http.engine, QuestionClosed(node="say", ask=ASK, action="retry", by=ASK, at=2))
    assert http.post(f"{SAGA}/answer", again).status == 202, "it is known still"
    problem = http.post(f"{SAGA}/answer", {"ask": ASK, "action": "fail"}).problem(409, "not-allowed-now")
    says(problem["detail"])


def test_a_key_is_for_one_answer(http: Http, deployment: Deployment) -> None:
    asking(http.engine)
    again = {"ask": ASK, "action": "retry"}
    assert [http.post(f"{SAGA}/answer", again, key="k").status for _ in range(2)] == [202, 202]
    http.post(f"{SAGA}/answer", {"ask": ASK, "action": "fail"}, key="k").problem(
        422, "idempotency-key-reused"
    )
    (event,) = answers(deployment)
    assert event.key == f"{ASK}/k"


def test_no_signal_is_an_answer(http: Http, deployment: Deployment) -> None:
    asking(http.engine)
    for name in ("answer", ":answer", "%3Aanswer"):
        http.post(f"{SAGA}/signals/{name}", {"payload": {"ask": ASK, "action": "retry"}}).problem(
            404, "not-found"
        )
    assert answers(deployment) == []


# ---- resuming with money


@pytest.mark.parametrize(
    ("body", "budget"),
    [
        ({}, 0),
        ({"budget_usd": "2.50"}, 2_500_000),
        ({"budget_usd": 3}, 3_000_000),
        ({"budget_usd": 0.1}, 100_000),
    ],
)
def test_a_saga_can_be_resumed_with_what_it_may_spend(
    body: Any, budget: int, http: Http, deployment: Deployment
) -> None:
    asking(http.engine, escalated=True)
    assert http.post(f"{SAGA}/resume", body).status == 202
    resumed = deployment.entries(ADA)[-1].events[0]
    assert isinstance(resumed, Resumed)
    assert resumed.budget == budget


@pytest.mark.parametrize("wrong", ["two", "1e3", -1, True, None, "0.0000001", 1_000_001])
def test_what_is_no_amount_is_refused(wrong: Any, http: Http) -> None:
    asking(http.engine, escalated=True)
    problem = http.post(f"{SAGA}/resume", {"budget_usd": wrong}).problem(422, "invalid-input")
    assert [error["path"] for error in problem["errors"]] == ["/budget_usd"]


# ---- about a parked saga


def test_a_parked_saga_is_answered_about_by_operators_once_and_its_incidents_are_resolved(
    http: Http, deployment: Deployment
) -> None:
    begin(http.engine, ADA, PARTY)
    append(http.engine, Parked(code="worker_killed", message="three died"))
    notice = Notice(key="k", to="on_call", code="worker_killed", message="m", at=1, incident=True)
    http.engine.store.notice_record.open("acme", ADA.id, notice)
    (question,) = http.get(SAGA).body["questions"]
    assert (question["id"], question["node"]) == ("0.parked.2", None)
    assert question["for"] == [{"kind": "role", "name": "operate"}]
    said = {"ask": "0.parked.2", "action": "resume"}
    problem = http.post(f"{SAGA}/answer", said, roles="[answer]").problem(403, "forbidden")
    assert "the role `operate`" in problem["detail"]
    http.post(f"{SAGA}/answer", said | {"action": "retry"}).problem(422, "invalid-input")
    assert [http.post(f"{SAGA}/answer", said).status for _ in range(2)] == [202, 202]
    http.post(f"{SAGA}/answer", said | {"action": "cancel"}).problem(409, "not-allowed-now")
    assert len(answers(deployment)) == 1
    assert statuses(http) == ["resolved"]


# ---- incidents


def statuses(http: Http) -> list[str]:
    return [incident["status"] for incident in http.get("/incidents").body["incidents"]]


def test_an_incident_says_what_went_wrong_and_where(http: Http) -> None:
    asking(http.engine, escalated=True)
    page = http.get("/incidents").body
    assert page["next"] is None
    (incident,) = page["incidents"]
    assert incident.pop("id").startswith("i")
    assert incident == {
        "status": "open",
        "saga": ADA.id,
        "node": "say",
        "code": "service_down",
        "message": "The service is down.",
        "severity": "high",
        "opened_at": "2026-01-01T00:00:00.000Z",
        "resolved_at": None,
        "resolved_by": None,
        "acknowledged_at": None,
        "acknowledged_by": None,
        "note": None,
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("answer", {"ask": ASK, "action": "retry"}),
        ("resume", {}),
        ("cancel", {}),
        ("forks", {"version": 1}),
    ],
)
def test_a_decision_about_a_saga_resolves_its_incidents_and_no_others(
    path: str, body: Any, http: Http
) -> None:
    asking(http.engine, GRACE, escalated=True)
    asking(http.engine, escalated=True)
    assert http.post(f"{SAGA}/{path}", body).status == 202
    by_saga = {incident["saga"]: incident for incident in http.get("/incidents").body["incidents"]}
    assert by_saga[ADA.id]["status"] == "resolved"
    assert by_saga[ADA.id]["resolved_by"] == "ada"
    assert by_saga[GRACE.id]["status"] == "open"
    assert [i["saga"] for i in http.get("/incidents", query={"status": "open"}).body["incidents"]] == [
        GRACE.id
    ]
    assert [i["saga"] for i in http.get("/incidents", query={"status": "resolved"}).body["incidents"]] == [
        ADA.id
    ]


def test_an_incident_can_be_resolved_by_itself_and_again_it_changes_nothing(http: Http) -> None:
    asking(http.engine, escalated=True)
    (incident,) = http.get("/incidents").body["incidents"]
    first = http.post(f"/incidents/{incident['id']}/resolve")
    assert (first.status, first.body["status"], first.body["resolved_by"]) == (202, "resolved", "ada")
    assert http.post(f"/incidents/{incident['id']}/resolve").body == first.body
    http.post("/incidents/i" + "0" * 24 + "/resolve").problem(404, "not-found")
    http.post("/incidents/nonsense/resolve").problem(404, "not-found")


def test_an_incident_that_is_acknowledged_stays_open_and_one_that_is_resolved_refuses(http: Http) -> None:
    asking(http.engine, escalated=True)
    (incident,) = http.get("/incidents").body["incidents"]
    path = f"/incidents/{incident['id']}"
    first = http.post(f"{path}/acknowledge", {"note": "I call the bank."})
    assert (first.status, first.body["status"], first.body["acknowledged_by"]) == (202, "open", "ada")
    assert (
        http.get(path).body
        == http.post(f"{path}/acknowledge", {"note": "I call the bank."}).body
        == first.body
    )
    assert http.get("/incidents", query={"status": "unacknowledged"}).body["incidents"] == []
    assert len(http.get("/incidents", query={"status": "open"}).body["incidents"]) == 1
    http.post(f"{path}/resolve")
    late = http.post(f"{path}/acknowledge", {}).problem(409, "not-allowed-now")
    assert "is resolved, by ada" in late["detail"]
    http.post(f"{path}/acknowledge", {"note": "x" * 501}).problem(422, "invalid-input")
    http.get("/incidents/i" + "0" * 24).problem(404, "not-found")
    http.post("/incidents/i" + "0" * 24 + "/acknowledge").problem(404, "not-found")


def test_incidents_come_in_pages(http: Http) -> None:
    for number in range(3):
        notice = Notice(key=f"k{number}", to="on_call", code="c", message="m", at=number + 1, incident=True)
        http.engine.store.notice_record.open("acme", f"s{number}", notice)
    seen, query = [], {"limit": "2"}
    for _ in range(5):
        page = http.get("/incidents", query=query).body
        seen += [incident["saga"] for incident in page["incidents"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert seen == ["s2", "s1", "s0"]
    http.get("/incidents", query={"cursor": "nonsense"}).problem(400, "bad-request")
    other = http.get("/incidents", tenant="globex").body
    assert other == {"incidents": [], "next": None}


def test_a_cursor_of_another_list_is_refused(http: Http) -> None:
    for name in ("echo", "party"):
        http.register(f"name: {name}\nnodes: {{a: {{tool: trial.echo, with: {{value: 1}}}}}}")
    cursor = http.get("/workflows", query={"limit": "1"}).body["next"]
    http.get("/incidents", query={"cursor": cursor}).problem(400, "bad-request")
