"""How this very command is called from the user's shell: `baton`, or the path of it that works here."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

NAME = "baton"


def program() -> str:
    """`baton` where the shell would find this one, else a path to it, relative if it lies below here."""
    own = _own()
    if own is None:
        return NAME
    found = shutil.which(NAME)
    if found and _same(Path(found), own):
        return NAME
    try:
        return shlex.quote(str(own.relative_to(Path.cwd())))
    except ValueError:
        return shlex.quote(str(own))


def typed(arguments: str) -> str:
    """A command to type, with `arguments` after the program."""
    return f"{program()} {arguments}"


def _own() -> Path | None:
    """The script that runs now, or the one that was installed beside this interpreter."""
    called = Path(sys.argv[0])
    if called.name == NAME and called.is_file():
        return Path(os.path.abspath(called))  # noqa: PTH100  # a link must stay a link: it is what can be typed
    beside = Path(sys.executable).with_name(NAME)
    return beside if beside.is_file() else None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
