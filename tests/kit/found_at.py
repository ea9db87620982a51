"""Where each planted bug was found last: a search begins there, and goes through all its runs only if the bug has moved.

`python -m tests.kit.found_at` searches from the beginning and writes the places anew, into found_at.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
PLACES = Path(__file__).with_suffix(".json")
FOUND_AT: dict[str, int] = json.loads(PLACES.read_text("utf-8"))


def first(name: str, runs: Sequence[T], shows: Callable[[T], bool]) -> int:
    """The number of a run that shows the bug of this name: the one that did so before, or the first one; -1 if none does."""
    known = FOUND_AT.get(name, 0)
    order = sorted(range(len(runs)), key=lambda number: (number != known, number))
    return next((number for number in order if shows(runs[number])), -1)


def main() -> None:
    """Search for every bug from the beginning."""
    from tests.core.graphs import test_patched
    from tests.kit.breaker_bugs import BREAKER_BUGS
    from tests.kit.event_bugs import EVENT_BUGS
    from tests.kit.failure_bugs import FAILURE_BUGS
    from tests.kit.memory_runs import MEMORY_BUGS
    from tests.kit.memory_runs import found_by as found_in_memory
    from tests.kit.planted import PLANTED, found_in
    from tests.kit.recovery_bugs import RECOVERY_BUGS
    from tests.kit.recovery_runs import found_by
    from tests.kit.schedule_bugs import SCHEDULE_BUGS
    from tests.simulation import test_breakers, test_events, test_failures, test_schedules

    FOUND_AT.clear()
    places = {name: len(found_in(planted)) - 1 for name, planted in PLANTED.items()}
    places |= {name: test_failures.found_by(name) for name in FAILURE_BUGS}
    places |= {bug.__name__: test_schedules.found_by(bug) for bug in SCHEDULE_BUGS}
    places |= {bug.__name__: test_breakers.found_by(bug) for bug in BREAKER_BUGS}
    places |= {bug.__name__: test_events.found_by(bug) for bug in EVENT_BUGS}
    places |= {bug.__name__: found_by(bug) for bug in RECOVERY_BUGS}
    places |= {bug.__name__: found_in_memory(bug) for bug in MEMORY_BUGS}
    places |= {f"carried although: {rule}": test_patched.found_without(rule) for rule in test_patched.RULES}
    PLACES.write_text(json.dumps(places, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
