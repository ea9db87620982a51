"""How wakes travel: the queue, its dead letters, and the mappings of queue and stream to functions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.adapters.sqs_dead_queue import MAX_RECEIVES
from baton.runtime.worker.worker import LAST_HELD_RECEIVE
from tests.deploy.stack import stack

LAST_STOPS = {"WakeDeadLetterQueue", "RelayFailureQueue"}


def mapping_of(function: str, **parameters: str) -> dict[str, Any]:
    mappings = stack(**parameters).of_type("AWS::Lambda::EventSourceMapping").values()
    (found,) = (m for m in mappings if m["FunctionName"] == f"baton-{function}")
    return found


def test_every_queue_has_dead_letters_or_is_for_them() -> None:
    queues = stack().of_type("AWS::SQS::Queue")
    mappings = stack().of_type("AWS::Lambda::EventSourceMapping").values()
    ends = {q["RedrivePolicy"]["deadLetterTargetArn"] for q in queues.values() if "RedrivePolicy" in q}
    ends |= {m["DestinationConfig"]["OnFailure"]["Destination"] for m in mappings if "DestinationConfig" in m}
    assert {stack().arn(logical_id) for logical_id in LAST_STOPS} == ends
    for logical_id, queue in queues.items():
        assert ("RedrivePolicy" in queue) != (logical_id in LAST_STOPS), logical_id


def test_every_source_of_events_gives_up_into_a_queue() -> None:
    for mapping in stack().of_type("AWS::Lambda::EventSourceMapping").values():
        from_queue = mapping["EventSourceArn"] in {stack().arn(q) for q in stack().of_type("AWS::SQS::Queue")}
        assert from_queue or "OnFailure" in mapping["DestinationConfig"], mapping["FunctionName"]


def test_every_queue_is_encrypted_and_dead_letters_outlive_what_they_came_from() -> None:
    queues = stack().of_type("AWS::SQS::Queue")
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    for logical_id in LAST_STOPS:
        assert queues[logical_id]["MessageRetentionPeriod"] > queues["WakeQueue"]["MessageRetentionPeriod"]


def test_a_wake_is_given_up_after_five_deliveries() -> None:
    redrive = stack().properties("WakeQueue")["RedrivePolicy"]
    assert redrive == {"deadLetterTargetArn": stack().arn("WakeDeadLetterQueue"), "maxReceiveCount": 5}


def test_a_wake_of_a_held_saga_keeps_two_deliveries_for_faults() -> None:
    assert stack().properties("WakeQueue")["RedrivePolicy"]["maxReceiveCount"] == LAST_HELD_RECEIVE + 2


def test_a_letter_without_a_reason_says_how_often_the_queue_has_delivered_it() -> None:
    assert stack().properties("WakeQueue")["RedrivePolicy"]["maxReceiveCount"] == MAX_RECEIVES


@pytest.mark.parametrize("queue", sorted(LAST_STOPS))
def test_an_alarm_watches_every_last_stop(queue: str) -> None:
    name = stack().resolver.name(queue)
    alarms = stack().of_type("AWS::CloudWatch::Alarm").values()
    (alarm,) = (a for a in alarms if a["Dimensions"] == [{"Name": "QueueName", "Value": name}])
    assert alarm["MetricName"] == "ApproximateAgeOfOldestMessage"
    runs_s = 10 * 60  # at the longest ReconcileMinutes
    assert alarm["Threshold"] > 2 * runs_s, "the reconciler empties it in each run"
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"


def test_the_wake_of_a_dead_invocation_comes_back_after_its_lease_is_over_by_every_clock() -> None:
    values = stack().parameters
    lease_s = int(values["WorkerTimeout"]) + (int(values["LeaseGraceMs"]) + int(values["ClockSkewMs"])) / 1000
    visibility = int(stack().properties("WakeQueue")["VisibilityTimeout"])
    assert lease_s + 1 < visibility < lease_s + 10


def test_the_hand_over_and_one_step_fit_into_an_invocation() -> None:
    values = stack().parameters
    assert int(values["YieldReserveMs"]) + int(values["StepEstimateMs"]) < int(values["WorkerTimeout"]) * 1000


def test_the_worker_takes_ten_wakes_at_once_and_reports_each_failure() -> None:
    mapping = mapping_of("worker")
    assert mapping["EventSourceArn"] == stack().arn("WakeQueue")
    assert (int(mapping["BatchSize"]), int(mapping["MaximumBatchingWindowInSeconds"])) == (10, 0)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_batches_of_wakes_and_their_window_are_parameters() -> None:
    mapping = mapping_of("worker", WakeBatch="100", WakeWindow="2")
    assert (int(mapping["BatchSize"]), int(mapping["MaximumBatchingWindowInSeconds"])) == (100, 2)


def test_a_batch_of_more_than_ten_wakes_without_a_window_is_refused_before_anything_is_created() -> None:
    rule = stack().template.document["Rules"]["LargeBatchesNeedAWindow"]
    allowed = [str(value) for value in stack().template.parameters["WakeBatch"]["AllowedValues"]]
    large, batch = rule["RuleCondition"]["Fn::Contains"]
    assert batch == {"Ref": "WakeBatch"}
    assert large == [value for value in allowed if int(value) > 10]
    (assertion,) = rule["Assertions"]
    assert assertion["Assert"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "WakeWindow"}, "0"]}]}


def test_how_many_relays_read_a_shard_of_the_stream_is_a_parameter() -> None:
    assert int(mapping_of("relay")["ParallelizationFactor"]) == 1
    assert int(mapping_of("relay", RelayParallelization="10")["ParallelizationFactor"]) == 10


def test_the_workers_concurrency_is_a_parameter() -> None:
    scaling = mapping_of("worker", WorkerConcurrency="7")["ScalingConfig"]
    assert str(scaling["MaximumConcurrency"]) == "7"


def test_the_relay_sees_the_wakes_of_the_stream_and_nothing_else() -> None:
    mapping = mapping_of("relay")
    assert mapping["EventSourceArn"] == f"{stack().arn('SagaTable')}/stream/now"
    (only,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(only["Pattern"]) == {"dynamodb": {"NewImage": {"wake": {"S": [{"exists": True}]}}}}


def test_the_relay_starts_with_the_oldest_record_so_that_none_is_missed() -> None:
    assert mapping_of("relay")["StartingPosition"] == "TRIM_HORIZON"


def test_one_bad_record_neither_blocks_the_stream_nor_vanishes() -> None:
    mapping = mapping_of("relay", RelayMaxRetries="3", RelayMaxRecordAgeSeconds="120")
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert str(mapping["MaximumRetryAttempts"]) == "3"
    assert str(mapping["MaximumRecordAgeInSeconds"]) == "120"
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": stack().arn("RelayFailureQueue")}}


def test_there_is_no_third_event_source() -> None:
    assert len(stack().of_type("AWS::Lambda::EventSourceMapping")) == 2
