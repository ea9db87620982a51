"""The sockets that the local run listens on."""

from __future__ import annotations

import asyncio
import socket

import pytest

from baton.local.processes import LocalRunError, bind


def test_answers_are_not_held_back_until_the_one_before_is_acknowledged() -> None:
    async def accepted() -> int:
        served: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer = writer.get_extra_info("socket")
            served.set_result(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        server = await asyncio.start_server(serve, sock=bind(0, "it"))
        async with server:
            host, port = server.sockets[0].getsockname()
            _, writer = await asyncio.open_connection(host, port)
            found = await served
            writer.close()
            return found

    assert asyncio.run(asyncio.wait_for(accepted(), 10))


def test_a_port_that_is_taken_is_named_with_what_was_to_be_there() -> None:
    with (
        bind(0, "the first") as first,
        pytest.raises(LocalRunError, match=str(first.getsockname()[1])) as caught,
    ):
        bind(first.getsockname()[1], "the HTTP API")
    assert "the HTTP API" in str(caught.value)
