"""Every case of cases/: by the interpreter what was computed by hand, and by the engine what the interpreter says."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.core.log import events as ev
from tests.core.graphs.cases import FOLDER, code_in, interpret, load
from tests.core.graphs.driver import ending
from tests.core.graphs.facts import slot_name
from tests.core.graphs.pair import Pair, program_of

CASES = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_interpreter_does_what_was_computed_by_hand(path: Path) -> None:
    case = load(path)
    ran, skipped, end = interpret(case)
    assert ran == case["ran"]
    assert skipped == sorted(case["skipped"])
    assert end == case["end"]


@pytest.mark.parametrize("room", [1, 400_000])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_engine_does_what_the_interpreter_does(path: Path, room: int) -> None:
    case = load(path)
    pair = Pair(case["document"], program_of(case["document"]), room)
    pair.go()
    for slot, value in case["settle"]:
        name = slot.partition("@")[0]
        if "wait" in case["nodes"][name]:
            pair.signal(case["nodes"][name]["wait"]["signal"], value)
            pair.go()
            continue
        outcomes = [ending(pair, slot, value, code_in(value))]
        pair.go(*outcomes)
        pair.check_restart()
        pair.check_twice(outcomes)
    assert {slot: given or None for slot, given in pair.begun.items()} == case["ran"]
    assert {slot_name(slot) for slot in pair.mirror.skipped} >= set(case["skipped"])
    assert isinstance(pair.entries[-1].events[-1], ev.SagaEnded)
    pair.check_snapshots(range(len(pair.entries)))
