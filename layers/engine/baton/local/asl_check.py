"""Checks a state machine's definition against the subset that asl.py interprets, before anything runs.

Every state, field and path is looked at; the first that is wrong or unknown is named with its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.local.asl_paths import AslProblem, check_path, check_template
from baton.local.problems import nearest

LAMBDA_INVOKE = "arn:aws:states:::lambda:invoke"
_MACHINE = {"Comment", "StartAt", "States", "TimeoutSeconds", "Version", "QueryLanguage", "ProcessorConfig"}
_COMMON = {"Type", "Comment", "Next", "End", "InputPath", "OutputPath"}
_RESULT = {"ResultPath", "ResultSelector", "Retry", "Catch"}
_FIELDS: Mapping[str, set[str]] = {
    "Pass": _COMMON | {"Result", "ResultPath", "Parameters"},
    "Task": _COMMON | _RESULT | {"Resource", "Parameters", "TimeoutSeconds"},
    "Map": _COMMON
    | _RESULT
    | {"ItemsPath", "ItemSelector", "Parameters", "MaxConcurrency", "ItemProcessor", "Iterator"},
    "Parallel": _COMMON | _RESULT | {"Branches", "Parameters"},
    "Succeed": _COMMON - {"Next", "End"},
    "Fail": {"Type", "Comment", "Error", "Cause"},
}
_RETRIER = {
    "ErrorEquals",
    "IntervalSeconds",
    "MaxAttempts",
    "BackoffRate",
    "MaxDelaySeconds",
    "JitterStrategy",
    "Comment",
}
_CATCHER = {"ErrorEquals", "Next", "ResultPath", "Comment"}


def check_machine(machine: Any, where: str = "") -> None:
    """Raises `AslProblem`; `where` leads to a machine inside a Map or Parallel."""
    if not isinstance(machine, dict) or not isinstance(machine.get("States"), dict):
        raise AslProblem(f"{where or 'the definition'}: has no States")
    _known(machine, _MACHINE, where or "the definition")
    if machine.get("QueryLanguage", "JSONPath") != "JSONPath":
        raise AslProblem(
            f"{where or 'the definition'}: only the query language JSONPath is interpreted locally"
        )
    if (machine.get("ProcessorConfig") or {}).get("Mode", "INLINE") != "INLINE":
        raise AslProblem(f"{where}: only INLINE maps are interpreted locally")
    states = machine["States"]
    _target(machine.get("StartAt"), states, f"{where}StartAt")
    for name, state in states.items():
        _check_state(state, states, f"{where}{name}")


def functions_of(machine: Mapping[str, Any]) -> list[str]:
    """The functions that the machine's tasks name, at any depth; those chosen at run time are not known."""
    found = []
    for state in machine["States"].values():
        if state["Type"] == "Task":
            name = state["Resource"]
            if name == LAMBDA_INVOKE:
                name = state["Parameters"].get("FunctionName")
            found += [name] if name else []
        inner = state.get("ItemProcessor", state.get("Iterator"))
        for part in [*([inner] if inner else []), *state.get("Branches", ())]:
            found += functions_of(part)
    return found


def _check_state(state: Any, states: Mapping[str, Any], where: str) -> None:
    kind = str(state.get("Type")) if isinstance(state, dict) else ""
    if kind not in _FIELDS:
        raise AslProblem(f"{where}: the type {kind} is not interpreted locally (known: {', '.join(_FIELDS)})")
    _known(state, _FIELDS[kind], where)
    if kind not in {"Succeed", "Fail"} and not state.get("End"):
        _target(state.get("Next"), states, f"{where}.Next")
    _check_data_flow(state, where)
    for retrier in state.get("Retry", ()):
        _known(retrier, _RETRIER, f"{where}.Retry")
    for catcher in state.get("Catch", ()):
        _known(catcher, _CATCHER, f"{where}.Catch")
        _target(catcher.get("Next"), states, f"{where}.Catch.Next")
    if kind == "Task":
        _check_resource(state, where)
    if kind == "Map":
        check_machine(state.get("ItemProcessor", state.get("Iterator")), f"{where}/")
    if kind == "Parallel":
        for index, branch in enumerate(state.get("Branches", ())):
            check_machine(branch, f"{where}[{index}]/")


def _check_data_flow(state: Mapping[str, Any], where: str) -> None:
    for key in ("InputPath", "OutputPath", "ResultPath", "ItemsPath"):
        if state.get(key) is not None:
            _try(check_path, state[key], f"{where}.{key}")
    for key in ("Parameters", "ResultSelector", "ItemSelector"):
        if key in state:
            _try(check_template, state[key], f"{where}.{key}")


def _check_resource(state: Mapping[str, Any], where: str) -> None:
    resource = str(state.get("Resource", ""))
    if ":lambda:" in resource and ":function:" in resource:
        return
    if resource != LAMBDA_INVOKE:
        raise AslProblem(f"{where}.Resource: {resource!r}: only Lambda functions are invoked locally")
    if not {"FunctionName", "FunctionName.$"} & set(state.get("Parameters") or {}):
        raise AslProblem(f"{where}.Parameters: lambda:invoke needs a FunctionName")


def _known(node: Mapping[str, Any], fields: set[str], where: str) -> None:
    for key in node:
        if key not in fields:
            raise AslProblem(f"{where}: {key} is not interpreted locally{nearest(key, fields)}")


def _target(name: Any, states: Mapping[str, Any], where: str) -> None:
    if name not in states:
        raise AslProblem(f"{where}: there is no state {name}{nearest(str(name), states)}")


def _try(check: Any, value: Any, where: str) -> None:
    try:
        check(value)
    except AslProblem as error:
        raise AslProblem(f"{where}: {error}") from None
