"""Public import paths stay: public_names.txt has each as `module:name`, and every one can be imported.

A name is public if `__all__` of a public module has it, or if a page, an example or a file of a new project imports it. A new one
joins the list by `python -m tests.architecture.test_public_names`. A line leaves the list by hand, with its line in CHANGELOG.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path

import pytest

from baton.project.deployment import SHARED
from baton.scaffold.make import TEMPLATES
from tests.architecture.test_house_rules import ROOT

GOLDEN = Path(__file__).with_name("public_names.txt")
MODULES = ("baton", "baton.client.api", "baton.errors", "baton.testing")
PROJECT = (ROOT / "pyproject.toml", ROOT / "README.md")
IMPORT = re.compile(r"^\s*from (baton[\w.]*) import (\([^)]*\)|[^\n`]*)", re.MULTILINE)
NAME = re.compile(r"(\w+)(?: as \w+)?")
# `python -m baton.shipping`, and an entry point's `"baton.cli:main"`.
PROGRAM = re.compile(r"-m (baton[\w.]*\w)")
ENTRY = re.compile(r'= "(baton[\w.]*)(?::(\w+))?"')


def files() -> Iterator[Path]:
    """What users read, copy and run."""
    yield from PROJECT
    yield from (ROOT / "docs").rglob("*.md")
    yield from (ROOT / "examples").rglob("*.py")
    yield from (ROOT / "layers/app").rglob("*.py")
    yield from (ROOT / path for path in SHARED)
    yield from (file for file in TEMPLATES.rglob("*") if file.is_file())


def imported(text: str) -> set[str]:
    """`module:name` of each import, `module:` of each program."""
    found = {f"{module}:" for module in PROGRAM.findall(text)}
    found |= {f"{module}:{name}" for module, name in ENTRY.findall(text)}
    for module, names in IMPORT.findall(text):
        listed = re.sub(r"#[^\n]*", "", names).strip("() \n").split(",")
        matches = (NAME.match(name.strip()) for name in listed)
        found |= {f"{module}:{match[1]}" for match in matches if match}
    return found


def names_of(module: str) -> set[str]:
    """Those of `__all__`; without one, the classes and functions that the module itself has."""
    home = import_module(module)
    own = {
        name
        for name, value in vars(home).items()
        if (isclass(value) or isfunction(value)) and value.__module__ == module and not name.startswith("_")
    }
    return {f"{module}:{name}" for name in getattr(home, "__all__", own)}


def public() -> set[str]:
    found = set().union(*map(names_of, MODULES))
    return found.union(*(imported(file.read_text(encoding="utf-8")) for file in files()))


def golden() -> list[str]:
    return GOLDEN.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", golden())
def test_a_public_name_is_where_it_was(line: str) -> None:
    module, _, name = line.partition(":")
    home = import_module(module)
    if name and not hasattr(home, name):
        import_module(f"{module}.{name}")


def test_the_list_has_every_public_name() -> None:
    assert public() - set(golden()) == set(), "run `python -m tests.architecture.test_public_names`"


def test_imports_are_found_however_they_are_written() -> None:
    text = (
        "from baton import (\n    a,  # why\n    b as c,\n)\n  from baton.x import d\npython -m baton.y up\n"
    )
    assert imported(text) == {"baton:a", "baton:b", "baton.x:d", "baton.y:"}
    assert imported('one = "baton.cli:main"\ntwo = "baton.z"') == {"baton.cli:main", "baton.z:"}


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(sorted({*golden(), *public()})) + "\n", encoding="utf-8")
