"""The commands that show an earlier version of a saga and compare two."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Baton, FakeApi
from tests.cli.test_show import SAGA
from tests.kit.sentences import Says

SECOND = {"saga": "s2", "workflow": "w", "graph": "g", "status": "failed", "version": 9, "branch": 0}


def output(node: str, version: int, value: Any) -> dict[str, Any]:
    found = {"node": node, "iteration": [], "item": "", "version": version, "at": "2026-11-22T10:00:03Z"}
    return {**found, "output": value, "large_output": None}


def difference(what: str, node: str | None, first: Any, second: Any) -> dict[str, Any]:
    return {
        "what": what,
        "node": node,
        "iteration": [2] if node else [],
        "item": "t1" if node else "",
        "first": first,
        "second": second,
    }


def test_an_earlier_version_is_shown_with_all_its_outputs(api: FakeApi, baton: Baton, says: Says) -> None:
    first = {"saga": SAGA, "newest": 9, "outputs": [output("a", 2, {"n": 1})], "next": 2}
    api.on(
        "GET /sagas/s1/state", (200, first), (200, {**first, "outputs": [output("b", 3, "x")], "next": None})
    )
    shown = baton("state", "s1", "--at", "4")
    assert shown.exit_code == 0
    assert [asked.query.get("at") for asked in api.of("GET", "/sagas/s1/state")] == ["4", "4"]
    for line in shown.stdout.splitlines()[-2:]:
        says(line)


def test_differences_are_listed_and_the_status_says_if_there_are_any(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    end = {"version": 3, "output": {"n": 1}, "large_output": None, "error": None}
    failed = {**end, "output": None, "error": {"code": "sold_out", "message": "none"}}
    same = {"first": {**SECOND, "saga": "s1"}, "second": SECOND, "equal": 3, "differences": [], "more": 0}
    other = {
        **same,
        "more": 2,
        "differences": [difference("input", None, {"n": 1}, {"n": 2}), difference("node", "a", end, failed)],
    }
    api.on("GET /sagas/s1/diff/s2", (200, same), (200, other))
    api.on("GET /sagas/s1/diff/s1", (200, other))
    equal, differs = baton("diff", "s1", "s2"), baton("diff", "s1", "s2")
    assert (equal.exit_code, differs.exit_code) == (0, 1)
    says(differs.stdout)
    before = baton("diff", "s1", "--at", "2", "--json")
    assert before.exit_code == 1
    assert json.loads(before.stdout) == other
