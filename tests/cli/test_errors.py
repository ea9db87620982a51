"""How commands end: every exit status, and what is said on the way out."""

from __future__ import annotations

from typing import Any

import pytest

from baton.cli.transport import TRIES
from tests.cli.conftest import Baton, FakeApi


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


def test_each_error_of_a_problem_is_a_line_with_path_and_suggestion(api: FakeApi, baton: Baton) -> None:
    errors = [
        {"path": "/input/party", "message": "99 is greater than 12"},
        {"path": "/input/citty", "message": "is not known", "suggestion": "did you mean `city`?"},
    ]
    api.on("POST /sagas", (422, {"title": "Input", "detail": "2 problems", "errors": errors}))
    assert baton("start", "dinner").stderr.splitlines()[1:] == [
        "  /input/party  99 is greater than 12",
        "  /input/citty  is not known  (did you mean `city`?)",
    ]


def test_a_refused_token_says_where_it_came_from(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (401, {"message": "Unauthorized"}))
    result = baton("show", "s1")
    assert (result.exit_code, "BATON_TOKEN" in result.stderr) == (4, True)
    assert "secret-token" not in result.stdout + result.stderr


def test_an_api_that_is_not_there_is_named(baton: Baton) -> None:
    result = baton("show", "s1", env={"BATON_URL": "http://127.0.0.1:1"})
    assert result.exit_code == 5
    assert "http://127.0.0.1:1 could not be reached" in result.stderr


def test_a_failing_api_is_given_up_after_a_few_tries(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (500, {"title": "Internal"}))
    assert baton("show", "s1").exit_code == 5
    assert len(api.asked) == TRIES


def test_a_refusal_is_not_asked_again(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (409, {"title": "Conflict"}))
    baton("show", "s1")
    assert len(api.asked) == 1


def test_a_page_that_is_no_api_is_recognised(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, "<html>"))
    result = baton("show", "s1")
    assert (result.exit_code, "is this a Baton API?" in result.stderr) == (5, True)


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


def test_the_help_lists_every_exit_status(baton: Baton) -> None:
    shown = baton("--help").stdout
    for number, text in enumerate(
        ["done", "the answer is no", "command line", "refused", "token", "reached"]
    ):
        assert any(line.strip().startswith(f"{number} ") and text in line for line in shown.splitlines())


@pytest.mark.parametrize(
    "command", ["start", "show", "events", "cancel", "signal", "register", "check", "up", "demo"]
)
def test_every_command_explains_itself(baton: Baton, command: str) -> None:
    result = baton(command, "--help")
    assert (result.exit_code, f"baton {command}" in result.stdout.replace("main", "baton")) == (0, True)
