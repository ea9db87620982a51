"""What the JSON Schema of documents says of values that many fields have: names, durations, texts with expressions.

Belongs here: definitions that no model has, and the language of expressions as regular expressions. Does not belong
here: what is made of the models (schema.py).
"""

from __future__ import annotations

from typing import Any

from baton.core.documents.bounds import LEAST_USD, MOST_USD
from baton.core.documents.control import SHARE_PATTERN
from baton.core.documents.fields import MAX_NODES, NODE_NAME, TIME_PATTERN
from baton.core.expressions import JOIN_FIELDS, SAGA_FIELDS, SPACE
from baton.core.expressions.durations import LONGEST_S, PATTERN, SHORTEST_S

_SPACE = "[" + SPACE.encode("unicode_escape").decode() + "]*"
_LITERAL = r"[^$]|\$\$+\{|\$+[^${]"


def _one_of(names: tuple[str, ...]) -> str:
    """A step that is one of some names, in each of its three spellings."""
    either = "|".join(names)
    return rf"""(?:\.(?:{either})|\["(?:{either})"\]|\['(?:{either})'\])"""


def _expression() -> str:
    """What can stand between `${` and `}`: the language of expressions.py as a regular expression."""
    name = "[A-Za-z_][A-Za-z0-9_]*"
    key = rf"""(?:\.{name}|\["[^"\\}}]*"\]|\['[^'\\}}]*'\])"""
    index = r"\[[0-9]{1,9}\]"
    step = rf"(?:{key}|{index})"
    ways = (
        rf"input(?:{key}\??|{index})*",
        rf"(?:last_error|item|output){step}*",
        rf"ctx{key}{_one_of(('output', 'previous'))}\??{step}*",
        f"saga{_one_of(SAGA_FIELDS)}",
        f"loop{_one_of(('iteration',))}",
        f"join{_one_of(JOIN_FIELDS)}{step}*",
    )
    return f"{_SPACE}(?:{'|'.join(ways)}){_SPACE}"


# No look-ahead, and each run of `$` can be read in one way only: so a long text takes no engine long.
_PLACED = rf"\$\{{{_expression()}\}}"
TEXT_PATTERN = rf"^(?:{_LITERAL}|{_PLACED})*\$*$"
# With at least one expression in it.
TEMPLATE_PATTERN = rf"^(?:{_LITERAL})*{_PLACED}(?:{_LITERAL}|{_PLACED})*\$*$"
# Alone, with `${}` around it or without.
EXPRESSION_PATTERN = rf"^(?:{_expression()}|{_SPACE}{_PLACED}{_SPACE})$"


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _template(gives: str) -> dict[str, Any]:
    return {"title": f"an expression that gives {gives}", "type": "string", "pattern": TEMPLATE_PATTERN}


def _names(*, at_least: int) -> dict[str, Any]:
    items = {"type": "array", "items": _ref("nodeName"), "uniqueItems": True}
    return {"anyOf": [_ref("nodeName"), {**items, "minItems": at_least} if at_least else items]}


SHARED: dict[str, dict[str, Any]] = {
    "nodeName": {
        "description": "Name of a node.",
        "type": "string",
        "pattern": NODE_NAME,
        "examples": ["hold"],
    },
    "after": {
        "anyOf": [_ref("nodeName"), {"type": "array", "items": _ref("nodeName")}],
        "default": [],
        "examples": ["search", ["deposit", "order"]],
    },
    "targets": _names(at_least=1),
    "allowed": _names(at_least=0),
    "toolPatterns": {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}]
    },
    "duration": {
        "description": "A duration: a number with a unit (ms, s, m, h, d), or a number of seconds. From 1 ms to 366 days.",
        "type": ["string", "number"],
        "pattern": PATTERN,
        "minimum": SHORTEST_S,
        "maximum": LONGEST_S,
        "examples": ["500ms", "5s", "10m", "1.5h", "2d", 90],
    },
    "waitDuration": {"anyOf": [_ref("duration"), _template("a duration")]},
    "waitTime": {
        "anyOf": [{"title": "a time", "type": "string", "pattern": TIME_PATTERN}, _template("a time")]
    },
    "dollars": {"type": "number", "minimum": LEAST_USD, "maximum": MOST_USD},
    "waitFor": {"anyOf": [{"enum": ["all", "any"]}, {"type": "integer", "minimum": 1, "maximum": MAX_NODES}]},
    "tolerated": {
        "type": ["integer", "string"],
        "minimum": 0,
        "maximum": MAX_NODES,
        "pattern": SHARE_PATTERN,
    },
    "jsonSchema": {"type": ["object", "boolean"]},
    "jsonSchemaOrName": {"type": ["object", "boolean", "string"], "pattern": NODE_NAME},
    "expression": {
        "description": "One expression, with `${}` around it or without.",
        "type": "string",
        "pattern": EXPRESSION_PATTERN,
        "examples": ["output.next", "${ctx.plan.output.steps}"],
    },
    "value": {
        "description": "Any JSON value. In a string, `${…}` is replaced: `input.…` is the saga's input, `input.NAME?` a part of it or null, "
        "`ctx.NODE.output.…` what a node gave, `ctx.NODE.output?.…` the same or null, `saga.…` one of "
        + ", ".join(SAGA_FIELDS)
        + ". A string that is one expression and nothing else becomes what it names, of whatever type. `$${` stands "
        "for `${`.",
        "pattern": TEXT_PATTERN,
        "items": _ref("value"),
        "additionalProperties": _ref("value"),
        "examples": ["${input.city}", "${ctx.search.output.tables[0].id}", "Hello, ${saga.user}!"],
    },
    "agentOf": {
        "type": "object",
        "properties": {
            "model": {"description": "Name of the model.", "type": "string"},
            "tools": {"description": "The tools that it may call.", "$ref": "#/$defs/toolPatterns"},
        },
    },
    "humanOf": {"type": "object"},
    "mapOf": {
        "type": "object",
        "required": ["over"],
        "properties": {
            "over": {"description": "The list.", "type": ["string", "array", "object", "number", "boolean"]}
        },
    },
}
