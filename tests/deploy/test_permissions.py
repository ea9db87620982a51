"""Who may do what: each function exactly what its code does, on its own resources and no others."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest

from tests.deploy.stack import FUNCTIONS, ROOT, stack

COLLECT = {"sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:DeleteMessage"}
LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}
APPEND = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query"}
BLOBS = {"s3:GetObject", "s3:PutObject"}
# A role that reads blobs may list the bucket: to others S3 says 403 for an object that is not there, and a missing
# blob (a log that cannot be read) would look like a missing right (a defect, tried again every minute).
LIST = {"s3:ListBucket"}
# Role -> resource (logical id and what follows its ARN) -> actions. All there is.
MAY: dict[str, dict[str, set[str]]] = {
    "ApiRole": {
        "ApiLogGroup": LOG,
        "SagaTable": APPEND,
        "SagaTable/index/StatusIndex": {"dynamodb:Query"},
        "SagaTable/index/InboxIndex": {"dynamodb:Query"},
        "BlobBucket": LIST,
        "BlobBucket/*": BLOBS,
    },
    "WorkerRole": {
        "WorkerLogGroup": LOG,
        "SagaTable": APPEND,
        "SagaTable/index/StatusIndex": {"dynamodb:Query"},
        "SagaTable/index/InboxIndex": {"dynamodb:Query"},
        "BlobBucket": LIST,
        "BlobBucket/*": BLOBS,
        "WakeQueue": {
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ChangeMessageVisibility",
            "sqs:SendMessage",
        },
        "WakeDeadLetterQueue": {"sqs:SendMessage"},
        "NoticesTopic": {"sns:Publish"},
        "WorkerFunction": {"lambda:InvokeFunction"},
        "WorkerFunction:build-*": {"lambda:InvokeFunction"},
    },
    "RelayRole": {
        "RelayLogGroup": LOG,
        "SagaTable/stream/now": {
            "dynamodb:DescribeStream",
            "dynamodb:GetRecords",
            "dynamodb:GetShardIterator",
        },
        "SagaTable/stream/*": {"dynamodb:ListStreams"},
        "SagaTable": {"dynamodb:BatchWriteItem", "dynamodb:UpdateItem"},
        "WakeQueue": {"sqs:SendMessage"},
        "RelayFailureQueue": {"sqs:SendMessage"},
    },
    "ReconcilerRole": {
        "ReconcilerLogGroup": LOG,
        "SagaTable/index/DueIndex": {"dynamodb:Query"},
        "SagaTable/index/StatusIndex": {"dynamodb:Query"},
        "SagaTable": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
        "WorkerFunction": {"lambda:InvokeFunction"},
        "WakeQueue": {"sqs:SendMessage"},
        "WakeDeadLetterQueue": COLLECT,
        "RelayFailureQueue": COLLECT,
    },
    "ReconcileStateMachineRole": {
        "ReconcilerFunction": {"lambda:InvokeFunction"},
        # AWS knows no resources for these: they set up the delivery of the state machine's log.
        "*": {
            "logs:CreateLogDelivery",
            "logs:GetLogDelivery",
            "logs:UpdateLogDelivery",
            "logs:DeleteLogDelivery",
            "logs:ListLogDeliveries",
            "logs:PutResourcePolicy",
            "logs:DescribeResourcePolicies",
            "logs:DescribeLogGroups",
        },
    },
    "ReconcileScheduleRole": {"ReconcileStateMachine": {"states:StartExecution"}},
}
MAIL = ["ses:SendEmail"]  # granted to the worker only with MailFrom
OBJECTS = ["s3:DeleteObject"]  # the same with StandardTools
INDEX = ["s3vectors:PutVectors", "s3vectors:QueryVectors", "s3vectors:GetVectors", "s3vectors:DeleteVectors"]
EVENTS = ["events:PutEvents"]  # the same with EventBusName
MODELS = [
    "ssm:GetParameter",
    "secretsmanager:GetSecretValue",
]  # the same with ModelSecrets, and with ApiSecrets
TRUSTED = {
    "ReconcileStateMachineRole": "states.amazonaws.com",
    "ReconcileScheduleRole": "scheduler.amazonaws.com",
}
CALLS = (r"client\.(?!get_paginator)(\w+)\(", r"client\.get_paginator\(\"(\w+)\"")
# Calls of boto3 clients whose permission is not their own name.
ACTION_OF = {
    "head_object": "s3:GetObject",
    "send_message_batch": "sqs:SendMessage",
    "delete_message_batch": "sqs:DeleteMessage",
    "invoke": "lambda:InvokeFunction",
    "send_email": "ses:SendEmail",
    "put_events": "events:PutEvents",
    "get_parameter": "ssm:GetParameter",
    "get_secret_value": "secretsmanager:GetSecretValue",
    "put_vectors": "s3vectors:PutVectors",
    "query_vectors": "s3vectors:QueryVectors",
    "delete_vectors": "s3vectors:DeleteVectors",
    "transact_write_items": "dynamodb:PutItem",  # puts and updates need no other permission in a transaction
}
# What `baton versions` calls, with the credentials of who deploys.
OPERATORS = {"delete_alias", "delete_function", "get_function_configuration", "list_aliases"}
SERVICE_OF = {
    "dynamodb": r"item|items|query|scan",
    "s3": r"object|objects_v2",
    "sqs": r"message|queue_\w+",
    "sns": r"publish",
}


def roles() -> dict[str, dict[str, Any]]:
    return stack().of_type("AWS::IAM::Role")


def statements(role: str) -> list[dict[str, Any]]:
    policies = stack().properties(role)["Policies"]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def resource_named(arn: str) -> str:
    """`WakeQueue` or `SagaTable/index/DueIndex` for an ARN of this stack; anything else as it is."""
    kinds = (
        "AWS::DynamoDB::Table",
        "AWS::SQS::Queue",
        "AWS::SNS::Topic",
        "AWS::Lambda::Function",
        "AWS::Logs::LogGroup",
        "AWS::S3::Bucket",
        "AWS::StepFunctions::StateMachine",
    )
    own = {stack().arn(logical_id): logical_id for kind in kinds for logical_id in stack().of_type(kind)}
    for whole in sorted(own, key=len, reverse=True):
        if arn == whole or arn.startswith((whole + "/", whole + ":")):
            return own[whole] + arn.removeprefix(whole)
    return arn


@pytest.mark.parametrize("role", MAY)
def test_a_role_may_do_exactly_what_the_table_says(role: str) -> None:
    granted: dict[str, set[str]] = defaultdict(set)
    for statement in statements(role):
        assert statement["Effect"] == "Allow"
        for arn in statement["Resource"]:
            granted[resource_named(arn)] |= set(statement["Action"])
    assert granted == MAY[role]


def test_the_worker_may_send_mail_if_a_deployment_has_an_address_and_only_from_that_one() -> None:
    _, mail = stack(MailFrom="desk@lantern.example").properties("WorkerRole")["Policies"]
    (statement,) = mail["PolicyDocument"]["Statement"]
    assert statement["Action"] == MAIL
    assert statement["Resource"][0].endswith(":identity/*")
    assert statement["Condition"] == {"StringEquals": {"ses:FromAddress": "desk@lantern.example"}}


def test_the_worker_may_delete_what_standard_tools_have_put_if_there_are_any_and_no_value_of_a_log() -> None:
    _, objects = stack(StandardTools="std.put_object").properties("WorkerRole")["Policies"]
    (statement,) = objects["PolicyDocument"]["Statement"]
    assert statement["Action"] == OBJECTS
    assert [resource_named(arn) for arn in statement["Resource"]] == ["BlobBucket/T/*/objects/*"]


def test_the_worker_may_put_events_if_a_deployment_has_a_bus_and_only_on_that_one() -> None:
    _, events = stack(EventBusName="notices").properties("WorkerRole")["Policies"]
    (statement,) = events["PolicyDocument"]["Statement"]
    assert statement["Action"] == EVENTS
    assert statement["Resource"][0].endswith(":event-bus/notices")
    assert statement["Condition"] == {"StringEquals": {"events:source": "baton"}}


@pytest.mark.parametrize("parameter", ["ModelSecrets", "ApiSecrets"])
def test_the_worker_may_read_the_credentials_of_models_if_a_deployment_names_them_and_no_others(
    parameter: str,
) -> None:
    """And those of APIs."""
    _, models = stack(**{parameter: "/baton/models/"}).properties("WorkerRole")["Policies"]
    parameters, secrets = models["PolicyDocument"]["Statement"]
    assert [*parameters["Action"], *secrets["Action"]] == MODELS
    assert [arn.partition(":ssm:")[2].split(":", 2)[2] for arn in parameters["Resource"]] == [
        "parameter/baton/models/*"
    ]
    assert [arn.rpartition(":secret:")[2] for arn in secrets["Resource"]] == ["/baton/models/*"]


def test_functions_may_use_the_index_of_facts_that_a_deployment_names_and_no_other() -> None:
    index = "arn:aws:s3vectors:eu-central-1:123456789012:bucket/facts/index/facts"
    for role, actions in (("WorkerRole", INDEX), ("ApiRole", INDEX[-1:])):
        _, facts = stack(Facts=f"text-embedding-3-small {index}").properties(role)["Policies"]
        (statement,) = facts["PolicyDocument"]["Statement"]
        assert (statement["Action"], statement["Resource"]) == (actions, [index])


def test_the_worker_may_ask_the_models_of_bedrock_that_a_deployment_names_and_no_others() -> None:
    _, bedrock = stack(BedrockModels="anthropic.*").properties("WorkerRole")["Policies"]
    (statement,) = bedrock["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["bedrock:InvokeModelWithResponseStream"]
    assert [arn.partition(":bedrock:")[2] for arn in statement["Resource"]] == [
        "*::foundation-model/anthropic.*",
        "*:000000000000:inference-profile/*anthropic.*",
    ]


def test_the_api_may_read_the_secret_of_the_console_if_a_deployment_names_it_and_no_other() -> None:
    _, console = stack(ConsoleSecrets="/baton/console/").properties("ApiRole")["Policies"]
    parameters, secrets = console["PolicyDocument"]["Statement"]
    assert [*parameters["Action"], *secrets["Action"]] == MODELS
    assert [arn.partition(":parameter")[2] for arn in parameters["Resource"]] == ["/baton/console/client"]
    assert [arn.rpartition(":secret:")[2] for arn in secrets["Resource"]] == ["/baton/console/client-*"]


def test_there_is_no_other_role_and_no_other_policy() -> None:
    assert set(roles()) == set(MAY)
    assert all("ManagedPolicyArns" not in role for role in roles().values())
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::SQS::QueuePolicy"):
        assert stack().of_type(kind) == {}


def test_no_action_is_a_wildcard() -> None:
    wild = [
        (role, a) for role in MAY for statement in statements(role) for a in statement["Action"] if "*" in a
    ]
    assert wild == []


def test_no_resource_is_wider_than_one_of_this_stack_but_where_aws_knows_no_resources() -> None:
    wild = {
        (role, resource_named(arn))
        for role in MAY
        for statement in statements(role)
        for arn in statement["Resource"]
        if "*" in resource_named(arn)
    }
    blobs = {(role, "BlobBucket/*") for role, may in MAY.items() if "BlobBucket/*" in may}
    # A stream gets a new name whenever it is switched on, and ListStreams is asked about all of a table's.
    assert wild - blobs == {
        ("RelayRole", "SagaTable/stream/*"),
        ("ReconcileStateMachineRole", "*"),
        ("WorkerRole", "WorkerFunction:build-*"),
    }
    everywhere = [s for s in statements("ReconcileStateMachineRole") if s["Resource"] == ["*"]]
    assert all(a.startswith("logs:") for statement in everywhere for a in statement["Action"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_a_role_of_its_own(name: str) -> None:
    role = f"{FUNCTIONS[name].removesuffix('Function')}Role"
    assert stack().properties(FUNCTIONS[name])["Role"] == stack().arn(role)


def test_only_the_service_itself_may_take_a_role() -> None:
    for name, role in roles().items():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": TRUSTED.get(name, "lambda.amazonaws.com")}
        assert statement["Action"] == ["sts:AssumeRole"]


def test_the_bucket_is_reached_over_tls_only() -> None:
    (policy,) = stack().of_type("AWS::S3::BucketPolicy").values()
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_only_api_gateway_may_invoke_the_api_and_only_for_this_api() -> None:
    (permission,) = stack().of_type("AWS::Lambda::Permission").values()
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert permission["FunctionName"] == "baton-api"
    assert permission["SourceArn"].endswith(":HttpApi/*")


def test_whatever_the_adapters_call_some_function_may_do() -> None:
    calls = {
        call
        for file in (ROOT / "layers/engine/baton/adapters").rglob("*.py")
        for pattern in CALLS
        for call in re.findall(pattern, file.read_text("utf-8"))
    }
    assert "put_item" in calls, "the adapters' calls are not found any more"
    granted = {action for role in MAY.values() for actions in role.values() for action in actions} | {
        *MAIL,
        *OBJECTS,
        *EVENTS,
        *MODELS,
        *INDEX,
    }
    unknown = {call: action_of(call) for call in calls if action_of(call) not in granted}
    assert unknown.keys() == OPERATORS, "what is neither a function's nor an operator's"


def action_of(call: str) -> str:
    """The permission that a client's method needs: `put_item` -> `dynamodb:PutItem`."""
    if call in ACTION_OF:
        return ACTION_OF[call]
    camel = "".join(part.capitalize() for part in call.split("_"))
    service = next((s for s, ends in SERVICE_OF.items() if re.search(rf"(^|_)({ends})$", call)), "unknown")
    return f"{service}:{camel}"
