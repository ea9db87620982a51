"""The queue of wakes and the dead-letter queue on SQS.

Sending and counting only: receiving is Lambda's event source mapping.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from baton.adapters.aws import translated
from baton.adapters.rules import check_delay, xml_text
from baton.errors import StoreUnavailable, Throttled
from baton.ports import Message, tenant_of

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

_BATCH = 10  # SQS's limit
_MAX_MESSAGE = 1_048_576  # SQS's limit in bytes: body, and name, type and value of each attribute
_MAX_REASON = 1_000


class SqsQueue:
    """`Queue` on one SQS queue. The tenant is the message's group, so that the queue is fair to the others."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {
                "Id": str(position),
                "MessageBody": msgspec.json.encode(message).decode(),
                "DelaySeconds": check_delay(delay),
                "MessageGroupId": tenant_of(message),
            }
            for position, (message, delay) in enumerate(messages)
        ]
        failed: list[int] = []
        for start in range(0, len(entries), _BATCH):
            try:
                with translated():
                    answer = self._client.send_message_batch(
                        QueueUrl=self._url, Entries=entries[start : start + _BATCH]
                    )
            except (Throttled, StoreUnavailable):
                if start == 0:
                    raise
                # Some were accepted: raising would have them all sent again.
                return [*failed, *range(start, len(entries))]
            failed += (int(entry["Id"]) for entry in answer.get("Failed", ()))
        return sorted(failed)

    def backlog(self) -> int:
        return _visible(self._client, self._url)


class SqsDeadLetters:
    """`DeadLetters` on one SQS queue; the reason is a message attribute.

    A body that leaves no room for the reason is cut, and the reason says so.
    """

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, body: str, reason: str) -> None:
        told, text = xml_text(reason)[:_MAX_REASON] or "unknown", xml_text(body) or "{}"
        room = _MAX_MESSAGE - len("reason") - len("String") - len(told.encode())
        data = text.encode()
        if len(data) > room:
            note = f" (cut: it had {len(data)} bytes)"
            text = data[: room - len(note)].decode(errors="ignore")
            told += note
        with translated():
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=text,
                MessageAttributes={"reason": {"DataType": "String", "StringValue": told}},
            )

    def count(self) -> int:
        return _visible(self._client, self._url)


def _visible(client: SQSClient, url: str) -> int:
    with translated():
        answer = client.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])
