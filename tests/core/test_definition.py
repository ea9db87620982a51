"""The reader of documents: what the models make of each spelling, what is told of a wrong one, what is left of it.

What the compiler makes of the models is in test_compile_*.py, what editors are told in test_docschema.py.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from baton.core.documents.familiar import MAX_HINTS, model_around
from baton.core.documents.models import BY_KEY, NodeModel, WorkflowModel, kind_of
from baton.core.documents.parts.control import CountModel, LimitsModel
from baton.core.documents.parts.failing import AtMostModel, CatchModel, RetryModel, WindowModel
from baton.core.documents.parts.people import AudienceModel
from baton.core.documents.text import parse_document
from tests.core.build import PROPERTY
from tests.core.compiling import shape_of
from tests.core.shapes import BEYOND, LEAVE_OUT, SHAPES
from tests.kit.sentences import Says


def read(text: str) -> tuple[WorkflowModel | None, list[tuple[str, str, str]]]:
    model, problems = shape_of(parse_document(text).value)
    return model, [(p.path, p.message, p.suggestion) for p in problems]


def good(text: str) -> WorkflowModel:
    model, problems = read(text)
    assert model is not None
    assert problems == []
    return model


def node(fields: str) -> NodeModel:
    return good(f"name: w\nnodes: {{a: {{tool: t, {fields}}}, b: {{tool: t}}}}").nodes["a"]


def own(node: NodeModel) -> Any:
    """What the node has under the field that makes it one of its kind."""
    return kind_of(node).of(node)


def left(text: str) -> WorkflowModel:
    """What is left of a document with problems."""
    model, problems = read(text)
    assert problems
    assert model is not None
    return model


# ---- spellings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["{rules: [{if: x, then: b}]}", "{rules: [{if: x, then: [b]}]}"])
def test_one_node_to_go_on_to_needs_no_list(written: str) -> None:
    branch = node(f"branch: {written}").branch
    assert branch is not None
    assert [(rule.if_, rule.then) for rule in branch.rules] == [("x", ["b"])]
    assert (branch.default, branch.choose, branch.among) == ([], None, [])


@pytest.mark.parametrize(
    "written", ["output.next", "${output.next}", '"${output.next}"', '" ${output.next} "']
)
def test_an_expression_to_choose_by_may_have_its_braces_or_not(written: str) -> None:
    branch = node(
        f"branch: {{choose: {written if written[0] == chr(34) else repr(written)}, among: b}}"
    ).branch
    assert branch is not None
    assert (branch.choose, branch.among) == ("output.next", ["b"])


def test_a_loop_has_a_hundred_rounds_if_it_does_not_say() -> None:
    loop = node("loop: {while: {cel: x}}").loop
    assert loop is not None
    assert (loop.while_, loop.max_iterations, loop.back_to) == ({"cel": "x"}, 100, None)
    assert (loop.break_path, loop.timeout_path) == ([], [])
    assert good("name: w\nnodes: {a: {tool: t, loop: {while: x, max_iterations: 5.0}}}").nodes["a"].loop == (
        loop.model_copy(update={"while_": "x", "max_iterations": 5})
    )


@pytest.mark.parametrize(
    ("written", "wait_for", "failures", "share", "rest"),
    [
        ("all", "all", None, None, "cancel"),
        ("any", "any", None, None, "cancel"),
        ("2", 2, None, None, "cancel"),
        ("2.0", 2, None, None, "cancel"),
        ("{}", "all", None, None, "cancel"),
        ("{wait_for: 3, rest: run}", 3, None, None, "run"),
        ("{tolerated_failures: 0}", "all", 0, None, "cancel"),
        ("{tolerated_failures: 1}", "all", 1, None, "cancel"),
        ("{tolerated_failures: 25%}", "all", None, 25, "cancel"),
        ("{tolerated_failures: ' 100 % '}", "all", None, 100, "cancel"),
    ],
)
def test_each_spelling_of_a_join(
    written: str, wait_for: Any, failures: int | None, share: int | None, rest: str
) -> None:
    join = node(f"join: {written}").join
    assert join is not None
    assert (join.wait_for, join.rest) == (wait_for, rest)
    assert (join.tolerated_failures, join.tolerated_share) == (failures, share)


def test_limits_are_numbers_by_the_names_of_graphs() -> None:
    limits = node(
        "limits: {fan_out: 20, hops: {max: 100, then: throttle}, wall_time: 2h, bytes: {max: 5, then: summarise}, "
        "cost_usd: 1.5}"
    ).limits
    assert {name: (limit.max, limit.then) for name, limit in limits.items()} == {
        "fan_out": (20, "terminate"),
        "hops": (100, "throttle"),
        "wall_time": (7_200_000, "terminate"),
        "bytes": (5, "summarise"),
        "cost": (1_500_000, "terminate"),
    }
    assert node("limits: {}").limits == {}


@given(st.integers(1, 10**12))
@PROPERTY
def test_an_amount_of_money_is_never_rounded(micro: int) -> None:
    amount = format(Decimal(micro) / 10**6, "f")
    limit = good(f"name: w\nlimits: {{cost_usd: {amount}}}\nnodes: {{a: {{tool: t}}}}").limits["cost"]
    assert limit.max == micro


def test_a_wait_may_be_for_a_time_that_an_expression_gives() -> None:
    waits = good(
        "name: w\nnodes:\n  a: {wait: {for: '${input.hours}h'}}\n  b: {wait: {until: '${input.when}'}}\n"
        "  c: {wait: {until: 2026-12-01T09:00:00.5+01:00}}\n  d: {wait: {for: 10m}}\n"
    ).nodes
    assert [(n.for_, n.until) for n in map(own, waits.values())] == [
        ("${input.hours}h", None), (None, "${input.when}"), (None, "2026-12-01T09:00:00.5+01:00"), (600_000, None),
    ]  # fmt: skip


def test_a_value_may_be_null() -> None:
    read_node = good("name: w\nnodes: {a: {value: null, when: x}}").nodes["a"]
    assert (own(read_node), kind_of(read_node).kind, read_node.when) == (None, "pass", "x")
    assert kind_of(node("description: x")).kind == "task"


@pytest.mark.parametrize("key", [key for key, kind in BY_KEY.items() if not kind.ends])
def test_a_node_of_any_kind_that_is_no_end_may_say_where_it_goes_on(key: str) -> None:
    kind = {
        "wait": "{signal: s}",
        "agent": "{model: m, prompt: p}",
        "model": "{name: m, prompt: p}",
        "human": "{title: x}",
    }.get(key, "t")
    fields = "when: x, branch: {rules: [{if: x, then: b}]}, loop: {while: x}, join: any, output_schema: true, limits: {}"
    model = good(f"name: w\nnodes: {{a: {{{key}: {kind}, {fields}}}, b: {{tool: t}}}}")
    assert kind_of(model.nodes["a"]).key == key


def test_what_is_only_for_people_and_programs_around_is_kept() -> None:
    model = good(
        "name: w\nowner: ann\nmetadata: {a: b}\ntimeout: 2h\nschemas: {s: true}\nnodes: {a: {tool: t}}"
    )
    assert (model.owner, model.metadata, model.timeout, model.schemas) == (
        "ann",
        {"a": "b"},
        7_200_000,
        {"s": True},
    )


def test_guardrails_that_allow_nothing_are_not_those_that_say_nothing() -> None:
    text = "name: w\nguardrails: %s\nnodes: {a: {tool: t}}"
    tools = [
        rails.allowed_tools
        for rails in (
            good(text % written).guardrails
            for written in ("{}", "{allowed_tools: []}", "{allowed_tools: b.*}")
        )
        if rails
    ]
    assert tools == [None, [], ["b.*"]]
    ways = good(text % "{allowed_transitions: {a: [], b: c}}").guardrails
    assert ways is not None
    assert ways.allowed_transitions == {"a": [], "b": ["c"]}


# ---- what is told ----------------------------------------------------------------------------------------------

_TOLD = [*SHAPES, *BEYOND]


@pytest.mark.no_cover
@pytest.mark.parametrize(("text", "path"), [case[1:] for case in _TOLD], ids=[case[0] for case in _TOLD])
def test_a_document_of_the_wrong_shape(text: str, path: str, says: Says) -> None:
    model, ((found, *told),) = read(text)
    assert found == path
    says(told)
    assert model is not None


@pytest.mark.parametrize(
    ("place", "model"),
    [
        ("name", WorkflowModel),
        ("limits/hops", LimitsModel),
        ("limits/hops/max", CountModel),
        ("on_failure/timeout/retry/base", RetryModel),
        ("on_failure/timeout/at_most/retry", AtMostModel),
        ("failover/0/then/with/a", BaseModel),
        ("failover/0/when/time/0/from", WindowModel),
        ("graphs/g/nodes/a/after", NodeModel),
        ("nodes/a/after", NodeModel),
        ("nodes/a/when/if", BaseModel),
        ("nodes/a/catch/0/then", CatchModel),
        ("nodes/a/human/to/user", AudienceModel),
        ("nodes/a/unknown/then", BaseModel),
    ],
)
def test_the_fields_of_an_object_are_known_where_it_stands(place: str, model: type[BaseModel]) -> None:
    assert model_around([int(step) if step.isdigit() else step for step in place.split("/")]) is model


def test_everything_is_told_at_once() -> None:
    told = read(
        "name: w\nlimits: {hops: 0}\nnodes:\n"
        "  a: {tool: t, branch: {rules: [{if: , then: 5}]}, loop: {}, join: x, limits: {a: 1}}\n"
        "  b: {tool: t, output_schema: 5, timout: 5s}\n"
    )[1]
    assert [path for path, _, _ in told] == [
        "/limits/hops", "/nodes/a/branch/rules/0/if", "/nodes/a/branch/rules/0/then", "/nodes/a/loop/while",
        "/nodes/a/join", "/nodes/a/limits/a", "/nodes/b/output_schema", "/nodes/b/timout",
    ]  # fmt: skip


def test_what_a_misspelt_key_holds_is_looked_at_too(says: Says) -> None:
    says(read("name: w\nnodes: {a: {tool: t, brnch: {rules: []}}}")[1])
    assert [path for path, _, _ in read("name: w\nnodes: {a: {tool: t}}\nlimit: {hops: 0}")[1]] == [
        "/limit",
        "/limit/hops",
    ]


def test_what_is_wrong_inside_of_misspelt_keys_is_told_where_it_is_written(says: Says) -> None:
    told = read("name: w\nnodes: {a/b: {tool: t, on_failures: {timeout: {hnts: [5], retri: {x: 1}}}}}")[1]
    says([(path, message) for path, message, _ in told if path != "/nodes/a~1b"])


@pytest.mark.parametrize(
    "field",
    [
        "descriptn: [b]",
        "afterr: {x: 1}",
        "retries: 3",
        "timeouts: [5]",
        "withh:",
    ],
)
def test_an_unknown_key_whose_value_its_nearest_could_not_have_is_one_problem(field: str, says: Says) -> None:
    text = f"name: w\nnodes:\n  a:\n    tool: t\n    {field}\n  b: {{tool: t}}\n"
    says(read(text)[1])


def test_only_the_first_unknown_keys_get_a_suggestion_because_looking_for_one_takes_long(says: Says) -> None:
    keys = {f"output{i}": 1 for i in range(MAX_HINTS + 1)}
    _, problems = shape_of({"name": "w", "nodes": {"a": {"tool": "t"}}, **keys})
    hints = [problem.suggestion for problem in problems]
    assert [bool(hint) for hint in hints] == [True] * MAX_HINTS + [False]
    says(hints[0])


def test_a_key_that_is_missing_because_it_is_misspelt_is_told_once(says: Says) -> None:
    says(read("nmae: w\nnodes: {a: {tool: t}}")[1])


@pytest.mark.parametrize(
    ("limit", "told"), [({"max": 3, "thn": "throttle"}, "thn"), ({"mx": 3, "then": "throttle"}, "mx")]
)
def test_one_object_in_two_places_is_told_of_at_both_and_stays_as_it_is(limit: Any, told: str) -> None:
    before = {**limit}
    limits = {"hops": limit, "fan_out": limit}
    model, problems = shape_of(
        {"name": "w", "limits": limits, "nodes": {"a": {"tool": "t", "limits": limits}}}
    )
    assert model is not None
    assert {p.path for p in problems} == {
        f"{place}/limits/{name}/{told}" for place in ("", "/nodes/a") for name in limits
    }
    assert limit == before


# ---- what is left ----------------------------------------------------------------------------------------------


def test_the_ways_of_a_node_stay_when_what_leads_there_is_broken() -> None:
    model = left(
        "name: w\nnodes:\n"
        "  a: {tool: t, branch: {rules: [{if: , then: [b, gone]}, 5, {if: x, then: 7}], default: c, among: b}}\n"
        "  b: {tool: t, loop: {while: 'output.x', max_iterations: 0, back_to: b, break_path: [c, 5], timeout_path: {}}}\n"
        "  c: {tool: t, after: [b, 5], loop: {}}\n"
    )
    a, b, c = model.nodes.values()
    assert a.branch is not None
    assert a.branch.rules[0].then == ["b", "c"]
    assert b.loop is not None
    assert (b.loop.while_, b.loop.back_to, b.loop.break_path) == ("output.x", "b", ["c"])
    assert c.loop is not None
    assert (c.after, c.loop.while_, c.loop.back_to) == (["b"], "loop.iteration > 1", None)
    assert (own(a), own(b), own(c)) == ("t", "t", "t")


@pytest.mark.parametrize(
    "broken", ["branch: 5", "branch: {rules: 5}", "loop: 5", "after: 5", "join: x", "limits: 5"]
)
def test_what_leads_nowhere_is_left_out(broken: str) -> None:
    assert left(f"name: w\nnodes: {{a: {{tool: t, {broken}, when: x}}}}").nodes["a"] == node("when: x")


@pytest.mark.parametrize(
    "kind",
    ["tool: 5", "tool: t, wait: {for: 1s}", "wait: 5s", "workflow: A", "map: [5]", "zzz: 1", "toool: 5"],
)
def test_a_node_without_a_kind_still_has_its_place(kind: str) -> None:
    node = left(f"name: w\nnodes: {{a: {{{kind}, with: {{}}, after: b, when: x}}, b: {{tool: t}}}}").nodes[
        "a"
    ]
    assert ("tool" in node.model_fields_set, node.after, node.when) == (False, ["b"], "x")


def test_a_field_of_another_kind_is_left_out() -> None:
    node = left("name: w\nnodes: {a: {value: 1, with: {}, when: x}}").nodes["a"]
    assert (own(node), node.with_, node.when) == (1, {}, "x")


def test_what_is_broken_around_the_nodes_is_left_out_and_the_rest_stays() -> None:
    model = left(
        "name: W\nnodes: {a b: {tool: t}, c: 5}\nguardrials: {allowed_tool: [t]}\ninput: 5\nowner: 5\noutput: x\n"
        "schemas: {a b: 5, c: 5, d: {}}\n"
    )
    assert list(model.nodes) == ["a b", "c"]
    assert (model.name, model.input, model.owner, model.output) == ("unnamed", None, "", "x")
    assert model.schemas == {"c": True, "d": {}}
    assert model.guardrails is not None
    assert model.guardrails.allowed_tools == ["t"]


def test_the_name_stays_if_it_is_one() -> None:
    assert left("name: w\nnodes: {a: {tool: 5}}").name == "w"


@pytest.mark.parametrize("nodes", ["[]", "{}", "5"])
def test_without_nodes_nothing_is_left(nodes: str) -> None:
    assert read(f"name: w\nnodes: {nodes}")[0] is None


def test_a_value_left_out_is_told_as_that_at_every_level() -> None:
    told = read("name: w\noutput: null\ndescription: null\nnodes: {a: {tool: t, after: null, with: null}}")[1]
    assert told == [
        ("/description", LEAVE_OUT, ""), ("/nodes/a/with", LEAVE_OUT, ""), ("/nodes/a/after", LEAVE_OUT, ""),
    ]  # fmt: skip


def test_what_is_neither_true_nor_false_is_told_in_plain_words(says: Says) -> None:
    ask = "{model: {name: m, prompt: p, background: soon}}"
    says(read(f"name: w\nnodes: {{a: {ask}}}")[1])
