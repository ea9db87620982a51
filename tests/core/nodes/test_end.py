"""An `end` node completes the saga at once, with its result; what still runs is stopped."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.decision import StopSteps
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.state import UNKNOWN_OUTCOME, status_of
from baton.core.nodes.registry import KINDS
from baton.core.read.story import read_story
from tests.core.asked import children_of, needs_of
from tests.core.build import Saga, child, done, failed, interrupted, program, ready, task, wait
from tests.core.compiling import TOOLS, compiled, document, reads, told
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain


def saga_of(nodes: str, given: object = None, *more: str, **started: Any) -> Saga:
    text = document(nodes, *more)
    return Saga(Program(compile_document(text, TOOLS), KINDS), given, **started)


def end(name: str, *before: str, value: Any = None) -> Node:
    return Node(name=name, kind="end", before=before, value=value)


def result_of(saga: Saga) -> Any:
    assert saga.state.ended is not None
    assert (saga.state.ended.status, saga.state.ended.failure) == ("completed", None)
    return saga.state.ended.output.v


# ---- what it does


def test_the_saga_completes_at_once_with_the_result_in_the_entry_of_the_step_before() -> None:
    saga = saga_of("a: {}, found: {end: {result: {table: '${ctx.a.output.score}'}}, after: a}, z: {after: a}")
    saga.go()
    saga.go(done("a", {"score": 4}))
    assert saga.kinds == ["step_succeeded", "node_passed", "saga_ended"]
    assert result_of(saga) == {"table": 4}
    assert saga.state.result is None, "what is over is not kept"


def test_what_follows_from_the_same_value_as_an_end_does_not_begin_before_it() -> None:
    """Whatever the order in which their edges became alive; so the reader needs no `?`."""
    saga = saga_of(
        "s1: {}, s2: {}, q: {branch: {rules: [{if: output.score > 1, then: x}], default: w}}, w: {}, r: {}, "
        "p: {after: [s1, s2], value: {bad: true}, branch: {rules: [{if: output.bad, then: stop}], default: x}}, "
        "x: {after: [q, p]}, z: {after: [x, r], with: {x: '${ctx.x.output}'}}, stop: {end: {}}"
    )
    saga.go()
    for one in (done("s1"), done("q", {"score": 0}), done("r"), done("w")):
        saga.go(one)
    saga.go(done("s2"))
    assert saga.kinds == ["step_succeeded", "node_passed", "node_passed", "saga_ended"]
    assert result_of(saga) is None


@pytest.mark.parametrize("last", ["no", "zz"])
def test_what_is_ready_with_an_end_of_several_edges_does_not_begin_before_it(last: str) -> None:
    """The last of its edges to speak may be one that is not alive."""
    saga = saga_of(
        f"a: {{branch: {{rules: [{{if: output.score > 1, then: b}}], default: {last}}}}}, b: {{catch: {last}}},"
        f" o: {{after: [a, b], with: {{x: '${{ctx.b.output}}'}}}}, {last}: {{end: {{}}}}"
    )
    saga.go()
    saga.go(done("a", {"score": 0}))
    assert saga.kinds == ["step_succeeded", "node_skipped", "node_passed", "saga_ended"]


def test_without_a_result_it_is_null() -> None:
    saga = saga_of("stop: {end: {}}", None, "output: 1")
    saga.go()
    assert result_of(saga) is None


def test_a_graph_without_an_end_that_is_reached_has_its_output() -> None:
    saga = saga_of("stop: {end: {result: 1}, when: input.no}", {"no": False}, "output: 2")
    saga.go()
    assert result_of(saga) == 2


def test_what_still_runs_is_stopped_and_its_costs_are_counted() -> None:
    saga = saga_of("a: {}, b: {}, stop: {end: {result: early}, after: a}")
    saga.go()
    decision = saga.go(done("a"), running=["b"])
    assert saga.kinds == ["step_succeeded", "node_passed"]
    assert decision.of(StopSteps) == StopSteps()
    assert (status_of(saga.state), saga.state.is_stopping) == ("running", True)
    saga.go(replace(interrupted("b"), cost=7))
    assert saga.kinds == ["step_interrupted", "saga_ended"]
    assert (result_of(saga), saga.state.money.spent) == ("early", 7)


def test_what_runs_and_ends_or_fails_in_the_last_moment_changes_nothing() -> None:
    for outcome in (done("b", {"score": 1}), failed("b")):
        saga = saga_of(
            "a: {}, b: {on_failure: ask_user}, c: {after: b}, stop: {end: {result: early}, after: a}"
        )
        saga.go()
        saga.go(done("a"), running=["b"])
        assert ready(saga.go(outcome)) == []
        assert result_of(saga) == "early"


def test_waits_and_questions_are_dropped_and_children_are_stopped_and_waited_for() -> None:
    saga = Saga(program(wait("w", signal="s"), child("c"), task("a"), end("stop", "a", value=3)))
    saga.go()
    decision = saga.go(done("a"))
    assert [slot for slot, _ in children_of(decision)] == ["c"]
    assert saga.kinds == ["saga_ended"], "what it had done is known from its end"
    assert result_of(saga) == 3
    assert (saga.state.open, saga.state.tokens) == ({}, {})


def test_a_question_about_another_step_is_dropped() -> None:
    saga = saga_of("a: {}, b: {on_failure: ask_user}, stop: {end: {result: 1}, after: a}")
    saga.go()
    saga.go(failed("b"), running=["a"])
    saga.tell()
    assert saga.state.failing["b"].ask is not None
    saga.go(done("a"))
    assert (result_of(saga), saga.state.failing) == (1, {})


def test_of_two_ends_in_one_instant_one_wins_and_the_log_says_which() -> None:
    saga = saga_of("a: {}, one: {end: {result: 1}, after: a}, two: {end: {result: 2}, after: a}")
    saga.go()
    saga.go(done("a"))
    passed = [event for event in saga.entries[-1].events if isinstance(event, ev.NodePassed)]
    assert [event.node for event in passed] == ["one"]
    assert result_of(saga) == 1


def test_of_a_fail_and_an_end_in_one_instant_one_wins() -> None:
    nodes = "a: {}, %s: {end: {result: 1}, after: a}, %s: {fail: {code: odd, message: m}, after: a}"
    for names, status in ((("one", "two"), "completed"), (("two", "one"), "failed")):
        saga = saga_of(nodes % names)
        saga.go()
        saga.go(done("a"))
        assert saga.state.ended is not None
        assert saga.state.ended.status == status
        assert len(saga.entries[-1].events) == 3


def test_an_end_is_not_read_twice_and_not_after_a_failure() -> None:
    saga = saga_of("a: {}, one: {end: {result: 1}, after: a}, two: {end: {result: 2}, after: a}, b: {}")
    saga.go()
    saga.go(done("a"), running=["b"])
    again = ev.NodePassed(node="two", output=ev.Value(v=2), ends=True)
    assert apply(saga.state, again) == saga.state
    assert apply(saga.state, replace(again, node="none")) == saga.state


def test_a_cancel_that_comes_after_the_end_was_written_does_not_undo_it() -> None:
    saga = saga_of("a: {}, b: {}, stop: {end: {result: 1}, after: a}")
    saga.go()
    saga.go(done("a"), running=["b"])
    saga.cancel(grace_ms=60_000)
    assert saga.go(running=["b"]).of(StopSteps) == StopSteps()
    saga.go()
    assert result_of(saga) == 1


def test_a_worker_that_dies_between_the_end_and_the_end_of_the_saga_loses_nothing() -> None:
    saga = saga_of("a: {}, b: {}, stop: {end: {result: 1}, after: a}")
    saga.go()
    saga.go(done("a"), running=["b"])
    saga.die()
    saga.go()
    assert result_of(saga) == 1


def test_of_an_effect_in_doubt_on_call_is_told_before_it_ends() -> None:
    once = ToolSpec(name="pay", version="1", effect="once", parameters={"type": "object"}, result={})
    text = document("a: {}, b: {tool: pay}, stop: {end: {result: 1}, after: a}")
    saga = Saga(Program(compile_document(text, {**TOOLS, "pay": once}), KINDS))
    saga.go()
    saga.go(done("a"), running=["b"])
    decision = saga.go(interrupted("b"))
    assert saga.kinds == ["step_interrupted", "notice_due"]
    assert [notice.code for notice in saga.state.outbox.due] == [UNKNOWN_OUTCOME]
    assert decision.due is not None, "it waits for the notice, as a saga that fails does"
    saga.tell()
    assert result_of(saga) == 1


def test_an_end_that_a_loop_is_left_for_completes_the_saga() -> None:
    saga = saga_of(
        "a: {branch: {rules: [{if: output.score > 0, then: good}], default: t}},"
        " t: {loop: {AGAIN, back_to: a, max_iterations: 9}, after: a},"
        " good: {end: {result: '${ctx.a.output.score}'}}"
    )
    saga.go()
    saga.go(done("a@0", {"score": 0}))
    saga.go(done("t@0", {"score": 0}))
    saga.go(done("a@1", {"score": 7}))
    assert result_of(saga) == 7


def test_a_fork_to_before_or_behind_it_begins_with_it_again() -> None:
    saga = saga_of("a: {}, b: {}, stop: {end: {result: 1}, after: a}")
    saga.go()
    saga.go(done("a"), running=["b"])
    cut = saga.state.version
    saga.go()
    assert result_of(saga) == 1
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    assert (saga.state.result, saga.state.ended) == (None, None)
    assert "stop" in saga.state.tokens
    saga.go()
    assert result_of(saga) == 1


def test_a_result_that_cannot_be_made_fails_the_saga() -> None:
    saga = saga_of("stop: {end: {result: '${input.who.name}'}}", {"who": {}})
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "input_unbound"


def test_a_result_that_is_against_its_schema_fails_the_saga() -> None:
    saga = saga_of("stop: {end: {result: '${input}'}, output_schema: {type: object}}", 3)
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "output_invalid"


def test_nothing_else_begins_while_a_value_of_the_result_is_fetched() -> None:
    saga = saga_of(
        "a: {branch: {rules: [{if: input.early, then: stop}], default: b}}, b: {}, c: {},"
        " stop: {end: {result: '${ctx.c.output.x}'}, after: []}, j: {after: [b, c], value: '${ctx.b.output.score}'}".replace(
            "${ctx.c.output.x}", "${input.text}"
        ),
        ev.Value(ref="cas://sha256/x", size=9),
    )
    saga.go(blobs={"cas://sha256/x": {"early": True}})
    decision = saga.go(done("c"), done("a"), blobs={})
    assert needs_of(decision) == {"cas://sha256/x"}
    saga.go(done("c"), done("a"), blobs={"cas://sha256/x": {"early": True, "text": "so"}})
    assert result_of(saga) == "so"


def test_what_did_not_run_is_explained_by_the_end(says: Says) -> None:
    saga = saga_of("a: {}, b: {}, c: {after: b}, stop: {end: {result: 1}, after: a}")
    saga.go()
    saga.go(done("a"), running=["b"])
    saga.go()
    story = read_story(saga.program, saga.state, saga.entries)
    (found,) = as_json(explain(story, "c", 1_000_000))["iterations"]
    says(found["text"])
    says([cause["text"] for cause in found["causes"]])
    (stop,) = as_json(explain(story, "stop", 1_000_000))["iterations"]
    assert stop["state"] == "passed"
    says(stop["text"])


# ---- how it is written


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("{end: {result: 1}, catch: z}", "/nodes/e"),
        ("{end: early}", "/nodes/e/end"),
        ("{end: true}", "/nodes/e/end"),
        ("{end: {output: 1}}", "/nodes/e/end/output"),
        ("{end: {result: '${ctx.q.output}'}}", "/nodes/e/end/result"),
    ],
)
def test_what_is_wrong_with_it_is_told(written: str, path: str, says: Says) -> None:
    found = told(f"e: {written}, z: {{}}")
    assert found[0][0] == path
    says(found[0][1:])


def test_nothing_comes_after_it() -> None:
    assert [one[0] for one in told("e: {end: {}}, z: {after: e}")] == ["/nodes/z/after"]


def test_the_output_may_count_on_what_only_an_early_end_is_without() -> None:
    nodes = "a: {branch: {rules: [{if: output.score > 0, then: e}], default: b}}, b: {}, e: {end: {}}"
    assert reads("", "b", nodes)


def test_an_end_reads_only_what_it_has_itself_waited_for() -> None:
    nodes = "a: {}, q: {after: a, when: input.x}, z: {catch: e}, e: {end: {}, after: a}, f: {end: {}, after: [a, q], join: any}"
    for reader, name in (("e", "q"), ("e", "z"), ("f", "q")):
        assert told(
            nodes.replace(f"{reader}: {{end: {{}}", f"{reader}: {{end: {{result: '${{ctx.{name}.output}}'}}")
        )
    assert not told(nodes.replace("f: {end: {}", "f: {end: {result: '${ctx.a.output}'}"))


def test_an_end_that_waits_for_others_may_come_too_late_to_be_counted_on() -> None:
    nodes = (
        "a: {branch: {rules: [{if: output.score > 0, then: e}], default: b}}, b: {}, c: {}, slow: {},"
        " e: {end: {}, after: slow%s}, j: {after: [b, c]}"
    )
    assert not reads("j", "b", nodes % "")
    assert reads("j", "b", nodes % ", join: any")


def test_a_graph_whose_every_way_ends_in_an_end_needs_no_output() -> None:
    (node,) = compiled("e: {end: {result: {x: 1}}}").nodes
    assert node == Node(name="e", kind="end", value={"x": 1})


def test_its_result_is_shown_wherever_it_is_drawn() -> None:
    assert KINDS["end"].node_view(end("e", value={"x": 1})) == {"value": {"x": 1}}
