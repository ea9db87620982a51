"""Why a node ran or did not: loops, their rounds, and how they were left."""

from __future__ import annotations

from tests.core.build import Saga, done, failed
from tests.core.told import of, steps, whole, why

# ---- loops


LOOP = """
head: {tool: t}
work: {tool: t, after: head}
tail: {tool: t, after: work, loop: {while: "output.more", max_iterations: 3, back_to: head, break_path: good, timeout_path: late}}
good: {tool: t}
late: {tool: t}
"""


def turn(saga: Saga, number: int, more: bool) -> None:
    for name in ("head", "work"):
        saga.go(done(f"{name}@{number}"))
    saga.go(done(f"tail@{number}", {"more": more}))


def test_a_loop_is_told_round_by_round_and_how_it_was_left() -> None:
    saga = of(LOOP)
    turn(saga, 0, more=True)
    turn(saga, 1, more=False)
    told = {slot: text for slot, _, text in steps(saga)}
    assert told["tail@0"] == "round 1 begins: to `head`"
    assert told["tail@1"] == "it left the loop after 2 rounds: to `good`, not to `late`"
    assert [one["iteration"] for one in whole(saga, "work")] == [[0], [1]]
    assert why(saga, "head@1") == "`head@1` ran, reached from `tail@0` (round 1 begins); then to `work`"
    assert why(saga, "late") == (
        "`late` did not run, because `tail@1` went another way: it left the loop after 2 rounds: to `good`, not to `late`"
    )
    (edge,) = whole(saga, "head")[1]["edges"]
    assert (edge["from"], edge["alive"]) == ("tail", True)


def test_a_loop_whose_rounds_are_used_up() -> None:
    saga = of(LOOP)
    for number in range(3):
        turn(saga, number, more=True)
    assert steps(saga)[-2][2] == (
        "it left the loop after 3 rounds, the most there may be, by its timeout_path: to `late`, not to `good`"
    )


LEAVES = """
head: {tool: t}
check: {tool: t, after: head, branch: {rules: [{if: "output.stop", then: out}], default: work}}
other: {tool: t, after: head}
work: {tool: t}
deep: {tool: t, after: work}
tail: {tool: t, after: [deep, other], join: any, loop: {while: "output.more", back_to: head}}
out: {tool: t}
end: {tool: t, after: tail}
"""


def test_a_loop_that_a_branch_leaves_takes_what_is_left_of_its_round_with_it() -> None:
    saga = of(LEAVES)
    saga.go(done("head@0"))
    saga.go(done("check@0", {"stop": True}))
    left = "rule 1 of its branch, `output.stop`; it leaves the loop that ends with `tail`: to `out`"
    assert ("other@0", "dropped", f"its round ended before its turn, with `check@0`: {left}") in steps(saga)
    (found,) = whole(saga, "deep")
    assert (found["state"], found["iteration"]) == ("unreached", [0])
    assert found["text"] == (
        f"`deep@0` did not run, because its round ended before its turn, with `check@0`: {left}"
    )
    assert why(saga, "end") == (
        f"`end` did not run, because the loop around `tail` ended with `check@0`: {left}"
    )


def test_the_next_round_leaves_behind_what_had_not_come() -> None:
    saga = of(LEAVES)
    saga.go(done("head@0"))
    saga.go(done("check@0", {"stop": False}))
    saga.go(done("other@0"))
    assert "the join `tail@0` has fired without it" in why(saga, "work@0")
    saga.go(done("tail@0", {"more": True}))
    assert why(saga, "other@1") == (
        "`other@1` is not reached yet; `head@1` is ready: it runs, or will as soon as there is room"
    )
    assert why(saga, "end").startswith("`end` is not reached yet; `head@1` is ready")


def test_a_join_that_begins_a_loop_is_heard_from_outside_of_it() -> None:
    nodes = """
a: {tool: t}
b: {tool: t}
j: {tool: t, after: [a, b], join: any, loop: {while: "output.more", back_to: j}}
"""
    saga = of(nodes)
    saga.go(done("a"))
    assert (
        why(saga, "b")
        == "`b` did not run, or was stopped, because the join `j@0` has fired without it, with `a`"
    )


SKIPS = """
head: {tool: t}
slow: {tool: t, after: head}
quick: {tool: t, after: head}
far: {tool: t, after: slow}
tail: {tool: t, after: [far, quick], join: {wait_for: any, rest: run%s}%s, loop: {while: "output.more", back_to: head}}
end: {tool: t, after: tail%s}
"""


def test_a_tail_that_is_skipped_leaves_its_loop_and_is_why() -> None:
    saga = of(SKIPS % ("", ', when: "input.go"', ""), {"go": False})
    saga.go(done("head@0"))
    saga.go(done("quick@0"))
    no = "`tail@0`, which was skipped, because its `when` says no, `input.go`"
    assert why(saga, "slow@0") == f"`slow@0` did not run, or was stopped, because the loop ended with {no}"
    assert why(saga, "far@0") == f"`far@0` did not run, because the loop ended with {no}"
    assert why(saga, "end") == (
        "`end` did not run, because `tail@0` was skipped, because its `when` says no, `input.go`"
    )


def test_a_loop_with_nothing_behind_it_is_left_too() -> None:
    saga = of((SKIPS % ("", "", "")).replace("end: {tool: t, after: tail}", ""))
    saga.go(done("head@0"))
    saga.go(done("quick@0"))
    saga.go(done("tail@0", {"more": False}), running=["slow@0"])
    assert why(saga, "far@0") == (
        "`far@0` did not run, because its round ended before its turn, with `tail@0`: it left the loop after 1 round"
    )


def test_a_tail_whose_failure_is_tolerated_ends_its_round_too() -> None:
    saga = of(SKIPS % ("", "", ", join: {wait_for: all, tolerated_failures: 1}"))
    saga.go(done("head@0"))
    saga.go(done("quick@0"))
    saga.go(failed("tail@0"), running=["slow@0"])
    assert why(saga, "slow@0") == (
        "`slow@0` did not run, or was stopped, because the loop ended with the failure of `tail@0`: tool_error: it broke"
    )


NESTED = """
outer: {tool: t}
inner: {tool: t, after: outer, loop: {while: "output.more", back_to: inner}}
done: {tool: t, after: inner, loop: {while: "output.more", back_to: outer}}
"""


def test_the_rounds_of_a_node_are_those_of_the_loops_around_it_that_have_begun() -> None:
    saga = of(NESTED)
    assert [one["iteration"] for one in whole(saga, "inner")] == [[0, 0]]
    saga.go(done("outer@0"))
    saga.go(done("inner@0.0", {"more": True}))
    saga.go(done("inner@0.1", {"more": False}))
    saga.go(done("done@0", {"more": True}))
    assert [one["iteration"] for one in whole(saga, "inner")] == [[0, 0], [0, 1], [1, 0]]
    assert why(saga, "inner@1.0").startswith("`inner@1.0` is not reached yet; `outer@1` is ready")
    assert (
        why(saga, "done@0")
        == "`done@0` ran, reached from `inner@0.1` (it left the loop after 2 rounds); then round 1 begins: to `outer`"
    )


def test_only_the_same_round_holds_a_node_up() -> None:
    nodes = """
a: {tool: t}
inner: {tool: t, after: a, loop: {while: "output.more", back_to: a}}
other: {tool: t}
last: {tool: t, after: [inner, other]}
"""
    saga = of(nodes)
    saga.go(done("other"))
    (found,) = whole(saga, "last")
    assert [(one["node"], one["iteration"]) for one in found["waits_for"]] == [("a", [0])]
    assert found["text"].startswith("`last` waits for its edges from `inner`; `a@0` is ready")


def test_an_edge_out_of_a_loop_is_held_up_by_any_node_of_the_loop() -> None:
    nodes = """
head: {tool: t, branch: {rules: [{if: "output.stop", then: out}], default: tail}}
tail: {tool: t, loop: {while: "output.more", back_to: head}}
out: {tool: t, after: first}
first: {tool: t}
"""
    saga = of(nodes)
    saga.go(done("first"), done("head@0", {"stop": False}))
    assert why(saga, "out").startswith("`out` waits for its edges from `head`; `tail@0` is ready")


def test_the_end_of_an_inner_loop_may_leave_the_outer_one() -> None:
    nodes = """
a: {tool: t, loop: {while: "output.more", back_to: a}, branch: {rules: [{if: "output.stop", then: out}], default: b}}
b: {tool: t, loop: {while: "output.more", back_to: a}}
out: {tool: t}
"""
    saga = of(nodes)
    saga.go(done("a@0.0", {"more": False, "stop": True}))
    assert steps(saga)[0][2] == (
        "it left the loop after 1 round; rule 1 of its branch, `output.stop`; "
        "it leaves the loop that ends with `b`: to `out`"
    )
    assert "its round ended before its turn, with `a@0.0`" in why(saga, "b@0")


def test_a_tail_that_is_skipped_with_a_branch_inside_its_loop() -> None:
    nodes = """
head: {tool: t, branch: {rules: [{if: "output.x", then: out}]}, when: "input.go"}
tail: {tool: t, after: head, loop: {while: "output.more", back_to: head}}
out: {tool: t}
end: {tool: t, after: tail}
"""
    saga = of(nodes, {"go": False})
    assert why(saga, "out") == (
        "`out` did not run, because the loop around `head` ended with `tail@0`, which was skipped, "
        "because `head@0` was skipped, because its `when` says no, `input.go`"
    )
