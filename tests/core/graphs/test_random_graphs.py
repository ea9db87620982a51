"""Random graphs, hundreds of them and thousands in `make graphs`, each run by the engine with the interpreter looking on; pair.py and mirror.py say what must hold.

Half of them say what is done about failures: retries, alternatives, questions, incidents, and edges taken on failure.

`make test` runs COUNTS of each size, `make soak` more than twice as many, and `make graphs EXAMPLES=100000 SEED=7` as many as
wanted, of another seed. A graph that fails is made small by `python -m tests.core.graphs.shrink SEED`, and then kept in cases/.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from baton.core.decide.program import Program
from baton.core.decide.spending import DEFAULT
from baton.errors import InvalidDefinition
from tests.core.graphs.driver import Luck, carry_on, carry_on_together, every_order
from tests.core.graphs.pair import Pair, program_of
from tests.core.graphs.script import Script
from tests.core.graphs.shapes import Doc, Maker

SEED = os.environ.get("BATON_GRAPHS_SEED", "1")
COUNTS = {3: 20, 4: 30, 5: 38, 6: 38, 7: 32, 8: 24, 9: 16, 10: 10, 11: 5, 12: 3, 14: 3}
"""Nodes: graphs. Graphs of different sizes are different, so that each size can be counted alone."""
SCALE = max(1.0, int(os.environ.get("BATON_GRAPHS", "0")) / sum(COUNTS.values()))
ORDERS = {4: 15, 5: 15, 6: 5}
"""Nodes: graphs that are run in every order, up to MOST_ORDERS."""
MOST_ORDERS = 25

# Coverage is for tests that name what they hold; here it would only double the time.
pytestmark = [pytest.mark.timeout(120 * SCALE), pytest.mark.no_cover]


def graphs(kind: str, size: int, count: int) -> Iterator[tuple[str, Doc, Program]]:
    """So many different graphs that the compiler takes, with their seeds. It takes 19 of 20; of large ones fewer."""
    seen: set[str] = set()
    refused = tried = 0
    while len(seen) < count:
        tried += 1
        seed = f"{SEED}{kind}/{size}/{tried}"
        maker = Maker(seed, size)
        document = maker.document()
        try:
            program = program_of(document)
        except InvalidDefinition:
            refused += 1
            continue
        signature = maker.signature()
        if signature not in seen:
            seen.add(signature)
            yield seed, document, program
    assert refused <= tried * 0.15 + 5


def bad_luck(draw: random.Random) -> Luck:
    """Several ends in one entry, little room in it, deaths between entries, what comes too early, too late or for no node."""
    return Luck(
        together=draw.choice((1, 2, 3)),
        room=draw.choice((1, 300, DEFAULT.entry_bytes)),
        death=draw.choice((0.0, 0.5, 1.0)),
        early=draw.choice((0.0, 0.3)),
        late=draw.choice((0.0, 0.5)),
        cut=draw.choice((0.0, 0.0, 0.2)),
        stray=draw.choice((0.0, 0.3)),
        look=0.15,
    )


def run(seed: str, document: Doc, program: Program, luck: Luck, draw: random.Random) -> Pair:
    pair = Pair(document, program, luck.room)
    try:
        pair.go()
        carry_on(pair, Script(pair.world.plan, seed), draw, luck)
        pair.check_snapshots([draw.randrange(len(pair.entries))])
    except Exception as error:
        error.add_note(f"graph {seed} with {luck}")
        raise
    return pair


@pytest.mark.parametrize("size", COUNTS)
def test_any_graph_runs_as_the_interpreter_says_whatever_happens_on_the_way(size: int) -> None:
    count = round(COUNTS[size] * SCALE)
    done = 0
    for seed, document, program in graphs("", size, count):
        draw = random.Random(seed)
        if done % 4 == 1:
            run(seed, document, program, Luck(look=0.3), draw)
        run(seed, document, program, bad_luck(draw), draw)
        done += 1
    assert done == count


@pytest.mark.parametrize("size", ORDERS)
def test_small_graphs_run_as_the_interpreter_says_in_every_order_of_what_is_parallel(size: int) -> None:
    orders = 0
    for seed, document, program in graphs("every", size, round(ORDERS[size] * SCALE)):
        pair = Pair(document, program)
        try:
            pair.go()
            for end in every_order(pair, Script(pair.world.plan, seed), MOST_ORDERS):
                assert end.state.ended is not None
                orders += 1
        except Exception as error:
            error.add_note(f"graph {seed}")
            raise
    assert orders > ORDERS[size]


@pytest.mark.parametrize("size", [5, 7, 9])
def test_what_ends_in_one_entry_comes_to_the_same_as_one_by_one(size: int) -> None:
    for seed, document, program in graphs("together", size, round(12 * SCALE)):
        first = run(seed, document, program, Luck(), random.Random(seed))
        second = Pair(document, program)
        try:
            second.go()
            carry_on_together(second, first.told, 9)
        except Exception as error:
            error.add_note(f"graph {seed}")
            raise
        if first.world.is_early or second.world.is_early:
            continue  # what ends with the step before an end is heard with it, or not at all
        if any(
            node.get("map", {}).get("rest", "cancel") == "cancel"
            for node in document["nodes"].values()
            if "map" in node
        ):
            continue  # what ends with the item that decides is in the batch result, and would have been stopped
        # What is stopped by what ended with it has not even begun; nor has what follows at once, when it fails the saga.
        assert second.world.became.items() <= first.world.became.items()
        if first.world.failures:
            continue
        assert second.world.became == first.world.became
        assert second.begun == {slot: given for slot, given in first.begun.items() if slot in second.begun}
        assert second.state.ended == first.state.ended


def test_there_are_as_many_graphs_as_are_promised() -> None:
    assert sum(COUNTS.values()) >= 200
