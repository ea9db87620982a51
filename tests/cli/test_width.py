"""What a terminal of 80 columns shows does not wrap in it, and what is no terminal gets everything."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
from rich.cells import cell_len

from baton.cli import main
from baton.cli.tables import short_ids
from tests.cli.conftest import FakeApi
from tests.cli.test_lists import page, saga
from tests.cli.test_show import QUESTION, SAGA, WAITING, entry

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
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [QUESTION | {"message": LONG}]
    more: dict[str, Any] = {"id": ID, "result": {"text": LONG}, "reason": LONG, "questions": questions}
    api.on("GET /sagas/s1", (200, SAGA | WAITING | more))
    lines, said = shown(monkeypatch, api, "show", "s1")
    assert widest(lines) <= 80
    assert any(line.startswith("Send the signal with:") for line in said)


def test_ids_that_are_short_already_or_alike_stay_as_they_are() -> None:
    assert short_ids([]) == []
    assert short_ids(["s1", "s2"]) == ["s1", "s2"]
    assert short_ids([ID, ID[:-1] + "x"]) == [ID, ID[:-1] + "x"]
    assert short_ids([ID]) == [ID[:8]]
