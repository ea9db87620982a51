"""Events of a bus on their way to functions, without an AWS: the one here fails when it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from baton.local.aws import Aws
from baton.local.functions import Lambdas
from baton.local.processes import TemplateProblem
from baton.local.stack import EventRule
from baton.local.triggers import buses_of
from tests.kit.sentences import Says
from tests.kit.virtual_time import run_virtual

RULES = [
    EventRule("Paid", "orders", '{"source": ["shop"]}', ("Worker", "Books")),
    EventRule("Sent", "default", '{"source": ["post"]}', ("Worker",)),
]
EVENT = json.dumps({"id": "e1", "source": "shop", "detail-type": "paid", "detail": {}})


class OneMessage:
    """An AWS with one message, given until it is deleted. `broken`: calls that fail, each once."""

    def __init__(self, *broken: str) -> None:
        self.broken, self.asked, self.left = list(broken), list[str](), 1
        self.events = self.sqs = self

    def _ask(self, call: str, name: str = "") -> None:
        self.asked.append(f"{call} {name}".strip())
        if call in self.broken:
            self.broken.remove(call)
            raise ClientError({"Error": {"Code": "Busy", "Message": "busy"}}, call)

    def receive_message(self, **_: Any) -> Any:
        self._ask("receive")
        if not self.left or len(self.asked) > 30:
            raise asyncio.CancelledError
        return {"Messages": [{"Body": EVENT, "ReceiptHandle": "r"}]}

    def delete_message(self, **_: Any) -> None:
        self._ask("delete")
        self.left = 0

    def test_event_pattern(self, EventPattern: str, **_: Any) -> Any:  # noqa: N803  # boto3's name
        self._ask("match")
        return {"Result": "shop" in EventPattern}

    def create_event_bus(self, Name: str) -> None:  # noqa: N803
        self._ask("bus", Name)

    def put_rule(self, Name: str, **_: Any) -> None:  # noqa: N803
        self._ask("rule", Name)

    def put_targets(self, **_: Any) -> None:
        self._ask("targets")

    def create_queue(self, **_: Any) -> Any:
        self._ask("queue")
        return {"QueueUrl": "http://queue"}

    async def call(self, method: Callable[..., Any], **given: Any) -> Any:
        return method(**given)


class Submitted(list[str]):
    def submit(self, function: str, event: bytes) -> None:
        assert event == EVENT.encode()
        self.append(function)


@pytest.mark.parametrize(
    ("broken", "handed_on"),
    [
        ((), ["Worker", "Books"]),
        (("receive",), ["Worker", "Books"]),
        (("match",), ["Worker", "Books"]),
        (("delete",), ["Worker", "Books"] * 2),
    ],
)
def test_an_event_comes_to_every_target_and_again_where_its_message_could_not_be_dealt_with(
    broken: tuple[str, ...], handed_on: list[str]
) -> None:
    aws, functions = OneMessage(*broken), Submitted()
    bus = buses_of(RULES, cast("Lambdas", functions), cast("Aws", aws))[1]
    with pytest.raises(asyncio.CancelledError):
        run_virtual(bus.run())
    assert functions == handed_on
    assert aws.left == 0


def test_a_bus_of_ones_own_is_made_and_what_is_refused_names_its_rule(says: Says) -> None:
    def opened(number: int, *broken: str) -> list[str]:
        aws = OneMessage(*broken)
        asyncio.run(buses_of(RULES, cast("Lambdas", None), cast("Aws", aws))[number].open())
        return aws.asked

    assert opened(0) == ["rule Sent", "queue", "rule baton-bus-0", "targets"]
    assert opened(1) == ["bus orders", "rule Paid", "queue", "rule baton-bus-1", "targets"]
    with says.raised(TemplateProblem):
        opened(1, "rule")
