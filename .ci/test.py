"""`make test`: every tier, those that mostly wait for processes beside those that compute; and the sum of their counts.

A tier is a target of the Makefile. The first one that fails ends the run.
"""

import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

COMPUTE = ("lint", "types", "core", "rest")
BESIDE = "e2e"
OUTPUT = Path("build/test")
# Rooms of tests/ that the summary shows by their own names.
ROOMS = ("contract", "core", "deploy", "handlers", "simulation")
POLITE = "10"  # what computes takes what is left: programs that are under test beside it have time limits


def make(tier: str) -> list[str]:
    """The command that runs a tier."""
    return ["make", "--no-print-directory", tier]


def run() -> str:
    """Run all tiers; returns the name of the one that failed."""
    with (OUTPUT / f"{BESIDE}.log").open("w+") as log:
        beside = subprocess.Popen(make(BESIDE), stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            for tier in COMPUTE:
                print(f"\n== {tier}", flush=True)
                if subprocess.call(["nice", "-n", POLITE, *make(tier)]):
                    return tier
                if beside.poll():
                    break
            status = beside.wait()
            log.seek(0)
            print(f"\n== {BESIDE}", log.read().strip(), sep="\n", flush=True)
            return BESIDE if status else ""
        finally:
            stop(beside)


def stop(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C would, so that it can stop what it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def summary(seconds: float) -> int:
    """Print the counts by room, then the sum. Returns how many tests did not pass; 1 if there were none."""
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
    print(
        f"\n{seconds:.0f} s\ntests: {total - failed - bad['skipped']} passed, {failed} failed, {bad['skipped']} skipped"
    )
    return failed if total else 1


def main() -> int:
    """Exit status 0 when every tier and every test passed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    try:
        failed = run()
    except KeyboardInterrupt:
        return 130
    if failed:
        print(f"\n== {failed} failed; alone: make {failed}")
        return 1
    return 1 if summary(time.monotonic() - began) else 0


if __name__ == "__main__":
    sys.exit(main())
