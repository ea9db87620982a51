"""The language of expressions as regular expressions, for the JSON Schema of documents."""

from __future__ import annotations

from typing import Any

from baton.core.expressions import JOIN_FIELDS, SAGA_FIELDS, SPACE

_SPACE = "[" + SPACE.encode("unicode_escape").decode() + "]*"
_LITERAL = r"[^$]|\$\$+\{|\$+[^${]"


def _one_of(names: tuple[str, ...]) -> str:
    """A step that is one of some names, in each of its three spellings."""
    either = "|".join(names)
    return rf"""(?:\.(?:{either})|\["(?:{either})"\]|\['(?:{either})'\])"""


def _expression() -> str:
    """What can stand between `${` and `}`: the language of core/expressions/ as a regular expression."""
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


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def template(gives: str) -> dict[str, Any]:
    return {"title": f"an expression that gives {gives}", "type": "string", "pattern": TEMPLATE_PATTERN}
