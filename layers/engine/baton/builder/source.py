"""A Python function as the text that a sandbox runs, under the name `evaluate`.

It reads the source of the function and refuses what would be missing when it runs. The compiler checks its parameters,
the sandbox what it can do.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import symtable
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

_REWRITE = "write it as a `def` at the top of a module, or its source as text"


def source_of(function: Callable[..., Any]) -> str:
    """Raises `ValueError` with what is wrong and what would be right."""
    called = str(getattr(function, "__name__", repr(function)))
    try:
        text = textwrap.dedent(inspect.getsource(function))
        (tree,) = ast.parse(text).body
    except (OSError, TypeError, ValueError, SyntaxError) as error:
        raise ValueError(f"the source of `{called}` cannot be read alone", _REWRITE) from error
    if not isinstance(tree, ast.FunctionDef):
        raise ValueError(f"`{called}` is not a plain function", _REWRITE)
    if tree.decorator_list:
        raise ValueError(f"`{called}` has a decorator, which the sandbox does not have", "take it away")
    if outside := sorted(_names_outside(tree)):
        raise ValueError(
            f"`{called}` uses {', '.join(f'`{name}`' for name in outside)}, and only the function itself is sent",
            "put it inside the function, or hand it over with `needs`",
        )
    return re.sub(rf"\bdef\s+{re.escape(tree.name)}\b", "def evaluate", text, count=1).strip() + "\n"


def _names_outside(tree: ast.FunctionDef) -> set[str]:
    """What it reads that is neither its own nor Python's. Annotations are not looked at when it runs."""
    table = symtable.symtable(ast.unparse(_WithoutAnnotations().visit(tree)), "<condition>", "exec")
    return {name for part in _tables(table) for name in _read_in(part)} - set(dir(builtins))


def _read_in(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_global() and symbol.is_referenced():
            yield symbol.get_name()


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        value = node.value or ast.Constant(None)
        return ast.copy_location(ast.Assign([node.target], value), node)
