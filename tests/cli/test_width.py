"""What a terminal of 80 columns shows does not wrap in it, and what is no terminal gets everything."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
from rich.cells import cell_len

from baton.cli import main
from baton.cli.text.tables import short_ids
from tests.cli.conftest import FakeApi
from tests.cli.test_explain import NODE, answer, edge, step
from tests.cli.test_explain import page as way
from tests.cli.test_lists import COST, TOOL, WORKFLOW, page, saga, version
from tests.cli.test_people import INCIDENT
from tests.cli.test_show import QUESTION, SAGA, WAITING, entry
from tests.kit.sentences import Says

ID, OTHER = "ke86ac0b2fc999c27f7bdbc0e5", "ke86ac0b2fd000000000000000"
LONG = "x" * 300


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, api: FakeApi, *arguments: str, columns: int = 80
) -> tuple[list[str], list[str]]:
    """The lines that a command prints in a terminal of so many columns, on standard output and error."""
    environment = {"BATON_URL": api.url, "BATON_TOKEN": "t", "COLUMNS": str(columns), "TERM": "xterm"}
    environment["NO_COLOR"] = "1"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out, err = Terminal(), Terminal()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        main(list(arguments))
    return out.getvalue().splitlines(), err.getvalue().splitlines()


def widest(lines: list[str]) -> int:
    return max(map(cell_len, lines))


def test_a_list_in_a_terminal_of_80_columns_has_short_ids_and_does_not_wrap(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.on(
        "GET /sagas", page(saga(ID), saga(OTHER, status="completed"), saga(f"{ID}.0.send", workflow="mails"))
    )
    lines, _ = shown(monkeypatch, api, "list")
    assert widest(lines) <= 80
    assert [line.split()[0] for line in lines[1:]] == [ID[:11], OTHER[:11], f"{ID[:11]}.0.send"]
    assert all("2026-11-22 00:03:43" in line for line in lines[1:])
    wide, _ = shown(monkeypatch, api, "list", columns=130)
    assert [line.split()[0] for line in wide[1:]] == [ID, OTHER, f"{ID}.0.send"]


def test_a_list_of_long_names_is_cut_and_says_so(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.on("GET /sagas", page(saga(ID, workflow="w" * 90), saga(f"{OTHER}.0.{'n' * 90}", workflow="w" * 40)))
    lines, _ = shown(monkeypatch, api, "list")
    assert widest(lines) <= 80
    assert "…" in lines[1]
    assert "…" in lines[2]


def test_events_in_a_terminal_of_80_columns_break_between_details(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = {"code": "timeout", "message": "no answer 日本語" + LONG, "node": "a"}
    events = [
        entry(1)["events"][0],
        {"kind": "attempt_failed", "node": "a-node-of-a-name-" + LONG, "attempt": 2, "failure": failure},
        {"kind": "saga_ended", "status": "completed"},
    ]
    api.on(
        "GET /sagas/s1/events", (200, {"entries": [entry(1, events=events, invocation=LONG)], "next": None})
    )
    lines, _ = shown(monkeypatch, api, "events", "s1")
    assert widest(lines) <= 80
    assert lines[1:3] == [
        '    1  22:00:01.000  step_succeeded    n1@2              340 ms  output={"n": 1}',
        "         tool=table.hold",
    ]
    assert lines[-1] == "    1  22:00:01.000  saga_ended                          status=completed"


def test_a_saga_in_a_terminal_of_80_columns_does_not_wrap(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    questions = [QUESTION | {"message": LONG}]
    more: dict[str, Any] = {"id": ID, "result": {"text": LONG}, "reason": LONG, "questions": questions}
    api.on("GET /sagas/s1", (200, SAGA | WAITING | more))
    lines, said = shown(monkeypatch, api, "show", "s1")
    assert widest(lines) <= 80
    says.within(said)


def test_ids_that_are_short_already_or_alike_stay_as_they_are() -> None:
    assert short_ids([]) == []
    assert short_ids(["s1", "s2"]) == ["s1", "s2"]
    assert short_ids([ID, ID[:-1] + "x"]) == [ID, ID[:-1] + "x"]
    assert short_ids([ID]) == [ID[:8]]


# ---- the other lists, bills and sentences

SAYS = "The service is down, and has been for a while: 日本語 " + LONG


def incident(**more: Any) -> dict[str, Any]:
    return INCIDENT | {"id": ID, "saga": OTHER, "message": SAYS} | more


def test_incidents_in_a_terminal_of_80_columns_say_all_below_their_line(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    api.on("GET /incidents", (200, {"incidents": [incident(), incident(node="n" * 90)], "next": None}))
    lines, _ = shown(monkeypatch, api, "incidents")
    assert widest(lines) <= 80
    assert lines[1].split()[0] == ID  # what `baton resolve` takes
    says(lines[2])
    assert "".join("".join(lines).split()).count("x" * 300) == 2


def test_an_inbox_in_a_terminal_of_80_columns_says_all_below_its_line(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    one = {"saga": OTHER, "id": "0.ok", "type": "approval", "for": {"kind": "user", "name": "u" * 90}}
    long = one | {"title": "Book?", "message": SAYS, "expires_at": None, "told": False, "id": "0." + "n" * 90}
    api.on("GET /questions", (200, {"questions": [long, one | {"title": "t", "message": ""}], "next": None}))
    lines, _ = shown(monkeypatch, api, "inbox")
    assert widest(lines) <= 80
    assert lines[0].split()[:2] == ["saga", "ask"]
    says(lines[2])
    assert "".join("".join(lines).split()).count("x" * 300) == 1


def test_incidents_that_fit_are_a_line_each(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.on("GET /incidents", (200, {"incidents": [INCIDENT], "next": None}))
    lines, _ = shown(monkeypatch, api, "incidents", columns=110)
    assert [line.split()[0] for line in lines] == ["incident", "i1"]
    assert lines[1].endswith("service_down: The service\\nis down.")
    narrow, _ = shown(monkeypatch, api, "incidents", columns=62)
    assert widest(narrow) <= 62
    assert narrow[0].split()[:2] == ["incident", "opened"]


def test_workflows_in_a_terminal_of_80_columns_keep_their_names_as_long_as_they_can(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    long, longer = version(2) | {"name": "d" * 50}, version(2) | {"name": "d" * 90, "by": "b" * 90}
    api.on("GET /workflows", *((200, {"workflows": [found], "next": None}) for found in (long, longer)))
    lines, _ = shown(monkeypatch, api, "workflows")
    assert (widest(lines) <= 80, lines[1].split()) == (
        True,
        ["d" * 50 + "@2", "2026-11-22", "00:03:37", "ada"],
    )
    lines, _ = shown(monkeypatch, api, "workflows")
    assert (widest(lines) <= 80, lines[0].split()) == (True, ["workflow", "registered", "(UTC)"])
    assert "…" in lines[1]


def test_a_workflow_in_a_terminal_of_80_columns_is_drawn_in_it(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [{"name": f"n{i}-{'x' * 30}", "kind": "task", "tool": "tool." + "y" * 90} for i in range(12)]
    edges = [{"from": one["name"], "to": nodes[-1]["name"]} for one in nodes[:-1]]
    edges += [{"from": nodes[0]["name"], "to": one["name"]} for one in nodes[5:-1]]
    many = {"nodes": nodes, "edges": edges, "versions": [version(2) | {"name": "d" * 90}, version(1)]}
    api.on("GET /workflows/dinner", (200, WORKFLOW | many))
    lines, _ = shown(monkeypatch, api, "workflows", "dinner")
    assert widest(lines) <= 80


def test_tools_in_a_terminal_of_80_columns_have_short_descriptions(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {"domain": "model_call", "cost_usd": 0.05, "description": SAYS}
    api.on("GET /tools", *[(200, {"tools": [TOOL | model, TOOL | {"name": "t" * n}]}) for n in (3, 90)])
    lines, _ = shown(monkeypatch, api, "tools")
    assert widest(lines) <= 80
    assert lines[0].split()[0] == "tool"
    assert "The service is down" in lines[1]
    lines, _ = shown(monkeypatch, api, "tools")
    assert widest(lines) <= 80


def test_a_bill_in_a_terminal_of_80_columns_does_not_wrap(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    tokens = {"input": 900_000, "output": 100_000, "cached": 0}
    model = {"what": "m" * 90, "node": "ask", "quantity": 1_000_000, "unit": "tokens", "usd": 12.5, **tokens}
    api.on("GET /sagas/s1/cost", (200, COST | {"models": [model]}))
    lines, _ = shown(monkeypatch, api, "cost", "s1")
    assert widest(lines) <= 80
    assert lines[3].endswith("1,000,000  tokens: 900,000 in, 100,000 out      $12.50")
    says(" ".join(line.strip() for line in lines[-3:-1]))


def test_which_way_a_saga_went_is_told_in_80_columns_without_a_word_missing(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    steps = [step(2, "check", text=SAYS), step(2, "n" * 90, text="fits"), step(3, "b", text="fits")]
    waiting = {"node": "ask", "iteration": [], "state": "waiting", "text": f"`ask` waits, {SAYS}"}
    api.on("GET /sagas/s1/explain", (200, way(*steps, open=[waiting], end=f"it failed: {SAYS}")))
    lines, _ = shown(monkeypatch, api, "explain", "s1")
    assert widest(lines) <= 80
    says(lines[:2])
    assert "    3  01:58:53.455  b                ran       fits" in lines
    assert "".join("".join(lines).split()).count("x" * 300) == 3


def test_why_a_node_did_not_run_is_told_in_80_columns_without_a_word_missing(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    attempts = [{"text": f"attempt 1: {SAYS}"}]
    found = answer("skipped", f"`j` did not run: {SAYS}", edge("a" * 90, False, text=SAYS), edge("b", True))
    api.on(
        "GET /sagas/s1/explain/j",
        (200, NODE | {"iterations": [found | {"attempts": attempts}], "left_out": 1, "node": "j" * 90}),
    )
    lines, _ = shown(monkeypatch, api, "explain", "s1", "j")
    assert widest(lines) <= 80
    says.within(lines)
    assert "".join("".join(lines).split()).count("x" * 300) == 3
