"""Amazon States Language: paths ($.a[0], $$.Map.Item.Value), intrinsic functions and payload templates. Pure.

Only what the local interpreter offers (see asl.py); anything else is an `AslProblem` when it is read.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']+)'\]|\[(\d+)\]")
_CALL = re.compile(r"States\.(\w+)\((.*)\)", re.DOTALL)
_MISSING = object()


class AslProblem(ValueError):
    """The definition is wrong, or uses something that is not interpreted locally."""


class PathFailed(Exception):
    """A path or intrinsic function does not fit the data (States.ParameterPathFailure, States.Runtime)."""


def _steps(path: str) -> list[str | int]:
    if not path.startswith("$"):
        raise AslProblem(f"{path!r} is not a path: it must start with $")
    rest, steps = path.lstrip("$"), list[str | int]()
    while rest:
        match = _STEP.match(rest)
        if match is None:
            raise AslProblem(
                f"path {path!r}: {rest!r} is not interpreted locally (only .name, ['name'] and [0])"
            )
        steps.append(int(match[3]) if match[3] is not None else match[1] or match[2])
        rest = rest[match.end() :]
    return steps


def check_path(path: str) -> None:
    """Raises `AslProblem` unless `select` can read it."""
    _steps(path)


def select(path: str, data: Any, context: Mapping[str, Any]) -> Any:
    """The value at `path` in the state's data, or for `$$` in the execution's context."""
    value: Any = context if path.startswith("$$") else data
    for step in _steps(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            raise PathFailed(f"the path {path} finds nothing in {json.dumps(data)[:300]}") from None
    return value


def place(path: str | None, data: Any, result: Any) -> Any:
    """ResultPath: where the result goes in the input; null discards it, `$` replaces everything."""
    if path is None:
        return data
    steps = _steps(path)
    if not steps:
        return result
    whole = copy.deepcopy(data)
    node = whole
    for index, step in enumerate(steps):
        if not isinstance(node, dict) or not isinstance(step, str):
            raise PathFailed(f"ResultPath {path} does not fit the input")
        if index == len(steps) - 1:
            node[step] = result
        else:
            node = node.setdefault(step, {})
    return whole


def check_template(template: Any) -> None:
    """Raises `AslProblem` unless `fill` can evaluate it."""
    if isinstance(template, list):
        for item in template:
            check_template(item)
    elif isinstance(template, dict):
        for key, value in template.items():
            if not key.endswith(".$"):
                check_template(value)
            elif not isinstance(value, str):
                raise AslProblem(f"{key}: must be a path or an intrinsic function")
            elif value.startswith("States."):
                _parse_call(value)
            else:
                check_path(value)


def fill(template: Any, data: Any, context: Mapping[str, Any]) -> Any:
    """A payload template (Parameters, ItemSelector, ResultSelector) with its `.$` fields evaluated."""
    if isinstance(template, list):
        return [fill(item, data, context) for item in template]
    if not isinstance(template, dict):
        return template
    filled = {}
    for key, value in template.items():
        if key.endswith(".$"):
            filled[key.removesuffix(".$")] = _evaluate(value, data, context)
        else:
            filled[key] = fill(value, data, context)
    return filled


# ---- intrinsic functions


def _array_range(first: int, last: int, step: int) -> list[int]:
    if step == 0:
        raise PathFailed("States.ArrayRange: the step must not be 0")
    numbers = list(range(first, last + (1 if step > 0 else -1), step))
    if len(numbers) > 1000:
        raise PathFailed("States.ArrayRange: more than 1,000 elements")
    return numbers


def _format(pattern: str, *values: Any) -> str:
    parts = pattern.split("{}")
    if len(parts) != len(values) + 1:
        raise PathFailed(f"States.Format: {len(parts) - 1} places for {len(values)} values")
    shown = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "".join(part + value for part, value in zip(parts, [*shown, ""], strict=True))


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Array": lambda *values: list(values),
    "ArrayLength": len,
    "ArrayRange": _array_range,
    "Format": _format,
    "JsonToString": lambda value: json.dumps(value, separators=(",", ":")),
    "MathAdd": lambda left, right: left + right,
    "StringToJson": json.loads,
}


def _parse_call(source: str) -> tuple[str, list[str]]:
    match = _CALL.fullmatch(source.strip())
    if match is None:
        raise AslProblem(f"{source!r} is not an intrinsic function")
    name, arguments = match[1], _split(match[2])
    if name not in _FUNCTIONS:
        known = ", ".join(f"States.{known}" for known in _FUNCTIONS)
        raise AslProblem(f"States.{name} is not interpreted locally (known: {known})")
    for argument in arguments:
        if argument.startswith("States."):
            _parse_call(argument)
        elif argument.startswith("$"):
            check_path(argument)
        elif _literal(argument) is _MISSING:
            raise AslProblem(f"{source!r}: {argument!r} is neither a path nor a literal")
    return name, arguments


def _split(source: str) -> list[str]:
    """At the commas that are in no parentheses and in no quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for index, letter in enumerate(source):
        if letter == "'" and source[index - 1 : index] != "\\":
            quoted = not quoted
        elif not quoted and letter in "([":
            depth += 1
        elif not quoted and letter in ")]":
            depth -= 1
        elif letter == "," and not quoted and not depth:
            parts.append(source[start:index].strip())
            start = index + 1
    parts.append(source[start:].strip())
    return [part for part in parts if part]


def _literal(source: str) -> Any:
    if len(source) >= 2 and source[0] == source[-1] == "'":
        return re.sub(r"\\(.)", r"\1", source[1:-1])
    try:
        return json.loads(source)
    except ValueError:
        return _MISSING


def _evaluate(source: str, data: Any, context: Mapping[str, Any]) -> Any:
    if source.startswith("$"):
        return select(source, data, context)
    if not source.startswith("States."):
        return _literal(source)
    name, arguments = _parse_call(source)
    values = [_evaluate(argument, data, context) for argument in arguments]
    try:
        return _FUNCTIONS[name](*values)
    except (TypeError, ValueError) as error:
        raise PathFailed(f"{source}: {error}") from error
