"""A dead-letter queue on SQS as the reconciler sees it: counting, receiving and deleting.
Sending is in queues.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.adapters.aws import translated
from baton.adapters.queues import visible
from baton.core.letters import WAKES, DeadMessage

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MAX_RECEIVES = 5  # of the wake queue's redrive policy
_HIDDEN_S = 120  # longer than a run that has received a message


class SqsDeadQueue:
    """`DeadQueue` on one SQS queue. `source`: the function whose messages end there."""

    def __init__(self, client: SQSClient, url: str, source: str = WAKES) -> None:
        self._client = client
        self._url = url
        self._source = source

    def count(self) -> int:
        return visible(self._client, self._url)

    def receive(self, limit: int) -> Sequence[DeadMessage]:
        with translated():
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=limit,
                VisibilityTimeout=_HIDDEN_S,
                MessageSystemAttributeNames=["SentTimestamp"],
                MessageAttributeNames=["All"],
            )
        return [self._read(message) for message in answer.get("Messages", ())]

    def delete(self, receipts: Sequence[str]) -> None:
        entries: Any = [
            {"Id": str(place), "ReceiptHandle": receipt} for place, receipt in enumerate(receipts)
        ]
        with translated():
            # What it says of single messages needs no answer: one that is still there comes back.
            self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)

    def _read(self, message: Mapping[str, Any]) -> DeadMessage:
        told = {
            name: value.get("StringValue", "") for name, value in message.get("MessageAttributes", {}).items()
        }
        return DeadMessage(
            id=message["MessageId"],
            receipt=message["ReceiptHandle"],
            body=message["Body"],
            sent=_whole(message.get("Attributes", {}).get("SentTimestamp", "")),
            source=self._source,
            attempts=_whole(told.get("attempts", "")) or (1 if "reason" in told else MAX_RECEIVES),
            reason=told.get("reason", ""),
            code=told.get("code", ""),
            version=_whole(told.get("version", "")),
            node=told.get("node", ""),
        )


def _whole(said: str) -> int:
    return int(said) if said.isdecimal() else 0
