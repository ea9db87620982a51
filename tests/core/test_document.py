"""Text to data: JSON and YAML mean the same, every fault has its line and column, and no text is dangerous.

YAML here has JSON's values and nothing else: what looks like a date, a time of day or an octal number
stays the text that its author wrote.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given

from baton.core.documents import text as text_module
from baton.core.documents.text import MAX_DEPTH, MAX_VALUES, parse_document
from baton.errors import MalformedDocument, Problem
from tests.core.build import JSON, PROPERTY
from tests.kit.sentences import Says


def value(text: str) -> Any:
    return parse_document(text).value


def fault(text: str, *, json_only: bool = False) -> tuple[int, int, str]:
    with pytest.raises(MalformedDocument) as caught:
        parse_document(text, json_only=json_only)
    (problem,) = caught.value.problems
    assert caught.value.detail == f"line {problem.line}, column {problem.column}: {problem.message}"
    return problem.line, problem.column, problem.message


def position(text: str, path: str) -> tuple[int, int]:
    problem = parse_document(text).locate(Problem(path, "m", "s"))
    assert (problem.path, problem.message, problem.suggestion) == (path, "m", "s")
    return problem.line, problem.column


# ---- values ------------------------------------------------------------------------------------------------


@given(JSON)
@PROPERTY
def test_json_is_read_as_json(data: Any) -> None:
    for text in (json.dumps(data), json.dumps(data, ensure_ascii=False), json.dumps(data, indent="\t")):
        assert parse_document(text, json_only=True).value == json.loads(text)


class _Dumper(yaml.SafeDumper):
    """Writes every text in quotation marks, so that it cannot be taken for something else."""


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, '"'))


@given(JSON)
@PROPERTY
def test_yaml_that_was_written_from_json_is_read_as_that_json(data: Any) -> None:
    assert value(yaml.dump({"data": data}, Dumper=_Dumper)) == {"data": data}


@pytest.mark.parametrize("opening", ["", " \n"])
def test_json_with_an_emoji_or_a_tab_or_a_long_key_is_read(opening: str) -> None:
    data = {"smile": "😀", "slash": "a/b", "delete": "\x7f", "k" * 2_000: "\u2028"}
    assert value(opening + json.dumps(data)) == data
    assert value(opening + json.dumps(data, indent="\t", ensure_ascii=False)) == data
    assert value('{"a": "\\/"}') == {"a": "/"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1), ("-1", -1), ("0", 0), ("1.5", 1.5), ("1e3", 1000.0), ("-2.5E-1", -0.25),
        ("true", True), ("True", True), ("false", False), ("null", None), ("~", None), ("", None),
        ('"1"', "1"), ("'true'", "true"), ("|\n  text\n", "text\n"), ("[]", []), ("{}", {}),
        ("[1, two]", [1, "two"]), ("10" + "0" * 30, 10 * 10**30),
    ],
)  # fmt: skip
def test_the_values_of_yaml_are_those_of_json(text: str, expected: object) -> None:
    result = value(f"a: {text}")["a"]
    assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    "word",
    ["2026-12-24", "2026-12-24T19:30:00Z", "14:00", "14:00:30", "yes", "no", "on", "Off", "010", "0x1F", "0b1",
     "1_000", "+5", ".5", "1.", "=", "<<", "NaN", "Infinity", "1e", "--1", "1 2"],
)  # fmt: skip
def test_what_json_does_not_know_stays_the_text_that_it_is(word: str) -> None:
    assert value(f"a: {word}") == {"a": word}


def test_keys_are_text_whatever_they_look_like() -> None:
    assert value("1: a\ntrue: b\n2026-01-01: c\n~: d\n<<: {e: 1}") == {
        "1": "a", "true": "b", "2026-01-01": "c", "~": "d", "<<": {"e": 1},
    }  # fmt: skip


def test_a_yaml_document_in_flow_style_is_read_though_it_begins_like_json() -> None:
    assert value("{a: 1, b: [x, y]}") == {"a": 1, "b": ["x", "y"]}
    assert value("[x, y]") == ["x", "y"]
    assert value('{"a": 1,}') == {"a": 1}


def test_a_byte_order_mark_is_passed_over() -> None:
    assert value("\ufeffa: 1") == {"a": 1}


# ---- faults --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[1,\n2", id="JSON that ends too early"),
        pytest.param('{"a": 1} x', id="JSON with more behind it"),
        pytest.param('{\n "a": "x\n"}', id="a line break in a JSON string"),
        pytest.param('{"a": NaN}', id="NaN in JSON"),
        pytest.param('[true, null, NaN]', id="NaN behind words of JSON"),
        pytest.param('[1,\n -Infinity]', id="infinity in JSON"),
        pytest.param('{"a": 1e999}', id="a number above all numbers"),
        pytest.param("a: .nan", id="NaN in YAML"),
        pytest.param("a: -.Inf", id="infinity in YAML"),
        pytest.param("a: 1e999", id="the same in YAML"),
        pytest.param("a: " + "1" * 5_000, id="5,000 digits"),
        pytest.param('{"a": ' + "1" * 400 + "}", id="in JSON"),
        pytest.param("a: -" + "1" * 400, id="400 digits"),
        pytest.param("a: b: c", id="two colons"),
        pytest.param("a: [1", id="a list that does not end"),
        pytest.param('a:\n  "x', id="a string that does not end"),
        pytest.param("a: 1\n\tb: 2", id="a tab in YAML"),
        pytest.param("a: *x", id="an alias"),
        pytest.param("a: &x 1\nb: *x", id="a real one"),
        pytest.param("a: !!int x", id="a tag"),
        pytest.param("a: !!python/object:os.system x", id="a dangerous one"),
        pytest.param("a: 1\nb: 2\na: 3", id="a key twice in YAML"),
        pytest.param('{"a": 1,\n "a": 2}', id="a key twice in JSON"),
        pytest.param("? [1]\n: 2", id="a list as a key"),
        pytest.param("!!str a: 2", id="a tag on a key"),
        pytest.param("", id="nothing"),
        pytest.param("# a remark\n", id="only a remark"),
        pytest.param("a: 1\n---\nb: 2", id="two documents"),
        pytest.param("a: 1\nb: x\x01y", id="a control character"),
        pytest.param("\ufeffa: x\n\x00", id="behind a mark"),
        pytest.param("a: \ud800", id="half a character"),
        pytest.param('{"a": "\\ud800"}', id="half a one in JSON"),
        pytest.param('{"\\udc00": 1}', id="as a key"),
    ],
)  # fmt: skip
def test_a_fault_has_its_line_and_column(text: str, says: Says) -> None:
    says(fault(text))


@pytest.mark.parametrize(
    "text",
    [
        "a:\n  b: 1\n c: 2",
        "a:\n - b\n c: d",
        "a: b: c",
        "a: 1\nb\nc: 2",
        "a:\n\tb: 1",
        "a: 1\n\tb: 2",
        "\ta: 1",
        "a: @x",
        "a: {b: ${input.b}}",
        "a: [${input.b}]",
        "a: {b: 1\nc: 2",
        "a: - b",
        "a: 'x",
        'a: "\\q"',
        "a: |x\n y",
    ],
)
def test_a_fault_in_yaml_is_told_with_what_would_be_right(text: str, says: Says) -> None:
    with pytest.raises(MalformedDocument) as caught:
        parse_document(text)
    says(caught.value.problems[0].suggestion)


def test_half_a_character_written_as_an_escape_is_refused_in_yaml_too() -> None:
    assert fault('a: "\\ud800"')[0] == 1


@pytest.mark.parametrize("text", ["a: 1", "{a: 1}", "\ufeff{}", ""])
def test_where_only_json_is_allowed_yaml_is_a_fault(text: str) -> None:
    assert fault(text, json_only=True)[:2] == (1, 2 if text == "{a: 1}" else 1)


def test_where_only_json_is_allowed_any_json_value_will_do() -> None:
    assert parse_document(' "x" ', json_only=True).value == "x"
    assert parse_document(" -5", json_only=True).value == -5
    assert parse_document("[1.5, -2.5E-1]", json_only=True).value == [1.5, -0.25]
    assert parse_document("null", json_only=True).value is None


# ---- texts that are out to harm ---------------------------------------------------------------------------------


def nested(levels: int) -> list[str]:
    inside = "[" * levels + "]" * levels
    return [inside, f"a: {inside}", "- " * levels + "x", "{a: " * levels + "x" + "}" * levels]


def test_nesting_has_a_limit(says: Says) -> None:
    for text in nested(MAX_DEPTH - 1):
        parse_document(text)
    for text in nested(MAX_DEPTH + 2):
        says(fault(text)[2])


@pytest.mark.parametrize(
    "text", [*nested(100_000), "[" * 100_000, "a: " + "[" * 100_000, "{a: " + "[" * 200_000]
)
def test_extreme_nesting_is_refused_and_does_not_kill_the_process(text: str, says: Says) -> None:
    says(fault(text)[2])


def test_what_is_more_than_the_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "MAX_VALUES", 5)
    assert len(value("[1, 1, 1, 1]")) == 4
    assert fault("a: [1, 1, 1, 1, 1]")[2] == "more than 5 values"


@pytest.mark.no_cover
def test_the_number_of_values_has_a_limit() -> None:
    """Of either language; one less is read."""
    many = "1," * (MAX_VALUES - 2)
    assert len(value(f"[{many}1]")) == MAX_VALUES - 1
    assert fault(f"a: [{many}1]")[2] == f"more than {MAX_VALUES} values"


def test_a_few_lines_cannot_stand_for_gigabytes() -> None:
    text = "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(5))
    assert "aliases" in fault(text)[2]


def test_long_keys_around_many_values_do_not_multiply() -> None:
    """Positions are a tree: 2,000 pointers of 100,000 characters each would be 200 MB."""
    text = json.dumps({"k" * 100_000: list(range(2_000))})
    document = parse_document(text)
    assert document.locate(Problem("/" + "k" * 100_000 + "/3", "")).line == 1


# ---- positions -----------------------------------------------------------------------------------------------------

YAML = """\
name: w
nodes:
  a:
    after: [x,
            y]
  "b/c~d": {tool: t}
"""
AS_JSON = """\
{"name": "w",
 "nodes": {
   "a": {"after": ["x",
      "y"]},
   "b/c~d": {"tool": "t"}}}
"""


@pytest.mark.parametrize(
    ("path", "in_yaml", "in_json"),
    [
        ("", (1, 1), (1, 1)),
        ("/name", (1, 7), (1, 10)),
        ("/nodes/a", (4, 5), (3, 9)),
        ("/nodes/a/after/0", (4, 13), (3, 20)),
        ("/nodes/a/after/1", (5, 13), (4, 7)),
        ("/nodes/b~1c~0d/tool", (6, 19), (5, 22)),
    ],
)
def test_each_value_has_its_position(path: str, in_yaml: tuple[int, int], in_json: tuple[int, int]) -> None:
    assert (position(YAML, path), position(AS_JSON, path)) == (in_yaml, in_json)


@pytest.mark.parametrize("path", ["/nodes/a/after/7", "/nodes/a/after/0/deeper", "/nodes/a/after"])
def test_what_is_not_there_is_placed_at_the_nearest_value_around_it(path: str) -> None:
    assert position(YAML, path) in ((4, 12), (4, 13))
    assert position(YAML, "/nope") == (1, 1)


def test_yaml_and_json_of_one_document_are_equal() -> None:
    assert value(YAML) == value(AS_JSON)
