"""Alarms and notices: what needs a person is watched, and a person who wants to know gets to know."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from baton.core.log.events import Failure, Parked, SagaEnded, StepFailed
from baton.core.read.metrics import NAMESPACE, Figures
from baton.local.processes import TemplateProblem
from baton.local.template import check_rules, parse
from baton.runtime.invocation.watch import Metrics
from tests.deploy.stack import ROOT, Stack, stack
from tests.kit import emf

NOW = 1_700_000_000_000
ADDRESS = "on-call@example.com"
WATCHED = {
    "WakeDeadLetterAlarm": ("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", "WakeDeadLetterQueue"),
    "RelayFailureAlarm": ("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", "RelayFailureQueue"),
    "DeadLetterAlarm": (NAMESPACE, "DeadLetters", "function", "WorkerFunction"),
    "DeadLetterSurgeAlarm": (NAMESPACE, "DeadMessages", "function", "WorkerFunction"),
    "WorkerErrorAlarm": ("AWS/Lambda", "Errors", "FunctionName", "WorkerFunction"),
    "WorkerThrottleAlarm": ("AWS/Lambda", "Throttles", "FunctionName", "WorkerFunction"),
    "ReconcilerErrorAlarm": ("AWS/Lambda", "Errors", "FunctionName", "ReconcilerFunction"),
    "ReconcileAlarm": ("AWS/States", "ExecutionsSucceeded", "StateMachineArn", "ReconcileStateMachine"),
}


def alarms(of: Stack) -> dict[str, dict[str, Any]]:
    return of.of_type("AWS::CloudWatch::Alarm")


def test_every_alarm_is_in_this_table() -> None:
    assert set(alarms(stack())) == {*WATCHED, *PARKED, "BreakerAlarm"}
    assert set(alarms(stack(**BOTH))) == {*WATCHED, *PARKED, *WITH_WORDS}


PARKED = {"WorkerKilledAlarm": "worker_killed", "OverBudgetAlarm": "over_budget"}


BOTH = {"ErrorAlarmCode": "timeout", "ErrorBudgetPercent": "0.5"}
WITH_WORDS = ("BreakerAlarm", "ErrorCodeAlarm", "ErrorBudgetAlarm")


def test_alarms_watch_figures_that_the_worker_writes() -> None:
    """Breakers that open, failures with a code, and the share of sagas that fail, under these very dimensions."""
    deployment, lines, of = stack().resolver.name("WorkerFunction"), list[str](), alarms(stack(**BOTH))
    metrics = Metrics(lines.append, deployment, counts_ends=True)
    failure = Failure("timeout", "no answer", "pay", attempt=1, at=NOW)
    at: dict[str, Any] = {
        "node": "pay",
        "started_at": NOW,
        "ended_at": NOW,
        "tool_version": "1",
        "schema_hash": "",
    }
    metrics.heard(
        "dinner", (StepFailed(**at, attempt=1, failure=failure, tool="pay"), SagaEnded(status="failed")), NOW
    )
    metrics.heard("dinner", (SagaEnded(status="completed"), SagaEnded(status="cancelled")), NOW)
    metrics.opened("payments", NOW)
    metrics.flush(NOW)
    found = emf.read(lines)
    share = [one["MetricStat"]["Metric"] for one in of["ErrorBudgetAlarm"]["Metrics"] if "MetricStat" in one]
    for watched in (of["BreakerAlarm"], of["ErrorCodeAlarm"], *share):
        where = {one["Name"]: one["Value"] for one in watched["Dimensions"]}
        assert emf.total(found, watched["MetricName"], **where) == 1
    assert of["ErrorBudgetAlarm"]["Threshold"] == "0.5"


def test_the_alarm_of_one_workflow_in_the_docs_is_that_of_all_with_a_dimension_more() -> None:
    page = (ROOT / "docs" / "breakers.md").read_text("utf-8")
    written = parse(
        page.partition("```yaml\n  DinnerErrorBudgetAlarm")[2].partition("```")[0].partition("\n")[2]
    )
    of = stack(**BOTH)
    resource = of.resolver.value(written, "docs")
    of_one, of_all = resource["Properties"], of.properties("ErrorBudgetAlarm")
    assert resource["Type"] == "AWS::CloudWatch::Alarm"
    assert written["Condition"] == of.template.resources["ErrorBudgetAlarm"]["Condition"]
    figures = Figures(counts_ends=True)
    figures.heard("dinner", (SagaEnded(status="failed"), SagaEnded(status="completed")), NOW)
    lines = [json.dumps(one) for one in figures.take(NOW, 0, of.resolver.name("WorkerFunction"))]
    for query in of_one["Metrics"][1:]:
        metric = query["MetricStat"]["Metric"]
        where = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
        assert metric["Dimensions"].pop() == {"Name": "workflow", "Value": "dinner"}
        assert emf.total(emf.read(lines), metric["MetricName"], **where) == 1
    assert {**of_one, "AlarmDescription": ""} == {**of_all, "AlarmDescription": ""}


@pytest.mark.parametrize("name", PARKED)
def test_an_alarm_watches_sagas_that_are_parked_for_their_workers(name: str) -> None:
    """The figure is one that the worker writes, under these very dimensions."""
    figures = Figures()
    figures.heard("dinner", (Parked(code=PARKED[name], message="m"),), NOW)
    deployment = stack().resolver.name("WorkerFunction")
    found = emf.read(json.dumps(document) for document in figures.take(NOW, 60_000, deployment))
    alarm = alarms(stack())[name]
    where = {one["Name"]: one["Value"] for one in alarm["Dimensions"]}
    assert (alarm["Namespace"], alarm["ComparisonOperator"], alarm["Threshold"]) == (
        NAMESPACE,
        "GreaterThanThreshold",
        0,
    )
    assert emf.total(found, alarm["MetricName"], **where) == 1


def test_a_surge_is_a_setting_and_counts_what_has_died_within_five_minutes() -> None:
    alarm = alarms(stack(DeadLetterSurge="250"))["DeadLetterSurgeAlarm"]
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == ("Sum", 300, 1)
    assert (str(alarm["Threshold"]), alarm["ComparisonOperator"]) == ("250", "GreaterThanThreshold")
    assert str(alarms(stack())["DeadLetterSurgeAlarm"]["Threshold"]) == "100"


def test_the_figures_of_dead_letters_are_those_that_the_reconciler_writes() -> None:
    lines: list[str] = []
    Metrics(lines.append, stack().resolver.name("WorkerFunction")).dead_letters(101, 7, 60_000, NOW)
    found = emf.read(lines)
    for name, value in (("DeadLetterAlarm", 7), ("DeadLetterSurgeAlarm", 101)):
        alarm = alarms(stack())[name]
        where = {one["Name"]: one["Value"] for one in alarm["Dimensions"]}
        assert emf.total(found, alarm["MetricName"], **where) == value


@pytest.mark.parametrize("name", WATCHED)
def test_an_alarm_watches_a_figure_of_a_resource_of_this_stack(name: str) -> None:
    alarm = alarms(stack())[name]
    namespace, metric, dimension, resource = WATCHED[name]
    value = stack().arn(resource) if dimension.endswith("Arn") else stack().resolver.name(resource)
    assert (alarm["Namespace"], alarm["MetricName"]) == (namespace, metric)
    assert alarm["Dimensions"] == [{"Name": dimension, "Value": value}]


@pytest.mark.parametrize("name", [*WATCHED, *PARKED])
def test_an_alarm_says_what_has_happened_and_what_to_do(name: str) -> None:
    assert alarms(stack())[name]["AlarmDescription"].count(". ") == 1


def test_with_an_address_every_alarm_and_its_end_reach_a_person() -> None:
    of = stack(AlarmEmail=ADDRESS)
    name, topic = "AlarmTopic", of.of_type("AWS::SNS::Topic")["AlarmTopic"]
    assert topic["Subscription"] == [{"Protocol": "email", "Endpoint": ADDRESS}]
    told = [of.resolver.ref(name, "test")]
    for logical_id, alarm in alarms(of).items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == told, logical_id


def test_without_an_address_there_is_no_topic_and_no_alarm_is_sent() -> None:
    assert "AlarmTopic" not in stack().of_type("AWS::SNS::Topic")
    for logical_id, alarm in alarms(stack()).items():
        assert not {"AlarmActions", "OKActions"} & set(alarm), logical_id


def test_silence_is_good_news_of_everything_but_the_reconciler() -> None:
    silent = {name: alarm["TreatMissingData"] for name, alarm in alarms(stack()).items()}
    assert silent.pop("ReconcileAlarm") == "breaching"
    assert set(silent.values()) == {"notBreaching"}


@pytest.mark.parametrize("minutes", ["1", "2", "5", "10"])
def test_the_reconciler_has_time_for_a_run_within_the_period_it_is_watched_for(minutes: str) -> None:
    alarm = alarms(stack(ReconcileMinutes=minutes))["ReconcileAlarm"]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert int(minutes) * 60 < alarm["Period"]


def test_sagas_tell_people_over_a_topic_of_their_own_without_subscribers_too() -> None:
    assert set(stack().of_type("AWS::SNS::Topic")) == {"NoticesTopic"}
    assert stack().variables("worker")["BATON_NOTICES_TOPIC"] == stack().arn("NoticesTopic")
    assert stack().of_type("AWS::SNS::Subscription") == {}


def test_the_person_on_call_gets_a_mail_of_incidents_and_of_nothing_else() -> None:
    of = stack(OnCallEmail=ADDRESS)
    (subscription,) = of.of_type("AWS::SNS::Subscription").values()
    assert subscription == {
        "TopicArn": of.arn("NoticesTopic"),
        "Protocol": "email",
        "Endpoint": ADDRESS,
        "FilterPolicy": {"to": ["on_call"]},
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"WebhookUrl": "https://a.example/x"}, "WebhookSecret"),
        ({"MailTo": "{name}@a.example"}, "MailFrom"),
        ({"GroupMailTo": "{name}@a.example"}, "MailFrom"),
        ({"MailTo": "{name}", "MailFrom": "desk@a.example", "EventBusName": "default"}, ""),
    ],
)
def test_a_channel_without_what_it_needs_is_refused_before_anything_is_created(
    given: dict[str, str], said: str
) -> None:
    of = stack(AuthMode="iam", **given)
    with pytest.raises(TemplateProblem, match=said) if said else nullcontext():
        check_rules(of.template, of.resolver)
