"""Modules that few sagas need are named in `OnDemand`, and not imported inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import baton
from baton.core.on_demand import OnDemand
from tests.architecture.law import nodes_of

ENGINE = Path(baton.__file__).parent
FILES = [file for room in ("core", "runtime") for file in sorted((ENGINE / room).rglob("*.py"))]
IMPORTS_IN_FUNCTIONS = 14
"""The number of them in core and runtime, most of libraries. It may only go down."""


def imports_in_functions(file: Path) -> Iterator[int]:
    """Return their lines."""
    nodes = nodes_of(file.read_text(encoding="utf-8"))
    functions = [
        range(node.lineno, node.end_lineno or 0)
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    lines = [node.lineno for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    return (line for line in lines if any(line - 1 in function for function in functions))


def test_imports_inside_functions_become_no_more() -> None:
    found = [f"{file.relative_to(ENGINE)}:{line}" for file in FILES for line in imports_in_functions(file)]
    assert len(found) == IMPORTS_IN_FUNCTIONS, found


def test_a_module_on_demand_is_the_one_that_types_are_checked_against() -> None:
    differs = []
    for file in FILES:
        for node in nodes_of(file.read_text(encoding="utf-8")):
            if isinstance(node, ast.If) and node.orelse:
                checked = {
                    one.asname or one.name: f"{statement.module}.{one.name}"
                    if isinstance(statement, ast.ImportFrom)
                    else one.name
                    for statement in node.body
                    if isinstance(statement, ast.ImportFrom | ast.Import)
                    for one in statement.names
                }
                for statement in node.orelse:
                    match statement:
                        case ast.Assign(
                            targets=[ast.Name(id=name)],
                            value=ast.Call(func=ast.Name(id="OnDemand"), args=[ast.Constant(value=module)]),
                        ) if checked.get(name) != module:
                            differs.append(f"{file.relative_to(ENGINE)}: {name}")
    assert differs == []


def test_a_module_on_demand_is_imported_once_and_stays_the_same() -> None:
    import baton.core.money as money

    there = OnDemand("baton.core.money")
    assert vars(there) == {"_module": "baton.core.money"}
    assert there.dollars is money.dollars
    assert vars(there) is vars(money)
