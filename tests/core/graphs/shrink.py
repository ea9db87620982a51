"""Makes a graph on which engine and interpreter differ as small as it gets, and prints it as a case for cases/.

    .venv/bin/python -m tests.core.graphs.shrink 1/7/23

The argument is the seed of the failed graph. What comes of the case is by the interpreter: read docs/semantics.md, judge
who is right, and write in `says` what the case shows.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Iterator
from typing import Any

from baton.core.decide.outcomes import Outcome
from baton.core.decide.spending import DEFAULT
from baton.errors import InvalidDefinition
from tests.core.graphs.cases import FAILS, code_in, interpret
from tests.core.graphs.driver import Luck, carry_on
from tests.core.graphs.facts import Breaks, slot_name, slot_of
from tests.core.graphs.interpreter import Interpreter
from tests.core.graphs.pair import Pair, program_of
from tests.core.graphs.plan import names
from tests.core.graphs.script import INPUT, Script
from tests.core.graphs.shapes import Maker

TRIES = 40
LUCK = (
    Luck(look=1.0),
    Luck(together=3),
    Luck(room=1),
    Luck(room=1, death=1.0),
    Luck(together=2, late=0.5, early=0.3),
)


def difference(document: dict[str, Any]) -> tuple[str, Pair | None, str]:
    """What differs in some run of this graph, the pair as it was then and the seed; empty if nothing does."""
    try:
        program = program_of(document)
    except InvalidDefinition:
        return "", None, ""
    for number in range(TRIES):
        seed, luck = f"shrink/{number}", LUCK[number % len(LUCK)]
        pair = None
        try:
            pair = Pair(document, program, luck.room)
            pair.go()
            carry_on(pair, Script(pair.world.plan, seed), random.Random(seed), luck)
            pair.check_snapshots(range(len(pair.entries)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
            return (
                f"{luck if luck.room != DEFAULT.entry_bytes or luck.together > 1 else ''} {error!r}",
                pair,
                seed,
            )
    return "", None, ""


def smaller(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Documents with one thing less."""
    for gone in document["nodes"]:
        yield without(document, gone)
    for name, node in document["nodes"].items():
        for key in (
            *("map", "poll", "catch", "retry", "on_failure", "branch", "loop", "join", "when", "with"),
            "after",
        ):
            if key in node:
                less = copy.deepcopy(document)
                del less["nodes"][name][key]
                yield less
        for key in node.get("with", {}):
            less = copy.deepcopy(document)
            del less["nodes"][name]["with"][key]
            yield less
        for index in range(len(node.get("after", ()))):
            less = copy.deepcopy(document)
            del less["nodes"][name]["after"][index]
            yield less
        yield from _less_of_many(document, name)
        if "tool" not in node:
            less = copy.deepcopy(document)
            kept = {key: value for key, value in node.items() if key not in ("wait", "value", "workflow")}
            less["nodes"][name] = {**kept, "tool": "work"}
            yield less
    if document.get("on_failure") != ["rollback"]:
        yield {
            **{key: value for key, value in document.items() if key != "retry"},
            "on_failure": ["rollback"],
        }
    if document.keys() & {"retry", "on_failure"} and document.get("on_failure") != ["rollback"]:
        yield {key: value for key, value in document.items() if key not in ("retry", "on_failure")}
    if "output" in document:
        yield {key: value for key, value in document.items() if key != "output"}


def _less_of_many(document: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """With one word less of a map or of a loop that rests, or with a shorter list."""
    node = document["nodes"][name]
    words = {"map": ("concurrency", "rest", "wait_for", "tolerated_failures"), "loop": ("pause", "initial")}
    for part, keys in words.items():
        for key in keys:
            if key in node.get(part, {}):
                less = copy.deepcopy(document)
                del less["nodes"][name][part][key]
                yield less
    if isinstance(over := node.get("map", {}).get("over"), list) and over:
        less = copy.deepcopy(document)
        less["nodes"][name]["map"]["over"] = over[:-1]
        yield less


def without(document: dict[str, Any], gone: str) -> dict[str, Any]:
    """The document without one node, whose neighbours are joined where that is simple."""
    nodes = copy.deepcopy(document["nodes"])
    before = names(nodes.pop(gone).get("after"))
    for node in nodes.values():
        if gone in node.get("after", ()):
            node["after"] = sorted({name for name in (*node["after"], *before) if name != gone})
        loop, branch = node.get("loop", {}), node.get("branch", {})
        if loop.get("back_to") == gone:
            del loop["back_to"]
        for part, key in (
            (loop, "break_path"),
            (loop, "timeout_path"),
            (branch, "among"),
            (branch, "default"),
        ):
            _drop(part, key, gone)
        for rule in branch.get("rules", ()):
            _drop(rule, "then", gone)
        if "rules" in branch:
            branch["rules"] = [rule for rule in branch["rules"] if "then" in rule]
        if not branch.get("rules") and "among" not in branch:
            node.pop("branch", None)
        _drop_handler(node, gone)
    return {**document, "nodes": nodes}


def _drop_handler(node: dict[str, Any], gone: str) -> None:
    """One handler less, and no rule that leads nowhere."""
    _drop(node, "catch", gone)
    said = node.get("catch", [])
    rules: list[dict[str, Any]] = [rule for rule in said if isinstance(rule, dict)]
    for rule in rules:
        _drop(rule, "then", gone)
    if rules:
        node["catch"] = [rule for rule in rules if "then" in rule]
        if not node["catch"]:
            del node["catch"]


def _drop(part: dict[str, Any], key: str, gone: str) -> None:
    """One name less where a list of names stands; nothing at all where it was the only one."""
    if gone in names(part.get(key)):
        part[key] = [name for name in names(part[key]) if name != gone]
        if not part[key]:
            del part[key]


def shrink(document: dict[str, Any]) -> dict[str, Any]:
    """The smallest document found that still shows a difference."""
    is_going = True
    while is_going:
        is_going = False
        for less in smaller(document):
            if difference(less)[0]:
                document, is_going = less, True
                break
    return document


def said_by(outcome: Outcome) -> Any:
    """As a case says it."""
    if outcome.failure is not None:
        return f"{FAILS} {outcome.failure.code}"
    return outcome.output.v if outcome.output is not None else None


def case_of(document: dict[str, Any]) -> dict[str, Any]:
    """The case of this document: the run that showed the difference, told to the end by the interpreter."""
    _, pair, seed = difference(document)
    known = () if pair is None else pair.told
    told = {slot_of(one.what): said_by(one.value) for one in known if isinstance(one.value, Outcome)}
    world = Interpreter(document, INPUT)
    script = Script(world.plan, seed)
    settle: list[Any] = []
    while world.ended is None:
        slot = next((slot for slot in told if slot in world.open), min(world.open, default=None))
        assert slot is not None
        if isinstance(broken := world.open[slot], Breaks):
            world.fail(slot, broken.code)
            continue
        if world.plan.kind(slot[0]) == "pass":
            world.settle(slot, world.open[slot])
            continue
        code = script.fails(slot, 1)
        value = told.get(slot, f"{FAILS} {code}" if code else script.value(slot))
        settle.append([slot_name(slot), value])
        if code_in(value):
            world.fail(slot, code_in(value), 1)
        else:
            world.settle(slot, value)
    # Cases know of no second attempt: a difference that needs one is for a test by hand.
    case = {**document, "document": document, "settle": settle}
    ran, skipped, end = interpret(case)
    del case["document"], case["name"]
    return {"says": "", **case, "ran": ran, "skipped": skipped, "end": end}


def is_plain(document: dict[str, Any]) -> bool:
    """Whether a case can say it: cases know of no items, children or pauses."""
    loops = (node.get("loop", {}) for node in document["nodes"].values())
    has_many = any(node.keys() & {"map", "poll", "workflow"} for node in document["nodes"].values())
    return not has_many and not any("pause" in loop for loop in loops)


if __name__ == "__main__":
    size = int(sys.argv[1].split("/")[1]) if sys.argv[1].count("/") == 2 else 0
    small = shrink(Maker(sys.argv[1], size).document())
    print(difference(small)[0])  # noqa: T201 - a program for people
    shown = case_of(small) if is_plain(small) else small  # the latter is for a test by hand
    print(json.dumps(shown, indent=1))  # noqa: T201 - as above
