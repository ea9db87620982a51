"""A step in doubt that is to be undone: a person is asked whether it has happened, and the answer takes the undoing up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.outcomes import Outcome
from baton.core.failures.policy import PolicyChange, Rules
from baton.core.graph.graph import Catch, Loop
from baton.core.log import events as ev
from baton.core.log.folding import forks
from baton.core.log.folding.fold import apply
from baton.core.log.questions import open_questions
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.log.state import UNKNOWN_OUTCOME, status_of
from baton.core.log.undos import Undoable, Undoing
from baton.core.read.views import undo_view
from tests.core.asked import steps_of
from tests.core.build import AT_ONCE, Saga, done, failed, program, ready, task
from tests.core.graphs_of import again
from tests.core.test_undoing import undoable
from tests.core.undo_asking import CANCEL_WITH_UNDO, asked, expire, say
from tests.kit.views import as_json


def lost(slot: str = "b", **more: Any) -> Outcome:
    return replace(failed(slot, "timeout", "permanent"), **more)


def in_doubt(*, failures: Rules = AT_ONCE) -> Saga:
    """`a` is done, and `b`, which can be undone, has had no answer."""
    saga = Saga(program(undoable("a"), undoable("b", "a"), failures=failures))
    saga.go(done("a"))
    saga.go(lost())
    return saga


STAYS = {**AT_ONCE, "timeout": PolicyChange(ladder=("retry",), at_most={"retry": 0})}


def report(saga: Saga) -> ev.Undone:
    assert saga.state.ended is not None
    assert saga.state.ended.undone is not None
    return saga.state.ended.undone


def test_a_person_is_asked_before_anything_older_is_undone() -> None:
    saga = in_doubt()
    assert (asked(saga), ready(saga.decision), status_of(saga.state)) == (["b#undo"], [], "suspended")
    [(_, ask)] = open_questions(saga.state)
    assert saga.decision.due == ask.expires_at == saga.now + 86_400_000
    assert ask.to == "", "the user who has started the saga is asked"
    assert "`t` at `b` ended with timeout" in ask.message
    assert ask.actions == ("retry", "use", "fail")
    assert [notice.notice.to for notice in saga.entries[-1].events if isinstance(notice, ev.NoticeDue)] == [
        "user"
    ]
    assert decode_state(encode_state(saga.state)) == saga.state


def test_what_has_happened_is_undone_with_the_output_that_is_named() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a", arguments={"id": "${step.output.id}"})))
    saga.go(done("a"))
    saga.go(lost())
    say(saga, "b#undo", "use", output={"id": "b-1"})
    assert [(step.slot, step.arguments, step.attempt, step.given) for step in steps_of(saga.decision)] == [
        ("b#undo", {"id": "b-1"}, 1, None)
    ]
    saga.go(done("b#undo"))
    saga.go(done("a#undo"))
    assert report(saga) == ev.Undone(done=2)
    assert status_of(saga.state) == "rolled_back"
    assert saga.state.undo.generation("b") == 1, "done anew, it is another effect"


def test_of_what_has_not_happened_there_is_nothing_to_undo() -> None:
    saga = in_doubt()
    say(saga, "b#undo", "retry")
    assert ready(saga.decision) == ["a#undo"]
    saga.go(done("a#undo"))
    assert (report(saga), status_of(saga.state)) == (ev.Undone(done=1), "rolled_back")
    assert saga.state.undo.unknown == 0


def test_what_a_person_leaves_stays_in_doubt_and_is_asked_about_by_the_next_rollback() -> None:
    saga = in_doubt()
    say(saga, "b#undo", "fail")
    assert ready(saga.decision) == ["a#undo"], "the rest is undone"
    assert [one.to for one in saga.state.outbox.due] == ["user"], "the person knows"
    saga.go(done("a#undo"))
    assert report(saga) == ev.Undone(done=1, doubtful=("b",), doubts=1)
    assert status_of(saga.state) == "rollback_failed"
    shown = as_json(undo_view(saga.state, saga.program))
    assert shown is not None
    assert (shown["doubtful"], shown["failed"]) == (["b"], [])
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k"))
    saga.go()
    assert asked(saga) == ["b#undo"]
    say(saga, "b#undo", "use", output=None)
    saga.go(done("b#undo"))
    assert (report(saga), status_of(saga.state)) == (ev.Undone(done=1), "rolled_back")


def test_without_an_answer_in_time_it_stays_in_doubt_and_the_people_on_call_are_told() -> None:
    saga = in_doubt()
    expire(saga)
    assert ready(saga.decision) == ["a#undo"]
    assert [(notice.to, notice.code, notice.incident) for notice in saga.state.outbox.due][-1] == (
        "on_call",
        UNKNOWN_OUTCOME,
        True,
    )


def test_a_rule_says_who_is_asked_after_whom_and_for_how_long() -> None:
    day, steps = (
        86_400_000,
        (
            {"after_ms": 3_600_000, "remind": True},
            {"after_ms": 2 * 86_400_000, "hand_on": {"group": "desk"}},
            {"after_ms": 3 * 86_400_000, "decide": "fail"},
        ),
    )
    saga = in_doubt(failures={**AT_ONCE, UNKNOWN_OUTCOME: PolicyChange(escalate=steps)})
    for after, to in ((3_600_000, ""), (2 * day - 3_600_000, "group:desk")):
        saga.go(after_ms=after)
        [(_, ask)] = open_questions(saga.state)
        assert (ask.to, ready(saga.decision)) == (to, [])
    saga.go(after_ms=day)
    assert (asked(saga), ready(saga.decision)) == ([], ["a#undo"])
    assert saga.state.outbox.due[-1].to == "on_call"
    saga.note_told()
    saga.go(done("a#undo"))
    assert report(saga).doubtful == ("b",)


def test_where_the_document_says_that_no_person_is_asked_the_people_on_call_are_told() -> None:
    for ladder in (("rollback",), ("escalate",)):
        saga = in_doubt(
            failures={
                "timeout": PolicyChange(ladder=("rollback",)),
                UNKNOWN_OUTCOME: PolicyChange(ladder=ladder),
            }
        )
        assert (asked(saga), saga.state.parked) == ([], None)
        assert [notice.to for notice in saga.state.outbox.due] == ["on_call"]
        saga.go(done("a#undo"))
        saga.note_told()
        saga.go()
        assert report(saga).doubtful == ("b",)


def test_an_inverse_that_fails_after_the_answer_is_told_as_any_and_asked_about_again() -> None:
    saga = in_doubt()
    say(saga, "b#undo", "use", output=None)
    saga.go(failed("b#undo", "gone", "permanent"))
    saga.note_told()
    saga.go(done("a#undo"))
    assert (report(saga).fails, report(saga).doubts, report(saga).failed[0].code) == (1, 0, "gone")
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k"))
    saga.go()
    assert asked(saga) == ["b#undo"]


@pytest.mark.parametrize(
    ("code", "kind", "is_asked"),
    [
        ("timeout", "permanent", True),
        ("connection_failed", "", True),
        ("server_error", "", True),
        ("service_unavailable", "", True),
        ("key_error", "unknown", True),
        ("sold_out", "permanent", False),
        ("rate_limited", "", False),
        ("bad_request", "", False),
        ("breaker_open", "", False),
    ],
)
def test_an_idempotent_step_is_in_doubt_when_its_last_call_had_no_answer_that_says_anything(
    code: str, kind: str, *, is_asked: bool
) -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a")))
    saga.go(done("a"))
    saga.go(failed("b", code, kind))
    assert asked(saga) == (["b#undo"] if is_asked else [])


def test_a_tool_that_says_that_it_has_not_happened_is_believed() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a")))
    saga.go(done("a"))
    saga.go(replace(failed("b"), failure=ev.Failure("timeout", "no", "b", "permanent", refused=True)))
    assert (asked(saga), ready(saga.decision)) == ([], ["a#undo"])


def test_a_step_in_doubt_from_which_the_saga_went_on_is_asked_about_in_its_turn() -> None:
    first = undoable("a", catch=(Catch(then=("b",)),))
    saga = Saga(program(first, undoable("b", "a"), task("c", "b")))
    saga.go(lost("a"))
    saga.go(done("b"))
    saga.go(failed("c"))
    assert ready(saga.decision) == ["b#undo"], "the newest comes first"
    saga.go(done("b#undo"))
    assert asked(saga) == ["a#undo"]
    say(saga, "a#undo", "retry")
    assert status_of(saga.state) == "rolled_back"


def test_a_saga_that_has_done_nothing_else_asks_too() -> None:
    saga = Saga(program(undoable("a")))
    saga.go(lost("a"))
    assert asked(saga) == ["a#undo"]
    say(saga, "a#undo", "retry")
    assert status_of(saga.state) == "rolled_back"
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "timeout"


def test_a_saga_that_undoes_nothing_does_not_ask_before_an_operator_has_it_undone() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a"), failures=STAYS))
    saga.go(done("a"))
    saga.go(lost())
    assert (status_of(saga.state), saga.state.undo.in_doubt, saga.state.undo.doubts) == ("failed", ("b",), 1)
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True))
    saga.go()
    assert asked(saga) == ["b#undo"]


def test_a_step_that_was_cut_off_again_and_again_is_asked_about_and_is_not_why_the_saga_has_ended() -> None:
    saga = Saga(program(undoable("a"), undoable("b", arguments={"id": "${step.input.x}"}, keeps=("x",))))
    saga.program = program(
        undoable("a"),
        replace(undoable("b", keeps=("x",)), arguments={"x": 7}, undo=_by("${step.input.x}")),
    )
    saga.go(done("a"))
    cut_off = ev.StepInterrupted(node="b", started_at=1, ended_at=2, budget_ms=1)
    saga.put(cut_off, cut_off, cut_off, CANCEL_WITH_UNDO)
    saga.go()
    assert asked(saga) == ["b#undo"]
    say(saga, "b#undo", "use", output=None)
    assert [step.arguments for step in steps_of(saga.decision)] == [{"x": 7}]
    saga.go(done("b#undo"))
    saga.go(done("a#undo"))
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "cancelled"


def _by(argument: str) -> Any:
    return undoable("b", arguments={"x": argument}, keeps=("x",)).undo


def test_after_a_fork_a_step_that_is_done_again_is_not_asked_about_for_what_it_did_before() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a"), task("c", "b"), task("d"), failures=STAYS))
    saga.go(done("a"), running=["d"])
    saga.go(lost(), running=["d"])
    saga.put(ev.Forked(cut=3, branch=1, by="ada", at=saga.now))
    saga.go()
    saga.go(done("b"))
    assert (saga.state.undo.in_doubt, saga.state.undo.doubts) == ((), 0)
    saga.go(failed("c"))
    saga.go(done("b#undo"))
    assert (asked(saga), ready(saga.decision)) == ([], ["a#undo"])
    saga.go(done("a#undo"))
    assert report(saga) == ev.Undone(done=2)


@pytest.mark.parametrize("runs", [False, True])
def test_after_a_fork_a_step_in_doubt_that_is_not_done_again_is_asked_about_all_the_same(runs: bool) -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a"), task("d"), failures=STAYS))
    saga.go(done("a"), running=["d"])
    saga.go(lost(), running=["d"])
    saga.put(ev.Forked(cut=3, branch=1, by="ada", at=saga.now))
    if runs:
        saga.go(failed("b", "sold_out", "permanent"), running=["d"])
    saga.put(CANCEL_WITH_UNDO)
    saga.go(running=["d"])
    saga.go()
    assert (asked(saga), saga.state.undo.doubts) == (["b#undo"], 0)


def test_a_thousand_steps_in_doubt_are_counted_and_the_first_are_named() -> None:
    saga = in_doubt()
    state = saga.state
    from baton.core.log.folding.undo_folds import doubtful

    event = next(e for one in saga.entries for e in one.events if isinstance(e, ev.StepFailed))
    event = replace(event, emits=(ev.Token("b", "z"),))
    for number in range(1_000):
        state = doubtful(state, f"b@{number}", event)
    assert (state.undo.doubts, len(state.undo.in_doubt)) == (1_000, 20)
    state = saga.state
    for number in range(1_000):
        state = doubtful(state, f"b@{number}", replace(event, prior=None))
    assert (state.undo.unknown, len(state.undo.doubtful)) == (1_000, 20)


def test_side_by_side_the_others_do_not_wait_for_the_answer() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a")))
    saga.program.graph = replace(saga.program.graph, undo_together=True)
    saga.go(done("a"))
    saga.go(lost())
    assert (asked(saga), ready(saga.decision), status_of(saga.state)) == (
        ["b#undo"],
        ["a#undo"],
        "compensating",
    )


def test_a_once_only_step_without_verify_is_looked_at_and_then_asked_about() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a", effect="once")))
    saga.go(done("a"))
    saga.put(CANCEL_WITH_UNDO)
    silent = ev.Failure("timeout", "no answer", "b", doubt=True)
    saga.go(replace(failed("b"), failure=silent))
    assert [(step.slot, step.look, step.attempt) for step in steps_of(saga.decision)] == [("b", True, 2)]
    unknown = ev.Failure(UNKNOWN_OUTCOME, "the tool names no `verify`", "b")
    saga.go(replace(failed("b"), failure=unknown, attempt=2))
    assert asked(saga) == ["b#undo"]
    assert [one.to for one in saga.state.outbox.due] == ["user"], "the people on call need not be told"


def test_a_look_that_has_no_answer_either_is_not_made_for_ever() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a", effect="once")))
    saga.go(done("a"))
    saga.put(CANCEL_WITH_UNDO)
    silent = ev.Failure("timeout", "no answer", "b", doubt=True)
    saga.go(replace(failed("b"), failure=silent))
    saga.go(replace(failed("b"), failure=silent, attempt=2))
    assert asked(saga) == ["b#undo"]


def test_a_limit_that_ends_the_retries_of_a_step_without_an_answer_leaves_the_doubt() -> None:
    rules = {**AT_ONCE, "timeout": PolicyChange(ladder=("retry", "rollback"))}
    saga = Saga(program(undoable("a"), undoable("b", "a"), failures=rules))
    saga.go(done("a"))
    saga.go(failed("b", "timeout"))
    assert saga.state.failing["b"].failure.code == "timeout"
    saga.put(ev.LimitReached(failure=ev.Failure("limit_reached", "too old")))
    saga.go()
    assert asked(saga) == ["b#undo"]


def test_what_could_not_be_undone_is_set_aside_where_there_is_much_of_it_and_taken_up_in_its_order() -> None:
    loop = Loop(condition=again(), max_iterations=230, back_to="a")
    saga = Saga(program(undoable("a", loop=loop, loops=("a",)), task("z", "a")))
    for number in range(230):
        saga.go(done(f"a@{number}"))
    saga.go(failed("z"))
    for number in reversed(range(230)):
        assert ready(saga.decision) == [f"a@{number}#undo"]
        saga.go(failed(f"a@{number}#undo", "gone", "permanent"))
        saga.note_told()
        assert len(saga.state.undo.failed) <= 120
    assert (report(saga).fails, len(report(saga).failed), saga.state.undo.set_aside) == (230, 20, 200)
    assert {saga.state.undo.generation(f"a@{number}") for number in range(230)} == {0}, "each keeps its key"
    assert len(encode_state(saga.state)) < 40_000
    shown = as_json(undo_view(saga.state, saga.program))
    assert shown is not None
    assert len(shown["failed"]) + shown["more_failed"] == 230
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True))
    saga.go()
    for number in reversed(range(230)):
        assert ready(saga.decision) == [f"a@{number}#undo"]
        saga.go(done(f"a@{number}#undo"))
    assert (report(saga), status_of(saga.state)) == (ev.Undone(done=230), "rolled_back")
    assert saga.state.undo.set_aside == 0
    assert {saga.state.undo.generation(f"a@{number}") for number in range(230)} == {1}


def test_a_step_that_an_earlier_version_has_passed_is_in_doubt_no_more() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a"), failures=STAYS))
    saga.go(done("a"))
    saga.go(lost())
    undo = replace(saga.state.undo, work=Undoing(reason=""))
    state = replace(saga.state, undo=undo)
    assert (undo.unsure, undo.head) == ({"b": 3}, 3)
    for version, left in ((3, ({}, 0)), (2, ({"b": 3}, 1))):
        at = replace(state, undo=replace(undo, head=version))
        after = apply(at, ev.UndoPassed(node="b", version=version, next=0, redone=True)).undo
        assert (after.unsure, after.doubts) == left


def test_a_call_without_an_inverse_that_a_step_has_left_is_named_after_a_fork_too() -> None:
    undo = Undoable(doubtful=("a", "b"), ways=(("a", "first", 2),))
    assert forks._undoable(Undoable(), undo, {"a", "b"}).doubtful == ("a",)


def test_a_step_in_doubt_that_a_fork_has_run_again_and_that_was_cut_off_is_called_once_more() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a"), task("d"), failures=STAYS))
    saga.go(done("a"), running=["d"])
    saga.go(lost(), running=["d"])
    saga.put(ev.Forked(cut=3, branch=1, by="ada", at=saga.now))
    saga.go(running=["d"])
    saga.put(ev.StepInterrupted(node="b", started_at=1, ended_at=2, budget_ms=1), CANCEL_WITH_UNDO)
    saga.go()
    assert ready(saga.decision) == ["b"]
    saga.go(done("b"))
    assert (ready(saga.decision), saga.state.undo.doubts) == (["b#undo"], 0)
