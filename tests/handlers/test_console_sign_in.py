"""Signing in to the console: to the issuer and back, what is checked on the way, and what the browser keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from baton.console.visits import challenge_of
from tests.handlers.browsing import ISSUER, SECRET, VARIABLE, Browser, FakeIssuer, Seen
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.kit.sentences import Says

PARAMETERS = _PARAMETERS
LATE = 4_000_000_000


@pytest.fixture
def issuer(http: Http, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIssuer]:
    monkeypatch.setenv(VARIABLE, SECRET)
    fake = FakeIssuer(
        {"iss": ISSUER, "aud": "console", "exp": LATE, "sub": "ada", "tenant": "acme", "roles": ["read"]}
    )
    api = http.module._api
    monkeypatch.setattr(api, "_http", fake)
    api.__dict__.pop("_site", None)
    yield fake
    api.__dict__.pop("_site", None)


def begun(browser: Browser, to: str = "/console/sagas") -> dict[str, str]:
    """What the issuer was asked; the browser has the cookie."""
    seen = browser.get("/console/sign-in", to=to)
    assert seen.status == 303, seen.text
    (cookie,) = seen.cookies
    browser.more_cookies = [cookie.partition(";")[0]]
    asked = parse_qs(urlsplit(seen.headers["location"]).query)
    return {name: values[0] for name, values in asked.items()}


def ended(browser: Browser, issuer: FakeIssuer, asked: dict[str, str], **other: str) -> Seen:
    issuer.claims.setdefault("nonce", asked["nonce"])
    return browser.get("/console/sign-in/done", **({"code": "c0de", "state": asked["state"]} | other))


def test_a_person_signs_in_and_is_where_they_wanted_to_be(http: Http, issuer: FakeIssuer) -> None:
    browser = Browser(http, user=None)
    asked = begun(browser)
    assert asked["redirect_uri"] == "https://api.test/console/sign-in/done"
    assert (asked["client_id"], asked["response_type"], asked["code_challenge_method"]) == (
        "console",
        "code",
        "S256",
    )
    seen = ended(browser, issuer, asked)
    assert (seen.status, seen.headers["location"]) == (303, "/console/sagas")
    sent = {name: values[0] for name, values in parse_qs(issuer.asked[-1].body.decode()).items()}
    assert (sent["code"], sent["client_secret"], sent["redirect_uri"]) == (
        "c0de",
        SECRET,
        asked["redirect_uri"],
    )
    assert challenge_of(sent["code_verifier"]) == asked["code_challenge"]
    session, over = seen.cookies
    assert session.startswith("__Host-baton-session=")
    assert session.endswith("; Path=/; Max-Age=28800; HttpOnly; SameSite=Lax; Secure")
    assert "Max-Age=0" in over
    browser.more_cookies = [session.partition(";")[0]]
    page = browser.get("/console/sagas")
    assert (page.status, "ada of acme" in page.text) == (200, True)


def test_the_secret_is_on_no_page_and_in_no_cookie(http: Http, issuer: FakeIssuer) -> None:
    browser = Browser(http, user=None)
    seen = ended(browser, issuer, begun(browser))
    assert SECRET not in str(seen)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"iss": "https://other.test"}, "another issuer"),
        ({"aud": "other"}, "another client"),
        ({"aud": ["other"]}, "another client"),
        ({"exp": 1}, "has ended"),
        ({"exp": None}, "has ended"),
        ({"nonce": "of another sign-in"}, "not the one that began here"),
    ],
)
def test_a_token_that_is_not_for_this_sign_in_signs_no_one_in(
    changed: dict[str, Any], said: str, http: Http, issuer: FakeIssuer
) -> None:
    browser = Browser(http, user=None)
    asked = begun(browser)
    issuer.claims |= changed
    seen = ended(browser, issuer, asked)
    assert (seen.status, seen.cookies) == (401, [])
    assert said in seen.text


def test_an_answer_to_a_sign_in_that_did_not_begin_here_is_refused(http: Http, issuer: FakeIssuer) -> None:
    """Else a stranger could have a person work in the stranger's name."""
    browser = Browser(http, user=None)
    asked = begun(browser)
    assert ended(browser, issuer, asked, state="another").status == 401
    browser.more_cookies = []
    assert ended(browser, issuer, asked).status == 401
    assert len(issuer.asked) == 1, "the configuration only"


def test_a_refusal_of_the_issuer_is_said(http: Http, issuer: FakeIssuer) -> None:
    browser = Browser(http, user=None)
    asked = begun(browser)
    seen = browser.get("/console/sign-in/done", state=asked["state"], error="<b>access_denied")
    assert seen.status == 401
    assert "&lt;b&gt;access_denied" in seen.html


def test_an_issuer_that_does_not_answer_is_said(http: Http, issuer: FakeIssuer) -> None:
    issuer.status = 503
    seen = Browser(http, user=None).get("/console/sign-in")
    assert seen.status == 401
    assert "ConsoleIssuer" in seen.text


@pytest.mark.parametrize(
    "to",
    ["https://evil.test", "//evil.test", "/\\evil.test", "/console//evil.test", "/sagas", "/consolex", ""],
)
def test_a_sign_in_leads_to_pages_of_the_console_only(to: str, http: Http, issuer: FakeIssuer) -> None:
    browser = Browser(http, user=None)
    assert ended(browser, issuer, begun(browser, to)).headers["location"] == "/console"


def test_claims_without_a_tenant_let_no_one_see_anything(http: Http, issuer: FakeIssuer) -> None:
    del issuer.claims["tenant"]
    browser = Browser(http, user=None)
    seen = ended(browser, issuer, begun(browser))
    browser.more_cookies = [seen.cookies[0].partition(";")[0]]
    page = browser.get("/console")
    assert page.status == 401
    assert "needs the claims" in page.text


def test_more_groups_than_a_cookie_holds_are_refused(http: Http, issuer: FakeIssuer) -> None:
    issuer.claims["groups"] = [f"group-{number}" for number in range(500)]
    browser = Browser(http, user=None)
    seen = ended(browser, issuer, begun(browser))
    assert (seen.status, seen.cookies) == (401, [])
    assert "fewer groups" in seen.text


def test_a_person_signs_out_by_their_own_form_only(http: Http, issuer: FakeIssuer) -> None:
    browser = Browser(http)
    assert browser.post("/console/sign-out", csrf="of another").status == 403
    (over,) = browser.post("/console/sign-out").cookies
    assert over.startswith("__Host-baton-session=; ")
    assert "Max-Age=0" in over


# ---- settings


def site(deployment: Deployment, **changed: str) -> Any:
    with deployment.function("api", **changed) as module:
        module._api._loop.close()
        return module._api


def test_console_issuer(deployment: Deployment) -> None:
    assert not site(deployment, BATON_CONSOLE_ISSUER="")._site._signing.is_set_up
    assert site(deployment)._site._signing._issuer._issuer == ISSUER


def test_console_client(http: Http, issuer: FakeIssuer) -> None:
    """Another one than the token's: see test_a_token_that_is_not_for_this_sign_in_signs_no_one_in."""
    assert begun(Browser(http, user=None))["client_id"] == "console"


def test_console_secrets(deployment: Deployment, says: Says) -> None:
    def where(**changed: str) -> str:
        return str(site(deployment, **changed)._secrets.of.__self__._secrets.where("client"))

    says(where(BATON_CONSOLE_SECRETS="/baton/console/"))
    says(where(BATON_CONSOLE_SECRETS="baton/console/"))
    says(where())
