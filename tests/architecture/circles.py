"""Circles of imports, of files and of folders, found by reading source files without importing them.

Every import counts, also one inside a function or under `TYPE_CHECKING`: it tells a reader the same. A folder is the
files right in it, and its subfolders are folders of their own. A module right under the package is a room of its own, and so is a
file of the core that is named like a room, as in law.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.architecture.law import CORE, nodes_of

Needs = Mapping[str, Iterable[str]]


@cache
def file_needs(package: Path) -> dict[str, set[str]]:
    """For each module below `package`, the modules of it that it imports."""
    files = {_module(file, package): file for file in sorted(package.rglob("*.py"))}
    known = frozenset(files)
    return {name: _imported(file, known) - {name} for name, file in files.items()}


def folder_needs(package: Path) -> dict[str, set[str]]:
    """The same for folders: what the files right in each import from others."""
    folders = {_module(file, package): _folder(file, package) for file in package.rglob("*.py")}
    found: dict[str, set[str]] = {folder: set() for folder in folders.values()}
    for name, needs in file_needs(package).items():
        found[folders[name]] |= {folders[other] for other in needs} - {folders[name]}
    return found


def circles(needs: Needs) -> list[frozenset[str]]:
    """Each set of those that all need each other, directly or not."""
    found = []
    left = {name: set(others) for name, others in needs.items()}
    while (start := _on_a_circle(left)) is not None:
        back = {name: {other for other, its in left.items() if name in its} for name in left}
        circle = _reached(start, left) & _reached(start, back)
        found.append(frozenset(circle))
        left = {name: others - circle for name, others in left.items() if name not in circle}
    return sorted(found, key=sorted)


def _on_a_circle(needs: Needs) -> str | None:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return str(error.args[1][0])
    return None


def _reached(start: str, needs: Needs) -> set[str]:
    seen, look_at = {start}, [start]
    while look_at:
        new = set(needs.get(look_at.pop(), ())) - seen
        seen |= new
        look_at += new
    return seen


def _module(file: Path, package: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _folder(file: Path, package: Path) -> str:
    is_room = file.parent == package or (file.parent == package / "core" and file.stem in CORE)
    return (file.with_suffix("") if is_room else file.parent).relative_to(package).as_posix()


def _imported(file: Path, known: Set[str]) -> set[str]:
    found = set()
    for node in nodes_of(file.read_text(encoding="utf-8")):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inside if inside <= known else inside | {node.module}
    return found & known
