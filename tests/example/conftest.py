"""The two services, for tests that speak to them from outside: as programs of their own, or beside the test."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from examples.services import open_delivery, table_stack
from examples.services.serve import Options
from tests.kit.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
Start = Callable[..., str]
# A worker that dies once it has acted is the one that can act twice; tests/testing/test_kills.py has all moments.
MOMENTS = ["after", *(pytest.param(moment, marks=pytest.mark.soak) for moment in ("before", "during"))]


@pytest.fixture
def start_service() -> Iterator[Start]:
    """`start_service("table_stack", "--delay", "all=0")` gives its address."""
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> str:
        process = subprocess.Popen(
            [sys.executable, "-m", f"examples.services.{name}", "--until-eof", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        running.append(process)
        assert process.stdout is not None
        return str(json.loads(process.stdout.readline())["url"])

    yield start
    for process in running:
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0


class Served:
    """A service on a thread of this process: to start a program takes longer than the whole test.

    One server for all tests, as its start and its end take longer, too; each test has the service anew, with books of its own.
    """

    def __init__(self, service: ModuleType) -> None:
        self._service = service
        self.renew()

    def renew(self) -> None:
        quick = Options(
            port=0, delays=dict.fromkeys(self._service.DELAYS, 0), honour_keys=True, until_eof=False
        )
        self.app = self._service.build(quick)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    @contextmanager
    def running(self) -> Iterator[str]:
        config = uvicorn.Config(self, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        # Named as TCP, or asyncio leaves Nagle on: an answer's body would wait 40 ms for its head to be acknowledged.
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            thread = threading.Thread(target=server.run, args=([listener],))
            thread.start()
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
                thread.join()


@pytest.fixture(scope="session")
def _served() -> Iterator[dict[str, tuple[Served, str]]]:
    tables, deliveries = Served(table_stack), Served(open_delivery)
    with tables.running() as of_tables, deliveries.running() as of_deliveries:
        yield {"TABLE_STACK_URL": (tables, of_tables), "OPEN_DELIVERY_URL": (deliveries, of_deliveries)}


@pytest.fixture
def services(_served: dict[str, tuple[Served, str]], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Both services, quick, and the environment in which the tools find them."""
    for name, (served, url) in _served.items():
        served.renew()
        monkeypatch.setenv(name, url)
    return {name: url for name, (_, url) in _served.items()}
