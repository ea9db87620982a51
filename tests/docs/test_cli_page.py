"""docs/cli.md is complete: every command with its options and an example, every exit status."""

from __future__ import annotations

import re

import click
import pytest

from baton.cli.commands import main
from baton.client.exits import MEANINGS
from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/cli.md")
VISIBLE = {name: command for name, command in main.commands.items() if not command.hidden}
_SECTION = re.compile(r"^### `([a-z-]+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, str]:
    return dict(_SECTION.findall(PAGE.text + "\n##"))


def undocumented(command: click.Command, text: str) -> set[str]:
    """Options of a command that a text does not name."""
    commands = (
        command.commands.values() if isinstance(command, click.Group) and command is not main else [command]
    )
    options = {
        max(parameter.opts, key=len)
        for one in commands
        for parameter in one.params
        if isinstance(parameter, click.Option)
    }
    return {option for option in options if f"`{option}" not in text}


def test_every_command_has_its_section_and_no_other_has() -> None:
    assert set(sections()) == set(VISIBLE)


@pytest.mark.parametrize("name", sorted(VISIBLE))
def test_every_command_is_documented_with_its_options_and_an_example(name: str) -> None:
    text = sections()[name]
    assert undocumented(VISIBLE[name], text) == set()
    assert re.search(rf"^\$ .*\bbaton {name}\b", text, re.MULTILINE), "no example"


def test_what_comes_before_every_command_is_documented() -> None:
    assert undocumented(main, PAGE.text) - {"--version"} == set()
    assert {"BATON_URL", "BATON_TOKEN", "BATON_AUTH", "BATON_APP", "NO_COLOR", "AWS_REGION"} <= set(
        re.findall(r"[A-Z_]{4,}", PAGE.text)
    )


def test_the_exit_statuses_are_those_of_the_help() -> None:
    listed = {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.+) \|$", PAGE.text, re.MULTILINE)}
    assert listed == MEANINGS


def test_what_is_missing_would_be_seen() -> None:
    assert undocumented(main.commands["list"], "`--status` and `--json`") >= {"--since", "--all", "--cursor"}
