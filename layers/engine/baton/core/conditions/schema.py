"""JSON Schema validation that reports every violation with its path and never fetches anything.

Many sagas have no schema, so the first schema loads the modules that read one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from baton.core.conditions import model
from baton.core.expressions import escape, nearest
from baton.core.on_demand import OnDemand
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.conditions import matches, schemaplan
    from baton.core.conditions.schemaplan import SchemaPlan
else:
    matches = OnDemand("baton.core.conditions.matches")
    schemaplan = OnDemand("baton.core.conditions.schemaplan")


def check_schema(schema: Any) -> None:
    """Raise `SchemaError` if this is no JSON Schema, refers outside itself, or exceeds a limit."""
    schemaplan.plan_for(schema)


def violations(schema: Any, value: Any, pointer: str = "") -> tuple[Problem, ...]:
    """Return the violations of `schema` in `value`; `pointer` is prefixed to each path.

    `schema` may be its JSON, for a schema that is used often. The result has up to 100 violations, and only
    the first for a large value. A value that would cost too much to check is a violation, too.
    """
    try:
        plan = schemaplan.plan_for(schema)
        matches.check_work(plan, value)
    except (schemaplan.SchemaError, matches.TooMuch) as error:
        what = "its schema cannot be used: " if isinstance(error, schemaplan.SchemaError) else ""
        return (Problem(pointer, f"{what}{error}"),)
    if plan.validator.is_valid(value):
        return ()
    return tuple(
        Problem(pointer + "".join(f"/{escape(step)}" for step in path), schemaplan.shorten_message(message))
        for path, message in _told(plan, value)
    )


def _told(plan: SchemaPlan, value: Any) -> list[tuple[list[str | int], str]]:
    if matches.can_report_violations(plan, value):
        found = plan.validator.iter_errors(value)
        told = [(error.instance_path, error.message) for error in islice(found, model.PROBLEMS)]
        more = sum(1 for _ in found)
        return [*told, ([], f"and {more} more")] if more else told
    if plan.has_unions:  # a violation would hold those of all its alternatives
        return [([], "does not match its schema; it is too large to say where")]
    return [_first(plan.validator, value)]


def _first(validator: Any, value: Any) -> tuple[list[str | int], str]:
    """Return the first violation of a value that has at least one."""
    found: Any = None
    try:
        validator.validate(value)
    except ValueError as error:  # the library's own is one; importing it takes twelve megabytes
        found = error
    return found.instance_path, found.message


def input_violations(schema: Any, value: Any) -> tuple[Problem, ...]:
    """Return the `violations` of a saga's input. A missing input is null."""
    found = violations(schema, value, "/input")
    if not found or value is not None:
        hint = _misspelt_field(schema, value) if found and found[0].path == "/input" else ""
        return (replace(found[0], suggestion=hint), *found[1:]) if hint else found
    required = schema.get("required") if isinstance(schema, dict) else None
    needs = f"; it needs: {', '.join(map(str, required))}" if isinstance(required, list) and required else ""
    return (Problem("/input", f"`input` is missing{needs}"),)


_MOST_FIELDS = 100


def _misspelt_field(schema: Any, value: Any) -> str:
    """Return a hint about the first field of an input that the schema has under a similar name."""
    fields = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(fields, dict) or not isinstance(value, dict):
        return ""
    missing = [name for name in islice(fields, _MOST_FIELDS) if name not in value]
    strange = (name[:_MOST_FIELDS] for name in islice(value, _MOST_FIELDS) if name not in fields)
    hints = (f"`{name}`: {hint}" for name in strange if (hint := nearest(name, missing)))
    return next(hints, "")
