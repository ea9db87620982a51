"""The commands that diagnose, repair and replay sagas."""

from __future__ import annotations

import json
from typing import Any

from baton.words.event_words import unreadable_line
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

FINDING = {"code": "not_due", "message": "it is in no index", "remedy": "it is made due", "repairable": True}
LOST = {**FINDING, "code": "nothing_stable", "repairable": False}


def a_saga(*left: dict[str, Any], done: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"id": "s1", "status": "waiting", "version": 3, "findings": list(left), "repaired": list(done)}


def test_a_saga_is_diagnosed_and_the_status_says_if_anything_is_left(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    api.on("GET /sagas/s1/diagnosis", (200, a_saga(FINDING)), (200, a_saga()))
    api.on("POST /sagas/s1/diagnosis", (202, a_saga(LOST, done=(FINDING,))))
    found, well, repaired = baton("doctor", "s1"), baton("doctor", "s1"), baton("doctor", "s1", "--repair")
    assert [one.exit_code for one in (found, well, repaired)] == [1, 0, 1]
    for one in (found, well, repaired):
        says(one.stdout)


def test_all_open_sagas_are_examined_page_by_page(api: FakeApi, baton: Baton) -> None:
    api.on(
        "POST /diagnoses",
        (202, {"examined": 50, "sagas": [a_saga(FINDING)], "next": "more"}),
        (202, {"examined": 7, "sagas": [], "next": None}),
    )
    done = baton("doctor", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout) == {"examined": 57, "sagas": [a_saga(FINDING)]}


def test_a_replay_prints_the_first_difference(api: FakeApi, baton: Baton, says: Says) -> None:
    same = {"id": "s1", "status": "waiting", "version": 3, "folded": 3, "decided": 2, "divergence": None}
    other = {"at": "decision", "version": 2, "stored": ["kind=a"], "replayed": ["kind=b"]}
    api.on("GET /sagas/s1/replay", (200, same), (200, {**same, "divergence": other}), (200, same))
    well, differs = baton("replay", "s1"), baton("replay", "s1")
    assert (well.exit_code, differs.exit_code) == (0, 1)
    says(well.stdout)
    says(differs.stdout)
    assert json.loads(baton("replay", "s1", "--json").stdout) == same


def test_what_cannot_be_read_of_a_log_is_named_with_the_saga_and_behind_its_entries(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    lost = {"first": 3, "last": 4, "why": "it is missing"}
    entry = {"version": 2, "branch": 0, "at": "2026-11-22T10:00:03Z", "events": [{"kind": "gave_up"}]}
    api.on("GET /sagas/s1/events", (200, {"entries": [entry], "next": None, "unreadable": [lost]}))
    printed = baton("events", "s1")
    assert printed.exit_code == 0
    says(printed.stderr)
    assert unreadable_line(lost) in printed.stderr
