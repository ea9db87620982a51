"""Notes about the code of an application: calls in a workflow function that do not belong there, and codes of
failures that no tool raises.

They are found in its source without running it. What is not found fails when it runs, or when it is replayed.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from baton.core.effects.toolspec import STANDARD
from baton.core.expressions import nearest
from baton.core.failures.codes import CLASSES, CODES
from baton.core.failures.policy import ANY
from baton.core.graph.graph import Graph
from baton.tools.define import Tool, _where
from baton.tools.functions.define import functions_of

_SLEEP, _NOW, _STEP = "`await context.sleep(…)`", "`context.now()`", "a tool, and call that by `context.step`"
_TIME = {
    "time.sleep": _SLEEP,
    **dict.fromkeys(("time.time", "time.time_ns", "time.monotonic", "time.perf_counter"), _NOW),
    **dict.fromkeys(("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"), _NOW),
    "datetime.date.today": _NOW,
    **dict.fromkeys(("uuid.uuid1", "uuid.uuid4"), "`context.uuid()`"),
    **dict.fromkeys(("io.open", "builtins.open", "builtins.input"), _STEP),
}
_MODULES = {
    **dict.fromkeys(("random", "secrets"), "`context.random()`"),
    **dict.fromkeys(
        ("aiohttp", "boto3", "concurrent", "http", "httpx", "multiprocessing", "requests", "shutil"), _STEP
    ),
    **dict.fromkeys(("smtplib", "socket", "sqlite3", "subprocess", "threading", "urllib3"), _STEP),
}


_SENDS_CODES = frozenset({"callback", "signal", "update"})
"""Operations whose sender gives the code of a failure."""


def function_notes(tool: Tool, registry: Mapping[str, Tool]) -> list[str]:
    """Return a note for each call of time, randomness, the outside or a tool in the code of a function, and
    for each code of a failure that it looks for and that its tools cannot raise.
    """
    tools = {one.function: name for name, one in registry.items() if one.document is None}
    functions = list(functions_of(tool.function, tools))
    notes = [note for function in functions for note in _notes(function, tools)]
    return [*notes, *_caught_notes(functions, [registry[name] for name in tool.spec.calls or ()])]


def _caught_notes(functions: Sequence[Any], tools: Sequence[Tool]) -> Iterator[str]:
    """Yield a note for each comparison of a `code` with one that no tool of a function raises."""
    if any(_SENDS_CODES.intersection(one.__code__.co_names) for one in functions):
        return
    texts = [text for one in tools for text in _sources(one)]
    if not texts or None in texts:
        return
    trees = [ast.parse(text or "") for text in dict.fromkeys(texts)]
    said = {one for tree in trees for one in _constants(tree, _compares(tree))}
    raised, known = "\n".join(said), {one for one in said if one.isidentifier()}
    declared = {code for tool in tools for code, _ in tool.codes.values()}
    for function in functions:
        for line, code in _compared(function):
            if code not in CODES and code not in declared and code not in raised:
                hint = nearest(code, {*declared, *known, *CODES})
                text = f"{line}: no tool of the function raises the code `{code}`"
                yield f"{text}; {hint}" if hint else text


def _compared(function: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts that a function compares the code of a failure with, each with its line."""
    if (found := _tree(function)) is None:
        return
    tree, place, first = found
    for node in _compares(tree):
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield f"{place}:{first + one.lineno}", one.value


def _compares(tree: ast.AST) -> list[ast.Compare]:
    """Return the comparisons of `failure.code` below an `except … as failure`."""
    found = []
    for handler in ast.walk(tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        code = f"{handler.name}.code"
        for node in ast.walk(handler):
            if isinstance(node, ast.Compare):
                sides = (ast.unparse(one) for one in (node.left, *node.comparators))
                found += [node] if code in sides else []
    return found


def _constants(tree: ast.AST, without: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the texts in code, but for those in some parts of it."""
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    elif tree not in without:
        for child in ast.iter_child_nodes(tree):
            yield from _constants(child, without)


def code_notes(graph: Graph, registry: Mapping[str, Tool]) -> Iterator[str]:
    """Yield a note for each code in a `catch` or a rule of a node that its tools cannot raise."""
    for node in (node for one in (graph, *graph.graphs.values()) for node in one.work):
        named = dict.fromkeys([*(code for rule in node.catch for code in rule.codes), *node.failures])
        codes = [one for one in named if one not in CODES and one not in CLASSES and one != ANY]
        tools = [registry[one] for one in (node.tool, *(way.tool for way in node.ways)) if one in registry]
        if not codes or not tools:
            continue
        declared = {code for tool in tools for code, _ in tool.codes.values()}
        texts = [text for tool in tools for text in _sources(tool)]
        for code in codes:
            if code not in declared and None not in texts and not any(code in text for text in texts if text):
                hint = nearest(code, {*declared, *CODES})
                text = f"`{node.name}` names the code `{code}`, and `{tools[0].spec.name}` does not raise it"
                yield f"{text}; {hint}" if hint else text


def _sources(tool: Tool) -> Iterator[str | None]:
    """Yield the sources of the modules of a tool's code; None for one that may raise any code."""
    for function in functions_of(tool.function, ()):
        module = sys.modules.get(function.__module__)
        try:
            yield None if module is None or tool.spec.name in STANDARD else inspect.getsource(module)
        except OSError:
            yield None


def _tree(function: Any) -> tuple[ast.AST, str, int] | None:
    """Return the syntax of a function, its file and the line before its first; None without a source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return None
    place = _where(function).rpartition(":")[0].rpartition(", ")[2]
    return tree, place, function.__code__.co_firstlineno - 1


def _notes(function: Any, tools: Mapping[Any, str]) -> Iterator[str]:
    if (found := _tree(function)) is None:
        return
    tree, place, first = found
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called, said = _resolved(node.func, function.__globals__), ast.unparse(node.func)
        if called in tools:
            write = f"`context.step({said}, …)`"
        elif not (write := _instead(called, _qualified(node.func, called, function.__globals__))):
            continue
        yield f"{place}:{first + node.lineno}: `{said}(…)` is no operation and is repeated in a replay; write {write}"


def _resolved(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the object that an expression such as `time.sleep` names in a module, or None."""
    if isinstance(node, ast.Name):
        return names.get(node.id, getattr(builtins, node.id, None))
    if isinstance(node, ast.Attribute):
        owner = _resolved(node.value, names)
        return getattr(owner, node.attr, None) if isinstance(owner, (ModuleType, type)) else None
    return None


def _qualified(node: ast.expr, called: Any, names: Mapping[str, Any]) -> str:
    """Return the full name of what is called: `time.sleep`, however it was imported."""
    if isinstance(node, ast.Attribute) and isinstance(owner := _resolved(node.value, names), type):
        return f"{owner.__module__}.{owner.__qualname__}.{node.attr}"
    module = getattr(called, "__module__", None) or type(getattr(called, "__self__", None)).__module__
    return f"{module}.{getattr(called, '__name__', '')}"


def _instead(called: Any, name: str) -> str:
    if called is None:
        return ""
    return _TIME.get(name) or _MODULES.get(name.lstrip("_").partition(".")[0], "")
