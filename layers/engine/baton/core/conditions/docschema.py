"""The JSON Schema of a condition as documents write it, for the published schema of workflows.

`CONDITIONS` are among the shared definitions of core/documents/schema.py. They refer to each other, to `#/$defs/value` and to
`#/$defs/duration`. What the fields hold is read by `document.read_condition`; the schema refuses nothing that it accepts.
"""

from __future__ import annotations

from typing import Any

from baton.core.conditions import limits
from baton.core.conditions.compare import OPERATORS as COMPARE_OPERATORS
from baton.core.conditions.jsonpath import OPERATORS as JSONPATH_OPERATORS

_SELF = {"$ref": "#/$defs/condition"}
_OF = {"$ref": "#/$defs/conditionOf"}


def _form(kind: str, description: str, what: Any, **beside: Any) -> dict[str, Any]:
    return {
        "title": kind,
        "description": description,
        "type": "object",
        "required": [kind],
        "additionalProperties": False,
        "properties": {kind: what, **beside},
    }


_CEL = {
    "type": "string",
    "minLength": 1,
    "maxLength": limits.CEL_LENGTH,
    "examples": ["output.score >= 80 && ctx.enrich.output.revenue > 100000"],
}
_LIST = {"type": "array", "minItems": 1, "items": _SELF}
_COMPARISON = {
    "type": "object",
    "required": ["left", "operator", "right"],
    "additionalProperties": False,
    "properties": {
        "left": {"$ref": "#/$defs/value"},
        "operator": {"enum": list(COMPARE_OPERATORS)},
        "right": {"$ref": "#/$defs/value"},
    },
}

_CONDITION: dict[str, Any] = {
    "description": "Whether something holds: a text is an expression in CEL over output, input, ctx, saga, loop, join "
    "and last_error. A condition that breaks fails its node; it never counts as true.",
    "anyOf": [
        {**_CEL, "title": "CEL"},
        _form("cel", "An expression in CEL that gives true or false.", _CEL),
        _form(
            "jsonpath",
            "What a query (RFC 9535) finds, held by an operator.",
            {"type": "string", "maxLength": limits.QUERY_LENGTH + 64, "examples": ["$.items[*].amount"]},
            operator={"enum": list(JSONPATH_OPERATORS), "default": "exists"},
            value={"description": "What the operator compares with."},
            of=_OF,
        ),
        _form(
            "schema",
            "Whether a value is valid by a JSON Schema: written here, named under `schemas`, or in a blob.",
            {"type": ["object", "boolean", "string"], "examples": [{"required": ["data"]}, "done"]},
            invert={"description": "Holds when the value is not valid.", "type": "boolean", "default": False},
            of=_OF,
        ),
        _form("compare", "Two values, compared.", _COMPARISON),
        _form("all", "Holds when all hold; asked in order, as far as needed.", _LIST),
        _form("any", "Holds when one holds; asked in order, as far as needed.", _LIST),
        _form("not", "Holds when the other does not.", _SELF),
        _form(
            "python",
            "`def evaluate(output, context)` in a sandbox, written here or in a blob.",
            {"type": "string", "examples": ["def evaluate(output, context):\n    return output['n'] > 3\n"]},
            of=_OF,
            needs={
                "description": "Expressions of what `context` holds: `context['search']['output']`.",
                "type": "array",
                "items": {"type": "string"},
                "examples": [["ctx.search.output", "input.city"]],
            },
            timeout={"$ref": "#/$defs/duration"},
            max_memory_mb={
                "type": "integer",
                "minimum": limits.PYTHON_MEMORY_MB[0],
                "maximum": limits.PYTHON_MEMORY_MB[1],
                "default": 50,
            },
        ),
    ],
    "examples": ["output.score >= 80", {"all": ["output.ok", {"not": {"jsonpath": "$.errors[0]"}}]}],
}
CONDITIONS: dict[str, dict[str, Any]] = {
    "condition": _CONDITION,
    "conditionOf": {
        "description": "Expression of the value that is looked at. Without it, what the node has just given; in a `when`, "
        "the saga's input.",
        "type": "string",
        "examples": ["${ctx.search.output}"],
    },
}
"""By the names that schemas refer to them by."""
