"""`make test`: every tier, and the sum of their counts.

A tier is a target of the Makefile. The end-to-end tests mostly wait, and their programs have time limits: they run first, and all
others politely beside them, three at once: some of these wait, too, and no processor is idle meanwhile. What ran the end-to-end tests
then takes of the others. The first tier that fails ends the run.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Each is one process of pytest: one that shares its tests with others would collect them, and start their servers, once more.
# The longest go first and the shortest last, so that no processor is idle in the end; the browser's mostly waits.
POLITE = (
    "lint",
    "simulation",
    "rest",
    "browser",
    "core",
    "runtime",
    "handlers",
    "types",
    "contract",
    "deploy",
)
FIRST = ("e2e",)
LANES = 3
OUTPUT = Path("build/test")
ROOMS = {"rest": "unit"}  # what the summary calls a tier
WITHOUT_REPORT = {"lint", "types"}


class Lane(threading.Thread):
    """Takes its own tiers, then of the others until there are none. Shows what each has printed when it ends.

    `failed` is the one that did.
    """

    _printing = threading.Lock()

    def __init__(self, own: Sequence[str], others: deque[str]) -> None:
        super().__init__(daemon=True)
        self.failed = ""
        self._own, self._others = deque(own), others
        self._now: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def run(self) -> None:
        while not self._is_over and not self.failed:
            try:
                tier = (self._own or self._others).popleft()
            except IndexError:  # another lane may have taken the last one just now
                return
            try:
                status = self._status(tier)
            except BaseException:
                self.failed = tier
                raise
            if status and not self._is_over:
                self.failed = tier
            if not self._is_over:
                self._show(tier)

    def _status(self, tier: str) -> int:
        with _log(tier).open("wb") as log:
            self._now = _start(tier, stdout=log, stderr=subprocess.STDOUT)
            return self._now.wait()

    def _show(self, tier: str) -> None:
        with self._printing:
            print(f"\n== {tier}", _log(tier).read_text("utf-8", "replace").strip(), sep="\n", flush=True)

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
    make = ["make", "--no-print-directory", tier]
    return make if tier in FIRST else ["nice", "-n", "10", *make, "JOBS=0"]


def run(lanes: Sequence[Lane]) -> str:
    """Run all tiers; returns the name of the first that failed."""
    try:
        for lane in lanes:
            lane.start()
        while any(lane.is_alive() for lane in lanes) and not any(lane.failed for lane in lanes):
            time.sleep(0.1)
    finally:
        for lane in lanes:
            lane.stop()
    return next((lane.failed for lane in lanes if lane.failed), "")


def summary(seconds: float) -> int:
    """Print the counts by tier, then the sum. Returns how many tests did not pass, or tiers said nothing of theirs."""
    counts = {
        ROOMS.get(report.stem, report.stem): json.loads(report.read_text("utf-8"))
        for report in OUTPUT.glob("*.json")
    }
    print()
    for room, one in sorted(counts.items()):
        print(f"  {room:<12} {one['tests']:>6} tests  {one['seconds']:>7.1f} s")
    missing = [
        tier
        for tier in (*FIRST, *POLITE)
        if tier not in WITHOUT_REPORT and not (OUTPUT / f"{tier}.json").exists()
    ]
    for tier in missing:
        print(f"  {tier:<12} has left no report")
    for room, one in counts.items():
        for reason, count in one["skipped"].items():
            print(f"  SKIPPED {count:>4} of {room}: {reason}")
    failed = sum(one["failed"] for one in counts.values())
    skipped = sum(sum(one["skipped"].values()) for one in counts.values())
    passed = sum(one["tests"] for one in counts.values()) - failed - skipped
    print(f"\n{seconds:.0f} s\ntests: {passed} passed, {failed} failed, {skipped} skipped")
    return failed + len(missing)


def main() -> int:
    """Exit status 0 when every tier and every test passed."""
    # Of SIGINT, too: a shell that starts this in the background has it ignored.
    for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, signal.default_int_handler)
    began = time.monotonic()
    polite = deque(POLITE)
    try:
        failed = run([Lane(FIRST, polite), *(Lane((), polite) for _ in range(LANES))])
    except KeyboardInterrupt:
        return 130
    if failed:
        print(f"\n== {failed} failed; alone: make {failed}")
        return 1
    return 1 if summary(time.monotonic() - began) else 0


if __name__ == "__main__":
    sys.exit(main())
