"""A CPython of Lambda's version on this machine: found, or installed by uv into this project's environment.

It is asked what it is before it is believed: a version manager puts commands of every version on the PATH
and lets those fail that are not chosen.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from baton.shipping import LAMBDA, UNPACKED
from baton.shipping.programs import Failed, cache, run, uv

_NAME: Final = f"python{LAMBDA.python}"
WHO: Final = "import importlib.util as u, platform as p; print(p.python_implementation(), p.python_version(), u.MAGIC_NUMBER.hex())"
_ASK_LIMIT_S: Final = 20.0
_COMPILE_LIMIT_S: Final = 300.0
_DOWNLOAD_LIMIT_S: Final = 180.0


def compile_here(folder: Path) -> str:
    """With an interpreter of this machine. Raises Failed."""
    reasons = []
    for candidate in dict.fromkeys(candidates()):
        try:
            return _compile(candidate, folder)
        except Failed as error:
            reasons.append(f"{candidate}: {str(error).splitlines()[0]}")
    raise Failed("; ".join(reasons) or f"no {_NAME} on this machine")


def compile_downloaded(folder: Path) -> str:
    """With the one that uv downloads. Raises Failed."""
    kept = cache() / "python"
    try:
        run(
            [uv(), "python", "install", "--no-bin", "--install-dir", kept, LAMBDA.python],
            _DOWNLOAD_LIMIT_S,
        )
        return _compile(next(_downloaded()), folder)
    except StopIteration:
        raise Failed(f"uv installed no {_NAME} into {kept}") from None


def _compile(python: Path, folder: Path) -> str:
    implementation, version, magic = run([python, "-I", "-c", WHO], _ASK_LIMIT_S).split()
    if implementation != "CPython" or magic != LAMBDA.magic.hex():
        raise Failed(f"it is {implementation} {version}")
    # Not `-m compileall`, whose status is 1 when any source does not compile: bytecode.py looks for itself.
    command: list[str | Path] = [python, "-I", "-c", "import compileall; compileall.main()", "-qq", "-f"]
    command += ["-j", "0", "--invalidation-mode", "unchecked-hash", "-s", folder, "-p", UNPACKED, folder]
    run(command, _COMPILE_LIMIT_S)
    return f"CPython {version}"


def candidates() -> Iterator[Path]:
    """This interpreter, those on the PATH, those installed beside this one, those of uv."""
    yield Path(sys.executable)
    for place in os.get_exec_path():
        found = shutil.which(_NAME, path=place)
        if found:
            yield Path(found)
    # Version managers keep every version in a folder of its own, next to each other.
    yield from sorted(Path(sys.base_prefix).parent.glob(f"*{LAMBDA.python}*/bin/{_NAME}"), reverse=True)
    yield from _downloaded()
    try:
        yield Path(
            run(
                [uv(), "python", "find", "--managed-python", "--no-python-downloads", LAMBDA.python],
                _ASK_LIMIT_S,
            )
        )
    except Failed:
        return


def _downloaded() -> Iterator[Path]:
    yield from sorted((cache() / "python").glob(f"cpython-{LAMBDA.python}.*/bin/{_NAME}"), reverse=True)
