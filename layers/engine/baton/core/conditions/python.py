"""Conditions in Python: the question for the sandbox, and the verdict from its answer.

The question contains no more data than the condition names. The function never runs here; the sandbox is
behind a port.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import msgspec

from baton.core.conditions import model
from baton.core.conditions.model import (
    ERROR,
    INVALID,
    MISSING,
    ConditionError,
    Facts,
    Fault,
    Python,
    SandboxQuestion,
    Unanswered,
)
from baton.core.conditions.reading import gather, path_of, value_of
from baton.core.conditions.values import measure
from baton.core.expressions import ExpressionError, Path

_SHAPE = "write `def evaluate(output, context):`"


@lru_cache(maxsize=model.PLANS)
def code_fault(code: str) -> tuple[str, str]:
    """Return message and suggestion for a fault in the source of a function; empty if there is none."""
    if len(code) > model.CODE_LENGTH:
        return f"the function has more than {model.CODE_LENGTH} characters", "let a tool do it"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(code).body
    except SyntaxError as error:
        return f"not Python: line {error.lineno}: {error.msg}", ""
    except (ValueError, RecursionError, MemoryError):
        return "not Python: it cannot be parsed", ""
    found = [part for part in body if isinstance(part, ast.FunctionDef) and part.name == "evaluate"]
    if not found:
        return "there is no function `evaluate`", _SHAPE
    arguments = found[-1].args
    takes = len(arguments.posonlyargs) + len(arguments.args)
    if takes != 2 or any(default is None for default in arguments.kw_defaults):
        return "`evaluate` takes `output` and `context`", _SHAPE
    return "", ""


def faults(condition: Python) -> list[Fault]:
    """Return the faults of the condition."""
    found = []
    message, suggestion = ("", "") if condition.ref else code_fault(condition.code)
    if not message and find_spec("pydantic_monty") is None:
        message, suggestion = "conditions in Python are not installed", model.need("pydantic-monty")
    if message:
        found.append(Fault("python", message, suggestion))
    places = [("of", condition.of), *((f"needs/{i}", text) for i, text in enumerate(condition.needs))]
    taken: dict[str, str] = {}
    for place, text in places:
        try:
            path = path_of(text)
        except ExpressionError as error:
            found.append(Fault(place, str(error)))
            continue
        if place == "of":
            continue
        if not all(isinstance(step, str) for step in path.inner):
            found.append(
                Fault(place, f"`{text}`: no items here", "name the list, and take the item in the function")
            )
        name = path.node or path.root
        if taken.setdefault(name, path.root) != path.root:
            found.append(Fault(place, f"`context` would have two meanings of `{name}`", "rename the node"))
    return found


def names(condition: Python) -> tuple[Path, ...]:
    """Return the paths that the condition reads."""
    return tuple(dict.fromkeys(map(path_of, (condition.of, *condition.needs))))


def sandbox_question(condition: Python, facts: Facts) -> SandboxQuestion:
    """Return the question for the sandbox. Raises `ConditionError` if a value or the function is missing."""
    code: Any = condition.code
    if condition.ref:
        if condition.ref not in facts.blobs:
            raise ConditionError(MISSING, f"the function {condition.ref} is not there")
        code = facts.blobs[condition.ref]
        message = code_fault(code)[0] if isinstance(code, str) else "not a text"
        if message:
            raise ConditionError(INVALID, f"{condition.ref}: {message}")
    output = value_of(condition.of, facts.lookup)
    context = _context(condition, facts)
    measure([output, context])
    data = msgspec.json.encode({"output": output, "context": context})
    return _asked(code, data, condition)


def _asked(code: str, data: bytes, condition: Python) -> SandboxQuestion:
    """Return a question with its key. Equal questions have one key, and so one answer."""
    whole = [code, hashlib.sha256(data).hexdigest(), condition.timeout_ms, condition.memory_mb]
    key = hashlib.sha256(msgspec.json.encode(whole)).hexdigest()
    return SandboxQuestion(
        key=key, code=code, data=data, timeout_ms=condition.timeout_ms, memory_mb=condition.memory_mb
    )


def _context(condition: Python, facts: Facts) -> dict[str, Any]:
    """Return the nodes by name, and all other values by root: `context["search"]["output"]`,
    `context["input"]`.
    """
    paths = [path_of(text) for text in condition.needs]
    for text in condition.needs:  # whatever is left out below, is missed here
        value_of(text, facts.lookup)
    found = gather(paths, facts.lookup)
    nodes: dict[str, Any] = found.pop("ctx", {})
    return {**nodes, **found}


def judge(condition: Python, facts: Facts) -> bool:
    """Return the verdict of the sandbox. Raises `Unanswered` until there is one, and `ConditionError` if
    the function failed.
    """
    asked = sandbox_question(condition, facts)
    answer = facts.answers.get(asked.key)
    if answer is None:
        raise Unanswered(frozenset([asked]))
    if answer.value is None:
        raise ConditionError(answer.code or ERROR, answer.message or "the function failed")
    return answer.value
