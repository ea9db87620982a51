"""A step goes on with other arguments although a call with the ones before may have acted: that is another call, and each of them counts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.outcomes import APPROVAL, Outcome
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ApprovalRequest, ToolSpec
from baton.core.log import events as ev
from baton.core.log.state import UNKNOWN_OUTCOME
from baton.core.nodes.registry import KINDS
from baton.core.read.views import entry_view
from baton.words.event_words import of as words_of
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, tool_spec
from tests.core.test_other_ways import ended, stops
from tests.core.told import story
from tests.core.undo_asking import asked, say
from tests.kit.sentences import Says

SEAT = {"type": "integer"}


def spec(name: str, effect: str = "idempotent") -> ToolSpec:
    return replace(tool_spec(name, n=SEAT), effect=effect, undo="back")


TOOLS = {
    "t": tool_spec("t"),
    "back": tool_spec("back", n=SEAT),
    "hold": spec("hold"),
    "pay": spec("pay", "once"),
}
DOCUMENT = """
name: w
on_failure: [rollback]
nodes:
  a:
    tool: hold
    with: {n: 1}
    MORE
  b: {tool: t, after: a}
"""
FAILOVER = """failover:
      - {name: p, when: {code: odd}, then: {with: {n: 2}}}
      - {name: q, when: {code: even}, then: {with: {n: 3}}}
"""
ASKS = "on_failure: {any: {ladder: [ask_user], may_change: [n]}}"


def begun(more: str = FAILOVER) -> Saga:
    saga = Saga(Program(compile_document(DOCUMENT.replace("MORE", more), TOOLS), KINDS))
    saga.go()
    return saga


def lost(code: str, n: int, attempt: int = 1) -> Outcome:
    told = failed("a", code, "transient")
    assert told.failure is not None
    failure = replace(told.failure, status=503)
    return replace(
        told, tool="hold", attempt=attempt, failure=failure, kept=ev.Value(v={"n": n}), key=f"k{n}"
    )


def refused(code: str, attempt: int = 1) -> Outcome:
    return replace(failed("a", code, "permanent"), tool="hold", attempt=attempt)


def test_other_arguments_make_another_call_and_both_are_asked_about(says: Says) -> None:
    saga = begun()
    saga.go(lost("odd", 1))
    [stop] = stops(saga)
    assert (stop.tool, stop.instead, stop.kept, stop.key) == ("hold", "hold", ev.Value(v={"n": 1}), "k1")
    [notice] = [one for one in saga.state.outbox.due if one.to == "on_call"]
    says(notice.message)
    saga.go(lost("unheard_of", 2, 2))
    assert asked(saga) == ["a#undo"]
    say(saga, "a#undo", "retry")
    assert asked(saga) == ["a#undo_2"]
    say(saga, "a#undo_2", "use", output={})
    [step] = steps_of(saga.go())
    assert step.arguments == {"n": 1}
    saga.go(done("a#undo_2"))
    assert ended(saga).status == "rolled_back"


def test_a_refusal_of_the_second_call_says_nothing_of_the_first() -> None:
    saga = begun()
    saga.go(lost("odd", 1))
    saga.go(refused("closed", 2))
    assert asked(saga) == ["a#undo_2"]


def test_the_same_arguments_make_the_same_call() -> None:
    saga = begun(
        FAILOVER.replace(
            "failover:", "failover:\n      - {name: o, at_most: 2, when: {code: again}, then: {with: {n: 2}}}"
        )
    )
    saga.go(refused("again"))
    saga.go(lost("again", 2, 2))
    assert stops(saga) == []


def test_arguments_that_a_person_changes_make_another_call() -> None:
    saga = begun(ASKS)
    saga.go(lost("closed", 1))
    say(saga, "a", "retry", arguments={"n": 2})
    assert [stop.kept for stop in stops(saga)] == [ev.Value(v={"n": 1})]
    [step] = steps_of(saga.decision)
    assert step.arguments == {"n": 2}
    saga = begun(ASKS)
    saga.go(lost("closed", 1))
    say(saga, "a", "retry")
    assert stops(saga) == []


def test_of_an_unknown_outcome_a_person_says_that_it_has_not_happened() -> None:
    saga = begun(
        "on_failure: {any: {ladder: [ask_user], may_change: [n]}, unknown_outcome: {may_change: [n]}}"
    )
    saga.go(refused(UNKNOWN_OUTCOME))
    say(saga, "a", "retry", arguments={"n": 2})
    assert stops(saga) == []


@pytest.mark.parametrize(("is_lost", "slots"), [(True, ["a#undo"]), (False, [])])
def test_an_output_that_a_person_gives_undoes_nothing_of_what_may_have_happened(
    is_lost: bool, slots: list[str]
) -> None:
    saga = begun(ASKS)
    saga.go(lost("closed", 1) if is_lost else refused("closed"))
    say(saga, "a", "use", output={"by": "hand"})
    assert [stop.instead for stop in stops(saga)] == [""] * is_lost
    saga.go(failed("b"))
    assert asked(saga) == slots


def approval(saga: Saga, n: int, says: bool) -> Outcome:
    request = ApprovalRequest(
        tool="hold", arguments={"n": n}, digest=f"{n}" * 64, level="high", why="always", is_changed=says
    )
    return Outcome(slot="a", attempt=2, started_at=saga.now, ended_at=saga.now, why=APPROVAL, request=request)


@pytest.mark.parametrize("is_changed", [True, False])
def test_arguments_that_are_approved_after_a_lost_answer_make_another_call(is_changed: bool) -> None:
    saga = begun("on_failure: {any: {ladder: [retry, rollback]}}")
    saga.go(lost("service_unavailable", 1))
    saga.go(approval(saga, 2, is_changed), after_ms=60_000)
    say(saga, "a", "approve")
    assert [stop.kept for stop in stops(saga)] == [ev.Value(v={"n": 1})] * is_changed


def test_a_question_that_cannot_be_asked_does_not_hide_what_may_have_happened() -> None:
    saga = begun(
        "on_failure: {any: {ladder: [retry, rollback]}}\n    requires_approval: {title: '${input.nothing}'}"
    )
    saga.go(lost("service_unavailable", 1))
    saga.go(approval(saga, 1, False), after_ms=60_000)
    assert asked(saga) == ["a#undo"]


def test_a_call_that_has_failed_and_has_acted_all_the_same_counts() -> None:
    saga = begun()
    saga.go(replace(refused("closed"), acted=True, kept=ev.Value(v={"n": 1}), key="k1"))
    assert asked(saga) == ["a#undo"]
    saga = begun()
    saga.go(replace(refused("even"), acted=True, kept=ev.Value(v={"n": 1}), key="k1"))
    assert [(stop.kept, stop.key) for stop in stops(saga)] == [(ev.Value(v={"n": 1}), "k1")]


def test_what_is_shown_of_it_says_that_it_is_another_call(says: Says) -> None:
    saga = begun()
    saga.go(lost("odd", 1))
    [entry] = [one for one in saga.entries if any(isinstance(event, ev.StepStopped) for event in one.events)]
    [shown] = [one for one in entry_view(entry)["events"] if one["kind"] == "step_stopped"]
    said = words_of(shown)
    assert said is not None
    says(said[0])
    saga.go(replace(done("a", {}), attempt=2))
    says(story(saga).places["a"].fate)
    saga.go(failed("b"))
    saga.go(done("a#undo"))
    says(saga.state.failing["a#undo_2"].failure.message)
