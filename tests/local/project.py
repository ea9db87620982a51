"""A tiny deployment of the tests' own: its template, its handlers, and how a test waits for what they do.

It has one of each event source; which of its handlers does what is written in the messages themselves. What waits does so
until the test makes a file: then nothing depends on how fast this machine is.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3

from baton.local.run import LocalRun
from baton.local.stack import HttpApi, Stack, read_http_api
from baton.local.template import Resolver, effective, load
from tests.kit.patience import PATIENCE_S

TEMPLATE = """
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  JwtIssuer: {Type: String, Default: "", AllowedPattern: "^(https://.+)?$"}
  JwtAudience: {Type: CommaDelimitedList, Default: ""}
Globals:
  Function: {Runtime: python3.13, Handler: app.handler, Timeout: 4, Layers: [!Ref Layer]}
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      StreamSpecification: {StreamViewType: NEW_IMAGE}
      TimeToLiveSpecification: {AttributeName: ttl, Enabled: true}
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 4
      RedrivePolicy: {deadLetterTargetArn: !GetAtt DeadLetters.Arn, maxReceiveCount: 2}
  DeadLetters: {Type: AWS::SQS::Queue}
  Failures: {Type: AWS::SQS::Queue}
  Layer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: layer}
  Worker:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: worker/
      Environment: {Variables: {TABLE: !Ref Table}}
      EventInvokeConfig:
        MaximumRetryAttempts: 1
        DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Failures.Arn}}
      Events:
        Messages:
          Type: SQS
          Properties:
            Queue: !GetAtt Queue.Arn
            BatchSize: 10
            FunctionResponseTypes: [ReportBatchItemFailures]
            ScalingConfig: {MaximumConcurrency: 2}
  Relay:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: relay/
      Events:
        Changes:
          Type: DynamoDB
          Properties:
            Stream: !GetAtt Table.StreamArn
            StartingPosition: TRIM_HORIZON
            FilterCriteria: {Filters: [{Pattern: '{"dynamodb":{"NewImage":{"wake":{"S":[{"exists":true}]}}}}'}]}
            FunctionResponseTypes: [ReportBatchItemFailures]
            BisectBatchOnFunctionError: true
            MaximumRetryAttempts: 1
            DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Failures.Arn}}
  Front:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: front/
      Timeout: 10
      Environment: {Variables: {WORKER: !Ref Worker}}
  Api:
    Type: AWS::ApiGatewayV2::Api
    Properties: {Name: api, ProtocolType: HTTP}
  Calls:
    Type: AWS::ApiGatewayV2::Integration
    Properties: &calls
      ApiId: !Ref Api
      IntegrationType: AWS_PROXY
      IntegrationUri: !GetAtt Front.Arn
      PayloadFormatVersion: "2.0"
  ShortCalls:
    Type: AWS::ApiGatewayV2::Integration
    Properties: {<<: *calls, TimeoutInMillis: 100}
  Tokens:
    Type: AWS::ApiGatewayV2::Authorizer
    Properties:
      ApiId: !Ref Api
      AuthorizerType: JWT
      IdentitySource: ["$request.header.Authorization"]
      JwtConfiguration: {Issuer: !Ref JwtIssuer, Audience: !Ref JwtAudience}
  Health:
    Type: AWS::ApiGatewayV2::Route
    Properties: {ApiId: !Ref Api, RouteKey: GET /health, Target: !Sub "integrations/${Calls}"}
  Slow:
    Type: AWS::ApiGatewayV2::Route
    Properties: &guarded
      ApiId: !Ref Api
      RouteKey: GET /slow
      AuthorizationType: JWT
      AuthorizerId: !Ref Tokens
      Target: !Sub "integrations/${ShortCalls}"
  Rest:
    Type: AWS::ApiGatewayV2::Route
    Properties: {<<: *guarded, RouteKey: $default, Target: !Sub "integrations/${Calls}"}
  Machine:
    Type: AWS::Serverless::StateMachine
    Properties:
      Type: EXPRESS
      DefinitionUri: machine.asl.json
      DefinitionSubstitutions: {WorkerArn: !GetAtt Worker.Arn}
      Events:
        Tick: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 minute)}}
"""
RULE = """
  Outside:
    Type: AWS::Events::Rule
    Properties:
      EventBusName: orders
      EventPattern: {source: [shop]}
      Targets: [{Id: worker, Arn: !GetAtt Worker.Arn, DeadLetterConfig: {Arn: !GetAtt Failures.Arn}}]
"""
MACHINE = """{"StartAt": "Make", "States": {
  "Make": {"Type": "Pass", "Parameters": {"items.$": "States.ArrayRange(0, 1, 1)"}, "Next": "Each"},
  "Each": {"Type": "Map", "ItemsPath": "$.items", "End": true,
    "ItemSelector": {"do": "tick", "shard.$": "$$.Map.Item.Value"},
    "ItemProcessor": {"StartAt": "Call", "States": {
      "Call": {"Type": "Task", "Resource": "${WorkerArn}", "End": true}}}}}}"""
LAYER = '''
import os, subprocess, sys, time

def act(body, delivery=1):
    """Does what the message says; False if the message failed."""
    todo = body.get("do")
    while todo == "wait" and not os.path.exists(body["for"]):
        time.sleep(0.01)
    if todo == "hang once" and delivery == 1:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "helper of the worker"])
        time.sleep(600)
    if todo == "exit":
        os._exit(4)
    if todo == "raise":
        raise ValueError("as told")
    return not (todo == "fail always" or (todo == "fail once" and delivery == 1))
'''
WORKER = """
import json
from acting import act

def handler(event, context):
    print("handling", event)
    if "Records" not in event:
        act(event.get("detail", event))
        return "x" * event["answer"] if "answer" in event else event
    failed = [
        record["messageId"]
        for record in event["Records"]
        if not act(json.loads(record["body"]), int(record["attributes"]["ApproximateReceiveCount"]))
    ]
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}
"""
RELAY = """
import json
from acting import act

seen = set()  # warm: a second delivery comes to the same process

def handler(event, context):
    for record in event["Records"]:
        number = record["dynamodb"]["SequenceNumber"]
        delivery = 2 if number in seen else 1
        seen.add(number)
        if not act(json.loads(record["dynamodb"]["NewImage"]["wake"]["S"]), delivery):
            return {"batchItemFailures": [{"itemIdentifier": number}]}
"""
FRONT = """
import json, os, time
from acting import act

def handler(event, context):
    body = json.loads(event.get("body") or "{}")
    if event["rawPath"] == "/slow":
        time.sleep(0.5)
    if body.get("do") == "forward":
        import boto3, sys

        payload = json.dumps(body["payload"])
        answer = boto3.client("lambda").invoke(
            FunctionName=os.environ["WORKER"], InvocationType=body["type"], Payload=payload
        )
        told = {"status": answer["StatusCode"], "error": answer.get("FunctionError"), "payload": answer["Payload"].read().decode(),
            "loaded": sorted({"_awscrt", "OpenSSL"} & sys.modules.keys())}
        return {"statusCode": 200, "body": json.dumps(told)}
    act(body)
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps({
        "event": event, "environment": dict(os.environ), "remaining": context.get_remaining_time_in_millis(),
        "name": context.function_name, "arn": context.invoked_function_arn, "cwd": os.getcwd()})}
"""


def write_project(folder: Path, more: str = "") -> Path:
    """Writes the whole project, with `more` resources; returns the path of its template."""
    files = {
        "template.yaml": TEMPLATE + more,
        "machine.asl.json": MACHINE,
        "layer/acting.py": LAYER,
        "worker/app.py": WORKER,
        "relay/app.py": RELAY,
        "front/app.py": FRONT,
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder / "template.yaml"


def declare(template: Path) -> tuple[Stack, HttpApi | None]:
    """What the local run reads from the template, with made-up ids for what it would create; starts nothing."""
    own = {"JwtIssuer": "http://issuer", "JwtAudience": "me"}
    loaded = load(template, own)
    resolver = Resolver(loaded, effective(loaded, {}, own))
    for logical_id, resource in loaded.resources.items():
        if resource["Type"] in {"AWS::SQS::Queue", "AWS::ApiGatewayV2::Api"}:
            resolver.learn(logical_id, "Ref", f"http://{logical_id}")
        if resource["Type"] == "AWS::DynamoDB::Table":
            arn = resolver.attribute(logical_id, "Arn", logical_id)
            resolver.learn(logical_id, "StreamArn", f"{arn}/stream/1")
    stack = Stack(loaded, resolver)
    return stack, read_http_api(stack, resolver)


Scenario = Callable[[LocalRun], Coroutine[Any, Any, None]]


@contextmanager
def shared_run(template: Path, **options: Any) -> Iterator[Callable[[Scenario], None]]:
    """One run for tests that do not mind each other; what it yields plays a scenario on that run's event loop."""
    with asyncio.Runner() as runner:
        run = runner.run(LocalRun(template, **options).__aenter__())
        try:
            yield lambda scenario: runner.run(scenario(run))
        finally:
            runner.run(run.__aexit__(None, None, None))


def client(run: LocalRun, service: Any) -> Any:
    """A boto3 client of the test's own for this run."""
    settings = run.aws_environment
    return boto3.client(
        service,
        endpoint_url=settings.get(f"AWS_ENDPOINT_URL_{service.upper()}", settings["AWS_ENDPOINT_URL"]),
        region_name=settings["AWS_REGION"],
        aws_access_key_id=settings["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=settings["AWS_SECRET_ACCESS_KEY"],
    )


async def send(run: LocalRun, *bodies: dict[str, Any], group: str = "") -> None:
    """Messages to the queue, in batches of ten."""
    given = {"MessageGroupId": group} if group else {}
    entries = [{"Id": str(n), "MessageBody": json.dumps(body), **given} for n, body in enumerate(bodies)]
    sqs = client(run, "sqs")
    for start in range(0, len(entries), 10):
        batch = entries[start : start + 10]
        await asyncio.to_thread(sqs.send_message_batch, QueueUrl=run.physical["Queue"], Entries=batch)


async def put_events(run: LocalRun, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    """Events of the shop on the bus of `RULE`, unless an entry says otherwise; what was answered for each."""
    usual = {"EventBusName": "orders", "Source": "shop", "DetailType": "paid", "Detail": "{}"}
    answer = await asyncio.to_thread(
        client(run, "events").put_events, Entries=[usual | entry for entry in entries]
    )
    answered: list[dict[str, Any]] = answer["Entries"]
    return answered


def deliveries(run: LocalRun, body: dict[str, Any]) -> list[Any]:
    """The ended invocations that were given a message with this body, oldest first."""
    wanted = json.dumps(body)
    return [
        record
        for record in run.invocations
        if record.trigger == "sqs" and any(r["body"] == wanted for r in record.event["Records"])
    ]


async def until(ready: Callable[[], Any], limit_s: float = PATIENCE_S) -> Any:
    """Waits until `ready()` is truthy, and returns it."""
    give_up = time.monotonic() + limit_s
    while not (value := ready()):
        assert time.monotonic() < give_up, "it did not happen in time"
        await asyncio.sleep(0.02)
    return value


async def received(run: LocalRun, queue: str, limit_s: float = PATIENCE_S) -> dict[str, Any]:
    """Takes the next message out of a queue that no function polls."""
    sqs = client(run, "sqs")
    give_up = time.monotonic() + limit_s
    while time.monotonic() < give_up:
        answer = await asyncio.to_thread(
            sqs.receive_message, QueueUrl=run.physical[queue], WaitTimeSeconds=1, AttributeNames=["All"]
        )
        if answer.get("Messages"):
            message: dict[str, Any] = answer["Messages"][0]
            handle = message["ReceiptHandle"]
            await asyncio.to_thread(sqs.delete_message, QueueUrl=run.physical[queue], ReceiptHandle=handle)
            return message
    raise AssertionError(f"{queue} stayed empty")
