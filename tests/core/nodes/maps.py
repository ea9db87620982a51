"""Maps for the tests of the core."""

from __future__ import annotations

from typing import Any

from baton.core.decide.program import Program
from baton.core.graph.graph import Catch, Each, Graph, Node
from baton.core.nodes.registry import KINDS
from tests.core.build import AT_ONCE

DO = Node(name="m", kind="task", tool="t", arguments={"x": "${item}", "at": "${index}"})


def map_of(do: Node = DO, *, caught: bool = False, over: Any = "${input.l}", **each: Any) -> Program:
    """A map over the input's `l`, whose output is the saga's; where it is `caught`, `h` gives the batch result."""
    limits = {"at_once": 10, "most": 1_000, **each}
    handlers = ("h",) if caught else ()
    nodes = [
        Node(
            name="m",
            kind="map",
            arguments=over,
            each=Each(do=do, **limits),
            after=handlers,
            catch=tuple(Catch(then=handlers) for _ in handlers),
        )
    ]
    if caught:
        value = {
            "batch": "${last_error.batch}",
            "code": "${last_error.code}",
            "errors": "${last_error.errors}",
        }
        nodes.append(Node(name="h", kind="pass", before=("m",), value=value))
    output = {"m": "${ctx.m.output?}", "h": "${ctx.h.output?}"} if caught else "${ctx.m.output}"
    return Program(Graph(name="w", nodes=tuple(nodes), output=output, failures=AT_ONCE), KINDS)
