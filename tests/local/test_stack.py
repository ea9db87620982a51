"""What is read from a template: functions, event sources, schedules, routes; and what is refused, and how.

Nothing is started; real processes are in the `_e2e` files beside this one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.local.processes import LocalRunError
from baton.local.stack import Authorizer, EventRule
from tests.kit.sentences import Says
from tests.local.project import RULE, declare, write_project


def changed(folder: Path, old: str, new: str) -> Path:
    template = write_project(folder, RULE)
    source = template.read_text()
    assert old in source
    template.write_text(source.replace(old, new))
    return template


def test_functions_get_their_code_layers_limits_and_resolved_environment(tmp_path: Path) -> None:
    stack, _ = declare(write_project(tmp_path))
    worker = stack.functions["Worker"]
    assert worker.name == "baton-Worker"
    assert worker.code == tmp_path / "worker"
    assert worker.layers == (tmp_path / "layer",)
    assert worker.timeout_s == 4
    assert worker.environment == {"TABLE": "baton-Table"}
    assert worker.retries == 1
    assert stack.functions["Relay"].retries == 2


def test_event_sources_carry_every_setting_of_the_template(tmp_path: Path) -> None:
    stack, _ = declare(write_project(tmp_path))
    (queue,), (stream,) = stack.queues, stack.streams
    assert (queue.function, queue.url, queue.batch_size) == ("Worker", "http://Queue", 10)
    assert (queue.partial, queue.concurrency) == (True, 2)
    assert (stream.function, stream.retries, stream.bisect, stream.partial) == ("Relay", 1, True, True)
    assert stream.on_failure_url == "http://Failures"
    assert stream.filters.match({"dynamodb": {"NewImage": {"wake": {"S": "x"}}}})
    assert not stream.filters.match({"dynamodb": {"NewImage": {}}})


def test_a_schedule_and_its_state_machine_are_read_with_substitutions(tmp_path: Path) -> None:
    stack, _ = declare(write_project(tmp_path))
    (schedule,), (machine,) = stack.schedules, stack.machines
    assert schedule.period_s == 60
    assert schedule.target_arn == machine.arn
    call = machine.definition["States"]["Each"]["ItemProcessor"]["States"]["Call"]
    assert call["Resource"] == stack.functions["Worker"].arn
    assert machine.express


def test_a_rule_of_a_bus_has_its_pattern_and_the_functions_that_are_its_targets(tmp_path: Path) -> None:
    stack, _ = declare(write_project(tmp_path, RULE))
    assert stack.rules == [EventRule("Outside", "orders", '{"source": ["shop"]}', ("Worker",))]
    off, _ = declare(changed(tmp_path / "off", "EventBusName: orders", "State: DISABLED"))
    assert off.rules == []
    arn = "arn:aws:events:us-east-1:000000000000:event-bus/orders"
    by_arn, _ = declare(changed(tmp_path / "arn", "EventBusName: orders", f"EventBusName: {arn}"))
    assert by_arn.rules == stack.rules


def test_routes_of_the_http_api_keep_their_authorizers_and_time_limits(tmp_path: Path) -> None:
    _, api = declare(write_project(tmp_path))
    assert api is not None
    by_key = {route.key: route for route in api.routes}
    tokens = Authorizer("http://issuer", ("me",), "authorization")
    assert set(by_key) == {"GET /health", "GET /slow", "$default"}
    assert by_key["GET /health"].authorizer is None
    assert by_key["$default"].authorizer == tokens
    assert by_key["GET /slow"].timeout_s == 0.1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("VisibilityTimeout: 4", "VisibilityTimeout: 0"),
        ("CodeUri: relay/", "CodeUri: rely/"),
        ("python3.13", "nodejs22.x"),
        ("rate(1 minute)", "cron(0 5 * * * *)"),
        ("TABLE: !Ref Table", "TABLE: !Ref Tabel"),
        ("EventPattern: {source: [shop]}", "ScheduleExpression: rate(1 minute)"),
        ("Id: worker", "Id: worker, InputPath: $.detail"),
        ("Arn: !GetAtt Worker.Arn, D", "Arn: !GetAtt Queue.Arn, D"),
        ('{"exists":true}', '{"exits":true}'),
        ("StartingPosition: TRIM_HORIZON", "StartingPosition: NOW"),
        ("MaximumConcurrency: 2", "MaximumConcurrency: 1"),
        ("BatchSize: 10", "BatchSize: 11"),
        ("{WorkerArn: ", "{WorkArn: "),
        ("[ReportBatchItemFailures]", "[ReportFailures]"),
        ("TimeoutInMillis: 100", "PayloadFormatVersion: '1.0'"),
        ("!GetAtt Failures.Arn", "'arn:aws:sns:us-east-1:000000000000:x'"),
        ("$request.header.Authorization", "$request.querystring.t"),
        ("AuthorizerType: JWT", "AuthorizerType: REQUEST"),
        ("AuthorizationType: JWT", "AuthorizationType: AWS_IAM"),
        ("integrations/${ShortCalls}", "integrations/x"),
        ('"2.0"', '"1.0"'),
        ("ProtocolType: HTTP}", "Body: {openapi: 3.0.1}}"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_place(tmp_path: Path, old: str, new: str, says: Says) -> None:
    with says.raised(LocalRunError):
        declare(changed(tmp_path, old, new))


def test_a_mapping_that_is_not_enabled_is_not_polled(tmp_path: Path) -> None:
    stack, _ = declare(changed(tmp_path, "BatchSize: 10", "BatchSize: 10\n            Enabled: false"))
    assert stack.queues == []
