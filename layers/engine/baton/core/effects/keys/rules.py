"""What makes two calls of a tool the same one: the strategies, as data, and the key that each of them gives.

When two values are the same is in canonical.py, what a tool's author writes in author.py, what is done with a key in
runtime/steps/effect_claims.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from baton.core.effects.keys.canonical import canonical, relevant

NODE, SAGA, USER, SCHEDULE, EVENT, REQUEST = "node", "saga", "user", "schedule", "event", "request"
CONTENT, WINDOW, BUSINESS, GIVEN = "content", "window", "business", "given"

WAIT, REFUSE = "wait", "refuse"
IN_PROGRESS = (WAIT, REFUSE)

ALWAYS, NEVER, UNLESS_ANYONE = "yes", "", "unless `anyone`"
ALL, NAMED, NAMED_OR_ALL, NONE = "all", "those named", "those named, else all", ""


class KeyRule(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What makes two calls of a tool the same one, and how long that is remembered.

    `strategy` is one of STRATEGIES. `parts` and `version` name parameters (paths with dots); `name` is what kind of
    thing a business key names. `window_ms`: calls of the same window are the same. `anyone`: whichever saga of the
    tenant makes the call. `in_progress`: whether a second caller waits for the first one's result or is refused. `keep_ms`: so
    long others are given a result, 0 as long as it is there; `retry_window_ms`: so long a failed call is tried again, 0
    for the deployment's.
    """

    strategy: str = NODE
    name: str = ""
    parts: tuple[str, ...] = ()
    version: str = ""
    window_ms: int = 0
    anyone: bool = False
    in_progress: str = WAIT
    keep_ms: int = 0
    retry_window_ms: int = 0


class Strategy(NamedTuple):
    """What is in a key besides tenant and tool, which always are. `least` and `most` parts are named."""

    says: str
    user: str
    saga: bool
    parameters: str
    further: str
    least: int
    most: int


MANY = 16
STRATEGIES: Mapping[str, Strategy] = {
    NODE: Strategy("The same action of one node of one saga, in the same round of its loops.", ALWAYS, True, ALL, "node, iteration", 0, 0),
    SAGA: Strategy("The same action of one saga, at whatever node, in the same round of its loops.", ALWAYS, True, ALL, "iteration", 0, 0),
    USER: Strategy("The same action of one user, in whatever saga.", ALWAYS, False, NAMED_OR_ALL, "", 0, MANY),
    SCHEDULE: Strategy("One run of a schedule: which one, and for when.", NEVER, False, NAMED, "", 2, 2),
    EVENT: Strategy("One event, for the tool that handles it.", NEVER, False, NAMED, "", 1, 1),
    REQUEST: Strategy("The same request, parameter by parameter.", UNLESS_ANYONE, False, ALL, "", 0, 0),
    CONTENT: Strategy("The same content, whatever else differs.", UNLESS_ANYONE, False, NAMED, "", 1, MANY),
    WINDOW: Strategy("Once in each window of time.", UNLESS_ANYONE, False, NAMED, "number of the window", 0, MANY),
    BUSINESS: Strategy("One thing of the business, such as an invoice.", NEVER, False, NAMED, "kind, version", 1, MANY),
    GIVEN: Strategy("The key that the caller gives.", UNLESS_ANYONE, False, NAMED, "", 1, 1),
}  # fmt: skip
"""By name. `content` may be without some of its parts, every other needs them all."""


WITHIN_SAGA = frozenset({NODE, SAGA})
"""The strategies whose keys belong to one saga."""

NAMING = frozenset({SCHEDULE, EVENT, BUSINESS, GIVEN})
"""The strategies whose keys name a thing: two calls with one key and other parameters are a mistake."""


def names_of(rule: KeyRule) -> tuple[str, ...] | None:
    """The parameters, by their paths, that a key is made of; None for all."""
    paths = (*rule.parts, rule.version) if rule.version else rule.parts
    which = STRATEGIES[rule.strategy].parameters
    return None if which == ALL or (which == NAMED_OR_ALL and not paths) else paths


def parameters_of(rule: KeyRule, arguments: Any, schema: Mapping[str, Any]) -> Any:
    """The parameters for a key: with their defaults if the key names some, else those that differ from their defaults."""
    if not names_of(rule) or not isinstance(arguments, dict):
        return relevant(arguments, schema)
    known = schema.get("properties", {})
    defaults = {name: said["default"] for name, said in known.items() if "default" in said}
    return {**defaults, **arguments}


def about(rule: KeyRule, parameters: Any) -> str:
    """A digest of the parameters that all calls with one key must share; empty where the key has them all, or none matter."""
    return _digest(canonical(parameters)) if rule.strategy in NAMING else ""


class KeyIncomplete(ValueError):
    """A part of the key is missing. The text names it; the step fails with `key_incomplete`."""


def key_of(
    rule: KeyRule,
    *,
    tenant: str,
    user: str,
    saga: str,
    node: str,
    tool: str,
    parameters: Any,
    occurrence: tuple[int | str, ...],
    at: int,
    generation: int = 0,
) -> str:
    """32 hexadecimal digits. Raises `KeyIncomplete`.

    `saga` is the saga's place: its id, or for a child its place in the sagas above it. `node` is the name of the node that
    the step stands for, whichever tool does its work. `occurrence` is the iteration of the enclosing loops, and which call
    of an agent it is where equal calls are several. `at` is the
    moment when the step became ready, the same for all of its attempts. `generation` counts how often the effect was undone
    or was to be repeated.
    """
    if rule.strategy in WITHIN_SAGA:
        parts = [tenant, user, saga, tool, canonical(parameters), list(occurrence)]
        if rule.strategy == NODE:
            parts.append(node)
        return _digest(parts if generation == 0 else [*parts, generation])
    strategy = STRATEGIES[rule.strategy]
    said: dict[str, Any] = {"strategy": rule.strategy, "tenant": tenant, "tool": tool}
    if strategy.user == ALWAYS or (strategy.user == UNLESS_ANYONE and not rule.anyone):
        if not user:
            raise KeyIncomplete(f"the key of `{tool}` is made of the user, and this saga has none")
        said["user"] = user
    if rule.name:
        said["name"] = rule.name
    if rule.window_ms:
        if at <= 0:
            raise KeyIncomplete(
                f"the key of `{tool}` is made of the time, and when the step's turn came is not known"
            )
        said["window"] = [rule.window_ms, at // rule.window_ms]
    if generation:
        said["generation"] = generation
    said["parameters"] = canonical(_named(rule, tool, parameters))
    return _digest(said)


def _named(rule: KeyRule, tool: str, parameters: Any) -> Any:
    """What of the parameters is in the key."""
    if (paths := names_of(rule)) is None:
        return parameters
    found = {path: value for path in paths if (value := _at(parameters, path)) is not _ABSENT}
    if rule.strategy == CONTENT and found:
        return found
    for path in paths:
        if path not in found or _is_blank(found[path]):
            raise KeyIncomplete(f"the key of `{tool}` is made of `{path}`, and the step gives it none")
    return found


_ABSENT: Any = object()


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _is_blank(value: Any) -> bool:
    """Whether the key is empty: such a key would make one call of all calls without a key."""
    return value is None or (isinstance(value, str) and not value.strip())


def _digest(parts: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]
