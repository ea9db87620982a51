"""A failure that was caught, and no handler of it ran: each was skipped by its `when`."""

from __future__ import annotations

from baton.core.decide.outcomes import Outcome
from tests.core.build import Saga, done, failed
from tests.core.told import of, steps, why
from tests.kit.sentences import Says

BROKE = "tool_error: it broke"
NODES = """
a: {tool: t, catch: [h, k]}
b: {tool: t, after: a}
c: {tool: t, after: b}
h: {tool: t, when: input.alarm}
k: {tool: t, when: "last_error.code == 'other'"}
"""


def went(nodes: str, *outcomes: Outcome) -> Saga:
    saga = of(nodes, {"alarm": False})
    for outcome in outcomes:
        saga.go(outcome)
    return saga


def test_a_failure_that_nothing_handles_since_each_handler_was_skipped_is_told_at_the_step(
    says: Says,
) -> None:
    saga = went(NODES, failed("a"))
    says(steps(saga)[0])
    says(why(saga, "a"))


def test_it_is_told_of_what_did_not_run_for_it(says: Says) -> None:
    saga = went(NODES, failed("a"))
    says(why(saga, "b"))
    says(why(saga, "c"))
    says(why(saga, "h"))


def test_one_handler_that_runs_or_has_not_ended_handles_it(says: Says) -> None:
    nodes = NODES.replace("k: {tool: t, when: \"last_error.code == 'other'\"}", "k: {tool: t}")
    saga = went(nodes, failed("a"))
    for _ in range(2):
        says(why(saga, "a"))
        says(why(saga, "b"))
        says(why(saga, "h"))
        saga.go(done("k"))


def test_a_handler_that_did_not_run_for_another_reason_is_not_said_to_be_skipped_by_its_when(
    says: Says,
) -> None:
    nodes = "s: {tool: t}\na: {tool: t, catch: h}\nh: {tool: t, after: s, join: 2, when: input.alarm}"
    saga = went(nodes, failed("a"), done("s"))
    says(why(saga, "a"))
    saga = went(nodes.replace("s: {tool: t}", "s: {tool: t, when: input.alarm}"), failed("a"))
    says(why(saga, "a"))


LOOP = """
f: {tool: t}
m: {tool: t, after: f, catch: %s}
%s
t: {tool: t, after: %s, loop: {while: "output.n > 0", back_to: f, max_iterations: 3}}
z: {tool: t, after: t}
y: {tool: t, after: z}
"""


def test_it_is_told_in_the_round_of_a_loop_and_behind_it(says: Says) -> None:
    inside = "i: {tool: t, after: f, when: input.alarm}\nv: {tool: t, after: [i, m]}"
    saga = went(LOOP % ("i", inside, "v"), done("f@0"), failed("m@0"))
    says(why(saga, "m@0"))
    says(why(saga, "v@0"))
    says(why(saga, "z"))
    # Further on, it is not known in which round it was.
    says(why(saga, "y"))


def test_a_failure_that_leaves_a_loop_is_told_with_its_handler_outside(says: Says) -> None:
    saga = went(LOOP % ("o", "o: {tool: t, when: input.alarm}", "m"), done("f@0"), failed("m@0"))
    says(why(saga, "m@0"))
    says(why(saga, "z"))
