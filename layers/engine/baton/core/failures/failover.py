"""Failover policies: reactions to failures that fit a description; the first that fits is taken.

The ladder that is climbed if none fits is in strategies/ladder.py, their form in a document in
core/documents/parts/failing.py. Nothing is carried out here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from baton.core.conditions.model import Condition, ConditionError

MINUTE_MS, DAY_MIN = 60_000, 1_440
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Judge = Callable[[Condition], bool]


class Context(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A failure and its place.

    `at` is UTC epoch milliseconds, `parameters` are the arguments of the tool's call.
    """

    node: str
    tool: str = ""
    domain: str = ""
    code: str
    kind: str
    status: int = 0
    attempt: int = 1
    at: int
    parameters: Any = None
    message: str = ""

    def as_value(self, *, is_retryable: bool) -> dict[str, Any]:
        """Return the failure as JSON, for expressions and conditions: the value of `last_error`."""
        moment = _EPOCH + timedelta(milliseconds=self.at)
        return {
            "code": self.code,
            "class": self.kind,
            "message": self.message,
            "retryable": is_retryable,
            "node": self.node,
            "action": self.tool,
            "domain": self.domain,
            "status": self.status,
            "attempt": self.attempt,
            "at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "parameters": self.parameters,
        }


class Window(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the day, in minutes from its midnight: `begins` belongs to it, `ends` does not.

    A window that ends before it begins goes on past midnight and belongs to the day it began on; a window
    that ends when it begins is the whole day. `days` count from Monday, 0; empty: all. `offset` is the
    clock's, in minutes from UTC.
    """

    begins: int = 0
    ends: int = 0
    days: tuple[int, ...] = ()
    offset: int = 0

    def has(self, at: int) -> bool:
        """Return true if a moment, in UTC epoch milliseconds, is in it."""
        minutes = at // MINUTE_MS + self.offset
        day, minute = divmod(minutes, DAY_MIN)
        if self.begins >= self.ends and minute < self.ends:
            day -= 1
        elif minute < self.begins or (self.begins < self.ends <= minute):
            return False
        return not self.days or (day + 3) % 7 in self.days  # 1 January 1970 was a Thursday


class Match(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Description of a failure. Every field that is set must fit; an empty field fits all.

    `nodes` and `tools` are patterns, in which `*` stands for any text. `attempt` is from the first number to
    the second, 0 for no end. `parameters` maps a path with dots to the values that it may have.
    """

    nodes: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    attempt: tuple[int, int] = (1, 0)
    times: tuple[Window, ...] = ()
    parameters: dict[str, tuple[Any, ...]] = {}
    condition: Condition | None = None

    @property
    def is_named(self) -> bool:
        """Return true if the description is of failures, and not only of steps."""
        return bool(self.codes or self.kinds) or self.condition is not None


class Action(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """The action of a policy: a strategy of the ladder, for a replan with the change of the step.

    `hint`: the hint to carry out. `tool`: the tool to call in place. `arguments`: JSON with expressions, in
    place of those of the same names.
    """

    strategy: str = "replan"  # graphs keep what is different
    hint: str = ""
    tool: str = ""
    arguments: dict[str, Any] = {}


class Policy(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """One policy.

    `message` is sent to the saga's user, or used in the question that the policy asks; `at_most`: its most
    uses for one step.
    """

    name: str
    when: Match = Match()
    then: Action = Action()
    message: str = ""
    at_most: int = 1


class Found(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The policy that fits, if any, and by policy the error of each condition that broke before it."""

    policy: Policy | None = None
    broken: dict[str, str] = {}


def first_match(
    policies: Sequence[Policy],
    context: Context,
    *,
    used: Mapping[str, int],
    judge: Judge,
) -> Found:
    """Return the first policy that fits and is not used up: `used` has the number of uses of each, by name.

    `judge` evaluates a condition. A broken condition is false: a policy must not hide the failure that it is
    about.
    Other errors of `judge` pass through: a value has to be fetched first, or the sandbox to be asked.
    """
    broken: dict[str, str] = {}
    for policy in policies:
        if used.get(policy.name, 0) >= policy.at_most or not fits(policy.when, context):
            continue
        try:
            if policy.when.condition is None or judge(policy.when.condition):
                return Found(policy=policy, broken=broken)
        except ConditionError as error:
            broken[policy.name] = f"{error.code}: {error.message}"
    return Found(broken=broken)


def fits(match: Match, context: Context) -> bool:
    """Return true if the failure is as described, except for the condition."""
    first, last = match.attempt
    return (
        named(context.node, match.nodes)
        and named(context.tool, match.tools)
        and _listed(context.domain, match.domains)
        and _listed(context.code, match.codes)
        and _listed(context.kind, match.kinds)
        and first <= context.attempt <= (last or context.attempt)
        and (not match.times or any(window.has(context.at) for window in match.times))
        and all(_has(context.parameters, path, values) for path, values in match.parameters.items())
    )


def named(name: str, patterns: Iterable[str]) -> bool:
    """Return true if a name fits one of the patterns, in which `*` stands for any text, or if there
    are none.
    """
    return not patterns or any(_like(name, pattern) for pattern in patterns)


def _like(name: str, pattern: str) -> bool:
    """Return true if a name fits a pattern, in which `*` stands for any text."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    position, end = len(first), len(name) - len(last)
    for part in middle:
        position = name.find(part, position, end)
        if position < 0:
            return False
        position += len(part)
    return True


def _listed(name: str, names: Sequence[str]) -> bool:
    return not names or name in names


def _has(value: Any, path: str, values: Sequence[Any]) -> bool:
    for step in path.split("."):
        if isinstance(value, Mapping):
            if step not in value:
                return False
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step[:9]) < len(value):
            value = value[int(step[:9])]
        else:
            return False
    return any(_same(value, one) for one in values)


def _same(left: Any, right: Any) -> bool:
    """Return true if the values are equal as JSON: `1` is `1.0`, and `true` is no number."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)
