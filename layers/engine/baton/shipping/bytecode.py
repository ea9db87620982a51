"""Bytecode of Lambda's Python for a built layer, on a machine that may have another Python.

Here: in which order what is tried, and whether what came of it is right. The ways are interpreters.py and
wasm.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from baton.shipping import LAMBDA, interpreters, wasm
from baton.shipping.programs import Failed

# Each compiles a folder and says by what, or raises Failed. What is here already comes before what must be
# fetched, and an interpreter, which is the quicker one, before one in WebAssembly.
WAYS: Final[Mapping[str, Callable[[Path], str]]] = MappingProxyType(
    {
        "native": interpreters.compile_here,
        "wasm-cached": wasm.compile_cached,
        "download": interpreters.compile_downloaded,
        "wasm": wasm.compile_fetched,
    }
)
_UNCHECKED_HASH: Final = (1).to_bytes(4, "little")  # PEP 552: valid, whatever the times of the sources say


@dataclass(frozen=True)
class Bytecode:
    """What became of it: how many of `sources` were compiled, `by` what; those that cannot be, which ways failed."""

    sources: int
    by: str = ""
    broken: tuple[str, ...] = ()
    tried: tuple[tuple[str, str], ...] = ()


def compile_layer(folder: Path, way: str = "any") -> Bytecode:
    """Write the .pyc files of all sources in a folder, by one of WAYS, by the first that works, or not at all.

    The bytes depend on the sources and on the compiler's release, not on times or on this machine.
    """
    sources = sorted(folder.rglob("*.py"))
    if way == "none" or not sources:
        return Bytecode(len(sources))
    tried: list[tuple[str, str]] = []
    for name in WAYS if way == "any" else [way]:
        try:
            by = WAYS[name](folder)
        except Failed as error:
            tried.append((name, str(error)))
            continue
        broken = [str(source.relative_to(folder)) for source in sources if not is_compiled(source)]
        if len(broken) < len(sources):
            return Bytecode(len(sources), by, tuple(broken), tuple(tried))
        tried.append((name, f"{by} compiled none of {len(sources)} files"))
    return Bytecode(len(sources), tried=tuple(tried))


def is_compiled(source: Path) -> bool:
    """Whether there is bytecode that Lambda's Python takes for this source without a look at it."""
    compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-{LAMBDA.python.replace('.', '')}.pyc"
    try:
        with compiled.open("rb") as file:
            return file.read(8) == LAMBDA.magic + _UNCHECKED_HASH
    except FileNotFoundError:
        return False
