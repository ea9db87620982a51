"""Attempts with their inputs and outputs: from the entries and the graph, and from nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from baton.core.decide.context import FetchedValues, LackingError
from baton.core.failures.policy import PolicyChange
from baton.core.log.folding.forks import lineage_to
from baton.core.read.explain import explain
from baton.core.read.step_runs import StepRun, call_at, open_run, open_slots, page_of_runs, run_view
from baton.core.read.story import Story
from tests.core.build import Saga, done, failed, program, task, wait
from tests.core.failing import answer, broken, schedule
from tests.core.nodes.thinking import answered, call, thinking
from tests.core.strategies import ASK_USER, ROLLBACK
from tests.core.test_undoing import undoable
from tests.core.told import ROOM

NOTHING = FetchedValues()


def story_of(saga: Saga, *, wants: Any = lambda _, __: True) -> Story:
    story = Story(saga.program, wants)
    for segment in lineage_to(saga.state):
        for entry in saga.entries:
            if entry.branch == segment.branch and segment.first <= entry.version <= segment.last:
                story.add(entry)
    story.agree_with(saga.state)
    return story


def views(saga: Saga, found: FetchedValues = NOTHING) -> list[StepRun]:
    return [run_view(saga.program, run, found) for run in story_of(saga).runs]


def short(run: StepRun) -> tuple[Any, ...]:
    return run.node, run.attempt, run.outcome, run.input, run.output


def two(**first: Any) -> Saga:
    saga = Saga(
        program(
            task("a", **first), task("b", "a", arguments={"x": "${ctx.a.output}"}), output="${ctx.b.output}"
        ),
        {"n": 1},
    )
    saga.go()
    return saga


def test_an_input_is_what_the_expressions_gave_then() -> None:
    saga = two(arguments={"n": "${input.n}"})
    saga.go(done("a", 7))
    saga.go(done("b", 8))
    first, second = views(saga)
    assert short(first) == ("a", 1, "succeeded", {"n": 1}, 7)
    assert short(second) == ("b", 1, "succeeded", {"x": 7}, 8)
    assert (first.tool, first.error, first.item) == ("t", None, UNSET)
    assert first.started_at is not None
    assert first.ended_at is not None
    assert first.started_at < first.ended_at


def test_attempts_that_failed_are_shown_with_their_failures() -> None:
    saga = Saga(program(task("a", arguments={"n": 1}), failures={"any": schedule(1_000)}))
    saga.go()
    saga.go(broken("a"))
    (tried,) = views(saga)
    assert short(tried) == ("a", 1, "attempt_failed", {"n": 1}, None)
    assert tried.error is not None
    assert tried.error.code == "service_unavailable"
    story = story_of(saga)
    assert open_slots(story) == open_slots(story, "a") == ["a"]
    assert open_slots(story, "b") == []
    waiting = open_run(saga.program, saga.state, "a", NOTHING)
    assert short(waiting) == ("a", 1, "open", {"n": 1}, None)


def test_a_step_that_failed_for_good_is_its_last_attempt() -> None:
    saga = two(arguments={"n": 1})
    saga.go(failed("a"))
    (gone,) = views(saga)
    assert short(gone) == ("a", 1, "failed", {"n": 1}, None)


def test_a_step_that_runs_is_open_with_its_input() -> None:
    saga = two(arguments={"n": 1})
    assert open_slots(story_of(saga)) == ["a"]
    assert short(open_run(saga.program, saga.state, "a", NOTHING)) == ("a", 0, "open", {"n": 1}, None)


def test_an_input_outside_of_the_log_is_asked_for_and_an_output_there_is_named() -> None:
    saga = two(arguments={"n": 1})
    saga.go(done("a", ref="cas://sha256/1"))
    first = story_of(saga).runs[0]
    shown = run_view(saga.program, first, NOTHING)
    assert (shown.output, shown.large_output is not None) == (None, True)
    with pytest.raises(LackingError) as lacking:
        open_run(saga.program, saga.state, "b", NOTHING)
    assert lacking.value.needs == {"cas://sha256/1"}
    found = FetchedValues(blobs={"cas://sha256/1": "large"})
    assert open_run(saga.program, saga.state, "b", found).input == {"x": "large"}


def test_secrets_are_masked_and_long_texts_cut() -> None:
    saga = two(arguments={"password": "hunter22", "text": "x" * 600})
    saga.go(done("a", {"token": "abc"}))
    (first,) = views(saga)
    assert first.input == {"password": "[redacted]", "text": "x" * 500 + "…"}
    assert first.output == {"token": "[redacted]"}


def test_an_input_that_cannot_be_made_is_unknown() -> None:
    saga = two(arguments={"n": "${input.missing}"})
    (failure,) = views(saga)
    assert (failure.outcome, failure.input) == ("failed", None)
    (run,) = story_of(saga).runs
    assert call_at(saga.program, run.before, "a", NOTHING) is None


def test_a_wait_makes_no_attempt() -> None:
    saga = Saga(program(wait("a", ms=1_000)))
    saga.go()
    saga.now += 2_000
    saga.go()
    (waited,) = views(saga)
    assert (waited.attempt, waited.started_at, waited.tool, waited.outcome) == (0, None, "", "succeeded")
    assert waited.ended_at is None


@pytest.mark.parametrize(
    ("after", "limit", "nodes", "rest"),
    [(0, 1, ["a"], 2), (2, 1, ["b"], None), (0, 9, ["a", "b"], None), (9, 9, [], None)],
)
def test_a_page_has_all_attempts_of_an_entry(
    after: int, limit: int, nodes: list[str], rest: int | None
) -> None:
    saga = two(arguments={"n": 1})
    saga.go(done("a", 7))
    saga.go(done("b", 8))
    page, found = page_of_runs(story_of(saga), after, limit)
    assert ([run.event.node for run in page], found) == (nodes, rest)
    assert page_of_runs(story_of(saga), 0, 9, "undo") == ([], None)


def test_only_what_is_wanted_is_kept() -> None:
    saga = two(arguments={"n": 1})
    saga.go(done("a", 7))
    story = story_of(saga, wants=lambda node, _: node == "b")
    assert story.runs == []
    assert Story(saga.program).runs == []


def test_of_very_many_attempts_of_a_round_the_first_and_the_last_are_shown() -> None:
    saga = two(arguments={"n": 1})
    saga.go(done("a", 7))
    (one,) = views(saga)
    runs = {"a": [one] * 60}
    (shown,) = explain(
        story_of(saga), "a", ROOM, runs, saga="s", workflow="w", status="running", version=2, branch=0
    ).iterations
    assert len(shown.runs) == 50


def test_an_inverse_is_shown_with_what_it_gets_of_the_step() -> None:
    saga = Saga(program(undoable("a", arguments={"of": "${step.output}"}), task("b", "a")))
    saga.go()
    saga.go(done("a", 1))
    saga.go(failed("b"))
    saga.go(done("a#undo"))
    *_, inverse = story_of(saga).runs
    with pytest.raises(LackingError) as lacking:
        run_view(saga.program, inverse, NOTHING)
    found = FetchedValues(
        entries={one.version: one for one in saga.entries if one.version in lacking.value.entries}
    )
    shown = run_view(saga.program, inverse, found)
    assert (shown.item, shown.outcome, shown.input) == ("undo", "succeeded", {"of": 1})
    page, _ = page_of_runs(story_of(saga), 0, 9, "undo")
    assert [run.event.item for run in page] == ["undo"]
    made = call_at(saga.program, inverse.before, "a#undo", found)
    assert made is not None
    assert (made.attempt, made.arguments, made.node.tool) == (1, {"of": 1}, "u")
    # Of a program that has no inverse any more nothing is known.
    changed = program(task("a"), task("b", "a"))
    assert run_view(changed, inverse, found).input is None
    assert call_at(changed, inverse.before, "a#undo", found) is None


def test_the_next_attempt_has_the_arguments_that_an_answer_changed() -> None:
    rule = PolicyChange(ladder=(ASK_USER, ROLLBACK), may_change=("n",))
    saga = Saga(program(task("a", arguments={"n": 1, "m": 2}), failures={"any": rule}))
    saga.go()
    saga.go(failed("a"))
    answer(saga, "retry", arguments={"n": 9})
    saga.go()
    assert open_run(saga.program, saga.state, "a", NOTHING).input == {"n": 9, "m": 2}


def test_a_turn_of_an_agent_has_its_tools_and_its_calls_have_their_arguments() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    saga.go(done("a#t1-0", {"found": 1}))
    turn, look = views(saga)
    assert (turn.item, turn.input) == ("t1", {"tools": ["look", "pay", "roll"]})
    assert (look.item, look.input) == ("t1-0", {"n": 1})
