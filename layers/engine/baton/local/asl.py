"""A small interpreter of the Amazon States Language: Pass, Task (Lambda), Map, Parallel, Succeed and Fail.

A definition is checked as a whole when it is loaded; a state or field that is not known here is refused,
never skipped. Paths and payload templates are in asl_paths.py, calling functions is injected.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from baton.local.asl_check import LAMBDA_INVOKE, check_machine
from baton.local.asl_paths import PathFailed, fill, place, select

# Invokes a Lambda function by ARN or name; raises `TaskFailed`.
InvokeFunction = Callable[[str, Any], Awaitable[Any]]
_EXPRESS_LIMIT_S = 300.0


class TaskFailed(Exception):
    """A state failed: `error` is the name that Retry and Catch match on."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(f"{error}: {cause}")
        self.error, self.cause = error, cause


class Interpreter:
    """One state machine. Raises `AslProblem` if the definition holds anything it cannot do."""

    def __init__(
        self,
        definition: Mapping[str, Any],
        invoke: InvokeFunction,
        *,
        express: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        check_machine(definition)
        self._definition = definition
        self._invoke, self._sleep, self._jitter = invoke, sleep, jitter
        self._limit_s = definition.get("TimeoutSeconds")
        if express:
            self._limit_s = min(self._limit_s or _EXPRESS_LIMIT_S, _EXPRESS_LIMIT_S)

    async def run(self, data: Any, execution_id: str = "") -> Any:
        """One execution; its output. Raises `TaskFailed` for an error that nothing caught."""
        context = {"Execution": {"Id": execution_id, "Input": data}}
        try:
            async with asyncio.timeout(self._limit_s):
                return await self._machine(self._definition, data, context)
        except TimeoutError:
            raise TaskFailed("States.Timeout", f"the execution took longer than {self._limit_s} s") from None

    async def _machine(self, machine: Mapping[str, Any], data: Any, context: Mapping[str, Any]) -> Any:
        name = machine["StartAt"]
        while True:
            state = machine["States"][name]
            here = {**context, "State": {"Name": name}}
            data, following = await self._guarded(state, data, here)
            if following is None:
                return data
            name = following

    # ---- one state: with retries, catchers and the paths around it

    async def _guarded(
        self, state: Mapping[str, Any], data: Any, context: Mapping[str, Any]
    ) -> tuple[Any, str | None]:
        used = [0] * len(state.get("Retry", ()))
        while True:
            try:
                output = await self._state(state, data, context)
            except (TaskFailed, PathFailed) as error:
                failed = error if isinstance(error, TaskFailed) else TaskFailed("States.Runtime", str(error))
                delay_s = self._retry_after(state.get("Retry", ()), used, failed)
                if delay_s is not None:
                    await self._sleep(delay_s)
                    continue
                for catcher in state.get("Catch", ()):
                    if _matches(catcher["ErrorEquals"], failed.error):
                        report = {"Error": failed.error, "Cause": failed.cause}
                        return place(catcher.get("ResultPath", "$"), data, report), catcher["Next"]
                raise failed from error
            ends = state.get("End") or state["Type"] == "Succeed"
            return output, None if ends else state["Next"]

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
            delay_s = min(delay_s, retrier.get("MaxDelaySeconds", delay_s))
            return float(delay_s * (self._jitter() if retrier.get("JitterStrategy") == "FULL" else 1))
        return None

    async def _state(self, state: Mapping[str, Any], data: Any, context: Mapping[str, Any]) -> Any:
        given = _path(state.get("InputPath", "$"), data, context)
        kind = state["Type"]
        if kind == "Fail":
            raise TaskFailed(state.get("Error", ""), state.get("Cause", ""))
        if kind == "Map":
            result = await self._map(state, given, context)
        else:
            arguments = fill(state["Parameters"], given, context) if "Parameters" in state else given
            if kind == "Task":
                result = await self._task(state, arguments)
            elif kind == "Parallel":
                result = await self._parallel(state, arguments, context)
            else:
                result = state.get("Result", arguments)
        if "ResultSelector" in state:
            result = fill(state["ResultSelector"], result, context)
        return _path(
            state.get("OutputPath", "$"), place(state.get("ResultPath", "$"), given, result), context
        )

    async def _task(self, state: Mapping[str, Any], arguments: Any) -> Any:
        limit_s = state.get("TimeoutSeconds")
        try:
            async with asyncio.timeout(limit_s):
                if state["Resource"] != LAMBDA_INVOKE:
                    return await self._invoke(state["Resource"], arguments)
                payload = await self._invoke(arguments["FunctionName"], arguments.get("Payload", {}))
                return {"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": 200}
        except TimeoutError:
            raise TaskFailed("States.Timeout", f"the task took longer than {limit_s} s") from None

    async def _map(self, state: Mapping[str, Any], given: Any, context: Mapping[str, Any]) -> Any:
        items = select(state.get("ItemsPath", "$"), given, context)
        if not isinstance(items, list):
            raise TaskFailed("States.Runtime", f"ItemsPath {state.get('ItemsPath', '$')} is not a list")
        selector = state.get("ItemSelector", state.get("Parameters"))
        machine = state.get("ItemProcessor", state.get("Iterator"))
        assert machine is not None, "checked when it was loaded"
        slots = asyncio.Semaphore(state.get("MaxConcurrency") or 40)

        async def one(index: int, item: Any) -> Any:
            here = {**context, "Map": {"Item": {"Index": index, "Value": item}}}
            async with slots:
                chosen = item if selector is None else fill(selector, given, here)
                return await self._machine(machine, chosen, here)

        return await _all([one(index, item) for index, item in enumerate(items)])

    async def _parallel(self, state: Mapping[str, Any], given: Any, context: Mapping[str, Any]) -> Any:
        return await _all([self._machine(branch, given, context) for branch in state["Branches"]])


async def _all(works: Sequence[Awaitable[Any]]) -> list[Any]:
    """All results in order; the first failure stops the rest, as in Step Functions."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def _matches(names: Sequence[str], error: str) -> bool:
    if "States.ALL" in names or error in names:
        return True
    return "States.TaskFailed" in names and error != "States.Timeout"


def _path(path: str | None, data: Any, context: Mapping[str, Any]) -> Any:
    return {} if path is None else select(path, data, context)
