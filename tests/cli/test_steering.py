"""`baton cancel`, `signal` and `register`: what they send and say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Baton, FakeApi

ACCEPTED = (202, {"id": "s1", "status": "running", "version": 7})


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ([], {"reason": "", "mode": "graceful"}),
        (["--reason", "ill", "--grace", "1m"], {"reason": "ill", "mode": "graceful", "grace_s": 60.0}),
        (["--grace", "2.5"], {"reason": "", "mode": "graceful", "grace_s": 2.5}),
        (["--forced"], {"reason": "", "mode": "forced"}),
    ],
)
def test_cancel_sends_how_and_why(
    api: FakeApi, baton: Baton, options: list[str], sent: dict[str, Any]
) -> None:
    api.on("POST /sagas/s1/cancel", ACCEPTED)
    result = baton("cancel", "s1", *options)
    assert (result.exit_code, api.asked[0].json) == (0, sent)
    assert result.stdout == f"s1  asked to cancel ({sent['mode']})\n"


def test_forced_leaves_no_time_for_a_grace(api: FakeApi, baton: Baton) -> None:
    result = baton("cancel", "s1", "--forced", "--grace", "3s")
    assert (result.exit_code, api.asked) == (2, [])


def test_signal_sends_its_payload_under_a_key(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/signals/table%20freed", ACCEPTED)
    result = baton("signal", "s1", "table freed", "--payload", '{"table": 4}', "--key", "k", "--json")
    assert json.loads(result.stdout) == ACCEPTED[1]
    assert (api.asked[0].json, api.asked[0].headers["idempotency-key"]) == ({"payload": {"table": 4}}, "k")


def test_resume_asks_for_another_try(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/resume", ACCEPTED)
    result = baton("resume", "s1")
    assert (result.exit_code, result.stdout) == (0, "s1  tries again\n")


def test_fork_sends_its_version_under_a_key(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/forks", ACCEPTED)
    result = baton("fork", "s1", "4", "--reason", "better", "--key", "k")
    assert (result.exit_code, result.stdout) == (0, "s1  goes on from version 4\n")
    assert api.asked[0].json == {"version": 4, "reason": "better"}
    assert api.asked[0].headers["idempotency-key"] == "k"


def test_register_sends_documents_as_they_are(api: FakeApi, baton: Baton, tmp_path: Path) -> None:
    api.on("POST /workflows", (201, {"name": "dinner", "version": 3, "graph": "abc"}))
    for name in ("dinner.yaml", "dinner.json"):
        (tmp_path / name).write_text("# a comment stays\n")
    result = baton("register", str(tmp_path / "dinner.yaml"), str(tmp_path / "dinner.json"))
    assert result.stdout.count("dinner is version 3") == 2
    assert [asked.text for asked in api.asked] == ["# a comment stays\n"] * 2
    assert [asked.headers["content-type"] for asked in api.asked] == ["application/yaml", "application/json"]


def test_register_names_the_file_with_problems_and_lists_them_all(
    api: FakeApi, baton: Baton, tmp_path: Path
) -> None:
    errors = [
        {
            "path": "/nodes/hold/tool",
            "message": "there is no tool `hodl`",
            "suggestion": "did you mean `hold`?",
            "line": 4,
            "column": 11,
        },
        {"path": "/output", "message": "is not used", "line": 9, "column": 1},
    ]
    api.on(
        "POST /workflows",
        (422, {"title": "The workflow document has problems", "detail": "2 problems", "errors": errors}),
    )
    file = tmp_path / "bad.yaml"
    file.write_text("name: bad\n")
    result = baton("register", str(file))
    assert result.exit_code == 3
    assert result.stderr.splitlines() == [
        f"baton: {file}: The workflow document has problems (422): 2 problems",
        "  line 4, column 11  /nodes/hold/tool  there is no tool `hodl`  (did you mean `hold`?)",
        "  line 9, column 1  /output  is not used",
    ]


def test_register_of_a_file_that_is_not_there_says_so(baton: Baton) -> None:
    result = baton("register", "no-such.yaml")
    assert (result.exit_code, "no-such.yaml" in result.stderr) == (2, True)
