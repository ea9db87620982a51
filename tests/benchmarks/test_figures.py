"""A figure is judged by its best run, a ratio by the best runs of both its parts, CPU by the calibration beside it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks import __main__ as program
from benchmarks.figures import LOOP, Bench, Figure, Result

FIGURES = {
    "short": Figure("time of a short one", "ms", 1.0, peer="another 9"),
    "long": Figure("time of a long one", "ms"),
    "speed": Figure("steps", "steps/s", 100, at_most=False),
    "growth": Figure("long against short", "×", 1.5, ratio=("long", "short")),
}
CPU = {"step": Figure("CPU per step", "ms", 0.1, cpu=True), "core": Figure("CPU of the core", "µs", cpu=True)}
RUNS = [{"short": 0.9, "long": 3.0, "speed": 80.0}, {"short": 2.0, "long": 1.2, "speed": 120.0}]


def result(*samples: dict[str, float]) -> Result:
    return Result(Bench("made-up", "made up", FIGURES, lambda: RUNS[0]), list(samples))


def test_the_best_run_is_judged() -> None:
    both = result(*RUNS)
    assert (both.best("short"), both.best("speed")) == (0.9, 120.0)
    assert both.misses == []
    assert result(RUNS[1]).misses == ["short"]
    assert result(RUNS[0]).misses == ["speed", "growth"]


def test_a_ratio_is_that_of_the_best_runs_and_not_the_best_ratio_of_a_run() -> None:
    assert result(*RUNS).best("growth") == pytest.approx(1.2 / 0.9)
    assert result(*RUNS).median("growth") == pytest.approx(2.1 / 1.45)


def test_a_row_has_target_verdict_and_peer_beside_the_figure() -> None:
    rows = result(RUNS[1]).rows()
    assert rows[0] == ("time of a short one", "2.000", "2.000", "ms", "", "≤ 1", "MISSED", "another 9")
    assert rows[1][5:7] == ("", "")
    assert rows[2][5:7] == ("≥ 100", "ok")


def test_cpu_is_judged_by_what_the_calibration_took_on_the_same_machine() -> None:
    slow = Result(Bench("made-up", "made up", CPU, dict), [{"step": 0.19, "core": 40.0, LOOP: 2.0}])
    assert slow.loops("step") == pytest.approx(0.095)
    assert slow.loops("core") == pytest.approx(0.02)
    assert slow.misses == []
    assert [row[4] for row in slow.rows()] == ["0.095", "0.020"]
    quick = Result(slow.bench, [{"step": 0.08, "core": 40.0, LOOP: 0.5}])
    assert quick.misses == ["step"]


def test_the_calibration_is_taken_beside_each_sample_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench("tail", "made up", CPU, lambda: {"step": 0.0, "core": 1.0}, runs=2)
    monkeypatch.setattr(program, "load", lambda name: bench)
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    assert program.main(["tail", "--check"]) == 0
    assert "one loop of benchmarks/calibration.py" in capsys.readouterr().out
    saved = json.loads((tmp_path / "tail.json").read_text("utf-8"))
    assert saved["loop"] > 0
    assert saved["figures"]["core"]["loops"] == pytest.approx(0.001 / saved["loop"])


def test_what_is_saved_says_where_and_by_what_it_was_judged(tmp_path: Path) -> None:
    result(*RUNS).save(tmp_path, program.where())
    saved = json.loads((tmp_path / "made-up.json").read_text("utf-8"))
    assert saved["runs"] == 2
    assert saved.keys() >= {"at", "python", "platform", "processors", "load"}
    assert saved["figures"]["short"] == {
        "name": "time of a short one",
        "unit": "ms",
        "best": 0.9,
        "median": 1.45,
        "loops": None,
        "better": "lower",
        "target": 1.0,
        "met": True,
        "peers": "another 9",
    }


@pytest.mark.parametrize(("given", "status"), [([], 0), (["--check"], 1)])
def test_a_missed_target_fails_the_program_only_when_it_is_to_check(
    given: list[str],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = Bench("tail", "made up", {"short": FIGURES["short"]}, lambda: {"short": 5.0}, runs=1)
    monkeypatch.setattr(program, "load", lambda name: missing)
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    monkeypatch.setattr(os, "environ", {"AWS_PROFILE": "mine"})
    assert program.main(["tail", *given]) == status
    assert "missed: tail.short" in capsys.readouterr().out
    assert "AWS_PROFILE" not in os.environ
