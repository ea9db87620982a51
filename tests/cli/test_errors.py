"""How commands end: every exit status, and what is said on the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton.client.transport import TRIES
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 3), (404, 3), (409, 3), (413, 3), (422, 3), (401, 4), (403, 4), (500, 5), (503, 5)],
)
def test_the_kind_of_refusal_is_the_exit_status(api: FakeApi, baton: Baton, status: int, code: int) -> None:
    api.on("GET /sagas/s1", (status, {"title": "Not now", "status": status, "detail": "because of that"}))
    result = baton("show", "s1")
    assert result.exit_code == code
    assert result.stderr.startswith(f"baton: Not now ({status}): because of that\n")
    assert result.stdout == ""


def test_each_error_of_a_problem_is_a_line_with_path_and_suggestion(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    errors = [
        {"path": "/input/party", "message": "99 is greater than 12"},
        {"path": "/input/citty", "message": "is not known", "suggestion": "did you mean `city`?"},
    ]
    api.on("POST /sagas", (422, {"title": "Input", "detail": "2 problems", "errors": errors}))
    says(baton("start", "dinner").stderr.splitlines()[1:])


def test_a_refused_token_says_where_it_came_from(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (401, {"message": "Unauthorized"}))
    result = baton("show", "s1")
    assert (result.exit_code, "BATON_TOKEN" in result.stderr) == (4, True)
    assert "secret-token" not in result.stdout + result.stderr


def test_an_api_that_is_not_there_is_named(baton: Baton, says: Says) -> None:
    result = baton("show", "s1", env={"BATON_URL": "http://127.0.0.1:1"})
    assert result.exit_code == 5
    says(result.stderr)


def test_a_failing_api_is_given_up_after_a_few_tries(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (500, {"title": "Internal"}))
    assert baton("show", "s1").exit_code == 5
    assert len(api.asked) == TRIES


def test_a_refusal_is_not_asked_again(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (409, {"title": "Conflict"}))
    baton("show", "s1")
    assert len(api.asked) == 1


def test_a_page_that_is_no_api_is_recognised(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /sagas/s1", (200, "<html>"))
    result = baton("show", "s1")
    assert result.exit_code == 5
    says(result.stderr)


def test_an_error_page_is_shown_in_short(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (502, "<html>" + "x" * 1000))
    result = baton("show", "s1")
    assert result.stderr.startswith("baton: Bad Gateway (502): <html>x")
    assert len(result.stderr) < 400


@pytest.mark.parametrize("errors", ["text", [1, "two"], {"a": 1}])
def test_errors_of_another_shape_do_no_harm(api: FakeApi, baton: Baton, errors: Any) -> None:
    api.on("GET /sagas/s1", (422, {"title": "Odd", "errors": errors}))
    result = baton("show", "s1")
    assert (result.exit_code, result.stderr) == (3, "baton: Odd (422)\n")


def test_what_a_service_says_cannot_steer_the_terminal(api: FakeApi, baton: Baton) -> None:
    escape = "\x1b]0;owned\x07\x1b[2J"
    api.on("GET /sagas/s1", (404, {"title": escape, "detail": escape}))
    assert "\x1b" not in baton("show", "s1").output
    api.on("GET /sagas/s2", (200, {"id": escape, "status": "running", "error": escape, "active": []}))
    assert "\x1b" not in baton("show", "s2").output


def test_a_proxy_of_the_shell_is_not_asked_about_this_machine(
    api: FakeApi, baton: Baton, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "running"}))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert baton("show", "s1").exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        "list", "show k1", "show k1 --watch", "events k1", "events k1 --follow", "cost k1", "workflows",
        "workflows w", "workflows w --document", "tools", "node-types", "start w", "cancel k1", "signal k1 go",
        "resume k1", "fork k1 1", "answer k1 fail", "answer k1 q fail", "incidents", "inbox", "inbox --saga k1", "resolve i1", "deploy-workflow --no-check DOCUMENT",
    ],
)  # fmt: skip
def test_a_service_that_is_no_baton_is_recognised_by_every_command(
    api: FakeApi, baton: Baton, tmp_path: Path, command: str, says: Says
) -> None:
    document = tmp_path / "w.yaml"
    document.write_text("name: w")
    for path in ("/sagas", "/sagas/k1", "/sagas/k1/events", "/sagas/k1/cost", "/workflows", "/workflows/w",
                 "/tools", "/node-types", "/sagas/k1/cancel", "/sagas/k1/signals/go", "/sagas/k1/resume",
                 "/sagas/k1/forks", "/sagas/k1/answer", "/questions", "/incidents", "/incidents/i1/resolve"):  # fmt: skip
        api.on(f"GET {path}", (200, {"hello": "world"}))
        api.on(f"POST {path}", (200, {"hello": "world"}))
    result = baton(*command.replace("DOCUMENT", str(document)).split())
    assert (result.exit_code, result.stdout) == (5, "")
    says.within(result.stderr)


def test_an_answer_that_cannot_be_unpacked_is_a_failure_on_the_way(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    api.on("GET /sagas/k1", (200, "no zip", {"Content-Encoding": "gzip"}))
    result = baton("show", "k1")
    assert result.exit_code == 5
    says(result.stderr)


def test_an_api_that_is_not_there_but_could_be_here_is_said_to_be_started(baton: Baton) -> None:
    assert "baton up`" in baton("list", env={"BATON_URL": "http://127.0.0.1:1"}).stderr


@pytest.mark.parametrize("token", ["secret\ntoken", "secret\u00fctoken", "secret token"])
def test_a_token_that_no_request_can_carry_is_refused_and_not_shown(
    baton: Baton, token: str, says: Says
) -> None:
    result = baton("list", env={"BATON_TOKEN": token})
    assert (result.exit_code, "secret" in result.output) == (2, False)
    says(result.stderr)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:99999", "http://127.0.0.1:x", "http://[::1", "ftp://host", "https://", "http://a b",
        "https://host/?page=1", "https://ada:secret@host",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_before_a_server_is_asked(baton: Baton, url: str) -> None:
    result = baton("list", env={"BATON_URL": url})
    assert (result.exit_code, "address" in result.stderr, "secret" in result.stderr) == (2, True, False)


@pytest.mark.parametrize("key", ["", " ", "k\n1", "\u00fc"])
def test_a_key_that_no_request_can_carry_is_refused(api: FakeApi, baton: Baton, key: str) -> None:
    """An empty one is a variable that was not set: a new key in its place would start a second saga."""
    result = baton("start", "w", "--key", key)
    assert (result.exit_code, "a key is made of" in result.stderr, api.asked) == (2, True, [])


@pytest.mark.parametrize(
    "command", [("show", "."), ("show", ""), ("cancel", ".."), ("signal", "k1", ".."), ("workflows", "w@"),
                ("workflows", "@1"), ("show", "x" * 70_000)]
)  # fmt: skip
def test_a_name_that_would_lead_to_another_path_is_refused(
    api: FakeApi, baton: Baton, command: tuple[str, ...]
) -> None:
    assert (baton(*command).exit_code, api.asked) == (2, [])


def test_a_text_that_is_told_as_a_line_stays_one(api: FakeApi, baton: Baton) -> None:
    forged = "done\n    9  12:00:00.000  saga_ended  status=failed"
    event = {"kind": "step_succeeded", "node": "a", "output": {"v": forged}}
    entry = {"version": 1, "at": 0, "invocation": "i", "epoch": 1, "events": [event]}
    api.on("GET /sagas/k1/events", (200, {"entries": [entry], "next": None}))
    assert len(baton("events", "k1").stdout.splitlines()) == 2
    errors = [{"path": "/a", "message": "x\nbaton: all is well"}]
    api.on("POST /sagas", (422, {"title": "Input", "errors": errors}))
    assert len(baton("start", "w").stderr.splitlines()) == 2
