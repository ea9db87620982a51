"""Runs schedules: at each period, starts what the schedule targets (a state machine, or a function).

What a state machine does is in asl.py. Executions may overlap, as with EventBridge Scheduler.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from baton.local.functions.lambdas import Lambdas
from baton.local.functions.pool import Throttled
from baton.local.processes.problems import LocalRunError, TemplateProblem
from baton.local.processes.records import Trigger
from baton.local.processes.tasks import Tasks
from baton.local.sources.asl import AslProblem, Interpreter, TaskFailed
from baton.local.template.declared import Schedule, StateMachine

log = logging.getLogger("baton.local")
Start = Callable[[Any], Coroutine[Any, Any, None]]


def task_invoker(lambdas: Lambdas, trigger: Trigger = "schedule") -> Callable[[str, Any], Awaitable[Any]]:
    """How a Task state calls a function: its result, or `TaskFailed` with the name Step Functions gives it."""

    async def invoke(reference: str, event: Any) -> Any:
        try:
            result = await lambdas.invoke(reference, event, trigger)
        except Throttled:
            raise TaskFailed("Lambda.TooManyRequestsException", "Rate Exceeded.") from None
        document = result.document()
        if result.ok:
            return document
        kind = document.get("errorType", "Lambda.Unknown") if isinstance(document, dict) else "Lambda.Unknown"
        raise TaskFailed(kind, json.dumps(document))

    return invoke


def machine_starter(machine: StateMachine, lambdas: Lambdas) -> Start:
    """Runs one execution to its end; a failure is logged, because no caller waits for the result."""
    try:
        interpreter = Interpreter(machine.definition, task_invoker(lambdas), express=machine.express)
    except AslProblem as error:
        raise TemplateProblem(machine.logical_id, str(error)) from error
    for reference in interpreter.functions:
        try:
            lambdas.find(reference)
        except LocalRunError as error:
            raise TemplateProblem(machine.logical_id, str(error)) from error

    async def start(payload: Any) -> None:
        began = time.monotonic()
        try:
            await interpreter.run(payload)
        except TaskFailed as error:
            log.error("%s: execution failed: %s", machine.logical_id, error)
        else:
            log.debug("%s: execution took %.0f ms", machine.logical_id, (time.monotonic() - began) * 1000)

    return start


def starter_of(schedule: Schedule, machines: Mapping[str, Start], lambdas: Lambdas) -> Start:
    """What the schedule's target means. Raises `TemplateProblem` for a target that is not run locally."""
    if schedule.target_arn in machines:
        return machines[schedule.target_arn]
    try:
        function = lambdas.find(schedule.target_arn).function.logical_id
    except LocalRunError:
        raise TemplateProblem(
            schedule.logical_id,
            f"the target {schedule.target_arn} is neither a state machine nor a function of this template",
        ) from None

    async def start(payload: Any) -> None:
        lambdas.submit(function, json.dumps(payload).encode())

    return start


async def run_schedule(schedule: Schedule, start: Start, period_s: float | None = None) -> None:
    """Until cancelled; the first time after one period, which `period_s` may shorten."""
    loop = asyncio.get_running_loop()
    period = schedule.period_s if period_s is None else period_s
    due, running = loop.time(), Tasks(schedule.logical_id)
    try:
        while True:
            due += period
            await asyncio.sleep(due - loop.time())
            running.start(start(schedule.payload))
    finally:
        running.cancel()
