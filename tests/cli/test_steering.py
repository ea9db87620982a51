"""`baton cancel`, `signal`, `resume` and `fork`: what they send and say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.client import exits
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

ACCEPTED = (202, {"id": "s1", "status": "running", "version": 7, "changed": True})


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
    api: FakeApi, baton: Baton, options: list[str], sent: dict[str, Any], says: Says
) -> None:
    api.on("POST /sagas/s1/cancel", ACCEPTED)
    result = baton("cancel", "s1", *options)
    assert (result.exit_code, api.asked[0].json) == (0, sent)
    says(result.stdout)


def test_forced_leaves_no_time_for_a_grace(api: FakeApi, baton: Baton) -> None:
    result = baton("cancel", "s1", "--forced", "--grace", "3s")
    assert (result.exit_code, api.asked) == (2, [])


def test_signal_sends_its_payload_under_a_key(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/signals/table%20freed", ACCEPTED)
    result = baton("signal", "s1", "table freed", "--payload", '{"table": 4}', "--key", "k", "--json")
    assert json.loads(result.stdout) == ACCEPTED[1]
    assert (api.asked[0].json, api.asked[0].headers["idempotency-key"]) == ({"payload": {"table": 4}}, "k")


def _sent(outcome: str, answer: object = None, status: str = "waiting") -> tuple[int, dict[str, object]]:
    sent = {"id": "s1", "status": status, "version": 7, "changed": True, "key": "u1"}
    return (200 if outcome == "answered" else 202), {**sent, "outcome": outcome, "answer": answer}


def test_signal_waits_for_the_answer_of_a_function_and_prints_it(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/signals/move", _sent("waiting"), _sent("taken"), _sent("answered", {"yes": True}))
    result = baton("signal", "s1", "move", "--payload", "[1]", "--answer", "30s")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"yes": True})
    assert [one.json for one in api.asked] == [{"payload": [1]}] * 3
    assert [one.headers["idempotency-key"] for one in api.asked][1:] == ["u1", "u1"]


@pytest.mark.parametrize(
    ("outcome", "status", "asked"),
    [("waiting", "waiting", 7), ("taken", "running", 7), ("lost", "running", 1), ("ended", "completed", 1)],
)
def test_signal_says_why_there_is_no_answer(
    api: FakeApi, baton: Baton, says: Says, outcome: str, status: str, asked: int
) -> None:
    api.on("POST /sagas/s1/signals/move", _sent(outcome, status=status))
    result = baton("signal", "s1", "move", "--answer", "6s", "--key", "u1")
    assert (result.exit_code, result.stdout, len(api.asked)) == (1, "", asked)
    says(result.stderr)
    again = baton("signal", "s1", "move", "--answer", "1s", "--json")
    assert (again.exit_code, json.loads(again.stdout)["outcome"]) == (1, outcome)


def test_a_failure_is_not_answered(api: FakeApi, baton: Baton) -> None:
    result = baton("signal", "s1", "move", "--fail", "lost", "--answer", "6s")
    assert (result.exit_code, api.asked) == (2, [])


def test_signal_can_send_a_failure_in_place_of_a_payload(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /sagas/s1/signals/sent", ACCEPTED)
    result = baton("signal", "s1", "sent", "--fail", "courier_lost", "--message", "He is gone.")
    assert result.exit_code == 0
    says(result.stdout)
    assert api.asked[0].json == {"failure": {"code": "courier_lost", "message": "He is gone."}}


def test_signal_sends_a_payload_or_a_failure_and_a_message_with_a_failure_only(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    both = baton("signal", "s1", "sent", "--fail", "x", "--payload", "1")
    alone = baton("signal", "s1", "sent", "--message", "why")
    assert (both.exit_code, alone.exit_code, api.asked) == (2, 2, [])
    says(both.stderr)
    says(alone.stderr)


def test_resume_asks_for_another_try(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/resume", ACCEPTED)
    result = baton("resume", "s1")
    assert (result.exit_code, result.stdout) == (0, "s1  goes on\n")


def test_fork_sends_its_version_under_a_key(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /sagas/s1/forks", forked(NONE_LEFT))
    result = baton("fork", "s1", "4", "--reason", "better", "--key", "k")
    assert result.exit_code == 0
    says(result.stdout)
    assert api.asked[0].json == {"version": 4, "reason": "better"}
    assert api.asked[0].headers["idempotency-key"] == "k"


LEFT: dict[str, Any] = {
    "cut": 3,
    "more": 1,
    "unsure": 1,
    "left": [
        {"step": "pay", "version": 7, "payment": True, "doubtful": False, "by": "refund", "key": "unsure"},
        {"step": "send", "version": 6, "payment": False, "doubtful": True, "by": None, "key": "kept"},
        {"step": "tell", "version": 5, "payment": False, "doubtful": False, "by": None, "key": "new"},
    ],
}
NONE_LEFT: dict[str, Any] = {"cut": 3, "more": 0, "unsure": 0, "left": []}


def forked(plan: Any, *, changed: bool = True) -> tuple[int, Any]:
    return 202, {"id": "s1", "status": "running", "version": 9, "changed": changed, "plan": plan}


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (["--before", "pay"], {"before": "pay"}),
        (["--stable", "--leave"], {"at": "stable", "leave": True}),
        (["4", "--input", "null", "--repeat", "pay"], {"version": 4, "input": None, "repeat": ["pay"]}),
        (["4", "--new"], {"version": 4, "as": "saga"}),
        (["4", "--workflow", "pay@3"], {"version": 4, "workflow": "pay@3"}),
        (
            ["4", "--output", 'quote={"price": 80}', "--output", "a=x"],
            {"version": 4, "outputs": {"quote": {"price": 80}, "a": "x"}},
        ),
    ],
)
def test_fork_sends_its_place_and_its_changes(
    api: FakeApi, baton: Baton, arguments: list[str], body: dict[str, Any]
) -> None:
    api.on("POST /sagas/s1/forks", forked(NONE_LEFT))
    assert baton("fork", "s1", *arguments).exit_code == 0
    assert api.asked[0].json == {"reason": "", **body}


@pytest.mark.parametrize("arguments", [[], ["4", "--stable"], ["--before", "a", "--stable"]])
def test_fork_takes_one_place(api: FakeApi, baton: Baton, arguments: list[str]) -> None:
    assert (baton("fork", "s1", *arguments).exit_code, api.asked) == (2, [])


def test_fork_says_what_it_leaves_behind(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on(
        "POST /sagas/s1/forks", forked(LEFT), forked(None, changed=False), (200, {"id": "s1", "plan": LEFT})
    )
    for more in ([], [], ["--dry-run"]):
        says(baton("fork", "s1", "4", *more).stdout)
    assert api.asked[2].json["dry_run"] is True


def test_fork_with_undo_rolls_back_first_and_forks_once_that_is_over(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/forks", (200, {"id": "s1", "plan": LEFT}), forked(NONE_LEFT))
    api.on("POST /sagas/s1/rollback", (202, {"id": "s1", "plan": {}, "changed": True}))
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "rolled_back"}))
    assert baton("fork", "s1", "--before", "tell", "--undo", "--key", "k").exit_code == 0
    sent = [(one.path.rpartition("/")[2], one.json) for one in api.asked if one.method == "POST"]
    assert sent == [
        ("forks", {"before": "tell", "reason": "", "dry_run": True}),
        ("rollback", {"to": 3, "reason": ""}),
        ("forks", {"version": 3, "reason": ""}),
    ]


def test_fork_with_undo_does_not_fork_what_could_not_be_undone(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    api.on("POST /sagas/s1/forks", (200, {"id": "s1", "plan": LEFT}))
    api.on("POST /sagas/s1/rollback", (202, {"id": "s1", "plan": {}, "changed": True}))
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "rollback_failed"}))
    result = baton("fork", "s1", "4", "--undo")
    assert result.exit_code == 1
    says(result.stderr)


PLAN = {
    "parent": "k0",
    "undoable": 2,
    "doubtful": 1,
    "lasting": 0,
    "steps": [
        {"step": "pay", "version": 7, "by": "refund", "doubtful": False},
        {"step": "book@1", "version": 5, "by": "cancel", "doubtful": True},
        {"step": "book@0", "version": 4, "by": "cancel", "doubtful": False},
    ],
}


@pytest.mark.parametrize(("to", "sent"), [("book", "book"), ("book@0", "book@0"), ("3", 3)])
def test_a_rollback_goes_back_to_a_step_or_a_version(
    api: FakeApi, baton: Baton, to: str, sent: int | str
) -> None:
    answer = {"id": "k1", "status": "completed", "version": 8, "plan": PLAN, "changed": True}
    api.on("POST /sagas/k1/rollback", (202, answer))
    assert baton("rollback", "k1", "--to", to, "--yes").exit_code == 0
    assert [one.json["to"] for one in api.asked] == [sent]


def test_a_plan_says_what_is_asked_about(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /sagas/k1/rollback", (200, {"id": "k1", "plan": PLAN}))
    said = baton("rollback", "k1", "--dry-run").stdout
    says(said)


PAGE: dict[str, Any] = {
    "matched": 2,
    "changed": 2,
    "counts": [{"workflow": "dinner", "code": "timeout", "sagas": 2}],
    "refused": [],
    "next": None,
}
NOTHING = PAGE | {"matched": 0, "changed": 0, "counts": []}


def test_pause_holds_one_saga_back(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/pause", ACCEPTED)
    assert baton("pause", "s1", "--reason", "so").exit_code == 0
    assert api.asked[0].json == {"reason": "so"}


def test_wake_asks_for_a_look(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/wake", ACCEPTED)
    assert baton("wake", "s1").exit_code == 0


def test_a_workflow_is_paused_pass_by_pass_until_nothing_changes(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/pause", (202, PAGE | {"next": "s2"}), (202, PAGE), (202, NOTHING))
    result = baton("pause", "--workflow", "dinner", "--reason", "so", "--yes", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["changed"] == 4
    assert [one.json["cursor"] for one in api.asked] == ["", "s2", ""]
    assert api.asked[0].json == {"workflow": "dinner", "reason": "so", "cursor": ""}


def test_retry_counts_first_and_asks(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/retry", (202, PAGE))
    asks = ("retry", "--workflow", "dinner", "--code", "timeout", "--label", "a=b", "--key", "k")
    assert baton(*asks, stdin="n\n").exit_code != 0
    assert [one.json["dry_run"] for one in api.asked] == [True]
    refused = PAGE | {"refused": [{"id": "s9", "why": "it is a child"}]}
    api.on("POST /sagas/retry", (202, PAGE), (202, refused))
    result = baton(*asks, stdin="y\n")
    assert (result.exit_code, "s9" in result.stderr) == (exits.REFUSED, True)
    assert api.asked[-1].json == {
        "workflow": "dinner",
        "code": "timeout",
        "labels": {"a": "b"},
        "cursor": "",
    }
    assert api.asked[-1].headers["idempotency-key"] == "k"
    api.on("POST /sagas/retry", (202, PAGE))
    assert baton("retry", "--workflow", "dinner", "--workflow-version", "4", "--yes").exit_code == 0
    assert api.asked[-1].json == {"workflow": "dinner", "workflow_version": "4", "cursor": ""}


@pytest.mark.parametrize(
    "words",
    [
        ("pause",),
        ("retry", "--tenant", "--workflow-version", "4"),
        ("pause", "s1", "--tenant"),
        ("retry", "s1", "--code", "x"),
        ("resume", "--tenant", "--budget", "2"),
        ("cancel", "--workflow", "w", "--undo"),
    ],
)
def test_one_saga_or_many(baton: Baton, words: tuple[str, ...]) -> None:
    assert baton(*words).exit_code == exits.USAGE


def test_one_saga_is_retried_under_a_key(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/retry", ACCEPTED)
    assert baton("retry", "s1", "--key", "k").exit_code == 0
    assert api.asked[0].headers["idempotency-key"] == "k"
    api.on("POST /sagas/retry", (202, PAGE))
    assert "timeout" in baton("retry", "--tenant", "--dry-run").stdout
