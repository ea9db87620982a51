"""The tables of pipelines in docs/tools.md, made of the primitives and limits in core/pipelines.

Markers and pages are in generate.py.
"""

from __future__ import annotations

from baton.core.pipelines import limits
from baton.core.pipelines.registry import PRIMITIVES
from baton.core.pipelines.shapes import REQUIRED, Field


def pipeline_steps() -> str:
    """Every primitive, what it does, and its own fields."""
    lines = ["| `op` | what it does | fields (`?`: may be left out) |", "|---|---|---|"]
    for op, primitive in PRIMITIVES.items():
        fields = "<br>".join(map(_field, primitive.fields))
        lines.append(f"| `{op}` | {_cell(primitive.says)} | {fields} |")
    return "\n".join(lines)


def _field(field: Field) -> str:
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
        ("steps", limits.STEPS),
        ("of them, requests", limits.REQUESTS),
        ("rows of a table", limits.ROWS),
        ("rows times columns of a table that a step makes", limits.CELLS),
        ("units of work of all steps together", limits.WORK),
        ("conditions inside one condition", limits.CONDITIONS),
        ("names in one list", limits.FIELDS),
        ("characters of a JMESPath expression", limits.EXPRESSION),
        ("characters of a regular expression", limits.PATTERN),
    ]
    lines = ["| what | at most |", "|---|---|", *(f"| {what} | {most:,} |" for what, most in rows)]
    return "\n".join([*lines, "| bytes of the data, and of the result, as JSON | `ResultBytes` |"])
