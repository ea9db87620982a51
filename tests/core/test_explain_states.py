"""What is not over, what has stopped, forks, strange logs, and answers that are long."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.nodes.registry import KINDS
from baton.core.read.explain import MOST_CAUSES
from baton.errors import NotFound
from tests.core.build import T0, TOOLS, Saga, chain, done, failed, program, task
from tests.core.told import BRANCH, ROOM, of, steps, story, whole, why
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain, way

# ---- what is not over


WAITS = """
time: {wait: {for: 1h}}
signal: {wait: {signal: go}}
both: {wait: {signal: yes, timeout: 2h}}
kid: {workflow: other, with: {}}
j: {tool: t, after: [time, signal, both, kid]}
"""


def test_what_a_node_waits_for_is_told_with_what_each_of_them_is_doing(says: Says) -> None:
    saga = of(WAITS)
    (found,) = whole(saga, "j")
    assert found["state"] == "unreached"
    says(found["text"])
    assert [one["state"] for one in found["waits_for"]] == ["waiting", "child", "waiting", "waiting"]
    assert [edge["alive"] for edge in found["edges"]] == [None] * 4
    says(whole(saga, "signal")[0]["text"])
    saga.signal("go")
    saga.go(after_ms=3_600_000)
    says(why(saga, "signal"))
    says(why(saga, "time"))


def test_a_saga_that_was_cancelled_says_where_everything_stood(says: Says) -> None:
    saga = of(
        "w: {wait: {signal: go}}\na: {tool: t}\nb: {tool: t}\nj: {tool: t, after: [a, w]}\nk: {tool: t, after: j}"
    )
    saga.go(done("a"))
    saga.cancel()
    says(why(saga, "w"))
    says(why(saga, "b"))
    says(why(saga, "j"))
    says(why(saga, "k"))
    saga.cancel()
    saga.go()
    (found,) = whole(saga, "k")
    assert [(cause["node"], cause["version"]) for cause in found["causes"]] == [("", 4)]
    says(as_json(way(story(saga), 0, 10, ROOM))["end"])


def test_a_saga_that_failed_says_which_node_failed_first(says: Says) -> None:
    saga = of("a: {tool: t}\nb: {tool: t}\nc: {tool: t, after: a}")
    saga.go(failed("a"), failed("b"))
    says(why(saga, "c"))
    says(why(saga, "a"))


def test_a_saga_that_came_to_a_limit_or_could_not_end(says: Says) -> None:
    saga = Saga(chain(2))
    saga.put(ev.LimitReached(failure=ev.Failure("limit_hops", "")))
    says(why(saga, "n1"))
    saga = Saga(chain(2))
    saga.put(ev.SagaEnded(status="failed", failure=ev.Failure("output_unbound", "no")))
    says(why(saga, "n1"))


def test_a_parked_saga_says_so_until_it_is_resumed(says: Says) -> None:
    saga = Saga(chain(1))
    saga.put(ev.Parked(code="over_budget", message="too slow"))
    says(why(saga, "n0"))
    saga.put(ev.Parked(code=ev.PAUSED, message="the shop moves", at=T0, by="ada"))
    says(why(saga, "n0"))
    saga.put(ev.Resumed(by="ada", at=T0))
    says(why(saga, "n0"))


def test_what_has_limits_may_be_held_by_them(says: Says) -> None:
    document = "name: w\nlimits: {hops: {max: 9, then: throttle}}\nnodes: {a: {tool: t}}"
    saga = Saga(Program(compile_document(document, TOOLS), KINDS))
    says(why(saga, "a"))


def test_a_reason_may_be_left_out_of_a_cancel(says: Says) -> None:
    saga = Saga(chain(2))
    saga.put(ev.CancelRequested(reason="", by="ada", at=T0, grace_ms=0))
    says(why(saga, "n1"))


# ---- forks


def test_a_fork_begins_again_where_the_saga_had_failed(says: Says) -> None:
    saga = of("a: {tool: t}\nb: {tool: t}\nc: {tool: t, after: [a, b]}\nd: {tool: t}")
    saga.go(done("b"))
    saga.go(failed("a"), running=["d"])
    saga.put(ev.Forked(cut=3, branch=1, by="ada", at=T0), epoch=0, invocation="api")
    says(why(saga, "a"))
    saga.go(done("a"))
    told = story(saga)
    assert [step["version"] for step in as_json(way(told, 0, 9, ROOM))["steps"]] == [2, 5]
    assert told.version == 5


def test_a_fork_gives_a_failed_step_and_a_cancelled_saga_another_try(says: Says) -> None:
    saga = of(
        "a: {tool: t}\nb: {tool: t}\nj: {tool: t, after: [a, b], join: {wait_for: all, tolerated_failures: 1}}\nc: {tool: t}"
    )
    saga.go(failed("b"), running=["a", "c"])
    saga.go(failed("c"), running=["a"])
    saga.cancel()
    assert story(saga).failed is not None
    saga.put(ev.Forked(cut=4, branch=1, by="ada", at=T0), epoch=0, invocation="api")
    saga.go(done("a"))
    says(why(saga, "c"))
    says(why(saga, "b"))


def test_a_fork_lets_a_node_run_again_that_could_not_tell_where_to_go_on() -> None:
    saga = of("a: {tool: t, branch: {rules: [{if: 'output.n > 3', then: c}]}}\nb: {tool: t}\nc: {tool: t}")
    saga.go(done("a", {}), running=["b"])
    saga.go(done("b"))
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=T0), epoch=0)
    saga.go(done("a", {"n": 5}), done("b"))
    saga.go(done("c"))
    assert saga.state.ended is not None
    told = as_json(way(story(saga), 0, 9, ROOM))["steps"]
    assert [(step["node"], step["version"]) for step in told] == [("a", 5), ("b", 5), ("c", 6)]


def test_a_child_that_a_fork_left_behind_is_to_be_opened_again(says: Says) -> None:
    saga = of("kid: {workflow: other, with: {}}\na: {tool: t}")
    saga.go(failed("a"), running=["kid"])
    cut = 2
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=T0), epoch=0, invocation="api")
    says(why(saga, "kid"))
    saga.go()
    saga.go()
    says(why(saga, "kid"))


# ---- logs that this version would not write


def consumed(node: str, **more: Any) -> ev.NodeSkipped:
    return ev.NodeSkipped(node=node, **more)


def test_words_of_the_way_that_are_not_known_are_told_as_they_are() -> None:
    for word in ("sideways", "rule 9", "again", "timeout", "default", "chosen"):
        saga = Saga(program(task("a"), task("b", "a")))
        saga.put(ev.NodePassed(node="a", way=word, emits=(ev.Token("a", "b"),), output=ev.Value()))
        assert steps(saga)[0] == ("a", "passed", f"{word}: to `b`")


def test_what_was_settled_is_not_settled_again() -> None:
    saga = Saga(program(task("a"), task("b", "a")))
    saga.put(consumed("a"), ev.NodePassed(node="a", output=ev.Value()))
    assert [became for _, became, _ in steps(saga)] == ["skipped"]


def test_a_node_that_nothing_says_was_skipped_by_anything(says: Says) -> None:
    saga = Saga(program(task("a"), task("b")))
    saga.put(consumed("a"), consumed("b", why="join a"))
    assert why(saga, "a") == "`a` did not run"
    says(why(saga, "b"))
    assert steps(saga)[0] == ("a", "skipped", "")


def test_a_node_whose_when_is_not_in_the_graph(says: Says) -> None:
    saga = Saga(chain(1))
    saga.put(consumed("n0", why="when"))
    says(why(saga, "n0"))


def test_what_was_dropped_after_its_end_keeps_it() -> None:
    saga = Saga(program(task("a"), task("b")))
    saga.put(consumed("a"), consumed("b", drops=("a",)))
    assert [became for _, became, _ in steps(saga)] == ["skipped", "skipped"]


def test_what_is_about_to_be_skipped(says: Says) -> None:
    saga = Saga(chain(2), dead=["n0"])
    says(why(saga, "n0"))


# ---- pages and room


def test_the_way_comes_in_pages_that_end_with_an_entry() -> None:
    saga = Saga(chain(5))
    for number in range(5):
        saga.go(done(f"n{number}"))
    told, found, after = story(saga), [], 0
    while True:
        page = as_json(way(told, after, 2, ROOM))
        found.append([step["node"] for step in page["steps"]])
        if page["next"] is None:
            break
        assert (page["open"], page["end"]) == ([], None)
        after = page["next"]
    assert found == [["n0", "n1"], ["n2", "n3"], ["n4"]]
    assert [
        len(as_json(way(told, 0, 9, 10))["steps"]),
        as_json(way(told, 5, 9, ROOM))["steps"][0]["node"],
    ] == [1, "n4"]


def test_what_one_entry_settled_is_on_one_page() -> None:
    saga = of(BRANCH)
    saga.go(done("ask", {"n": 7}))
    assert len(as_json(way(story(saga), 0, 1, ROOM))["steps"]) == 4


def test_of_many_rounds_the_last_are_shown_as_far_as_there_is_room() -> None:
    saga = of('a: {tool: t, loop: {while: "output.more", back_to: a}}')
    for number in range(9):
        saga.go(done(f"a@{number}", {"more": True}))
    found = as_json(explain(story(saga), "a", 2_000))
    assert found["left_out"] + len(found["iterations"]) == 10
    assert 1 < len(found["iterations"]) < 9
    assert found["iterations"][-1]["iteration"] == [9]
    assert len(as_json(explain(story(saga), "a", 1))["iterations"]) == 1


def test_a_long_way_to_a_cause_is_shown_by_its_beginning_and_its_end(says: Says) -> None:
    nodes = [task("n0"), *(task(f"n{n}", f"n{n - 1}") for n in range(1, 40))]
    saga = Saga(program(*nodes), dead=["n0"])
    saga.go()
    (found,) = whole(saga, "n39")
    assert (len(found["causes"]), found["causes_left_out"]) == (MOST_CAUSES, 20)
    says(found["causes"][-1]["text"])
    says(found["text"])


@pytest.mark.parametrize("count", [2, 7])
def test_of_several_edges_whose_causes_are_as_near_each_is_told(count: int, says: Says) -> None:
    rule = '{tool: t, branch: {rules: [{if: "output > 1", then: z}]}}'
    names = [f"a{number}" for number in range(count)]
    saga = of("\n".join(f"{name}: {rule}" for name in names) + "\nz: {tool: t}")
    saga.go(*(done(name, 1) for name in names))
    told = why(saga, "z").removeprefix("`z` did not run, because ").split("; and because ")
    says(told)


def test_the_nearest_cause_is_the_one_that_is_told(says: Says) -> None:
    nodes = """
a: {tool: t, when: "input.go"}
b: {tool: t, after: a}
x: {tool: t, when: "input.go"}
j: {tool: t, after: [b, x, a]}
k: {tool: t, after: [j, b]}
"""
    saga = of(nodes, {"go": False})
    says(why(saga, "j"))
    says(why(saga, "k"))


def test_a_node_that_is_not_there_is_refused_with_the_nearest_name(says: Says) -> None:
    saga = of(BRANCH)
    with says.raised(NotFound):
        as_json(explain(story(saga), "lwo", ROOM))
    with pytest.raises(NotFound, match=r"no node `zzzzzz`$"):
        as_json(explain(story(saga), "zzzzzz", ROOM))
