"""What a caller may do: a role of the token lets it in, and who lacks one is told which, and where it is read."""

from __future__ import annotations

from typing import Any

import pytest

from baton import settings
from baton.web.identity import identity_of
from baton.web.parameters import Route
from baton.web.routes import ROUTES
from tests.handlers.deployment import Deployment, changed, payload
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, PARTY, begin
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
GUARDED = [route for route in ROUTES if route.roles]
PLACES = {
    "{saga}": ADA.id,
    "{second}": ADA.id,
    "{name}": "guests_changed",
    "{version}": "1",
    "{node}": "guests",
    "{incident}": "i" + "0" * 24,
}


def config(**changes: Any) -> settings.ApiSettings:
    return settings.ApiSettings(table="t", bucket="b", worker="w", **changes)


def roles_of(claims: dict[str, Any], **changes: Any) -> set[str]:
    event = payload("api", "show")
    known = event["requestContext"]["authorizer"]["jwt"]["claims"]
    del known["roles"]
    known |= claims
    return set(identity_of(event, config(**changes)).roles)


def request_to(http: Http, route: Route[Any], **options: Any) -> dict[str, Any]:
    path = route.path
    for name, value in PLACES.items():
        path = path.replace(name, value)
    body = ECHO if route.takes_text else {"version": 1} if route.id == "forkSaga" else {"workflow": "echo"}
    return http.event(route.method, path, body if route.method == "POST" else None, **options)


@pytest.fixture(scope="module", autouse=True)
def _party(shared_http: Http, shared_deployment: Deployment) -> None:
    begin(shared_http.engine, ADA, PARTY)
    shared_deployment.keep()


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: route.id)
def test_without_its_role_a_route_is_refused_by_name_and_nothing_changes(
    route: Route[Any], http: Http, deployment: Deployment, says: Says
) -> None:
    before = deployment.items()
    others = [role for role in settings.ROLES if role not in route.roles]
    problem = http.send(request_to(http, route, roles=f"[{' '.join(others)}]")).problem(403, "forbidden")
    says(problem["detail"])
    assert deployment.items() == before


@pytest.mark.parametrize(
    ("route", "role"),
    [pytest.param(route, role, id=f"{route.id}-{role}") for route in GUARDED for role in route.roles],
)
def test_with_one_of_its_roles_a_route_lets_in(route: Route[Any], role: str, http: Http) -> None:
    assert http.send(request_to(http, route, roles=f"[{role}]")).status != 403


def test_a_caller_without_any_role_is_told_so(http: Http, says: Says) -> None:
    problem = http.get("/sagas", roles="[]").problem(403, "forbidden")
    says(problem["detail"])


def test_a_token_without_the_claim_may_read_and_is_told_what_it_lacks(http: Http, says: Says) -> None:
    assert http.get(f"/sagas/{ADA.id}", roles=None).status == 200
    problem = http.post("/sagas", {"workflow": "party"}, roles=None).problem(403, "forbidden")
    says(problem["detail"])


def test_a_caller_who_signs_with_iam_has_every_role() -> None:
    identity = identity_of(payload("api", "start-signed-with-iam"), config(default_roles="none"))
    assert identity.roles == set(settings.ROLES)


def test_the_claim_can_have_another_name() -> None:
    claims = {"cognito:groups": "[operate]", "roles": "[read]"}
    assert roles_of(claims, roles_claim="cognito:groups") == {"operate"}


@pytest.mark.parametrize(
    ("default", "roles"),
    [
        ("read", {"read"}),
        ("none", set()),
        ("run, answer", {"run", "answer"}),
        ("read run answer operate", {*settings.ROLES}),
    ],
)
def test_the_default_is_a_setting(default: str, roles: set[str]) -> None:
    assert roles_of({}, default_roles=default) == roles


@pytest.mark.parametrize("default", ["admin", "read admin", "readrun", " "])
def test_a_default_that_is_no_role_stops_the_function_at_its_start(default: str) -> None:
    variables = {"BATON_TABLE": "t", "BATON_BUCKET": "b", "BATON_DEFAULT_ROLES": default}
    with pytest.raises(settings.SettingsError, match="BATON_DEFAULT_ROLES"):
        settings.read_settings(settings.ApiSettings, variables)


def test_roles_are_those_of_the_verified_claims_only(http: Http) -> None:
    headers = {"roles": "operate", "x-roles": "operate"}
    event = http.event("POST", "/workflows", ECHO, roles="[read]", headers=headers)
    http.send(changed(event, stageVariables={"roles": "operate"})).problem(403, "forbidden")
