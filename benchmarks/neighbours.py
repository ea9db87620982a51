"""One tenant's flood of accepted sagas, and how long another's twenty take beside it; in virtual time."""

from __future__ import annotations

from benchmarks.figures import Bench, Figure, Sample
from tests.kit.documents import chain_of
from tests.kit.neighbours import seconds_of_twenty

FLOOD = 2_000
LONG = chain_of(30, 1.5)  # keeps its workers for 45 s


def measure(flood: int = FLOOD) -> Sample:
    return {
        "alone": seconds_of_twenty(0),
        "beside": seconds_of_twenty(flood),
        "one line": seconds_of_twenty(flood, is_fair=False),
        "few alone": seconds_of_twenty(0, slots=2),
        "few": seconds_of_twenty(flood, slots=2),
        "few line": seconds_of_twenty(flood, slots=2, is_fair=False),
        "long": seconds_of_twenty(flood // 4, noisy=LONG),
    }


BENCH = Bench(
    "neighbours",
    "20 sagas of 2 s beside 2,000 of another tenant, 50 workers with 10 sagas each",
    {
        "alone": Figure("alone", "s", digits=1),
        "beside": Figure("beside another tenant's 2,000", "s", digits=1),
        "ratio": Figure("  against alone", "×", 3, ratio=("beside", "alone"), digits=1),
        "one line": Figure("  the same if the queue were one line", "s", digits=1),
        "few alone": Figure("with 2 workers, alone", "s", digits=1),
        "few": Figure("with 2 workers, beside 2,000", "s", digits=1),
        "few ratio": Figure("  against alone", "×", 3, ratio=("few", "few alone"), digits=1),
        "few line": Figure("  the same if the queue were one line", "s", digits=1),
        "long": Figure("beside 500 that would keep all workers for 45 s", "s", digits=1),
    },
    measure,
    runs=1,
)
