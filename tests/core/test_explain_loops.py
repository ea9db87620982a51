"""Why a node ran or did not: loops, their rounds, and how they were left."""

from __future__ import annotations

from tests.core.build import Saga, done, failed
from tests.core.told import of, steps, whole, why
from tests.kit.sentences import Says

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


def test_a_loop_is_told_round_by_round_and_how_it_was_left(says: Says) -> None:
    saga = of(LOOP)
    turn(saga, 0, more=True)
    turn(saga, 1, more=False)
    told = {slot: text for slot, _, text in steps(saga)}
    says(told["tail@0"])
    says(told["tail@1"])
    assert [one["iteration"] for one in whole(saga, "work")] == [[0], [1]]
    says(why(saga, "head@1"))
    says(why(saga, "late"))
    (edge,) = whole(saga, "head")[1]["edges"]
    assert (edge["from"], edge["alive"]) == ("tail", True)


def test_a_loop_whose_rounds_are_used_up(says: Says) -> None:
    saga = of(LOOP)
    for number in range(3):
        turn(saga, number, more=True)
    says(steps(saga)[-2][2])


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


def test_a_loop_that_a_branch_leaves_takes_what_is_left_of_its_round_with_it(says: Says) -> None:
    saga = of(LEAVES)
    saga.go(done("head@0"))
    saga.go(done("check@0", {"stop": True}))
    says(steps(saga))
    (found,) = whole(saga, "deep")
    assert (found["state"], found["iteration"]) == ("unreached", [0])
    says(found["text"])
    says(why(saga, "end"))


def test_the_next_round_leaves_behind_what_had_not_come(says: Says) -> None:
    saga = of(LEAVES)
    saga.go(done("head@0"))
    saga.go(done("check@0", {"stop": False}))
    saga.go(done("other@0"))
    says(why(saga, "work@0"))
    saga.go(done("tail@0", {"more": True}))
    says(why(saga, "other@1"))
    says(why(saga, "end"))


def test_a_join_that_begins_a_loop_is_heard_from_outside_of_it(says: Says) -> None:
    nodes = """
a: {tool: t}
b: {tool: t}
j: {tool: t, after: [a, b], join: any, loop: {while: "output.more", back_to: j}}
"""
    saga = of(nodes)
    saga.go(done("a"))
    says(why(saga, "b"))


SKIPS = """
head: {tool: t}
slow: {tool: t, after: head}
quick: {tool: t, after: head}
far: {tool: t, after: slow}
tail: {tool: t, after: [far, quick], join: {wait_for: any, rest: run%s}%s, loop: {while: "output.more", back_to: head}}
end: {tool: t, after: tail%s}
"""


def test_a_tail_that_is_skipped_leaves_its_loop_and_is_why(says: Says) -> None:
    saga = of(SKIPS % ("", ', when: "input.go"', ""), {"go": False})
    saga.go(done("head@0"))
    saga.go(done("quick@0"))
    says(why(saga, "slow@0"))
    says(why(saga, "far@0"))
    says(why(saga, "end"))


def test_a_loop_with_nothing_behind_it_is_left_too(says: Says) -> None:
    saga = of((SKIPS % ("", "", "")).replace("end: {tool: t, after: tail}", ""))
    saga.go(done("head@0"))
    saga.go(done("quick@0"))
    saga.go(done("tail@0", {"more": False}), running=["slow@0"])
    says(why(saga, "far@0"))


def test_a_tail_whose_failure_is_tolerated_ends_its_round_too(says: Says) -> None:
    saga = of(SKIPS % ("", "", ", join: {wait_for: all, tolerated_failures: 1}"))
    saga.go(done("head@0"))
    saga.go(done("quick@0"))
    saga.go(failed("tail@0"), running=["slow@0"])
    says(why(saga, "slow@0"))


NESTED = """
outer: {tool: t}
inner: {tool: t, after: outer, loop: {while: "output.more", back_to: inner}}
done: {tool: t, after: inner, loop: {while: "output.more", back_to: outer}}
"""


def test_the_rounds_of_a_node_are_those_of_the_loops_around_it_that_have_begun(says: Says) -> None:
    saga = of(NESTED)
    assert [one["iteration"] for one in whole(saga, "inner")] == [[0, 0]]
    saga.go(done("outer@0"))
    saga.go(done("inner@0.0", {"more": True}))
    saga.go(done("inner@0.1", {"more": False}))
    saga.go(done("done@0", {"more": True}))
    assert [one["iteration"] for one in whole(saga, "inner")] == [[0, 0], [0, 1], [1, 0]]
    says(why(saga, "inner@1.0"))
    says(why(saga, "done@0"))


def test_only_the_same_round_holds_a_node_up(says: Says) -> None:
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
    says(found["text"])


def test_an_edge_out_of_a_loop_is_held_up_by_any_node_of_the_loop(says: Says) -> None:
    nodes = """
head: {tool: t, branch: {rules: [{if: "output.stop", then: out}], default: tail}}
tail: {tool: t, loop: {while: "output.more", back_to: head}}
out: {tool: t, after: first}
first: {tool: t}
"""
    saga = of(nodes)
    saga.go(done("first"), done("head@0", {"stop": False}))
    says(why(saga, "out"))


def test_the_end_of_an_inner_loop_may_leave_the_outer_one(says: Says) -> None:
    nodes = """
a: {tool: t, loop: {while: "output.more", back_to: a}, branch: {rules: [{if: "output.stop", then: out}], default: b}}
b: {tool: t, loop: {while: "output.more", back_to: a}}
out: {tool: t}
"""
    saga = of(nodes)
    saga.go(done("a@0.0", {"more": False, "stop": True}))
    says(steps(saga)[0][2])
    says(why(saga, "b@0"))


def test_a_tail_that_is_skipped_with_a_branch_inside_its_loop(says: Says) -> None:
    nodes = """
head: {tool: t, branch: {rules: [{if: "output.x", then: out}]}, when: "input.go"}
tail: {tool: t, after: head, loop: {while: "output.more", back_to: head}}
out: {tool: t}
end: {tool: t, after: tail}
"""
    saga = of(nodes, {"go": False})
    says(why(saga, "out"))
