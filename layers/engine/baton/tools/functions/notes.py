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
from collections.abc import Iterator, Mapping
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


def function_notes(tool: Tool, registry: Mapping[str, Tool]) -> list[str]:
    """Return a note for each call of time, randomness, the outside or a tool in the code of a function."""
    tools = {one.function: name for name, one in registry.items() if one.document is None}
    return [note for function in functions_of(tool.function, tools) for note in _notes(function, tools)]


def code_notes(graph: Graph, registry: Mapping[str, Tool]) -> Iterator[str]:
    """Yield a note for each code in a `catch` or a rule of a node that its tools cannot raise."""
    for node in (node for one in (graph, *graph.graphs.values()) for node in one.work):
        named = dict.fromkeys([*(code for rule in node.catch for code in rule.codes), *node.failures])
        codes = [one for one in named if one not in CODES and one not in CLASSES and one != ANY]
        tools = [registry[one] for one in (node.tool, *(way.tool for way in node.ways)) if one in registry]
        if not codes or not tools:
            continue
        declared = {code for tool in tools for code, _ in (*tool.shared.values(), *tool.raises.values())}
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


def _notes(function: Any, tools: Mapping[Any, str]) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return  # there is no source to read
    place = _where(function).rpartition(":")[0].rpartition(", ")[2]
    first = function.__code__.co_firstlineno - 1
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
