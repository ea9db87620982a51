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

from examples.services import open_delivery, table_stack
from examples.services.serve import Options
from tests.kit.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
Start = Callable[..., str]


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


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Both services, quick, and the environment in which the tools find them."""
    with _served(table_stack) as tables, _served(open_delivery) as deliveries:
        urls = {"TABLE_STACK_URL": tables, "OPEN_DELIVERY_URL": deliveries}
        for name, url in urls.items():
            monkeypatch.setenv(name, url)
        yield urls


@contextmanager
def _served(service: ModuleType) -> Iterator[str]:
    """A service on a thread of this process: to start a program takes longer than the whole test."""
    quick = Options(port=0, delays=dict.fromkeys(service.DELAYS, 0), honour_keys=True, until_eof=False)
    server = uvicorn.Server(
        uvicorn.Config(service.build(quick), log_level="critical", timeout_graceful_shutdown=1)
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()
