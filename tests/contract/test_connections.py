"""What becomes of a kept connection that the other side closed unnoticed, as in a frozen process.

AWS is a server on loopback here, which answers a few requests on one connection and then hangs up.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

import pytest

from baton.adapters.aws import Aws
from baton.adapters.dynamo.log import DynamoLog
from baton.errors import StoreUnavailable
from tests.contract.stores import SAGA, SHARDS, an_entry
from tests.kit.patience import PATIENCE_S

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\n\r\n{}"


class Peer:
    """The server: `hung_up` is set when it has closed a connection, `connections` counts them all."""

    def __init__(self) -> None:
        self.address = ""
        self.connections = 0
        self.requests = 0
        self.hung_up = threading.Event()
        self._open: socket.socket | None = None

    def hang_up(self) -> None:
        """Ends what a failed test has left open, or its server would wait for ever."""
        if self._open is not None:
            with suppress(OSError):  # it was closed already
                self._open.shutdown(socket.SHUT_RDWR)

    def serve(self, listener: socket.socket, answers: int, *, then_listens: bool) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open = connection
            with connection, connection.makefile("rb") as stream:
                for _ in range(answers):
                    if not self._take(stream):
                        break
                    connection.sendall(ANSWER)
                if then_listens:
                    self._take(stream)
            self.hung_up.set()

    def _take(self, stream: BinaryIO) -> bool:
        """Reads one whole request; False when the other side has hung up."""
        size = 0
        while (line := stream.readline()) not in (b"", b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        if not line:
            return False
        stream.read(size)
        self.requests += 1
        return True


@contextmanager
def a_peer(answers: int, *, then_listens: bool = False) -> Iterator[Peer]:
    """`then_listens`: it hangs up only when it has got one more request, which it does not answer."""
    peer = Peer()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(
            target=peer.serve, args=(listener, answers), kwargs={"then_listens": then_listens}
        )
        thread.start()
        try:
            yield peer
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            peer.hang_up()
            thread.join()


def log_of(aws: Aws) -> DynamoLog:
    return DynamoLog(aws.dynamodb, "sagas", SHARDS)


def test_a_connection_is_kept_from_one_call_to_the_next() -> None:
    with a_peer(answers=2) as peer:
        aws = Aws(peer.address)
        assert log_of(aws).read_head(SAGA) is None
        assert log_of(aws).read_head(SAGA) is None
        assert (peer.connections, peer.requests) == (1, 2)
        aws.dynamodb.close()


def test_a_connection_that_was_closed_while_idle_is_replaced_without_an_error() -> None:
    with a_peer(answers=1) as peer:
        aws = Aws(peer.address)
        for calls in (1, 2, 3):
            peer.hung_up.clear()
            assert log_of(aws).append(SAGA, an_entry(1))
            assert peer.hung_up.wait(PATIENCE_S)
            assert (peer.connections, peer.requests) == (calls, calls)
        aws.dynamodb.close()


def test_a_connection_that_ends_under_a_write_leaves_it_open_whether_it_was_done() -> None:
    with a_peer(answers=1, then_listens=True) as peer:
        aws = Aws(peer.address)
        assert log_of(aws).append(SAGA, an_entry(1))
        with pytest.raises(StoreUnavailable):
            log_of(aws).append(SAGA, an_entry(2))
        assert (peer.connections, peer.requests) == (1, 2), "sent once, and never again without being asked"
        aws.dynamodb.close()
