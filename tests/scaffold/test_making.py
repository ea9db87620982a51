"""Making a project: all of it or nothing, in a place that is free, under a name that works."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.project.config import LONGEST, parse_config
from baton.project.deployment import SourceError, allowed_parameters, deployment_files, without_example
from baton.scaffold import make
from baton.scaffold.make import CannotMakeError, make_project
from tests.kit.sentences import Says

ROOT = Path(__file__).parents[2]
NEEDED = {
    ".gitignore",
    "README.md",
    "baton.toml",
    "Makefile",
    "pyproject.toml",
    "requirements.txt",
    "layers/app/requirements.txt",
    "layers/app/sagas/__init__.py",
    "layers/app/sagas/order.py",
    "layers/app/sagas/order.yaml",
    "tests/test_order.py",
}


def made_of_them() -> set[str]:
    """The files of a deployment."""
    config = parse_config('baton = "0.1.0"\nstack = "a"\n', allowed_parameters({}))
    return set(deployment_files(ROOT, config, {}))


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_project_has_its_own_files_and_those_of_the_deployment(tmp_path: Path) -> None:
    project = make_project(tmp_path / "my-sagas")
    assert set(project.files) == files(tmp_path / "my-sagas") == NEEDED | made_of_them()
    assert (project.name, project.folder) == ("my-sagas", tmp_path / "my-sagas")
    assert [path.name for path in tmp_path.iterdir()] == ["my-sagas"]


def test_it_is_called_by_its_name_and_nothing_is_left_to_fill_in(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "tea-house").folder
    assert (folder / "README.md").read_text().startswith("# tea-house\n")
    assert 'stack_name = "tea-house"' in (folder / "deployment/samconfig.toml").read_text()
    for path in NEEDED:
        assert not any(mark in (folder / path).read_text() for mark in ("@NAME@", "@BATON@", "@VERSION@")), (
            path
        )


def test_it_can_be_read_by_those_whom_the_user_lets_read(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert make_project(tmp_path / "mine").folder.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("My Sagas", ": my-sagas"),
        ("my_sagas", ": my-sagas"),
        ("2nd-try", ": nd-try"),
        ("sagas-", ": sagas"),
        ("a--b", ": a-b"),
        ("été", ": t"),
        ("…", ": my-sagas"),
        ("x" * 51, ": " + "x" * 50),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_one_that_can(
    tmp_path: Path, name: str, better: str, says: Says
) -> None:
    with says.raised(CannotMakeError) as raised:
        make_project(tmp_path / name)
    assert raised.value.hint.endswith(better)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_name_leaves_room_for_the_longest_function(tmp_path: Path) -> None:
    assert len("x" * LONGEST + "-reconciler") <= 64
    make_project(tmp_path / ("x" * LONGEST))


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path, says: Says) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/notes.txt").write_text("mine")
    with says.raised(CannotMakeError):
        make_project(tmp_path / "taken")
    assert files(tmp_path) == {"taken/notes.txt"}


def test_a_file_and_a_folder_that_is_not_there_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotMakeError, match="is not a folder"):
        make_project(tmp_path / "file")
    with pytest.raises(CannotMakeError, match="there is no folder"):
        make_project(tmp_path / "nowhere/my-sagas")


def test_an_empty_folder_is_used_as_it_is_and_so_is_one_that_git_made(tmp_path: Path) -> None:
    folder = tmp_path / "cloned"
    (folder / ".git").mkdir(parents=True)
    before = folder.stat().st_ino
    make_project(folder)
    assert folder.stat().st_ino == before
    assert files(folder) == NEEDED | made_of_them()


def test_the_current_folder_can_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert make_project(Path()).folder == tmp_path / "here"
    assert Path("deployment/template.yaml").is_file()


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "empty"])
def test_nothing_is_left_when_it_cannot_be_written(tmp_path: Path, is_there: bool) -> None:
    folder = tmp_path / "my-sagas"
    if is_there:
        folder.mkdir()
    with pytest.raises(OSError, match=r"directory|exists"):
        make._put({"a": "a file", "a/b": "below it"}, folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["my-sagas"] * is_there


def test_nothing_is_left_when_it_cannot_be_moved_into_place(tmp_path: Path) -> None:
    folder = tmp_path / "my-sagas"
    (folder / "z").mkdir(parents=True)
    (folder / "z/kept").write_text("")
    with pytest.raises(OSError, match=r"empty|exists|directory"):
        make._put({"a": "", "b/c": "", "z/other": ""}, folder)
    assert files(folder) == {"z/kept"}


def test_only_what_is_marked_belongs_to_the_example() -> None:
    text = "a\n  # example: begin\nb\n  # example: end\nc # example: begin\n"
    assert without_example(text) == "a\nc # example: begin\n"


@pytest.mark.parametrize(
    "text",
    [
        "# example: begin\n",
        "# example: end\n",
        "# example: begin\n# example: begin\n# example: end\n",
        "# example: begin\n# example: end\n# example: end\n",
    ],
)
def test_marks_that_do_not_match_are_an_error(text: str) -> None:
    with pytest.raises(SourceError):
        without_example(text)
