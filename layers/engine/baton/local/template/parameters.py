"""The template's parameters: defaults, overrides, and the constraints and rules declared for them.

Where the values are used is not known here (see resolve.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from baton.local.processes.problems import LocalRunError, TemplateProblem, nearest
from baton.local.template.resolve import Resolver, text
from baton.local.template.template import Template


def effective(
    template: Template, given: Mapping[str, str], trusted: Mapping[str, str]
) -> dict[str, str | list[str]]:
    """Every declared parameter with its value, as text (lists as lists of text).

    `trusted` are values the local run sets itself: they win, and constraints written for the real thing
    (an https:// issuer) do not apply to them. Raises `LocalRunError` for an override that the template
    does not declare or does not allow, and for a parameter without a value.
    """
    declared = template.parameters
    for name in given:
        if name not in declared:
            raise LocalRunError(
                f"parameter {name}: the template declares no such parameter{nearest(name, declared)}"
            )
    values: dict[str, str | list[str]] = {}
    for name, spec in declared.items():
        if name in trusted:
            value = trusted[name]
        elif name in given:
            value = text(given[name])
            _check(name, spec, value)
        elif "Default" in spec:
            value = text(spec["Default"])
        else:
            raise LocalRunError(f"parameter {name}: has no default; pass a value")
        kind = str(spec.get("Type", "String"))
        is_list = kind == "CommaDelimitedList" or kind.startswith("List<")
        values[name] = [item.strip() for item in value.split(",")] if is_list else value
    return values


def check_rules(template: Template, resolver: Resolver) -> None:
    """The section Rules: every assertion whose rule applies must hold."""
    for name, rule in (template.document.get("Rules") or {}).items():
        where = f"Rules.{name}"
        if "RuleCondition" in rule and not resolver.value(rule["RuleCondition"], where):
            continue
        for assertion in rule.get("Assertions", []):
            if not resolver.value(assertion["Assert"], where):
                raise TemplateProblem(where, assertion.get("AssertDescription", "an assertion does not hold"))


def _check(name: str, spec: Mapping[str, Any], value: str) -> None:
    def refuse(what: str) -> LocalRunError:
        hint = spec.get("ConstraintDescription")
        return LocalRunError(f"parameter {name}: {value!r} {what}" + (f" ({hint})" if hint else ""))

    allowed = [text(item) for item in spec.get("AllowedValues", [])]
    if allowed and value not in allowed:
        raise refuse(f"is not one of {', '.join(allowed)}")
    pattern = spec.get("AllowedPattern")
    if pattern and re.fullmatch(str(pattern), value) is None:
        raise refuse(f"does not match {pattern}")
    if spec.get("Type") == "Number":
        try:
            number = float(value)
        except ValueError:
            raise refuse("is not a number") from None
        if number < float(spec.get("MinValue", "-inf")):
            raise refuse(f"is less than {spec['MinValue']}")
        if number > float(spec.get("MaxValue", "inf")):
            raise refuse(f"is more than {spec['MaxValue']}")
