"""Programs that a build runs, and how their failures are told. What they are run for is in the other files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from baton.errors import BatonError

_TOLD: Final = 2_000  # characters of a program's last words


class BuildFailed(BatonError):
    """A layer cannot be built; the message says what is missing or wrong."""


class Failed(BatonError):
    """A program is not there, was too slow or said no; the message has its last words."""


def run(command: Sequence[str | Path], seconds: float, folder: Path | None = None) -> str:
    """The standard output of a program, stripped. Raises Failed."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{name} did not end within {seconds:.0f} s") from error
    except OSError as error:
        raise Failed(f"{name} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-_TOLD:]
        raise Failed(f"{name} ended with status {done.returncode}: {said}")
    return done.stdout.strip()


def uv() -> Path:
    """The uv of this environment, else one on the PATH. Raises Failed."""
    own = Path(sys.executable).with_name("uv")
    if own.is_file():
        return own
    found = shutil.which("uv")
    if found is None:
        raise Failed("uv is not installed: `pip install uv`")
    return Path(found)


def cache() -> Path:
    """Where fetched tools are kept: in this virtual environment, so that removing it removes them."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "share" / "baton-shipping"
    return Path.home() / ".cache" / "baton-shipping"
