"""Cases that are kept: graphs by hand, and shrunk ones that were once a difference between engine and interpreter.

A case says what it shows, the nodes (a node without a kind is a task), how its steps end in which order (a value, or
"fails" with a code if that matters; what is not at work any more is told all the same), and what comes of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.core.graphs.facts import Breaks, slot_name, slot_of
from tests.core.graphs.interpreter import Interpreter
from tests.core.graphs.items import BEGIN, DONE, OVER
from tests.core.graphs.script import INPUT

FOLDER = Path(__file__).parent / "cases"
FAILS = "fails"


def code_in(value: Any) -> str:
    """The code that a step fails with, by what a case says of its end: `fails`, or `fails timeout`; empty if it does not."""
    if not isinstance(value, str) or value.partition(" ")[0] != FAILS:
        return ""
    return value.partition(" ")[2] or "tool_error"


def load(path: Path) -> dict[str, Any]:
    """The case, with its document made whole."""
    case: dict[str, Any] = json.loads(path.read_text())
    for node in case["nodes"].values():
        if not node.keys() & {"tool", "wait", "value"}:
            node["tool"] = "work"
    case["document"] = {"name": "graph", "nodes": case["nodes"], "on_failure": ["rollback"]}
    if "output" in case:
        case["document"]["output"] = case["output"]
    return case


def _move_maps(world: Interpreter) -> None:
    """Every map goes on as far as it does by itself."""
    while moved := [(slot, turn) for slot in world.maps if (turn := world.turn(slot)) is not None]:
        slot, found = moved[0]
        if found.what == BEGIN:
            world.begin_items(slot, found.count)
        elif found.what == DONE:
            world.settle(slot, found.value)
        elif found.what == OVER:
            world.map_over(slot)
        else:
            world.stop_items(slot, found)
            world.fail(slot, found.code)


def interpret(case: dict[str, Any]) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    """Which tasks ran with what, which slots were skipped (of a saga that completes), and how it ended."""
    world = Interpreter(case["document"], INPUT)
    ran: dict[str, Any] = {}

    def look() -> None:
        _move_maps(world)
        while begun := sorted(
            slot
            for slot, given in world.open.items()
            if slot in world.open_of("pass") or isinstance(given, Breaks)
        ):
            if isinstance(broken := world.open[begun[0]], Breaks):
                world.fail(begun[0], broken.code)
            else:
                world.settle(begun[0], world.open[begun[0]])
        ran.update({slot_name(slot): given for slot, given in world.open_of("task").items()})

    look()
    for text, value in case["settle"]:
        slot = slot_of(text)
        if slot not in world.open:
            assert slot in world.stopped or world.ended, f"{text} has not begun"
        elif code_in(value):
            world.fail(slot, code_in(value), 1)
        else:
            world.settle(slot, value)
        look()
    skipped = sorted(slot_name(slot) for slot, fate in world.became.items() if fate.kind == "skipped")
    assert world.ended is not None
    if world.ended.status != "completed":
        skipped = []
    end = {key: value for key, value in vars(world.ended).items() if value or key == "status"}
    if world.ended.status == "completed":
        end["output"] = world.ended.output
    return ran, skipped, end
