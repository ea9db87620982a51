"""What undoes a step: as tools say it, as documents say it, and what the graph has of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.documents.compile import compile_document
from baton.core.effects.inverses import arguments_of, misfit_of_inverse, problems_of_inverses
from baton.core.effects.risk import Risk
from baton.core.effects.toolspec import ToolSpec
from baton.core.expressions import ExpressionError, parse, walk
from baton.core.failures.policy import ANY, RetryChange
from baton.core.graph.graph import Graph, Undo, decode_graph, encode_graph
from baton.core.nodes.registry import KINDS
from tests.core.build import tool_spec
from tests.kit.sentences import Says

TEXT = {"type": "string"}
GIVEN = {"type": "object", "properties": {"id": TEXT, "note": TEXT}, "required": ["id"]}


def spec(
    name: str, result: Any = GIVEN, needs: tuple[str, ...] = (), undo: str = "", **parameters: Any
) -> ToolSpec:
    made = tool_spec(name, result, **parameters)
    made.parameters["required"] = list(needs)
    return replace(made, undo=undo, effect="idempotent")


HOLD = spec("hold", GIVEN, ("city",), "cancel", city=TEXT, party=TEXT)
CANCEL = spec("cancel", {}, ("id",), id=TEXT, city=TEXT, party=TEXT, note=TEXT, other=TEXT)
TOOLS = {
    one.name: one
    for one in (
        HOLD,
        CANCEL,
        spec("mail"),
        spec("unmail", {}, ("to",), to=TEXT),
        replace(spec("order", GIVEN, ("city",), "unorder", city=TEXT), instead_of=("hold",)),
        spec("unorder", {}, (), output=TEXT),
        replace(spec("pay", GIVEN, (), "refund"), requires_approval=True),
        replace(spec("refund", {}, ("id",), id=TEXT), risk=Risk(action="delete"), timeout_ms=4_000),
    )
}


def compiled(text: str) -> Graph:
    graph = compile_document(f"name: w\n{text}", TOOLS)
    assert decode_graph(encode_graph(graph), KINDS) == graph
    return graph


def undo(text: str, tool: str = "hold") -> Undo:
    return compiled(f"nodes: {{a: {text}}}").nodes[0].undo[tool]


# ---- tools -------------------------------------------------------------------------------------------------------------


def test_each_parameter_gets_the_field_of_its_name() -> None:
    assert arguments_of(CANCEL, HOLD) == {
        "id": "${step.output.id}",
        "city": "${step.input.city}",
        "party": "${step.input.party?}",
        "note": "${step.output.note?}",
    }


@pytest.mark.parametrize(
    ("result", "gets"),
    [
        ({}, "${step.output.code}"),
        ({"type": "object"}, "${step.output.code}"),
        ({"$ref": "#/$defs/It", "$defs": {"It": {"type": "object"}}}, "${step.output.code}"),
        ({"type": "object", "additionalProperties": False}, None),
        ({"type": "string"}, None),
        ({"anyOf": [TEXT, {"type": "null"}]}, None),
        (GIVEN, None),
    ],
)
def test_what_a_tool_gives_that_says_nothing_of_its_fields_may_have_the_one_that_is_needed(
    result: Any, gets: str | None
) -> None:
    inverse, acting = spec("undo", {}, ("code",), code=TEXT), spec("do", result)
    assert arguments_of(inverse, acting).get("code") == gets
    assert bool(misfit_of_inverse(inverse, acting)) == (gets is None)


def test_the_whole_is_given_where_it_is_asked_for() -> None:
    inverse = spec("undo", {}, ("input", "output"), input={}, output={})
    assert arguments_of(inverse, spec("do", TEXT)) == {"input": "${step.input}", "output": "${step.output}"}


def test_inverses_that_cannot_be_one_are_told(says: Says) -> None:
    strange = (
        spec("a", GIVEN, (), "cancle"),
        spec("b", TEXT, (), "cancel"),
        spec("c", GIVEN, (), "look"),
        replace(HOLD, name="d", in_doubt="call"),
        replace(spec("e", TEXT, (), "free"), in_doubt="call", sees_key=False),
        spec("free", TEXT, ("step_key",), step_key=TEXT),
        CANCEL,
        replace(spec("look", {}), effect="pure"),
    )
    says(dict(problems_of_inverses({one.name: one for one in strange})))
    assert list(problems_of_inverses(TOOLS)) == []


# ---- documents ---------------------------------------------------------------------------------------------------------


def test_a_document_needs_to_say_nothing() -> None:
    found = undo("{tool: hold, with: {city: x}}")
    assert found.step.arguments == arguments_of(CANCEL, HOLD)
    assert (found.step.tool, found.keeps) == ("cancel", ("city", "party"))
    assert found.step.failures[ANY].retry == RetryChange(max_attempts=5, budget_ms=600_000)


def test_a_document_says_another_tool_other_arguments_and_other_times() -> None:
    found = undo(
        "{tool: hold, with: {city: x}, compensate: {tool: unmail, with: {to: '${step.input}'}, timeout: 3s}}"
    )
    assert (found.step.tool, found.step.arguments, found.step.timeout_ms) == (
        "unmail",
        {"to": "${step.input}"},
        3_000,
    )
    assert found.keeps is None


@pytest.mark.parametrize(
    ("said", "retry"),
    [
        ("quick", RetryChange(preset="quick")),
        ("{max_attempts: 2}", RetryChange(max_attempts=2, budget_ms=600_000)),
        ("{budget: 1h}", RetryChange(max_attempts=5, budget_ms=3_600_000)),
    ],
)
def test_a_document_says_how_an_undo_is_tried_again(said: str, retry: RetryChange) -> None:
    found = undo(f"{{tool: hold, with: {{city: x}}, compensate: {{retry: {said}}}}}")
    assert (found.step.tool, found.step.failures[ANY].retry) == ("cancel", retry)


def test_an_inverse_may_have_to_be_approved_and_has_its_own_time() -> None:
    step = undo("{tool: pay}", "pay").step
    assert step.approval is not None
    assert (step.approval.by_tool, step.timeout_ms, step.cost) == (False, 4_000, 0)


def test_nothing_is_undone_where_the_document_says_so() -> None:
    node = compiled("nodes: {a: {tool: hold, with: {city: x}, compensate: none}}").nodes[0]
    assert (node.undo, node.stays) == ({}, True)
    node = compiled("compensate: none\nnodes: {a: {tool: hold, with: {city: x}}}").nodes[0]
    assert (node.undo, node.stays) == ({}, False)
    assert compiled("nodes: {a: {tool: mail}}").nodes[0].undo == {}


def test_what_is_done_in_a_tools_place_has_the_inverse_of_that_tool() -> None:
    policy = "failover: [{name: p, when: {code: full}, then: {tool: pay}}]"
    node = compiled(
        f"nodes: {{a: {{tool: hold, with: {{city: x}}, compensate: none}}, b: {{tool: hold, with: {{city: x}}, {policy}}}}}"
    ).nodes[1]
    assert {tool: one.step.tool for tool, one in node.undo.items()} == {
        "hold": "cancel",
        "order": "unorder",
        "pay": "refund",
    }
    assert node.undo["order"].keeps == ()


def test_an_inverse_that_is_switched_off_is_none() -> None:
    tools = {name: one for name, one in TOOLS.items() if name != "cancel"}
    graph = compile_document("name: w\nnodes: {a: {tool: hold, with: {city: x}}}", tools)
    assert graph.nodes[0].undo.keys() == {"order"}


def test_calls_of_a_model_have_the_inverses_of_their_tools() -> None:
    agent = compiled("nodes: {a: {agent: {model: m, prompt: p, tools: [hold, mail]}}}").nodes[0].agent
    assert agent is not None
    assert [sorted(call.undo) for call in agent.calls] == [["hold", "order"], []]
    graph = compiled("nodes: {a: {tool: mail, replan: {model: m, tools: [pay]}}}")
    assert graph.nodes[0].replan is not None
    assert sorted(graph.nodes[0].replan.calls[0].undo) == ["pay"]


def test_an_agent_and_a_child_can_say_that_nothing_is_undone() -> None:
    graph = compiled(
        "nodes: {a: {agent: {model: m, prompt: p}, compensate: none}, b: {workflow: v, compensate: none}, c: {workflow: v}}"
    )
    assert [node.stays for node in graph.nodes] == [True, True, False]


def test_steps_can_be_undone_side_by_side() -> None:
    assert compiled("compensate: parallel\nnodes: {a: {tool: mail}}").undo_together
    assert compiled("compensate: sequential\nnodes: {a: {tool: mail}}") == compiled(
        "nodes: {a: {tool: mail}}"
    )


# ---- expressions -------------------------------------------------------------------------------------------------------


def test_a_step_has_an_input_and_an_output(says: Says) -> None:
    path = parse("step.input.city?.name")
    assert (path.root, path.inner, path.optional, path.up_to(1)) == (
        "step",
        ("city", "name"),
        True,
        "step.input.city?",
    )
    assert walk(path, {}) is None
    with says.raised(ExpressionError):
        walk(parse("step.output.id"), {})
    for text in ("step", "step.error", "step[0]"):
        with says.raised(ExpressionError):
            parse(text)
    with pytest.raises(ExpressionError, match="cannot read"):
        parse("step.input?")
