"""What a tool says of itself besides its function: kept in its spec, and each mistake told with what would be right."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from baton import Merits, Risk
from baton.core.effects.inverses import arguments_of
from baton.core.effects.keys import Key, KeyRule
from baton.core.effects.toolspec import ToolSpec
from baton.tools.define import REGISTRY, Registry, ToolError, tool
from baton.tools.standard import load_app
from tests.kit.sentences import Says


def ask(messages: list[dict[str, Any]], model: Literal["m1", "m2", "m3"] = "m1", size: int = 1) -> str:
    raise NotImplementedError


def plain(number: int) -> None: ...


def declared(function: Callable[..., Any] = ask, name: str = "t.ask", **more: Any) -> ToolSpec:
    registry = Registry()
    tool(name, registry=registry, **more)(function)
    return registry[name].spec


def refusal(function: Callable[..., Any] = ask, **more: Any) -> str:
    with pytest.raises(ToolError) as caught:
        declared(function, **more)
    text, _, place = str(caught.value).rpartition(" (")
    assert (
        place == f"`{function.__name__}`, tests/tools/test_abilities.py:{function.__code__.co_firstlineno})"
    )
    return text.removeprefix("tool `t.ask`: ")


# ---- what is kept --------------------------------------------------------------------------------------------------


def test_a_tool_that_says_nothing_has_nothing() -> None:
    assert declared() == ToolSpec(
        name="t.ask", version="1", effect="idempotent", parameters=declared().parameters, result={"type": "string"}, sees_key=False
    )  # fmt: skip


def test_what_it_says_is_in_its_spec() -> None:
    spec = declared(
        domain="model_call",
        cost_usd="0.05",
        instead_of="llm.*",
        hints=["fallback_model", "fallback_model", "cheaper"],
        merits=Merits(reliability=0.98, cost=3),
        carries_out=("summarise_context", "think_twice"),
        for_tools=["llm.ask", "other.*"],
        fallbacks={"model": ["m2", "m3"], "size": (2,)},
        context="messages",
    )
    assert (spec.domain, spec.cost, spec.context) == ("model_call", 50_000, "messages")
    assert (spec.instead_of, spec.hints) == (("llm.*",), ("fallback_model", "cheaper"))
    assert (spec.carries_out, spec.for_tools) == (
        ("summarise_context", "think_twice"),
        ("llm.ask", "other.*"),
    )
    assert spec.merits == Merits(reliability=0.98, cost=3)
    assert spec.fallbacks == {"model": ("m2", "m3"), "size": (2,)}


def test_what_it_says_of_itself_changes_no_schema() -> None:
    assert declared(domain="database", cost_usd=1).schema_hash == declared().schema_hash


def test_what_carries_something_out_does_so_for_all_if_it_does_not_say() -> None:
    assert declared(carries_out="clear_cache").for_tools == ("*",)
    assert declared(carries_out="clear_cache", for_tools=()).for_tools == ("*",)


def test_once_has_a_key_and_a_tool_that_looks() -> None:
    spec = declared(effect="once", verify="pay.find", key=Key.content("model"))
    assert (spec.effect, spec.verify, spec.key.parts) == ("once", "pay.find", ("model",))
    assert declared(effect="once").key == KeyRule()
    assert declared(key=Key.request()).key.strategy == "request"


@pytest.mark.parametrize(("usd", "micro"), [(0, 0), (Decimal("0.0000001"), 1), (2.5, 2_500_000)])
def test_what_it_costs_is_kept_in_millionths_of_a_dollar(usd: Any, micro: int) -> None:
    assert declared(cost_usd=usd).cost == micro


def test_a_tool_may_be_called_again_by_an_agent() -> None:
    assert declared(repeatable=True).repeatable
    assert declared(repeatable=True, effect="once", key=Key.window("1h")).repeatable
    assert not declared().repeatable


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        {"domain": "databse"},
        {"cost_usd": "much"},
        {"cost_usd": -1},
        {"key": "id"},
        {"key": Key.request(), "effect": "pure"},
        {"key": Key.content("modl")},
        {"undo": 3},
        {"undo": "Cancel"},
        {"undo": "t.cancel", "effect": "pure"},
        {"in_doubt": "look", "undo": "t.cancel"},
        {"in_doubt": "ask"},
        {"verify": "Pay", "effect": "once"},
        {"verify": "t.ask", "effect": "once"},
        {"verify": "pay.find", "effect": "pure"},
        {"repeatable": "yes"},
        {"repeatable": True, "key": Key.saga()},
        {"instead_of": 5},
        {"instead_of": ["a", ""]},
        {"instead_of": "Search"},
        {"instead_of": "t.ask"},
        {"hints": "fallback_model"},
        {"instead_of": "a", "hints": "fallback_models"},
        {"instead_of": "a", "hints": "clear_cache"},
        {"carries_out": "refresh_pages"},
        {"carries_out": "Log in"},
        {"carries_out": "refresh_credentials", "effect": "once"},
        {"for_tools": "crm.*"},
        {"carries_out": "clear_cache", "for_tools": "a b"},
        {"merits": 5},
        {"merits": Merits()},
        {"instead_of": "a", "merits": Merits(fit=2)},
        {"instead_of": "a", "merits": Merits(cost=-1)},
        {"instead_of": "a", "merits": Merits(latency=math.nan)},
        {"instead_of": "a", "merits": Merits(preference=True)},
        {"fallbacks": ["m2"]},
        {"fallbacks": {"modell": ["m2"]}},
        {"fallbacks": {"zzz": ["m2"]}},
        {"fallbacks": {"model": "m2"}},
        {"fallbacks": {"model": []}},
        {"fallbacks": {"model": ["m2", "m2"]}},
        {"fallbacks": {"model": ["m9"]}},
        {"context": "mesages"},
        {"context": "size"},
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_what_would_be_right(said: dict[str, Any], says: Says) -> None:
    says(refusal(**said))


def test_a_value_that_json_knows_nothing_of_is_told(says: Says) -> None:
    says.within(refusal(fallbacks={"size": [{1}]}))


def test_a_function_without_parameters_has_nothing_to_name(says: Says) -> None:
    def nothing() -> None: ...

    says(refusal(nothing, context="text"))


def test_a_parameter_of_any_type_may_be_a_context() -> None:
    def anything(value: Any, text: str | None = None) -> None: ...

    assert [declared(anything, context=name).context for name in ("value", "text")] == ["value", "text"]


# ---- what tools say of each other ----------------------------------------------------------------------------------


def test_a_registry_holds_against_tools_what_they_say_of_each_other(says: Says) -> None:
    registry = Registry()
    tool("a", registry=registry, instead_of="b")(plain)
    with says.raised(ToolError):
        registry.check()
    tool("b", registry=registry)(ask)
    with says.raised(ToolError):
        registry.check()
    tool("a", registry=registry, instead_of="c")(plain)
    tool("c", registry=registry)(plain)
    registry.check()


def test_an_app_whose_tools_contradict_each_other_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    (tmp_path / "an_app_that_contradicts_itself.py").write_text(
        "from baton import tool\n\n"
        "@tool('this_test.pay', effect='once', verify='this_test.look')\ndef pay() -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        with says.raised(ToolError):
            load_app("an_app_that_contradicts_itself")
    finally:
        REGISTRY._tools.pop("this_test.pay")


# ---- inverses -------------------------------------------------------------------------------------------------------


class Held(BaseModel):
    id: str
    at: str = "19:30"
    note: str | None = None


def hold(city: str, party: int = 2) -> Held:
    raise NotImplementedError


def inverse_of(undo: Callable[..., Any], acting: Callable[..., Any] = hold, **more: Any) -> dict[str, Any]:
    """The arguments that the inverse gets."""
    registry = Registry()
    tool("hold", undo="cancel", registry=registry)(acting)
    tool("cancel", registry=registry, **more)(undo)
    registry.check()
    return arguments_of(registry["cancel"].spec, registry["hold"].spec)


def test_an_inverse_gets_what_the_tool_gave_else_what_it_got() -> None:
    def cancel(
        id: str, city: str, at: str, party: int = 0, note: str = "", input: Any = None, other: int = 1
    ) -> None: ...

    assert inverse_of(cancel) == {
        "id": "${step.output.id}",
        "city": "${step.input.city}",
        "at": "${step.output.at?}",
        "party": "${step.input.party?}",
        "note": "${step.output.note?}",
        "input": "${step.input}",
    }


def test_an_inverse_may_take_a_field_of_an_output_that_says_nothing_of_its_fields() -> None:
    def book(city: str) -> dict[str, Any]:
        raise NotImplementedError

    def cancel(id: str, output: dict[str, Any], late: bool = False) -> None: ...

    assert inverse_of(cancel, book) == {"id": "${step.output.id}", "output": "${step.output}"}


def test_an_inverse_that_cannot_be_one_is_refused(says: Says) -> None:
    def cancel() -> None: ...

    with says.raised(ToolError):
        inverse_of(cancel, effect="pure")
    registry = Registry()
    tool("hold", undo="cancel", registry=registry)(hold)
    with says.raised(ToolError):
        registry.check()


def test_an_inverse_whose_arguments_nothing_fills_is_refused(says: Says) -> None:
    def cancel(code: str) -> None: ...

    def number(city: str) -> int:
        raise NotImplementedError

    for acting in (hold, number):
        with says.raised(ToolError):
            inverse_of(cancel, acting)


# ---- approvals -----------------------------------------------------------------------------------------------------


def buy(total: dict[str, Any], currency: str, guests: int) -> None: ...


def test_what_a_tool_says_of_its_risk_is_kept() -> None:
    risk = Risk(action="payment", amount="total.due", currency="currency", minor=True, party="guests")
    spec = declared(buy, risk=risk, requires_approval=True)
    assert (spec.risk, spec.requires_approval, spec.may_ask) == (risk, True, True)
    assert not declared(buy).may_ask


def test_an_approval_of_a_tool_has_the_fields_of_a_document() -> None:
    steps = [{"after": "1h", "hand_on": {"role": "operate"}}, {"after": "2h", "decide": "reject"}]
    spec = declared(buy, requires_approval={"to": {"group": "support"}, "expires": "3h", "escalate": steps})
    assert (spec.requires_approval, spec.may_ask) == (True, True)
    assert spec.approval is not None
    assert (spec.approval.says["to"], spec.approval.expires_ms) == ({"group": "support"}, 10_800_000)
    risky = declared(buy, risk=Risk(action="booking"), requires_approval={"always": False, "title": "Buy?"})
    assert (risky.requires_approval, risky.may_ask) == (False, True)


@pytest.mark.parametrize(
    "said",
    [
        {"requires_approval": 1},
        {"requires_approval": {"tto": "starter"}},
        {"requires_approval": {"too": {"group": "support"}}},
        {"requires_approval": {"to": {"team": "support"}}},
        {"requires_approval": {"expires": "soon"}},
        {"requires_approval": {"title": "Pay ${input.amount}?"}},
        {"requires_approval": {"always": False}},
        {"requires_approval": {"escalate": [{"after": "1h", "decide": "approve"}]}},
        {"requires_approval": {"expires": "1h", "escalate": [{"after": "2h", "remind": True}]}},
        {"risk": "high"},
        {"risk": Risk(action="booking"), "effect": "pure"},
        {"risk": Risk(action="paymnt")},
        {"risk": Risk(action="payment")},
        {"risk": Risk(amount="total")},
        {"risk": Risk(currency_is="USD")},
        {"risk": Risk(amount="total", currency="currency", currency_is="USD")},
        {"risk": Risk(amount="total", currency_is="usd")},
        {"risk": Risk(minor=True)},
        {"risk": Risk(level="high")},
        {"risk": Risk(party="gests")},
        {"risk": Risk(amount="sum.due", currency_is="USD")},
    ],
)
def test_a_risk_that_cannot_be_is_refused(said: dict[str, Any], says: Says) -> None:
    says(refusal(buy, **said))
