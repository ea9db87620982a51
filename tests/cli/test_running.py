"""What ends `baton up`, without starting anything."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.cli.machine.running import _removal_of, _until_stopped
from baton.client.exits import NO, REFUSED, CommandFailed
from tests.kit.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def _hung_up_as_ever() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


async def ends_after(number: signal.Signals, within_s: float = PATIENCE_S) -> bool:
    waiting = asyncio.create_task(_until_stopped())
    await asyncio.sleep(0)
    os.kill(os.getpid(), number)
    done, _ = await asyncio.wait({waiting}, timeout=within_s)
    waiting.cancel()
    return bool(done)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_a_polite_end_and_a_closed_terminal_end_it(number: signal.Signals) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    assert asyncio.run(ends_after(number))


def test_under_nohup_it_outlives_its_terminal() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert not asyncio.run(ends_after(signal.SIGHUP, within_s=0.2))


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (None, False),
        (KeyboardInterrupt(), False),
        (CommandFailed(REFUSED, "the document has problems"), False),
        (CommandFailed(NO, "a function did not start"), True),
        (OSError("disk"), True),
    ],
)
def test_logs_stay_where_they_say_why_it_failed(
    tmp_path: Path, error: BaseException | None, stays: bool
) -> None:
    run_dir = tmp_path / "run-1"
    run_dir.mkdir()
    _removal_of(run_dir)(type(error) if error else None, error, None)
    assert run_dir.exists() is stays
