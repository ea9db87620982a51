"""Which calls a person has to approve, and what exactly is approved: one tool with these arguments, byte for byte.

How risky a call is: risk.py. How the question is asked: core/log/approvals.py; the last check before a call:
runtime/attempts/approvals.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from baton.core.effects.risk import ASKING, DEFAULT_RULES, LEVELS, LOW, Assessed, Risk, Rules, assess
from baton.core.effects.toolspec import ToolSpec


class Approval(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """What the graph says of the approval of a node: `always` by the document, `by_tool` by the tool when it was compiled.

    `risk` is the tool's of that time. `says` is a template: title, message, and whom the question is `to`.
    `work_of`: the tool whose work is done, where that is another.
    """

    always: bool = False
    by_tool: bool = False
    risk: Risk | None = None
    says: Any = None
    expires_ms: int = 0
    work_of: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a person has to approve before it is made. `digest` names the tool and its arguments.

    `is_changed`: the arguments are others than the step's own, because of what was called before the tool. `is_for_a_person`:
    no escalation may approve it.
    """

    tool: str
    arguments: Mapping[str, Any]
    digest: str
    level: str
    why: str
    is_changed: bool = False
    is_for_a_person: bool = True


def is_for_a_person(level: str) -> bool:
    """Whether what is of this risk must never be approved without a person's answer, whatever escalation says."""
    return level in ASKING


def digest_of(tool: str, arguments: Mapping[str, Any], again: int = 0) -> str:
    """SHA-256 of the tool's name and the arguments as JSON: whatever changes in them changes it."""
    said = [tool, arguments, again] if again else [tool, arguments]
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def request_for(
    tool: str,
    arguments: Mapping[str, Any],
    spec: ToolSpec | None,
    *,
    always: bool = False,
    by_tool: bool = False,
    risks: Iterable[Risk | None] = (),
    rules: Rules | None = None,
    again: int = 0,
) -> Request | None:
    """The approval that a call needs; None when it needs none.

    The strictest one counts of the tool as it is now (`spec`) and of the step that it does: `always` by the document, `by_tool`
    and `risks` by the step's own tool. `again` tells apart calls with equal arguments that are other acts.
    """
    known = {*risks, spec.risk if spec is not None else None} - {None}
    by_tool = by_tool or (spec is not None and spec.requires_approval)
    always = always or by_tool
    if not known and not always:
        return None
    effective = {**_defaults(spec), **arguments}
    worst = Assessed(LOW, "it always needs an approval")
    for risk in known:
        assert risk is not None, "left out above"
        found = assess(risk, DEFAULT_RULES if rules is None else rules, effective)
        if LEVELS.index(found.level) > LEVELS.index(worst.level):
            worst = found
    if not always and worst.level not in ASKING:
        return None
    return Request(
        tool=tool,
        arguments=arguments,
        digest=digest_of(tool, effective, again),
        level=worst.level,
        why=worst.why,
        is_for_a_person=by_tool or not known or worst.level in ASKING,
    )


def _defaults(spec: ToolSpec | None) -> dict[str, Any]:
    """What the tool takes for arguments that are left out."""
    known = spec.parameters.get("properties", {}) if spec is not None else {}
    return {name: schema["default"] for name, schema in known.items() if "default" in schema}
