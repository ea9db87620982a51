"""What a condition may cost: ordinary questions about large data are answered, and what is counted is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.core.conditions import ConditionError, Unanswered, judge
from baton.core.conditions.cel import _broken
from baton.core.conditions.celnames import CelCall, RefusedExpression, find_names
from baton.core.conditions.document import read_condition
from baton.core.conditions.model import Cel, Condition, Python
from tests.core.conditions.corpus import lookup_in
from tests.core.conditions.hostile import nested
from tests.kit.sentences import Says

ROWS = {
    "rows": [
        {
            "id": i,
            "name": f"customer {i}",
            "tier": "free" if i % 3 else "enterprise",
            "amount": i * 1.5,
            "note": None,
        }
        for i in range(1_000)
    ],
    "allowed": [f"customer {i}" for i in range(1_000)],
    "wanted": "customer 999",
    "text": "a" * 50_000,
}


def holds(value: Any, output: Any = None) -> bool | str:
    condition, problems = read_condition(value, "", {})
    assert condition is not None, problems
    try:
        return judge(condition, lookup_in(ROWS if output is None else output, {}), {}, {})
    except ConditionError as error:
        return error.code


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "value",
    [
        "output.rows.exists(r, r.name == output.wanted)",
        "output.rows.all(r, r.name in output.allowed)",
        "output.rows.filter(r, r.tier == 'enterprise').size() == 334",
        "output.rows.map(r, r.amount).all(a, a < 2000.0)",
        "output.rows.map(r, r.name + '!').size() == 1000",
        "output.rows.filter(r, r.id > 10).filter(r, r.id < 20).map(r, {'id': r.id, 'n': [r.name]}).size() == 9",
        "output.rows.all(r, r.name.matches('^customer [0-9]{1,4}$'))",
        "output.rows.all(r, r.name.startsWith('c') && size(r.name) < 20 && r.note == null)",
        "output.rows[999].name == output.wanted && output.rows == output.rows",
        "output.text.contains('aaab') == false && output.text.matches('^a*$')",
        "output.rows.exists(r, output.allowed[r.id] != r.name) == false",
        {"jsonpath": "$.rows[?@.tier == 'enterprise'].amount", "operator": "sum_gt", "value": 10_000},
        {"jsonpath": "$..name", "operator": "contains", "value": "customer 7"},
        {"jsonpath": "$.rows[?search(@.name, '99$')]", "operator": "count", "value": 10},
        {"jsonpath": "$.rows[?@.name == $.wanted].id", "operator": "==", "value": 999},
        {"schema": {"properties": {"rows": {"items": {"required": ["id", "name"], "properties": {"tier": {"enum": ["free", "enterprise"]}}}}}}},
        {"compare": {"left": "${output.wanted}", "operator": "in", "right": "${output.allowed}"}},
    ],
)  # fmt: skip
def test_ordinary_questions_about_a_thousand_rows_are_answered(value: Any) -> None:
    assert holds(value) is True


LOOKS = [
    ("deep data", "output == output", nested(65)),
    ("deep data", {"jsonpath": "$"}, nested(65)),
    ("much text", "output == output", lambda: "a" * 40_000_000),
    ("many rounds", "output.all(n, n >= 0)", lambda: list(range(10_001))),
    ("loops in loops", "output.all(a, output.all(b, a + b >= 0))", lambda: list(range(1_500))),
    ("large values built", "output.map(x, x + x + x + x).map(x, x + x + x + x).map(x, x + x + x + x) == []", lambda: ["a" * 60_000] * 5),
    ("a query's steps", {"jsonpath": "$" + "[*,*]" * 20}, nested(40)),
    ("a schema's places", {"schema": {"items": {"enum": list(range(2_000))}}}, lambda: list(range(3_000))),
]  # fmt: skip


@pytest.mark.parametrize(("value", "make"), [(value, make) for _, value, make in LOOKS])
def test_what_is_above_a_cap_is_too_large(value: Any, make: Any) -> None:
    output = make()
    assert holds(value, output if isinstance(output, str) else {"x": output}["x"]) == "condition_too_large"


def test_a_loop_over_what_has_nothing_inside_is_an_error_and_no_crash() -> None:
    assert holds("output.l.all(i, i.x.y.z > 1)", {"l": list(range(2_000))}) == "condition_type"
    assert holds({"jsonpath": "$..a", "operator": "not_exists"}, 5) is True


def test_a_function_that_is_not_known_is_refused_even_if_the_library_has_it(says: Says) -> None:
    with says.raised(RefusedExpression):
        find_names(CelCall("now", ()))


def test_memory_that_runs_out_in_the_library_has_its_own_code() -> None:
    assert _broken(Cel(expression="true"), "std::bad_alloc").code == "condition_memory"


def test_an_index_in_a_stored_need_is_answered_with_the_list() -> None:
    condition: Condition = Python(code="x", needs=("input.l[0]",))
    with pytest.raises(Unanswered) as caught:
        judge(condition, lookup_in(1, {"input": {"l": [1, 2], "m": 3}}), {}, {})
    (question,) = caught.value.questions
    assert json.loads(question.data)["context"] == {"input": {"l": [1, 2]}}


def test_a_condition_about_nothing_large_needs_no_bound() -> None:
    assert judge(
        Cel(expression="size(output) == 100 && output + output != output"), lookup_in("a" * 100, {}), {}, {}
    )
