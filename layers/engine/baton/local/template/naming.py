"""What each type of resource is called: its name property, its ARN, and what `Ref` of it means.

Only the types that the local run creates, or whose names its parts pass on to one another.
"""

from __future__ import annotations

from baton.local.aws.ministack import ACCOUNT, REGION

# The property that sets the name; the attributes among them return it too (GetAtt Queue.QueueName).
_NAMES = {
    "AWS::ApiGatewayV2::Stage": ("StageName",),
    "AWS::DynamoDB::Table": ("TableName",),
    "AWS::IAM::Role": ("RoleName",),
    "AWS::Lambda::Function": ("FunctionName",),
    "AWS::Lambda::LayerVersion": ("LayerName",),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::SNS::Topic": ("TopicName",),
    "AWS::SQS::Queue": ("QueueName",),
    "AWS::Scheduler::Schedule": ("Name",),
    "AWS::StepFunctions::StateMachine": ("StateMachineName", "Name"),
}
_ARNS = {
    "AWS::DynamoDB::Table": "arn:aws:dynamodb:{region}:{account}:table/{name}",
    "AWS::IAM::Role": "arn:aws:iam::{account}:role/{name}",
    "AWS::Lambda::Function": "arn:aws:lambda:{region}:{account}:function:{name}",
    "AWS::Lambda::LayerVersion": "arn:aws:lambda:{region}:{account}:layer:{name}:1",
    "AWS::Logs::LogGroup": "arn:aws:logs:{region}:{account}:log-group:{name}:*",
    "AWS::S3::Bucket": "arn:aws:s3:::{name}",
    "AWS::SNS::Topic": "arn:aws:sns:{region}:{account}:{name}",
    "AWS::SQS::Queue": "arn:aws:sqs:{region}:{account}:{name}",
    "AWS::Scheduler::Schedule": "arn:aws:scheduler:{region}:{account}:schedule/default/{name}",
    "AWS::StepFunctions::StateMachine": "arn:aws:states:{region}:{account}:stateMachine:{name}",
}
_REFERENCE_IS_ARN = {
    "AWS::Lambda::LayerVersion",
    "AWS::SNS::Topic",
    "AWS::StepFunctions::StateMachine",
}


def names_of(kind: str) -> tuple[str, ...]:
    """Properties and attributes that hold the name of such a resource, the property first."""
    return _NAMES.get(kind, ())


def arn_of(kind: str, name: str) -> str | None:
    """The ARN, or None for a type whose ARN the local deployment does not need."""
    pattern = _ARNS.get(kind)
    return pattern and pattern.format(region=REGION, account=ACCOUNT, name=name)


def reference_is_arn(kind: str) -> bool:
    """Whether `Ref` returns the ARN, where it returns the name for most types."""
    return kind in _REFERENCE_IS_ARN
