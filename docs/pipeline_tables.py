"""The tables of pipelines in docs/tools.md, made of the primitives and limits in core/pipelines.

Markers and pages are in generate.py.
"""

from __future__ import annotations

from baton.core.pipelines import base
from baton.core.pipelines.base import REQUIRED, PrimitiveField
from baton.core.pipelines.pipeline import PRIMITIVES


def pipeline_steps() -> str:
    """Every primitive, what it does, and its own fields."""
    lines = ["| `op` | what it does | fields (`?`: may be left out) |", "|---|---|---|"]
    for op, primitive in PRIMITIVES.items():
        fields = "<br>".join(map(_field, primitive.fields))
        lines.append(f"| `{op}` | {_cell(primitive.says)} | {fields} |")
    return "\n".join(lines)


def _field(field: PrimitiveField) -> str:
    if field.default is REQUIRED:
        return f"`{field.name}`: {_cell(field.says)}"
    default = field.default[0] if isinstance(field.default, tuple) else field.default
    known = f" (`{default}`)" if isinstance(default, str) else ""
    return f"`{field.name}`?{known}: {_cell(field.says)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def pipeline_limits() -> str:
    """What bounds a pipeline."""
    rows = [
        ("steps", base.STEPS),
        ("of them, requests", base.REQUESTS),
        ("rows of a table", base.ROWS),
        ("rows times columns of a table that a step makes", base.CELLS),
        ("units of work of all steps together", base.WORK),
        ("conditions inside one condition", base.CONDITIONS),
        ("names in one list", base.FIELDS),
        ("characters of a JMESPath expression", base.EXPRESSION),
        ("characters of a regular expression", base.PATTERN_LENGTH),
    ]
    lines = ["| what | at most |", "|---|---|", *(f"| {what} | {most:,} |" for what, most in rows)]
    return "\n".join([*lines, "| bytes of the data, and of the result, as JSON | `ResultBytes` |"])
