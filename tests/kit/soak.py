"""Schedules of the simulation for as long as one likes: `make soak SECONDS=600 SEED=7`.

Every schedule is drawn from a seed of its own. The first that breaks a promise is made as small as can be, and told: its seed,
the schedule to run it by, what it broke, and the logs as a story. The exit status is then 1.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import time
from collections.abc import Sequence

from tests.kit.schedule import Schedule, Trial, minimised, trial

AT_ONCE = 20  # schedules between two looks at the clock


def soak(first: int, step: int, seconds: float) -> tuple[int, str]:
    """Run every `step`th seed from `first` on. How many there were, and the report of one that broke a promise."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(AT_ONCE):
            seed = first + count * step
            found = trial(Schedule.drawn(seed))
            count += 1
            if found.broken:
                return count, report(seed, found, minimised(found))
    return count, ""


def report(seed: int, found: Trial, smallest: Trial) -> str:
    """All that is needed to see it again."""
    lines = [f"seed {seed} breaks {', '.join(sorted(found.oracles))}; the smallest schedule found is", ""]
    lines += [f"    trial({smallest.schedule})", ""]
    lines += [f"  {text}" for text in smallest.broken]
    lines += ["", "faults:", *(f"  {fault}" for fault in smallest.verdict.faults or ("none",))]
    return "\n".join([*lines, "", *smallest.verdict.story])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run schedules of the simulation, drawn from seeds.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    began = time.monotonic()
    work = [(given.seed * 10_000_000 + job, given.jobs, given.seconds) for job in range(given.jobs)]
    if given.jobs == 1:
        done = [soak(*work[0])]
    else:
        # Elsewhere, tests listen to what is logged. Not to be forked from what has judged a Python condition: the
        # threads that judged it are not in the new processes, which would wait for them.
        with multiprocessing.Pool(given.jobs, logging.disable, (logging.CRITICAL,)) as pool:
            done = pool.starmap(soak, work)
    count = sum(one for one, _ in done)
    reports = [text for _, text in done if text]
    print("\n\n".join(reports))
    took = time.monotonic() - began
    print(f"{count} schedules in {took:.0f} s, {count / took:.0f} a second; {len(reports)} broke a promise")
    return 1 if reports else 0


if __name__ == "__main__":
    raise SystemExit(main())
