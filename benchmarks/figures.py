"""A figure with its target and what peers need for the same, and the table that shows figures."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Sample = Mapping[str, float]

LOOP = "loop"
"""The key of what calibration.py measures beside each sample, in CPU milliseconds."""
MS = {"ms": 1.0, "µs": 0.001}


@dataclass(frozen=True)
class Figure:
    """One line of a bench's table. `target` None: shown, not judged. `at_most` False: more is better.

    `ratio` names two figures: this one is the first over the second, best over best and median over median.
    A ratio of each run would be best in the run that the machine disturbed most. `cpu`: processor time, whose target
    is in loops of calibration.py.
    """

    name: str
    unit: str
    target: float | None = None
    at_most: bool = True
    peer: str = ""
    digits: int = 3
    ratio: tuple[str, str] | None = None
    cpu: bool = False


@dataclass(frozen=True)
class Bench:
    """A bench: its figures by key, and a function that measures all of them once.

    as_shipped: each run in a process of its own that sees only what the layers ship.
    """

    name: str
    title: str
    figures: Mapping[str, Figure]
    measure: Callable[[], Sample]
    runs: int = 5
    as_shipped: bool = False

    @property
    def has_cpu(self) -> bool:
        return any(figure.cpu for figure in self.figures.values())


@dataclass
class Result:
    """Several samples of one bench."""

    bench: Bench
    samples: list[Sample] = field(default_factory=list)

    def best(self, key: str) -> float:
        """The value that the machine's other work disturbed least."""
        if ratio := self.bench.figures[key].ratio:
            return self.best(ratio[0]) / self.best(ratio[1])
        values = [sample[key] for sample in self.samples]
        return min(values) if self.bench.figures[key].at_most else max(values)

    def median(self, key: str) -> float:
        if ratio := self.bench.figures[key].ratio:
            return self.median(ratio[0]) / self.median(ratio[1])
        return statistics.median(sample[key] for sample in self.samples)

    @property
    def loop(self) -> float | None:
        """CPU milliseconds of the calibration's loop; None for a bench without CPU figures."""
        return min((sample[LOOP] for sample in self.samples if LOOP in sample), default=None)

    def loops(self, key: str) -> float | None:
        """A CPU figure, by the loops that the same machine runs in that time."""
        figure = self.bench.figures[key]
        return self.best(key) * MS[figure.unit] / self.loop if figure.cpu and self.loop else None

    def meets(self, key: str) -> bool:
        figure, loops = self.bench.figures[key], self.loops(key)
        if figure.target is None:
            return True
        found = self.best(key) if loops is None else loops
        return found <= figure.target if figure.at_most else found >= figure.target

    @property
    def misses(self) -> Sequence[str]:
        return [key for key in self.bench.figures if not self.meets(key)]

    def rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for key, figure in self.bench.figures.items():
            sign = "≤" if figure.at_most else "≥"
            target = "" if figure.target is None else f"{sign} {figure.target:g}"
            verdict = "" if figure.target is None else ("ok" if self.meets(key) else "MISSED")
            best, median = (f"{value:,.{figure.digits}f}" for value in (self.best(key), self.median(key)))
            loops = "" if (found := self.loops(key)) is None else f"{found:.3f}"
            rows.append((figure.name, best, median, figure.unit, loops, target, verdict, figure.peer))
        return rows

    def save(self, folder: Path, where: Mapping[str, object]) -> None:
        """Write <name>.json with all figures; `where` says on what machine and when."""
        folder.mkdir(parents=True, exist_ok=True)
        figures = {
            key: {
                "name": figure.name,
                "unit": figure.unit,
                "best": self.best(key),
                "median": self.median(key),
                "loops": self.loops(key),
                "better": "lower" if figure.at_most else "higher",
                "target": figure.target,
                "met": self.meets(key),
                "peers": figure.peer,
            }
            for key, figure in self.bench.figures.items()
        }
        data = {
            "bench": self.bench.name,
            "runs": len(self.samples),
            **where,
            "loop": self.loop,
            "figures": figures,
        }
        (folder / f"{self.bench.name}.json").write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
