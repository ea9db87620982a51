"""Steps that share a key: what is said of them when a document is checked. It is no problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.documents.compile import compile_document, shared_keys
from baton.core.effects.keys import Key, KeyRule
from baton.core.effects.toolspec import ToolSpec
from tests.core.build import tool_spec
from tests.core.compiling import document
from tests.kit.sentences import Says


def tools(key: KeyRule, effect: str) -> Mapping[str, ToolSpec]:
    parameters: dict[str, Any] = {"id": {}, "text": {}, "at": {"default": "noon"}}
    return {name: replace(tool_spec(name, **parameters), effect=effect, key=key) for name in ("t", "u")}


def said(key: KeyRule, nodes: str, effect: str = "once") -> list[str]:
    known = tools(key, effect)
    return list(shared_keys(compile_document(document(nodes), known), known))


EQUAL = "a: {with: {id: 1}}, b: {with: {id: 1.0, at: noon}, after: a}, c: {value: 1}"
LOOP = "a: {with: %s, loop: {while: output < 3, max_iterations: 5}}"


@pytest.mark.parametrize("effect", ["once", "idempotent"])
def test_nodes_that_make_the_same_call_of_a_tool_that_acts_once_in_a_saga_are_named(
    effect: str, says: Says
) -> None:
    says(said(Key.saga(), EQUAL, effect))


def test_wider_keys_are_told_with_the_time_for_which_they_hold(says: Says) -> None:
    (told,) = said(
        Key.content("id", keep="24h"), "a: {with: {id: '${input.x}'}}, b: {with: {id: '${input.x}', text: z}}"
    )
    says(told)
    (told,) = said(Key.window("5m"), "a: {}, b: {with: {text: z}}")
    says(told)
    (told,) = said(Key.user(), "a: {with: {text: z}}, b: {with: {text: z}}, c: {}")
    says(told)


@pytest.mark.parametrize(
    ("key", "effect", "nodes"),
    [
        (Key.node(), "once", EQUAL),
        (Key.saga(), "pure", EQUAL),
        (Key.saga(), "once", "a: {with: {id: 1}}, b: {with: {id: 2}}"),
        (Key.saga(), "once", "a: {with: {id: 1}}, b: {tool: u, with: {id: 1}}"),
        (Key.business("order", "id", version="at"), "once", "a: {with: {id: 1, at: 1}}, b: {with: {id: 1}}"),
        (Key.event("id.inner"), "once", "a: {with: {id: '${input.a}'}}, b: {with: {id: '${input.b}'}}"),
    ],
)
def test_nothing_is_said_where_each_acts(key: KeyRule, effect: str, nodes: str) -> None:
    assert said(key, nodes, effect) == []


def test_rounds_of_a_loop_act_each_unless_the_key_is_wider_than_the_saga_and_always_the_same(
    says: Says,
) -> None:
    (told,) = said(Key.content("id", keep="24h"), LOOP % "{id: 1, text: '${input.x}'}")
    says(told)
    assert said(Key.content("id"), LOOP % "{id: '${input.x}'}") == []
    assert said(Key.saga(), LOOP % "{id: 1}") == []
    assert said(Key.node(), LOOP % "{id: 1}") == []


def test_a_node_in_a_loop_and_one_outside_have_two_keys() -> None:
    assert said(Key.saga(), LOOP % "{id: 1}" + ", b: {with: {id: 1}, after: a}") == []
    assert said(Key.request(), LOOP % "{id: 1}" + ", b: {with: {id: 1}, after: a}") != []
