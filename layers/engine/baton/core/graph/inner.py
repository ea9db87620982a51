"""Named graphs of a document: their names, where their definition is, and what they get from the place that starts them.

Each runs as a child saga. Its definition is a part of the graph that its starter runs, so that it needs no registration, no other
saga can start it, and a newer version of the document changes it for no saga that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

INPUT, OUTER = "input", "outer"
"""The two parts of what a named graph is started with: its input, and what its expressions name of the place that starts it."""
WHOLE_INPUT = "${input}"
"""The input of a named graph that is given no other one: that of its starter."""
HANDLER = "failure-handler"
"""The last part of the id of a failure handler's saga."""
_OF, _IN = ".", "#"


def inner_name(workflow: str, graph: str) -> str:
    """The name under which sagas of a named graph are listed. No workflow can be registered under it: a name has no dot."""
    return f"{workflow}{_OF}{graph}"


def name_of(workflow: str) -> str:
    """The name of the graph in the document; empty for a registered workflow."""
    return workflow.partition(_OF)[2]


def starter_of(workflow: str) -> str:
    """The workflow in whose document a named graph is; a registered workflow itself."""
    return workflow.partition(_OF)[0]


def written_for(saga: str, workflow: str) -> tuple[str, str]:
    """The saga that `saga` stands for where expressions say so, and its workflow: to a failure handler in the document, the one that has failed."""
    if not (name_of(workflow) and saga.endswith(f".{HANDLER}")):
        return saga, workflow
    return saga.rsplit(".", 2)[0], starter_of(workflow)


def inner_graph(graph: str, name: str) -> str:
    """What stands for the hash of a named graph in the saga that runs it. `graph`: the same of its starter."""
    return f"{graph.partition(_IN)[0]}{_IN}{name}"


def parts_of(graph: str) -> tuple[str, str]:
    """The hash of the document's graph, and the name of the graph in it that a saga runs; empty for that itself."""
    whole, _, name = graph.partition(_IN)
    return whole, name


def started(given: Any, seen: Mapping[str, Any]) -> dict[str, Any]:
    """What a named graph is started with. `seen`: a template of what it names of the place that starts it."""
    return {INPUT: given, **({OUTER: dict(seen)} if seen else {})}


def split(workflow: str, given: Any) -> tuple[Any, Any]:
    """The input of what is started, and for a named graph what it names of its starter, or None: as far as neither is passed by reference."""
    return (given.get(INPUT), given.get(OUTER)) if name_of(workflow) else (given, None)
