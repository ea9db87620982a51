"""Forms from JSON Schemas: what they ask, what they bring, and where it is said that something is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.console.forms import MOST_FIELDS, FormField, fields_of, form_data, places
from baton.errors import Problem
from tests.kit.sentences import Says

TRIP = {
    "type": "object",
    "properties": {
        "seats": {"type": "integer", "title": "Seats", "description": "With children."},
        "where": {"type": "string", "enum": ["window", "door"]},
        "quiet": {"type": "boolean"},
        "price": {"type": "number", "default": 2.5},
        "day": {"type": "string", "format": "date"},
        "note": {"type": "string", "maxLength": 2000},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "zip": {"type": "string"}},
            "required": ["street"],
        },
        "guests": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
        "any": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    },
    "required": ["seats", "quiet"],
}


def said(**fields: str) -> dict[str, list[str]]:
    return {f"/data/{name.replace('__', '/')}": [value] for name, value in fields.items()}


def by_name(form: FormField) -> dict[str, FormField]:
    return {form.name: form} | {name: found for one in form.of for name, found in by_name(one).items()}


def test_every_kind_of_value_has_a_field_with_its_label() -> None:
    found = by_name(fields_of(TRIP, None))
    kinds = {name.removeprefix("/data/"): one.kind for name, one in found.items()}
    assert kinds == {
        "/data": "group",
        "seats": "number",
        "where": "choice",
        "quiet": "check",
        "price": "number",
        "day": "text",
        "note": "long",
        "address": "group",
        "address/street": "text",
        "address/zip": "text",
        "guests": "rows",
        "guests/0": "group",
        "guests/0/name": "text",
        "any": "json",
    }
    seats = found["/data/seats"]
    assert (seats.label, seats.about, seats.required) == ("Seats", "With children.", True)
    assert (found["/data/price"].value, found["/data/day"].input) == ("2.5", "date")
    assert found["/data/where"].options == (("0", "window"), ("1", "door"))


def test_what_was_filled_in_comes_as_data_of_its_types_and_nothing_else() -> None:
    form = said(
        seats="4",
        where="1",
        quiet="false",
        price="",
        day="2026-12-24",
        address__street="Main 1",
        any='{"a": 1}',
    )
    form |= {
        "rows:/data/guests": ["2"],
        "/data/guests/0/name": ["Ada"],
        "/data/guests/1/name": [" "],
        "other": ["x"],
    }
    data, problems = form_data(TRIP, form)
    assert problems == []
    assert data == {
        "seats": 4,
        "where": "door",
        "quiet": False,
        "day": "2026-12-24",
        "address": {"street": "Main 1"},
        "guests": [{"name": "Ada"}],
        "any": {"a": 1},
    }


def test_what_is_wrong_is_said_at_its_field_and_what_was_written_stays(says: Says) -> None:
    form = said(seats="four", price="1.2.3", address__zip="1010", any="{")
    _, problems = form_data(TRIP, form)
    wrong = {one.path: one.message for one in problems}
    says(wrong["/data/seats"])
    assert wrong["/data/price"] == "must be a number"
    assert wrong["/data/address/street"] == "is needed"
    assert wrong["/data/any"].startswith("is no JSON")
    shown = by_name(fields_of(TRIP, form, problems))
    assert shown["/data/seats"].value == "four"
    says(shown["/data/seats"].problems)
    assert set(wrong) <= places(fields_of(TRIP, form))


def test_an_optional_group_that_was_left_empty_misses_nothing() -> None:
    data, problems = form_data(TRIP, said(seats="1", quiet="true"))
    assert (data, problems) == ({"seats": 1, "quiet": True}, [])


def test_a_row_is_added_on_request() -> None:
    form = {"rows:/data/guests": ["1"], "/data/guests/0/name": ["Ada"], "more": ["/data/guests"]}
    rows = by_name(fields_of(TRIP, form))["/data/guests"]
    assert [one.of[0].value for one in rows.of] == ["Ada", ""]


def test_a_name_with_a_slash_is_one_field() -> None:
    schema = {"type": "object", "properties": {"a/b~c": {"type": "string"}}}
    (field,) = fields_of(schema, None).of
    assert field.name == "/data/a~1b~0c"
    assert form_data(schema, {field.name: ["x"]}) == ({"a/b~c": "x"}, [])


def test_references_are_followed_as_far_as_a_form_goes() -> None:
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
            }
        },
    }
    deepest = max(by_name(fields_of(tree, None)), key=len)
    assert by_name(fields_of(tree, None))[deepest].kind == "json"
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert fields_of(loop, None).kind == "json"


def test_a_schema_that_is_too_large_has_a_bounded_form() -> None:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(6):
        inner = {"type": "object", "properties": {f"p{number}": inner for number in range(9)}}
    assert len(by_name(fields_of(inner, None))) < MOST_FIELDS * 12


@pytest.mark.parametrize(
    "schema", [True, False, None, {}, {"type": ["string", "null"]}, {"enum": []}, {"const": 1}]
)
def test_what_no_field_can_say_is_json(schema: Any) -> None:
    assert fields_of(schema, None).kind == "json"
    assert form_data(schema, {"/data": ["[1]"]}) == ([1], [])


def test_what_the_api_says_elsewhere_is_not_lost() -> None:
    assert "/data/unknown" not in places(fields_of(TRIP, None, [Problem("/data/unknown", "is strange")]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "enum",
                    "required",
                    "$ref",
                    "default",
                    "a",
                    "minItems",
                    "maxLength",
                    "title",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)  # others run on this machine
@given(
    JSON,
    st.dictionaries(
        st.sampled_from(["/data", "/data/a", "rows:/data", "more"]), st.lists(st.text(max_size=5), max_size=2)
    ),
)
def test_no_schema_and_no_form_breaks_it(schema: Any, form: dict[str, list[str]]) -> None:
    fields_of(schema, None)
    fields_of(schema, form)
    form_data(schema, form)
