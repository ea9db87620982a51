"""The engine's knowledge of a tool: name, version, schemas, effect. The function itself is elsewhere."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from baton.core.effects.keys import KeyRule
from baton.core.effects.risk import ASKING, DEFAULT_RULES, LEVELS, LOW, AssessedRisk, Risk, Rules, assess

PURE, IDEMPOTENT, ONCE = "pure", "idempotent", "once"
EFFECTS = (PURE, IDEMPOTENT, ONCE)
CALL, ASK = "call", "ask"
"""Answers for a step in doubt when a rollback comes to it: call its inverse in any case, or ask a person."""


class Merits(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The rating of an alternative: each from 0 to 1, but cost and latency, which are relative to the usual
    ones, 1.
    """

    reliability: float = 0.9
    cost: float = 1.0
    latency: float = 1.0
    fit: float = 1.0
    preference: float = 0.5


class Approval(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A graph's rule for the approval of a node: `always` by the document, `by_tool` by the tool when it was
    compiled.

    `risk` is the tool's of that time. `says` is a template: title, message, and the audience `to`. `work_of`:
    the tool whose work is done, if that is another.
    """

    always: bool = False
    by_tool: bool = False
    risk: Risk | None = None
    says: Any = None
    expires_ms: int = 0
    work_of: str = ""


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, dict=True):
    """Declaration of a tool.

    `parameters` and `result` are JSON Schemas; `timeout_ms` 0 means the engine's default.
    `domain` is its subject (core/failures/matrix.py). `cost` is reserved for each attempt, in micro-dollars.
    `key` is the rule by which two calls are the same one; `verify` is the tool that finds out if a call of
    this one has happened.
    `instead_of` names tools (patterns) that this one can stand in for, `carries_out` the hints and hooks that
    it carries out, for the tools of `for_tools`. `fallbacks` are values of a parameter to try one after the
    other; `context` is the parameter that can be shortened. `sees_key` False: its function has no `Context`,
    and so no use for a key. `repeatable`: an agent's repetition of a call with equal arguments is a new call.
    `requires_approval`: a person approves every call of it first; `risk`: only the risky ones; `approval`:
    the words, the audience and the time of that question where no document says them. `undo`: its
    inverse, which undoes the effect of a call; `in_doubt`: CALL or ASK, for a call with an unknown outcome;
    empty: CALL if that does no harm. `breaker`: the circuit breaker of its target
    (core/failures/breakers.py); empty: none. `cache_ms`: time for which a result answers equal calls of a
    user. `calls`: of a workflow function, the tools that its code names, and `agents` its agents.
    """

    name: str
    version: str
    effect: str
    parameters: dict[str, Any]
    result: dict[str, Any]
    timeout_ms: int = 0
    description: str = ""
    domain: str = ""
    cost: int = 0
    key: KeyRule = KeyRule()
    verify: str = ""
    instead_of: tuple[str, ...] = ()
    carries_out: tuple[str, ...] = ()
    for_tools: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    merits: Merits = Merits()
    fallbacks: dict[str, tuple[Any, ...]] = {}
    context: str = ""
    sees_key: bool = True
    requires_approval: bool = False
    approval: Approval | None = None
    repeatable: bool = False
    risk: Risk | None = None
    undo: str = ""
    breaker: str = ""
    in_doubt: str = ""
    cache_ms: int = 0
    calls: tuple[str, ...] | None = None
    agents: tuple[str, ...] = ()

    @property
    def may_ask(self) -> bool:
        """True if a person may have to approve a call of it."""
        return self.requires_approval or self.risk is not None

    @property
    def is_verified(self) -> bool:
        """True if it is idempotent and has a tool that finds out if a call of it has happened."""
        return self.effect == IDEMPOTENT and bool(self.verify)

    @cached_property
    def schema_hash(self) -> str:
        """Twelve hexadecimal digits that change whenever a schema does."""
        data = msgspec.json.encode([self.parameters, self.result], order="deterministic")
        return hashlib.sha256(data).hexdigest()[:12]


class PinnedTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool of an MCP server. `name`: the server's own. `sha256`: of both schemas."""

    name: str
    effect: str
    sha256: str
    requires_approval: bool = False
    description: str = ""
    parameters: dict[str, Any]
    result: dict[str, Any] | None = None


class PinnedServer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An MCP server. `credential`: `bearer`, the name of a header, or empty."""

    url: str
    protocol: str
    credential: str = ""
    tools: dict[str, PinnedTool]


class Pins(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tools of MCP servers that an application has pinned, by server."""

    servers: dict[str, PinnedServer]


PREFIX: Final = "std."
STANDARD: Final = (
    "std.delete_resource", "std.describe_operations", "std.find_payment", "std.forget", "std.get", "std.get_object", "std.http", "std.http_pipeline", "std.named_pipeline", "std.notify",
    "std.notify_cancelled", "std.openapi", "std.pay", "std.pipeline", "std.put_object", "std.recall", "std.refund", "std.remember", "std.restore",
    "std.restore_object", "std.search_tools", "std.upsert",
)  # fmt: skip
ALL: Final = "std.*"
SEARCH: Final = "std.search_tools"
PATCH_WORKFLOW: Final = "patch_workflow"
"""The call by which an agent patches its own saga. It is a tool of the engine, and in no registry."""
NAMED_PIPELINE: Final = "std.named_pipeline"
"""A tool outside of `std.*`: a deployment that grants it keeps the pipelines that agents run."""
# What looks whether another tool has acted, what takes back what that has done, and what does nothing outside that another cannot
# do, is there with it.
_WITH: Final = {
    "std.find_payment": "std.pay", "std.refund": "std.pay", "std.http_pipeline": "std.http", "std.delete_resource": "std.http",
    "std.describe_operations": "std.openapi", "std.restore": "std.upsert", "std.restore_object": "std.put_object", "std.notify_cancelled": "std.notify",
    "std.forget": "std.remember",
}  # fmt: skip

_TENANTS = r"[A-Za-z0-9_.:@+=|-]{1,128}(,[A-Za-z0-9_.:@+=|-]{1,128})*"
_WORD = rf"std\.(\*|{'|'.join(name.removeprefix(PREFIX) for name in STANDARD)})(={_TENANTS})?"
PATTERN: Final = f"^({_WORD}( {_WORD})*)?$"
"""Pattern of the setting: `std.http std.pay=acme,globex`."""


class Grants(msgspec.Struct, frozen=True):
    """The granted standard tools. `tools` has the tenants of each tool, None for all of them."""

    tools: Mapping[str, frozenset[str] | None]

    @classmethod
    def of(cls, text: str) -> Grants:
        """Return the grants of a setting: a name, or `std.*`, and after `=` the tenants that may use it."""
        tools: dict[str, frozenset[str] | None] = {}
        for word in text.split():
            name, limited, tenants = word.partition("=")
            known = tools.get(name, frozenset())
            tools[name] = None if known is None or not limited else known | set(tenants.split(","))
        return cls(tools)

    def allows(self, name: str, tenant: str | None = None) -> bool:
        """Return true if this tenant, or without one any tenant, may use the standard tool of this name."""
        names = (
            {name, _WITH.get(name, name), ALL if name != NAMED_PIPELINE else NAMED_PIPELINE}
            if name in STANDARD
            else set[str]()
        )
        for granted in names & self.tools.keys():
            tenants = self.tools[granted]
            if tenants is None or tenant is None or tenant in tenants:
                return True
        return False


NOTHING: Final = Grants({})
EVERYTHING: Final = Grants({ALL: None, NAMED_PIPELINE: None})


class TenantTools(Mapping[str, ToolSpec]):
    """Tools by name, of which some are for single tenants only."""

    @abstractmethod
    def for_tenant(self, tenant: str) -> Mapping[str, ToolSpec]:
        """Return the tools that this tenant may use."""


def tools_for(tenant: str, tools: Mapping[str, ToolSpec]) -> Mapping[str, ToolSpec]:
    """Return the tools that a tenant's documents may name."""
    return tools.for_tenant(tenant) if isinstance(tools, TenantTools) else tools


def off(name: str) -> str:
    """Return the text about a missing tool, if it is one of the standard tools."""
    return (
        "it is a standard tool that `StandardTools` of the deployment does not name for this tenant"
        if name in STANDARD
        else ""
    )


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a person has to approve before it is made. `digest` names the tool and its arguments.

    `is_changed`: the arguments differ from the step's own, because of a call before the tool.
    `is_for_a_person`: no escalation may approve it. `says` and `expires_ms`: of the tool; those of a node's
    `requires_approval` come before them.
    """

    tool: str
    arguments: Mapping[str, Any]
    digest: str
    level: str
    why: str
    is_changed: bool = False
    is_for_a_person: bool = True
    says: Mapping[str, Any] = {}
    expires_ms: int = 0


def is_for_a_person(level: str) -> bool:
    """Return true if a call of this risk must never be approved without a person's answer, whatever the
    escalation.
    """
    return level in ASKING


def digest_of(tool: str, arguments: Mapping[str, Any], again: int = 0) -> str:
    """Return the SHA-256 of the tool's name and the arguments as JSON, which changes with any of them."""
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
    own: Approval | None = None,
) -> ApprovalRequest | None:
    """Return the approval that a call needs; None if it needs none.

    The strictest rule counts, of the present tool (`spec`) and of the step: `always` by the document,
    `by_tool` and `risks` by the step's own tool. `again` distinguishes calls with equal arguments that are
    different actions. `own`: the words of the step's tool, which come before those of the called one.
    """
    own = own or (spec.approval if spec is not None else None) or Approval()
    known = {*risks, spec.risk if spec is not None else None} - {None}
    by_tool = by_tool or (spec is not None and spec.requires_approval)
    always = always or by_tool
    if not known and not always:
        return None
    effective = {**_defaults(spec), **arguments}
    worst = AssessedRisk(LOW, "it always needs an approval")
    for risk in known:
        assert risk is not None, "left out above"
        found = assess(risk, DEFAULT_RULES if rules is None else rules, effective)
        if LEVELS.index(found.level) > LEVELS.index(worst.level):
            worst = found
    if not always and worst.level not in ASKING:
        return None
    return ApprovalRequest(
        tool=tool,
        arguments=arguments,
        digest=digest_of(tool, effective, again),
        level=worst.level,
        why=worst.why,
        is_for_a_person=by_tool or not known or worst.level in ASKING,
        says=own.says or {},
        expires_ms=own.expires_ms,
    )


def _defaults(spec: ToolSpec | None) -> dict[str, Any]:
    """Return the tool's values for arguments that are left out."""
    known = spec.parameters.get("properties", {}) if spec is not None else {}
    return {name: schema["default"] for name, schema in known.items() if "default" in schema}
