"""What would help where a node is skipped with one that a `when` skips: how long it is looked for."""

from __future__ import annotations

from baton.core.compile import MAX_HINTS
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
