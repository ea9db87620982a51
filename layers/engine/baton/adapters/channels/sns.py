"""`Notices` on SNS: one topic for all; subscribers filter by the attributes of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from baton.adapters.aws import refusals_are_outages, translated
from baton.adapters.channels.words import facts_of, line, message_of, subject_of
from baton.ports import Telling
from baton.ports.log import xml_text

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sns.type_defs import MessageAttributeValueTypeDef

_MOST_SUBJECT = 99  # SNS takes fewer than 100 characters of ASCII


class SnsNotices:
    """`Notices` on one topic, `topic` being its ARN."""

    name = "sns"

    def __init__(self, client: SNSClient, topic: str) -> None:
        self._client = client
        self._topic = topic

    def reaches(self, telling: Telling) -> bool:
        return True

    def tell(self, telling: Telling) -> None:
        # A topic that refuses is as good as one that is away: the step goes on, and it is tried again.
        with refusals_are_outages(), translated():
            self._client.publish(
                TopicArn=self._topic,
                Subject=_ascii(subject_of(telling)),
                Message=message_of(telling),
                MessageAttributes=_attributes(telling),
            )


def _ascii(subject: str) -> str:
    return line("".join(one if one.isascii() else "?" for one in subject), _MOST_SUBJECT)


def _attributes(telling: Telling) -> Mapping[str, MessageAttributeValueTypeDef]:
    return {
        name: {"DataType": "String", "StringValue": xml_text(value)}
        for name, value in facts_of(telling).items()
    }
