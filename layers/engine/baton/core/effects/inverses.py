"""The inverse of a tool, which undoes the effect of a call: its arguments, and the conditions of its call.

`@tool(undo=…)` names it. Documents can name another one, or other arguments: `compensate`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from baton.core.effects.toolspec import CALL, ToolSpec
from baton.core.expressions import nearest, with_hint

KEY = "step_key"
"""The parameter that gets the idempotency key of the undone call, unless that has a field or an argument of
this name.
"""
WHOLE = ("output", "input")
"""Parameters that get the whole output or input of the tool, unless that has a field of this name."""


def arguments_of(inverse: ToolSpec, acting: ToolSpec) -> dict[str, Any]:
    """Return, for each parameter of the inverse, the source of its value as an expression; none for
    defaults.
    """
    needs, found = _required(inverse.parameters), dict[str, Any]()
    for name in inverse.parameters.get("properties", {}):
        if (path := _source(name, acting, is_needed=name in needs)) is not None:
            found[name] = f"${{{path}}}"
    return found


def misfit_of_inverse(inverse: ToolSpec, acting: ToolSpec) -> str:
    """Return the reason why the inverse cannot be called by the rule of names; empty if it can."""
    for name in _required(inverse.parameters):
        if _source(name, acting, is_needed=True) is None:
            return (
                f"`{inverse.name}` needs `{name}`, which `{acting.name}` neither returns nor takes; "
                "call the parameter as the field is called, or take the whole as `output` or `input`"
            )
    return ""


def lacks_in_doubt(arguments: Mapping[str, Any], acting: ToolSpec) -> str:
    """Return the reason why an inverse with these arguments cannot be called while the outcome of the step is
    unknown; empty if it can.
    """
    text = str(arguments)
    if "step.output" in text:
        return "needs the output of the step, which is unknown then"
    if "step.key" in text and not acting.sees_key:
        return f"needs the key of the step, and `{acting.name}` takes no `context` to send it with"
    return ""


def problems_of_inverses(specs: Mapping[str, ToolSpec]) -> Iterator[tuple[str, str]]:
    """Yield the tools whose `undo` cannot be their inverse: the tool's name, and the problem."""
    for spec in specs.values():
        if not spec.undo:
            continue
        inverse = specs.get(spec.undo)
        if inverse is None:
            yield (
                spec.name,
                f"undo: {with_hint(f'there is no tool `{spec.undo}`', nearest(spec.undo, specs))}",
            )
        elif inverse.effect == "pure":
            yield spec.name, f"undo: `{spec.undo}` has the effect `pure`, and so undoes nothing"
        elif why := misfit_of_inverse(inverse, spec):
            yield spec.name, f"undo: {why}"
        elif spec.in_doubt == CALL and (why := lacks_in_doubt(arguments_of(inverse, spec), spec)):
            yield spec.name, f"in_doubt: `{spec.undo}` {why}"


def _source(name: str, acting: ToolSpec, *, is_needed: bool) -> str | None:
    """Return the expression for a parameter.

    An optional source is marked, and a missing one leaves the argument out.
    """
    gives, is_open = _fields(acting.result)
    takes = acting.parameters.get("properties", {})
    if name in gives:
        return (
            f"step.output.{name}" if name in _required(_resolved(acting.result)) else f"step.output.{name}?"
        )
    if name in takes:
        return f"step.input.{name}" if name in _required(acting.parameters) else f"step.input.{name}?"
    if name in WHOLE:
        return f"step.{name}"
    if name == KEY:
        return "step.key"
    return f"step.output.{name}" if is_open and is_needed else None


def _fields(schema: Mapping[str, Any]) -> tuple[Collection[str], bool]:
    """Return the fields of an object that a schema describes, and true if it may have others."""
    schema = _resolved(schema)
    said = schema.get("type")
    if said not in (None, "object"):
        return (), False
    fields = schema.get("properties", {})
    return fields, not fields and "anyOf" not in schema and schema.get("additionalProperties") is not False


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    found: Mapping[str, Any] = schema.get("$defs", {}).get(name, schema)
    return found


def _required(schema: Mapping[str, Any]) -> Collection[str]:
    found: Collection[str] = schema.get("required", ())
    return found
