"""Conditions that mean harm, or that a tired author writes: each ends soon, in little memory, and never as true.

Those in Python are in tests/contract/condition_code.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.core.apart import some
from tests.core.conditions.corpus import REFUSED, Case

TOO_LARGE: Final = "condition_too_large"


def nested(depth: int, leaf: Any = 1) -> Callable[[], Any]:
    def make() -> Any:
        value = leaf
        for index in range(depth):
            value = [value] if index % 2 else {"a": value}
        return value

    return make


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def knotted() -> Any:
    value: list[Any] = []
    value += [value, value, value]
    return value


def multiplied() -> Any:
    value: Any = 1
    for _ in range(60):
        value = [value] * 100
    return value


def numbers(count: int) -> Callable[[], Any]:
    return lambda: {"l": list(range(count)), "k": list(range(count))}


def texts(count: int, length: int) -> Callable[[], Any]:
    return lambda: {"l": ["a" * length] * count, "t": "a" * length, "b": "a" * (length // 2) + "b"}


def chained(schema: Any, times: int, how: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Definitions each of which refers to the next as `how` says."""
    defs: dict[str, Any] = {f"d{i}": how({"$ref": f"#/$defs/d{i + 1}"}) for i in range(times)}
    return {"$defs": {**defs, f"d{times}": schema}, "$ref": "#/$defs/d0"}


def deep(form: Callable[[Any], Any], inner: Any, times: int) -> Any:
    for _ in range(times):
        inner = form(inner)
    return inner


SOURCES: Final = [
    Case("cel: thousands of brackets", "(" * 2_000 + "1" + ")" * 2_000 + " > 0", REFUSED, says="nested"),
    Case("cel: thousands of lists", "[" * 2_000 + "]" * 2_000 + " == []", REFUSED),
    Case("cel: a long sum", "+".join(["1"] * 2_000) + " > 0", REFUSED, says="split"),
    Case("cel: a long way down", "output" + ".a" * 2_000 + " == 1", REFUSED),
    Case("cel: conditions in conditions", "true ? true : " * 200 + "true", REFUSED),
    Case("cel: longer than any", "true && " * 10_000 + "true", REFUSED, says="characters"),
    Case("cel: nothing", "", REFUSED),
    Case("cel: only half", "output.a >", REFUSED, says="column"),
    Case("cel: a text without end", "output.a == 'x", REFUSED),
    Case("cel: zeros in it", "output.a == '\0'", False, output={"a": 1}),
    Case("cel: half a character", "output == '\ud800'", REFUSED),
    Case("cel: no such variable", "outptu.a > 1", REFUSED, says="did you mean `output`"),
    Case("cel: a variable like none", "qqqqqqqq > 1", REFUSED, says="there are output"),
    Case("cel: no such function", "output.a.lenght() > 1", REFUSED, says="lenght"),
    Case("cel: one `=`", "output.a = 1", REFUSED, says="`==` compares"),
    Case("cel: `=>`", "output.a => 1", REFUSED, says="write `>=` or `<=`"),
    Case("cel: half a sentence", "output.a &&", REFUSED, says="it ends too early"),
    Case("cel: len", "len(output) > 1", REFUSED, says="`size(…)` counts"),
    Case("cel: and", "output.a and output.b", REFUSED, says="&&"),
    Case("cel: expressions of documents", "${output.a} > 1", REFUSED, says="no `${…}`"),
    Case("cel: a number", "1", REFUSED, says="true or false"),
    Case("cel: numbers that do not mix", "1 + 1.5 > 2.0", REFUSED, says="double("),
    Case("cel: types that are never equal", "'a' == 1", REFUSED, says="string and int"),
    Case("cel: all the nodes", "ctx == {}", REFUSED, says="ctx.NODE.output"),
    Case("cel: a computed node", "ctx[input.n].output == 1", REFUSED, says="ctx.NODE.output"),
    Case("cel: a node that is no value", "ctx.a > 1", REFUSED, says="ctx.a.output"),
    Case("cel: a field of a node", "ctx.a.metadata.x == 1", REFUSED),
    Case("cel: a field of a node, asked for", "has(ctx.a.metadata)", REFUSED, says="previous"),
    Case("cel: a node asked for twice", "has(ctx.a) && has(ctx.a.output)", REFUSED, says="one of them"),
    Case("cel: the whole saga", "saga == {}", REFUSED),
    Case("cel: a loop's own", "loop.count > 1", REFUSED, says="loop.iteration"),
    Case("cel: messages", "google.protobuf.Struct{} == {}", REFUSED, says="cannot be made"),
    Case(
        "cel: constants of messages", "google.protobuf.NullValue.NULL_VALUE == 1", REFUSED, says="not known"
    ),
    Case(
        "cel: files by way of time zones",
        "timestamp(input.t).getHours('file:/etc/passwd') > 0",
        REFUSED,
        says="UTC",
    ),
    Case("cel: a pattern from data", "output.a.matches(output.b)", REFUSED, says="stands in the condition"),
    Case("cel: a pattern of a number", "output.a.matches('(a{0,1000}){0,1000}')", REFUSED, says="pattern"),
    Case("cel: grows by itself", "['a']" + ".map(x, x + x)" * 22 + ".size() > 0", REFUSED, says="too much"),
    Case(
        "cel: lists of lists by itself",
        "[[1]]" + ".map(x, [x, x])" * 22 + ".size() > 0",
        REFUSED,
        says="too much",
    ),
    Case("jsonpath: brackets", {"jsonpath": "$" + "[?@" * 600}, REFUSED),
    Case("jsonpath: filters in filters", {"jsonpath": "$" + "[?@" * 200 + "]" * 200}, REFUSED),
    Case("jsonpath: longer than any", {"jsonpath": "$" + ".a" * 5_000}, REFUSED, says="characters"),
    Case("jsonpath: a bracket too few", {"jsonpath": "$[?(@.a == 1]"}, REFUSED),
    Case("jsonpath: no dollar", {"jsonpath": "data.x"}, REFUSED, says="begins with `$`"),
    Case("jsonpath: and", {"jsonpath": "$[?@.a == 1 and @.b]"}, REFUSED, says="&&"),
    Case("jsonpath: =~", {"jsonpath": "$[?@.a =~ /(a+)+$/]"}, REFUSED, says="match("),
    Case("jsonpath: length in a filter", {"jsonpath": "$[?@.a.length() > 1]"}, REFUSED, says="length(@.x)"),
    Case("jsonpath: nothing of the library's own", {"jsonpath": "$[?startswith(@.a, 'x')]"}, REFUSED),
    Case("jsonpath: two queries", {"jsonpath": "$.a | $.b"}, REFUSED),
    Case("jsonpath: an index out of all bounds", {"jsonpath": "$[" + "9" * 400 + "]"}, REFUSED),
    Case(
        "jsonpath: a pattern from data",
        {"jsonpath": "$[?match(@.a, @.b)]"},
        REFUSED,
        says="stands in the query",
    ),
    Case(
        "jsonpath: a pattern that looks back",
        {"jsonpath": "$[?match(@.a, '(a)\\\\1')]"},
        REFUSED,
        says="back-references",
    ),
    Case(
        "jsonpath: a pattern of a number",
        {"jsonpath": "$[?search(@.a, '(a{0,1000}){0,1000}')]"},
        REFUSED,
        says="too large",
    ),
    Case(
        "jsonpath: no such operator",
        {"jsonpath": "$", "operator": "sum_gtt", "value": 1},
        REFUSED,
        says="sum_gt",
    ),
    Case("schema: no schema", {"schema": {"type": "objekt"}}, REFUSED),
    Case(
        "schema: from a server",
        {"schema": {"$ref": "http://localhost:1/x"}},
        REFUSED,
        says="outside of this schema",
    ),
    Case(
        "schema: from a file",
        {"schema": {"$ref": "file:///etc/passwd"}},
        REFUSED,
        says="outside of this schema",
    ),
    Case("schema: leads nowhere", {"schema": {"$ref": "#/$defs/x"}}, REFUSED, says="there is no"),
    Case(
        "schema: leads to no anchor", {"schema": {"$ref": "#x", "allOf": [{}]}}, REFUSED, says="there is no"
    ),
    Case(
        "schema: leads out of a list",
        {"schema": {"$ref": "#/allOf/7", "allOf": [{}]}},
        REFUSED,
        says="there is no",
    ),
    Case("schema: dynamic references", {"schema": {"$dynamicRef": "#x"}}, REFUSED, says="$ref"),
    Case("schema: a dialect of its own", {"schema": {"$schema": "http://localhost:1/dialect"}}, REFUSED),
    Case(
        "schema: two to the thirtieth",
        {"schema": chained({"type": "integer"}, 30, lambda ref: {"allOf": [ref, ref]})},
        REFUSED,
        says="places",
    ),
    Case(
        "schema: two to the thirtieth, in another way",
        {"schema": chained({"type": "integer"}, 30, lambda ref: {"anyOf": [ref, ref]})},
        REFUSED,
        says="places",
    ),
    Case("schema: deep", {"schema": deep(lambda inner: {"not": inner}, {}, 300)}, REFUSED, says="nested"),
    Case(
        "schema: deeper", {"schema": deep(lambda inner: {"not": inner}, {}, 20_000)}, REFUSED, says="nested"
    ),
    Case("schema: larger than any", {"schema": {"enum": ["x" * 99_000]}}, REFUSED, says="bytes"),
    Case("schema: a pattern of a number", {"schema": {"pattern": "((a{0,100}){0,100}){0,100}"}}, REFUSED),
    Case(
        "compare: a number with a text",
        {"compare": {"left": "${output.a}", "operator": "<", "right": {}}},
        REFUSED,
        says="an object",
    ),
    Case(
        "python: not Python", {"python": "def evaluate(output, context:\n  return 1"}, REFUSED, says="line 1"
    ),
    Case("python: brackets", {"python": "(" * 5_000}, REFUSED),
    Case("python: a long sum", {"python": "x = " + "-" * 9_000 + "1"}, REFUSED),
    Case("python: longer than any", {"python": "#" * 30_000}, REFUSED, says="characters"),
    Case("python: zeros", {"python": "\0"}, REFUSED),
    Case(
        "many: inside each other", deep(lambda inner: {"not": inner}, "true", 1_000), REFUSED, says="nested"
    ),
    Case("many: beside each other", {"all": ["true"] * 10_000}, REFUSED, says="more than 200"),
]

DATA: Final = [
    *(
        Case(f"{name}: {what}", condition, TOO_LARGE, make)
        for what, make in (
            ("deep data", nested(5_000)),
            ("data in themselves", cyclic),
            ("data in themselves, thrice", knotted),
            ("data that multiply", multiplied),
            ("much data", numbers(200_000)),
        )
        for name, condition in (
            ("cel", "output == output"),
            ("jsonpath", {"jsonpath": "$..a"}),
            ("schema", {"schema": {"type": "null"}}),
            ("compare", {"compare": {"left": "${output}", "operator": "==", "right": "${output}"}}),
            ("python", {"python": "def evaluate(output, context): return True"}),
        )
    ),
    Case("cel: loops in loops", "output.l.all(a, output.k.all(b, true))", TOO_LARGE, numbers(2_000)),
    Case(
        "cel: three loops", "output.l.all(a, output.l.all(b, output.l.all(c, true)))", TOO_LARGE, numbers(50)
    ),
    Case("cel: a long list", "output.l.exists(a, a < 0)", TOO_LARGE, numbers(20_000)),
    Case("cel: a longer list of its own", "output.l.map(a, a).size() > 0", TOO_LARGE, numbers(5_000)),
    Case("cel: filtered", "output.l.filter(a, true).size() > 0", TOO_LARGE, numbers(5_000)),
    Case(
        "cel: texts that double",
        "[output.t]" + ".map(x, x + x)" * 12 + ".size() > 0",
        TOO_LARGE,
        texts(1, 100_000),
    ),
    Case(
        "cel: lists that double",
        "[output.l]" + ".map(x, x + x)" * 12 + ".size() > 0",
        TOO_LARGE,
        numbers(1_000),
    ),
    Case("cel: compared in a loop", "output.l.all(a, output.k == output.l)", TOO_LARGE, numbers(5_000)),
    Case("cel: looked for in a loop", "output.l.all(a, !(a in output.k))", TOO_LARGE, numbers(5_000)),
    Case(
        "cel: texts in texts", "output.l.all(a, !output.t.contains(output.b))", TOO_LARGE, texts(50, 50_000)
    ),
    Case(
        "cel: patterns in a loop",
        "output.l.all(a, output.t.matches('(.*){1,100}b'))",
        TOO_LARGE,
        texts(100, 10_000),
    ),
    Case("cel: lengths in a loop", "output.l.all(a, size(output.t) > 0)", TOO_LARGE, texts(40, 2_000_000)),
    Case(
        "cel: conversions in a loop",
        "output.l.all(a, string(output.t) != '')",
        TOO_LARGE,
        texts(40, 2_000_000),
    ),
    Case(
        "cel: bytes in a loop",
        "output.l.all(a, bytes(output.t) + b'x' == b'y')",
        TOO_LARGE,
        texts(40, 2_000_000),
    ),
    Case(
        "cel: one pattern that goes back",
        "output.t.matches('(a+)+$') && output.b.matches('^(a|a)*$')",
        False,
        texts(1, 50_000),
    ),
    Case(
        "jsonpath: everything of everything",
        {"jsonpath": "$..[?count($..*) > 0]", "operator": "count", "value": 0},
        TOO_LARGE,
        numbers(2_000),
    ),
    Case("jsonpath: all, again and again", {"jsonpath": "$" + "[*,*,*,*]" * 20}, TOO_LARGE, nested(60)),
    Case("jsonpath: below, again and again", {"jsonpath": "$" + "..*" * 12}, TOO_LARGE, nested(60)),
    Case("jsonpath: numbers, each for each", {"jsonpath": "$.l[?$.k[?@.a]]"}, TOO_LARGE, numbers(5_000)),
    Case("jsonpath: below, for each", {"jsonpath": "$.l[?$..x]"}, TOO_LARGE, numbers(5_000)),
    Case("jsonpath: lists compared for each", {"jsonpath": "$.l[?$.k == $.l]"}, TOO_LARGE, numbers(5_000)),
    Case(
        "jsonpath: patterns for each",
        {"jsonpath": "$.l[?search($.t, '(a|b|ab){1,50}c')]"},
        TOO_LARGE,
        texts(50, 100_000),
    ),
    Case(
        "jsonpath: a pattern that goes back",
        {"jsonpath": "$[?match(@, '(a+)+$')]", "operator": "not_exists"},
        False,
        texts(1, 50_000),
    ),
    Case(
        "schema: large, for much",
        {"schema": {"items": {"enum": [{"a": i} for i in range(3_000)]}}, "of": "output.l"},
        TOO_LARGE,
        lambda: {"l": [{"a": 2_999}] * 3_000},
    ),
    Case(
        "schema: a pattern that goes back",
        {"schema": {"properties": {"b": {"pattern": "(a+)+$"}}}},
        False,
        texts(1, 50_000),
    ),
    Case("schema: itself, without end", {"schema": {"$ref": "#"}, "invert": True}, False),
    Case(
        "schema: itself, in a circle",
        {
            "schema": {
                "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
                "$ref": "#/$defs/a",
            },
            "invert": True,
        },
        False,
    ),
]

HOSTILE: Final = [*SOURCES, *DATA]
TRIED: Final = some(HOSTILE)
