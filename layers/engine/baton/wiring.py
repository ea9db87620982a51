"""Where ports meet adapters: the only file that knows both. One function per Lambda function.

Everything made here lives as long as the process; clients are created once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from baton import settings
from baton.adapters.aws import Aws
from baton.adapters.clock import SystemClock, SystemEntropy
from baton.adapters.dynamo_definitions import DynamoDefinitions
from baton.adapters.dynamo_items import image_wake
from baton.adapters.dynamo_log import DynamoLog
from baton.adapters.lambda_invoker import LambdaInvoker
from baton.adapters.s3_blobs import S3Blobs
from baton.adapters.sqs_queue import SqsDeadLetters, SqsQueue
from baton.core.toolspec import ToolSpec
from baton.ports import Performer, StepContext, StepFailure
from baton.runtime.catalog import Catalog
from baton.runtime.limits import Limits
from baton.runtime.pace import Pace
from baton.runtime.parts import Engine
from baton.runtime.patience import Threads
from baton.runtime.reconcile import Reconciler
from baton.runtime.relay import Relay
from baton.runtime.worker import Worker

__all__ = ["image_wake", "make_api", "make_reconciler", "make_relay", "make_worker"]


class _NoTools:
    """The performer of functions that run no steps."""

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        raise StepFailure("tool_missing", f"this function runs no tools, not even `{tool}`")


def _engine(
    aws: Aws, config: settings.Settings, performer: Performer, tools: Mapping[str, ToolSpec], limits: Limits
) -> Engine:
    _log_to_stdout(config.log_level)
    clock = SystemClock()
    blobs = S3Blobs(aws.s3, config.bucket)
    return Engine(
        log=DynamoLog(aws.dynamodb, config.table, config.shards),
        blobs=blobs,
        clock=clock,
        entropy=SystemEntropy(),
        offload=Threads(),
        performer=performer,
        tools=tools,
        catalog=Catalog(DynamoDefinitions(aws.dynamodb, config.table), blobs, clock),
        pace=Pace(limits.step_estimate),
        limits=limits,
    )


def _log_to_stdout(level: str) -> None:
    """Lambda's runtime formats and collects; only the level is ours."""
    logging.getLogger("baton").setLevel(level)


def make_worker() -> tuple[Worker, Engine]:
    """The worker, with the tools of the app module."""
    from baton.tools.define import load_app  # the tools' pydantic is only for functions with tools
    from baton.tools.perform import ToolPerformer

    config = settings.read(settings.WorkerSettings)
    aws = Aws()
    registry = load_app(config.app)
    limits = Limits(
        lease_grace=config.lease_grace_ms,
        yield_reserve=config.yield_reserve_ms,
        step_estimate=config.step_estimate_ms,
    )
    engine = _engine(aws, config, ToolPerformer(registry), registry.specs(), limits)
    dead_letters = SqsDeadLetters(aws.sqs, config.dead_letter_url)
    return Worker(engine, dead_letters, LambdaInvoker(aws.lambda_, config.worker)), engine


def make_api() -> tuple[Engine, settings.ApiSettings]:
    """The engine of the api function, with the tools' schemas."""
    from baton.tools.define import load_app

    config = settings.read(settings.ApiSettings)
    engine = _engine(Aws(), config, _NoTools(), load_app(config.app).specs(), Limits())
    return engine, config


def make_relay() -> tuple[Relay, Engine]:
    """The relay."""
    config = settings.read(settings.RelaySettings)
    aws = Aws()
    engine = _engine(aws, config, _NoTools(), {}, Limits())
    return Relay(engine, SqsQueue(aws.sqs, config.queue_url)), engine


def make_reconciler() -> Reconciler:
    """The reconciler."""
    config = settings.read(settings.ReconcilerSettings)
    aws = Aws()
    _log_to_stdout(config.log_level)
    return Reconciler(
        DynamoLog(aws.dynamodb, config.table, config.shards),
        SqsQueue(aws.sqs, config.queue_url),
        LambdaInvoker(aws.lambda_, config.worker),
        SqsDeadLetters(aws.sqs, config.dead_letter_url),
        SystemClock(),
        config.reconcile_period_s * 1_000,
    )
