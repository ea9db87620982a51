"""`Notices` on SNS: one topic for all; subscribers filter by the attributes of a message.

Here are the words of a message. Whether it is to be sent at all is the business of the store.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from baton.adapters.aws import refusals_are_outages, translated
from baton.adapters.rules import xml_text
from baton.core.log.events import Notice
from baton.ports import NoticeRecord

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sns.type_defs import MessageAttributeValueTypeDef

logger = logging.getLogger("baton.notices")

_MOST_SUBJECT = 99  # SNS takes fewer than 100 characters of ASCII
_MOST_MESSAGE = 20_000  # characters; SNS takes 256 KB


class SnsNotices:
    """`Notices` on one topic, `topic` being its ARN; without one a notice is only logged."""

    def __init__(self, client: SNSClient, topic: str, kept: NoticeRecord) -> None:
        self._client = client
        self._topic = topic
        self._kept = kept

    def tell(self, tenant: str, saga: str, user: str, notice: Notice, now: int) -> None:
        claimed = self._kept.claim(tenant, saga, notice, now)
        if claimed is None:
            return
        if claimed.incident:
            self._kept.open(tenant, saga, claimed)
        self._send(tenant, saga, user, claimed)
        self._kept.sent(tenant, notice.key, now)

    def _send(self, tenant: str, saga: str, user: str, notice: Notice) -> None:
        said = {
            "tenant": tenant,
            "saga": saga,
            "user": user,
            "node": notice.node,
            "to": notice.to,
            "code": notice.code,
            "severity": notice.severity,
        }
        if not self._topic:
            logger.warning("a notice, and no topic to send it to: %s", notice.message, extra={"notice": said})
            return
        # A topic that refuses is as good as one that is away: the step goes on, and it is tried again.
        with refusals_are_outages(), translated():
            self._client.publish(
                TopicArn=self._topic,
                Subject=subject_of(saga, notice),
                Message=message_of(said, notice),
                MessageAttributes=_attributes(said),
            )


def subject_of(saga: str, notice: Notice) -> str:
    """One line of ASCII, as SNS wants it."""
    is_question = notice.to == "user" and notice.node and not notice.code.startswith("budget")
    what = "Incident" if notice.incident else "Question" if is_question else "Notice"
    text = f"[{notice.severity}] {what}: {notice.code} in {saga}"
    printable = "".join(character if " " <= character <= "~" else "?" for character in text)
    return printable if len(printable) <= _MOST_SUBJECT else f"{printable[: _MOST_SUBJECT - 3]}..."


def message_of(said: Mapping[str, str], notice: Notice) -> str:
    """What happened, then where, line by line."""
    moment = (
        datetime.fromtimestamp(notice.at / 1_000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    )
    rows = [*said.items(), ("at", moment)]
    facts = "\n".join(f"{name}: {value}" for name, value in rows if value)
    return xml_text(f"{notice.message[:_MOST_MESSAGE]}\n\n{facts}\n")


def _attributes(said: Mapping[str, str]) -> Mapping[str, MessageAttributeValueTypeDef]:
    """SNS takes no empty ones."""
    return {
        name: {"DataType": "String", "StringValue": xml_text(value)} for name, value in said.items() if value
    }
