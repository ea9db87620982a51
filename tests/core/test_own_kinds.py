"""An application's own kinds of node: expanded when a document is compiled, and told of at the author's node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from baton.core.conditions.schema import check_schema, violations
from baton.core.documents.compile import compile_document
from baton.core.documents.nodes.own import Step
from baton.core.documents.schema import document_schema, node_types
from baton.core.graph.graph import Graph, Node
from baton.core.nodes.registry import KINDS as BUILT_IN
from baton.errors import InvalidDefinition
from tests.core.messages import TOOLS
from tests.core.own import KINDS
from tests.kit.sentences import Says

BUY = {"purchase": {"city": "Rome"}}


def graph(nodes: Mapping[str, Any], **more: Any) -> Graph:
    return compile_document(json.dumps({"name": "w", "nodes": nodes, **more}), TOOLS, kinds=KINDS)


def nodes(given: Mapping[str, Any], **more: Any) -> dict[str, Node]:
    return {node.name: node for node in graph(given, **more).nodes}


def told(given: Any, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidDefinition) as caught:
        graph(given, **more)
    return [(problem.path, problem.message) for problem in caught.value.problems]


def test_the_graph_has_built_in_kinds_only_and_the_output_is_read_by_the_authors_name() -> None:
    made = nodes({"buy": BUY, "tell": {"tool": "t", "after": "buy", "with": {"x": "${ctx.buy.output.id}"}}})
    assert {name: node.after for name, node in made.items()} == {
        "buy__search": ("buy",),
        "buy": ("tell",),
        "tell": (),
    }
    assert {node.kind for node in made.values()} <= BUILT_IN.keys()
    assert made["buy"].arguments == {"amount": "${ctx.buy__search.output.score}"}


def test_it_is_the_graph_that_the_built_in_kinds_give() -> None:
    own = graph({"rest": {"pause": {"minutes": 5}, "when": "input.tired"}})
    assert own == graph({"rest": {"wait": {"for": "5m"}, "when": "input.tired"}})
    assert compile_document('{"name": "w", "nodes": {"a": {"tool": "u.v"}}}', TOOLS) == graph(
        {"a": {"tool": "u.v"}}
    )


def test_names_of_an_expansion_are_unique() -> None:
    made = nodes({"buy": BUY, "buy__search": {"tool": "u.v"}, "buy__search_": {"tool": "u.v"}})
    assert made["buy__search__"].tool == "search"
    assert made["buy"].before == ("buy__search__",)


def test_what_leads_to_it_leads_to_its_first_node_and_what_it_leads_to_follows_its_last() -> None:
    made = nodes(
        {
            "a": {
                "tool": "t",
                "branch": {"rules": [{"if": "output.score > 1", "then": ["buy", "b"]}], "default": "buy"},
            },
            "c": {"tool": "u.v", "catch": [{"code": "timeout", "then": ["third"]}]},
            "third": BUY,
            "b": {"tool": "u.v", "catch": "other"},
            "other": BUY,
            "last": {"tool": "t", "after": "buy", "loop": {"while": "output.score < 1", "back_to": "buy"}},
            "buy": {**BUY, "catch": "tell", "branch": {"rules": [{"if": "true", "then": "then"}]}},
            "tell": {"tool": "u.v"},
            "then": {"tool": "u.v", "after": "last"},
        },
        guardrails={"allowed_transitions": {"a": ["buy", "b"]}},
    )
    assert made["a"].branch is not None
    assert made["a"].branch.rules[0].then == ("buy__search", "b")
    assert made["a"].branch.default == ("buy__search",)
    assert made["c"].catch[0].then == ("third__search",)
    assert made["b"].catch[0].then == ("other__search",)
    assert made["last"].loop is not None
    assert made["last"].loop.back_to == "buy__search"
    assert made["buy__search"].catch == made["buy"].catch
    assert (made["buy__search"].branch, made["buy"].branch is None) == (None, False)


def test_a_loop_over_it_is_over_all_of_its_nodes() -> None:
    made = nodes(
        {"buy": {**BUY, "after": "a", "loop": {"while": "loop.iteration < 3"}}, "a": {"tool": "u.v"}}
    )
    assert made["buy"].loop is not None
    assert made["buy"].loop.back_to == "buy__search"
    assert made["buy__search"].before == ("a",)
    alone = nodes({"rest": {"pause": {"minutes": 1}, "loop": {"while": "loop.iteration < 3"}}})["rest"].loop
    assert alone is not None
    assert alone.back_to == "rest"


def test_a_mistake_of_its_code_in_one_object_that_stands_in_two_places_is_told(says: Says) -> None:
    """An application's code may say the same thing twice. A document cannot: aliases of YAML are refused."""
    rule = {"if": "true", "thn": "b"}

    class Ways(BaseModel):
        def nodes(self, step: Step) -> dict[str, dict[str, Any]]:
            return {"a": {"tool": "u.v", "branch": {"rules": [rule, rule]}}}

    kinds = {"ways": KINDS["pause"]._replace(key="ways", model=Ways)}
    text = json.dumps({"name": "w", "nodes": {"a": {"ways": {}}, "b": {"tool": "u.v"}}})
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(text, TOOLS, kinds=kinds)
    says([(problem.path, problem.suggestion) for problem in caught.value.problems])
    assert rule == {"if": "true", "thn": "b"}


def test_a_document_of_another_shape_is_left_to_others(says: Says) -> None:
    assert told(5) == [("/nodes", "must be an object")]
    assert [path for path, _ in told({"a": 5, "buy": BUY, "c": {"tool": "t", "branch": 5, "catch": 5}})] == [
        "/nodes/a",
        "/nodes/c/branch",
        "/nodes/c/catch",
    ]
    assert told({"buy": BUY}, guardrails=5) == [("/guardrails", "must be an object")]
    says(told({"buy": BUY, "a": {"tool": "t", "branch": {"choose": "output.next", "among": "buy"}}})[0])


def test_a_kind_of_a_taken_name_is_refused(says: Says) -> None:
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(
            '{"name": "w", "nodes": {"a": {"tool": "u.v"}}}', TOOLS, kinds={"tool": KINDS["pause"]}
        )
    says([problem.message for problem in caught.value.problems])


def test_the_schema_knows_it_and_the_list_of_kinds_too() -> None:
    schema = document_schema({"purchase": KINDS["purchase"]})
    check_schema(schema)
    allowed = {"name": "w", "nodes": {"buy": {"purchase": {"city": "Rome", "limit": {"n": 1}}, "after": []}}}
    assert violations(schema, allowed) == ()
    assert violations(document_schema(), allowed) != ()
    assert violations(schema, {"name": "w", "nodes": {"buy": {"purchase": {"city": "Rome", "limit": 5}}}})
    purchase = next(type_ for type_ in node_types(KINDS) if type_["kind"] == "purchase")
    assert (purchase["version"], purchase["icon"], purchase["title"]) == ("2", "▣", "Purchase")
    assert violations(purchase["schema"], purchase["example"]) == ()
    assert violations(purchase["schema"], {"purchase": {}}) != ()
    assert set(purchase) == set(node_types()[0])
