"""Connection of ports to adapters, with one factory per Lambda function.

Objects created here live as long as the process. Clients that a function's first invocation needs are created
here, because Lambda provides a whole processor before it. Other clients are created on first use.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from baton import settings
from baton.adapters.aws import Aws, later
from baton.adapters.clock import SystemClock, SystemEntropy, SystemMeter, SystemWatchdog, thread_pulse
from baton.adapters.discreet import add_secret_filter
from baton.adapters.dynamo.items import image_wake
from baton.adapters.dynamo.store import DynamoStore
from baton.adapters.http_client import LazyHttpClient
from baton.adapters.queues import LambdaBuilds, LambdaDeployedBuilds, LambdaInvoker, SqsDeadLetters, SqsQueue
from baton.adapters.s3 import S3Blobs, S3Objects
from baton.adapters.ses_mailer import SesMailer
from baton.core import deployment
from baton.core.effects.toolspec import Grants, ToolSpec
from baton.core.limits import ON, Limits
from baton.ports import Notices, Performer, Rates, StepContext, StepFailure, ThreadStore
from baton.ports.outside import HttpAnswer, HttpClient, HttpRequest
from baton.runtime.invocation.context import Threads

if TYPE_CHECKING:
    from baton.adapters.credentials import Credentials
    from baton.adapters.models.deployed import DeployedModels
    from baton.ports.store import Store
    from baton.runtime.dead_letters import LetterCollector
    from baton.runtime.engine.parts import Engine
    from baton.runtime.mending import PinnedBuild
    from baton.runtime.reconcile import Reconciler
    from baton.runtime.relay import Relay
    from baton.runtime.worker.worker import Worker
    from baton.tools.standard import Services

__all__ = [
    "image_wake",
    "look_at_builds",
    "make_api",
    "make_reconciler",
    "make_relay",
    "make_signer",
    "make_worker",
    "models_without_background",
    "models_without_price",
    "thread_store",
]


# Conditions in Python that run at a time in one process: each may have 256 MB of a worker's memory.
AT_ONCE = 2
BUILDS_AT_ONCE = 8  # invocations of earlier code that an invocation waits for
_KEYS_AT_ONCE = 4  # credentials of a kind that are read at a time


class _NoTools:
    """The performer of functions that run no steps."""

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        raise StepFailure("tool_missing", f"this function runs no tools, not even `{tool}`")


def _store(aws: Aws, config: settings.Settings) -> Store:
    index = config.facts.partition(" ")[2] if isinstance(config, deployment.Remembering) else ""
    vectors = (later(lambda: aws.s3vectors), index) if index else None
    return DynamoStore(aws.dynamodb, config.table, config.shards, config.cell, config.status_shards, vectors)


def _engine(
    aws: Aws,
    store: Store,
    blobs: S3Blobs,
    config: settings.Settings,
    performer: Performer,
    tools: Mapping[str, ToolSpec],
) -> Engine:
    # Relay and reconciler open no saga: what only a log needs is not for them.
    from baton.adapters.monty_sandbox import MontySandbox
    from baton.runtime.engine.parts import Engine

    _log_to_stdout(config.log_level)
    engine = Engine.on(
        store,
        blobs,
        SystemClock(),
        Limits.of(config),
        entropy=SystemEntropy(),
        offload=Threads(),
        performer=performer,
        sandbox=MontySandbox(Threads(AT_ONCE)),
        tools=tools,
        # Only a worker tells people; the others show and resolve the incidents it has kept.
        notices=_channels(aws, config) if isinstance(config, settings.WorkerSettings) else (),
    )
    return replace(engine, meter=SystemMeter())


def _channels(aws: Aws, config: settings.WorkerSettings) -> Sequence[Notices]:
    """Return the channels that notify people.

    Channels that are not set up are not imported, and no client is created before its use. The topic comes
    first, because incidents are opened with its claims.
    """
    from baton.adapters.channels.sns import SnsNotices

    channels: list[Notices] = [SnsNotices(later(lambda: aws.sns), config.notices_topic)]
    if config.mail_from and (config.mail_to or config.group_mail_to):
        from baton.adapters.channels.aws import MailNotices

        mailer = SesMailer(later(lambda: aws.sesv2))
        channels.append(MailNotices(mailer, config.mail_from, config.mail_to, config.group_mail_to))
    if config.webhook_url:
        from baton.adapters.channels.webhook import WebhookNotices

        hosts, closed = config.http_hosts.split(), [settings.runtime_api()]
        try:
            hook = WebhookNotices(
                config.webhook_url, config.webhook_secret, lambda: LazyHttpClient(hosts, closed=closed)
            )
        except ValueError as error:
            raise settings.SettingsError(f"{settings.variable_of('webhook_secret')}: {error}") from error
        channels.append(hook)
    if config.event_bus_name:
        from baton.adapters.channels.aws import EventNotices

        channels.append(EventNotices(later(lambda: aws.events), config.event_bus_name))
    return channels


def _traced(engine: Engine, config: settings.WorkerSettings) -> Engine:
    """Return the engine with spans of model requests and their calls, if traces are exported."""
    from baton.adapters.models.profiles import Profiles
    from baton.adapters.spans import OtlpSpans, TracedModels, TracedPerformer, Tracer

    assert engine.models is not None, "a worker has models"
    plain = config.plain_http_hosts.split()
    # Its one address is the operator's own: it may be anywhere, also in the worker itself.
    client = LazyHttpClient(["0.0.0.0/0", "::/0"], plain)
    spans = OtlpSpans(config.traces_url, config.worker, client)
    tracer = Tracer(spans, engine.clock, engine.entropy)
    models = TracedModels(engine.models, Profiles(config.model_profiles, plain, settings.region()).of, tracer)
    return replace(engine, spans=spans, models=models, performer=TracedPerformer(engine.performer, tracer))


def _models(aws: Aws, config: deployment.ModelEndpoints) -> DeployedModels:
    """Return the models. Their code is imported with the first call, but their setting is checked
    immediately.
    """
    from baton.adapters.models.profiles import Profiles

    try:
        profiles = Profiles(config.model_profiles, config.plain_http_hosts.split(), settings.region())
    except ValueError as error:
        raise settings.SettingsError(f"{settings.variable_of('model_profiles')}: {error}") from error

    def made() -> DeployedModels:
        from baton.adapters.models.deployed import DeployedModels

        credentials = _credentials(aws, config.model_secrets, "MODEL", of="the model profile")
        return DeployedModels(profiles, credentials, SystemClock(), Threads(_KEYS_AT_ONCE))

    return later(cache(made))


def models_without_price(profiles: str, region: str, models: Iterable[str]) -> list[tuple[str, str]]:
    """Return the models that a worker with these profiles would not ask, each with its profile.

    Raises `ValueError` for profiles with which no worker starts.
    """
    from baton.adapters.models.prices import Prices
    from baton.adapters.models.profiles import Profiles

    known, prices, now = Profiles(profiles, "*", region), Prices.packaged(), SystemClock().now()
    asked = [(model, *known.of(model)) for model in models] if prices.version else []
    return [(model, profile.name) for model, profile, name in asked if prices.of(profile, name, now) is None]


def models_without_background(profiles: str, region: str, models: Iterable[str]) -> list[tuple[str, str]]:
    """Return the models of providers without requests in the background, each with its profile.

    Raises `ValueError` for profiles with which no worker starts.
    """
    from baton.adapters.models.profiles import Profiles

    known = Profiles(profiles, "*", region)
    return [(model, known.of(model)[0].name) for model in models if known.of(model)[0].dialect]


def _credentials(aws: Aws, prefix: str, kind: str, *, of: str) -> Credentials:
    """Return the credentials with this name prefix in an AWS store, or without a prefix, the variables of a
    local run.
    """
    from baton.adapters.credentials import Credentials, Secrets, VariableSecrets

    secrets: Secrets = VariableSecrets(
        partial(settings.local_key, kind), partial(settings.local_key_variable, kind)
    )
    if prefix:
        from baton.adapters.credentials import ManagerSecrets, ParameterSecrets

        if prefix.startswith("/"):
            secrets = ParameterSecrets(later(lambda: aws.ssm), prefix)
        else:
            secrets = ManagerSecrets(later(lambda: aws.secretsmanager), prefix)
    return Credentials(secrets, SystemClock(), Threads(_KEYS_AT_ONCE), of)


def _set_secrets(aws: Aws, config: settings.App) -> None:
    """Set the variables that are secrets. Raises `SettingsError` for one that cannot be read."""
    if not config.secrets:
        return
    from baton.adapters.credentials import ManagerSecrets, ParameterSecrets, Secrets

    found: dict[str, str] = {}
    for pair in config.secrets.split():
        variable, name = pair.split("=", 1)
        store: Secrets = (
            ParameterSecrets(later(lambda: aws.ssm), "")
            if name.startswith("/")
            else ManagerSecrets(later(lambda: aws.secretsmanager), "")
        )
        try:
            found[variable] = store.read(name)
        except StepFailure as error:
            raise settings.SettingsError(f"{variable}: {error.message}") from error
        if not found[variable]:
            raise settings.SettingsError(f"{variable}: {store.where(name)} is not there, or is empty")
    settings.set_variables(found)


def _log_to_stdout(level: str) -> None:
    """Configure log level and redaction. Lambda's runtime formats and collects the lines."""
    logging.getLogger("baton").setLevel(level)
    add_secret_filter(logging.getLogger())


def _line_to_stdout(line: str) -> None:
    """Write a whole line immediately, bypassing the logging of Lambda's runtime; see
    runtime/invocation/watch.py.
    """
    stream = getattr(sys.stdout, "stream", sys.stdout)  # not as a line of the tool that runs
    stream.write(line + "\n")
    stream.flush()  # what blocks the loop may take the process with it


def _metrics_to(config: settings.MetricsSettings) -> Callable[[str], None] | None:
    return _line_to_stdout if config.metrics == ON else None


def _standard(aws: Aws, store: Store, models: DeployedModels, config: settings.WorkerSettings) -> Services:
    """Return the ports of the standard tools. Each is imported, connected and created with its first call."""
    from baton.tools.openapi.description import Apis
    from baton.tools.standard import Services

    try:
        apis = Apis(config.open_apis)
    except ValueError as error:
        raise settings.SettingsError(f"{settings.variable_of('open_apis')}: {error}") from error

    def credentials() -> Credentials:
        return _credentials(aws, config.api_secrets, "API", of="the API")

    return Services(
        http=LazyHttpClient(
            config.http_hosts.split(), config.plain_http_hosts.split(), [settings.runtime_api()]
        ),
        entities=store.entities,
        objects=S3Objects(aws.s3, config.bucket),
        mailer=SesMailer(later(lambda: aws.sesv2)),
        clock=SystemClock(),
        offload=Threads(),
        most_bytes=config.result_bytes,
        mail_from=config.mail_from,
        payments_url=config.payments_url,
        facts=later(lambda: store.facts),
        embedder=models,
        embedding_model=config.facts.partition(" ")[0],
        signing_key=config.signing_key,
        apis=apis,
        credentials=later(cache(credentials)),
    )


def operators_post(url: str) -> Callable[[bytes, Mapping[str, str]], Awaitable[HttpAnswer]]:
    """Return what posts to an address that the operator of this machine has written."""
    http = LazyHttpClient(["0.0.0.0/0", "::/0"], plain=["*"])

    async def post(body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        asked = HttpRequest(
            method="POST", url=url, headers=headers, body=body, within_ms=30_000, most=5_242_880, named=True
        )
        return await http.send(asked)

    return post


def make_worker() -> tuple[Worker, Engine]:
    """Return the worker, with the tools of the app module, and its engine."""
    from baton.runtime.invocation.watch import Metrics, Watch, to_log
    from baton.runtime.worker.worker import Worker
    from baton.tools.functions import ApplicationFunctions
    from baton.tools.output import name_steps
    from baton.tools.perform import ToolPerformer
    from baton.tools.processes.pool import Helpers
    from baton.tools.standard import (
        load_app,  # the tools' pydantic is only for functions with tools
        with_standard,
    )

    config = settings.read_settings(settings.WorkerSettings)
    aws = Aws()
    store = _store(aws, config)
    granted = Grants.of(config.standard_tools)
    _set_secrets(aws, config)
    models = _models(aws, config)
    registry = with_standard(load_app(config.app), _standard(aws, store, models, config), granted)
    helpers = Helpers(
        config.app, result_bytes=config.result_bytes, variables=settings.variables_of_the_invocation
    )
    blobs = S3Blobs(aws.s3, config.bucket)  # the first saga's graph is one
    counts_ends = float(config.error_budget_percent) > 0
    metrics = Metrics(_metrics_to(config), config.worker, counts_ends=counts_ends)
    tell = to_log(metrics, SystemClock())
    watch = Watch(config.loop_blocked_ms, SystemMeter(), thread_pulse, tell)
    performer = ToolPerformer(registry, helpers, watch=watch)
    # Not in tests that call the handler, whose process is not the worker's own.
    watchdog = SystemWatchdog() if settings.runtime_api() else None
    if settings.is_debugged():  # in one process; a person may hold the event loop
        performer, watchdog = ToolPerformer(registry), None
    engine = _engine(aws, store, blobs, config, performer, registry.specs())
    name_steps(logging.getLogger())
    engine = replace(
        engine, metrics=metrics, watch=watch, watchdog=watchdog, api_url=config.api_url.rstrip("/")
    )
    builds = LambdaBuilds(later(lambda: aws.patient_lambda), config.worker, Threads(BUILDS_AT_ONCE))
    engine = replace(engine, functions=ApplicationFunctions(registry), builds=builds)
    engine = replace(engine, confirm_url=config.confirm_url, models=models)
    if config.traces_url:
        engine = _traced(engine, config)
    dead_letters = SqsDeadLetters(later(lambda: aws.sqs), config.dead_letter_url)
    invoker = LambdaInvoker(later(lambda: aws.lambda_), config.worker)
    queue = SqsQueue(later(lambda: aws.sqs), config.queue_url)
    return Worker(engine, dead_letters, invoker, queue), engine


def make_api() -> tuple[Engine, settings.ApiSettings, Rates, HttpClient, Credentials]:
    """Return the engine of the api function with the tools' schemas, its settings, and the rates of its
    callers.

    The console uses the client and the credentials to ask its issuer for the identity of a visitor. They cost
    nothing before their first use.
    """
    from baton.runtime.invocation.watch import Metrics
    from baton.tools.define import NODE_KINDS
    from baton.tools.functions import ApplicationFunctions
    from baton.tools.standard import load_app, with_standard

    config = settings.read_settings(settings.ApiSettings)
    aws = Aws()
    blobs = S3Blobs(aws.s3, config.bucket)
    _set_secrets(aws, config)
    tools = with_standard(load_app(config.app), grants=Grants.of(config.standard_tools))
    engine = _engine(aws, _store(aws, config), blobs, config, _NoTools(), tools.specs())
    engine = replace(engine, kinds=NODE_KINDS, models=_models(aws, config))
    engine = replace(engine, functions=ApplicationFunctions(tools))
    engine = replace(engine, metrics=Metrics(_metrics_to(config), config.worker))
    # Its addresses are the operator's own: the issuer, and where its configuration says that codes are redeemed.
    issuer = LazyHttpClient(["0.0.0.0/0", "::/0"], closed=[settings.runtime_api()])

    def credentials() -> Credentials:
        return _credentials(aws, config.console_secrets, "CONSOLE", of="the console's")

    return engine, config, engine.store.rates, issuer, later(cache(credentials))


def thread_store(table: str, bucket: str, tenant: str) -> ThreadStore:
    """Return a tenant's threads of graphs, for a program that is no function of the deployment."""
    aws = Aws()
    store = DynamoStore(aws.dynamodb, table)
    return ThreadStore(tenant, store.checkpoints, S3Blobs(aws.s3, bucket), SystemClock(), Threads())


def make_relay() -> Relay:
    """Create the relay of a deployment, as its function uses it."""
    from baton.runtime.relay import Relay

    config = settings.read_settings(settings.RelaySettings)
    aws = Aws()
    _log_to_stdout(config.log_level)
    return Relay(
        _store(aws, config).inbox,
        SqsQueue(aws.sqs, config.queue_url),
        SystemClock(),
        SystemEntropy(),
        Threads(),
        Limits.of(config),
    )


def make_reconciler() -> tuple[Reconciler, LetterCollector]:
    """Return the reconciler, and the collector of dead letters."""
    from baton.adapters.sqs_dead_queue import SqsDeadQueue
    from baton.core.letters import RELAY
    from baton.runtime.dead_letters import CALLS as LETTERS
    from baton.runtime.dead_letters import LetterCollector
    from baton.runtime.mending import DeployedBuild
    from baton.runtime.reconcile import CALLS, Reconciler

    config = settings.read_settings(settings.ReconcilerSettings)
    aws = Aws()
    store, sqs = _store(aws, config), later(lambda: aws.sqs)
    _log_to_stdout(config.log_level)
    offload = Threads(CALLS)
    reconciler = Reconciler(
        store.log,
        SqsQueue(sqs, config.queue_url),
        LambdaInvoker(later(lambda: aws.lambda_), config.worker),
        SystemClock(),
        offload,
        config.reconcile_period_s * 1_000,
        DeployedBuild(store.entities, SystemClock(), offload, config.build),
    )
    collector = LetterCollector(
        (SqsDeadQueue(sqs, config.dead_letter_url), SqsDeadQueue(sqs, config.relay_failure_url, RELAY)),
        store.letters,
        SystemClock(),
        Threads(LETTERS),
        Limits().clock_skew_ms,
        config.operator_tenant,
        _letter_figures(config),
    )
    return reconciler, collector


def _letter_figures(config: settings.ReconcilerSettings) -> Callable[[int, int, int, int], None]:
    def tell(moved: int, pending: int, age: int, now: int) -> None:
        from baton.runtime.invocation.watch import Metrics  # only when something is dead

        Metrics(_metrics_to(config), config.worker).dead_letters(moved, pending, age, now)

    return tell


async def look_at_builds(stack: str, *, delete: bool) -> list[PinnedBuild]:
    """Return the builds of a deployment's worker, or `delete` the drained ones and return these.

    With the credentials of the environment. Raises `Forbidden` if AWS refuses them.
    """
    from baton.adapters.aws import told_to_operators
    from baton.runtime.mending import BuildKeeper

    with told_to_operators():
        aws = Aws()
        deployed = LambdaDeployedBuilds(aws.lambda_, f"{stack}-worker")
        config = settings.read_settings(settings.WorkerSettings, deployed.variables())
        keeper = BuildKeeper(_store(aws, config).log, deployed, SystemClock(), Threads())
        return await (keeper.delete_drained() if delete else keeper.report())


def make_signer(region: str) -> Callable[[str, str, Mapping[str, str], bytes], dict[str, str]]:
    """Return a function that signs a request (method, URL, headers, body) with the user's AWS credentials.

    Without `region`, the region of the environment applies. Raises `Unauthenticated`.
    """
    from baton.adapters.aws_signer import Signer

    return Signer(region)
