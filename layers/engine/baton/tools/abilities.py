"""Properties of a tool besides its function: subject, cost, and abilities about failures.

These are keywords of `@tool`; each message about a mistake names the correct form. The function and its
schemas are in define.py, relations between tools in core/failures/alternatives.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from pydantic import TypeAdapter, ValidationError

from baton.core.effects.keys import SAGA, KeyRule, check_rule
from baton.core.effects.risk import ACTIONS, CURRENCY, Risk, mistake_of
from baton.core.effects.toolspec import ASK, CALL, ONCE, PURE, Approval, Merits
from baton.core.expressions import nearest, parse_duration
from baton.core.failures.alternatives import kinds_of
from baton.core.failures.policy import DOMAINS, HINTS, HOOKS
from baton.core.limits import DAY_MS
from baton.core.log.questions import APPROVE, REJECT
from baton.core.money import amount_of, micro_dollars

NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
_PATTERN = re.compile(r"[a-z*][a-z0-9_.*]*")
_TYPO = 0.85
_MOST_FALLBACKS = 20

Names = str | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Abilities:
    """The keyword arguments of `@tool` as written."""

    domain: str
    cost_usd: Decimal | str | float | None
    key: KeyRule | None
    verify: str
    instead_of: Names
    hints: Names
    merits: Merits | None
    carries_out: Names
    for_tools: Names
    fallbacks: Mapping[str, Sequence[Any]] | None
    context: str
    repeatable: bool = False
    requires_approval: bool | Mapping[str, Any] = False
    risk: Risk | None = None
    undo: str = ""
    breaker: str = ""
    in_doubt: str = ""
    cache: str | float | None = None

    def fields(
        self, name: str, effect: str, schema: dict[str, Any], hints: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the fields of the `ToolSpec`. `schema`, `hints`: of the parameters. Raises `ValueError`."""
        takes = schema.get("properties", {})
        carries_out = _carries_out(self.carries_out)
        if carries_out and effect == ONCE:
            raise ValueError(
                "carries_out: it is called anew for every attempt, and no claim is made for it; "
                "give it another effect, and let its service tell calls apart by `context.idempotency_key`"
            )
        return {
            "domain": _domain(self.domain),
            "cost": _cost(self.cost_usd),
            "key": (key := _key(self.key, effect, schema)),
            "repeatable": _repeatable(self.repeatable, key),
            "verify": _verify(self.verify, name, effect),
            "instead_of": (instead_of := _tools("instead_of", self.instead_of, name)),
            "hints": _hints(self.hints, instead_of),
            "merits": _merits(self.merits, is_way=bool(instead_of or carries_out)),
            "carries_out": carries_out,
            "for_tools": _for_tools(self.for_tools, name, carries_out),
            "fallbacks": _fallbacks(self.fallbacks, takes, hints),
            "context": _context(self.context, schema, takes),
            "risk": (risk := _risk(self.risk, effect, takes)),
            **_approval(self.requires_approval, risk),
            "undo": _undo(self.undo, effect),
            "breaker": _breaker(self.breaker, takes),
            "in_doubt": _in_doubt(self.in_doubt, self.undo),
            "cache_ms": _cache(self.cache, effect, asks=bool(self.requires_approval or risk)),
        }


def _names(field: str, said: Any) -> tuple[str, ...]:
    """Return one name or several, each once."""
    if isinstance(said, str):
        return (said,) if said else ()
    if not isinstance(said, Sequence) or not all(isinstance(name, str) and name for name in said):
        raise ValueError(f"{field}: give a name or a list of names")
    return tuple(dict.fromkeys(said))


def _told(text: str, hint: str) -> str:
    return f"{text}; {hint}" if hint else text


# ---- what it is about, and what it costs ---------------------------------------------------------------------------


def _domain(domain: str) -> str:
    if domain and domain not in DOMAINS:
        known = f"domain `{domain}` is not one of {', '.join(DOMAINS)}"
        raise ValueError(_told(known, nearest(str(domain), DOMAINS)))
    return domain


def _cost(usd: Any) -> int:
    try:
        return 0 if usd is None else micro_dollars([amount_of(usd)])
    except ValueError as error:
        raise ValueError(f"cost_usd: {error}") from error


# ---- effects -------------------------------------------------------------------------------------------------------


def _key(key: Any, effect: str, schema: dict[str, Any]) -> KeyRule:
    if key is None:
        return KeyRule()
    if not isinstance(key, KeyRule):
        raise ValueError("key: give one that `Key` makes, such as `Key.business(...)`")
    if effect == PURE:
        raise ValueError(
            "key: a tool with the effect `pure` needs none; nothing happens that could happen twice"
        )
    if problem := check_rule(key, schema):
        raise ValueError(f"key: {problem}")
    return key


def _breaker(said: Any, takes: Mapping[str, Any]) -> str:
    if not said:
        return ""
    from baton.core.failures.breakers import HOST, name_problem  # few tools have one

    if problem := name_problem(said):
        raise ValueError(f"breaker: {problem}")
    if said == HOST and "url" not in takes:
        raise ValueError(
            "breaker: `host` is that of the parameter `url`, which this function does not have; give a name"
        )
    return str(said)


def _repeatable(said: Any, key: KeyRule) -> bool:
    if _flag("repeatable", said) and key.strategy == SAGA:
        raise ValueError(
            "repeatable: `Key.saga` makes equal calls of a saga one call; leave one of the two out"
        )
    return bool(said)


def _verify(verify: str, name: str, effect: str) -> str:
    if not verify:
        return ""
    if not NAME.fullmatch(verify):
        raise ValueError(f"verify: `{verify}` is not a tool name")
    if verify == name:
        raise ValueError("verify: it names itself; name the tool that looks whether a call has happened")
    if effect == PURE:
        raise ValueError(
            "verify: a tool with the effect `pure` changes nothing, so that there is nothing to look for"
        )
    return verify


def _undo(undo: Any, effect: str) -> str:
    if not isinstance(undo, str):
        raise ValueError('undo: give the name of a tool, such as `undo="table.cancel"`')
    if undo and not NAME.fullmatch(undo):
        raise ValueError(f"undo: `{undo}` is not a tool name")
    if undo and effect == PURE:
        raise ValueError(
            "undo: a tool with the effect `pure` changes nothing, so that there is nothing to undo"
        )
    return undo


def _in_doubt(said: Any, undo: str) -> str:
    if said not in {"", CALL, ASK}:
        raise ValueError(f'in_doubt: write "{CALL}" or "{ASK}", or leave it out')
    if said and not undo:
        raise ValueError("in_doubt: says when the tool of `undo` is called; `undo` is missing")
    return str(said)


def _cache(said: Any, effect: str, *, asks: bool) -> int:
    if said is None:
        return 0
    if effect != PURE:
        raise ValueError("cache: only a tool with the effect `pure` has a result that another call may take")
    if asks:
        raise ValueError("cache: a call that a person approves is made; leave one of the two out")
    try:
        time = parse_duration(said)
    except ValueError as error:
        raise ValueError(f"cache: {error}") from error
    if time > DAY_MS:
        raise ValueError("cache: a result is kept for at most a day")
    return time


# ---- approvals -----------------------------------------------------------------------------------------------------


def _flag(field: str, said: Any) -> bool:
    if not isinstance(said, bool):
        raise ValueError(f"{field}: write `True`, or leave it out")
    return said


def _approval(said: Any, risk: Risk | None) -> dict[str, Any]:
    """Return the fields for approvals: of `True`, or of what a node of a document has there."""
    if isinstance(said, bool):
        return {"requires_approval": said}
    if not isinstance(said, Mapping):
        text = 'write `True`, or a mapping such as `{"to": {"group": "support"}, "expires": "2h"}`'
        raise ValueError(f"requires_approval: {text}; or leave it out")
    from baton.core.documents.parts.people import ApprovalModel, escalation_problems  # models of documents

    try:
        model = ApprovalModel.model_validate(said)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(("requires_approval", *map(str, first["loc"])))
        if first["type"] == "extra_forbidden":
            known = [*ApprovalModel.model_fields] if len(first["loc"]) == 1 else ()
            raise ValueError(
                _told(f"{place}: there is no such field", nearest(str(first["loc"][-1]), known))
            ) from error
        raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from error
    if not model.always and risk is None:
        raise ValueError("requires_approval.always: with `False` it needs a `risk`, or nothing is ever asked")
    steps = model.escalate or ()
    refused = {APPROVE: ("only a person approves a call", f"write `{REJECT}`, or `hand_on`")}
    answers, expiry = (APPROVE, REJECT), "see `expires`, 24h by default"
    for problem in (
        escalation_problems(
            "escalate", steps, answers=answers, refused=refused, expires=model.expires, expiry=expiry
        )
        if steps
        else ()
    ):
        place = problem.path.replace("/", ".")
        raise ValueError(_told(f"requires_approval.{place}: {problem.message}", problem.suggestion))
    says = model.said()
    if "${" in json.dumps(says):
        raise ValueError(
            "requires_approval: a tool has no values for `${…}`; the question shows the arguments"
        )
    return {
        "requires_approval": model.always,
        "approval": Approval(says=says or None, expires_ms=model.expires_ms),
    }


def _risk(risk: Any, effect: str, takes: Mapping[str, Any]) -> Risk | None:
    if risk is None:
        return None
    if not isinstance(risk, Risk):
        raise ValueError('risk: give `Risk(action="payment", amount="amount", currency="currency")`')
    if effect == PURE:
        raise ValueError("risk: a tool with the effect `pure` changes nothing, so that nothing is at risk")
    if risk.action not in ACTIONS:
        known = f"risk: action `{risk.action}` is not one of {', '.join(ACTIONS)}"
        raise ValueError(_told(known, nearest(str(risk.action), ACTIONS)))
    if risk.level:
        raise ValueError("risk: a `level` is of operations of APIs; write `requires_approval=True`")
    if mistake := mistake_of(risk):
        raise ValueError(f"risk: {mistake}")
    if risk.currency_is and not re.fullmatch(CURRENCY, risk.currency_is):
        raise ValueError(
            f"risk: `{risk.currency_is}` is no currency; write three capital letters, such as USD"
        )
    for path in filter(None, (risk.amount, risk.currency, risk.party)):
        _parameter("risk", path.partition(".")[0], takes)
    return risk


# ---- ways ----------------------------------------------------------------------------------------------------------


def _tools(field: str, said: Names, name: str) -> tuple[str, ...]:
    found = _names(field, said)
    for pattern in found:
        if not _PATTERN.fullmatch(pattern):
            raise ValueError(
                f"{field}: `{pattern}` is neither the name of a tool nor a pattern such as `search.*`"
            )
        if pattern == name:
            raise ValueError(f"{field}: it names itself; name the tools that it can do something for")
    return found


def _for_tools(said: Names, name: str, carries_out: Sequence[str]) -> tuple[str, ...]:
    found = _tools("for_tools", said, name)
    if carries_out:
        return found or ("*",)
    if found not in {(), ("*",)}:
        raise ValueError("for_tools: says for which tools it carries something out; `carries_out` is missing")
    return ()


def _hints(said: Names, instead_of: Sequence[str]) -> tuple[str, ...]:
    found = _names("hints", said)
    for hint in found:
        if hint in HOOKS:
            raise ValueError(
                f"hints: `{hint}` is done before a retry, and no other way; write it as `carries_out`"
            )
        _own_name("hints", hint, "hint", HINTS)
    if found and not instead_of:
        raise ValueError(
            "hints: says for which hints it stands in for another tool; `instead_of` is missing "
            "(a tool that helps another one has `carries_out`)"
        )
    return found


def _merits(merits: Any, *, is_way: bool) -> Merits:
    if merits is None:
        return Merits()
    if not isinstance(merits, Merits):
        raise ValueError("merits: give `Merits(reliability=0.98, cost=1.2)`")
    if not is_way:
        raise ValueError(
            "merits: speak for a tool that others have as a way; say `instead_of` or `carries_out`"
        )
    for field in Merits.__struct_fields__:
        value = getattr(merits, field)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        is_relative = field in {"cost", "latency"}
        if not is_number or value < 0 or (value > 1 and not is_relative):
            right = "0 or more, 1 for the usual" if is_relative else "between 0 and 1"
            raise ValueError(f"merits: {field} must be a number, {right}")
    return merits


def _carries_out(said: Names) -> tuple[str, ...]:
    found = _names("carries_out", said)
    for name in found:
        _own_name("carries_out", name, "hint and no hook", (*HINTS, *HOOKS))
    return found


def _own_name(field: str, name: str, what: str, known: Collection[str]) -> None:
    """Check a name of the author's own, which must not be a misspelt one of these."""
    if name in known:
        return
    if not NAME.fullmatch(name):
        raise ValueError(f"{field}: `{name}` is not a name; write lower case, such as `{next(iter(known))}`")
    if close := get_close_matches(name, known, n=1, cutoff=_TYPO):
        raise ValueError(f"{field}: there is no {what} `{name}`; did you mean `{close[0]}`?")


def _fallbacks(
    said: Mapping[str, Sequence[Any]] | None, takes: Mapping[str, Any], hints: Mapping[str, Any]
) -> dict[str, tuple[Any, ...]]:
    if said is None:
        return {}
    if not isinstance(said, Mapping):
        raise ValueError(
            'fallbacks: give the values of each parameter, such as {"model": ["small", "large"]}'
        )
    return {
        name: _values(name, values, hints[_parameter("fallbacks", name, takes)])
        for name, values in said.items()
    }


def _values(name: str, values: Any, hint: Any) -> tuple[Any, ...]:
    field = f"fallbacks: `{name}`"
    if not isinstance(values, list | tuple) or not 0 < len(values) <= _MOST_FALLBACKS:
        raise ValueError(f"{field} needs a list of 1 to {_MOST_FALLBACKS} values")
    valid = _valid(hint)
    found: list[Any] = []
    for value in values:
        try:
            data = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{field}: {value!r} is no JSON: {error}") from error
        if why := valid(data):
            raise ValueError(f"{field}: {value!r} is no value of it: {why}")
        if any(data == other and type(data) is type(other) for other in found):
            raise ValueError(f"{field}: {value!r} is there twice")
        found.append(data)
    return tuple(found)


def _valid(hint: Any) -> Callable[[Any], str]:
    adapter: TypeAdapter[Any] = TypeAdapter(hint)

    def why(value: Any) -> str:
        try:
            adapter.validate_python(value)
        except ValidationError as error:
            return str(error.errors(include_url=False, include_input=False)[0]["msg"])
        except Exception as error:  # noqa: BLE001  # a type's own code runs in there
            return str(error)
        return ""

    return why


def _context(context: str, schema: Mapping[str, Any], takes: Mapping[str, Any]) -> str:
    if context:
        kinds = kinds_of(takes[_parameter("context", context, takes)], schema)
        if kinds and kinds.isdisjoint({"string", "array"}):
            raise ValueError(f"context: `{context}` is neither text nor a list, and cannot be shortened")
    return context


def _parameter(field: str, name: str, takes: Mapping[str, Any]) -> str:
    if name not in takes:
        known = f"it has {', '.join(f'`{one}`' for one in takes)}" if takes else "it has none"
        raise ValueError(f"{field}: there is no parameter `{name}`; {nearest(str(name), takes) or known}")
    return name
