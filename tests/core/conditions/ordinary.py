"""Conditions as people write them, of every kind, with their answers. Data only; test_corpus.py tries them."""

from __future__ import annotations

from typing import Any, Final

from baton.core.conditions import SandboxAnswer
from tests.core.conditions.corpus import Case

SHOP: Final = {
    "status": "success",
    "score": 84,
    "ratio": 0.5,
    "retry_count": 2,
    "paid": True,
    "note": None,
    "email": "ann@example.com",
    "errors": ["slow", "late"],
    "customers": [
        {"name": "Ann", "tier": "enterprise", "amount": 7000},
        {"name": "Bo", "tier": "free", "amount": 12.5},
        {"name": "Cy", "tier": "enterprise", "amount": 3500},
    ],
    "empty": [],
    "odd key": {"it's": 1},
    "one": 1.0,
}
AROUND: Final[dict[str, Any]] = {
    "input": {"limit": 80, "names": ["Ann", "Cy"], "when": "2026-03-01T10:00:00Z"},
    "ctx": {
        "forecast": {"output": {"revenue": 100000, "rows": [1, 2, 3]}},
        "check": {"output": None},
        "draft": {"output": {"score": 70}, "previous": {"score": 60}},
        "first": {"previous": None},
    },
    "saga": {"id": "s1", "user": "ann", "tenant": "t1", "workflow": "shop"},
    "loop": {"iteration": 3},
    "join": {"outputs": {"a": {"ok": True}, "b": {"ok": False}}, "arrived": ["a", "b"], "errors": []},
    "last_error": {"node": "book", "code": "tool_failed", "message": "no room"},
}


def case(name: str, condition: Any, expected: bool | str, says: str = "", **more: Any) -> Case:
    """About the shop's output, with everything around it."""
    return Case(name, condition, expected, **{"output": SHOP, "context": AROUND, "says": says, **more})


CEL: Final = [
    case("a comparison", "output.score >= 80", True),
    case("two, joined", "output.status != 'success' && output.retry_count < 5", False),
    case("either", "output.status != 'success' || output.paid", True),
    case("not", "!output.paid", False),
    case("a node's output", "output.score >= 80 && ctx.forecast.output.revenue > 50000", True),
    case("the input", {"cel": "output.score > input.limit"}, True),
    case("arithmetic", "(output.score - input.limit) * 2 == 8", True),
    case("a whole number and another compared", "output.score > 83.5 && output.one == 1", True),
    case("mixed after conversion", "double(output.score) * 1.5 > 100.0", True),
    case("functions of texts", "output.email.endsWith('.com') && output.email.contains('@')", True),
    case("a pattern", "output.email.matches('^[a-z]+@')", True),
    case("in a list", "'late' in output.errors", True),
    case("among keys", "'score' in output", True),
    case("all of them", "output.customers.all(c, c.amount > 10)", True),
    case("one of them", "output.customers.exists(c, c.tier == 'free')", True),
    case("exactly one", "output.customers.exists_one(c, c.tier == 'enterprise')", False),
    case("filtered and counted", "output.customers.filter(c, c.amount > 1000).size() == 2", True),
    case("mapped", "output.customers.map(c, c.name) == ['Ann', 'Bo', 'Cy']", True),
    case("mapped with a filter", "output.customers.map(c, c.tier == 'free', c.name) == ['Bo']", True),
    case("a condition in it", "(output.score > 10 ? 'high' : 'low') == 'high'", True),
    case("by index", "output.customers[0].name == 'Ann'", True),
    case("by a computed index", "output.customers[loop.iteration - 1].name == 'Cy'", True),
    case("a key with a space and a quotation mark", "output['odd key'][\"it's\"] == 1", True),
    case("a key made here", "output['sc' + 'ore'] == 84", True),
    case("is it there", "has(output.score) && !has(output.nothing)", True),
    case("null", "output.note == null", True),
    case("a node that gave null", "has(ctx.check) && ctx.check.output == null", True),
    case("a node that gave nothing, by its name", "has(ctx.skipped) && ctx.skipped.output.x > 1", False),
    case("a node that gave nothing, by its output", "has(ctx.skipped.output)", False),
    case("a node that gave something", "has(ctx.forecast.output) && has(ctx.forecast.output.revenue)", True),
    case("the round before", "ctx.draft.output.score > ctx.draft.previous.score", True),
    case("no round before", "ctx.first.previous == null", True),
    case("is there a round before", "has(ctx.draft.previous)", True),
    case("which round", "loop.iteration < 5", True),
    case(
        "a word that looks like one",
        "'loop' == \"loop\" && r'\\loop' != '''loop''' && loop.iteration == 3 // loop",
        True,
    ),
    case("the saga", "saga.tenant == 't1' && has(saga.id)", True),
    case("a join", "join.outputs.a.ok && size(join.errors) == 0 && 'b' in join.arrived", True),
    case("what a join need not have", "has(join.outputs.c)", False),
    case("the last error", "last_error.code == 'tool_failed'", True),
    case("no last error", "last_error == null", True, context={}),
    case("a loop's variable with the name of a root", "output.errors.exists(output, output == 'late')", True),
    case("a type", "type(output.score) == int && type(output.one) == double", True),
    case("time", "timestamp(input.when).getFullYear() == 2026", True),
    case("durations", "timestamp(input.when) + duration('1h') > timestamp('2026-03-01T10:30:00Z')", True),
    case("an object made here", "{'a': output.score, 'b': -1} == {'b': -1, 'a': 84}", True),
    case("bytes", "bytes(output.status) == b'success'", True),
    case("an error that does not matter", "output.nothing > 1 || output.paid", True),
    case("the largest whole number", "output == 9223372036854775807", True, output=2**63 - 1),
    case("always", "true", True),
    case("dynamic", "dyn(output.score) == 84.0", True),
]

JSONPATH: Final = [
    case("exists", {"jsonpath": "$.customers[?@.tier == 'free']"}, True),
    case("exists not", {"jsonpath": "$.customers[?@.tier == 'gold']", "operator": "not_exists"}, True),
    case(
        "length of what a filter finds",
        {"jsonpath": "$.customers[?(@.tier == 'enterprise')].length()", "operator": ">", "value": 0},
        True,
    ),
    case("length of a list", {"jsonpath": "$.errors.length()", "operator": "<", "value": 3}, True),
    case("length of a text", {"jsonpath": "$.status.length()", "operator": "==", "value": 7}, True),
    case("equal", {"jsonpath": "$.one", "operator": "==", "value": 1}, True),
    case("true is not one", {"jsonpath": "$.paid", "operator": "!=", "value": 1}, True),
    case("less", {"jsonpath": "$.score", "operator": "<", "value": 84.5}, True),
    case("at least", {"jsonpath": "$.score", "operator": ">=", "value": 84}, True),
    case("at most", {"jsonpath": "$.status", "operator": "<=", "value": "t"}, True),
    case("in", {"jsonpath": "$.status", "operator": "in", "value": ["success", "done"]}, True),
    case("not in", {"jsonpath": "$.status", "operator": "not_in", "value": ["success", "done"]}, False),
    case("contains, of a list", {"jsonpath": "$.errors", "operator": "contains", "value": "late"}, True),
    case(
        "contains, of what is found",
        {"jsonpath": "$.customers[*].name", "operator": "contains", "value": "B"},
        False,
    ),
    case("contains, of a text", {"jsonpath": "$.email", "operator": "contains", "value": "@"}, True),
    case("contains, of an object", {"jsonpath": "$", "operator": "contains", "value": "score"}, True),
    case("count", {"jsonpath": "$.customers[*]", "operator": "count", "value": 3}, True),
    case("count of a list", {"jsonpath": "$.errors", "operator": "count_lt", "value": 3}, True),
    case("count of one", {"jsonpath": "$.score", "operator": "count_eq", "value": 1}, True),
    case("count of nothing", {"jsonpath": "$.x", "operator": "count", "value": 0}, True),
    case("sum", {"jsonpath": "$.customers[*].amount", "operator": "sum_gt", "value": 10000}, True),
    case("sum, exactly", {"jsonpath": "$", "operator": "sum", "value": 0.6}, True, output=[0.1, 0.2, 0.3]),
    case("sum of nothing", {"jsonpath": "$.empty[*]", "operator": "sum_eq", "value": 0}, True),
    case("sum of a list", {"jsonpath": "$", "operator": "sum_ne", "value": 6}, False, output=[1, 2, 3]),
    case("min", {"jsonpath": "$..amount", "operator": "min_lte", "value": 12.5}, True),
    case("max", {"jsonpath": "$..amount", "operator": "max_gte", "value": 7000}, True),
    case("avg", {"jsonpath": "$", "operator": "avg", "value": 2}, True, output=[1, 2, 3]),
    case(
        "of another node",
        {"jsonpath": "$.rows", "operator": "sum", "value": 6, "of": "${ctx.forecast.output}"},
        True,
    ),
    case(
        "of a part",
        {"jsonpath": "$[0].name", "operator": "==", "value": "Ann", "of": "output.customers"},
        True,
    ),
    case(
        "of nothing, perhaps",
        {"jsonpath": "$.x", "operator": "not_exists", "of": "${ctx.skipped.output?}"},
        True,
    ),
    case(
        "slices and negative indexes",
        {"jsonpath": "$.customers[-1:].name", "operator": "==", "value": "Cy"},
        True,
    ),
    case("match takes the whole", {"jsonpath": "$.customers[?match(@.name, 'A.')]"}, False),
    case(
        "search takes a part",
        {"jsonpath": "$.customers[?search(@.name, 'n+')]", "operator": "count", "value": 1},
        True,
    ),
    case("patterns of what is no text", {"jsonpath": "$.customers[?search(@.amount, '1')]"}, False),
    case(
        "functions",
        {"jsonpath": "$.customers[?length(@.name) < 3 && count(@.*) == 3]", "operator": "count", "value": 2},
        True,
    ),
    case(
        "by the root", {"jsonpath": "$.customers[?@.amount > $.score]", "operator": "count", "value": 2}, True
    ),
    case("filters in a filter", {"jsonpath": "$[?@[?@.tier == 'free']]"}, True),
    case(
        "comparisons in a filter",
        {"jsonpath": "$[?@.a < 2 && @.a >= 1 && @.b <= 'x' && !(@.a == true)]"},
        True,
        output=[{"a": 1, "b": "x"}],
    ),
    case(
        "lists compared in a filter",
        {"jsonpath": "$[?@.a == @.b && @.c == @.d]"},
        True,
        output=[{"a": [1, {"x": 2}], "b": [1.0, {"x": 2}]}],
    ),
    case("nothing compared with a list", {"jsonpath": "$[?@.a == @.b]"}, False, output=[{"a": [1]}]),
    case("true is not one in a filter", {"jsonpath": "$[?@.a == 1 || @.a < 2]"}, False, output=[{"a": True}]),
    case("a text is not parsed", {"jsonpath": "$.a", "operator": "not_exists"}, True, output='{"a": 1}'),
    case("what is inside, however deep", {"jsonpath": "$..[?@ == 'late']"}, True),
]

SCHEMA: Final = [
    case("valid", {"schema": {"type": "object", "required": ["status", "customers"]}}, True),
    case(
        "not valid, inverted", {"schema": {"properties": {"status": {"const": "done"}}}, "invert": True}, True
    ),
    case("by name", {"schema": "done"}, True, schemas={"done": {"properties": {"score": {"minimum": 80}}}}),
    case(
        "by reference",
        {"schema": "cas://sha256/" + "a" * 64},
        False,
        blobs={"cas://sha256/" + "a" * 64: {"type": "array"}},
    ),
    case(
        "of another value",
        {"schema": {"type": "array", "items": {"type": "integer"}}, "of": "${ctx.forecast.output.rows}"},
        True,
    ),
    case("a format", {"schema": {"properties": {"email": {"format": "email"}}}}, True),
    case("a pattern in a schema", {"schema": {"properties": {"email": {"pattern": "^[a-z]+@"}}}}, True),
    case(
        "references in itself",
        {
            "schema": {
                "$defs": {"n": {"type": "integer"}},
                "anyOf": [{"$anchor": "x"}],
                "allOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/anyOf/0"}, {"$ref": "#x"}],
            },
            "of": "output.score",
        },
        True,
    ),
    case(
        "a schema of itself",
        {"schema": {"additionalProperties": {"$ref": "#"}, "type": "object"}},
        True,
        output={"a": {"b": {}}},
    ),
    case("everything", {"schema": True}, True),
    case(
        "a property called $ref",
        {"schema": {"properties": {"$ref": {"type": "integer"}}}},
        True,
        output={"$ref": 1},
    ),
]

COMPARE: Final = [
    case(
        "across nodes",
        {"compare": {"left": "${output.score}", "operator": ">", "right": "${ctx.draft.output.score}"}},
        True,
    ),
    case("with a literal", {"compare": {"left": "${output.paid}", "operator": "==", "right": True}}, True),
    case("numbers by value", {"compare": {"left": "${output.one}", "operator": "==", "right": 1}}, True),
    case(
        "types differ at run time",
        {"compare": {"left": "${output.one}", "operator": "!=", "right": "${output.paid}"}},
        True,
    ),
    case(
        "texts made of expressions",
        {"compare": {"left": "${saga.user}@example.com", "operator": "==", "right": "${output.email}"}},
        True,
    ),
    case(
        "lists",
        {"compare": {"left": ["${output.score}", {"a": 1}], "operator": "==", "right": [84, {"a": 1.0}]}},
        True,
    ),
    case("objects that differ", {"compare": {"left": {"a": 1}, "operator": "==", "right": {"b": 1}}}, False),
    case("member of a list", {"compare": {"left": "Ann", "operator": "in", "right": "${input.names}"}}, True),
    case(
        "no member of a text",
        {"compare": {"left": "z", "operator": "not_in", "right": "${output.status}"}},
        True,
    ),
    case(
        "contains a text",
        {"compare": {"left": "${output.errors}", "operator": "contains", "right": "slow"}},
        True,
    ),
    case(
        "perhaps nothing",
        {"compare": {"left": "${ctx.skipped.output?.x}", "operator": "==", "right": "${output.note}"}},
        True,
    ),
]

COMPOSITE: Final = [
    case(
        "all", {"all": ["output.paid", {"jsonpath": "$.errors.length()", "operator": "<", "value": 3}]}, True
    ),
    case("any", {"any": ["output.score > 90", {"compare": {"left": 1, "operator": "==", "right": 1}}]}, True),
    case("none of any", {"any": ["false", {"not": "true"}]}, False),
    case("not, of one", {"not": {"schema": {"type": "array"}}}, True),
    case("no further than needed", {"all": ["false", "output.nothing > 1"]}, False),
    case("no further than needed, either", {"any": ["true", "output.nothing > 1"]}, True),
    case("an error that comes first", {"any": ["output.nothing > 1", "true"]}, "condition_missing"),
    case("inside each other", {"not": {"all": ["true", {"any": [{"not": "true"}, "false"]}]}}, True),
]

YES = "def evaluate(output, context):\n    return True\n"
PYTHON: Final = [
    case(
        "a function that says yes",
        {"python": YES, "needs": ["ctx.forecast.output.revenue", "input"]},
        True,
        answer=SandboxAnswer(value=True),
    ),
    case("a function that says no", {"python": YES}, False, answer=SandboxAnswer(value=False)),
    case(
        "a function by reference",
        {"python": "cas://sha256/" + "b" * 64},
        True,
        answer=SandboxAnswer(value=True),
        blobs={"cas://sha256/" + "b" * 64: YES},
    ),
    case(
        "a function that took too long",
        {"python": YES},
        "condition_timeout",
        answer=SandboxAnswer(value=None, code="condition_timeout", message="1 s"),
    ),
    case(
        "a function that failed without a word",
        {"python": YES},
        "condition_error",
        answer=SandboxAnswer(value=None),
    ),
    case("asked only if needed", {"any": ["true", {"python": YES}]}, True),
]

ORDINARY: Final = [*CEL, *JSONPATH, *SCHEMA, *COMPARE, *COMPOSITE, *PYTHON]
