"""The operations of APIs that a node may call: a document lists them, and what it does not list cannot be called."""

from __future__ import annotations

import pytest

from baton.core.documents.compile import compile_document
from baton.core.effects.keys import GRANTED_LIST_KEY, KeyRule, parameters_of
from baton.core.effects.operations import description_for_model, keeps_list, operation_refusal
from baton.core.effects.risk import Risk, assess, least
from baton.core.graph.graph import Graph
from tests.core.build import problems_of, tool_spec
from tests.core.compiling import TOOLS, document
from tests.kit.sentences import Says

TEXT = {"type": "string"}
OPENAPI = tool_spec(
    "std.openapi",
    {},
    api=TEXT,
    operation=TEXT,
    parameters={"default": None},
    operations={"default": None, GRANTED_LIST_KEY: True},
)
HERE = {**TOOLS, "std.openapi": OPENAPI}
LIST = "operations: {shop: [listOrders, getOrder], mail: send}"
EVERY = "with `std.openapi` a model could call every operation of every API of the deployment"
REMEDY = "list those that it may call, by API: `operations: {shop: [listOrders, getOrder]}`"


def told(nodes: str, *more: str) -> list[tuple[str, str, str]]:
    return [(one.path, one.message, one.suggestion) for one in problems_of(document(nodes, *more), HERE)]


def compiled(nodes: str, *more: str) -> Graph:
    return compile_document(document(nodes, *more), HERE)


@pytest.mark.parametrize("tools", ["std.openapi", "[t, std.openapi]", '"std.*"', '"*"'])
@pytest.mark.parametrize("operations", ["", ", operations: {}"])
def test_an_agent_that_could_call_every_operation_is_refused(tools: str, operations: str) -> None:
    found = told(f"a: {{agent: {{model: m, prompt: p, tools: {tools}{operations}}}}}")
    assert found == [("/nodes/a/agent/tools", EVERY, REMEDY)]


def test_so_is_a_model_that_does_a_step_another_way() -> None:
    replan = "replan: {model: m, tools: [u.v, std.openapi]}"
    assert told(f"a: {{{replan}}}")[0] == ("/nodes/a/replan/tools", EVERY, REMEDY)
    assert told("a: {}", replan)[0][1:] == (EVERY, REMEDY)
    assert told(f"a: {{{replan[:-1]}, {LIST}}}}}") == []


def test_a_list_that_no_tool_keeps_is_told(says: Says) -> None:
    found = told(f"a: {{agent: {{model: m, prompt: p, tools: t, {LIST}}}}}")
    says(found)


def test_a_tool_of_the_application_by_this_name_keeps_no_list() -> None:
    own = {**TOOLS, "std.openapi": tool_spec("std.openapi", api=TEXT, operation=TEXT)}
    assert problems_of(document("a: {agent: {model: m, prompt: p, tools: std.openapi}}"), own) == ()


@pytest.mark.parametrize(
    "wrong", ["{Shop: [a]}", "{shop: []}", "{shop: [a, a]}", "{shop: 1}", "[listOrders]", "{shop: {a: b}}"]
)
def test_a_list_of_another_form_is_refused(wrong: str) -> None:
    (found,) = told(f"a: {{agent: {{model: m, prompt: p, tools: std.openapi, operations: {wrong}}}}}")
    assert found[0].startswith("/nodes/a/agent/operations")


def test_the_list_of_an_agent_is_in_its_graph_and_no_models_to_say() -> None:
    graph = compiled(f"a: {{agent: {{model: m, prompt: p, tools: [std.openapi, t], {LIST}}}}}")
    parts = graph.nodes[0].agent
    assert parts is not None
    turn = parts.turn.arguments
    assert (turn["tools"], turn["apis"]) == (["t"], {"shop": ["listOrders", "getOrder"], "mail": ["send"]})
    assert sorted(turn["offers"]) == ["mail:send", "shop:getOrder", "shop:listOrders"]
    fixed = {"api": "shop", "operation": "getOrder", "operations": {"shop": ["getOrder"]}}
    assert parts.operations["shop:getOrder"].arguments == fixed
    assert [call.tool for call in parts.calls] == ["t"]


def test_a_risk_of_an_operation_is_that_of_its_calls() -> None:
    risks = (
        "risk: {'shop:getOrder': {action: payment, amount: body.x, currency_is: USD}, 'mail:send': critical}"
    )
    graph = compiled(f"a: {{agent: {{model: m, prompt: p, tools: std.openapi, {LIST}, {risks}}}}}")
    parts = graph.nodes[0].agent
    assert parts is not None
    asked = {name: node.approval and node.approval.risk for name, node in parts.operations.items()}
    assert asked == {
        "shop:listOrders": None,
        "shop:getOrder": Risk(action="payment", amount="body.x", currency_is="USD"),
        "mail:send": Risk(level="critical"),
    }
    assert assess(Risk(level="critical"), (), {}).level == least(Risk(level="critical"), ()) == "critical"


SEARCH = tool_spec("std.search_tools", {}, query=TEXT, among={}, calls={})


def test_a_search_of_an_agent_is_among_all_that_it_may_call() -> None:
    other = {**HERE, "std.search_tools": SEARCH}
    tools = "tools: ['*', {ask: boss}]"
    text = document(f"a: {{agent: {{model: m, prompt: p, {tools}, {LIST}}}}}")
    parts = compile_document(text, other).nodes[0].agent
    assert parts is not None
    given = parts.by_name["std.search_tools"].arguments
    assert "std.openapi" not in given["among"]
    assert sorted(given["calls"]["offers"]) == ["boss", "mail:send", "shop:getOrder", "shop:listOrders"]
    _, parameters = description_for_model(SEARCH, {})
    assert [*parameters["properties"]] == ["query"], "a model says neither"


STEP = "a: {tool: std.openapi, with: {api: shop, %s}}"
NOWHERE = (
    "which operation `std.openapi` calls stands nowhere: an expression could name any operation of any API"
)


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ('operation: "${input.what}"', "operation", NOWHERE),
        ('operation: "list${input.what}"', "operation", NOWHERE),
        ('operation: "${input.what}", operations: {}', "operation", NOWHERE),
        ('operation: list, operations: "${input.all}"', "operations", "the operations that may be called stand in the document"),
        ("operation: other, operations: {shop: [list]}", "operations",
         "`shop:other` is none of the operations that may be called: `shop:list`"),
    ],
)  # fmt: skip
def test_a_step_names_its_operation_or_lists_those_that_an_expression_may_name(
    given: str, path: str, message: str
) -> None:
    assert [(one[0], one[1]) for one in told(STEP % given)] == [(f"/nodes/a/with/{path}", message)]


@pytest.mark.parametrize(
    "given",
    ["operation: list", 'operation: "${input.what}", operations: {shop: [list]}', "operation: list, operations: {shop: [list]}"],
)  # fmt: skip
def test_a_step_that_does_is_taken(given: str) -> None:
    assert told(STEP % given) == []


def test_an_api_that_an_expression_names_needs_the_list_too() -> None:
    found = told('a: {tool: std.openapi, with: {api: "${input.which}", operation: list}}')
    assert found[0][:2] == ("/nodes/a/with/api", NOWHERE)


def test_so_do_calls_in_place_of_a_step_and_those_that_undo_one() -> None:
    given = 'with: {api: shop, operation: "${input.what}"}'
    policy = f"{{name: other, then: {{tool: std.openapi, {given}}}}}"
    assert told(f"a: {{failover: [{policy}]}}")[0][0] == "/nodes/a/failover/0/then/with/operation"
    inverse = 'compensate: {tool: std.openapi, with: {api: shop, operation: "${step.output.next}"}}'
    assert told(f"a: {{{inverse}}}")[0][:2] == ("/nodes/a/compensate/with/operation", NOWHERE)


def test_a_hint_that_names_the_tool_gives_it_the_arguments_of_the_step() -> None:
    other = {**HERE, "call": tool_spec("call", {}, api=TEXT, operation=TEXT)}
    text = document(
        'a: {tool: call, with: {api: shop, operation: "${input.what}"}, on_failure: {any: {ladder: [replan, fail], hints: [std.openapi]}}}'
    )
    assert [(one.path, one.message) for one in problems_of(text, other)] == [
        ("/nodes/a/with/operation", NOWHERE)
    ]


def test_what_is_not_listed_is_refused_with_what_is(says: Says) -> None:
    listed = {"shop": ["list", "get"]}
    assert operation_refusal(listed, "shop", "get") == ""
    says(operation_refusal(listed, "shop", "drop"))
    assert operation_refusal(listed, "mail", "list") != ""
    says(operation_refusal({}, 1, None))
    assert operation_refusal({"shop": [f"o{n}" for n in range(30)]}, "shop", "x").endswith(
        "`shop:o19` and 10 more"
    )


def test_a_model_is_told_of_the_operations_on_the_list_and_never_of_the_list(says: Says) -> None:
    assert description_for_model(TOOLS["t"], {}) == (TOOLS["t"].description, TOOLS["t"].parameters)
    description, parameters = description_for_model(OPENAPI, {"shop": ["list", "get"], "mail": ["get"]})
    says(description)
    assert set(parameters["properties"]) == {"api", "operation", "parameters"}
    assert parameters["properties"]["api"]["enum"] == ["mail", "shop"]
    assert parameters["properties"]["operation"]["enum"] == ["get", "list"]
    assert "operations" in OPENAPI.parameters["properties"]


def test_the_list_is_no_part_of_an_idempotency_key() -> None:
    given = {"api": "shop", "operation": "list"}
    with_list = {**given, "operations": {"shop": ["list"]}}
    assert parameters_of(KeyRule(), with_list, OPENAPI.parameters) == given
    assert keeps_list(OPENAPI)
    assert not keeps_list(TOOLS["t"])
