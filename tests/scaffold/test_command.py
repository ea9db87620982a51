"""`baton new`: what it says when it worked, when it did not, and to a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from baton.cli.commands import main
from baton.client.exits import USAGE
from baton.project import deployment
from tests.kit.sentences import Says


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def new(*arguments: str) -> Result:
    return CliRunner(mix_stderr=False).invoke(main, ["new", *arguments])


def test_it_says_what_was_made_and_what_to_do_next(tmp_path: Path, says: Says) -> None:
    done = new("my-sagas")
    assert done.exit_code == 0, done.stderr
    says.within(done.stdout)
    shown = [
        line.split()[0]
        for line in done.stdout.splitlines()
        if line.startswith("  ") and "." in line.split()[0]
    ]
    assert len(shown) == 5
    assert all((tmp_path / "my-sagas" / path).is_file() for path in shown)
    assert done.stdout.endswith("Next:\n  cd my-sagas\n  make test\n  make up\n")


def test_a_program_is_told_in_json(tmp_path: Path) -> None:
    (tmp_path / "some where").mkdir()
    told = json.loads(new("some where/tea", "--json").stdout)
    assert (told["name"], told["directory"]) == ("tea", str(tmp_path / "some where/tea"))
    assert {"baton.toml", "deployment/template.yaml"} < set(told["files"])
    assert told["next"] == ["cd 'some where/tea'", "make test", "make up"]


def test_who_is_there_already_need_not_go_there() -> None:
    Path("my-sagas").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir("my-sagas")
        assert new(".").stdout.endswith("Next:\n  make test\n  make up\n")


def test_a_mistake_ends_with_what_would_be_right(says: Says) -> None:
    refused = new("My Sagas")
    assert (refused.exit_code, refused.stdout) == (USAGE, "")
    says(refused.stderr)


def test_an_installation_without_the_files_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: Says
) -> None:
    monkeypatch.setattr(deployment, "HERE", tmp_path / "site/baton/project")
    refused = new("my-sagas")
    assert (refused.exit_code, Path("my-sagas").exists()) == (USAGE, False)
    says.within(refused.stderr)
