"""What is written is read back as it was, and is what a person would write."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given

from baton.core.documents.text import _dumper, parse_document, write_yaml
from tests.core.build import JSON, PROPERTY
from tests.kit.sentences import Says


@given(JSON)
@PROPERTY
def test_every_value_is_read_back_as_it_was_written(value: Any) -> None:
    text = write_yaml({"value": value, "list": [value]})
    read = parse_document(text).value
    assert read == {"value": value, "list": [value]}
    assert repr(read["value"]) == repr(value)  # an integer is no float, and -0.0 is not 0.0


@pytest.mark.parametrize(
    "text",
    ["1e5", "1E400", "-0", "12", "0x1f", "1_000", "yes", "null", "~", "", "2026-12-24", "=", "<<", "${input.a}", "#no",
     "a: b", "- a", " a ", "a\nb\n", "\na", "  a\n b", "a \nb", "a\n\n", "a\x85b", "a\u2028b", "\u2029", "\r\n", "\ufeff",
     "\ufffe", "\x00", "\t", "%x", "@x", "`x`", "!x", "&a", "*a", "[", "{", "'", '"', "\\", "---", "...", "x" * 200,
     "word " * 60, "😀"],
)  # fmt: skip
def test_texts_that_mean_something_to_yaml_are_still_texts(text: str) -> None:
    value = {text: text, "list": [text, [text]], "map": {"x": {text: [text, 1]}}}
    assert parse_document(write_yaml(value)).value == value


def test_what_writes_is_made_once_and_sets_lists_in() -> None:
    made = _dumper.__wrapped__()
    assert yaml.dump({"a": [{"b": 1}]}, Dumper=made) == "a:\n  - b: 1\n"
    assert _dumper() is _dumper()


def test_it_looks_as_a_person_would_write_it(says: Says) -> None:
    value = {
        "name": "w",
        "nodes": {
            "a": {"tool": "t", "with": {"x": "${input.x}", "many": ["a", 1], "text": "one\ntwo\n"}},
            "b": {"workflow": "v@2", "after": ["a"], "with": {"rows": [{"x": 1, "y": None}]}},
        },
    }
    says(write_yaml(value))


def test_a_value_that_stands_in_two_places_is_written_twice() -> None:
    """Aliases are not read."""
    shared = {"a": [1]}
    assert parse_document(write_yaml([shared, shared])).value == [shared, shared]
    long = ["x" * 50, "y" * 50]
    assert write_yaml({"a": long}).count("\n") == 3
