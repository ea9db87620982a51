"""Exclusion of optional modules from the child processes of a local run.

The environment of a local run has awscrt, pyOpenSSL and click for its own programs. A function on Lambda does
not have them; here botocore and httpx would load them, which takes a quarter of a function's start. MiniStack
loads Docker's client to start containers, and botocore to set the content type of an answer, which takes half
of its start. Here it starts no container, and its clients ignore the content type. Standard library only:
lifeline.py loads this file by its path.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

_RUNTIME = "awslambdaric"
# By program: what is tried, by which package, and the word of a line of requirements.txt that ships it after all.
_TRIED = {
    _RUNTIME: {
        "awscrt": ("botocore", "crt"),
        "urllib3.contrib.pyopenssl": ("botocore", "pyopenssl"),
        "httpx._main": ("httpx", "httpx["),
    },
    "ministack": {"botocore": ("ministack", "botocore"), "docker": ("importlib", "docker")},
}


class NotShipped:
    """Finder that blocks these modules for some importers. Other importers use the other finders."""

    def __init__(self, folders: list[str], program: str = _RUNTIME) -> None:
        self._program = program
        self._hidden = _hidden(folders, program)

    def differs_with(self, folders: list[str]) -> bool:
        """Return true if these folders, too, would let a function find a module that is hidden."""
        return bool(self._hidden.keys() - _hidden(folders, self._program).keys())

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Raise `ModuleNotFoundError` for a module that Lambda does not have."""
        if name in self._hidden and _importer() == self._hidden[name]:
            raise ModuleNotFoundError(f"{name} is in no layer", name=name)
        return None


def _hidden(folders: list[str], program: str) -> dict[str, str]:
    required = "".join(map(_required, folders)).lower()
    return {name: by for name, (by, word) in _TRIED.get(program, {}).items() if word not in required}


def _required(folder: str) -> str:
    try:
        return Path(folder, "requirements.txt").read_text("utf-8")
    except (OSError, ValueError):
        return ""


def _importer() -> str:
    """Return the package whose import statement is running."""
    frame = sys._getframe(2)  # noqa: SLF001  # the import system does not say
    while frame.f_code.co_filename.startswith("<frozen importlib") and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
