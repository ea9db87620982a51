"""The part of the Amazon States Language that statemachine/reconcile.asl.json uses: Pass, Task (Lambda) and Map.

A definition is checked as a whole when it is loaded. What is not known here is refused, never skipped.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from baton.local.processes.problems import nearest

# Invokes a Lambda function by its ARN; raises `TaskFailed`.
InvokeFunction = Callable[[str, Any], Awaitable[Any]]
_EXPRESS_LIMIT_S = 300.0
_MACHINE = {"Comment", "StartAt", "States", "TimeoutSeconds", "ProcessorConfig"}
_COMMON = {"Type", "Comment", "Next", "End"}
_FIELDS: Mapping[str, set[str]] = {
    "Pass": _COMMON | {"Parameters"},
    "Task": _COMMON | {"Resource", "Parameters", "TimeoutSeconds", "Retry", "Catch"},
    "Map": _COMMON | {"ItemsPath", "ItemSelector", "MaxConcurrency", "ItemProcessor", "ResultPath"},
}
_RETRIER = {"ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "JitterStrategy"}
_CATCHER = {"ErrorEquals", "Next"}
_PATH = re.compile(r"\$(\.[A-Za-z_]\w*)*")
_ITEM = "$$.Map.Item.Value"
_RANGE = re.compile(r"States\.ArrayRange\((\d+), (\d+), ([1-9]\d*)\)")


class AslProblem(ValueError):
    """The definition is wrong, or uses something that is not interpreted locally."""


class TaskFailed(Exception):
    """A state failed: `error` is the name that Retry and Catch match on."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(f"{error}: {cause}")
        self.error, self.cause = error, cause


class Interpreter:
    """One state machine. `functions` are those its tasks invoke. Raises `AslProblem` for what it cannot do."""

    def __init__(
        self,
        definition: Mapping[str, Any],
        invoke: InvokeFunction,
        *,
        express: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.functions = list(_checked_machine(definition, ""))
        self._definition = definition
        self._invoke, self._sleep, self._jitter = invoke, sleep, jitter
        self._limit_s = definition.get("TimeoutSeconds")
        if express:
            self._limit_s = min(self._limit_s or _EXPRESS_LIMIT_S, _EXPRESS_LIMIT_S)

    async def run(self, data: Any) -> Any:
        """One execution; its output. Raises `TaskFailed` for an error that no state caught."""
        try:
            async with asyncio.timeout(self._limit_s):
                return await self._machine(self._definition, data)
        except TimeoutError:
            raise TaskFailed("States.Timeout", f"the execution took longer than {self._limit_s} s") from None

    async def _machine(self, machine: Mapping[str, Any], data: Any) -> Any:
        name = machine["StartAt"]
        while name is not None:
            state = machine["States"][name]
            name = state.get("Next")
            if state["Type"] == "Map":
                data = await self._map(state, data)
            elif state["Type"] == "Task":
                data, name = await self._guarded(state, data)
            else:
                data = _given(state.get("Parameters"), data, data)
        return data

    async def _guarded(self, state: Mapping[str, Any], data: Any) -> tuple[Any, str | None]:
        """A Task with its retries: what it gives on, and the state that comes next."""
        used = [0] * len(state.get("Retry", ()))
        while True:
            try:
                return await self._task(state, data), state.get("Next")
            except TaskFailed as failed:
                delay_s = self._retry_after(state.get("Retry", ()), used, failed)
                if delay_s is None:
                    for catcher in state.get("Catch", ()):
                        if _matches(catcher["ErrorEquals"], failed.error):
                            return {"Error": failed.error, "Cause": failed.cause}, catcher["Next"]
                    raise
            await self._sleep(delay_s)

    def _retry_after(
        self, retriers: Sequence[Mapping[str, Any]], used: list[int], failed: TaskFailed
    ) -> float | None:
        for index, retrier in enumerate(retriers):
            if not _matches(retrier["ErrorEquals"], failed.error):
                continue
            if used[index] >= retrier.get("MaxAttempts", 3):
                return None
            delay_s = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** used[index]
            used[index] += 1
            return float(delay_s * (self._jitter() if retrier.get("JitterStrategy") == "FULL" else 1))
        return None

    async def _task(self, state: Mapping[str, Any], data: Any) -> Any:
        limit_s = state.get("TimeoutSeconds")
        try:
            async with asyncio.timeout(limit_s):
                return await self._invoke(state["Resource"], _given(state.get("Parameters"), data, data))
        except TimeoutError:
            raise TaskFailed("States.Timeout", f"the task took longer than {limit_s} s") from None

    async def _map(self, state: Mapping[str, Any], data: Any) -> Any:
        slots = asyncio.Semaphore(state.get("MaxConcurrency") or 40)

        async def one(item: Any) -> Any:
            async with slots:
                given = _given(state.get("ItemSelector"), data, item)
                return await self._machine(state["ItemProcessor"], given)

        items = _value(state.get("ItemsPath", "$"), data, None)
        if not isinstance(items, list):
            raise TaskFailed("States.Runtime", f"ItemsPath {state.get('ItemsPath', '$')} is not a list")
        tasks = [asyncio.ensure_future(one(item)) for item in items]
        try:
            results = list(await asyncio.gather(*tasks))
        finally:  # the first failure stops the rest, as in Step Functions
            for task in tasks:
                task.cancel()
        return data if "ResultPath" in state else results


def _matches(names: Sequence[str], error: str) -> bool:
    if "States.ALL" in names or error in names:
        return True
    return "States.TaskFailed" in names and error != "States.Timeout"


# ---- payload templates


def _given(template: Mapping[str, Any] | None, data: Any, item: Any) -> Any:
    """What Parameters or an ItemSelector makes of the state's input; without either, the item itself."""
    if template is None:
        return item
    return {
        key.removesuffix(".$"): _value(value, data, item) if key.endswith(".$") else value
        for key, value in template.items()
    }


def _value(source: str, data: Any, item: Any) -> Any:
    if source == _ITEM:
        return item
    if numbers := _RANGE.fullmatch(source):
        first, last, step = map(int, numbers.groups())
        return list(range(first, last + 1, step))
    value = data
    for name in source.split(".")[1:]:
        if not isinstance(value, dict) or name not in value:
            raise TaskFailed("States.Runtime", f"the path {source} finds nothing in the state's input")
        value = value[name]
    return value


# ---- what is refused


def _checked_machine(machine: Any, where: str) -> Iterator[str]:
    """The functions that its tasks invoke. Raises `AslProblem`; `where` leads to the machine inside a Map."""
    if not isinstance(machine, dict) or not isinstance(machine.get("States"), dict):
        raise AslProblem(f"{where or 'the definition'}: has no States")
    _known(machine, _MACHINE, where or "the definition")
    if (machine.get("ProcessorConfig") or {}).get("Mode", "INLINE") != "INLINE":
        raise AslProblem(f"{where}: only INLINE maps are interpreted locally")
    states = machine["States"]
    _target(machine.get("StartAt"), states, f"{where}StartAt")
    for name, state in states.items():
        yield from _checked_state(state, states, f"{where}{name}")


def _checked_state(state: Any, states: Mapping[str, Any], where: str) -> Iterator[str]:
    kind = str(state.get("Type")) if isinstance(state, dict) else ""
    if kind not in _FIELDS:
        raise AslProblem(f"{where}: the type {kind} is not interpreted locally (known: {', '.join(_FIELDS)})")
    _known(state, _FIELDS[kind], where)
    if not state.get("End"):
        _target(state.get("Next"), states, f"{where}.Next")
    for key, value in state.get("Parameters", {}).items():
        _check_field(key, value, f"{where}.Parameters.{key}")
    for key, value in state.get("ItemSelector", {}).items():
        if value != _ITEM:
            _check_field(key, value, f"{where}.ItemSelector.{key}")
    for retrier in state.get("Retry", ()):
        _known(retrier, _RETRIER, f"{where}.Retry")
    for catcher in state.get("Catch", ()):
        _known(catcher, _CATCHER, f"{where}.Catch")
        _target(catcher.get("Next"), states, f"{where}.Catch.Next")
    if kind == "Task":
        if ":function:" not in str(state.get("Resource")):
            raise AslProblem(f"{where}.Resource: only Lambda functions are invoked locally, by their ARN")
        yield state["Resource"]
    if kind == "Map":
        _check_expression(state.get("ItemsPath", "$"), f"{where}.ItemsPath")
        if state.get("ResultPath") is not None:
            raise AslProblem(f"{where}.ResultPath: only null is interpreted locally")
        yield from _checked_machine(state.get("ItemProcessor"), f"{where}/")


def _check_field(key: str, value: Any, where: str) -> None:
    if key.endswith(".$"):
        _check_expression(value, where)
    elif isinstance(value, (dict, list)):
        raise AslProblem(f"{where}: only strings, numbers, true, false and null are interpreted locally")


def _check_expression(source: Any, where: str) -> None:
    if not isinstance(source, str) or not (_PATH.fullmatch(source) or _RANGE.fullmatch(source)):
        raise AslProblem(
            f"{where}: {source!r} is not interpreted locally"
            f" (known: $.name, States.ArrayRange(0, 3, 1), and {_ITEM} in an ItemSelector)"
        )


def _known(node: Mapping[str, Any], fields: set[str], where: str) -> None:
    for key in node:
        if key not in fields:
            raise AslProblem(f"{where}: {key} is not interpreted locally{nearest(key, fields)}")


def _target(name: Any, states: Mapping[str, Any], where: str) -> None:
    if name not in states:
        raise AslProblem(f"{where}: there is no state {name}{nearest(str(name), states)}")
