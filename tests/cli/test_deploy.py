"""`baton deploy-workflow`: checked here first, then told to the API, file by file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baton.core.effects.toolspec import off
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

GOOD = """\
name: small
nodes:
  quote: {tool: delivery.quote, with: {city: Lisbon, items: [cake], at: "2026-12-24T19:30:00Z"}}
"""
BAD = GOOD.replace("delivery.quote", "delivery.qoute")
NEW = (201, {"name": "small", "version": 3, "graph": "abc"})
KNOWN = (200, {"name": "small", "version": 3, "graph": "abc"})
PROBLEM = {
    "title": "The workflow document has problems",
    "detail": "2 problems",
    "errors": [
        {
            "path": "/nodes/hold/tool",
            "message": "there is no tool `hodl`",
            "suggestion": "did you mean `hold`?",
            "line": 4,
            "column": 11,
        },
        {"path": "/output", "message": "is not used", "line": 9, "column": 1},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(GOOD)
    return path


def test_it_says_which_version_it_is_and_whether_it_is_new(
    api: FakeApi, baton: Baton, file: Path, says: Says
) -> None:
    api.on("POST /workflows", NEW, KNOWN)
    assert baton("deploy-workflow", str(file)).stdout == f"{file}: small@3, new\n"
    says(baton("deploy-workflow", str(file)).stdout)


def test_programs_get_a_line_for_each_file(api: FakeApi, baton: Baton, file: Path) -> None:
    api.on("POST /workflows", NEW, KNOWN)
    lines = baton("deploy-workflow", "--json", str(file), str(file)).stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"file": str(file), **NEW[1], "new": True},
        {"file": str(file), **KNOWN[1], "new": False},
    ]


def test_documents_are_sent_as_they_are(api: FakeApi, baton: Baton, tmp_path: Path) -> None:
    api.on("POST /workflows", NEW)
    names = ("dinner.yaml", "dinner.json")
    for name in names:
        (tmp_path / name).write_text("# a comment stays\n")
    baton("deploy-workflow", "--no-check", *(str(tmp_path / name) for name in names))
    assert [asked.text for asked in api.asked] == ["# a comment stays\n"] * 2
    assert [asked.headers["content-type"] for asked in api.asked] == ["application/yaml", "application/json"]


def test_problems_found_here_keep_every_file_from_being_sent(
    api: FakeApi, baton: Baton, file: Path, tmp_path: Path, says: Says
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(BAD)
    result = baton("deploy-workflow", str(file), str(bad))
    assert (result.exit_code, api.asked, result.stdout) == (1, [], "")
    first, last = result.stderr.splitlines()
    says.within(first, 2)
    says(last)
    (line,) = baton("deploy-workflow", "--json", str(file), str(bad)).stdout.splitlines()
    assert json.loads(line)["problems"][0]["line"] == 3


def test_what_only_the_api_refuses_is_listed_and_the_next_file_gets_its_turn(
    api: FakeApi, baton: Baton, file: Path, says: Says
) -> None:
    api.on("POST /workflows", (422, PROBLEM), NEW)
    result = baton("deploy-workflow", str(file), str(file))
    assert (result.exit_code, result.stdout) == (3, f"{file}: small@3, new\n")
    says(result.stderr.splitlines())


def test_a_standard_tool_that_is_off_is_explained_and_no_older_tools_are_blamed(
    api: FakeApi, baton: Baton, file: Path, says: Says
) -> None:
    error = {"path": "/nodes/a/tool", "message": "there is no tool `std.http`", "suggestion": off("std.http")}
    api.on("POST /workflows", (422, PROBLEM | {"errors": [error]}))
    shown = baton("deploy-workflow", str(file)).stderr.splitlines()
    assert "--parameter StandardTools=std.http --parameter HttpHosts=…" in shown[-2]
    says(shown[-1])


def test_what_the_api_refuses_is_a_line_for_programs_too(api: FakeApi, baton: Baton, file: Path) -> None:
    api.on("POST /workflows", (422, PROBLEM), (409, {"title": "Conflict"}))
    result = baton("deploy-workflow", "--json", str(file), str(file))
    refused, conflict = map(json.loads, result.stdout.splitlines())
    assert (result.exit_code, refused) == (3, {"file": str(file), "problems": PROBLEM["errors"]})
    assert conflict["problems"] == [{"path": "", "message": f"{file}: Conflict (409)"}]


def test_a_refused_caller_is_not_asked_for_the_next_file(api: FakeApi, baton: Baton, file: Path) -> None:
    api.on("POST /workflows", (403, {"title": "The caller may not do this", "detail": "it takes operate"}))
    result = baton("deploy-workflow", str(file), str(file))
    assert (result.exit_code, len(api.asked)) == (4, 1)
    assert "it takes operate" in result.stderr


def test_without_the_tools_only_the_api_checks(api: FakeApi, baton: Baton, file: Path, says: Says) -> None:
    api.on("POST /workflows", NEW)
    result = baton("deploy-workflow", "--app", "no_such_app", str(file))
    assert (result.exit_code, result.stdout) == (0, f"{file}: small@3, new\n")
    says(result.stderr)


def test_tools_that_only_the_api_has_can_be_used(api: FakeApi, baton: Baton, file: Path) -> None:
    api.on("POST /workflows", NEW)
    file.write_text(BAD)
    assert baton("deploy-workflow", "--no-check", str(file)).exit_code == 0


def test_a_file_that_is_not_there_keeps_the_others_back(api: FakeApi, baton: Baton, file: Path) -> None:
    result = baton("deploy-workflow", str(file), "no-such.yaml")
    assert (result.exit_code, "no-such.yaml" in result.stderr, api.asked) == (2, True, [])


def test_the_former_name_goes_on_working_and_is_not_shown(api: FakeApi, baton: Baton, file: Path) -> None:
    api.on("POST /workflows", NEW)
    assert baton("register", str(file)).stdout == f"{file}: small@3, new\n"
    assert "\n  register" not in baton("--help").stdout
