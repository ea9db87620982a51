"""The resources that template.yaml declares, as plain values for the local run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baton.local.processes import TemplateProblem, nearest
from baton.local.template import Resolver, Template, scalar_text

_MUST_EXIST = '[{"exists": true}]'


class InvalidPattern(ValueError):
    """Error for a pattern that is invalid or not supported locally. The message names the place."""


class Filters:
    """Filter criteria. A record passes if a pattern matches, or if there are none."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [_parse(pattern) for pattern in patterns]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, record: Mapping[str, Any]) -> bool:
        return not self._patterns or any(_matches(pattern, record) for pattern in self._patterns)


def _parse(source: str) -> Mapping[str, Any]:
    try:
        pattern: Mapping[str, Any] = json.loads(source)
    except ValueError as error:
        raise InvalidPattern(f"the pattern is not valid JSON: {error}") from error
    _check(pattern, "$")
    return pattern


def _check(pattern: Any, where: str) -> None:
    if not isinstance(pattern, dict) or not pattern:
        said = json.dumps(pattern)
        raise InvalidPattern(f"{where}: {said} is not applied locally (known: fields, and {_MUST_EXIST})")
    for key, node in pattern.items():
        if json.dumps(node) != _MUST_EXIST:
            _check(node, f"{where}.{key}")


def _matches(pattern: Mapping[str, Any], value: Any) -> bool:
    """Return true if the value matches. Only leaves exist; an object does not, as in EventBridge."""
    if not isinstance(value, Mapping):
        return False
    return all(
        _matches(node, value.get(key))
        if isinstance(node, dict)
        else key in value and not isinstance(value[key], Mapping)
        for key, node in pattern.items()
    )


@dataclass(frozen=True)
class Function:
    """A function. `reserved` is the reserved concurrency; `retries` and `event_age_s` apply to `Event`
    invocations. `deployed` contains all existing layers.
    """

    logical_id: str
    name: str
    arn: str
    handler: str
    code: Path
    layers: tuple[Path, ...]
    timeout_s: int
    memory_mb: int
    runtime: str
    environment: Mapping[str, str]
    reserved: int | None = None
    retries: int = 2
    event_age_s: int = 6 * 3600
    on_failure_url: str = ""
    deployed: tuple[Path, ...] = ()


@dataclass(frozen=True)
class QueueSource:
    """An event source mapping of an SQS queue. `concurrency` None: as many as processes."""

    logical_id: str
    function: str
    arn: str
    url: str
    batch_size: int
    window_s: float
    partial: bool
    concurrency: int | None
    filters: Filters


@dataclass(frozen=True)
class StreamSource:
    """An event source mapping of a DynamoDB stream. `retries` and `max_age_s` None: unlimited."""

    logical_id: str
    function: str
    arn: str
    batch_size: int
    window_s: float
    partial: bool
    start: str
    bisect: bool
    parallel: int
    retries: int | None
    max_age_s: float | None
    on_failure_url: str
    filters: Filters


@dataclass(frozen=True)
class EventRule:
    """A rule on an EventBridge bus. `pattern` is JSON; `functions` are the targets."""

    logical_id: str
    bus: str
    pattern: str
    functions: tuple[str, ...]


@dataclass(frozen=True)
class StateMachine:
    logical_id: str
    arn: str
    definition: Mapping[str, Any]
    express: bool


@dataclass(frozen=True)
class Schedule:
    logical_id: str
    period_s: float
    target_arn: str
    payload: Any


_RATE = re.compile(r"rate\(\s*(\d+)\s+(minute|hour|day)s?\s*\)")
_SECONDS = {"minute": 60, "hour": 3600, "day": 86400}
# How often EventBridge tries to invoke a function, and where an event goes in vain, is of no consequence: here it always can.
_TARGET = {"Id", "Arn", "DeadLetterConfig", "RetryPolicy"}
_PARTIAL = "ReportBatchItemFailures"


class Stack:
    """Resources of the template, read after provisioning, so that every physical id is known."""

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
        """Return the logical ids of the resources of that type whose condition holds."""
        return [i for i, _ in self._template.of_type(kind) if self._resolver.exists(i)]

    def function_of(self, reference: str, where: str) -> str:
        """Return the logical id of a function's name or ARN (with or without a qualifier)."""
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
        runtime = scalar_text(properties.get("Runtime", ""))
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
        environment = {key: scalar_text(value) for key, value in variables.items()}
        logging = properties.get("LoggingConfig") or {}
        if logging.get("LogFormat") == "JSON":
            environment["AWS_LAMBDA_LOG_FORMAT"] = "JSON"
            environment["AWS_LAMBDA_LOG_LEVEL"] = scalar_text(logging.get("ApplicationLogLevel", "INFO"))
        if logging.get("LogGroup"):
            environment["AWS_LAMBDA_LOG_GROUP_NAME"] = scalar_text(logging["LogGroup"])
        reserved = properties.get("ReservedConcurrentExecutions")
        return Function(
            logical_id=logical_id,
            name=self._resolver.name(logical_id),
            arn=self._resolver.attribute(logical_id, "Arn", logical_id),
            handler=scalar_text(properties["Handler"]),
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
        if scalar_text(properties.get("Enabled", True)) != "true":
            return
        arn = scalar_text(properties.get("EventSourceArn", ""))
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
        patterns = [
            scalar_text(f["Pattern"]) for f in (properties.get("FilterCriteria") or {}).get("Filters", [])
        ]
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
        function = self.function_of(scalar_text(properties["FunctionName"]), logical_id)
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
        start = scalar_text(properties.get("StartingPosition", ""))
        if start not in {"TRIM_HORIZON", "LATEST"}:
            raise TemplateProblem(logical_id, "StartingPosition must be TRIM_HORIZON or LATEST")
        if properties.get("TumblingWindowInSeconds"):
            raise TemplateProblem(logical_id, "tumbling windows are not run locally")
        retries = int(properties.get("MaximumRetryAttempts", -1))
        age = float(properties.get("MaximumRecordAgeInSeconds", -1))
        return StreamSource(
            logical_id=logical_id,
            function=self.function_of(scalar_text(properties["FunctionName"]), logical_id),
            arn=arn,
            batch_size=int(properties.get("BatchSize", 100)),
            window_s=float(properties.get("MaximumBatchingWindowInSeconds", 0)),
            partial=self._partial(logical_id, properties),
            start=start,
            bisect=scalar_text(properties.get("BisectBatchOnFunctionError", False)) == "true",
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
            functions.append(self.function_of(scalar_text(target["Arn"]), logical_id))
        return EventRule(
            logical_id=logical_id,
            bus=scalar_text(properties.get("EventBusName", "default")).rpartition("event-bus/")[2],
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
            source = source.replace("${" + key + "}", scalar_text(value))
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
        expression = scalar_text(properties.get("ScheduleExpression", ""))
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
            target_arn=scalar_text(target.get("Arn", "")),
            payload=json.loads(given) if given else {},
        )


_HEADER = re.compile(r"\$request\.header\.([\w-]+)", re.IGNORECASE)
_DEFAULT_TIMEOUT_MS = 30_000


@dataclass(frozen=True)
class Authorizer:
    """Issuer and audience of the tokens, and the header (lower case) that contains them."""

    issuer: str
    audiences: tuple[str, ...]
    header: str


@dataclass(frozen=True)
class Route:
    """Route with a `method` or ANY, and a `path` with {name} and {name+}. The default has neither."""

    key: str
    function: str
    timeout_s: float
    authorizer: Authorizer | None
    scopes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        return self.key.split(" ", 1)[0] if " " in self.key else "ANY"

    @property
    def path(self) -> str:
        return self.key.split(" ", 1)[1] if " " in self.key else ""


@dataclass(frozen=True)
class HttpApi:
    """The HTTP API. `rate` (per second) and `burst`: 0 for none. `throttles`: by route.

    `origins`: their pages may call it from a browser. `cors`: the headers of answers to them.
    """

    logical_id: str
    routes: tuple[Route, ...]
    rate: float = 0.0
    burst: int = 0
    throttles: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    origins: frozenset[str] = frozenset()
    cors: Mapping[str, str] = field(default_factory=dict)


def read_http_api(stack: Stack, resolver: Resolver) -> HttpApi | None:
    """Return the template's HTTP API, or None. Raises `TemplateProblem`, also for several."""
    apis = stack.present("AWS::ApiGatewayV2::Api")
    if len(apis) > 1:
        raise TemplateProblem(apis[1], f"one HTTP API can be run locally, and {apis[0]} is one already")
    if not apis:
        return None
    api = apis[0]
    if "Body" in resolver.properties(api):
        raise TemplateProblem(
            api, "an OpenAPI body (SAM: HttpApi) is not run locally; use AWS::ApiGatewayV2::Api and ::Route"
        )

    def parts(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for logical_id in stack.present(f"AWS::ApiGatewayV2::{kind}"):
            properties = resolver.properties(logical_id)
            if properties.get("ApiId") == resolver.ref(api, logical_id):
                yield logical_id, properties

    integrations = {
        scalar_text(resolver.ref(part, part)): _integration(stack, part, properties)
        for part, properties in parts("Integration")
    }
    authorizers = {
        scalar_text(resolver.ref(part, part)): _authorizer(part, properties)
        for part, properties in parts("Authorizer")
    }
    routes = [_route(part, properties, integrations, authorizers) for part, properties in parts("Route")]
    limits: Mapping[str, Any] = {}
    own: Mapping[str, Any] = {}
    for part, properties in parts("Stage"):
        if properties.get("StageName") != "$default":
            raise TemplateProblem(part, "only the stage $default is run locally")
        limits, own = (properties.get(name) or {} for name in ("DefaultRouteSettings", "RouteSettings"))
        if unknown := own.keys() - {route.key for route in routes}:
            raise TemplateProblem(part, f"RouteSettings: there is no route {min(unknown)}")
    rate, burst = _throttle(limits)
    return HttpApi(
        logical_id=api,
        routes=tuple(routes),
        rate=rate,
        burst=burst,
        throttles={key: _throttle(settings) for key, settings in own.items()},
        **_cors(resolver.properties(api).get("CorsConfiguration") or {}),
    )


def _cors(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the origins of a CORS configuration, and the headers that their pages get."""
    names = {
        "AllowMethods": "access-control-allow-methods",
        "AllowHeaders": "access-control-allow-headers",
        "ExposeHeaders": "access-control-expose-headers",
    }
    headers = {
        header: ",".join(map(scalar_text, given[key])) for key, header in names.items() if key in given
    }
    return {"origins": frozenset(map(scalar_text, given.get("AllowOrigins", ()))), "cors": headers}


def _throttle(settings: Mapping[str, Any]) -> tuple[float, int]:
    return float(settings.get("ThrottlingRateLimit", 0)), int(settings.get("ThrottlingBurstLimit", 0))


def _integration(stack: Stack, where: str, properties: Mapping[str, Any]) -> tuple[str, float]:
    """Return the function of an integration, and its timeout in seconds."""
    kind, payload = properties.get("IntegrationType"), properties.get("PayloadFormatVersion")
    if scalar_text(kind) != "AWS_PROXY":
        raise TemplateProblem(where, f"integration type {kind}: only AWS_PROXY is run locally")
    if scalar_text(payload) != "2.0":
        raise TemplateProblem(where, f"payload format {payload}: only 2.0 is run locally")
    function = stack.function_of(scalar_text(properties.get("IntegrationUri", "")), where)
    return function, float(properties.get("TimeoutInMillis", _DEFAULT_TIMEOUT_MS)) / 1000


def _authorizer(where: str, properties: Mapping[str, Any]) -> Authorizer:
    if properties.get("AuthorizerType") != "JWT":
        raise TemplateProblem(where, "only JWT authorizers are run locally")
    source = (properties.get("IdentitySource") or [""])[0]
    header = _HEADER.fullmatch(source)
    if header is None:
        raise TemplateProblem(where, f"IdentitySource {source!r}: only $request.header.NAME is run locally")
    tokens = properties.get("JwtConfiguration") or {}
    return Authorizer(
        scalar_text(tokens.get("Issuer", "")),
        tuple(map(scalar_text, tokens.get("Audience", ()))),
        header[1].lower(),
    )


def _route(
    where: str,
    properties: Mapping[str, Any],
    integrations: Mapping[str, tuple[str, float]],
    authorizers: Mapping[str, Authorizer],
) -> Route:
    target = scalar_text(properties.get("Target", "")).removeprefix("integrations/")
    if target not in integrations:
        raise TemplateProblem(
            where, f"Target: there is no integration {target}{nearest(target, integrations)}"
        )
    kind = properties.get("AuthorizationType", "NONE")
    if kind not in {"NONE", "JWT"}:
        raise TemplateProblem(
            where, f"AuthorizationType {kind} is not run locally; choose JWT by the template's parameters"
        )
    function, timeout_s = integrations[target]
    return Route(
        key=scalar_text(properties["RouteKey"]),
        function=function,
        timeout_s=timeout_s,
        authorizer=authorizers[properties["AuthorizerId"]] if kind == "JWT" else None,
        scopes=tuple(properties.get("AuthorizationScopes", ())),
    )
