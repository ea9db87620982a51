"""`baton show` and `baton events`: what a person sees, what a program gets, and the exit status of --watch."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from baton.cli.text.render import EventLines, saga_table
from baton.words.event_words import unreadable_line
from baton.words.text import epoch_ms
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

SAGA: dict[str, Any] = {
    "id": "s1",
    "workflow": "dinner",
    "graph": "abc",
    "status": "running",
    "version": 5,
    "branch": 0,
    "created_at": "2026-11-21T22:00:00.000Z",
    "updated_at": "2026-11-21T22:00:04.500Z",
    "steps": 3,
    "active": [{"node": "deposit", "iteration": [], "state": "ready"}, {"node": "pause", "state": "waiting"}],
    "result": None,
    "error": None,
    "reason": None,
    "invocations": 2,
    "revivals": 1,
    "interruptions": 0,
}


def test_a_person_sees_where_the_saga_is(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, SAGA))
    shown = baton("show", "s1").stdout
    for text in (
        "dinner",
        "running",
        "3 steps done, at deposit, pause (waiting)",
        "2 invocations, 1 revival",
        "22:00:00.000 UTC, started ",
        " ago; last entry at 22:00:04.500",
    ):
        assert text in shown
    assert "error" not in shown


def test_the_code_with_which_a_saga_stays_is_shown(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, SAGA | {"build": "7.3.1"}))
    assert "7.3.1" in baton("show", "s1").stdout


def test_a_saga_that_has_ended_has_taken_its_time(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, SAGA | {"status": "completed"}))
    assert "22:00:00.000 to 22:00:04.500 UTC, 4.5 s" in baton("show", "s1").stdout


@pytest.mark.parametrize("result", ["x" * 9_000, "\n".join(["line"] * 90), {"rows": ["é" * 50] * 99}])
def test_a_result_that_fills_the_terminal_is_cut_and_elsewhere_it_is_whole(result: Any) -> None:
    ended = SAGA | {"status": "completed", "result": result}

    def shown(width: int | None) -> list[str]:
        out = Console(file=io.StringIO(), width=80)
        with out.capture() as captured:
            out.print(saga_table(ended, 0, width))
        return captured.get().splitlines()

    assert len(shown(80)) <= 30
    assert "… whole: " in shown(80)[-1]
    assert "show s1 --json" in shown(80)[-1]
    assert len(shown(None)) >= 80
    assert "whole" not in shown(None)[-1]


def test_a_result_that_fits_stays_as_it_is() -> None:
    table = saga_table(SAGA | {"result": "a\n\nb"}, 0, 80)
    assert list(table.columns[1].cells)[-1] == "a\n\nb"


def test_no_line_ends_in_blanks(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, SAGA), (200, SAGA | {"status": "completed"}))
    for arguments in (["show", "s1"], ["show", "s1", "--watch"]):
        lines = baton(*arguments).stdout.splitlines()
        assert lines == [line.rstrip() for line in lines]


def test_a_failure_is_shown_with_its_code_node_and_message(api: FakeApi, baton: Baton) -> None:
    error = {"code": "tool_error", "message": "Table taken", "node": "hold"}
    api.on("GET /sagas/s1", (200, SAGA | {"status": "failed", "error": error}))
    assert "tool_error at hold: Table taken" in baton("show", "s1").stdout


def test_what_happens_when_a_step_fails_for_good_is_shown(api: FakeApi, baton: Baton, says: Says) -> None:
    foretold = {"steps": "fails", "nodes": {"hold": "goes on with `other`"}}
    api.on("GET /sagas/s1", (200, SAGA | {"on_failure": foretold}), (200, SAGA | {"on_failure": None}))
    lines = baton("show", "s1").stdout.splitlines()
    says([line for line in lines if "fails" in line or "hold" in line])
    assert "on failure" not in baton("show", "s1").stdout


def test_a_program_gets_the_document(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, SAGA))
    assert json.loads(baton("show", "s1", "--json").stdout) == SAGA


def test_an_id_is_sent_as_one_path_segment(api: FakeApi, baton: Baton) -> None:
    baton("show", "a/../b?c")
    assert api.asked[0].path == "/sagas/a%2F..%2Fb%3Fc"


WAITING: dict[str, Any] = {
    "status": "waiting",
    "most_steps": 7,
    "active": [
        {
            "node": "guests",
            "iteration": [2],
            "most_rounds": [5],
            "state": "waiting",
            "signal": "guests",
            "until": "2999-11-23T22:00:00.000Z",
            "payload": {
                "type": "object",
                "required": ["n", "note"],
                "properties": {"n": {"type": "integer", "minimum": 1}, "note": {"$ref": "#/$defs/note"}},
                "$defs": {"note": {"type": "string", "minLength": 6}},
            },
        },
        {"node": "menu", "iteration": [], "state": "waiting", "signal": "it's", "until": None},
        {
            "node": "pause",
            "iteration": [],
            "state": "waiting",
            "signal": None,
            "until": "2999-11-23T22:00:00.000Z",
        },
        {"node": "sub", "iteration": [], "state": "child", "saga": "s1.0.sub"},
        {"node": "end", "iteration": [], "state": "joining", "waits_for": ["menu", "sub"]},
        {"node": "mail", "iteration": [0, 1], "state": "ready"},
    ],
}


def test_a_waiting_saga_says_what_for_until_when_and_in_which_round(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, SAGA | WAITING))
    shown = " ".join(baton("show", "s1").stdout.split())
    for text in (
        "3 of at most 7 steps done, at guests (round 3 of 5, waiting), menu (waiting)",
        "mail (round 1, 2)",
        "guests: for the signal `guests`, until 2999-11-23 22:00 UTC (in ",
        "menu: for the signal `it's`, without a time limit",
        "pause: until 2999-11-23 22:00 UTC (in ",
        "sub: for its child saga s1.0.sub",
        "end: for menu, sub",
    ):
        assert text in shown


def test_a_waiting_saga_is_shown_with_the_commands_that_help_it_on(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, SAGA | WAITING), (200, SAGA | {"status": "parked"}))
    said = baton("show", "s1").stderr
    assert """signal s1 guests --payload '{"n": 1, "note": "textxx"}'""" in said
    assert """signal s1 'it'"'"'s' [--payload JSON]""" in said
    assert "show s1.0.sub" in said
    assert "resume s1" in baton("show", "s1").stderr
    api.on("GET /sagas/s1", (200, SAGA | WAITING | {"status": "cancelled"}))
    assert baton("show", "s1").stderr == ""


def test_a_failed_saga_names_its_retry_and_a_failed_child_none(api: FakeApi, baton: Baton) -> None:
    failed = SAGA | {"status": "failed"}
    api.on("GET /sagas/s1", (200, failed), (200, failed | {"parent": "s0"}))
    assert baton("show", "s1").stderr.endswith("baton retry s1\n")
    assert "retry" not in baton("show", "s1").stderr


LOST = {"first": 3, "last": 5, "why": "entry 3 is no JSON"}


@pytest.mark.parametrize("damage", [{"unreadable": LOST}, {"missing_graph": "its graph cannot be had"}])
def test_a_damaged_saga_is_named_first_with_its_repair_and_no_other_command(
    api: FakeApi, baton: Baton, says: Says, damage: Any
) -> None:
    api.on("GET /sagas/s1", (200, SAGA | WAITING | damage))
    shown = baton("show", "s1")
    says(shown.stdout.partition("workflow")[0])
    assert shown.stdout.startswith("unreadable")
    assert shown.stderr == ""


def test_a_watched_saga_with_a_damaged_log_says_so(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, SAGA | {"status": "parked", "unreadable": LOST}))
    first, *rest = baton("show", "s1", "--watch").stdout.splitlines()
    assert unreadable_line(LOST) in first
    assert "--repair" in "".join(rest)


@pytest.mark.parametrize(
    ("status", "code"), [("completed", 0), ("failed", 1), ("cancelled", 1), ("parked", 1), ("rolled_back", 1)]
)
def test_watch_ends_with_the_saga_and_says_how(api: FakeApi, baton: Baton, status: str, code: int) -> None:
    api.on("GET /sagas/s1", (200, SAGA), (200, SAGA), (200, SAGA | {"status": status, "version": 6}))
    result = baton("show", "s1", "--watch", "--every", "1ms")
    assert result.exit_code == code
    assert result.stdout.count("running ") == 1, "the same state is printed once"
    assert status in result.stdout


def test_watch_for_programs_is_a_line_of_json_for_each_change(api: FakeApi, baton: Baton) -> None:
    end = SAGA | {"status": "completed", "version": 6}
    api.on("GET /sagas/s1", (200, SAGA), (200, SAGA), (200, end))
    lines = baton("show", "s1", "--watch", "--json", "--every", "1ms").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [SAGA, end]


def test_a_period_that_is_no_duration_is_explained(baton: Baton) -> None:
    result = baton("show", "s1", "--watch", "--every", "soon")
    assert (result.exit_code, "500ms, 5s" in result.stderr) == (2, True)


def entry(version: int, **fields: Any) -> dict[str, Any]:
    event = {
        "kind": "step_succeeded",
        "node": f"n{version}",
        "iteration": [2],
        "attempt": 1,
        "output": {"v": {"n": version}},
        "started_at": "2026-11-21T22:00:00.000Z",
        "ended_at": "2026-11-21T22:00:00.340Z",
        "tool": "table.hold",
        "tool_version": "1",
        "schema_hash": "abc",
    }
    base = {
        "version": version,
        "branch": 0,
        "at": "2026-11-21T22:00:01.000Z",
        "epoch": 1,
        "invocation": "i1.a",
    }
    return base | {"cold": False, "traceparent": "", "events": [event]} | fields


def test_events_are_read_page_by_page(api: FakeApi, baton: Baton) -> None:
    pages = [{"entries": [entry(1), entry(2)], "next": 2}, {"entries": [entry(3)], "next": None}]
    api.on("GET /sagas/s1/events", *((200, page) for page in pages))
    lines = baton("events", "s1", "--json").stdout.splitlines()
    assert [json.loads(line)["version"] for line in lines] == [1, 2, 3]
    assert [asked.query.get("after") for asked in api.asked] == [None, "2"]


def test_what_was_chosen_and_what_broke_stands_in_the_line_of_its_event(api: FakeApi, baton: Baton) -> None:
    chosen = {"kind": "node_passed", "node": "a", "way": "rule 1", "drops": ["x@0"], "fault": None, "cost": 0}
    fault = {"code": "condition_failed", "message": "no n", "node": "b"}
    events = [
        chosen,
        {"kind": "node_passed", "node": "b", "fault": fault},
        {"kind": "node_skipped", "node": "c", "why": "when"},
        {"kind": "join_fired", "node": "j", "by": ["a"], "unspoken": ["c"]},
        {"kind": "limit_reached", "failure": {"code": "limit_hops", "message": "too many", "node": ""}},
    ]
    api.on("GET /sagas/s1/events", (200, {"entries": [entry(1, events=events)], "next": None}))
    lines = [line[21:] for line in baton("events", "s1").stdout.splitlines()[1:]]
    assert lines == [
        "node_passed       a                 way=rule 1",
        "node_passed       b                 fault=condition_failed at b: no n",
        "node_skipped      c                 why=when",
        'join_fired        j                 by=["a"]  unspoken=["c"]',
        "limit_reached                       failure=limit_hops: too many",
    ]


def test_only_a_result_that_was_recorded_before_is_said_to_be_one(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    usual = {"kind": "step_succeeded", "node": "a", "recorded": False, "output": {"v": 1}}
    entries = [entry(1, events=[usual]), entry(2, events=[usual | {"recorded": True}])]
    api.on("GET /sagas/s1/events", (200, {"entries": entries, "next": None}))
    lines = [line[21:].split(maxsplit=2) for line in baton("events", "s1").stdout.splitlines()[1:]]
    says([line[2] for line in lines])


def test_a_limit_over_several_pages_is_kept(api: FakeApi, baton: Baton) -> None:
    pages = [{"entries": [entry(1), entry(2)], "next": 2}, {"entries": [entry(3)], "next": 3}]
    api.on("GET /sagas/s1/events", *((200, page) for page in pages))
    assert len(baton("events", "s1", "--json", "--limit", "3", "--after", "0").stdout.splitlines()) == 3
    assert [asked.query for asked in api.asked] == [
        {"limit": "3", "after": "0"},
        {"limit": "1", "after": "2"},
    ]


def test_a_person_sees_a_line_per_event_and_who_wrote_it(api: FakeApi, baton: Baton) -> None:
    cancel = [{"kind": "cancel_requested", "reason": "ill", "by": "ada", "at": "2026-11-21T22:00:02.000Z"}]
    entries = [
        entry(1),
        entry(2),
        entry(3, epoch=0, invocation="req", events=cancel),
        entry(4, epoch=2, cold=True),
    ]
    api.on("GET /sagas/s1/events", (200, {"entries": entries, "next": None}))
    shown = baton("events", "s1").stdout
    assert "22:00:01.000  step_succeeded    n2@2" in shown
    assert '340 ms  output={"n": 2}  tool=table.hold' in shown
    assert "reason=ill" in shown
    rules = [line for line in shown.splitlines() if line.startswith("──")]
    assert rules == ["── worker i1.a, epoch 1", "── API request req", "── worker i1.a, epoch 2, cold start"]


def test_an_event_says_how_long_its_tool_held_the_event_loop_and_nothing_if_it_did_not() -> None:
    held, quiet = ({**entry(1)["events"][0], "blocked_ms": ms} for ms in (20_000, 0))
    lines = [str(line) for line in EventLines().of(entry(1, events=[held, quiet]))]
    assert ["blocked=20.0 s" in line for line in lines] == [False, True, False]
    assert "blocked" not in lines[2]


# ---- attempts that failed

NOW = "2026-11-21T22:00:10.000Z"
FAILING = {
    "node": "pay",
    "iteration": [1],
    "attempts": 2,
    "code": "service_unavailable",
    "message": "not\nnow",
    "strategy": "retry",
    "hint": None,
    "way": None,
    "next_attempt_at": None,
}
QUESTION = {
    "id": "0.ask.1",
    "node": "ask",
    "iteration": [],
    "kind": "error_resolution",
    "message": "Login required.",
    "options": ["retry", "fail"],
    "expires_at": None,
    "for": [{"kind": "user", "name": "ada"}, {"kind": "role", "name": "operate"}],
    "arguments": None,
}


def facts(**more: Any) -> str:
    """What is shown of a saga at NOW, as text."""
    console = Console(width=200, file=io.StringIO())
    console.print(saga_table(SAGA | more, epoch_ms(NOW) or 0))
    return str(console.file.getvalue())  # type: ignore[attr-defined]  # it is a StringIO


def test_a_failing_step_says_what_comes_next_and_how_far_away_that_is(says: Says) -> None:
    soon = FAILING | {"next_attempt_at": "2026-11-21T22:00:14.000Z"}
    says.within(facts(failing=[soon]))
    past = FAILING | {"next_attempt_at": "2026-11-21T22:00:09.000Z"}
    assert "; again 22:00:09.000 UTC (now)" in facts(failing=[past])
    late = FAILING | {"next_attempt_at": "2026-11-21T21:55:00.000Z"}
    assert "; again 21:55:00.000 UTC (5 min 10 s overdue)" in facts(failing=[late])
    other = FAILING | {"strategy": "replan", "hint": "fallback_model", "way": "m2"}
    assert "; replan: fallback_model m2" in facts(failing=[other])
    assert "not\\nnow; escalate" in facts(failing=[FAILING | {"strategy": "escalate"}])
    assert '; its input: {"n": 1}' in facts(failing=[FAILING | {"input": {"n": 1}}])


@pytest.mark.parametrize("by", ["ann", None])
def test_a_saga_that_stands_still_says_how_long_it_has(by: str | None) -> None:
    parked = {"stands_still_since": "2026-11-21T21:53:00.000Z", "by": by}
    assert "since 21:53:00.000 UTC (7 min 10 s ago)" in facts(parked=parked)
    asks = QUESTION | {"expires_at": "2026-11-21T21:55:00.000Z"}
    assert "until 21:55:00.000 UTC (5 min 10 s overdue)" in facts(questions=[asks])


def test_show_asks_for_the_input_of_a_step_that_has_failed_and_goes_on(api: FakeApi, baton: Baton) -> None:
    run = {"node": FAILING["node"], "iteration": FAILING["iteration"], "outcome": "open", "input": {"n": 1}}
    other = run | {"node": "other", "input": 2}
    api.on("GET /sagas/s1", (200, SAGA | {"id": "s1", "failing": [FAILING]}))
    api.on("GET /sagas/s1/steps", (200, {"steps": [other, run], "next": None}))
    assert 'its input: {"n": 1}' in baton("show", "s1").stdout
    assert api.asked[-1].query["after"] == str(SAGA["version"])


def test_a_question_is_shown_with_its_id_its_answers_and_until_when(says: Says) -> None:
    shown = facts(
        status="suspended", questions=[QUESTION, QUESTION | {"expires_at": "2026-11-23T22:00:10.000Z"}]
    )
    assert "0.ask.1: Login required." in shown
    lines = [line.rstrip() for line in shown.splitlines()]
    says.within(lines, 2)
    changes = {"arguments": {"type": "object", "properties": {"day": {}, "hour": {}}}}
    operators = {"for": [{"kind": "role", "name": "operate"}]}
    changing = facts(status="parked", questions=[QUESTION | operators | changes])
    says.within(changing)
    says.within(lines)


def test_a_saga_that_is_parked_for_a_time_says_until_when_and_what_it_may_spend(says: Says) -> None:
    parked = {"code": "budget_spent", "message": "m", "node": None, "until": "2026-11-21T23:00:10.000Z"}
    shown = facts(status="parked", parked=parked, budget_usd=2.5)
    assert "until 23:00:10.000 UTC (in 1 h 0 min)" in shown
    assert "$0.00 of $2.50" in shown
    assert "until" not in facts(parked=parked | {"until": None})
    since = parked | {"until": None, "stands_still_since": NOW}
    says.within(facts(parked=since | {"build": "3.12"}))
    says.within(facts(parked=since | {"build": None}))


def test_watch_stays_until_a_person_is_asked_and_nothing_else_goes_on(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    end = SAGA | {"status": "suspended", "version": 6, "questions": [QUESTION]}
    api.on("GET /sagas/s1", (200, SAGA), (200, end))
    result = baton("show", "s1", "--watch", "--every", "1ms")
    assert result.exit_code == 1
    assert "0.ask.1: Login required." in result.stdout
    says(result.stderr)
    assert "show s1" in result.stderr


def test_the_log_tells_attempts_strategies_and_questions(api: FakeApi, baton: Baton, says: Says) -> None:
    failure = {"code": "timeout", "message": "no answer", "node": "a", "kind": "transient", "tool": "t"}
    events = [
        {"kind": "attempt_failed", "node": "a", "attempt": 2, "failure": failure, "tool": "t"},
        {
            "kind": "strategy_chosen",
            "node": "a",
            "strategy": "retry",
            "code": "timeout",
            "at": "2026-11-21T22:00:00.000Z",
            "due_at": "2026-11-21T22:00:02.500Z",
            "hooks": [],
            "way": None,
            "look": False,
        },
        {"kind": "strategy_chosen", "node": "a", "strategy": "ask_user", "due_at": None, "ask": QUESTION},
        {"kind": "question_closed", "node": "a", "ask": "0.ask.1", "action": "retry", "by": "k"},
    ]
    api.on("GET /sagas/s1/events", (200, {"entries": [entry(1, events=events)], "next": None}))
    lines = [line[21:] for line in baton("events", "s1").stdout.splitlines()[1:]]
    says(lines)
