"""The language of expressions as regular expressions, for the JSON Schema of documents."""

from __future__ import annotations

from typing import Any

from baton.core.expressions import JOIN_FIELDS, PICK, SAGA_FIELDS, SCHEDULE_FIELDS, SPACE, STEP_FIELDS

_SPACE = "[" + SPACE.encode("unicode_escape").decode() + "]*"
_LITERAL = r"[^$]|\$\$+\{|\$+[^${]"


def _one_of(names: tuple[str, ...]) -> str:
    """A step that is one of some names, in each of its three spellings."""
    either = "|".join(names)
    return rf"""(?:\.(?:{either})|\["(?:{either})"\]|\['(?:{either})'\])"""


def _expression() -> str:
    """What can stand between `${` and `}`, without the spaces around it: core/expressions/ as a regular expression."""
    name = "[A-Za-z_][A-Za-z0-9_]*"
    key = rf"""(?:\.{name}|\["[^"\\}}]*"\]|\['[^'\\}}]*'\])"""
    index = rf"\[(?:[0-9]{{1,9}}|{PICK})\]"
    step = rf"(?:{key}|{index})"
    ways = (
        rf"(?:input|event)(?:{key}\??|{index})*",
        rf"(?:last_error|item|output|ctx{key}{_one_of(('output', 'previous'))}\??|join{_one_of(JOIN_FIELDS)}){step}*",
        rf"step{_one_of(STEP_FIELDS)}(?:{key}\??|{index})*",
        f"saga{_one_of(SAGA_FIELDS)}",
        f"schedule{_one_of(SCHEDULE_FIELDS)}",
        f"loop{_one_of(('iteration',))}",
    )
    return f"(?:{'|'.join(ways)})"


# No look-ahead, and each run of `$` can be read in one way only: so a long text takes no engine long.
_PLACED = rf"\$\{{{_SPACE}{_expression()}{_SPACE}\}}"


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def template(gives: str) -> dict[str, Any]:
    return {"title": f"an expression that gives {gives}", **ref("template")}


# The pattern of an expression is long: each of these has it once, and `not` says which texts that match are none.
TEXT = {"pattern": rf"^(?:{_LITERAL}|{_PLACED})*\$*$"}
# A text with at least one expression in it: of the texts that can be read, those without one match the other pattern.
TEMPLATE = {"type": "string", **ref("textValue"), "not": {"pattern": rf"^(?:{_LITERAL})*\$*$"}}
# One alone, with both `${` and `}` around it or neither. No other `}` can be in it.
EXPRESSION = {
    "type": "string",
    "pattern": rf"^{_SPACE}(?:\$\{{{_SPACE})?{_expression()}{_SPACE}(?:\}}{_SPACE})?$",
    "not": {"pattern": rf"^{_SPACE}(?:\$[^}}]*|[^${_SPACE[1:-2]}][^}}]*\}}{_SPACE})$"},
}
