"""Alternatives to a tool, as tools declare them: which there are, in which order, and what cannot be."""

from __future__ import annotations

import random
from typing import Any

import pytest

from baton.core.effects.toolspec import Merits, ToolSpec
from baton.core.failures.alternatives import (
    ANOTHER,
    Alternative,
    choose,
    declaration_problems,
    hooks_of,
    kinds_of,
    misfit,
    score,
    way_by,
    ways_of,
)
from tests.kit.sentences import Says

TEXT = {"type": "string"}


def spec(name: str, takes: str = "", result: Any = TEXT, **more: Any) -> ToolSpec:
    """A tool; of `takes`, what ends with `?` can be left out, and `**` is anything else."""
    words = takes.split()
    names = [word.rstrip("?") for word in words if word != "**"]
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": dict.fromkeys(names, TEXT),
        "required": [word for word in words if word in names],
    }
    if "**" not in words:
        parameters["additionalProperties"] = False
    effect = more.pop("effect", "idempotent")
    return ToolSpec(name=name, version="1", effect=effect, parameters=parameters, result=result, **more)


def specs(*all_of_them: ToolSpec) -> dict[str, ToolSpec]:
    return {one.name: one for one in all_of_them}


def names(ways: tuple[Alternative, ...]) -> list[str]:
    return [way.name for way in ways]


# ---- in its place --------------------------------------------------------------------------------------------------


def test_a_tool_that_stands_in_is_a_way_with_its_hints() -> None:
    tools = specs(
        spec("search.google", "query"),
        spec("search.bing", "query count?", instead_of=("search.google",), hints=("alternative_provider",)),
    )
    assert ways_of("search.google", tools) == (
        Alternative(name="search.bing", tool="search.bing", hints=("alternative_provider",)),
    )
    assert ways_of("search.bing", tools) == ()
    assert ways_of("search.altavista", tools) == ()


def test_a_pattern_means_the_tools_that_fit_but_not_itself() -> None:
    tools = specs(
        spec("search.google", "query"),
        spec("search.image", "picture"),
        spec("search.any", "query", instead_of=("search.*",)),
    )
    assert names(ways_of("search.google", tools)) == ["search.any"]
    assert ways_of("search.image", tools) == ()
    assert ways_of("search.any", tools) == ()
    assert list(declaration_problems(tools)) == []


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (spec("b", ""), "it takes no `a`"),
        (spec("b", "a b"), "it needs `b`, which `t` can do without"),
        (spec("b", "a more"), "it needs `more`, which `t` can do without"),
        (spec("b", "a", {"type": "object"}), "it gives `object`, and `t` gives `string`"),
        (
            spec("b", "a", {"type": ["integer", "null"]}),
            "it gives `integer` or `null`, and `t` gives `string`",
        ),
        (spec("b", "a more?"), ""),
        (spec("b", "**"), ""),
        (spec("b", "a", {}), ""),
    ],
)
def test_what_stands_in_takes_what_the_other_needs_and_gives_the_same(other: ToolSpec, why: str) -> None:
    assert misfit(other, spec("t", "a b?")) == why


def test_a_whole_number_is_a_number_and_an_untyped_schema_fits_every_type() -> None:
    assert misfit(spec("b", "", {"type": "integer"}), spec("t", "", {"type": "number"})) == ""
    assert misfit(spec("b", "", {"type": "number"}), spec("t", "", {"type": "integer"})) != ""
    assert misfit(spec("b", "", {"type": "object"}), spec("t", "", {"type": "null"})) == ""
    assert misfit(spec("b", "", {"type": "object"}), spec("t", "", {})) == ""


def test_an_object_has_what_is_always_there_in_the_other(says: Says) -> None:
    def gives(*properties: str) -> dict[str, Any]:
        return {"type": "object", "properties": dict.fromkeys(properties, TEXT), "required": list(properties)}

    behind_a_name = {"$ref": "#/$defs/Hit", "$defs": {"Hit": gives("url")}}
    for ours in (gives("url"), behind_a_name):
        says(misfit(spec("b", "", gives("link")), spec("t", "", ours)))
        assert misfit(spec("b", "", gives("link", "url")), spec("t", "", ours)) == ""
        assert misfit(spec("b", "", {"type": "object"}), spec("t", "", ours)) == ""


def test_kinds_are_those_that_a_schema_allows() -> None:
    assert kinds_of({"anyOf": [TEXT, {"type": "null"}]}) == {"string", "null"}
    assert kinds_of({"anyOf": [TEXT, {}]}) == frozenset()
    assert kinds_of({"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"type": "array"}}}) == {"array"}


# ---- before it, with other values, with less -----------------------------------------------------------------------


def test_a_tool_that_carries_out_hints_is_called_first_and_one_for_hooks_is_no_way() -> None:
    tools = specs(
        spec("crm.find", "account name?"),
        spec(
            "crm.login",
            "account failure",
            carries_out=("refresh_credentials", "clear_cache"),
            for_tools=("crm.*",),
        ),
        spec("page.reload", "", carries_out=("refresh_page",)),
    )
    assert ways_of("crm.find", tools) == (
        Alternative(name="crm.login first", tool="crm.login", hints=("refresh_credentials",), first=True),
    )
    assert hooks_of("crm.find", tools) == {
        "clear_cache": "crm.login",
        "refresh_credentials": "crm.login",
        "refresh_page": "page.reload",
    }
    assert hooks_of("crm.login", tools) == {"refresh_page": "page.reload"}
    assert hooks_of("nowhere", tools) == {}


def test_a_tool_that_needs_what_is_not_there_carries_out_nothing() -> None:
    tools = specs(
        spec("crm.find", "name?"),
        spec("crm.login", "name", carries_out=("refresh_credentials",), for_tools=("*",)),
    )
    assert (ways_of("crm.find", tools), hooks_of("crm.find", tools)) == ((), {})


def test_what_names_the_tool_most_exactly_carries_out_its_hook_then_the_best() -> None:
    tools = specs(
        spec("a.b.c"),
        spec("x", carries_out=("clear_cache",), for_tools=("*",), merits=Merits(reliability=1.0)),
        spec("y", carries_out=("clear_cache",), for_tools=("a.*", "z.*")),
    )
    assert hooks_of("a.b.c", tools) == {"clear_cache": "y"}
    tools |= specs(spec("z", carries_out=("clear_cache",), for_tools=("a.*",), merits=Merits(cost=0.5)))
    assert hooks_of("a.b.c", tools) == {"clear_cache": "z"}
    tools |= specs(spec("exact", carries_out=("clear_cache",), for_tools=("a.b.c",), merits=Merits(fit=0.0)))
    assert hooks_of("a.b.c", tools) == {"clear_cache": "exact"}
    assert hooks_of("other", tools | specs(spec("other"))) == {"clear_cache": "x"}


def test_values_are_ways_in_their_order() -> None:
    tools = specs(spec("llm.ask", "model", fallbacks={"model": ("m2", "m1", {"id": "x" * 60}), "n": (2,)}))
    ways = ways_of("llm.ask", tools)
    assert names(ways) == ["model=m2", "model=m1", "model #3", "n=2"]
    assert [way.arguments for way in ways] == [
        {"model": "m2"},
        {"model": "m1"},
        {"model": {"id": "x" * 60}},
        {"n": 2},
    ]
    assert {way.hints for way in ways} == {ANOTHER}


@pytest.mark.parametrize(
    ("result", "effect", "expected"),
    [
        (TEXT, "idempotent", ["text shorter", "text in parts"]),
        ({"type": "array"}, "pure", ["text shorter", "text in parts"]),
        ({"type": "object"}, "idempotent", ["text shorter"]),
        ({}, "idempotent", ["text shorter"]),
        (TEXT, "once", ["text shorter"]),
    ],
)
def test_a_context_is_shortened_or_given_in_parts_if_the_results_can_be_put_together(
    result: Any, effect: str, expected: list[str]
) -> None:
    ways = ways_of("llm.ask", specs(spec("llm.ask", "text", result, effect=effect, context="text")))
    assert names(ways) == expected
    assert (ways[0].shorten, ways[0].hints) == ("text", ("truncate_context",))
    assert [(way.chunk, way.hints) for way in ways[1:]] == [("text", ("chunk_context",))] * (
        len(expected) - 1
    )


# ---- their order ---------------------------------------------------------------------------------------------------


def test_a_score_is_made_of_five_merits() -> None:
    usual = Merits(reliability=0.0, cost=1.0, latency=1.0, fit=0.0, preference=0.0)
    assert score(usual) == 0
    assert score(Merits(reliability=1.0, cost=0.0, latency=0.0, fit=1.0, preference=1.0)) == 100
    assert score(Merits(reliability=0.98, cost=1.0, latency=1.0, fit=1.0, preference=0.5)) == pytest.approx(
        59.4
    )
    assert score(Merits(reliability=0.95, cost=1.2, latency=1.1, fit=1.0, preference=0.5)) == pytest.approx(
        53
    )
    assert score(Merits(cost=1.9)) > score(Merits(cost=2.0)) == score(Merits(cost=1_000.0))
    assert score(Merits(reliability=5.0)) == score(Merits(reliability=1.0))


def test_the_best_way_is_first_and_equal_ones_are_in_the_order_of_their_names() -> None:
    tools = [
        spec("t", fallbacks={"m": ("1",)}, context="m"),
        spec("fine", instead_of=("t",)),
        spec("cheap", instead_of=("t",), merits=Merits(cost=0.2)),
        spec("good", instead_of=("*",)),
        spec("slow", carries_out=("request_permissions",), merits=Merits(latency=1.5)),
    ]
    expected = ["cheap", "fine", "good", "m=1", "m shorter", "slow first", "m in parts"]
    assert names(ways_of("t", specs(*tools))) == expected
    for seed in range(5):
        random.Random(seed).shuffle(tools)
        assert names(ways_of("t", specs(*tools))) == expected


# ---- which one is next ---------------------------------------------------------------------------------------------

A = Alternative(name="a", hints=("fallback_model",))
B = Alternative(name="b", hints=("alternative_source", "fallback_model"))
ANY = Alternative(name="any")


def test_the_first_hint_that_has_a_way_left_counts() -> None:
    ways = (ANY, A, B)
    assert choose(("fallback_model", "alternative_source"), ways, ()) is A
    assert choose(("alternative_source", "fallback_model"), ways, ()) is B
    assert choose(("alternative_source", "fallback_model"), ways, ("b",)) is A
    assert choose(("alternative_source",), ways, ("b",)) is ANY


def test_without_a_hint_only_what_fits_any_is_left() -> None:
    assert choose((), (A, B, ANY), ()) is ANY
    assert choose((), (A, B), ()) is None
    assert choose(("alternative_path",), (A, ANY), ("any",)) is None


# ---- a tool that a document names ----------------------------------------------------------------------------------


def test_a_tool_that_a_document_names_stands_in_if_it_takes_the_same_else_it_helps() -> None:
    tools = specs(
        spec("t", "a"),
        spec("same", "a"),
        spec("helper", "failure"),
        spec("declared", "a", carries_out=("clear_cache",)),
        spec("neither", "b"),
        spec("once", "a", effect="once"),
        spec("once_before", "failure", effect="once"),
    )
    assert way_by("same", "t", tools) == Alternative(name="same", tool="same", hints=("same",))
    for name in ("helper", "declared"):
        assert way_by(name, "t", tools) == Alternative(
            name=f"{name} first", tool=name, hints=(name,), first=True
        )
    assert way_by("once", "t", tools) == Alternative(name="once", tool="once", hints=("once",)), (
        "with a claim of its own"
    )
    for name in ("neither", "t", "nowhere", "once_before"):
        assert way_by(name, "t", tools) is None
    assert way_by("same", "nowhere", tools) is None


# ---- what tools cannot say of each other ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tool",
    [
        spec("x", "id", verify="pay.fnd"),
        spec("x", "number", verify="pay.find"),
        spec("x", "id", verify="pay.card"),
        spec("x", "id", instead_of=("zzz",)),
        spec("x", "", instead_of=("pay.find",)),
        spec("x", "", instead_of=("pay.*",)),
        spec("x", "q", carries_out=("clear_cache",), for_tools=("pay.find",)),
    ],
)
def test_what_tools_say_of_each_other_is_held_against_them(tool: ToolSpec, says: Says) -> None:
    tools = specs(spec("pay.find", "id"), spec("pay.card", "id", effect="once", verify="pay.find"), tool)
    says(list(declaration_problems(tools)))


def test_a_pattern_may_mean_no_tool_of_this_application(says: Says) -> None:
    tool = spec("x", "id failure", instead_of=("search.*",), carries_out=("clear_cache",), for_tools=("*",))
    assert list(declaration_problems(specs(tool))) == []
    says(list(declaration_problems(specs(tool, spec("other")))))
