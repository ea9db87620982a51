"""ETags: a client that has a body already is told so instead of being sent it again."""

from __future__ import annotations

import hashlib

import pytest

from baton.web.routes import ROUTES
from tests.handlers.deployment import Deployment
from tests.handlers.http import Answer, Http
from tests.handlers.sagas import ADA, PARTY, begin

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
LARGE = "x" * 9_000
DIGEST = hashlib.sha256(f'"{LARGE}"'.encode()).hexdigest()
PLACES = {
    "{saga}": ADA.id,
    "{second}": ADA.id,
    "{name}": "party",
    "{version}": "1",
    "{node}": "guests",
    "{digest}": DIGEST,
}
SAGA = f"/sagas/{ADA.id}"


def paths() -> list[str]:
    # Nothing of these is there, or asked for: a breaker that has opened, a claim, a letter, an incident, a schedule, a user, a tag.
    absent = {
        "/breakers/{breaker}",
        "/claims",
        "/claims/{key}",
        "/dead-letters/{letter}",
        "/incidents/{incident}",
        "/schedules/{name}",
        "/users/facts",
        "/workflows/{name}/tags/{tag}",
    }
    found = [route.path for route in ROUTES if route.method == "GET" and route.path not in absent]
    for name, value in PLACES.items():
        found = [path.replace(name, value) for path in found]
    return found


def again(http: Http, path: str, tag: str) -> Answer:
    return http.get(path, headers={"if-none-match": tag})


@pytest.fixture(scope="module", autouse=True)
def _party(shared_http: Http, shared_deployment: Deployment) -> None:
    begin(shared_http.engine, ADA, PARTY, LARGE)
    shared_deployment.keep()


@pytest.mark.parametrize("path", paths())
def test_every_get_answers_304_without_a_body_to_its_own_etag(path: str, http: Http) -> None:
    first = http.get(path)
    assert (first.status, first.headers["cache-control"]) == (200, "private, no-cache")
    assert first.headers["content-type"] == "application/json"
    second = again(http, path, first.headers["etag"])
    assert (second.status, second.body) == (304, None)
    assert second.headers["etag"] == first.headers["etag"]
    assert second.headers["cache-control"] == "private, no-cache"
    assert "content-type" not in second.headers


def test_a_changed_saga_has_another_etag(http: Http) -> None:
    tag = http.get(SAGA).headers["etag"]
    assert http.post(f"{SAGA}/signals/guests_changed").status == 202
    changed = again(http, SAGA, tag)
    assert changed.status == 200
    assert changed.headers["etag"] != tag


@pytest.mark.parametrize("form", ["{tag}", "W/{tag}", '"other", {tag}', '"a",W/{tag},"b"', "*"])
def test_if_none_match_may_be_a_list_weak_or_anything(form: str, http: Http) -> None:
    tag = http.get("/tools").headers["etag"]
    assert again(http, "/tools", form.format(tag=tag)).status == 304


@pytest.mark.parametrize(
    "given", ['"other"', "", "no quotes", '""', '"a,*,b"', '"a", *', "{bare}", '"{bare}', '"x{bare}"']
)
def test_another_etag_is_answered_in_full(given: str, http: Http) -> None:
    bare = http.get("/tools").headers["etag"].strip('"')
    assert again(http, "/tools", given.format(bare=bare)).status == 200


def test_a_refusal_and_a_command_have_no_etag(http: Http) -> None:
    assert "etag" not in http.get("/sagas/missing").headers
    assert "etag" not in http.post(f"{SAGA}/cancel").headers
    assert again(http, "/sagas/missing", "*").status == 404
