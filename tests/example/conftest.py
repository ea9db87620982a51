"""The two services as programs of their own, for tests that speak to them from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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
        process.communicate(timeout=10)
        assert process.returncode == 0


@pytest.fixture
def services(start_service: Start, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Both services, quick, and the environment in which the tools find them."""
    urls = {
        "TABLE_STACK_URL": start_service("table_stack", "--delay", "all=0"),
        "OPEN_DELIVERY_URL": start_service("open_delivery", "--delay", "all=0"),
    }
    for name, url in urls.items():
        monkeypatch.setenv(name, url)
    return urls
