"""Problems and notes about the code of an application: operations of a workflow function that cannot be
right, calls that do not belong there, and failures that no tool raises.

They are found in its source without running it. What is not found fails when it runs, or when it is replayed.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, signature
from types import ModuleType
from typing import Any

from baton.core.documents.compile import no_such_child
from baton.core.effects.toolspec import STANDARD
from baton.core.expressions import nearest
from baton.core.failures.codes import CLASSES, CODES
from baton.core.failures.policy import ANY
from baton.core.graph.graph import Graph
from baton.ports import StepFailure
from baton.tools.define import Tool, _where
from baton.tools.functions.context import WorkflowContext
from baton.tools.functions.define import ADAPTED, functions_of

KEYWORD = Parameter.POSITIONAL_OR_KEYWORD
_OPTIONS = [
    one.name for one in signature(WorkflowContext.step).parameters.values() if one.kind is one.KEYWORD_ONLY
]

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

_LIBRARIES = {
    "agents.run.Runner": "`Runner` of `baton.compat.openai_agents`",
    "langgraph.pregel.main.Pregel": "`run_graph` and `graph_tool` of `baton.compat.langgraph`",
    "pydantic_ai.agent.Agent": "`Agent(…, capabilities=[BatonDurability()])`",
}
"""Classes of other libraries whose runs are recorded in another way."""
_RUNS = re.compile("(run|iter|a?invoke|a?stream)(_|$)")


_SENDS_CODES = frozenset({"callback", "signal", "update"})
"""Operations whose sender gives the code of a failure."""


_OPERATIONS = frozenset(
    name
    for name, one in vars(WorkflowContext).items()
    if inspect.iscoroutinefunction(one)
    or str(getattr(one, "__annotations__", {}).get("return")).startswith(("Operation", "Callback"))
)
"""Methods of the context whose result is awaited."""
_CHILDREN = ("call", "start")


def function_problems(tool: Tool, registry: Mapping[str, Tool]) -> list[str]:
    """Return the operations in the code of a function that park its saga: their arguments do not fit, there
    is no such tool, or they are never awaited.
    """
    tools = _by_function(registry)
    functions = functions_of(tool.function, tools)
    return [text for function in functions for text in _operation_problems(function, tools, registry)]


def function_notes(
    tool: Tool, registry: Mapping[str, Tool], workflows: Collection[str] | None = None
) -> list[str]:
    """Return a note for each call of time, randomness, the outside or a tool in the code of a function, for
    each child that is not known, and for each failure that it looks for and that its tools cannot raise.

    workflows: the names of those that are known; None: any may be.
    """
    tools = _by_function(registry)
    functions = list(functions_of(tool.function, tools))
    notes = [note for function in functions for note in _notes(function, tools)]
    if workflows is not None:
        notes += [note for function in functions for note in _child_notes(function, workflows)]
    called = [registry[name] for name in tool.spec.calls or ()]
    return [*notes, *_class_notes(functions, called), *_caught_notes(functions, called)]


def _by_function(registry: Mapping[str, Tool]) -> dict[Any, str]:
    return {one.function: name for name, one in registry.items() if one.document is None}


# ---- operations


def _operation_problems(
    function: Any, tools: Mapping[Any, str], registry: Mapping[str, Tool]
) -> Iterator[str]:
    """Yield what is wrong with operations: with their arguments, or that they are not awaited."""
    if (found := _tree(function)) is None:
        return
    tree, place, first = found
    names = [one for one in ast.walk(tree) if isinstance(one, ast.Name)]
    loaded = {one.id for one in names if isinstance(one.ctx, ast.Load)}
    bound = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    bound |= {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    statements = [one for one in ast.walk(tree) if isinstance(one, ast.Assign | ast.Expr)]
    alone = {id(one.value) for one in statements if _is_unused(one, loaded)}
    for node, name in _operations(tree):
        if name in _OPERATIONS and id(node) in alone:
            called = ast.unparse(node.func)
            text = f"`{called}(…)` is never awaited, and the saga parks when the function returns"
            yield f"{place}:{first + node.lineno}: {text}; write `await {called}(…)`"
        takes = list(signature(getattr(WorkflowContext, name)).parameters.values())[1:]
        text = _wrong_arguments(f"context.{name}", takes, node)
        if name == "step" and node.args:
            named = {one.id for one in ast.walk(node.args[0]) if isinstance(one, ast.Name)}
            if not named & bound:
                text = text or _wrong_tool(_tool_of(node.args[0], function, tools), registry, node)
        if text:
            yield f"{place}:{first + node.lineno}: {text}"


def _is_unused(node: ast.Assign | ast.Expr, loaded: Collection[str]) -> bool:
    """Return true for a statement whose value goes nowhere: `f()`, or `x = f()` where nothing reads `x`."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return all(isinstance(one, ast.Name) and one.id not in loaded for one in targets)


def _child_notes(function: Any, workflows: Collection[str]) -> Iterator[str]:
    """Yield a note for each child whose workflow is not known."""
    if (found := _tree(function)) is None:
        return
    tree, place, first = found
    for node, name in _operations(tree):
        if name in _CHILDREN and node.args and isinstance(node.args[0], ast.Constant):
            child = str(node.args[0].value)
            if child.partition("@")[0] not in workflows:
                yield f"{place}:{first + node.lineno}: `{child}`: {no_such_child(child, workflows)}"


def _operations(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls of methods of the context, each with the method's name."""
    contexts = _contexts(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _operation(node, contexts)):
            yield node, name


def _contexts(tree: ast.AST) -> set[str]:
    """Return the names of the parameters that get the context of a workflow function."""
    arguments = [one for one in ast.walk(tree) if isinstance(one, ast.arg) and one.annotation is not None]
    return {
        one.arg for one in arguments if one.annotation and "WorkflowContext" in ast.unparse(one.annotation)
    }


def _operation(node: ast.AST, contexts: Collection[str]) -> str:
    """Return the name of the method of the context that is called; empty for any other code."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner, name = node.func.value, node.func.attr
        if isinstance(owner, ast.Name) and owner.id in contexts:
            return name if inspect.isfunction(vars(WorkflowContext).get(name)) else ""
    return ""


def _tool_of(subject: ast.expr, function: Any, tools: Mapping[Any, str]) -> str | None:
    """Return the name of the tool that an argument of `step` stands for; None if it cannot be seen."""
    if isinstance(subject, ast.Constant):
        return str(subject.value)
    one = _resolved(subject, function.__globals__)
    return tools.get(one) if inspect.isfunction(one) else None


def _wrong_tool(name: str | None, registry: Mapping[str, Tool], call: ast.Call) -> str:
    """Return the mistake in the call of a tool by `step`, empty without one."""
    if name is None:
        return ""
    if name not in registry:
        return _hinted(f"there is no tool `{name}`", nearest(name, registry))
    if registry[name].document is not None:
        return f"`{name}` is a workflow, and no tool; write `context.call(…)`"
    fields = registry[name].parameters.model_fields
    takes = [
        Parameter(one, KEYWORD, default=Parameter.empty if field.is_required() else None)
        for one, field in fields.items()
    ]
    given = [one for one in call.keywords if one.arg not in _OPTIONS or one.arg in fields]
    return _wrong_arguments(name, takes, ast.Call(call.func, call.args[1:], given))


def _wrong_arguments(whose: str, parameters: Sequence[Parameter], call: ast.Call) -> str:
    """Return what is wrong with the arguments of a call, empty if nothing is or it cannot be seen."""
    named = [one.arg for one in call.keywords if one.arg]
    if len(named) < len(call.keywords) or any(isinstance(one, ast.Starred) for one in call.args):
        return ""
    by_place = [one.name for one in parameters if one.kind is KEYWORD]
    takes_more = {one.kind for one in parameters}
    names = [one.name for one in parameters if one.kind in (KEYWORD, Parameter.KEYWORD_ONLY)]
    if len(call.args) > len(by_place) and Parameter.VAR_POSITIONAL not in takes_more:
        return f"`{whose}` takes {len(by_place)} arguments by place, and gets {len(call.args)}"
    given = by_place[: len(call.args)]
    for one in named:
        if one in given:
            return f"`{whose}` gets `{one}` twice"
        if one not in names and Parameter.VAR_KEYWORD not in takes_more:
            return _hinted(f"`{whose}` has no parameter `{one}`", nearest(one, names))
    needed = [one.name for one in parameters if one.default is Parameter.empty and one.name in names]
    missing = [f"`{one}`" for one in needed if one not in (*given, *named)]
    return f"`{whose}` needs {' and '.join(missing)}" if missing else ""


# ---- failures


def _class_notes(functions: Sequence[Any], tools: Sequence[Tool]) -> Iterator[str]:
    """Yield a note for each `except` around operations that names a class which no failure has."""
    of_tools = _raised_in(one for tool in tools for one in functions_of(tool.function, ()))
    of_tools -= _raised_in(functions)
    for function in functions:
        if (found := _tree(function)) is None:
            continue
        tree, place, first = found
        contexts = _contexts(tree)
        for node in (one for one in ast.walk(tree) if isinstance(one, ast.Try)):
            inner = [part for one in node.body for part in ast.walk(one)]
            calls = [_operation(one, contexts) for one in inner if isinstance(one, ast.Call)]
            if not any(calls):
                continue
            is_all = all(calls) and not any(isinstance(one, ast.Raise) for one in inner)
            for handler in node.handlers:
                types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                errors = [_resolved(one, function.__globals__) for one in types if one is not None]
                for error in errors if StepFailure not in errors else ():
                    if _is_own(error) and (is_all or error in of_tools) and not _is_declared(error, tools):
                        yield f"{place}:{first + handler.lineno}: {_NEVER.format(error.__name__, _code_for(error))}"


_NEVER = (
    'no operation raises `{0}`, but `StepFailure`; write `raises={{{0}: "{1}"}}` at the tool, or '
    '`baton.raises({{{0}: "{1}"}})` in the module, and `except {0}` catches it'
)


def _hinted(text: str, hint: str) -> str:
    return f"{text}; {hint}" if hint else text


def _is_own(error: Any) -> bool:
    """Return true for a class of errors of an application or a library that is no class of failures."""
    return (
        isinstance(error, type)
        and issubclass(error, Exception)
        and error.__module__.partition(".")[0] not in ("builtins", "asyncio", "baton")
        and not issubclass(error, StepFailure)
    )


def _is_declared(error: type, tools: Sequence[Tool]) -> bool:
    return any(issubclass(one, error) for tool in tools for one in tool.codes)


def _code_for(error: type) -> str:
    """Return the code that a class of errors would have by its name: `card_declined`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", error.__name__.removesuffix("Error") or "error").lower()


def _raised_in(functions: Iterable[Any]) -> set[Any]:
    """Return the classes of errors that stand behind `raise` in the code of functions."""
    found = set()
    for function in functions:
        tree = _tree(function)
        for node in ast.walk(tree[0]) if tree is not None else ():
            if isinstance(node, ast.Raise) and node.exc is not None:
                raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                found.add(_resolved(raised, function.__globals__))
    return {one for one in found if _is_own(one)}


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
    classes = _raised_in(one for tool in tools for one in functions_of(tool.function, ()))
    without = {_code_for(one): one.__name__ for one in classes if not _is_declared(one, tools)}
    for function in functions:
        for line, code in _compared(function):
            if code in CODES or code in declared or code in raised:
                continue
            hint = nearest(code, {*declared, *known, *CODES})
            if error := without.get(code):
                hint = f'write `raises={{{error}: "{code}"}}` at the tool that raises `{error}`'
            yield _hinted(f"{line}: no tool of the function raises the code `{code}`", hint)


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
    if (tree := _syntax(function)) is None:
        return None
    place = _where(function).rpartition(":")[0].rpartition(", ")[2]
    return tree, place, function.__code__.co_firstlineno - 1


@lru_cache(maxsize=256)  # each of the checks looks at the same functions
def _syntax(function: Any) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return None


def _notes(function: Any, tools: Mapping[Any, str]) -> Iterator[str]:
    if (found := _tree(function)) is None:
        return
    tree, place, first = found
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        names, said = function.__globals__, ast.unparse(node.func)
        called = _resolved(node.func, names)
        write = f"`context.step({said}, …)`" if called in tools else ""
        write = write or _instead(called, _qualified(node.func, called, names)) or _adapted(node.func, names)
        if not write:
            continue
        yield f"{place}:{first + node.lineno}: `{said}(…)` is no operation and is repeated in a replay; write {write}"


def _adapted(node: ast.expr, names: Mapping[str, Any]) -> str:
    """Return what runs an agent or a graph of a library durably; empty for what it runs so, or for others."""
    if not isinstance(node, ast.Attribute) or not _RUNS.match(node.attr):
        return ""
    owner = _resolved(node.value, names)
    if id(owner) in ADAPTED:
        return ""
    classes = (owner if isinstance(owner, type) else type(owner)).__mro__
    found = (_LIBRARIES.get(f"{one.__module__}.{one.__qualname__}", "") for one in classes)
    return next(filter(None, found), "")


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
