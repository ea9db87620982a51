"""Why a node ran or did not: branches, conditions and joins, read from logs that the core itself wrote."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.log.records import Sent
from baton.core.read.explain import way
from tests.core.build import Saga, done, failed, program, task
from tests.core.told import BRANCH, ROOM, of, steps, story, whole, why

# ---- branches


RULE_2 = "rule 2 of its branch, `output.n > 5`: to `mid` and `note`, not to `big` and `low`"


def test_the_way_is_told_in_order_with_what_was_chosen_and_what_not() -> None:
    saga = of(BRANCH)
    saga.go(done("ask", {"n": 7}))
    saga.go(done("mid"))
    went = f"`ask` went another way: {RULE_2}"
    assert steps(saga) == [
        ("ask", "ran", RULE_2),
        ("big", "skipped", went),
        ("low", "skipped", went),
        ("low2", "skipped", "`low` was skipped"),
        ("mid", "ran", "to `end`"),
    ]
    told = way(story(saga), 0, 1_000, ROOM)
    assert told["steps"][0] | {"text": ""} == {
        "node": "ask",
        "iteration": [],
        "became": "ran",
        "version": 2,
        "at": "2023-11-14T22:13:20.000Z",
        "by": [""],
        "way": "rule 2",
        "to": ["mid", "note"],
        "not_to": ["big", "low"],
        "text": "",
    }
    assert told["steps"][-1]["by"] == ["ask"]
    assert [(one["node"], one["state"]) for one in told["open"]] == [("note", "ready"), ("end", "joining")]
    assert (told["end"], told["next"]) == (None, None)
    saga.go(done("note"))
    saga.go(done("end"))
    told = way(story(saga), 0, 1_000, ROOM)
    assert (told["end"], told["open"]) == ("the saga completed", [])


def test_why_a_node_did_not_run_is_followed_to_the_branch_that_went_another_way() -> None:
    saga = of(BRANCH)
    saga.go(done("ask", {"n": 7}))
    (found,) = whole(saga, "low2")
    assert found["text"] == (
        f"`low2` did not run, because `low` was skipped, because `ask` went another way: {RULE_2}"
    )
    assert [(cause["node"], cause["version"]) for cause in found["causes"]] == [("low", 2), ("ask", 2)]
    assert (found["state"], found["version"], found["causes_left_out"]) == ("skipped", 2, 0)
    assert found["edges"] == [
        {
            "from": "low",
            "alive": False,
            "late": False,
            "version": 2,
            "at": "2023-11-14T22:13:20.000Z",
            "text": "`low` was skipped",
        }
    ]


def test_why_a_node_ran_names_the_edge_and_the_rule_that_led_to_it() -> None:
    saga = of(BRANCH)
    saga.go(done("ask", {"n": 7}))
    saga.go(done("mid"))
    (found,) = whole(saga, "mid")
    assert found["text"] == (
        "`mid` ran, reached from `ask` (rule 2 of its branch, `output.n > 5`); then to `end`"
    )
    assert (found["state"], found["version"], found["to"], found["causes"]) == ("ran", 3, ["end"], [])
    (found,) = whole(saga, "ask")
    assert found["text"] == f"`ask` ran, with the start of the saga; then {RULE_2}"
    assert [edge["text"] for edge in found["edges"]] == ["with the start of the saga"]


def test_a_default_and_the_lack_of_one() -> None:
    saga = of(BRANCH)
    saga.go(done("ask", {"n": 1}))
    said = "no rule of its branch holds: to `low`, not to `big`, `mid` and `note`"
    assert steps(saga)[0] == ("ask", "ran", said)
    saga = of('a: {tool: t, branch: {rules: [{if: "output.n > 9", then: b}]}}\nb: {tool: t}')
    saga.go(done("a", {"n": 1}))
    said = "no rule of its branch holds, and it has no default: not to `b`"
    assert why(saga, "b") == f"`b` did not run, because `a` went another way: {said}"


CHOOSE = """
a: {tool: t, branch: {choose: output.next, among: [b, c], default: d}}
b: {tool: t}
c: {tool: t}
d: {tool: t}
"""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("c", "by its `choose`, `output.next`: to `c`, not to `b` and `d`"),
        (None, "its `choose` names no node: to `d`, not to `b` and `c`"),
    ],
)
def test_a_choice_by_name(value: Any, said: str) -> None:
    saga = of(CHOOSE)
    saga.go(done("a", {"next": value}))
    assert steps(saga)[0] == ("a", "ran", said)


def test_a_condition_of_another_kind_has_no_short_form_and_a_long_one_is_cut() -> None:
    schema = "a: {tool: t, branch: {rules: [{if: {schema: {type: object}}, then: b}]}}\nb: {tool: t}"
    saga = of(schema)
    saga.go(done("a", {}))
    assert steps(saga)[0][2] == "rule 1 of its branch: to `b`"
    long = " && ".join(["output.n > 1"] * 40)
    saga = of(f'a: {{tool: t, branch: {{rules: [{{if: "{long}", then: b}}]}}}}\nb: {{tool: t}}')
    saga.go(done("a", {"n": 2}))
    text = steps(saga)[0][2]
    assert text.endswith("…`: to `b`")
    assert len(text) < 200


def test_a_node_whose_when_says_no() -> None:
    nodes = 'a: {tool: t}\nb: {tool: t, after: a, when: "ctx.a.output > 1"}\nc: {tool: t, after: b}'
    saga = of(nodes)
    saga.go(done("a", 1))
    no = "its `when` says no, `ctx.a.output > 1`"
    assert why(saga, "b") == f"`b` did not run, because {no}"
    assert why(saga, "c") == f"`c` did not run, because `b` was skipped, because {no}"
    saga = of("a: {tool: t}\nb: {tool: t, after: a, when: {schema: {type: object}, of: ctx.a.output}}")
    saga.go(done("a", 1))
    assert why(saga, "b") == "`b` did not run, because its `when` says no"


def test_a_condition_that_breaks_is_what_the_saga_failed_with() -> None:
    saga = of('a: {tool: t, branch: {rules: [{if: "output.n > 1", then: b}]}}\nb: {tool: t}\nc: {tool: t}')
    saga.go(done("a", {}))
    ran, text = why(saga, "a").split("; then ")
    assert ran == "`a` ran, with the start of the saga"
    assert text.startswith("which way it goes on cannot be told: condition_")
    assert why(saga, "b").startswith("`b` was not reached: the saga failed: `a`: condition_")
    assert why(saga, "c").startswith("`c` was not done: the saga failed: `a`: condition_")


# ---- joins


ANY = """
a: {tool: t}
b: {tool: t}
b2: {tool: t, after: b}
c: {tool: t}
z: {tool: t, after: c}
j: {tool: t, after: [a, b2, c], join: %s}
"""


def test_the_rest_of_a_join_that_fired_did_not_run_or_was_stopped_because_of_it() -> None:
    saga = of(ANY % "any")
    saga.go(done("a"))
    assert (
        why(saga, "b")
        == "`b` did not run, or was stopped, because the join `j` has fired without it, with `a`"
    )
    assert why(saga, "b2") == "`b2` did not run, because the join `j` has fired without it, with `a`"
    assert why(saga, "j") == "`j` is ready: it runs, or will as soon as there is room"
    saga.go(done("j"))
    assert why(saga, "j") == "`j` ran, reached from `a`, its join did not wait for `b2` and `c`"


def test_what_comes_late_to_a_join_is_shown_as_late_and_does_not_count() -> None:
    saga = of(ANY % "{wait_for: any, rest: run}")
    saga.go(done("a"))
    saga.go(done("c"))
    saga.go(done("j"))
    saga.go(done("b"))
    saga.go(done("b2"))
    (found,) = whole(saga, "j")
    assert [(edge["from"], edge["alive"], edge["late"]) for edge in found["edges"]] == [
        ("a", True, False),
        ("b2", True, True),
        ("c", True, True),
    ]
    assert found["text"] == "`j` ran, reached from `a`, its join did not wait for `b2` and `c`"


def test_a_join_that_too_few_reached() -> None:
    nodes = """
a: {tool: t}
b: {tool: t, when: "input.go"}
c: {tool: t, when: "input.go"}
j: {tool: t, after: [a, b, c], join: 2}
"""
    saga = of(nodes, {"go": False})
    saga.go(done("a"))
    (found,) = whole(saga, "j")
    assert found["text"] == (
        "`j` did not run: its join needs 2 alive, and of 3 edges 1 came alive, because `b` was skipped, "
        "because its `when` says no, `input.go`"
    )
    assert steps(saga)[-1] == ("j", "skipped", "`b` was skipped; and 1 more edge not taken")


TOLERATES = """
a: {tool: t}
b: {tool: t}
c: {tool: t, after: [a, b]}
d: {tool: t, after: c}
j: {tool: t, after: [d], join: {wait_for: all, tolerated_failures: 1}}
"""


def test_a_failure_that_is_tolerated_is_why_what_lies_between_did_not_run() -> None:
    saga = of(TOLERATES)
    saga.go(failed("b"), done("a"))
    assert why(saga, "b") == (
        "`b` failed, with the start of the saga: tool_error: it broke; the failure goes on to `c`"
    )
    assert why(saga, "c") == (
        "`c` did not run: its join tolerates no failure, because `b` failed: tool_error: it broke"
    )
    assert why(saga, "d") == ("`d` did not run, because `b` failed: tool_error: it broke (it came by `c`)")
    assert why(saga, "j") == "`j` is ready: it runs, or will as soon as there is room"


def test_a_condition_that_breaks_may_be_tolerated() -> None:
    nodes = """
a: {tool: t, branch: {rules: [{if: "output.n > 1", then: b}]}}
b: {tool: t}
j: {tool: t, after: b, join: {wait_for: all, tolerated_failures: 1}}
"""
    saga = of(nodes)
    saga.go(done("a", {}))
    assert why(saga, "b").startswith("`b` did not run, because `a` failed: condition_")
    assert story(saga).failed is None


def test_a_join_of_many_names_some_of_its_edges() -> None:
    saga = Saga(program(*(task(f"a{n}") for n in range(8)), task("j", *(f"a{n}" for n in range(8)))))
    saga.go()
    saga.go(done("a1"))
    assert why(saga, "j").startswith(
        "`j` waits for its edges from `a0`, `a2`, `a3`, `a4` and 3 more; `a0` is ready"
    )
    saga.go(*(done(f"a{n}") for n in range(8)))
    saga.go(done("j"))
    assert why(saga, "j").endswith(
        "`j` ran, reached from `a1`, from `a0`, from `a2`, from `a3`, from `a4`, and from 3 more"
    )


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ('{jsonpath: "$.go", operator: "==", value: [1, a]}', ', `$.go == [1,"a"]`'),
        ('{jsonpath: "$.gone", operator: exists}', ", `$.gone exists`"),
        ('{compare: {left: "${input.go}", operator: ">", right: 5}}', ', `"${input.go}" > 5`'),
        ("{schema: {required: [gone]}}", ""),
    ],
)
def test_what_a_when_has_asked_is_told_where_it_is_short(condition: str, words: str) -> None:
    saga = of(f"a: {{tool: t, when: {condition}}}", {"go": 3})
    assert why(saga, "a") == f"`a` did not run, because its `when` says no{words}"


def test_the_event_that_has_started_a_saga_is_named_at_its_first_nodes() -> None:
    sent = Sent(source="shop", type="settled", id="e1")
    saga = Saga(program(task("a"), task("b", "a")), sent=sent)
    saga.go(done("a"))
    by = "by the event `settled` from `shop` (id `e1`)"
    assert by in why(saga, "a")
    assert way(story(saga), 0, 1_000, ROOM)["start"] == by
    assert way(story(saga), 1, 1_000, ROOM)["start"] is None
