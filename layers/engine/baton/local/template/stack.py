"""Reads functions, event sources, schedules and state machines out of the resolved template.

A property that changes what a function would see and is not known here is refused loudly, with its place.
What comes out is in declared.py; the HTTP API has a file of its own (see http_api.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baton.local.processes.problems import TemplateProblem, nearest
from baton.local.template.declared import (
    EventRule,
    Function,
    QueueSource,
    Schedule,
    StateMachine,
    StreamSource,
)
from baton.local.template.filter_pattern import Filters, InvalidPattern
from baton.local.template.resolve import Resolver, text
from baton.local.template.template import Template

_RATE = re.compile(r"rate\(\s*(\d+)\s+(minute|hour|day)s?\s*\)")
_SECONDS = {"minute": 60, "hour": 3600, "day": 86400}
# How often EventBridge tries to invoke a function, and where an event goes in vain, is of no consequence: here it always can.
_TARGET = {"Id", "Arn", "DeadLetterConfig", "RetryPolicy"}
_PARTIAL = "ReportBatchItemFailures"


class Stack:
    """Reads the whole template at once, after provisioning, so that every physical id is known."""

    def __init__(self, template: Template, resolver: Resolver) -> None:
        self._template = template
        self._resolver = resolver
        self._queue_urls = {
            resolver.attribute(logical_id, "Arn", logical_id): resolver.ref(logical_id, logical_id)
            for logical_id in self.present("AWS::SQS::Queue")
        }
        self._layers = {
            resolver.ref(logical_id, logical_id): self._code(logical_id, "Content")
            for logical_id in self.present("AWS::Lambda::LayerVersion")
        }
        self.functions = {f: self._function(f) for f in self.present("AWS::Lambda::Function")}
        self.machines = [self._machine(m) for m in self.present("AWS::StepFunctions::StateMachine")]
        self.schedules = [
            schedule
            for schedule in map(self._schedule, self.present("AWS::Scheduler::Schedule"))
            if schedule is not None
        ]
        self.queues: list[QueueSource] = []
        self.streams: list[StreamSource] = []
        for logical_id in self.present("AWS::Lambda::EventSourceMapping"):
            self._event_source(logical_id)
        rules = map(self._rule, self.present("AWS::Events::Rule"))
        self.rules = [rule for rule in rules if rule is not None]

    def present(self, kind: str) -> list[str]:
        """Logical ids of the resources of that type whose condition holds."""
        return [i for i, _ in self._template.of_type(kind) if self._resolver.exists(i)]

    def function_of(self, reference: str, where: str) -> str:
        """The logical id behind a function's name or ARN (with or without a qualifier)."""
        for function in self.functions.values():
            if reference == function.name or (reference + ":").startswith(function.arn + ":"):
                return function.logical_id
        names = [function.name for function in self.functions.values()]
        raise TemplateProblem(where, f"there is no function {reference}{nearest(reference, names)}")

    # ---- functions

    def _code(self, logical_id: str, section: str) -> Path:
        code = self._resolver.properties(logical_id).get(section) or {}
        if "S3Key" not in code:
            raise TemplateProblem(logical_id, "only code from a local folder can be run")
        return self._template.local_path(logical_id, code["S3Key"])

    def _function(self, logical_id: str) -> Function:
        properties = self._resolver.properties(logical_id)
        runtime = text(properties.get("Runtime", ""))
        if not runtime.startswith("python"):
            raise TemplateProblem(
                logical_id, f"Runtime {runtime or '(none)'}: only python can be run locally"
            )
        layers = []
        for reference in properties.get("Layers", []):
            if reference not in self._layers:
                raise TemplateProblem(logical_id, f"the layer {reference} is not part of this template")
            layers.append(self._layers[reference])
        variables = (properties.get("Environment") or {}).get("Variables") or {}
        environment = {key: text(value) for key, value in variables.items()}
        logging = properties.get("LoggingConfig") or {}
        if logging.get("LogFormat") == "JSON":
            environment["AWS_LAMBDA_LOG_FORMAT"] = "JSON"
            environment["AWS_LAMBDA_LOG_LEVEL"] = text(logging.get("ApplicationLogLevel", "INFO"))
        if logging.get("LogGroup"):
            environment["AWS_LAMBDA_LOG_GROUP_NAME"] = text(logging["LogGroup"])
        reserved = properties.get("ReservedConcurrentExecutions")
        return Function(
            logical_id=logical_id,
            name=self._resolver.name(logical_id),
            arn=self._resolver.attribute(logical_id, "Arn", logical_id),
            handler=text(properties["Handler"]),
            code=self._code(logical_id, "Code"),
            layers=tuple(layers),
            deployed=tuple(self._layers.values()),
            timeout_s=int(properties.get("Timeout", 3)),
            memory_mb=int(properties.get("MemorySize", 128)),
            runtime=runtime,
            environment=environment,
            reserved=None if reserved is None else int(reserved),
            **self._event_invocations(logical_id),
        )

    def _event_invocations(self, function: str) -> dict[str, Any]:
        for logical_id in self.present("AWS::Lambda::EventInvokeConfig"):
            properties = self._resolver.properties(logical_id)
            if properties.get("FunctionName") not in (
                self._resolver.name(function),
                self._resolver.attribute(function, "Arn", function),
            ):
                continue
            return {
                "retries": int(properties.get("MaximumRetryAttempts", 2)),
                "event_age_s": int(properties.get("MaximumEventAgeInSeconds", 6 * 3600)),
                "on_failure_url": self._on_failure(logical_id, properties),
            }
        return {}

    def _on_failure(self, logical_id: str, properties: Mapping[str, Any]) -> str:
        destinations = properties.get("DestinationConfig") or {}
        if destinations.get("OnSuccess"):
            raise TemplateProblem(logical_id, "destinations on success are not run locally")
        arn = (destinations.get("OnFailure") or {}).get("Destination", "")
        return self._queue(logical_id, arn) if arn else ""

    def _queue(self, logical_id: str, arn: str) -> str:
        if arn not in self._queue_urls:
            raise TemplateProblem(logical_id, f"{arn} is not an SQS queue of this template")
        return str(self._queue_urls[arn])

    # ---- event sources

    def _event_source(self, logical_id: str) -> None:
        properties = self._resolver.properties(logical_id)
        if text(properties.get("Enabled", True)) != "true":
            return
        arn = text(properties.get("EventSourceArn", ""))
        if arn in self._queue_urls:
            self.queues.append(self._queue_source(logical_id, arn, properties))
        elif ":dynamodb:" in arn and "/stream/" in arn:
            self.streams.append(self._stream_source(logical_id, arn, properties))
        else:
            raise TemplateProblem(
                logical_id,
                f"{arn or 'no EventSourceArn'}: only SQS queues and DynamoDB streams are polled locally",
            )

    def _filters(self, logical_id: str, properties: Mapping[str, Any]) -> Filters:
        patterns = [text(f["Pattern"]) for f in (properties.get("FilterCriteria") or {}).get("Filters", [])]
        try:
            return Filters(patterns)
        except InvalidPattern as error:
            raise TemplateProblem(f"{logical_id}.FilterCriteria", str(error)) from error

    def _partial(self, logical_id: str, properties: Mapping[str, Any]) -> bool:
        types = properties.get("FunctionResponseTypes") or []
        if set(types) - {_PARTIAL}:
            raise TemplateProblem(logical_id, f"FunctionResponseTypes may only hold {_PARTIAL}")
        return _PARTIAL in types

    def _queue_source(self, logical_id: str, arn: str, properties: Mapping[str, Any]) -> QueueSource:
        function = self.function_of(text(properties["FunctionName"]), logical_id)
        queue = next(
            q for q in self.present("AWS::SQS::Queue")
            if self._resolver.attribute(q, "Arn", logical_id) == arn
        )  # fmt: skip
        visibility = int(self._resolver.properties(queue).get("VisibilityTimeout", 30))
        timeout_s = self.functions[function].timeout_s
        if visibility < timeout_s:
            # Lambda refuses to create such a mapping; so the deployment would fail, too.
            raise TemplateProblem(
                queue, f"VisibilityTimeout {visibility} is less than the Timeout of {function} ({timeout_s})"
            )
        batch_size = int(properties.get("BatchSize", 10))
        window_s = float(properties.get("MaximumBatchingWindowInSeconds", 0))
        if batch_size > 10 and window_s < 1:
            raise TemplateProblem(
                logical_id, "BatchSize above 10 needs MaximumBatchingWindowInSeconds of 1 or more"
            )
        if arn.endswith(".fifo"):
            raise TemplateProblem(logical_id, "FIFO queues are not polled locally")
        concurrency = (properties.get("ScalingConfig") or {}).get("MaximumConcurrency")
        if concurrency is not None and not 2 <= int(concurrency) <= 1000:
            raise TemplateProblem(logical_id, "MaximumConcurrency must be from 2 to 1000")
        return QueueSource(
            logical_id=logical_id,
            function=function,
            arn=arn,
            url=self._queue(logical_id, arn),
            batch_size=batch_size,
            window_s=window_s,
            partial=self._partial(logical_id, properties),
            concurrency=None if concurrency is None else int(concurrency),
            filters=self._filters(logical_id, properties),
        )

    def _stream_source(self, logical_id: str, arn: str, properties: Mapping[str, Any]) -> StreamSource:
        start = text(properties.get("StartingPosition", ""))
        if start not in {"TRIM_HORIZON", "LATEST"}:
            raise TemplateProblem(logical_id, "StartingPosition must be TRIM_HORIZON or LATEST")
        if properties.get("TumblingWindowInSeconds"):
            raise TemplateProblem(logical_id, "tumbling windows are not run locally")
        retries = int(properties.get("MaximumRetryAttempts", -1))
        age = float(properties.get("MaximumRecordAgeInSeconds", -1))
        return StreamSource(
            logical_id=logical_id,
            function=self.function_of(text(properties["FunctionName"]), logical_id),
            arn=arn,
            batch_size=int(properties.get("BatchSize", 100)),
            window_s=float(properties.get("MaximumBatchingWindowInSeconds", 0)),
            partial=self._partial(logical_id, properties),
            start=start,
            bisect=text(properties.get("BisectBatchOnFunctionError", False)) == "true",
            parallel=int(properties.get("ParallelizationFactor", 1)),
            retries=None if retries < 0 else retries,
            max_age_s=None if age < 0 else age,
            on_failure_url=self._on_failure(logical_id, properties),
            filters=self._filters(logical_id, properties),
        )

    def _rule(self, logical_id: str) -> EventRule | None:
        properties = self._resolver.properties(logical_id)
        if properties.get("State", "ENABLED") != "ENABLED":
            return None
        if "ScheduleExpression" in properties:
            raise TemplateProblem(
                logical_id,
                "rules with a schedule are not run; use AWS::Scheduler::Schedule (SAM: ScheduleV2)",
            )
        functions = []
        for target in properties.get("Targets") or []:
            if unknown := sorted(target.keys() - _TARGET):
                raise TemplateProblem(f"{logical_id}.Targets", f"{', '.join(unknown)} is not applied locally")
            if aside := (target.get("DeadLetterConfig") or {}).get("Arn"):
                self._queue(logical_id, aside)
            functions.append(self.function_of(text(target["Arn"]), logical_id))
        return EventRule(
            logical_id=logical_id,
            bus=text(properties.get("EventBusName", "default")).rpartition("event-bus/")[2],
            pattern=json.dumps(properties.get("EventPattern") or {}),
            functions=tuple(functions),
        )

    # ---- schedules and state machines

    def _machine(self, logical_id: str) -> StateMachine:
        properties = self._resolver.properties(logical_id)
        location = properties.get("DefinitionS3Location")
        if location:
            path = self._template.local_path(logical_id, location["Key"])
            source, name = path.read_text("utf-8"), path.name
        else:
            definition = properties.get("DefinitionString") or properties.get("Definition") or ""
            source = definition if isinstance(definition, str) else json.dumps(definition)
            name = "its definition"
        for key, value in (properties.get("DefinitionSubstitutions") or {}).items():
            source = source.replace("${" + key + "}", text(value))
        left = re.search(r"\$\{[A-Za-z0-9_]+\}", source)
        if left:
            raise TemplateProblem(logical_id, f"{name}: DefinitionSubstitutions has no {left[0]}")
        try:
            parsed = json.loads(source)
        except ValueError as error:
            raise TemplateProblem(logical_id, f"{name} is not valid JSON: {error}") from error
        return StateMachine(
            logical_id=logical_id,
            arn=self._resolver.attribute(logical_id, "Arn", logical_id),
            definition=parsed,
            express=properties.get("StateMachineType") == "EXPRESS",
        )

    def _schedule(self, logical_id: str) -> Schedule | None:
        properties = self._resolver.properties(logical_id)
        if properties.get("State", "ENABLED") != "ENABLED":
            return None
        expression = text(properties.get("ScheduleExpression", ""))
        rate = _RATE.fullmatch(expression)
        if rate is None:
            raise TemplateProblem(
                logical_id,
                f"ScheduleExpression {expression!r}: only rate(N minutes|hours|days) is run locally",
            )
        target = properties.get("Target") or {}
        given = target.get("Input")
        return Schedule(
            logical_id=logical_id,
            period_s=float(int(rate[1]) * _SECONDS[rate[2]]),
            target_arn=text(target.get("Arn", "")),
            payload=json.loads(given) if given else {},
        )
