"""The names and values of spans."""

from __future__ import annotations

import pytest

from baton.core.tracing import is_call, is_chosen_by_model, parent_of

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize("flags", ["01", "03", "ff"])
def test_a_trace_that_is_sampled_has_a_parent(flags: str) -> None:
    assert parent_of(f"00-{TRACE}-{SPAN}-{flags}") == (TRACE, SPAN)


@pytest.mark.parametrize(
    "text", ["", f"00-{TRACE}-{SPAN}-00", f"01-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}", "x"]
)
def test_no_trace_and_one_that_is_not_sampled_have_none(text: str) -> None:
    assert parent_of(text) is None


@pytest.mark.parametrize(
    ("item", "is_one"), [("t1-0", True), ("t12-34", True), ("t1", False), ("", False), ("0", False)]
)
def test_calls_of_models_are_told_by_their_items(item: str, is_one: bool) -> None:
    assert is_call(item) is is_one


def test_what_a_model_has_chosen_is_known_by_its_item() -> None:
    assert [is_chosen_by_model(item) for item in ("t1-0", "a2-1", "t1", "a1", "3", "")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
