"""Contract of `Clock`, `Meter`, `Pulse` and `Entropy`."""

from __future__ import annotations

import datetime
import re
import signal
import subprocess
import sys
import threading

import pytest

from baton.adapters.clock import SystemClock, SystemEntropy, SystemMeter, thread_pulse


def test_now_is_utc_epoch_milliseconds() -> None:
    machine = datetime.datetime.now(datetime.UTC).timestamp() * 1000
    assert abs(SystemClock().now() - machine) < 5_000


def test_a_meter_goes_on_and_knows_when_the_process_works() -> None:
    meter = SystemMeter()
    passed, worked = meter.passed(), meter.worked()
    while meter.worked() < worked + 5:
        sum(range(1_000))
    assert meter.passed() >= passed


def test_a_pulse_looks_from_a_thread_of_its_own_until_it_is_stopped() -> None:
    looked, threads, ended = threading.Semaphore(0), set[threading.Thread](), list[bool]()

    def look() -> None:
        threads.add(threading.current_thread())
        looked.release()

    stop = thread_pulse(look, 1)
    ended += [looked.acquire(timeout=30) for _ in range(3)]
    stop()
    (thread,) = threads
    thread.join(30)
    assert (ended, thread.is_alive(), thread.daemon) == ([True] * 3, False, True)
    assert thread is not threading.current_thread()


@pytest.mark.parametrize(
    ("then", "status"),
    [
        ("while True: pass", -signal.SIGALRM),
        ("threading.Lock().acquire() and asyncio.run(asyncio.to_thread(signal.pause))", -signal.SIGALRM),
        ("dog.set(60_000)", 0),
        ("dog.set(None); assert signal.getitimer(signal.ITIMER_REAL)[0] == 0", 0),
        ("signal.signal(signal.SIGALRM, signal.SIG_IGN); SystemWatchdog(); signal.pause()", -signal.SIGALRM),
    ],
)
def test_a_watchdog_ends_its_process_whatever_it_does_unless_it_is_set_anew(then: str, status: int) -> None:
    code = f"import asyncio, signal, threading\nfrom baton.adapters.clock import SystemWatchdog\ndog = SystemWatchdog()\ndog.set(50)\n{then}"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == status


@pytest.mark.parametrize("bits", [8, 128, 256])
def test_a_token_has_as_many_bits_as_asked_for_in_lower_case_hexadecimal(bits: int) -> None:
    assert re.fullmatch(f"[0-9a-f]{{{bits // 4}}}", SystemEntropy().token(bits))


def test_no_two_tokens_are_the_same() -> None:
    assert len({SystemEntropy().token(128) for _ in range(100)}) == 100


@pytest.mark.parametrize("bits", [0, -8, 12])
def test_a_token_of_no_whole_bytes_is_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="bytes"):
        SystemEntropy().token(bits)


def test_uniform_numbers_are_from_0_up_to_but_not_1() -> None:
    numbers = [SystemEntropy().uniform() for _ in range(1_000)]
    assert all(0 <= number < 1 for number in numbers)
    assert len(set(numbers)) > 900
