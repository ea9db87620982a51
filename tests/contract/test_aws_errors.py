"""How the AWS adapters report what AWS could not do; AWS is a stub or a server on loopback here."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.response import StreamingBody
from botocore.stub import Stubber

from baton.adapters.aws import Aws
from baton.adapters.dynamo.definitions import DynamoDefinitions
from baton.adapters.dynamo.effects import DynamoEffects
from baton.adapters.dynamo.letters import DynamoLetters
from baton.adapters.dynamo.log import DynamoLog
from baton.adapters.queues import SqsDeadLetters, SqsQueue
from baton.adapters.s3 import S3Blobs
from baton.adapters.sqs_dead_queue import SqsDeadQueue
from baton.core.letters import Letter
from baton.errors import EngineFault, StoreUnavailable, Throttled
from baton.ports import Definition, Message
from tests.contract.stores import SAGA, a_head, a_release, an_entry
from tests.contract.test_effects import a_claim

URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/wake"
REF = f"cas://sha256/{'0' * 64}"
LETTER = Letter(id="s", tenant="acme", saga="s", code="c", reason="r", number=1)
DEFINITION = Definition(
    tenant="acme", name="dinner", version=1, graph="9f", document=REF, created=1, by="ada"
)

CALLS: dict[str, tuple[str, str, Callable[[Aws], Any]]] = {
    "create_head": ("dynamodb", "put_item", lambda aws: _log(aws).create_head(a_head())),
    "read_head": ("dynamodb", "get_item", lambda aws: _log(aws).read_head(SAGA)),
    "take": ("dynamodb", "update_item", lambda aws: _log(aws).take(SAGA, "me", 2, 1, 3)),
    "nudge": ("dynamodb", "update_item", lambda aws: _log(aws).leave_wake(SAGA, "me", 1, 2)),
    "release": ("dynamodb", "update_item", lambda aws: _log(aws).release(SAGA, "me", 1, a_release())),
    "arm": ("dynamodb", "update_item", lambda aws: _log(aws).arm(a_head(), 2)),
    "append": ("dynamodb", "put_item", lambda aws: _log(aws).append(SAGA, an_entry(1))),
    "read_tail": ("dynamodb", "query", lambda aws: _log(aws).read_tail(SAGA, 0, 0)),
    "put_snapshot": ("dynamodb", "put_item", lambda aws: _log(aws).put_snapshot(SAGA, an_entry(1))),
    "read_snapshot": ("dynamodb", "query", lambda aws: _log(aws).read_snapshot(SAGA, 0, 1)),
    "due": ("dynamodb", "query", lambda aws: _log(aws).due("work", 0, 0, 1, 1)),
    "put definition": ("dynamodb", "put_item", lambda aws: _definitions(aws).put(DEFINITION)),
    "get definition": ("dynamodb", "query", lambda aws: _definitions(aws).get("acme", "dinner")),
    "get version": ("dynamodb", "get_item", lambda aws: _definitions(aws).get("acme", "dinner", 1)),
    "names": ("dynamodb", "query", lambda aws: _definitions(aws).names("acme")),
    "claim": ("dynamodb", "put_item", lambda aws: _effects(aws).claim(a_claim())),
    "change": ("dynamodb", "put_item", lambda aws: _effects(aws).change(a_claim(), a_claim())),
    "read effect": ("dynamodb", "get_item", lambda aws: _effects(aws).read("acme", "f")),
    "put blob": ("s3", "put_object", lambda aws: S3Blobs(aws.s3, "blobs").put("acme", b"soup")),
    "get blob": ("s3", "get_object", lambda aws: S3Blobs(aws.s3, "blobs").get("acme", REF)),
    "send": ("sqs", "send_message_batch", lambda aws: SqsQueue(aws.sqs, URL).send(messages(1))),
    "send letter": ("sqs", "send_message", lambda aws: SqsDeadLetters(aws.sqs, URL).send("{}", "poison")),
    "receive letters": ("sqs", "receive_message", lambda aws: SqsDeadQueue(aws.sqs, URL).receive(1)),
    "delete letters": ("sqs", "delete_message_batch", lambda aws: SqsDeadQueue(aws.sqs, URL).delete(["r"])),
    "read letter": (
        "dynamodb",
        "get_item",
        lambda aws: DynamoLetters(aws.dynamodb, "sagas").read("acme", "s"),
    ),
    "write letter": (
        "dynamodb",
        "put_item",
        lambda aws: DynamoLetters(aws.dynamodb, "sagas").write(LETTER, 0),
    ),
    "list letters": (
        "dynamodb",
        "query",
        lambda aws: DynamoLetters(aws.dynamodb, "sagas").listed("acme", "pending", 1),
    ),
    "count pending letters": (
        "dynamodb",
        "query",
        lambda aws: DynamoLetters(aws.dynamodb, "sagas").outstanding(),
    ),
    "count letters": ("sqs", "get_queue_attributes", lambda aws: SqsDeadQueue(aws.sqs, URL).count()),
}


def _log(aws: Aws) -> DynamoLog:
    return DynamoLog(aws.dynamodb, "sagas", 4)


def _effects(aws: Aws) -> DynamoEffects:
    return DynamoEffects(aws.dynamodb, "sagas")


def _definitions(aws: Aws) -> DynamoDefinitions:
    return DynamoDefinitions(aws.dynamodb, "sagas")


def messages(count: int) -> list[tuple[Message, int]]:
    return [(Message(saga=str(SAGA), v=version), 0) for version in range(1, count + 1)]


def answered(aws: Aws, call: str, code: str, status: int) -> None:
    """Make one call that AWS answers with an error."""
    service, operation, make = CALLS[call]
    with Stubber(getattr(aws, service)) as stub:
        stub.add_client_error(operation, service_error_code=code, http_status_code=status)
        make(aws)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_reports_throttling(shared_aws: Aws, call: str) -> None:
    code = "SlowDown" if CALLS[call][0] == "s3" else "ThrottlingException"
    with pytest.raises(Throttled):
        answered(shared_aws, call, code, 503 if code == "SlowDown" else 400)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_reports_a_fault_of_the_service(shared_aws: Aws, call: str) -> None:
    with pytest.raises(StoreUnavailable):
        answered(shared_aws, call, "InternalServerError", 500)


@pytest.mark.parametrize(
    "code",
    [
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TransactionConflictException",
        "LimitExceededException",
    ],
)
def test_whatever_a_table_calls_throttling_is_throttling(shared_aws: Aws, code: str) -> None:
    with pytest.raises(Throttled):
        answered(shared_aws, "append", code, 400)


def test_an_answer_of_too_many_requests_is_throttling_whatever_its_code(shared_aws: Aws) -> None:
    with pytest.raises(Throttled):
        answered(shared_aws, "append", "SomethingNew", 429)


@pytest.mark.parametrize(
    "code", ["ValidationException", "AccessDeniedException", "ResourceNotFoundException"]
)
def test_what_neither_a_pause_nor_time_will_mend_is_not_translated(shared_aws: Aws, code: str) -> None:
    with pytest.raises(ClientError):
        answered(shared_aws, "append", code, 400)


def test_a_blob_that_may_not_be_read_is_not_called_missing(shared_aws: Aws) -> None:
    with pytest.raises(ClientError):
        answered(shared_aws, "get blob", "AccessDenied", 403)


# -- partial success of a batch


def test_positions_that_the_queue_did_not_accept_are_returned(shared_aws: Aws) -> None:
    with Stubber(shared_aws.sqs) as sqs:
        sqs.add_response("send_message_batch", _batch(failed=["3", "1"]))
        sqs.add_response("send_message_batch", _batch(failed=["11"]))
        assert SqsQueue(shared_aws.sqs, URL).send(messages(12)) == [1, 3, 11]


@pytest.mark.parametrize(("code", "status"), [("ThrottlingException", 400), ("InternalError", 500)])
def test_when_a_later_batch_fails_what_was_accepted_is_not_called_failed(
    shared_aws: Aws, code: str, status: int
) -> None:
    with Stubber(shared_aws.sqs) as sqs:
        sqs.add_response("send_message_batch", _batch(failed=["2"]))
        sqs.add_client_error("send_message_batch", service_error_code=code, http_status_code=status)
        assert SqsQueue(shared_aws.sqs, URL).send(messages(25)) == [2, *range(10, 25)]


def _batch(failed: list[str]) -> dict[str, Any]:
    return {
        "Successful": [],
        "Failed": [{"Id": name, "SenderFault": False, "Code": "InternalError"} for name in failed],
    }


# -- the wire


@contextmanager
def a_server(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Its address and the requests it got. It gives each the same answer and hangs up."""
    requests: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                requests.append(connection.recv(65_536))
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def http(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="hangs up"),
        pytest.param(http("503 Service Unavailable", b"{}"), id="503"),
        pytest.param(http("502 Bad Gateway", b"<html>bad gateway</html>"), id="a proxy's page"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{", id="half an answer"),
    ],
)
def test_a_store_that_gives_no_proper_answer_is_unavailable_and_asked_once(answer: bytes) -> None:
    with a_server(answer) as (address, requests):
        with pytest.raises(StoreUnavailable):
            _log(Aws(address)).read_head(SAGA)
        assert len(requests) == 1


def test_throttling_is_reported_after_one_request_and_never_retried_here() -> None:
    body = b'{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}'
    with a_server(http("400 Bad Request", body)) as (address, requests):
        with pytest.raises(Throttled):
            _log(Aws(address)).append(SAGA, an_entry(1))
        assert len(requests) == 1


def test_a_blob_that_breaks_off_is_unavailable_not_corrupt() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nsoup"
    with a_server(half) as (address, _), pytest.raises(StoreUnavailable):
        S3Blobs(Aws(address).s3, "blobs").get("acme", REF)


def test_a_blob_shorter_than_announced_is_unavailable_not_corrupt(shared_aws: Aws) -> None:
    with Stubber(shared_aws.s3) as s3:
        s3.add_response("get_object", {"Body": StreamingBody(io.BytesIO(b"soup"), 900)})
        with pytest.raises(StoreUnavailable):
            S3Blobs(shared_aws.s3, "blobs").get("acme", REF)


def test_a_blob_that_was_damaged_on_the_way_is_unavailable_not_corrupt() -> None:
    damaged = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nx-amz-checksum-crc32: AAAAAA==\r\n\r\nsoup"
    with a_server(damaged) as (address, _), pytest.raises(StoreUnavailable, match="checksum"):
        S3Blobs(Aws(address).s3, "blobs").get("acme", REF)


def test_a_store_without_a_listener_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(EngineFault):
        _log(Aws(address)).read_head(SAGA)
