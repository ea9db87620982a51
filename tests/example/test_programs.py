"""The services as programs: how they start, say where they are, and end."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from examples.services import table_stack
from examples.services.serve import options
from tests.example.conftest import ROOT, Start
from tests.kit.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("name", "service"), [("table_stack", "table-stack"), ("open_delivery", "open-delivery")]
)
def test_a_service_says_where_it_is_answers_there_and_ends_with_its_standard_input(
    start_service: Start, name: str, service: str
) -> None:
    """That it ends is seen by the fixture."""
    url = start_service(name)
    assert url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{url}/health").json() == {"status": "ok", "service": service}
    assert set(httpx.get(f"{url}/books?summary=1").json()) == {
        "service",
        "summary",
        "double_bookings",
        "idempotency",
    }


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "examples.services.table_stack", "--port", port]
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert (ended.returncode, f"port {port}" in ended.stderr) == (1, True)


@pytest.mark.parametrize(
    ("delay", "said"),
    [("hodl=1", "the operations are search, hold"), ("hold=soon", "'soon' is not a number of seconds")],
)
def test_a_wrong_delay_is_explained(delay: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        options("table-stack", table_stack.DELAYS, ["--delay", delay])
    assert (ended.value.code, said in capsys.readouterr().err) == (2, True)


def test_the_services_do_not_know_the_engine() -> None:
    for path in (
        path for room in ("guest", "services") for path in Path(ROOT, "examples", room).rglob("*.py")
    ):
        assert not re.search(r"^\s*(import|from) (baton|sagas)\b", path.read_text(), re.MULTILINE), path
