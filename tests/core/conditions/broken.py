"""Conditions that break over their data, of every kind, with the codes of their failures. Data only."""

from __future__ import annotations

from typing import Final

from tests.core.conditions.ordinary import YES, case

BROKEN: Final = [
    case("a field that is missing", "output.nothing > 1", "condition_missing", "has("),
    case("a node that gave nothing, unguarded", "ctx.skipped.output.x > 1", "condition_missing"),
    case("an index that is not there", "output.errors[7] == 'x'", "condition_missing"),
    case("no round", "loop.iteration > 1", "condition_missing", context={}),
    case("whole numbers and others", "output.score + 1.5 > 1.0", "condition_type", "double("),
    case("null in an order", "output.note > 1", "condition_type", "null"),
    case("a text in an order", "output.status > 1", "condition_type", "string and int"),
    case("a field of null", "has(output.note.x)", "condition_type", "not an object"),
    case("a number as a boolean", "output.score ? true : false", "condition_type"),
    case("no boolean", "output.score", "condition_not_boolean", "int"),
    case("a list is no boolean", "output.errors", "condition_not_boolean", "list"),
    case(
        "division by zero", "int(output.score) / int(output.retry_count - 2) > 1", "condition_error", "zero"
    ),
    case("overflow", "output.score * 9223372036854775807 > 1", "condition_error"),
    case("a number of more than 64 bits", "output > 1", "condition_type", "64 bits", output=2**70),
    case("half a character", "output != ''", "condition_error", output="\ud800"),
    case(
        "nothing to compare", {"jsonpath": "$.x", "operator": "==", "value": 1}, "condition_missing", "exists"
    ),
    case(
        "many to compare",
        {"jsonpath": "$.errors[*]", "operator": "==", "value": "x"},
        "condition_type",
        "2 values",
    ),
    case(
        "an order of texts and numbers",
        {"jsonpath": "$.status", "operator": "<", "value": 1},
        "condition_type",
    ),
    case(
        "a sum of texts", {"jsonpath": "$.errors", "operator": "sum", "value": 1}, "condition_type", "a text"
    ),
    case("a sum of nulls", {"jsonpath": "$.note", "operator": "sum", "value": 1}, "condition_type", "null"),
    case(
        "a sum of booleans",
        {"jsonpath": "$.paid", "operator": "sum", "value": 1},
        "condition_type",
        "a boolean",
    ),
    case(
        "a sum of lists",
        {"jsonpath": "$[*]", "operator": "sum", "value": 1},
        "condition_type",
        "[*]",
        output=[[1]],
    ),
    case("the least of nothing", {"jsonpath": "$.empty", "operator": "min", "value": 1}, "condition_missing"),
    case(
        "a sum without end",
        {"jsonpath": "$", "operator": "sum_gt", "value": 1},
        "condition_error",
        output=[1e308, 1e308],
    ),
    case(
        "a length of a number",
        {"jsonpath": "$.score.length()", "operator": "==", "value": 1},
        "condition_type",
    ),
    case(
        "a length of nothing", {"jsonpath": "$.x.length()", "operator": "==", "value": 1}, "condition_missing"
    ),
    case("in a number", {"jsonpath": "$.score", "operator": "contains", "value": 1}, "condition_type"),
    case(
        "a number in a text", {"jsonpath": "$.status", "operator": "contains", "value": 1}, "condition_type"
    ),
    case("of what is not there", {"jsonpath": "$", "of": "output.nothing"}, "condition_missing"),
    case(
        "compared with what is not there",
        {"compare": {"left": "${output.nothing}", "operator": "==", "right": 1}},
        "condition_missing",
    ),
    case(
        "an order of lists",
        {"compare": {"left": "${output.errors}", "operator": ">", "right": "${output.errors}"}},
        "condition_type",
    ),
    case(
        "a blob that is no schema",
        {"schema": "cas://sha256/" + "c" * 64},
        "condition_invalid",
        blobs={"cas://sha256/" + "c" * 64: {"type": 5}},
    ),
    case(
        "a blob that is no object",
        {"schema": "cas://sha256/" + "c" * 64},
        "condition_invalid",
        blobs={"cas://sha256/" + "c" * 64: [1]},
    ),
    case("a schema that is not there", {"schema": "cas://sha256/" + "c" * 64}, "condition_missing"),
    case("a function that is not there", {"python": "cas://sha256/" + "c" * 64}, "condition_missing"),
    case(
        "a blob that is no text",
        {"python": "cas://sha256/" + "c" * 64},
        "condition_invalid",
        blobs={"cas://sha256/" + "c" * 64: 1},
    ),
    case(
        "a blob without a function",
        {"python": "cas://sha256/" + "c" * 64},
        "condition_invalid",
        "evaluate",
        blobs={"cas://sha256/" + "c" * 64: "x = 1"},
    ),
    case("a need that is not there", {"python": YES, "needs": ["ctx.skipped.output"]}, "condition_missing"),
]
