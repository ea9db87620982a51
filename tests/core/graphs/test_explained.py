"""What is told of random graphs' sagas is what the interpreter knows of them, and every question has an answer."""

from __future__ import annotations

import random

import pytest

from baton.core.log.folding.fold import fold
from baton.core.log.state import State
from baton.core.read.places import DROPPED, FAILED, PASSED, RAN, SKIPPED, WAITED
from baton.core.read.story import JOINING, UNREACHED, Reasons, Story, read_story
from tests.core.graphs.driver import Luck
from tests.core.graphs.facts import slot_name
from tests.core.graphs.pair import Pair
from tests.core.graphs.test_random_graphs import graphs, run
from tests.kit.views import as_json, explain

pytestmark = pytest.mark.no_cover

COUNTS = {4: 15, 6: 15, 8: 15, 10: 8}
ROOM = 1_000_000
KINDS = {
    "done": {RAN, PASSED, WAITED},
    "skipped": {SKIPPED, DROPPED},
    "failed": {FAILED, RAN, PASSED, WAITED},
}


def check_state(story: Story, state: State) -> None:
    """What is open in the story is what the state waits for; and it says what holds that up."""
    open_slots = {slot for slot, place in story.places.items() if place.end is None}
    if not state.is_stopping and state.ended is None:
        assert open_slots == set(state.tokens)
        reasons = Reasons(story)
        for slot in open_slots:
            place = story.places[slot]
            assert reasons.state(place) != JOINING or reasons.held_up_by(place), f"nothing holds {slot} up"


def check_answers(story: Story, state: State) -> None:
    """Every node has an answer in every round, and whatever did not run a cause that came before."""
    for name in story.program.nodes:
        found = as_json(explain(story, name, ROOM))["iterations"]
        assert found
        for one in found:
            assert one["text"].startswith(f"`{name}")
            if one["state"] in (SKIPPED, DROPPED):
                assert one["causes"], f"{name} {one['iteration']} did not run for no reason"
                versions = [cause["version"] for cause in one["causes"]]
                assert versions == sorted(versions, reverse=True), "a cause comes before what it causes"
                assert not one["causes"][-1]["text"].endswith("was skipped"), "that is no root"
            is_over = state.ended is not None and state.ended.status == "completed"
            if one["state"] == UNREACHED and is_over and story.finished is None:
                assert one["causes"], "its round is over"


def check_fates(story: Story, pair: Pair) -> None:
    """What became of each slot, by the interpreter; which of several things a saga fails with is not told by it."""
    if pair.world.ended is None or pair.world.ended.status != "completed" or pair.world.is_early:
        return
    for slot, fate in pair.world.became.items():
        end = story.places[slot_name(slot)].end
        assert end is not None
        assert end.became in KINDS[fate.kind], f"{slot_name(slot)}: {fate.kind}, told as {end.became}"
        if fate.kind == "done" and end.failure is None and not fate.again:
            # What it chose inside a loop that it leaves as well, it does not go on to.
            to = {name.partition("@")[0] for name in end.to}
            assert to == fate.to or (to < fate.to and end.leaves)


@pytest.mark.parametrize("size", COUNTS)
def test_any_saga_is_told_as_it_was(size: int) -> None:
    for seed, document, program in graphs("explained", size, COUNTS[size]):
        draw = random.Random(seed)
        pair = run(seed, document, program, Luck(together=draw.choice((1, 2))), draw)
        try:
            state = pair.state
            story = read_story(program, state, pair.entries)
            check_fates(story, pair)
            check_answers(story, state)
            half = pair.entries[: draw.randint(1, len(pair.entries))]
            before = State()
            for entry in half:
                before = fold(before, entry)
            story = read_story(program, before, half)
            check_state(story, before)
            check_answers(story, before)
        except Exception as error:
            error.add_note(f"graph {seed}")
            raise
