"""A loop that takes the items of its input one by one, by the number of its round."""

from __future__ import annotations

from tests.core.compiling import told
from tests.kit.sentences import Says


def test_an_index_is_checked_as_any_expression_where_it_stands(says: Says) -> None:
    nodes = "a: {with: {x: '${input.items[loop.iteration]}'}}"
    says([message for _, message, _ in told(nodes)])


def test_what_stands_before_the_index_is_checked_against_the_schema() -> None:
    nodes = "a: {value: {rows: [1]}}, b: {after: a, with: {x: '${ctx.a.output.lines[input.n]}'}}"
    assert any("nothing produces `lines`" in message for _, message, _ in told(nodes))


def test_a_node_whose_output_is_an_index_is_one_that_has_to_come_before(says: Says) -> None:
    nodes = "a: {}, b: {with: {x: '${input.rows[ctx.a.output.n]}'}}"
    says([message for _, message, _ in told(nodes)])
