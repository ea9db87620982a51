"""`${…}` in a JSON value: what can be written, what it becomes, and what is said when it cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.expressions import (
    ExpressionError,
    Path,
    compile_template,
    escape,
    expressions_in,
    parse,
    walk,
)
from tests.core.build import JSON, PROPERTY
from tests.kit.sentences import Says

DATA = {
    "a": {"b": [10, {"c": "deep"}], "key with space": 1, "it's": 2, 'say "x"': 3},
    "n": None,
    "t": True,
    "s": "x",
}


def rendered(template: Any) -> Any:
    return compile_template(template).render(lambda path: DATA if path.root == "input" else {"id": "s1"})


# ---- parsing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "root", "steps"),
    [
        ("input", "input", ()),
        (" input.a.b2._c ", "input", ("a", "b2", "_c")),
        ("input[0][12].x", "input", (0, 12, "x")),
        ("""input["key with space"]['it"s']""", "input", ("key with space", 'it"s')),
        ('input[""]', "input", ("",)),
        ("ctx.search.output.tables[0].id", "ctx", ("search", "output", "tables", 0, "id")),
        ('ctx["search"].output', "ctx", ("search", "output")),
        ("saga.id", "saga", ("id",)),
        ("saga.workflow", "saga", ("workflow",)),
        ("ctx.a.previous.n", "ctx", ("a", "previous", "n")),
        ("loop.iteration", "loop", ("iteration",)),
        ("join.errors[0].code", "join", ("errors", 0, "code")),
        ("last_error.code", "last_error", ("code",)),
        ("item", "item", ()),
        ("output.n", "output", ("n",)),
    ],
)
def test_a_path_is_a_root_and_its_steps(text: str, root: str, steps: tuple[str | int, ...]) -> None:
    assert parse(text) == Path(text.strip(), root, steps)


def test_a_path_knows_its_node_and_what_is_inside_of_the_value() -> None:
    path = parse("ctx.search.output.tables[0]")
    assert (path.node, path.inner) == ("search", ("tables", 0))
    assert (parse("input.a").node, parse("input.a").inner) == ("", ("a",))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "inputs.a",
        "input.",
        "input a",
        "input[-1]",
        "input[1",
        "input[" + "1" * 10 + "]",
        "input.a + 1",
        "ctx",
        "ctx.a",
        "ctx.a.result",
        "ctx[0].output",
        "saga",
        "saga.age",
        "saga.id.x",
        "loop",
        "loop.iteration.x",
        "index.x",
        "join",
        "join.all",
        "input?.a",
        "ctx.a?.output",
        "ctx.a.output.b?",
        "input[0]?",
        "input.a??",
        "last_error.code?",
    ],
)
def test_what_cannot_be_read_is_said_with_what_would_be_right(text: str, says: Says) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    says(str(caught.value))


@pytest.mark.parametrize(
    ("text", "is_optional", "is_previous", "may_be_null"),
    [
        ("ctx.a.output.b", False, False, False),
        ("ctx.a.output?.b", True, False, True),
        ("ctx.a.output?", True, False, True),
        ("ctx.a.previous.b", False, True, True),
        ("last_error.code", False, False, True),
        ("input.a", False, False, False),
        ("input.a?.b", True, False, True),
        ("input['a']?.b?[0]", True, False, True),
    ],
)
def test_a_path_knows_whether_there_may_be_nothing(
    text: str, is_optional: bool, is_previous: bool, may_be_null: bool
) -> None:
    path = parse(text)
    assert (path.optional, path.is_previous, path.may_be_null) == (is_optional, is_previous, may_be_null)
    assert path.up_to(len(path.inner)) == text
    if may_be_null:
        assert walk(path, None) is None
    else:
        with pytest.raises(ExpressionError):
            walk(path, None)


def test_an_index_of_5_000_digits_is_no_reason_to_crash() -> None:
    with pytest.raises(ExpressionError):
        parse("input[" + "9" * 5_000 + "]")


# ---- walking ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("input", DATA),
        ("input.a.b[1].c", "deep"),
        ("input.n", None),
        ('input.a["key with space"]', 1),
        ('input.a["it\'s"]', 2),
        ("input.a['say \"x\"']", 3),
    ],
)
def test_a_path_leads_to_its_value(text: str, value: Any) -> None:
    assert walk(parse(text), DATA) == value


@pytest.mark.parametrize(
    "text",
    [
        "input.x",
        "input.a.b[2]",
        "input.a.b.c",
        "input[0]",
        "input.n.x",
        "input.t.x",
        "input.s.x",
        "input.s[0]",
        "input.a.b[0].x",
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ended(text: str, says: Says) -> None:
    with pytest.raises(ExpressionError) as caught:
        walk(parse(text), DATA)
    says(str(caught.value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("input.x?", None),
        ("input['x']?.y[0]", None),
        ("input.n?.x", None),  # null as it was given
        ("input.a.x?", None),
        ("input.a?.b?[0]", 10),
        ("input.s?", "x"),
    ],
)
def test_a_part_of_the_input_that_need_not_be_there_is_null_without_it(text: str, value: Any) -> None:
    assert walk(parse(text), DATA) == value


@pytest.mark.parametrize(
    "text",
    [
        "input.a?.x",
        "input.x.y?",
        "input.s?.x",
        "input.n.x?",
    ],
)
def test_only_what_is_marked_may_be_missing(text: str, says: Says) -> None:
    with pytest.raises(ExpressionError) as caught:
        walk(parse(text), DATA)
    says(str(caught.value))


def test_of_an_object_without_keys_nothing_can_be_named() -> None:
    with pytest.raises(ExpressionError, match="only nothing"):
        walk(parse("input.a"), {})


def test_an_error_stays_short_whatever_the_data_is() -> None:
    """It is going to be stored in an entry, which has a limit of its own."""
    with pytest.raises(ExpressionError) as caught:
        walk(parse("input.a"), {"k" * 1_000_000 + str(i): i for i in range(9)})
    assert len(str(caught.value)) < 300


# ---- templates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("${input.a.b[0]}", 10),
        ("${ input.n }", None),
        ("${input.a.b}", [10, {"c": "deep"}]),
        ("n is ${input.a.b[0]}!", "n is 10!"),
        ("${input.s}${input.t}${input.n}", "xtruenull"),
        ("as text: ${input.a.b}", 'as text: [10, {"c": "deep"}]'),
        ("$${input.s}", "${input.s}"),
        ("a $${x} b ${input.s} $$ $ {", "a ${x} b x $$ $ {"),
        ("$$${input.s}", "$${input.s}"),
        ("${input.s}$${y}", "x${y}"),
        ("no expression", "no expression"),
        ("", ""),
        (
            {"a": ["${input.s}", {"b": "${saga.id}"}], "${input.s}": 1},
            {"a": ["x", {"b": "s1"}], "${input.s}": 1},
        ),
        ([1, None, True, 1.5], [1, None, True, 1.5]),
    ],
)
def test_a_template_is_filled_in(template: Any, value: Any) -> None:
    assert rendered(template) == value


def test_text_is_put_in_with_its_own_letters() -> None:
    template = compile_template("für ${input}")
    assert template.render(lambda _: ["Käse", "寿司"]) == 'für ["Käse", "寿司"]'


@given(JSON)
@PROPERTY
def test_a_value_without_expressions_is_its_own_result(value: Any) -> None:
    if any(True for _ in expressions_in(value)) or "${" in str(value):
        return
    assert rendered(value) == value


@given(st.text(alphabet="${}aA.input[]\"' ", max_size=30))
@PROPERTY
def test_any_text_either_compiles_or_is_an_error_and_nothing_else(text: str) -> None:
    try:
        template = compile_template(text)
    except ExpressionError:
        assert any(isinstance(found, ExpressionError) for _, found in expressions_in(text))
    else:
        assert [path for _, path in expressions_in(text)] == list(template.paths)


@given(st.text(alphabet="${}a ", max_size=20))
@PROPERTY
def test_any_text_can_be_written_literally(text: str) -> None:
    if "$${" not in text:
        assert rendered(text.replace("${", "$${")) == text


def test_a_bad_expression_anywhere_is_an_error() -> None:
    for template in ("${", ["a", {"b": "${input"}], {"a": "${x}"}):
        with pytest.raises(ExpressionError):
            compile_template(template)


def test_the_paths_of_a_template_come_in_reading_order() -> None:
    template = compile_template({"a": "${input.x} ${ctx.b.output}", "c": ["${saga.id}"], "d": 5})
    assert [path.text for path in template.paths] == ["input.x", "ctx.b.output", "saga.id"]


def test_expressions_are_found_with_the_pointers_to_where_they_stand(says: Says) -> None:
    value = {"a/b~": ["x", "${input.x} ${input.y}"], "c": {"d": "${", "e": 5}}
    found = [
        (pointer, str(one) if isinstance(one, ExpressionError) else one.text)
        for pointer, one in expressions_in(value, "/w")
    ]
    says(found)


def test_a_key_is_escaped_as_a_json_pointer_wants_it() -> None:
    assert escape("a/b~c") == "a~1b~0c"
    assert escape(3) == "3"


# ---- an index that only the saga knows -------------------------------------------------------------------------


def test_an_index_and_a_key_can_be_expressions_themselves() -> None:
    values = {"input": {"rows": ["a", "b"], "by": {"x": 1}, "key": "x"}, "loop": {"iteration": 1}}
    made = compile_template(
        ["${input.rows[loop.iteration]}", "${input.by[input.key]}-${input.rows[loop.iteration]}"]
    )
    assert made.render(lambda path: values[path.root]) == ["b", "1-b"]
    assert [path.text for path in made.paths][:2] == ["input.rows[loop.iteration]", "loop.iteration"]


@pytest.mark.parametrize(
    "text",
    [
        "input.rows[input.n]",
        "input.rows[input.yes]",
        "input.rows[input.half]",
        "input.rows[input.three]",
        "input.rows[input.word]",
    ],
)
def test_what_is_no_index_is_said(text: str, says: Says) -> None:
    given_ = {"rows": [1, 2], "n": -1, "yes": True, "half": 0.5, "three": 3, "word": "word"}
    with says.raised(ExpressionError):
        compile_template(f"${{{text}}}").render(lambda _: given_)


def test_an_index_is_one_path_and_no_deeper(says: Says) -> None:
    with says.raised(ExpressionError):
        parse("input.a[input.b[loop.iteration]]")
    assert parse("input.a[ctx.b.output.n].c").up_to(2) == "input.a[ctx.b.output.n]"
    with pytest.raises(ExpressionError, match="write ctx"):
        parse("ctx[input.a].output")
