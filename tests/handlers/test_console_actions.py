"""What can be done about a saga in the console: said before, done once, and refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from baton.console.acting import ACTIONS
from baton.core.log.events import CancelRequested, Forked, Parked, Resumed, ValueChanged
from baton.web.routes import ROUTES
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.browsing import SECRET, VARIABLE, Browser
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, PARTY, append, begin
from tests.kit.sentences import Says

PARAMETERS = _PARAMETERS
SAGA = f"/console/sagas/{ADA.id}"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def browser(http: Http) -> Browser:
    begin(http.engine, ADA, PARTY)
    return Browser(http)


def events(deployment: Deployment, kind: type[Any]) -> list[Any]:
    return [event for entry in deployment.entries(ADA) for event in entry.events if isinstance(event, kind)]


def test_an_action_names_the_role_and_the_path_of_its_route() -> None:
    routes = {route.id: route for route in ROUTES}
    for action in ACTIONS:
        route = routes[action.route]
        assert (route.roles, route.path, route.has_key) == (
            (action.role,),
            f"/sagas/{{saga}}{action.path}",
            action.has_key,
        )


@pytest.mark.parametrize("name", [one.name for one in ACTIONS])
def test_a_page_says_what_an_action_will_do_and_does_nothing(
    name: str, browser: Browser, deployment: Deployment
) -> None:
    before = deployment.entries(ADA)
    seen = browser.get(f"{SAGA}/{name}")
    (action,) = [one for one in ACTIONS if one.name == name]
    assert action.does in seen.text
    assert f"baton {name} {ADA.id}" in seen.text
    assert f"https://api.test/sagas/{ADA.id}{action.path}" in seen.text
    assert deployment.entries(ADA) == before


def test_a_saga_is_cancelled_once(browser: Browser, deployment: Deployment, says: Says) -> None:
    done = [browser.post(f"{SAGA}/cancel", {"reason": "Enough.", "forced": "yes"}) for _ in range(2)]
    (event,) = events(deployment, CancelRequested)
    assert (event.reason, event.by, event.grace_ms) == ("Enough.", "ada", 0)
    assert [one.headers["location"] for one in done] == [
        f"{SAGA}?done=cancel",
        f"{SAGA}?done=cancel&changed=no",
    ]
    says.within(browser.get(done[0].headers["location"]).text)
    says.within(browser.get(done[1].headers["location"]).text)


def test_a_parked_saga_is_resumed_and_another_is_not(
    http: Http, browser: Browser, deployment: Deployment
) -> None:
    refused = browser.post(f"{SAGA}/resume", {"budget_usd": "2.50"})
    assert (refused.status, "Nothing was done." in refused.text) == (409, True)
    append(http.engine, Parked(code="deaths", message="It died three times.", node="guests"))
    assert "It died three times." in browser.get(SAGA).text
    assert browser.post(f"{SAGA}/resume", {"budget_usd": "2.50"}).status == 303
    assert [event.budget for event in events(deployment, Resumed)] == [2_500_000]


def test_a_saga_is_paused_and_its_page_says_by_whom_and_why(browser: Browser, deployment: Deployment) -> None:
    assert browser.post(f"{SAGA}/pause", {"reason": "the restaurant moves"}).status == 303
    seen = browser.get(SAGA).text
    assert all(word in seen for word in ("It is paused", "ada", "the restaurant moves"))
    assert browser.post(f"{SAGA}/resume").status == 303
    assert "It is paused" not in browser.get(SAGA).text
    assert len(events(deployment, Resumed)) == 1


def test_a_workflow_is_paused_and_resumed_on_its_page(browser: Browser) -> None:
    page = "/console/workflows/party"
    assert browser.post(f"{page}/pause", {"reason": "closed"}).status == 303
    assert "paused this workflow" in browser.get(page).text
    assert browser.get(SAGA).status == 200
    assert browser.post(f"{page}/resume").status == 303
    assert "paused this workflow" not in browser.get(page).text


def test_a_key_forks_once(browser: Browser, deployment: Deployment) -> None:
    form = {"version": "1", "reason": "again", "key": browser.get(f"{SAGA}/fork").field("key")}
    assert [browser.post(f"{SAGA}/fork", form).status for _ in range(2)] == [303, 303]
    assert len(events(deployment, Forked)) == 1


def test_a_fork_begins_where_the_form_says_and_takes_another_input(
    browser: Browser, deployment: Deployment
) -> None:
    form = {"version": "1", "input": '{"party": 5}', "leave": "yes", "reason": "more guests"}
    assert browser.post(f"{SAGA}/fork", form).status == 303
    (changed,) = events(deployment, ValueChanged)
    assert changed.value.v == {"party": 5}
    for refused in ({"stable": "yes"}, {"before": "no-step"}, {"version": "1", "input": "{"}):
        assert browser.post(f"{SAGA}/fork", refused).status == 400
    assert len(events(deployment, Forked)) == 1


@pytest.mark.parametrize("version", ["x", "-1", "1e3", "99"])
def test_a_version_that_is_none_is_said_and_what_was_written_stays(
    version: str, browser: Browser, deployment: Deployment
) -> None:
    seen = browser.post(f"{SAGA}/fork", {"version": version, "reason": "because"})
    assert seen.status == 400
    assert "Nothing was done." in seen.text
    assert 'value="because"' in seen.html
    assert events(deployment, Forked) == []


def test_only_what_the_state_and_the_roles_allow_is_offered(http: Http, browser: Browser) -> None:
    assert f'href="{SAGA}/cancel"' in browser.get(SAGA).html
    assert f'href="{SAGA}/resume"' not in browser.get(SAGA).html
    reader = Browser(http, roles=("read",))
    assert f'href="{SAGA}/cancel"' not in reader.get(SAGA).html
    assert reader.post(f"{SAGA}/cancel").status == 403
