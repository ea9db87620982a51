"""`make test`: every tier, in two lanes, because some tiers mostly wait; and the sum of their counts.

A tier is a target of the Makefile. The first one that fails ends the run.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SHOWN, BESIDE = ("lint", "types", "rest"), ("e2e", "core")  # what the latter say is shown in the end
OUTPUT = Path("build/test")
# Rooms of tests/ that the summary shows by their own names.
ROOMS = ("contract", "core", "deploy", "handlers", "simulation")
# They go first: their programs have time limits, and what computes takes what is left.
WAITS = ("e2e",)


class Lane(threading.Thread):
    """Tiers that run one after the other, with or without their output kept; `failed` is the one that did."""

    def __init__(self, tiers: Sequence[str], *, kept: bool) -> None:
        super().__init__(daemon=True)
        self.failed = ""
        self._tiers = tiers
        self._kept = kept
        self._now: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def run(self) -> None:
        for tier in self._tiers:
            if self._is_over:
                return
            try:
                status = self._status(tier)
            except BaseException:
                self.failed = tier
                raise
            if status:
                self.failed = "" if self._is_over else tier
                return

    def _status(self, tier: str) -> int:
        if not self._kept:
            print(f"\n== {tier}", flush=True)
            self._now = _start(tier)
            return self._now.wait()
        with _log(tier).open("wb") as log:
            self._now = _start(tier, stdout=log, stderr=subprocess.STDOUT)
            return self._now.wait()

    def show(self) -> None:
        """What was kept."""
        for tier in self._tiers:
            if _log(tier).exists():
                print(f"\n== {tier}", _log(tier).read_text("utf-8").strip(), sep="\n", flush=True)

    def stop(self) -> None:
        """As Ctrl-C would, so that a tier can stop what it has started."""
        self._is_over = True
        for how, patience_s in ((signal.SIGINT, 30), (signal.SIGKILL, 5)):
            if self._now is not None and self._now.poll() is None:
                os.killpg(self._now.pid, how)
            if self.is_alive():
                self.join(patience_s)


def _log(tier: str) -> Path:
    return OUTPUT / f"{tier}.log"


def _start(tier: str, **output: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(tier), start_new_session=True, **output)


def command(tier: str) -> list[str]:
    """What runs a tier: a target of the Makefile."""
    polite = [] if tier in WAITS else ["nice", "-n", "10"]
    return [*polite, "make", "--no-print-directory", tier]


def run(shown: Lane, beside: Lane) -> str:
    """Run all tiers; returns the name of the first that failed."""
    lanes = (shown, beside)
    try:
        for lane in lanes:
            lane.start()
        while any(lane.is_alive() for lane in lanes) and not any(lane.failed for lane in lanes):
            lanes[not shown.is_alive()].join(0.2)
    finally:
        for lane in lanes:
            lane.stop()
    if not shown.failed:
        beside.show()
    return shown.failed or beside.failed


def summary(seconds: float) -> int:
    """Print the counts by room, then the sum. Returns how many tests did not pass, or tiers said nothing of theirs."""
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    for report in OUTPUT.glob("*.xml"):
        for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314  files that pytest wrote a minute ago
            place = (case.get("classname") or "").split(".")[1:2]
            room = report.stem if report.stem != "rest" else place[0] if {*place} & {*ROOMS} else "unit"
            counts[room] += 1
            times[room] += float(case.get("time", "0"))
            bad.update(child.tag for child in case)
    print()
    for room in sorted(counts):
        print(f"  {room:<12} {counts[room]:>6} tests  {times[room]:>7.1f} s")
    failed, total = bad["failure"] + bad["error"], counts.total()
    missing = [tier for tier in ("rest", "e2e", "core") if not (OUTPUT / f"{tier}.xml").exists()]
    for tier in missing:
        print(f"  {tier:<12} has left no report")
    passed = total - failed - bad["skipped"]
    print(f"\n{seconds:.0f} s\ntests: {passed} passed, {failed} failed, {bad['skipped']} skipped")
    return failed + len(missing)


def main() -> int:
    """Exit status 0 when every tier and every test passed."""
    # Of SIGINT, too: a shell that starts this in the background has it ignored.
    for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, signal.default_int_handler)
    began = time.monotonic()
    try:
        failed = run(Lane(SHOWN, kept=False), Lane(BESIDE, kept=True))
    except KeyboardInterrupt:
        return 130
    if failed:
        print(f"\n== {failed} failed; alone: make {failed}")
        return 1
    return 1 if summary(time.monotonic() - began) else 0


if __name__ == "__main__":
    sys.exit(main())
