"""What every command has in common: JSON for programs, no colour where it is not wanted, hints, exit statuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from baton.cli import main
from baton.client import exits
from tests.cli.conftest import Baton, FakeApi
from tests.cli.test_show import SAGA
from tests.kit.patience import PATIENCE_S
from tests.kit.sentences import Says

BATON = [sys.executable, "-c", "from baton.cli import main; main(prog_name='baton')"]
# A script for a shell is what it prints, whatever program reads it.
NOT_FOR_PROGRAMS = {"completion"}


def leaves(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Each command with what is typed for it, those of families as well."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from ((f"{name} {below}", leaf) for below, leaf in leaves(command))
        else:
            yield name, command


LEAVES = dict(leaves(main))


@pytest.mark.parametrize("name", sorted(set(LEAVES) - NOT_FOR_PROGRAMS))
def test_every_command_has_an_answer_for_programs(name: str) -> None:
    assert "--json" in {option for parameter in LEAVES[name].params for option in parameter.opts}


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_every_command_and_option_explains_itself(baton: Baton, name: str) -> None:
    result = baton(*name.split(), "--help")
    assert result.exit_code == 0
    assert LEAVES[name].help
    mute = [
        p.name for p in LEAVES[name].params if p.param_type_name == "option" and not getattr(p, "help", "")
    ]
    assert mute == []


def test_every_command_that_is_not_hidden_is_in_the_help(baton: Baton) -> None:
    shown = baton("--help").stdout
    for name, command in main.commands.items():
        assert (f"\n  {name} " in shown) is not command.hidden


def test_the_help_fits_a_terminal(baton: Baton) -> None:
    assert max(map(len, baton("--help").stdout.splitlines())) <= 80
    assert "..." not in baton("--help").stdout.partition("Exit statuses")[0].partition("ARGS]...")[2]


def test_the_help_lists_every_exit_status(baton: Baton) -> None:
    shown = baton("--help").stdout.partition("Exit statuses:\n")[2]
    listed = [int(line[:5]) for line in shown.splitlines() if line[:5].strip()]
    assert listed == list(exits.MEANINGS)
    assert listed == [0, 1, 2, 3, 4, 5, 130, 141]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("strat", "start"),
        ("deploy", "deploy-workflow"),
        ("node-type", "node-types"),
        ("status", "show"),
        ("ps", "list"),
        ("log", "events"),
        ("run", "start"),
    ],
)
def test_a_mistyped_command_has_a_neighbour(baton: Baton, typed: str, meant: str, says: Says) -> None:
    result = baton(typed, "--watch")
    assert result.exit_code == 2
    says(result.stderr)


def test_a_command_like_no_other_has_none(baton: Baton) -> None:
    result = baton("xyzzy")
    assert (result.exit_code, "Did you mean" in result.stderr) == (2, False)


def test_a_hidden_command_is_no_hint(baton: Baton) -> None:
    assert "'register'" not in baton("registr").stderr


@pytest.mark.parametrize(
    ("environment", "coloured"), [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False)]
)
def test_a_terminal_gets_colours_unless_it_wants_none(
    api: FakeApi, environment: dict[str, str], coloured: bool
) -> None:
    api.on(
        "GET /sagas", (200, {"sagas": [{"id": "s1", "workflow": "w", "status": "completed"}], "next": None})
    )
    known = {"PATH": os.environ["PATH"], "BATON_URL": api.url, "BATON_TOKEN": "t"}
    reader, terminal = os.openpty()
    subprocess.run([*BATON, "list"], stdout=terminal, env=known | environment, check=True, timeout=PATIENCE_S)
    os.close(terminal)
    shown = os.read(reader, 10_000).decode()
    os.close(reader)
    assert "completed" in shown
    assert ("\x1b" in shown) is coloured


def test_no_terminal_gets_no_colours(api: FakeApi, baton: Baton) -> None:
    api.on(
        "GET /sagas", (200, {"sagas": [{"id": "s1", "workflow": "w", "status": "completed"}], "next": None})
    )
    assert "\x1b" not in baton("list", env={"TERM": "xterm", "FORCE_COLOR": "1"}).stdout


def test_every_failure_leaves_standard_output_to_answers(api: FakeApi, baton: Baton) -> None:
    api.on("GET /tools", (404, {"title": "No such thing"}))
    for arguments in (("tools", "--json"), ("list", "--json"), ("cost", "s1", "--json")):
        result = baton(*arguments)
        assert (result.exit_code, result.stdout) == (3, "")


def test_a_saga_that_has_ended_is_not_said_to_have_steps_left(api: FakeApi, baton: Baton) -> None:
    ended = {"status": "completed", "ended_at": "2026-01-01T00:00:00.000Z", "steps": 2, "most_steps": 3}
    api.on("GET /sagas/s1", (200, SAGA | ended | {"active": []}))
    shown = " ".join(baton("show", "s1").stdout.split())
    assert "2 steps done" in shown
    assert "at most" not in shown
