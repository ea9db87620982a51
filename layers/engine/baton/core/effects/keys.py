"""Idempotency keys: a hash of the caller, the node and the saga, the action, and its canonical parameters.

The canonical form of parameters, the content of a key, and the rules of a tool's author are here.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from unicodedata import normalize

import msgspec

from baton.core.expressions import parse_duration

__all__ = [
    "GRANTED_LIST_KEY",
    "IN_PROGRESS",
    "NODE",
    "REFUSE",
    "SAGA",
    "STRATEGIES",
    "WAIT",
    "Key",
    "KeyIncomplete",
    "KeyRule",
    "Strategy",
    "about",
    "canonical",
    "check_rule",
    "key_of",
    "parameter_names",
    "parameters_of",
    "relevant",
]


_ZONE = r"(?P<zone>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?"
_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])(?:[.,](?P<part>[0-9]+))?)?"
_CLOCK = re.compile(rf"{_TIME}\s*{_ZONE}", re.IGNORECASE)
_HALF_DAY = re.compile(
    r"(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9]))?)?\s*(?P<half>[ap])\.?m\.?",
    re.IGNORECASE,
)
_MOMENT = re.compile(rf"(?P<day>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:T|\s+){_TIME}\s*{_ZONE}", re.IGNORECASE)
_HOURS = 24
GRANTED_LIST_KEY = "x-baton-list"
"""Mark in the schema of a parameter that limits the possible calls, and does not describe the action."""


def canonical(value: Any) -> Any:
    """Return the value with all spellings of one meaning made equal. JSON in, JSON out.

    Equal are: spaces around a text and none, the forms of Unicode that are drawn alike, the order of names,
    `1` and `1.0`, times of day (`14:00`, `14:00:00`, `2 pm`), and a moment in two time zones.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        # As it is written, which beyond 2**53 is not what it is: `1e30` is the one with thirty zeros.
        return int(Decimal(repr(value))) if value.is_integer() else value
    if isinstance(value, dict):
        names = {name: _stripped(name) for name in value}
        # Names that are told apart by their spaces only are two names.
        count = Counter(names.values()) if len(set(names.values())) < len(names) else {}
        return {
            (name if count.get(short, 1) > 1 else short): canonical(value[name])
            for name, short in names.items()
        }
    return [canonical(item) for item in value]


def _stripped(text: str) -> str:
    return normalize("NFC", text).strip()


def _text(value: str) -> str:
    text = _stripped(value)
    if found := _CLOCK.fullmatch(text):
        return _clock(found) or text
    if found := _HALF_DAY.fullmatch(text):
        hour = int(found["hour"]) % 12 + 12 * (found["half"] in "pP")
        return f"{hour:02}:{found['minute'] or '00'}:{found['second'] or '00'}"
    if found := _MOMENT.fullmatch(text):
        return _moment(found) or text
    return text


def _clock(found: re.Match[str]) -> str:
    """Return a time of day; an empty text if a day has no such time. A time with an offset keeps it."""
    hour, minute, second, part = _parts(found)
    if hour > _HOURS or (hour == _HOURS and (minute, second, part) != ("00", "00", "")):
        return ""
    zone = _zone(found["zone"])
    return f"{hour:02}:{minute}:{second}{_fraction(part)}{'Z' if zone == '+00:00' else zone}"


def _moment(found: re.Match[str]) -> str:
    """Return a moment, in UTC if it has an offset; an empty text for an impossible moment or one beyond the
    calendar.
    """
    hour, minute, second, part = _parts(found)
    midnight = hour == _HOURS and (minute, second, part) == (
        "00",
        "00",
        "",
    )  # the end of the day is the next one
    text = f"{found['day']}T{0 if midnight else hour:02}:{minute}:{second}{_zone(found['zone'])}"
    try:
        moment = datetime.fromisoformat(text) + timedelta(days=midnight)
        offset = "+00:00" if moment.tzinfo else ""
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        return ""
    return moment.replace(tzinfo=None).isoformat() + _fraction(part) + offset


def _parts(found: re.Match[str]) -> tuple[int, str, str, str]:
    """Return hour, minute, second, and the significant digits of a fraction."""
    return int(found["hour"]), found["minute"], found["second"] or "00", (found["part"] or "").rstrip("0")


def _fraction(part: str) -> str:
    return f".{part:0<6}" if part else ""


def _zone(zone: str | None) -> str:
    """Return an offset in the form `+01:00`."""
    if not zone:
        return ""
    if not zone.startswith(("+", "-")):
        return "+00:00"
    digits = zone[1:].replace(":", "")
    sign = "+" if set(digits) == {"0"} else zone[0]
    return f"{sign}{digits[:2]}:{digits[2:] or '00'}"


def relevant(arguments: Any, schema: Mapping[str, Any]) -> Any:
    """Return the arguments without those that change nothing: defaults of the tool's schema, and a list of
    possible calls.
    """
    if not isinstance(arguments, dict):
        return arguments
    known = schema.get("properties", {})
    return {
        name: value
        for name, value in arguments.items()
        if not (of := known.get(name, {}))
        or (GRANTED_LIST_KEY not in of and ("default" not in of or not _same(value, of["default"])))
    }


def _same(left: Any, right: Any) -> bool:
    return repr(canonical(left)) == repr(canonical(right))  # `True` is not `1`


NODE, SAGA, USER, SCHEDULE, EVENT, REQUEST = "node", "saga", "user", "schedule", "event", "request"
CONTENT, WINDOW, BUSINESS, GIVEN = "content", "window", "business", "given"

WAIT, REFUSE = "wait", "refuse"
IN_PROGRESS = (WAIT, REFUSE)

ALWAYS, NEVER, UNLESS_ANYONE = "yes", "", "unless `anyone`"
ALL, NAMED, NAMED_OR_ALL, NONE = "all", "those named", "those named, else all", ""


class KeyRule(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The rule by which two calls of a tool are the same one, and for how long that is remembered.

    `strategy` is one of STRATEGIES. `parts` and `version` name parameters (paths with dots); `name` is the
    kind of thing that a business key names. `window_ms`: calls of the same window are the same. `anyone`: any
    saga of the tenant may make the call.
    `in_progress`: a second caller waits for the first one's result or is refused. `keep_ms`: milliseconds for
    which others get a result, 0 as long as it exists.
    """

    strategy: str = NODE
    name: str = ""
    parts: tuple[str, ...] = ()
    version: str = ""
    window_ms: int = 0
    anyone: bool = False
    in_progress: str = WAIT
    keep_ms: int = 0


class Strategy(NamedTuple):
    """The content of a key besides tenant and tool, which every key has.

    `least` and `most` parts are named.
    """

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
"""Strategies by name. `content` may be without some of its parts; every other needs them all."""


WITHIN_SAGA = frozenset({NODE, SAGA})
"""The strategies whose keys belong to one saga."""

NAMING = frozenset({SCHEDULE, EVENT, BUSINESS, GIVEN})
"""The strategies whose keys name a thing: two calls with one key and other parameters are a mistake."""


def parameter_names(rule: KeyRule) -> tuple[str, ...] | None:
    """Return the parameters, by their paths, that a key is made of; None for all."""
    paths = (*rule.parts, rule.version) if rule.version else rule.parts
    which = STRATEGIES[rule.strategy].parameters
    return None if which == ALL or (which == NAMED_OR_ALL and not paths) else paths


def parameters_of(rule: KeyRule, arguments: Any, schema: Mapping[str, Any]) -> Any:
    """Return the parameters for a key: with their defaults if the key names some, else those that differ from
    their defaults.
    """
    if not parameter_names(rule) or not isinstance(arguments, dict):
        return relevant(arguments, schema)
    known = schema.get("properties", {})
    defaults = {name: said["default"] for name, said in known.items() if "default" in said}
    return {**defaults, **arguments}


def about(rule: KeyRule, parameters: Any) -> str:
    """Return a digest of the parameters that all calls with one key must share; empty if the key has them
    all, or none matter.
    """
    return _digest(canonical(parameters)) if rule.strategy in NAMING else ""


class KeyIncomplete(ValueError):
    """Error for a missing part of the key. The text names it; the step fails with `key_incomplete`."""


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
    """Return the key, 32 hexadecimal digits. Raises `KeyIncomplete`.

    `saga` is the saga's place: its id, or for a child its place in the sagas above it. `node` is the name of
    the node that the step stands for, whichever tool does its work. `occurrence` is the iteration of the
    enclosing loops, and the number of an agent's call if equal calls are several. `at` is the moment when the
    step became ready, the same for all of its attempts.
    `generation`: the incarnation of the slot.
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
    """Return the part of the parameters that is in the key."""
    if (paths := parameter_names(rule)) is None:
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
    """Return true if the key is empty: such a key would make one call of all calls without a key."""
    return value is None or (isinstance(value, str) and not value.strip())


def _digest(parts: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]


class Key:
    """The rule by which two calls of a tool are the same one: `@tool("pay.card", effect="once",
    key=Key.business("invoice", "id"))`.

    Names are parameters of the tool, with dots for inner fields: `"order.id"`. Tenant and tool are in every
    key.

    Every constructor takes `in_progress="refuse"`: a second caller is refused at once, instead of waiting for
    the first one's result. All but `node` and `saga` take `keep="24h"`: the time for which others that make
    the same call get the result; the step itself never acts again. Those that are made of the user take
    `anyone=True`: the same call of two users of the tenant is the same, too. Each raises `ValueError` with
    the correct form.
    """

    @staticmethod
    def node(**options: Any) -> KeyRule:
        """Return the default of a tool without a rule: the same action of this node of the saga, in this
        round of its loops.
        """
        return _rule(NODE, **options)

    @staticmethod
    def saga(**options: Any) -> KeyRule:
        """Return a key of the same action of this saga, in this round of its loops: another node does not
        repeat it.
        """
        return _rule(SAGA, **options)

    @staticmethod
    def user(*action: str, **options: Any) -> KeyRule:
        """Return a key of the same action of this user, in any saga: by the parameters that name it, or else
        by all of them.
        """
        return _rule(USER, parts=action, **options)

    @staticmethod
    def schedule(schedule: str, at: str, **options: Any) -> KeyRule:
        """Return a key of one run of a schedule: the parameters with its name and with its scheduled time."""
        return _rule(SCHEDULE, parts=(schedule, at), **options)

    @staticmethod
    def event(event: str, **options: Any) -> KeyRule:
        """Return a key of one event, handled once by this tool: the parameter with its name."""
        return _rule(EVENT, parts=(event,), **options)

    @staticmethod
    def request(**options: Any) -> KeyRule:
        """Return a key of the same request of this user: all parameters equal."""
        return _rule(REQUEST, **options)

    @staticmethod
    def content(*parts: str, **options: Any) -> KeyRule:
        """Return a key of the same content of this user: these parameters equal, whatever the others are."""
        return _rule(CONTENT, parts=parts, **options)

    @staticmethod
    def window(window: str | float, *parts: str, **options: Any) -> KeyRule:
        """Return a key that holds once for this user in each window (`5m`), or once for each value of these
        parameters.

        Windows are counted from 1970 on, in UTC: those of `1h` begin at the full hour.
        Two calls at either side of an edge are two, however near to each other.
        """
        return _rule(WINDOW, parts=parts, window=window, **options)

    @staticmethod
    def business(kind: str, *id: str, version: str = "", **options: Any) -> KeyRule:
        """Return a key of one thing of the business: its kind, the parameters that name it, and that with its
        version, if any.
        """
        return _rule(BUSINESS, name=kind, parts=id, version=version, **options)

    @staticmethod
    def given(key: str, **options: Any) -> KeyRule:
        """Return a key that the caller gives: the parameter with it."""
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
    """Return the problem of a rule for a tool with these parameters (a JSON Schema), in a sentence; empty if
    valid.
    """
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
        return f"{say}`keep` is not allowed here: effects of a saga are remembered longer than the saga"
    return ""


def _missing(path: str, schema: dict[str, Any]) -> str:
    """Return the problem of a path; empty if the schema has it, or does not describe the inner fields."""
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
    """Return the schema itself, behind a reference into its own definitions."""
    while isinstance(at, dict) and isinstance(at.get("$ref"), str):
        at = root.get("$defs", {}).get(at["$ref"].rpartition("/")[2], {})
    return at if isinstance(at, dict) else {}
