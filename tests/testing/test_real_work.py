"""Code that waits for something real in virtual time: threads, processes, a server behind a model. None is cut off.

What has to take a while works out a hash for some hundredths of a second, outside of Python's lock.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio.from_thread
import anyio.to_thread
import pytest

from baton.testing import run
from baton.tools.define import Registry, tool

DOCUMENT = "name: w\nnodes:\n  n: {tool: t.f}\noutput: ${ctx.n.output}"
POOL = ThreadPoolExecutor(1)


def work() -> str:
    return hashlib.pbkdf2_hmac("sha256", b"p", b"s", 20_000).hex()[:4]


async def in_a_thread_of_anyio() -> str:
    return await anyio.to_thread.run_sync(work)


async def in_a_thread_of_asyncio() -> str:
    return await asyncio.to_thread(work)


async def in_a_pool_of_its_own() -> str:
    return await asyncio.wrap_future(POOL.submit(work))


async def in_a_thread_of_its_own() -> str:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    threading.Thread(target=lambda: loop.call_soon_threadsafe(done.set_result, work())).start()
    return str(await done)


async def in_a_process() -> str:
    program = "import hashlib; print(hashlib.pbkdf2_hmac('sha256', b'p', b's', 20_000).hex()[:4], end='')"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-Sc", program, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    return said.decode()


WAYS = [
    in_a_thread_of_anyio,
    in_a_thread_of_asyncio,
    in_a_pool_of_its_own,
    in_a_thread_of_its_own,
    in_a_process,
]


def ran(function: Callable[..., Any]) -> Any:
    registry = Registry()
    tool("t.f", registry=registry)(function)
    return run(DOCUMENT, tools=registry, on_failure="fail")


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_waits_for_something_real_is_not_cut_off(way: Callable[..., Any]) -> None:
    for _ in range(2):  # a pool's thread is there already the second time
        result = ran(way)
        assert (result.status, result.output, result.attempts("n")) == ("completed", work(), 1)
        assert result.took_s == 0


async def in_a_process_that_hangs() -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-Sc", "print(1, flush=True); input()", stdin=asyncio.subprocess.PIPE
    )
    try:
        await process.wait()
    finally:
        process.kill()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
    return ""


def test_what_hangs_has_as_much_real_time_as_its_timeout() -> None:
    registry = Registry()
    tool("t.f", registry=registry)(in_a_process_that_hangs)
    document = DOCUMENT.replace("tool: t.f", "tool: t.f, timeout: 100ms, retry: {max_attempts: 1}")
    result = run(document, tools=registry, on_failure="fail")
    assert (result.status, result.took_s) == ("failed", 0.1)


def test_a_thread_that_is_idle_or_waits_for_the_loop_holds_no_time_back() -> None:
    async def rest() -> str:
        await asyncio.sleep(20)
        return "rested"

    async def both() -> list[str]:
        first = await anyio.to_thread.run_sync(work)
        return [first, await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(rest))]

    result = ran(both)
    assert (result.output, result.attempts("n")) == ([work(), "rested"], 1)
    assert result.took_s == 20


def test_a_thread_that_was_there_before_holds_no_time_back() -> None:
    end = threading.Event()
    there = threading.Thread(target=end.wait, args=(600,), daemon=True)
    there.start()
    try:

        async def rest() -> str:
            await asyncio.sleep(25)
            return "rested"

        assert ran(rest).took_s == 25
    finally:
        end.set()
        there.join()


def test_a_model_that_is_asked_over_a_socket_is_not_cut_off() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write((await asyncio.to_thread(work)).encode() + b"\n")
        writer.close()

    def other() -> None:
        async def main() -> None:
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port.append(server.sockets[0].getsockname()[1])
            stop.append((asyncio.get_running_loop(), over := asyncio.Event()))
            ready.set()
            await over.wait()
            server.close()

        asyncio.run(main())

    port: list[int] = []
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()
    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    ready.wait(20)

    async def ask(_: Any) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port[0])
        writer.write(b"?\n")
        said = (await reader.readline()).decode().strip()
        writer.close()
        return said

    try:
        result = run(
            "name: w\nnodes:\n  n: {model: {name: m, prompt: hi}}\noutput: ${ctx.n.output}",
            models=ask,
            on_failure="fail",
            tools=Registry(),
        )
        assert (result.status, result.attempts("n")) == ("completed", 1)
        assert work() in str(result.output)
    finally:
        stop[0][0].call_soon_threadsafe(stop[0][1].set)
        thread.join()
