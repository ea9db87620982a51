"""Loops: what is around what in the graph, and what cannot be a loop, each with its path and what would be right."""

from __future__ import annotations

import pytest

from baton.core.conditions.model import Cel
from baton.core.decide.program import Program
from baton.core.graph.graph import Loop
from baton.core.nodes.registry import KINDS
from tests.core.build import Saga, done
from tests.core.compiling import compiled, node, told
from tests.kit.sentences import Says

BODY = "a: {}, b: {after: a}, c: {after: b, loop: {AGAIN, back_to: b}}, d: {after: c}"


def around(nodes: str) -> dict[str, tuple[str, ...]]:
    return {one.name: one.loops for one in compiled(nodes).nodes}


def test_a_loop_is_around_every_node_on_a_way_from_its_first_to_its_last() -> None:
    assert around(BODY) == {"a": (), "b": ("c",), "c": ("c",), "d": ()}
    assert node("c", BODY).loop == Loop(
        condition=Cel(expression="output.score < 5"), max_iterations=100, back_to="b"
    )


def test_the_way_back_is_no_edge() -> None:
    assert (node("b", BODY).before, node("c", BODY).after) == (("a",), ("d",))


def test_without_a_way_back_a_loop_is_of_its_node_alone() -> None:
    alone = "a: {}, b: {after: a, loop: {AGAIN, max_iterations: 3, break_path: c, timeout_path: [d]}}, c: {}, d: {}"
    found = node("b", alone)
    assert found.loops == ("b",)
    assert found.loop is not None
    assert (found.loop.back_to, found.loop.max_iterations) == ("b", 3)
    assert (found.loop.break_path, found.loop.timeout_path, found.after) == (("c",), ("d",), ("c", "d"))


def test_loops_inside_loops_are_named_outermost_first() -> None:
    nodes = (
        "h: {}, i: {after: h}, j: {after: i, loop: {AGAIN, back_to: i}}, k: {after: h}, "
        "l: {after: [j, k], loop: {AGAIN, back_to: h}}"
    )
    assert around(nodes) == {
        "h": ("l",),
        "i": ("l", "j"),
        "j": ("l", "j"),
        "k": ("l",),
        "l": ("l",),
    }


def test_two_loops_may_begin_with_the_same_node() -> None:
    nodes = "a: {}, b: {after: a, loop: {AGAIN, back_to: a}}, c: {after: b, loop: {AGAIN, back_to: a}}"
    assert around(nodes) == {"a": ("c", "b"), "b": ("c", "b"), "c": ("c",)}


PROBLEMS: list[tuple[str, str, str]] = [
    ("a first node that is not there", "a: {loop: {AGAIN, back_to: b}}", "/nodes/a/loop/back_to"),
    (
        "a first node that does not lead to the last",
        "a: {}, b: {loop: {AGAIN, back_to: a}}",
        "/nodes/b/loop/back_to",
    ),
    (
        "a way back among the ways forward",
        "a: {after: b}, b: {after: a, loop: {AGAIN, back_to: a}}",
        "/nodes/a/after",
    ),
    ("a loop that comes after itself", "a: {after: a, loop: {AGAIN}}", "/nodes/a/after"),
    (
        "an exit into the loop",
        "a: {}, b: {after: a}, c: {after: b, loop: {AGAIN, back_to: a, timeout_path: b}}",
        "/nodes/c/loop/timeout_path",
    ),
    (
        "an exit to what came before",
        "o: {}, a: {after: o}, c: {after: a, loop: {AGAIN, back_to: a, break_path: [o, z]}}, z: {}",
        "/nodes/c/loop/break_path/0",
    ),
    (
        "loops that overlap",
        "a: {}, b: {after: a}, c: {after: b, loop: {AGAIN, back_to: a}}, d: {after: c, loop: {while: output.score < 1, back_to: b}}",
        "/nodes/d/loop",
    ),
    (
        "a way into the middle",
        "a: {}, b: {after: [a, x]}, c: {after: b, loop: {AGAIN, back_to: a}}, x: {}",
        "/nodes/b/after/1",
    ),
    (
        "a plain way out",
        "a: {}, b: {after: a}, c: {after: b, loop: {AGAIN, back_to: a}}, d: {after: b}",
        "/nodes/d/after",
    ),
    (
        "a choice that leaves and stays",
        "a: {branch: {rules: [{if: 'true', then: [b, z]}]}}, b: {}, c: {after: b, loop: {AGAIN, back_to: a}}, z: {}",
        "/nodes/a/branch/rules/0/then/1",
    ),
    (
        "what comes after a loop, by its own word always and by the loop's only in one case",
        "a: {loop: {AGAIN, timeout_path: z}}, z: {after: a}",
        "/nodes/z/after",
    ),
]


@pytest.mark.parametrize(
    ("nodes", "path"),
    [one[1:] for one in PROBLEMS],
    ids=[one[0] for one in PROBLEMS],
)
def test_what_cannot_be_a_loop(nodes: str, path: str, says: Says) -> None:
    ((found, *said),) = told(nodes)
    assert found == path
    says(said)


@pytest.mark.parametrize(
    "nodes",
    [
        "a: {branch: {choose: output.next, among: [b, z]}}, b: {}, c: {after: b, loop: {AGAIN, back_to: a}}, z: {}",
        "a: {branch: {rules: [{if: output.score > 8, then: z}]}}, c: {after: a, loop: {AGAIN, back_to: a}}, z: {}",
        "a: {loop: {AGAIN, timeout_path: z, break_path: z}}, z: {after: a}",
    ],
)
def test_a_value_may_choose_to_stay_or_to_leave(nodes: str) -> None:
    assert told(nodes) == []


def test_loops_inside_each_other_have_an_end(says: Says) -> None:
    def nested(depth: int) -> str:
        ends = "".join(
            f", t{i}: {{after: {f't{i - 1}' if i else 'h'}, loop: {{AGAIN, back_to: h}}}}"
            for i in range(depth)
        )
        return "h: {}" + ends

    assert told(nested(32)) == []
    (problem,) = told(nested(33))
    assert problem[0].endswith("/loop")
    says(problem[1:])


def test_the_inner_loop_is_left_by_its_end_and_the_outer_one_by_a_choice() -> None:
    nodes = "a: {}, b: {after: a, loop: {AGAIN}%s}, c: {after: b, loop: {AGAIN, back_to: a}}, z: {%s}"
    assert told(nodes % ("", "after: b")) != []
    branch = ", branch: {rules: [{if: output.score > 8, then: z}], default: c}"
    assert told(nodes % (branch, "")) == []


def test_names_of_no_node_are_told_wherever_they_stand(says: Says) -> None:
    nodes = "a: {branch: {rules: [{if: input.x, then: q}], default: [b, r]}, loop: {AGAIN, break_path: [b, s], timeout_path: u}}"
    says(told(nodes + ", b: {}"))


def test_a_circle_beside_a_loop_is_none_of_the_loops(says: Says) -> None:
    nodes = "x: {after: y}, y: {after: x}, a: {loop: {AGAIN, timeout_path: b}}, b: {}"
    says([message for _, message, _ in told(nodes)])


def test_a_circle_of_very_many_is_told_by_some_of_its_names() -> None:
    nodes = ", ".join(f"n{i}: {{after: n{(i + 1) % 30}}}" for i in range(30))
    ((_, message, _),) = told(nodes)
    assert message.endswith("n25, n26 and 10 more")


ENDLESS = [
    "'true'",
    "{all: ['true', {cel: '2 > 1'}]}",
    "{any: ['1 == 1', output.score < 1]}",
    "{not: 'false'}",
    "{schema: {}}",
    "{schema: false, of: input, invert: true}",
]


@pytest.mark.parametrize("condition", ENDLESS)
def test_a_loop_without_an_end_is_told(condition: str, says: Says) -> None:
    says(told(f"a: {{loop: {{while: {condition}}}}}, b: {{after: a}}"))


@pytest.mark.parametrize(
    "nodes",
    [
        "a: {loop: {while: 'true', timeout_path: b}}, b: {}",
        "h: {branch: {rules: [{if: input.x, then: b}], default: a}}, a: {loop: {while: 'true', back_to: h}}, b: {}",
        "a: {loop: {while: {all: ['true', output.score > 1]}}}",
        "a: {loop: {while: {any: ['false', output.score > 1]}}}",
        "a: {loop: {while: 'false'}}",
        "a: {loop: {while: {not: output.score > 1}}}",
        "a: {loop: {while: {schema: {type: object}}}}",
        "a: {loop: {while: {python: 'def evaluate(output, context): return True'}}}",
        "a: {loop: {while: '1 / 0 == 1'}}",
    ],
)
def test_a_loop_that_can_end_is_one(nodes: str) -> None:
    assert told(nodes) == []


LISTENS = "listen: {wait: {signal: more}, loop: {while: 'true'%s}}, work: {}, j: {after: %s, join: %s}, z: {after: j}, late: {}"
BOTH = "[listen, work]"
TAKEN_OUT = "write `timeout_path: j` here, so that `j` stops the loop, and take `listen` out of `after` there"
NOT_STOPPED = "`j` does not stop the loop: its `timeout_path` leads elsewhere; and as its condition always holds, `listen` never leads to `j`"


@pytest.mark.parametrize(
    ("loop", "after", "join", "expected"),
    [
        (", timeout_path: late", BOTH, "any", [("timeout_path", NOT_STOPPED, TAKEN_OUT)]),
        (", timeout_path: late", BOTH, "1", [("timeout_path", NOT_STOPPED, TAKEN_OUT)]),
        (", timeout_path: late, break_path: j", "work", "any",
         [("timeout_path", NOT_STOPPED, TAKEN_OUT.replace("take `listen` out of `after` there", "name `j` nowhere else at `listen`"))]),
        ("", BOTH, "any",
         [("while", "the loop has no exit: its condition always holds, and its rounds end in a failure", TAKEN_OUT)]),
        # The remedy.
        (", timeout_path: j", "work", "any", []),
        (", timeout_path: late", "[listen, work, late]", "any", []),
        # What leads elsewhere, too, or is not to be stopped, is the author's.
        (", timeout_path: [j, late]", "work", "any", []),
        (", timeout_path: late", BOTH, "{wait_for: any, rest: run}", []),
        (", timeout_path: late", BOTH, "all", []),
        ("}, catch: j, limits: {", "work", "any", []),
    ],
)  # fmt: skip
def test_a_join_that_cannot_stop_a_loop_that_goes_on_for_ever_is_told(
    loop: str, after: str, join: str, expected: list[tuple[str, str, str]]
) -> None:
    found = told(LISTENS % (loop, after, join))
    assert found == [(f"/nodes/listen/loop/{place}", message, hint) for place, message, hint in expected]


def test_a_join_that_a_loop_leads_to_alone_stops_it_where_it_stands() -> None:
    nodes = LISTENS % (", timeout_path: j", "work", "any")
    saga = Saga(Program(compiled(nodes), KINDS))
    saga.go()
    saga.signal("listen", 1)
    saga.go(done("late"), running=["work"])
    saga.go(done("work"))
    saga.go(done("j"))
    saga.go(done("z"))
    assert saga.kinds[-1] == "saga_ended"
