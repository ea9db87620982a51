"""Who is calling: known from what the authorizer verified, and from nothing that the caller wrote."""

from __future__ import annotations

from typing import Any

import pytest

from baton.ports import SagaRef
from tests.handlers.deployment import Deployment, changed, payload
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, PARTY, begin
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
ROUTES = [
    ("POST", "/workflows"),
    ("GET", "/workflows"),
    ("GET", "/workflows/echo"),
    ("GET", "/workflows/echo/1"),
    ("POST", "/sagas"),
    ("GET", "/sagas"),
    ("GET", "/budget"),
    ("GET", "/tools"),
    ("GET", "/node-types"),
    ("GET", f"/sagas/{ADA.id}"),
    ("GET", f"/sagas/{ADA.id}/events"),
    ("GET", f"/sagas/{ADA.id}/cost"),
    ("POST", f"/sagas/{ADA.id}/cancel"),
    ("POST", f"/sagas/{ADA.id}/signals/guests_changed"),
    ("POST", f"/sagas/{ADA.id}/claim"),
    ("POST", f"/sagas/{ADA.id}/remind"),
    ("POST", f"/sagas/{ADA.id}/resume"),
    ("POST", f"/sagas/{ADA.id}/forks"),
]
BODIES: dict[str, Any] = {
    "/workflows": ECHO,
    "/sagas": {"workflow": "echo"},
    f"/sagas/{ADA.id}/forks": {"version": 1},
    f"/sagas/{ADA.id}/claim": {"ask": "0.a"},
    f"/sagas/{ADA.id}/remind": {"ask": "0.a"},
}


def request_to(http: Http, method: str, path: str, **options: Any) -> dict[str, Any]:
    return http.event(method, path, BODIES.get(path) if method == "POST" else None, **options)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_request_is_let_in_without_an_identity(
    method: str, path: str, http: Http, deployment: Deployment
) -> None:
    begin(http.engine, ADA, PARTY)
    before = deployment.items()
    event = request_to(http, method, path, headers={"authorization": "Bearer anything", "x-tenant": "acme"})
    del event["requestContext"]["authorizer"]
    http.send(event).problem(401, "unauthenticated")
    assert deployment.items() == before


@pytest.mark.parametrize(
    "authorizer", [{}, {"jwt": {}}, {"jwt": {"claims": None}}, {"iam": {}}, {"lambda": {}}]
)
def test_an_authorizer_that_says_nothing_gives_no_identity(authorizer: Any, http: Http) -> None:
    event = http.event("GET", f"/sagas/{ADA.id}")
    event["requestContext"]["authorizer"] = authorizer
    http.send(event).problem(401, "unauthenticated")


@pytest.mark.parametrize("claim", ["tenant", "sub"])
@pytest.mark.parametrize("value", [None, "", "a b", "a#SAGA#b", "x" * 700, "[a b]", "ü"])
def test_a_token_whose_claims_could_be_no_key_is_refused(claim: str, value: Any, http: Http) -> None:
    event = http.event("GET", f"/sagas/{ADA.id}")
    claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
    if value is None:
        del claims[claim]
    else:
        claims[claim] = value
    problem = http.send(event).problem(401, "unauthenticated")
    assert f"`{claim}`" in problem["detail"]


def test_health_needs_no_identity_and_tells_nothing(http: Http) -> None:
    answer = http.send(payload("api", "health"))
    assert (answer.status, answer.body) == (200, {"status": "ok"})


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if ADA.id in route[1]])
def test_the_saga_of_another_tenant_is_not_there(
    method: str, path: str, http: Http, deployment: Deployment, says: Says
) -> None:
    begin(http.engine, ADA, PARTY)
    before = deployment.items()
    answer = http.send(request_to(http, method, path, tenant="evil", headers={"x-tenant": "acme"}))
    says(answer.problem(404, "not-found")["detail"])
    assert deployment.items() == before


def test_a_workflow_of_another_tenant_is_not_there(http: Http) -> None:
    http.register(ECHO)
    problem = http.post("/sagas", {"workflow": "echo"}, tenant="evil").problem(404, "not-found")
    assert "echo" not in problem["detail"].replace("`echo`", "")


def test_lists_show_nothing_of_other_tenants(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    assert len(http.get("/sagas").body["sagas"]) == len(http.get("/workflows").body["workflows"]) == 1
    assert http.get("/sagas", tenant="evil").body == {"sagas": [], "next": None}
    assert http.get("/workflows", tenant="evil").body == {"workflows": [], "next": None}
    for path in ("/workflows/party", "/workflows/party/1"):
        assert "party" not in http.get(path, tenant="evil").problem(404, "not-found")["detail"].replace(
            "`party`", ""
        )


@pytest.mark.parametrize("field", ["tenant", "user", "id"])
def test_a_body_cannot_name_who_asks(field: str, http: Http) -> None:
    http.register(ECHO)
    problem = http.post("/sagas", {"workflow": "echo", field: "evil"}).problem(422, "invalid-input")
    assert [error["path"] for error in problem["errors"]] == [f"/{field}"]


def test_headers_query_and_stage_variables_do_not_say_who_asks(
    http: Http, deployment: Deployment, says: Says
) -> None:
    http.register(ECHO)
    headers = {"x-tenant": "evil", "tenant": "evil", "x-user": "eve", "x-baton-tenant": "evil"}
    event = http.event("POST", "/sagas", {"workflow": "echo"}, headers=headers)
    answer = http.send(changed(event, stageVariables={"tenant": "evil"}))
    head = deployment.head(SagaRef("acme", answer.body["id"]))
    assert head.user == "ada"
    assert all(item["pk"]["S"].startswith("T#acme#") for item in deployment.items())
    for name in ("tenant", "user"):
        problem = http.post("/sagas", {"workflow": "echo"}, query={name: "evil"}).problem(400, "bad-request")
        says(problem["detail"])


def test_a_path_cannot_reach_into_another_tenant(http: Http) -> None:
    begin(http.engine, SagaRef("other", "x"), PARTY)
    for path in ("/sagas/x", "/sagas/T%23other%23SAGA%23x", "/sagas/T#other#SAGA#x", "/sagas/../other/x"):
        assert http.get(path).status == 404


def test_who_signals_and_cancels_is_in_the_log(http: Http, deployment: Deployment) -> None:
    begin(http.engine, ADA, PARTY)
    assert http.post(f"/sagas/{ADA.id}/signals/guests_changed", user="grace").status == 202
    assert http.post(f"/sagas/{ADA.id}/cancel", user="auth0|6f").status == 202
    by = [getattr(event, "by", None) for entry in deployment.entries(ADA) for event in entry.events]
    assert by == [None, "grace", "auth0|6f"]


@pytest.mark.parametrize(
    "principal",
    [
        "user/ada",
        "user/" + "division/" * 56 + "ada",
        "assumed-role/" + "r" * 64 + "/" + "s" * 59 + ",=.@-",
    ],
)
def test_every_principal_of_iam_can_be_a_user(principal: str, http: Http, deployment: Deployment) -> None:
    http.register(ECHO, tenant="123456789012")
    event = changed(payload("api", "start-signed-with-iam"), body='{"workflow": "echo"}')
    arn = f"arn:aws:sts::123456789012:{principal}"
    event["requestContext"]["authorizer"]["iam"]["userArn"] = arn
    answer = http.send(event)
    assert answer.status == 201, answer
    ref = SagaRef("123456789012", answer.body["id"])
    role = arn.rpartition("/")[0]
    assert deployment.head(ref).user == (role if "assumed-role" in arn else arn)
    cancel = changed(event, rawPath=f"/sagas/{ref.id}/cancel", body="{}")
    assert http.send(cancel).status == 202
    assert getattr(deployment.entries(ref)[-1].events[0], "by", "") == arn
