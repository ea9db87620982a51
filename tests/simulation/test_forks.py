"""A fork with nothing changed ends as its saga had ended, by the same steps, and no effect happens again.

`make test` forks one saga in five of the corpus at one of its entries, `make soak` every saga at every entry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.kit import fork_bugs
from tests.kit.fork_runs import END, REPEATED, STEPS, ForkRun, fork_at, places
from tests.kit.oracles import CHILDREN, DEEDS
from tests.kit.schedule import SCENARIOS

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak`
BY_DESIGN: Mapping[str, set[str]] = {
    "mishaps": {REPEATED},  # after the fork a tool fails no more, so that nothing stands in for it
    "called-off": {END},  # the signal that calls off a child is there before the new child has begun
    "forgets": {END, STEPS},  # at which turn an agent hears a word depends on time
    "changes": {END},  # other code is deployed
    "order-unsent": {DEEDS, REPEATED},  # what was refunded is charged again
    "order-cancelled": {DEEDS, REPEATED},
    "patched-paused": {END, REPEATED},  # a fork is not paused, so that its patch comes too late
    "forked-changed": {END},  # a cut before its first fork has not the output that this changes
    "migrated": {END, STEPS, REPEATED},  # no operator migrates it once more
    "parent-forked": {CHILDREN, END},  # a child that its parent has left goes on alone
}
SPENT = {"family", "purse"}  # a branch goes on with the account of its saga, which is nearly empty
NAMES = [name for name in SCENARIOS if name not in SPENT]
BUGS: tuple[tuple[Callable[[], Any], str, str], ...] = (
    (fork_bugs.a_fork_has_keys_of_its_own, "chain", REPEATED),
    (fork_bugs.a_fork_runs_nothing_that_has_run, "chain", STEPS),
)


def broken(name: str, run: ForkRun) -> list[str]:
    """What differs, and is not meant to."""
    known = BY_DESIGN.get(name, set())
    return [text for text in run.differences() if text.partition(":")[0] not in known]


@pytest.mark.parametrize("name", NAMES if IS_ALL else NAMES[::5])
def test_a_fork_at_any_entry_ends_the_same_and_repeats_no_effect(name: str) -> None:
    scenario = SCENARIOS[name]
    known = places(scenario)
    for number, version in known if IS_ALL else [known[len(known) // 3]]:
        run = fork_at(scenario, version, number)
        assert broken(name, run) == [], f"saga {number}, at version {version}"


@pytest.mark.parametrize(("bug", "name", "oracle"), BUGS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_planted_bug_is_found(bug: Callable[[], Any], name: str, oracle: str) -> None:
    with bug():
        found = broken(name, fork_at(SCENARIOS[name], 3))
    assert any(text.startswith(f"{oracle}: ") for text in found), bug.__doc__
