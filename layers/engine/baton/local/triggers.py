"""Schedules and rules of the event bus, and the subset of Amazon States Language in
statemachine/reconcile.asl.json.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from baton.local.aws import ACCOUNT, Aws
from baton.local.functions import Lambdas, Throttled
from baton.local.processes import LocalRunError, Tasks, TemplateProblem, Trigger, nearest
from baton.local.stack import EventRule, Schedule, StateMachine
from baton.local.template import arn_of

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
    """Error for a definition that is wrong or not supported locally."""


class TaskFailed(Exception):
    """Error of a state. `error` is the name that Retry and Catch match."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(f"{error}: {cause}")
        self.error, self.cause = error, cause


class Interpreter:
    """A state machine. `functions`: those its tasks invoke. Raises `AslProblem` if unsupported."""

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
        """Run one execution and return its output. Raises `TaskFailed` for an error that no state caught."""
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
        """Run a Task with its retries, and return its output and the next state."""
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
    """Return the input that Parameters or an ItemSelector make of the state's, else the item."""
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
    """Yield the functions that tasks invoke. Raises `AslProblem`; `where`: the path inside a Map."""
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


log = logging.getLogger("baton.local")
Start = Callable[[Any], Coroutine[Any, Any, None]]


def task_invoker(lambdas: Lambdas, trigger: Trigger = "schedule") -> Callable[[str, Any], Awaitable[Any]]:
    """Return the invoker of Task states. It raises `TaskFailed` with the name of Step Functions."""

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
    """Return a starter that runs one execution to its end, and logs its failure."""
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
    """Return the starter of the schedule's target. Raises `TemplateProblem` if unsupported here."""
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
    """Run until cancelled, the first time after one period, which `period_s` may shorten."""
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


bus_log = logging.getLogger("baton.local.bus")
_EVERYTHING = json.dumps({"account": [ACCOUNT]})
_LONG_POLL_S = 2
_OWN = "baton"  # the source of notices of the deployment itself, which no rule need take


def buses_of(rules: Sequence[EventRule], lambdas: Lambdas, aws: Aws) -> list[EventBus]:
    """Return one bus for each bus name in the rules."""
    names = sorted({rule.bus for rule in rules})
    return [
        EventBus(name, f"baton-bus-{n}", [r for r in rules if r.bus == name], lambdas, aws)
        for n, name in enumerate(names)
    ]


class EventBus:
    """An event bus. `queue` is the name of its queue; `rules` are those on this bus."""

    def __init__(self, name: str, queue: str, rules: Sequence[EventRule], lambdas: Lambdas, aws: Aws) -> None:
        self._name, self._queue, self._rules = name, queue, rules
        self._lambdas, self._aws = lambdas, aws
        self._url = ""

    async def open(self) -> None:
        """Create bus, rules and queue. Raises `TemplateProblem` for a rule that the embedded AWS refuses."""
        await asyncio.to_thread(self._create)

    def _create(self) -> None:
        events, where = self._aws.events, self._rules[0].logical_id
        try:
            if self._name != "default":
                events.create_event_bus(Name=self._name)
            for rule in self._rules:
                where = rule.logical_id
                events.put_rule(Name=where, EventBusName=self._name, EventPattern=rule.pattern)
            self._url = self._aws.sqs.create_queue(QueueName=self._queue)["QueueUrl"]
            events.put_rule(Name=self._queue, EventBusName=self._name, EventPattern=_EVERYTHING)
            targets = [{"Id": "relay", "Arn": arn_of("AWS::SQS::Queue", self._queue)}]
            events.put_targets(Rule=self._queue, EventBusName=self._name, Targets=targets)
        except (ClientError, BotoCoreError) as error:
            raise TemplateProblem(where, f"could not be created: {error}") from error

    async def run(self) -> None:
        """Run until cancelled. A failed event is delivered again once its message is visible again."""
        receive: Callable[..., Any] = self._aws.sqs.receive_message
        delete: Callable[..., Any] = self._aws.sqs.delete_message
        while True:
            try:
                answer = await self._aws.call(
                    receive, QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=_LONG_POLL_S
                )
                for message in answer.get("Messages", []):
                    await self._hand_on(message["Body"])
                    await self._aws.call(delete, QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
            except (ClientError, BotoCoreError) as error:
                bus_log.warning("bus %s: handing on failed: %s", self._name, error)
                await asyncio.sleep(1)

    async def _hand_on(self, body: str) -> None:
        event = json.loads(body)
        said = f"bus {self._name}: the event {event['id']}"
        if refusal := refusal_of(event):
            bus_log.warning("%s is not handed on: in a deployment PutEvents answers %s", said, refusal)
            return
        matches: Callable[..., Any] = self._aws.events.test_event_pattern
        taken = False
        for rule in self._rules:
            answer = await self._aws.call(matches, EventPattern=rule.pattern, Event=body)
            if answer["Result"]:
                taken = True
                for function in rule.functions:
                    self._lambdas.submit(function, body.encode())
        if not taken and event["source"] != _OWN:
            takes = ", ".join(f"{rule.logical_id} {rule.pattern}" for rule in self._rules)
            kind = f"source {event['source']}, detail-type {event['detail-type']}"
            bus_log.warning("%s (%s) fits no rule: %s", said, kind, takes)


def refusal_of(event: Mapping[str, Any]) -> str:
    """Return EventBridge's error code for an entry that the embedded AWS accepts, empty for none."""
    if not event["source"] or not event["detail-type"]:
        return "InvalidArgument: Source and DetailType are required"
    if not isinstance(event["detail"], dict):
        return "MalformedDetail: Detail has to be the text of a JSON object"
    return ""
