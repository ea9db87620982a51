"""Named graphs of a document: the saga that expressions in the graph of a failure handler name."""

from __future__ import annotations

from baton.core.graph import graph as inner


def test_a_failure_handler_speaks_of_the_saga_that_has_failed() -> None:
    graph = f"order{inner._OF}undo"
    assert inner.written_for(f"s1.x.{inner.HANDLER}", graph) == ("s1", "order")
    assert inner.written_for("s1", "order") == ("s1", "order")
