"""The table of settings: what each is for, its default, its bounds, who reads it, and the parameter that sets it.

Derived from settings.py, core/limits.py and template.yaml; the page is docs/configuration.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import yaml

from baton.core.limits import Limits
from baton.settings import FUNCTIONS, is_required, variable_of

TEMPLATE = Path(__file__).parents[1] / "template.yaml"
TITLES = {
    "Settings": "Every function",
    "App": "Your sagas",
    "Callers": "Callers of the HTTP API",
    "SignIn": "The console",
    "Execution": "Execution",
    "Retrying": "Retries",
    "Registration": "Documents that are registered",
    "Replanning": "Other ways to do a failed step",
    "Questions": "Time of questions",
    "LastResort": "What is done about failed steps",
    "Agents": "Calls of agents",
    "Money": "What tools may spend",
    "Effects": "Effects that happen once",
    "Liveness": "Liveness",
    "Values": "Values",
    "Signals": "Signals",
    "People": "People who are asked",
    "Tenants": "What one tenant may have",
    "Stores": "Stores that do not answer",
    "Standard": "Standard tools",
    "Outside": "What the standard tools reach",
    "Estimates": "The worker, as the API knows it",
    "Names": "Names of what the template makes",
}


class _Template(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's, if PyYAML has it
    """YAML in which `!Ref X`, and the key of a map that a parameter chooses from, are `X`; other tags are None."""


def _reference(loader: Any, suffix: str, node: yaml.Node) -> Any:
    if suffix == "Ref" and isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if suffix == "FindInMap" and isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node)[1]
    return None


_Template.add_multi_constructor("!", _reference)


@cache
def template() -> Mapping[str, Any]:
    # A subclass of SafeLoader: it builds no objects.
    loaded: Mapping[str, Any] = yaml.load(TEMPLATE.read_text("utf-8"), _Template)  # noqa: S506
    return loaded


def parameter_of() -> dict[str, str]:
    """Variable -> the template's parameter that it is filled from; none for what the template itself names."""
    loaded = template()
    owners = [loaded["Globals"]["Function"], *(r.get("Properties", {}) for r in loaded["Resources"].values())]
    found: dict[str, str] = {}
    for owner in owners:
        environment = owner.get("Environment")
        if isinstance(environment, dict):
            found |= {k: v for k, v in environment["Variables"].items() if v in loaded["Parameters"]}
    return found


@dataclasses.dataclass(frozen=True)
class Row:
    """A setting; `section` is the class it stands in."""

    name: str
    section: str
    default: str
    bounds: str
    functions: tuple[str, ...]
    text: str


def rows() -> Iterator[Row]:
    """Every setting of every function, once."""
    readers: dict[str, list[str]] = {}
    for function, model in FUNCTIONS.items():
        for field in dataclasses.fields(model):
            readers.setdefault(field.name, []).append(function)
    seen: set[str] = set()
    for model in FUNCTIONS.values():
        hints = get_type_hints(model, include_extras=True)
        for field in dataclasses.fields(model):
            if field.name in seen:
                continue
            seen.add(field.name)
            meta = get_args(hints[field.name])[1:]
            owner = next(
                kind
                for kind in reversed(model.__mro__)
                if field.name in vars(kind).get("__annotations__", {})
            )
            yield Row(
                name=field.name,
                section="Names"
                if is_required(field)
                else owner.__name__
                if owner.__name__ in TITLES
                else "Settings",
                default="" if is_required(field) else _number(field.default),
                bounds=_bounds(meta),
                functions=tuple(readers[field.name]),
                text=next(
                    m.description for m in reversed(meta) if isinstance(m, msgspec.Meta) and m.description
                ),
            )


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"`{value}`" if value else "empty"


def _bounds(metas: tuple[Any, ...]) -> str:
    for meta in metas:
        if isinstance(meta, msgspec.Meta) and meta.ge is not None:
            return f"{meta.ge:,} to {meta.le:,}"
    return ""


def settings() -> str:
    """One table for each section."""
    parameters, found = parameter_of(), list(rows())
    parts = []
    for section, title in TITLES.items():
        lines = [f"### {title}", "", "| variable | parameter | default | bounds | read by | what it is |",
                 "|---|---|---|---|---|---|"]  # fmt: skip
        for row in found:
            if row.section == section:
                variable = variable_of(row.name)
                parameter = f"`{parameters[variable]}`" if variable in parameters else "–"
                readers = "all" if len(row.functions) == len(FUNCTIONS) else ", ".join(row.functions)
                lines.append(
                    f"| `{variable}` | {parameter} | {row.default} | {row.bounds} | {readers} | {row.text} |"
                )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def parameters() -> str:
    """The template's parameters that no function reads: they set what AWS does."""
    read = set(parameter_of().values())
    lines = ["| parameter | default | allowed | what it is |", "|---|---|---|---|"]
    for name, spec in template()["Parameters"].items():
        if name in read:
            continue
        allowed = spec.get("AllowedValues") or [
            spec[edge] for edge in ("MinValue", "MaxValue") if edge in spec
        ]
        numbers = [value for value in allowed if isinstance(value, int)]
        shown = f"{min(numbers):,} to {max(numbers):,}" if numbers else ", ".join(map(str, allowed))
        default = spec.get("Default", "")
        text = " ".join(str(spec["Description"]).split())
        lines.append(f"| `{name}` | {_number(default) if default != '' else 'empty'} | {shown} | {text} |")
    return "\n".join(lines)


def fixed() -> list[tuple[str, str]]:
    """The engine's numbers that are the same everywhere, as (name, value)."""
    sections = {field.name for base in Limits.__mro__[1:-1] for field in dataclasses.fields(base)}
    return [
        (field.name, f"{field.default:,}")
        for field in dataclasses.fields(Limits)
        if field.name not in sections
    ]
