"""The queue of wakes on SQS, and direct invocations of Lambda: of the newest code, or of a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from baton.adapters.aws import Missing, translated
from baton.errors import CodeGone, StoreUnavailable, Throttled
from baton.ports import UNKNOWN, CodeBuild, DeadMessageCause, Message, Offload, tenant_of
from baton.ports.log import check_delay, xml_text

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef, SendMessageBatchRequestEntryTypeDef

_BATCH = 10  # SQS's limit
_MAX_MESSAGE = 1_048_576  # SQS's limit in bytes: body, and name, type and value of each attribute
_MAX_REASON = 1_000


class SqsQueue:
    """`Queue` on one SQS queue. The tenant is the message's group: the queue is fair to all."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {
                "Id": str(position),
                "MessageBody": msgspec.json.encode(message).decode(),
                "DelaySeconds": check_delay(delay),
                "MessageGroupId": tenant_of(message),
            }
            for position, (message, delay) in enumerate(messages)
        ]
        failed: list[int] = []
        for start in range(0, len(entries), _BATCH):
            try:
                with translated():
                    answer = self._client.send_message_batch(
                        QueueUrl=self._url, Entries=entries[start : start + _BATCH]
                    )
            except (Throttled, StoreUnavailable):
                if start == 0:
                    raise
                # Some were accepted: raising would have them all sent again.
                return [*failed, *range(start, len(entries))]
            failed += (int(entry["Id"]) for entry in answer.get("Failed", ()))
        return sorted(failed)

    def backlog(self) -> int:
        return visible(self._client, self._url)


class SqsDeadLetters:
    """`DeadLetters` on one SQS queue, with the cause in attributes. A body too long for them is cut."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, body: str, reason: str, cause: DeadMessageCause = UNKNOWN) -> None:
        told, text = xml_text(reason)[:_MAX_REASON] or "unknown", xml_text(body) or "{}"
        known = {"code": cause.code, "node": xml_text(cause.node)[:_MAX_REASON]}
        known |= {"version": str(cause.version or ""), "attempts": str(cause.attempts)}
        attributes = {name: value for name, value in known.items() if value}
        room = _MAX_MESSAGE - sum(map(_size, ["reason", *attributes], [told, *attributes.values()]))
        data = text.encode()
        if len(data) > room:
            note = f" (cut: it had {len(data)} bytes)"
            text = data[: room - len(note)].decode(errors="ignore")
            told += note
        with translated():
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=text,
                MessageAttributes={
                    name: _text(value) for name, value in {"reason": told, **attributes}.items()
                },
            )


def _size(name: str, value: str) -> int:
    """Return the size of an attribute, as SQS counts it."""
    return len(name) + len("String") + len(value.encode())


def _text(value: str) -> MessageAttributeValueTypeDef:
    return {"DataType": "String", "StringValue": value}


def visible(client: SQSClient, url: str) -> int:
    """Return the approximate number of messages of a queue that can be received now."""
    with translated():
        answer = client.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])


class LambdaInvoker:
    """`Invoker` for one function."""

    def __init__(self, client: LambdaClient, function: str) -> None:
        self._client = client
        self._function = function

    def invoke(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        with translated():
            self._client.invoke(
                FunctionName=self._function,
                InvocationType="Event",
                Payload=msgspec.json.encode({"wakes": list(messages)}),
            )


_ALIAS = "build-"  # as template.yaml names them
_BUILD = "BATON_BUILD"


def alias_of(build: str) -> str:
    """Return the name of the alias of a build, in which a dot may not stand."""
    return _ALIAS + build.replace(".", "-")


class LambdaBuilds:
    """`Builds` of one function. `client`: one that waits as long as an invocation lasts."""

    def __init__(self, client: LambdaClient, function: str, offload: Offload) -> None:
        self._client = client
        self._function = function
        self._offload = offload

    async def run(self, build: str, messages: Sequence[Message], until: int) -> Sequence[int]:
        return await self._offload(self._run, build, messages, until)

    def _run(self, build: str, messages: Sequence[Message], until: int) -> Sequence[int]:
        payload = msgspec.json.encode({"wakes": list(messages), "until": until, "build": build})
        try:
            with translated():
                answer = self._client.invoke(
                    FunctionName=self._function, Qualifier=alias_of(build), Payload=payload
                )
        except Missing as error:
            raise CodeGone(f"build {build} is not there") from error
        said = answer["Payload"].read()
        if answer.get("FunctionError"):
            raise StoreUnavailable(f"build {build} has failed: {said[:500].decode(errors='replace')}")
        failed = msgspec.json.decode(said)["batchItemFailures"]
        return [int(one["itemIdentifier"]) for one in failed]


class LambdaDeployedBuilds:
    """`DeployedBuilds` of one function."""

    def __init__(self, client: LambdaClient, function: str) -> None:
        self._client = client
        self._function = function

    def variables(self) -> Mapping[str, str]:
        """Return the variables of the worker as it is deployed."""
        with translated():
            return self._client.get_function_configuration(FunctionName=self._function)["Environment"][
                "Variables"
            ]

    def listed(self) -> tuple[Sequence[CodeBuild], int]:
        function = self._function
        with translated():
            newest = self._client.get_function_configuration(FunctionName=function)
            page = self._client.list_aliases(FunctionName=function)
            aliases = [*page["Aliases"]]
            while marker := page.get("NextMarker"):
                page = self._client.list_aliases(FunctionName=function, Marker=marker)
                aliases += page["Aliases"]
        current = newest["Environment"]["Variables"].get(_BUILD, "")
        builds = [
            CodeBuild(
                build=one["Name"].removeprefix(_ALIAS).replace("-", "."),
                version=one["FunctionVersion"],
                is_current=one["Name"] == alias_of(current),
            )
            for one in sorted(aliases, key=lambda one: one["FunctionVersion"].zfill(20))
            if one["Name"].startswith(_ALIAS)
        ]
        return builds, round(datetime.fromisoformat(newest["LastModified"]).timestamp() * 1_000)

    def delete(self, build: CodeBuild) -> None:
        function = self._function
        with translated():
            self._client.delete_alias(FunctionName=function, Name=alias_of(build.build))
        try:
            with translated():
                self._client.delete_function(FunctionName=function, Qualifier=build.version)
        except Missing:
            return
