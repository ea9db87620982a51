"""The sign-in of a local run: whom it signs in, for which console, and how often a code is good."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from baton.local.sign_in import AUDIENCE, SignIn, TokenIssuer

VERIFIER = "v" * 64
BACK = "http://127.0.0.1:8080/console/sign-in/done"
ASKED = {
    "client_id": AUDIENCE,
    "redirect_uri": BACK,
    "state": "s",
    "nonce": "n",
    "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest())
    .rstrip(b"=")
    .decode(),
}


class Run:
    def __init__(self) -> None:
        issuer = TokenIssuer("http://127.0.0.1:1")
        self.sign_in = SignIn(issuer.token, AUDIENCE, "me", "local")
        self.browser = TestClient(Starlette(routes=self.sign_in.pages()), follow_redirects=False)

    def code(self, **said: Any) -> str:
        page = self.browser.get("/sign-in", params=ASKED)
        assert page.status_code == 200
        asked = "&".join(f"{name}={value}" for name, value in ASKED.items())
        form = {
            "asked": asked,
            "user": "eve",
            "tenant": "acme",
            "groups": "a b",
            "role": ["read", "answer"],
        } | said
        answer = self.browser.post("/sign-in", data=form)
        assert answer.status_code == 303, answer.text
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        assert answer.headers["location"].startswith(BACK)
        assert query["state"] == ["s"]
        return query["code"][0]

    def redeem(self, code: str, **changed: str) -> Any:
        form = {
            "code": code,
            "redirect_uri": BACK,
            "code_verifier": VERIFIER,
            "client_secret": self.sign_in.secret,
        }
        return self.browser.post("/sign-in/token", data=form | changed)


@pytest.fixture
def run() -> Run:
    return Run()


def test_a_person_is_who_they_said_with_the_roles_they_chose(run: Run) -> None:
    token = run.redeem(run.code()).json()["id_token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    said = {name: claims[name] for name in ("sub", "tenant", "roles", "groups", "nonce")}
    assert said == {
        "sub": "eve",
        "tenant": "acme",
        "roles": ["read", "answer"],
        "groups": ["a", "b"],
        "nonce": "n",
    }


def test_a_code_is_good_once(run: Run) -> None:
    code = run.code()
    assert [run.redeem(code).status_code for _ in range(2)] == [200, 400]


@pytest.mark.parametrize(
    "changed",
    [{"client_secret": "x"}, {"code_verifier": "x"}, {"redirect_uri": "http://127.0.0.1:1/console"}],
)
def test_a_code_is_good_for_the_console_that_asked_for_it(run: Run, changed: dict[str, str]) -> None:
    assert run.redeem(run.code(), **changed).status_code == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uri": "https://evil.test/console/sign-in/done"},
        {"redirect_uri": "http://127.0.0.1:8080/elsewhere"},
        {"client_id": "another"},
        {"code_challenge": ""},
    ],
)
def test_only_the_console_of_a_run_on_this_machine_is_signed_in_to(run: Run, changed: dict[str, str]) -> None:
    assert run.browser.get("/sign-in", params=ASKED | changed).status_code == 400


def test_a_name_that_is_none_is_asked_for_again_and_shown_as_text(run: Run) -> None:
    asked = "&".join(f"{name}={value}" for name, value in ASKED.items())
    form = {"asked": asked, "user": "<b>a b", "tenant": "acme", "groups": ""}
    answer = run.browser.post("/sign-in", data=form)
    assert (answer.status_code, "&lt;b&gt;a b" in answer.text) == (400, True)


def test_the_page_shows_nothing_secret(run: Run) -> None:
    assert run.sign_in.secret not in run.browser.get("/sign-in", params=ASKED).text
