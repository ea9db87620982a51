"""Provision the template's tables, queues, buckets and topics in the embedded AWS, and learn their physical
ids.

It also confirms the sender address of mails. Only properties that functions can observe are carried over;
alarms, roles, log groups and subscriptions are not created.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from baton.local.aws import Aws
from baton.local.processes import TemplateProblem
from baton.local.template import Resolver, Template, scalar_text

# Properties that mean the same in CloudFormation and in CreateTable.
_TABLE_AS_IS = (
    "AttributeDefinitions",
    "KeySchema",
    "BillingMode",
    "ProvisionedThroughput",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
)
_QUEUE_SKIPPED = {"QueueName", "Tags", "RedrivePolicy"}


def provision(template: Template, resolver: Resolver, aws: Aws) -> None:
    """Create the resources in one pass. Raises `TemplateProblem` with the failed one's logical id."""
    makers: dict[str, Callable[[str, Resolver, Aws], None]] = {
        "AWS::DynamoDB::Table": _table,
        "AWS::SQS::Queue": _queue,
        "AWS::S3::Bucket": _bucket,
        "AWS::SNS::Topic": _topic,
    }
    work = [
        (makers[kind], logical_id)
        for kind in makers
        for logical_id, _ in template.of_type(kind)
        if resolver.exists(logical_id)
    ]
    # A redrive policy is refused until the queue it names exists, so these come last.
    work += [(_redrive, logical_id) for make, logical_id in work if make is _queue]
    for make, logical_id in work:
        try:
            make(logical_id, resolver, aws)
        except (ClientError, BotoCoreError) as error:
            raise TemplateProblem(logical_id, f"could not be created: {error}") from error


def verify_sender(address: str, aws: Aws) -> None:
    """Confirm the sender address, which on AWS requires a click on a link in a mail. Blocking."""
    aws.sesv2.create_email_identity(EmailIdentity=address)


def _table(logical_id: str, resolver: Resolver, aws: Aws) -> None:
    properties = resolver.properties(logical_id)
    request: dict[str, Any] = {key: properties[key] for key in _TABLE_AS_IS if key in properties}
    for index in request.get("GlobalSecondaryIndexes", ()):
        index.pop("WarmThroughput", None)  # there is nothing to warm
    stream = properties.get("StreamSpecification")
    if stream:
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream["StreamViewType"]}
    name = resolver.name(logical_id)
    try:
        described = aws.dynamodb.create_table(TableName=name, **request)["TableDescription"]
    except aws.dynamodb.exceptions.ResourceInUseException:  # kept from the run before
        described = aws.dynamodb.describe_table(TableName=name)["Table"]
    if stream:
        resolver.learn(logical_id, "StreamArn", described["LatestStreamArn"])
    expiry = properties.get("TimeToLiveSpecification")
    if expiry and scalar_text(expiry.get("Enabled")) == "true":
        aws.dynamodb.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": expiry["AttributeName"]},
        )


def _queue(logical_id: str, resolver: Resolver, aws: Aws) -> None:
    attributes = {
        key: json.dumps(value) if isinstance(value, dict) else scalar_text(value)
        for key, value in resolver.properties(logical_id).items()
        if key not in _QUEUE_SKIPPED
    }
    answer = aws.sqs.create_queue(
        QueueName=resolver.name(logical_id),
        Attributes=attributes,  # type: ignore[arg-type]  # the names come from the template
    )
    resolver.learn(logical_id, "Ref", answer["QueueUrl"])
    resolver.learn(logical_id, "QueueUrl", answer["QueueUrl"])


def _redrive(logical_id: str, resolver: Resolver, aws: Aws) -> None:
    policy = resolver.properties(logical_id).get("RedrivePolicy")
    if policy:
        aws.sqs.set_queue_attributes(
            QueueUrl=resolver.ref(logical_id, logical_id), Attributes={"RedrivePolicy": json.dumps(policy)}
        )


def _bucket(logical_id: str, resolver: Resolver, aws: Aws) -> None:
    # A run that was killed has written its objects, and nothing of its tables.
    with suppress(aws.s3.exceptions.BucketAlreadyOwnedByYou):
        aws.s3.create_bucket(Bucket=resolver.name(logical_id))


def _topic(logical_id: str, resolver: Resolver, aws: Aws) -> None:
    """Create a topic without subscribers: sent messages are lost, and the table keeps incidents."""
    answer = aws.sns.create_topic(Name=resolver.name(logical_id))
    resolver.learn(logical_id, "Ref", answer["TopicArn"])
