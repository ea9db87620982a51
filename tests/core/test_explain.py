"""Why a node ran or did not: branches, conditions and joins, read from logs that the core itself wrote."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.log.records import Sent
from tests.core.build import Saga, done, failed, program, task
from tests.core.told import BRANCH, ROOM, of, steps, story, whole, why
from tests.kit.sentences import Says
from tests.kit.views import as_json, way

# ---- branches


def test_the_way_is_told_in_order_with_what_was_chosen_and_what_not(says: Says) -> None:
    saga = of(BRANCH)
    saga.go(done("ask", {"n": 7}))
    saga.go(done("mid"))
    says(steps(saga))
    told = as_json(way(story(saga), 0, 1_000, ROOM))
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
    told = as_json(way(story(saga), 0, 1_000, ROOM))
    assert (told["end"], told["open"]) == ("the saga completed", [])


def test_why_a_node_did_not_run_is_followed_to_the_branch_that_went_another_way(says: Says) -> None:
    saga = of(BRANCH)
    saga.go(done("ask", {"n": 7}))
    (found,) = whole(saga, "low2")
    says(found["text"])
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


def test_why_a_node_ran_names_the_edge_and_the_rule_that_led_to_it(says: Says) -> None:
    saga = of(BRANCH)
    saga.go(done("ask", {"n": 7}))
    saga.go(done("mid"))
    (found,) = whole(saga, "mid")
    says(found["text"])
    assert (found["state"], found["version"], found["to"], found["causes"]) == ("ran", 3, ["end"], [])
    (found,) = whole(saga, "ask")
    says(found["text"])
    says([edge["text"] for edge in found["edges"]])


def test_a_default_and_the_lack_of_one(says: Says) -> None:
    saga = of(BRANCH)
    saga.go(done("ask", {"n": 1}))
    says(steps(saga)[0])
    saga = of('a: {tool: t, branch: {rules: [{if: "output.n > 9", then: b}]}}\nb: {tool: t}')
    saga.go(done("a", {"n": 1}))
    says(why(saga, "b"))


CHOOSE = """
a: {tool: t, branch: {choose: output.next, among: [b, c], default: d}}
b: {tool: t}
c: {tool: t}
d: {tool: t}
"""


@pytest.mark.parametrize(
    "value",
    [
        "c",
        None,
    ],
)
def test_a_choice_by_name(value: Any, says: Says) -> None:
    saga = of(CHOOSE)
    saga.go(done("a", {"next": value}))
    says(steps(saga)[0])


def test_a_condition_of_another_kind_has_no_short_form_and_a_long_one_is_cut(says: Says) -> None:
    schema = "a: {tool: t, branch: {rules: [{if: {schema: {type: object}}, then: b}]}}\nb: {tool: t}"
    saga = of(schema)
    saga.go(done("a", {}))
    says(steps(saga)[0][2])
    long = " && ".join(["output.n > 1"] * 40)
    saga = of(f'a: {{tool: t, branch: {{rules: [{{if: "{long}", then: b}}]}}}}\nb: {{tool: t}}')
    saga.go(done("a", {"n": 2}))
    text = steps(saga)[0][2]
    assert text.endswith("…`: to `b`")
    assert len(text) < 200


def test_a_node_whose_when_says_no(says: Says) -> None:
    nodes = 'a: {tool: t}\nb: {tool: t, after: a, when: "ctx.a.output > 1"}\nc: {tool: t, after: b}'
    saga = of(nodes)
    saga.go(done("a", 1))
    says(why(saga, "b"))
    says(why(saga, "c"))
    saga = of("a: {tool: t}\nb: {tool: t, after: a, when: {schema: {type: object}, of: ctx.a.output}}")
    saga.go(done("a", 1))
    says(why(saga, "b"))


def test_a_condition_that_breaks_is_what_the_saga_failed_with(says: Says) -> None:
    saga = of('a: {tool: t, branch: {rules: [{if: "output.n > 1", then: b}]}}\nb: {tool: t}\nc: {tool: t}')
    saga.go(done("a", {}))
    ran, text = why(saga, "a").split("; then ")
    says(ran)
    says(text)
    says(why(saga, "b"))
    says(why(saga, "c"))


# ---- joins


ANY = """
a: {tool: t}
b: {tool: t}
b2: {tool: t, after: b}
c: {tool: t}
z: {tool: t, after: c}
j: {tool: t, after: [a, b2, c], join: %s}
"""


def test_the_rest_of_a_join_that_fired_did_not_run_or_was_stopped_because_of_it(says: Says) -> None:
    saga = of(ANY % "any")
    saga.go(done("a"))
    says(why(saga, "b"))
    says(why(saga, "b2"))
    says(why(saga, "j"))
    saga.go(done("j"))
    says(why(saga, "j"))


def test_what_comes_late_to_a_join_is_shown_as_late_and_does_not_count(says: Says) -> None:
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
    says(found["text"])


def test_a_join_that_too_few_reached(says: Says) -> None:
    nodes = """
a: {tool: t}
b: {tool: t, when: "input.go"}
c: {tool: t, when: "input.go"}
j: {tool: t, after: [a, b, c], join: 2}
"""
    saga = of(nodes, {"go": False})
    saga.go(done("a"))
    (found,) = whole(saga, "j")
    says(found["text"])
    says(steps(saga)[-1])


TOLERATES = """
a: {tool: t}
b: {tool: t}
c: {tool: t, after: [a, b]}
d: {tool: t, after: c}
j: {tool: t, after: [d], join: {wait_for: all, tolerated_failures: 1}}
"""


def test_a_failure_that_is_tolerated_is_why_what_lies_between_did_not_run(says: Says) -> None:
    saga = of(TOLERATES)
    saga.go(failed("b"), done("a"))
    says(why(saga, "b"))
    says(why(saga, "c"))
    says(why(saga, "d"))
    says(why(saga, "j"))


def test_a_condition_that_breaks_may_be_tolerated(says: Says) -> None:
    nodes = """
a: {tool: t, branch: {rules: [{if: "output.n > 1", then: b}]}}
b: {tool: t}
j: {tool: t, after: b, join: {wait_for: all, tolerated_failures: 1}}
"""
    saga = of(nodes)
    saga.go(done("a", {}))
    says(why(saga, "b"))
    assert story(saga).failed is None


def test_a_join_of_many_names_some_of_its_edges(says: Says) -> None:
    saga = Saga(program(*(task(f"a{n}") for n in range(8)), task("j", *(f"a{n}" for n in range(8)))))
    saga.go()
    saga.go(done("a1"))
    says(why(saga, "j"))
    saga.go(*(done(f"a{n}") for n in range(8)))
    saga.go(done("j"))
    says(why(saga, "j"))


@pytest.mark.parametrize(
    "condition",
    [
        '{jsonpath: "$.go", operator: "==", value: [1, a]}',
        '{jsonpath: "$.gone", operator: exists}',
        '{compare: {left: "${input.go}", operator: ">", right: 5}}',
        "{schema: {required: [gone]}}",
    ],
)
def test_what_a_when_has_asked_is_told_where_it_is_short(condition: str, says: Says) -> None:
    saga = of(f"a: {{tool: t, when: {condition}}}", {"go": 3})
    says(why(saga, "a"))


def test_the_event_that_has_started_a_saga_is_named_at_its_first_nodes(says: Says) -> None:
    sent = Sent(source="shop", type="settled", id="e1")
    saga = Saga(program(task("a"), task("b", "a")), sent=sent)
    saga.go(done("a"))
    says(why(saga, "a"))
    says(as_json(way(story(saga), 0, 1_000, ROOM))["start"])
    assert as_json(way(story(saga), 1, 1_000, ROOM))["start"] is None
