"""How much is looked for and told: what helps a node that is skipped with another, mistakes of a schema, left-out input."""

from __future__ import annotations

import pytest

from baton.core.documents.compile import MAX_HINTS, compile_document
from baton.errors import InvalidDefinition
from tests.core.compiling import told

NODES = "a: {}, b: {after: a, when: input.x > 1}, c: {after: b}"
HELPS = "if `b` is skipped, `c` is skipped too; write `after: [a, b]` at `c`"
ELSE = "`ctx.c.output?` is null where it gave nothing"


def test_only_so_many_changes_are_tried() -> None:
    outputs = ", ".join(["'${ctx.c.output}'"] * (MAX_HINTS + 1))
    assert [hint for _, _, hint in told(NODES, f"output: [{outputs}]")] == [HELPS] * MAX_HINTS + [ELSE]


def test_in_a_large_document_none_is_tried() -> None:
    many = ", ".join(f"n{index}: {{}}" for index in range(500))
    assert [hint for _, _, hint in told(f"{NODES}, {many}", "output: '${ctx.c.output}'")] == [ELSE]


def test_what_helps_helps() -> None:
    assert told(NODES.replace("after: b", "after: [a, b]"), "output: '${ctx.c.output}'") == []


def test_only_the_first_mistakes_of_a_schema_are_told() -> None:
    fields = ", ".join(f"f{index}: {{type: strng}}" for index in range(101))
    assert len(told("a: {}", f"input: {{properties: {{{fields}}}}}")) == 100


def test_whether_a_condition_asks_for_an_input_is_looked_up_once() -> None:
    need = "{workflow: c, with: {x: '${input.x}'}}"
    text = f"name: w\ninput: {{properties: {{x: {{}}}}}}\nnodes: {{a: {need}, b: {need}}}\n"
    child = {"c": {"properties": {"x": {}}, "required": ["x"]}}
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(text, {}, children=child)
    assert [problem.path for problem in caught.value.problems] == ["/nodes/a/with/x", "/nodes/b/with/x"]
