"""Makes a project: checks its name and its place, and puts all of it there or nothing.

What stands in the files is in sources.py.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from baton.errors import BatonError
from baton.scaffold.origin import requirement
from baton.scaffold.sources import project_files

# It becomes the name of the stack, and `<stack>-reconciler` is a function's name, which has 64 characters.
LONGEST = 50
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# What may be in a folder already: one that was made for the project by git.
_HARMLESS = frozenset({".git"})


class CannotMakeError(BatonError):
    """The project cannot be made; the message says why, `hint` what would be right."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Project:
    """A project that was made: its name, its folder, and the paths of its files in it."""

    name: str
    folder: Path
    files: tuple[str, ...]


def make_project(folder: Path) -> Project:
    """Make the project in `folder`, whose last part is its name. Raises `CannotMakeError`, `SourceError`."""
    folder = folder.absolute() if folder.name not in ("", "..") else folder.resolve()
    _check_name(folder.name)
    _check_place(folder)
    files = project_files({"NAME": folder.name, "BATON": requirement("local"), "BUILD": requirement("build")})
    try:
        _put(files, folder)
    except OSError as error:
        raise CannotMakeError(
            f"{folder} cannot be written: {error.strerror}", "Choose a folder that is yours."
        ) from error
    return Project(folder.name, folder, tuple(files))


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) and len(name) <= LONGEST:
        return
    better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").lstrip("0123456789-")[:LONGEST].rstrip("-")
    raise CannotMakeError(
        f"{name!r} cannot be the name of a project",
        f"Write lower-case letters, digits and hyphens between them, at most {LONGEST} characters, beginning"
        f" with a letter: {better or 'my-sagas'}",
    )


def _check_place(folder: Path) -> None:
    if not folder.parent.is_dir():
        raise CannotMakeError(f"there is no folder {folder.parent}", "Make it first, or choose another one.")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CannotMakeError(f"{folder} is there and is not a folder", "Choose another name.")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if set(there) - _HARMLESS:
        raise CannotMakeError(
            f"{folder} is there and is not empty: it has {', '.join(there[:5])}{' …' if there[5:] else ''}",
            "Choose another name, or an empty folder.",
        )


def _put(files: Mapping[str, str], folder: Path) -> None:
    """Write everything beside the place, then move it there; a folder that was there stays the same one."""
    is_new = not folder.exists()
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent if is_new else folder))
    try:
        for path, text in files.items():
            file = beside / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if is_new:
            beside.chmod(0o777 & ~_umask(beside))
            beside.rename(folder)
        else:
            _move_all(beside, folder)
            beside.rmdir()
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _move_all(source: Path, target: Path) -> None:
    moved: list[Path] = []
    try:
        for path in sorted(source.iterdir()):
            path.rename(target / path.name)
            moved.append(target / path.name)
    except BaseException:
        for path in moved:
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        raise


def _umask(folder: Path) -> int:
    """What the user takes away from new folders (`mkdtemp` gives its own to the user alone)."""
    probe = folder / ".mode"
    probe.mkdir()
    mode = probe.stat().st_mode
    probe.rmdir()
    return 0o777 & ~mode
