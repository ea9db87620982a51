"""The entries of `Records` that functions see, for messages of a queue and changes of a table."""

from __future__ import annotations

from datetime import UTC, datetime

from baton.local import queues, streams
from baton.local.guard import watch


def test_a_message_looks_as_lambda_delivers_it() -> None:
    record = queues.event_record(
        {
            "MessageId": "m",
            "ReceiptHandle": "r",
            "Body": "{}",
            "MD5OfBody": "5",
            "Attributes": {"ApproximateReceiveCount": "1"},
            "MessageAttributes": {
                "reason": {"DataType": "String", "StringValue": "poison"},
                "raw": {"DataType": "Binary", "BinaryValue": b"\xff"},
            },
        },
        "arn:queue",
    )
    empty: dict[str, list[str]] = {"stringListValues": [], "binaryListValues": []}
    assert record == {
        "messageId": "m",
        "receiptHandle": "r",
        "body": "{}",
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {
            "reason": {**empty, "dataType": "String", "stringValue": "poison"},
            "raw": {**empty, "dataType": "Binary", "binaryValue": "/w=="},
        },
        "md5OfBody": "5",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:queue",
        "awsRegion": "us-east-1",
    }


def test_a_change_of_a_table_looks_as_lambda_delivers_it() -> None:
    image = {
        "pk": {"S": "a"},
        "d": {"B": b"\xff"},
        "all": {"BS": [b"a"]},
        "deep": {"M": {"x": {"L": [{"B": b"b"}]}}},
    }
    record = streams.event_record(
        {
            "eventID": "e",
            "eventName": "INSERT",
            "dynamodb": {
                "ApproximateCreationDateTime": datetime(2026, 1, 1, tzinfo=UTC),
                "Keys": {"pk": {"S": "a"}},
                "NewImage": image,
                "SequenceNumber": "1",
            },
        },
        "arn:stream",
    )
    assert record["dynamodb"] == {
        "ApproximateCreationDateTime": 1767225600,
        "Keys": {"pk": {"S": "a"}},
        "NewImage": {
            "pk": {"S": "a"},
            "d": {"B": "/w=="},
            "all": {"BS": ["YQ=="]},
            "deep": {"M": {"x": {"L": [{"B": "Yg=="}]}}},
        },
        "SequenceNumber": "1",
    }
    assert record["eventSourceARN"] == "arn:stream"
    assert streams.created_at(record) == 1767225600
    assert streams.sequence_of(record) == "1"


def test_the_guard_knows_which_process_groups_are_left() -> None:
    assert watch([b"+1\n", b"+2\n", b"-1\n", b"+3\n"]) == {2, 3}
