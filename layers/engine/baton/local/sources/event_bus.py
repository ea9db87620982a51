"""Events on a bus of the embedded AWS: the functions that the template's rules name as targets get them, as from EventBridge.

The embedded AWS has the buses and says which pattern an event fits, but it cannot invoke these functions. So each event of a
bus goes into a queue of its own, from which it is handed on. Repetitions and dead letters are in functions/lambdas.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from baton.local.aws.aws import Aws
from baton.local.aws.ministack import ACCOUNT
from baton.local.functions.lambdas import Lambdas
from baton.local.processes.problems import TemplateProblem
from baton.local.template.declared import EventRule
from baton.local.template.naming import arn_of

log = logging.getLogger("baton.local.bus")
_EVERYTHING = json.dumps({"account": [ACCOUNT]})
_LONG_POLL_S = 2
_OWN = "baton"  # the source of notices of the deployment itself, which no rule need take


def buses_of(rules: Sequence[EventRule], lambdas: Lambdas, aws: Aws) -> list[EventBus]:
    """One for each bus that a rule names."""
    names = sorted({rule.bus for rule in rules})
    return [
        EventBus(name, f"baton-bus-{n}", [r for r in rules if r.bus == name], lambdas, aws)
        for n, name in enumerate(names)
    ]


class EventBus:
    """`queue` is the name of the queue that is made for it; `rules` are those on this bus."""

    def __init__(self, name: str, queue: str, rules: Sequence[EventRule], lambdas: Lambdas, aws: Aws) -> None:
        self._name, self._queue, self._rules = name, queue, rules
        self._lambdas, self._aws = lambdas, aws
        self._url = ""

    async def open(self) -> None:
        """Creates bus, rules and queue. Raises `TemplateProblem` for a rule that the embedded AWS refuses."""
        await asyncio.to_thread(self._create)

    def _create(self) -> None:
        events, where = self._aws.events, self._rules[0].logical_id
        try:
            if self._name != "default":
                events.create_event_bus(Name=self._name)
            for rule in self._rules:
                where = rule.logical_id
                events.put_rule(Name=where, EventBusName=self._name, EventPattern=rule.pattern)
            self._url = self._aws.sqs.create_queue(QueueName=self._queue)["QueueUrl"]
            events.put_rule(Name=self._queue, EventBusName=self._name, EventPattern=_EVERYTHING)
            targets = [{"Id": "relay", "Arn": arn_of("AWS::SQS::Queue", self._queue)}]
            events.put_targets(Rule=self._queue, EventBusName=self._name, Targets=targets)
        except (ClientError, BotoCoreError) as error:
            raise TemplateProblem(where, f"could not be created: {error}") from error

    async def run(self) -> None:
        """Until cancelled. An event whose handing on breaks comes again once its message is visible again."""
        receive: Callable[..., Any] = self._aws.sqs.receive_message
        delete: Callable[..., Any] = self._aws.sqs.delete_message
        while True:
            try:
                answer = await self._aws.call(
                    receive, QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=_LONG_POLL_S
                )
                for message in answer.get("Messages", []):
                    await self._hand_on(message["Body"])
                    await self._aws.call(delete, QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
            except (ClientError, BotoCoreError) as error:
                log.warning("bus %s: handing on failed: %s", self._name, error)
                await asyncio.sleep(1)

    async def _hand_on(self, body: str) -> None:
        event = json.loads(body)
        said = f"bus {self._name}: the event {event['id']}"
        if refusal := refusal_of(event):
            log.warning("%s is not handed on: in a deployment PutEvents answers %s", said, refusal)
            return
        matches: Callable[..., Any] = self._aws.events.test_event_pattern
        taken = False
        for rule in self._rules:
            answer = await self._aws.call(matches, EventPattern=rule.pattern, Event=body)
            if answer["Result"]:
                taken = True
                for function in rule.functions:
                    self._lambdas.submit(function, body.encode())
        if not taken and event["source"] != _OWN:
            takes = ", ".join(f"{rule.logical_id} {rule.pattern}" for rule in self._rules)
            kind = f"source {event['source']}, detail-type {event['detail-type']}"
            log.warning("%s (%s) fits no rule: %s", said, kind, takes)


def refusal_of(event: Mapping[str, Any]) -> str:
    """The error code with which EventBridge refuses an entry that the embedded AWS takes; empty for none."""
    if not event["source"] or not event["detail-type"]:
        return "InvalidArgument: Source and DetailType are required"
    if not isinstance(event["detail"], dict):
        return "MalformedDetail: Detail has to be the text of a JSON object"
    return ""
