"""Every command that a page names can be typed: make targets, `baton` commands, and their options."""

from __future__ import annotations

import re
from functools import cache

import click
import pytest

from baton.cli.commands import main
from tests.docs.pages import ROOT, Page, pages

_TARGET = re.compile(r"\bmake ([a-z][a-z0-9-]*)")
_BATON = re.compile(r"(?:^|/)baton(?: +(.*))?$")


@cache
def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_make_target_that_is_named_exists(page: Page) -> None:
    named = {target for command in page.commands() for target in _TARGET.findall(command)}
    assert named - targets() == set()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_baton_command_that_is_named_exists_with_its_options(page: Page) -> None:
    wrong = []
    for command in page.commands():
        called = _BATON.search(command)
        if called and called[1] and (problem := _problem(called[1].split())):
            wrong.append(f"{command}: {problem}")
    assert wrong == []


def _problem(words: list[str]) -> str:
    """What is wrong with the words after `baton`; empty if nothing is."""
    given: click.Command = main
    flags = {
        name for parameter in main.params if getattr(parameter, "is_flag", False) for name in parameter.opts
    }
    while len(words) > 1 and words[0] in flags:
        words = words[1:]
    if not words[0].startswith("-"):
        if words[0] not in main.commands:
            return f"there is no command {words[0]}"
        given = main.commands[words[0]]
        if isinstance(given, click.Group):
            if len(words) == 1 or words[1] not in given.commands:
                return f"{words[0]} has no command {' '.join(words[1:2])}"
            given = given.commands[words[1]]
    known = {name for parameter in given.params for name in parameter.opts} | {"--help", "-h"}
    unknown = {word for word in words if word.startswith("-")} - known
    return f"no such option: {sorted(unknown)}" if unknown else ""


def test_what_does_not_exist_would_be_seen() -> None:
    assert {"demo", "test", "up"} <= targets()
    assert "nonsense" not in targets()
    assert _problem(["show", "ID", "--watch"]) == ""
    assert _problem(["--aws", "list", "--status", "parked"]) == ""
    assert _problem(["--aws", "lsit"]) == "there is no command lsit"
    assert _problem(["dlq", "list", "--saga", "S"]) == ""
    assert _problem(["dlq", "lsit"]) == "dlq has no command lsit"
    assert _problem(["shwo"]) == "there is no command shwo"
    assert _problem(["show", "--wtach"]) == "no such option: ['--wtach']"


def test_the_readme_starts_the_tools_it_tells_of() -> None:
    (readme,) = [page for page in pages() if page.name == "README.md"]
    commands = list(readme.commands())
    assert {"make demo", "make test", "make up"} <= set(commands)
    assert any(command.startswith("baton start greeting") for command in commands)
