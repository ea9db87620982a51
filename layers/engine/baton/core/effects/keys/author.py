"""`Key`: how the author of a tool says what makes two calls the same one; and what is wrong with what was said.

What a key is made of is in rules.py.
"""

from __future__ import annotations

import difflib
from typing import Any

from baton.core.effects.keys.rules import (
    BUSINESS,
    CONTENT,
    EVENT,
    GIVEN,
    IN_PROGRESS,
    NODE,
    REQUEST,
    SAGA,
    SCHEDULE,
    STRATEGIES,
    UNLESS_ANYONE,
    USER,
    WAIT,
    WINDOW,
    WITHIN_SAGA,
    KeyRule,
)
from baton.core.expressions.durations import parse_duration


class Key:
    """What makes two calls of a tool the same one: `@tool("pay.card", effect="once", key=Key.business("invoice", "id"))`.

    Names are parameters of the tool, with dots for what is inside one: `"order.id"`. Tenant and tool are in every key.

    Every constructor takes `in_progress="refuse"` (a second caller is told so at once, instead of waiting for the first
    one's result) and `retry_window="7d"` (so long a call that failed may be tried again). All but `node` and `saga`
    take `keep="24h"`: so long the result is given to others who make the same call; the step itself never acts again.
    Those that are made of the user take `anyone=True`: the same call of two users of the tenant is the same, too. Each
    raises `ValueError` that says what would be right.
    """

    @staticmethod
    def node(**options: Any) -> KeyRule:
        """The default of a tool without a rule: the same action of this node of the saga, in this round of its loops."""
        return _rule(NODE, **options)

    @staticmethod
    def saga(**options: Any) -> KeyRule:
        """The same action of this saga, in this round of its loops: a second node that comes to it does not act again."""
        return _rule(SAGA, **options)

    @staticmethod
    def user(*action: str, **options: Any) -> KeyRule:
        """The same action of this user, in whatever saga: by the parameters that name it, or else by all of them."""
        return _rule(USER, parts=action, **options)

    @staticmethod
    def schedule(schedule: str, at: str, **options: Any) -> KeyRule:
        """One run of a schedule: the parameters with its name and with the time that it was for."""
        return _rule(SCHEDULE, parts=(schedule, at), **options)

    @staticmethod
    def event(event: str, **options: Any) -> KeyRule:
        """One event, handled once by this tool: the parameter with its name."""
        return _rule(EVENT, parts=(event,), **options)

    @staticmethod
    def request(**options: Any) -> KeyRule:
        """The same request of this user: all parameters equal."""
        return _rule(REQUEST, **options)

    @staticmethod
    def content(*parts: str, **options: Any) -> KeyRule:
        """The same content of this user: these parameters equal, whatever the others are."""
        return _rule(CONTENT, parts=parts, **options)

    @staticmethod
    def window(window: str | float, *parts: str, **options: Any) -> KeyRule:
        """Once for this user in each window (`5m`), or once for each value of these parameters.

        Windows are counted from 1970 on, in UTC: those of `1h` begin at the full hour. Two calls at either side of an
        edge are two, however near to each other.
        """
        return _rule(WINDOW, parts=parts, window=window, **options)

    @staticmethod
    def business(kind: str, *id: str, version: str = "", **options: Any) -> KeyRule:
        """One thing of the business: its kind, the parameters that name it, and the one with its version if it has any."""
        return _rule(BUSINESS, name=kind, parts=id, version=version, **options)

    @staticmethod
    def given(key: str, **options: Any) -> KeyRule:
        """The parameter with the key that the caller gives."""
        return _rule(GIVEN, parts=(key,), **options)


def _rule(
    strategy: str,
    *,
    parts: tuple[str, ...] = (),
    name: str = "",
    version: str = "",
    window: str | float | None = None,
    anyone: bool = False,
    in_progress: str = WAIT,
    keep: str | float | None = None,
    retry_window: str | float | None = None,
) -> KeyRule:
    rule = KeyRule(
        strategy=strategy,
        name=name,
        parts=parts,
        version=version,
        window_ms=_duration(strategy, "window", window),
        anyone=anyone,
        in_progress=in_progress,
        keep_ms=_duration(strategy, "keep", keep),
        retry_window_ms=_duration(strategy, "retry_window", retry_window),
    )
    if problem := _shape(rule):
        raise ValueError(problem)
    return rule


def _duration(strategy: str, name: str, value: str | float | None) -> int:
    try:
        return 0 if value is None else parse_duration(value)
    except ValueError as error:
        raise ValueError(f"Key.{strategy}: {name}: {error}") from error


def check_rule(rule: KeyRule, parameters: dict[str, Any]) -> str:
    """What is wrong with a rule for a tool with these parameters (a JSON Schema), in a sentence; empty if nothing is."""
    if problem := _shape(rule):
        return problem
    for path in (*rule.parts, rule.version) if rule.version else rule.parts:
        if problem := _missing(path, parameters):
            return f"Key.{rule.strategy}: {problem}"
    return ""


def _shape(rule: KeyRule) -> str:
    strategy = STRATEGIES.get(rule.strategy)
    if strategy is None:
        return f"Key.{rule.strategy}: there is no such strategy; there are {', '.join(STRATEGIES)}"
    say = f"Key.{rule.strategy}: "
    names: tuple[Any, ...] = (*rule.parts, rule.version) if rule.version else rule.parts
    kind: Any = rule.name  # an author may have written anything
    if not strategy.least <= len(rule.parts) <= strategy.most:
        return f"{say}it names {strategy.least} to {strategy.most} parameters, and not {len(rule.parts)}"
    if not all(isinstance(name, str) and all(name.split(".")) for name in names):
        return (
            f"{say}the name of a parameter is text, with dots for what is inside of one, such as `order.id`"
        )
    if len(set(names)) < len(names):
        return f"{say}a parameter is named twice"
    if rule.strategy == BUSINESS and not (isinstance(kind, str) and kind.strip()):
        return f"{say}say of what kind of thing it is the key, such as `invoice`"
    if rule.strategy == WINDOW and rule.window_ms <= 0:
        return f"{say}say how long the window is, such as `5m`"
    if rule.anyone and strategy.user != UNLESS_ANYONE:
        return f"{say}`anyone` has no place here: {'it is for anyone' if not strategy.user else 'the user is in it'}"
    if rule.in_progress not in IN_PROGRESS:
        return f"{say}in_progress is one of {', '.join(IN_PROGRESS)}, and not `{rule.in_progress}`"
    if rule.strategy in WITHIN_SAGA and rule.keep_ms:
        return f"{say}`keep` has no place here: what a saga has done is remembered longer than the saga"
    return ""


def _missing(path: str, schema: dict[str, Any]) -> str:
    """What is wrong with a path; empty if the schema has it, or does not say what is inside."""
    at, known_as = schema, "the tool"
    for name in path.split("."):
        at = _resolved(at, schema)
        known = at.get("properties")
        if known is None:
            if at.get("type", "object") == "object" and at.get("additionalProperties", True) is not False:
                return ""
            return f"`{known_as}` has nothing inside that `{path}` could name"
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean `{close[0]}`?" if close else f"there are: {', '.join(known) or 'none'}"
            return (
                f"{known_as} has no parameter `{name}`; {hint}"
                if at is schema
                else f"`{known_as}` has no `{name}`; {hint}"
            )
        at, known_as = known[name], name
    return ""


def _resolved(at: Any, root: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, behind a reference into its own definitions."""
    while isinstance(at, dict) and isinstance(at.get("$ref"), str):
        at = root.get("$defs", {}).get(at["$ref"].rpartition("/")[2], {})
    return at if isinstance(at, dict) else {}
