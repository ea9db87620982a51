"""What an expression may name where it stands, and what is known of the value: roots, rounds, joins, types."""

from __future__ import annotations

import pytest

from tests.core.compiling import told
from tests.kit.sentences import Says

LOOP = "a: {}, h: {after: a%s}, t: {after: h, loop: {AGAIN, back_to: h}%s}, z: {after: t%s}"
WAIT = "a: {wait: {signal: go%s}, output_schema: %s}, b: {after: a, with: {x: '${ctx.a.output.%s}'}}"
JOIN = "a: {}, b: {after: a}, c: {after: [a, b]%s}, d: {after: c%s}"

WRONG: list[tuple[str, str, str]] = [
    ("a number of a round outside of loops", LOOP % ("", "", ", with: {x: '${loop.iteration}'}"), "/nodes/z/with/x"),
    ("the round before of what is in no loop", LOOP % (", with: {x: '${ctx.a.previous}'}", "", ""), "/nodes/h/with/x"),
    ("this round's output of what comes later in it", LOOP % (", with: {x: '${ctx.t.output}'}", "", ""), "/nodes/h/with/x"),
    ("what comes later even if it may be missing", "a: {with: {x: '${ctx.b.output?}'}}, b: {after: a}", "/nodes/a/with/x"),
    ("its own output", "a: {with: {x: '${ctx.a.output}'}}", "/nodes/a/with/x"),
    ("`output` before there is one", "a: {with: {x: '${output.score}'}}", "/nodes/a/with/x"),
    ("`output` in a `when`", "a: {when: output.score > 1}", "/nodes/a/when"),
    ("an item outside of a map", "a: {with: {x: '${item}'}}", "/nodes/a/with/x"),
    ("a join of one way", JOIN % ("", ", with: {x: '${join.outputs}'}"), "/nodes/d/with/x"),
    ("a join of no way", "a: {with: {x: '${join.arrived}'}}", "/nodes/a/with/x"),
    ("a join's output that need not be there", "a: {when: input.x}, b: {}, c: {after: [a, b], with: {x: '${join.outputs.a}'}}",
     "/nodes/c/with/x"),
    ("a join's output over a way that need not be taken",
     "a: {branch: {rules: [{if: output.score > 1, then: [b, c]}], default: b}}, b: {}, c: {after: b, with: {x: '${join.outputs.a}'}}",
     "/nodes/c/with/x"),
    ("a join's output in the second round", "a: {}, b: {}, h: {after: [a, b], loop: {AGAIN}, with: {x: '${join.outputs.a}'}}",
     "/nodes/h/with/x"),
    ("a join's output of no sender", JOIN % (", with: {x: '${join.outputs.d}'}", ""), "/nodes/c/with/x"),
    ("a field that errors do not have", JOIN % (", with: {x: '${join.errors[0].text}'}", ""), "/nodes/c/with/x"),
    ("a field that the last error does not have", "a: {with: {x: '${last_error.zzz}'}}", "/nodes/a/with/x"),
    ("an unknown node in a condition", "a: {when: ctx.q.output.x > 1}", "/nodes/a/when"),
    ("a field that no tool gives in a condition", "a: {loop: {while: output.scor > 1}}", "/nodes/a/loop/while"),
    ("a part of a number", "a: {branch: {choose: output.score.x, among: b}}, b: {}", "/nodes/a/branch/choose"),
    ("a choice that cannot be read", "a: {branch: {choose: 'outptu.next', among: b}}, b: {}", "/nodes/a/branch/choose"),
    ("a rule behind one that always holds",
     "a: {branch: {rules: [{if: 'true', then: b}, {if: output.score > 1, then: c}]}}, b: {}, c: {}", "/nodes/a/branch/rules/1"),
    ("a field that a value has not", "a: {value: {x: {y: 1}}}, b: {after: a, with: {x: '${ctx.a.output.x.z}'}}",
     "/nodes/b/with/x"),
    ("a part of a value's number", "a: {value: [1.5]}, b: {after: a, with: {x: '${ctx.a.output[0].z}'}}", "/nodes/b/with/x"),
    ("an item that a value has not", "a: {value: {x: null}}, b: {after: a, with: {x: '${ctx.a.output.x.y}'}}", "/nodes/b/with/x"),
    ("a value made of another",
     "a: {}, b: {after: a, value: {in: '${ctx.a.output}'}}, c: {after: b, with: {x: '${ctx.b.output.in.scor}'}}",
     "/nodes/c/with/x"),
    ("a value with text around an expression", "b: {value: 'a ${saga.id}'}, c: {after: b, with: {x: '${ctx.b.output.z}'}}",
     "/nodes/c/with/x"),
    ("a number where there must be text", "a: {}, b: {after: a, with: {text: '${ctx.a.output}'}}", "/nodes/b/with/text"),
    ("a schema of its own", "a: {output_schema: {type: object, properties: {x: {}}}}, b: {after: a, with: {x: '${ctx.a.output.y}'}}",
     "/nodes/b/with/x"),
    ("the time-out of a wait without one", WAIT % ("", "{type: object, properties: {x: {}}}", "timed_out"),
     "/nodes/b/with/x"),
    ("what neither a payload nor a time-out has", WAIT % (", timeout: 1s", "{type: object, properties: {x: {}}}", "zzz"),
     "/nodes/b/with/x"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "path"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_what_cannot_be_named_there(nodes: str, path: str, says: Says) -> None:
    ((found, *said),) = told(nodes)
    assert found == path
    says(said)


RIGHT = [
    LOOP % (", with: {x: '${loop.iteration}'}", "", ""),
    LOOP % (", with: {x: '${ctx.t.previous.score}'}", "", ""),
    LOOP % ("", ", with: {x: '${ctx.t.previous}'}", ""),
    LOOP % ("", ", branch: {choose: '${ctx.t.output.next}', among: z}", ""),
    JOIN % (", with: {x: '${join.outputs.a.score}', text: '${join.arrived[0]}'}", ""),
    JOIN % ("", ", join: all, with: {x: '${join.outputs.c}'}"),
    "a: {with: {x: '${last_error.message}'}}",
    "a: {when: has(input.x)}, b: {after: a, when: '!has(ctx.a.output) || ctx.a.output.score > 1'}",
    "a: {loop: {while: has(output.later)}}",
    "a: {value: null}, b: {after: a, with: {x: '${ctx.a.output}'}}",
    "a: {value: true}, b: {after: a, with: {x: '${ctx.a.output}'}}",
    "a: {value: {x: '${input}'}}, b: {after: a, with: {x: '${ctx.a.output.x.y.z}', text: '${ctx.a.output.x}'}}",
    "a: {value: '${last_error}'}, b: {after: a, with: {x: '${ctx.a.output.y}'}}",
    "a: {wait: {for: '${input.pause}'}}, b: {wait: {until: '${input.then}'}}",
    "a: {}, b: {after: a, with: {maybe: '${ctx.a.output?}'}}",
    WAIT % (", timeout: 1s", "{type: object, properties: {x: {}}}", "timed_out"),
    WAIT % (", timeout: 1s", "{type: object, properties: {x: {}}}", "x"),
    WAIT % (", timeout: 1s", "{type: integer}", "timed_out"),
    WAIT % (", timeout: 1s", "true", "timed_out"),
    "a: {}, b: {after: a, value: '${ctx.a.output.nope}'}, c: {after: b, with: {x: '${ctx.b.output.x}'}}",
]


@pytest.mark.parametrize("nodes", RIGHT)
def test_what_can_be_named_there(nodes: str) -> None:
    known = [problem for problem in told(nodes) if "nope" not in problem[1]]
    assert known == []


def test_at_the_end_there_are_only_the_saga_and_its_nodes(says: Says) -> None:
    says(told("a: {}", "output: ['${loop.iteration}', '${join.errors}', '${output}', '${ctx.a.previous}']"))


def test_values_that_are_made_of_each_other_without_end_are_not_followed_for_ever() -> None:
    many = ", ".join(f"n{i}: {{after: n{i - 1}, value: '${{ctx.n{i - 1}.output}}'}}" for i in range(1, 30))
    assert told("n0: {value: 1}, " + many + ", z: {after: n29, with: {text: '${ctx.n29.output.x}'}}") == []


def test_on_a_circle_nothing_is_told_but_the_circle() -> None:
    nodes = "a: {after: b, with: {x: '${ctx.c.output}'}}, b: {after: a}, c: {after: b, with: {x: '${loop.iteration}'}}"
    assert [path for path, _, _ in told(nodes)] == ["/nodes/a/after"]


def test_beside_a_broken_loop_rounds_are_not_looked_at() -> None:
    nodes = "a: {}, b: {loop: {AGAIN, back_to: a}, with: {x: '${loop.iteration}'}}, c: {after: b, with: {x: '${ctx.b.output}'}}"
    assert [path for path, _, _ in told(nodes)] == ["/nodes/b/loop/back_to"]


def test_what_is_left_of_a_broken_document_is_not_taken_at_its_word() -> None:
    nodes = (
        "a: {branch: {rules: [{if: 'true'}]}}, b: {with: {x: '${ctx.a.output}'}}, c: {with: {x: '${join.errors}'}}, "
        "d: {with: {x: '${loop.iteration}'}}"
    )
    assert [path for path, _, _ in told(nodes)] == ["/nodes/a/branch/rules/0/then"]


def test_an_item_is_named_in_a_map() -> None:
    assert told("a: {map: '${input}', value: {x: '${item.x}', at: '${index}'}}") == []
