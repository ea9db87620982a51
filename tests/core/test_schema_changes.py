"""Results of tools whose schema a deploy has changed: whether they still have all that a document reads of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.decision import RunStep
from baton.core.decide.program import Program
from baton.core.decide.schema_changes import reason_of, unfit_results, with_unfit
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.log.slots import Slot
from baton.core.nodes.registry import KINDS
from tests.kit.sentences import Says


def _result(*fields: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "integer"} for name in fields}, **more}


LOOK = ToolSpec(
    name="look", version="1", effect="pure", parameters={"type": "object"}, result=_result("price", "colour")
)
NEXT = replace(LOOK, version="2", result=_result("colour"))
OTHER = ToolSpec(
    name="work",
    version="1",
    effect="pure",
    parameters={"type": "object", "properties": {"n": {}, "i": {}}, "required": []},
    result={},
)
A = "a: {tool: look}"


def unfit(nodes: str, more: str = "", now: ToolSpec = NEXT) -> dict[str, str]:
    document = f"name: w\nnodes: {{{nodes}}}\n{more}"
    program = Program(compile_document(document, {"look": LOOK, "work": OTHER}), KINDS, build="b2")
    tools = {"look": now, "work": OTHER}
    found = unfit_results(program.graph, program.paths(), tools, program.build)
    assert program.has_other_schemas(tools) or not found
    assert program.with_unfit(found).unfit is found
    assert program.unfit == {}
    return found


@pytest.mark.parametrize(
    ("nodes", "more"),
    [
        (f"{A}, b: {{tool: work, after: a, with: {{n: '${{ctx.a.output.price}}'}}}}", ""),
        (f"{A}, b: {{value: 1, after: a, when: 'ctx.a.output.price > 1'}}", ""),
        (A, "output: ${ctx.a.output.price}"),
        (
            f"{A}, f: {{value: 1}}",
            "failure_handler: {workflow: f, with: {n: '${ctx.a.output?.price}'}}\noutput: ${ctx.a.output.price}",
        ),
        ("a: {tool: look, branch: {choose: output.price, among: [b], default: b}}, b: {value: 1}", ""),
        (
            "a: {map: [1, 2], tool: look}, b: {tool: work, after: a, with: {n: '${ctx.a.output[0].price}'}}",
            "",
        ),
    ],
)
def test_a_field_that_is_read_and_gone_does_not_fit(nodes: str, more: str) -> None:
    assert list(unfit(nodes, more)) == ["a"]
    assert unfit(nodes, more, replace(LOOK, version="2", result=_result("price"))) == {}, (
        "it has what is read"
    )
    assert unfit(nodes, more, LOOK) == {}


@pytest.mark.parametrize(
    ("nodes", "more"),
    [
        (A, ""),
        (A, "output: ${ctx.a.output}"),
        (A, "output: ${ctx.a.output.colour}"),
        (f"{A}, b: {{tool: work, after: a, with: {{n: '${{ctx.a.output?.price}}'}}}}", ""),
        (
            "a: {tool: look, output_schema: {type: object, properties: {price: {}}}}",
            "output: ${ctx.a.output.price}",
        ),
        ("a: {map: {over: [1, 2], tolerated_failures: 1}, tool: look}", "output: ${ctx.a.output.succeeded}"),
    ],
)
def test_what_is_not_read_of_the_tool_may_go(nodes: str, more: str) -> None:
    assert unfit(nodes, more) == {}


def test_an_open_schema_may_have_any_field() -> None:
    now = replace(NEXT, result=_result("colour", additionalProperties=True))
    assert unfit(A, "output: ${ctx.a.output.price}", now) == {}


def test_an_index_that_only_the_saga_knows_is_followed_no_further() -> None:
    nodes = "a: {tool: look}, b: {tool: work, after: a, with: {n: '${ctx.a.output[input.i].price}'}}"
    assert unfit(nodes) == {}


def test_what_has_changed_is_said_with_its_readers_the_versions_and_the_build(says: Says) -> None:
    nodes = f"{A}, b: {{tool: work, after: a, with: {{n: '${{ctx.a.output.price}}'}}}}"
    says(unfit(nodes, "output: ${ctx.a.output.price}"))


def test_only_the_first_call_of_its_own_tool_is_held_back() -> None:
    program = Program(compile_document(f"name: w\nnodes: {{{A}}}\n", {"look": LOOK}), KINDS)
    node = program.nodes["a"]
    step = RunStep("a", node, Slot.parse("a"), {})
    found = with_unfit(
        (step, replace(step, look=True), replace(step, place=Slot.parse("a#t1-0"))), {"a": "it does not fit"}
    )
    assert [one.unfit for one in found] == ["it does not fit", "", ""]
    assert with_unfit((step,), {"b": "x"}) == (step,)


def test_arguments_are_refused_because_of_a_deploy_unless_a_model_has_written_them(says: Says) -> None:
    program = Program(compile_document(f"name: w\nnodes: {{{A}}}\n", {"look": LOOK}), KINDS)
    step = RunStep("a", program.nodes["a"], Slot.parse("a"), {})
    says(reason_of(step, NEXT, ""))
    assert reason_of(step, LOOK, "b") == ""
    assert reason_of(step, None, "b") == ""
    assert reason_of(step, replace(NEXT, name="other"), "b") == ""
    assert reason_of(replace(step, node=replace(step.node, schema_hash="")), NEXT, "b") == ""
    assert reason_of(replace(step, place=Slot.parse("a#t1-0")), NEXT, "b") == ""
    assert reason_of(replace(step, place=Slot.parse("a#3")), NEXT, "b")
