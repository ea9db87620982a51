"""Starts one of the services as a program: options, socket, announcement, end."""

import argparse
import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said."""

    port: int
    delays: Mapping[str, float]
    honour_keys: bool
    until_eof: bool
    busy_every: int = 0


def options(service: str, delays: Mapping[str, float], arguments: list[str] | None) -> Options:
    """Read the command line; `delays` are the operations and their default delay in seconds."""
    parser = argparse.ArgumentParser(prog=service, description=f"The {service} service.")
    parser.add_argument("--port", type=int, default=0, help="0, the default: any free port")
    parser.add_argument(
        "--delay",
        action="append",
        default=[],
        metavar="OPERATION=SECONDS",
        help=f"how long an operation takes, or `all=SECONDS`; operations: {', '.join(delays)}",
    )
    parser.add_argument(
        "--no-idempotency",
        action="store_true",
        help="ignore Idempotency-Key: to see that the books catch what then happens twice",
    )
    parser.add_argument(
        "--busy-every",
        type=int,
        default=0,
        metavar="N",
        help="refuse every N-th request with 503 before anything is done about it; 0, the default: none",
    )
    parser.add_argument(
        "--until-eof",
        action="store_true",
        help="end when standard input is closed, so that nothing outlives the process that started it",
    )
    given = parser.parse_args(arguments)
    chosen = dict(delays)
    for text in given.delay:
        operation, _, seconds = text.partition("=")
        try:
            value = float(seconds)
        except ValueError:
            parser.error(f"--delay {text}: {seconds!r} is not a number of seconds")
        if operation == "all":
            chosen = dict.fromkeys(chosen, value)
        elif operation in chosen:
            chosen[operation] = value
        else:
            parser.error(f"--delay {text}: the operations are {', '.join(delays)}")
    return Options(given.port, chosen, not given.no_idempotency, given.until_eof, given.busy_every)


def serve(
    service: str,
    chosen: Options,
    build: Callable[[Options], Starlette],
    told: Callable[[bytes], None] = lambda _: None,
) -> int:
    """Serve on loopback until told to end; announces itself with one JSON line on stdout. `told` gets each line of stdin."""
    # asyncio switches Nagle's algorithm off only for what it is told is TCP; with it each answer takes 40 ms more.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", chosen.port))
    except OSError as error:
        print(f"{service}: port {chosen.port} on 127.0.0.1: {error.strerror}", file=sys.stderr)
        return 1
    listener.listen(256)
    server = uvicorn.Server(
        uvicorn.Config(
            build(chosen),
            log_level="warning",
            # Longer than a client keeps an idle connection, so that the client is the one to end it.
            timeout_keep_alive=60,
            timeout_graceful_shutdown=2,
        )
    )
    if chosen.until_eof:
        threading.Thread(target=_end_at_eof, args=(server, told), daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    print(json.dumps({"service": service, "url": url}), flush=True)
    asyncio.run(server.serve(sockets=[listener]))
    return 0


def _end_at_eof(server: uvicorn.Server, told: Callable[[bytes], None]) -> None:
    for line in sys.stdin.buffer:
        told(line)
    server.should_exit = True
