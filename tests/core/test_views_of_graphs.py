"""What the views say of a definition: its edges, the graphs that its document names, its failure handler."""

from __future__ import annotations

from typing import Any

from baton.core.conditions.model import Cel
from baton.core.graph.graph import Branch, Cap, Graph, Handler, Loop, Rule
from baton.core.log import events as ev
from baton.core.read.definition_views import graph_view
from baton.core.read.views import handler_view
from tests.core.build import Saga, chain, task
from tests.kit.views import as_json


def test_edges_say_what_decides_whether_they_are_taken() -> None:
    more = Cel(expression="output.more")
    loop = Loop(condition=more, max_iterations=3, back_to="a", break_path=("b",), timeout_path=("c",))
    branch = Branch(rules=(Rule(condition=more, then=("d",)),), default=("e",))
    graph = Graph(
        name="w",
        nodes=(
            task("a", loops=("t",)),
            task("t", "a", loops=("t",), loop=loop, branch=branch),
            *(task(name, "t") for name in "bcdef"),
        ),
        limits={"wall_time": Cap(most=7), "cost": Cap(most=1_500_000, then="throttle")},
    )
    shown = graph_view(graph)
    assert [(edge["from"], edge["to"], edge["kind"]) for edge in shown["edges"]] == [
        ("a", "t", "after"), ("t", "b", "break"), ("t", "c", "timeout"), ("t", "d", "branch"),
        ("t", "e", "branch"), ("t", "f", "after"), ("t", "a", "again"),
    ]  # fmt: skip
    assert shown["limits"] == {
        "wall_time_ms": {"most": 7, "then": "terminate"},
        "cost_usd": {"most": 1.5, "then": "throttle"},
    }
    condition = {"is": "cel", "expression": "output.more"}
    assert shown["nodes"][0] == {"name": "a", "kind": "task", "tool": "t", "tool_version": "", "effect": "",
                                 "loops": ["t"]}  # fmt: skip
    assert shown["nodes"][1]["loop"] == {
        "while": condition, "max_iterations": 3, "back_to": "a", "break_path": ["b"], "timeout_path": ["c"],
    }  # fmt: skip
    assert shown["nodes"][1]["branch"] == {
        "rules": [{"if": condition, "then": ["d"]}], "choose": None, "among": [], "default": ["e"],
    }  # fmt: skip


def test_a_definition_has_the_graphs_that_its_document_names_and_what_handles_its_failure() -> None:
    inner = Graph(name="one", nodes=(task("a"), task("b", "a")))
    by_graph = Graph(name="w", nodes=(task("n"),), graphs={"one": inner}, handler=Handler(workflow="w.one"))
    shown = graph_view(by_graph)
    (one,) = shown["graphs"]
    assert (one["name"], [node["name"] for node in one["nodes"]]) == ("one", ["a", "b"])
    assert one["edges"] == [{"from": "a", "to": "b", "kind": "after"}]
    assert shown["failure_handler"] == {"workflow": None, "graph": "one", "on_cancel": False}
    by_workflow = Graph(name="w", nodes=(task("n"),), handler=Handler(workflow="tell@2", on_cancel=True))
    shown = graph_view(by_workflow)
    assert (shown["graphs"], shown["failure_handler"]) == (
        [],
        {"workflow": "tell@2", "graph": None, "on_cancel": True},
    )


def test_an_end_says_which_saga_handles_its_failure_or_why_none_does() -> None:
    def ended(**more: Any) -> Any:
        saga = Saga(chain(1))
        saga.put(ev.SagaEnded(status="failed", failure=ev.Failure("boom", "x"), **more))
        return as_json(handler_view(saga.state))

    assert handler_view(Saga(chain(1)).state) is None
    assert ended() is None
    assert ended(handler="s.0.failure-handler") == {
        "saga": "s.0.failure-handler",
        "status": None,
        "why": None,
    }
    assert ended(unhandled=ev.Failure("not_found", "no `tell`")) == {
        "saga": None,
        "status": None,
        "why": "no `tell`",
    }
