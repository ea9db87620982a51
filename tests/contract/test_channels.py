"""Channels against the services they are made for, as far as moto and MiniStack are like them: mail and EventBridge.

SNS is in test_notices.py, the webhook in tests/channels.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from baton.adapters.aws import Aws
from baton.adapters.channels.aws import EventNotices, MailNotices, cloud_event
from baton.adapters.channels.words import letter_of
from baton.adapters.ses_mailer import SesMailer
from baton.errors import ChannelRefused, StoreUnavailable, Throttled
from tests.channels.test_words import NOTICE, TOLD
from tests.contract.test_mail import DESK, delivered


def test_a_question_arrives_by_mail(ministack: str) -> None:
    client = Aws(ministack).sesv2
    if DESK not in {each["IdentityName"] for each in client.list_email_identities()["EmailIdentities"]}:
        client.create_email_identity(EmailIdentity=DESK)
    MailNotices(SesMailer(client), DESK, "{name}@a.example", "").tell(TOLD)
    (sent,) = delivered(ministack, "[medium] Question: How shall we pay?")
    assert (sent["Source"], sent["To"], sent["BodyText"]) == (DESK, ["ada@a.example"], letter_of(TOLD))


def test_a_sender_that_is_not_verified_is_refused_for_ever(moto_aws: Aws) -> None:
    with pytest.raises(ChannelRefused, match="not verified"):
        MailNotices(SesMailer(moto_aws.sesv2), DESK, "{name}", "").tell(TOLD)


def bus_with_queue(aws: Aws) -> tuple[str, str]:
    """A bus whose rule sends every question on to a queue."""
    name = "notices"
    aws.events.create_event_bus(Name=name)
    url = aws.sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": ["baton"], "detail-type": ["baton.question.asked"]}
    aws.events.put_rule(Name=name, EventBusName=name, EventPattern=json.dumps(pattern))
    aws.events.put_targets(Rule=name, EventBusName=name, Targets=[{"Id": "queue", "Arn": arn}])
    return name, url


def test_a_rule_of_the_bus_gets_a_question_as_a_cloud_event_and_nothing_else(ministack: str) -> None:
    aws = Aws(ministack)
    bus, url = bus_with_queue(aws)
    channel = EventNotices(aws.events, bus)
    for told in (replace(TOLD, notice=replace(NOTICE, ask="")), TOLD):
        channel.tell(told)
    (message,) = aws.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert json.loads(message["Body"])["detail"] == cloud_event(TOLD)


class Bus:
    """A client whose answer of 200 says that the entry was not taken."""

    def __init__(self, code: str) -> None:
        self.code = code

    def put_events(self, **_: Any) -> dict[str, Any]:
        return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": self.code, "ErrorMessage": "no"}]}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ThrottlingException", Throttled),
        ("InternalFailure", StoreUnavailable),
        ("MalformedDetail", ChannelRefused),
    ],
)
def test_an_event_that_was_not_taken_is_no_success(code: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="did not take it: no"):
        EventNotices(Bus(code), "b").tell(TOLD)
