"""The JSON Schema of `retry`, `on_failure`, `failover` and `catch` as
documents write them, for the published schema.

The fields of parts/failing.py refer to `definitions` by their names, and these
to each other and to what all fields share (core/documents/schema.py). They
refuse nothing that the models accept, and share their bounds and patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from baton.core.documents.parts.people import SO_MANY
from baton.core.failures.codes import CLASSES, CODE_PATTERN, CODES
from baton.core.failures.failover import DAYS, Action
from baton.core.failures.policy import (
    ASK,
    BACKOFFS,
    CUSTOM,
    DOMAINS,
    EXPONENTIAL,
    FAIL,
    HINTS,
    HOOKS,
    JITTERED,
    MOST_ATTEMPTS,
    PRESETS,
    QUESTIONS,
    SEVERITIES,
)
from baton.core.failures.strategies.base import MOST_TIMES, Strategy
from baton.core.failures.strategies.registry import STRATEGIES

MOST_PAUSES, MOST_MULTIPLIER, MOST_POLICIES = 99, 100, 100
NAME_PATTERN = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$"
TIME_OF_DAY_PATTERN = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
OFFSET_PATTERN = "^[+-](0[0-9]|1[0-4]):[0-5][0-9]$"

_Schema = dict[str, Any]


def _ref(name: str, description: str = "", **more: Any) -> _Schema:
    said = {"description": description} if description else {}
    return {**said, **more, "$ref": f"#/$defs/{name}"}


def _enum(words: Iterable[str], description: str = "", **more: Any) -> _Schema:
    return _said({"type": "string", "enum": list(words), **more}, description)


def _said(schema: _Schema, description: str) -> _Schema:
    return {"description": description, **schema} if description else schema


def _object(description: str, properties: _Schema, required: tuple[str, ...] = ()) -> _Schema:
    needs = {"required": list(required)} if required else {}
    shape = {"type": "object", **needs, "additionalProperties": False, "properties": properties}
    return {"description": description, **shape}


def _one_or_many(schema: _Schema, description: str = "", **more: Any) -> _Schema:
    return _said({"anyOf": [schema, {"type": "array", "items": schema}], **more}, description)


def _or_shorter(short: _Schema, whole: _Schema) -> _Schema:
    """Return the schema of an object, or of its short form, described once."""
    inside = {key: item for key, item in whole.items() if key != "description"}
    return {"description": whole["description"], "anyOf": [short, inside]}


def _count(low: int, high: int, description: str = "", **more: Any) -> _Schema:
    return _said({"type": "integer", "minimum": low, "maximum": high, **more}, description)


_CODE: _Schema = {
    "description": "A code of a failure, a class, or an HTTP status. Tools may have codes of their own.",
    "type": ["string", "integer"],
    "pattern": CODE_PATTERN,
    "examples": [*sorted({*CODES, *CLASSES})],
}
_NAMES: _Schema = {"type": "string", "pattern": NAME_PATTERN}

_RETRY = _object(
    "Retry policy of a failed attempt: a preset, and its changes.",
    {
        "preset": _enum(PRESETS, "The policy that everything else here is a change of.", examples=["critical"]),
        "max_attempts": _count(1, MOST_ATTEMPTS, "Number of attempts, the first one counted.", examples=[3]),
        "backoff": _enum(BACKOFFS, "Growth of the pauses.", examples=["exponential_jitter"]),
        "base": _ref("duration", "The first pause.", examples=["1s"]),
        "multiplier": {
            "description": "Factor by which each pause is longer than the one before it.",
            "type": "number", "minimum": 1, "maximum": MOST_MULTIPLIER, "examples": [2],
        },
        "max_delay": _ref("duration", "The longest pause.", examples=["30s"]),
        "jitter": {
            "description": "Share by which a pause may be shorter or longer by chance.",
            "type": "number", "minimum": 0, "maximum": 1, "examples": [0.3],
        },
        "schedule": {
            "description": "The pauses themselves; `backoff` is `custom` then.",
            "type": "array", "minItems": 1, "maxItems": MOST_PAUSES, "items": _ref("duration"),
            "examples": [["1s", "1m", "1h"]],
        },
        "budget": _ref("duration", "The longest time that may pass from the first failure to the last attempt.", examples=["5m"]),
        "on": _ref("codes", "The only codes or classes that are tried again.", examples=[["503", "timeout"]]),
        "never": _ref("codes", "Codes or classes that are not tried again.", examples=["conflict"]),
    },
)  # fmt: skip

_RETRY |= {
    "dependentSchemas": {
        "schedule": {"properties": {"backoff": {"const": CUSTOM}}},
        "jitter": {"properties": {"backoff": {"const": JITTERED}}},
        "multiplier": {"properties": {"backoff": {"enum": [EXPONENTIAL, JITTERED]}}},
    },
    "if": {"required": ["backoff"], "properties": {"backoff": {"const": CUSTOM}}},
    "then": {"required": ["schedule"]},
}


def _reaction(strategies: Iterable[Strategy]) -> _Schema:
    return _object(
        "Reaction to one kind of failure, where it differs from the defaults.",
        {
            "class": _ref("failClass", "The class that it counts as.", examples=["transient"]),
            "ladder": _ref(
                "ladder",
                "The strategies in their order; a single one stands for itself and those above it. "
                "`ask` or `fail` alone says what comes after retries and other ways.",
            ),
            "at_most": _object(
                "Number of uses of a strategy for one step; 0 leaves it out.",
                {
                    one.name: _count(0, one.largest_at_most, f"The most uses of `{one.name}`.")
                    for one in strategies
                },
            ),
            "retry": _ref("retry", "Retry policy for this failure."),
            "hints": _ref(
                "toolNames",
                f"Hints of a replan, one after the other: {', '.join(HINTS)}, or a tool.",
                examples=[["fallback_model"]],
            ),
            "before_retry": _ref(
                "toolNames",
                f"Actions before each retry: {', '.join(HOOKS)}, or a tool.",
                examples=["clear_cache"],
            ),
            "message": {
                "description": "Message for a person, in place of the code's own sentence.",
                "type": "string",
                "examples": ["The bank does not answer."],
            },
            "question": _enum(QUESTIONS, "The kind of question that a person is asked.", examples=["input"]),
            "severity": _enum(SEVERITIES, "Severity of the incident.", examples=["high"]),
            "may_change": _one_or_many(
                {"type": "string"},
                "The arguments of the tool that an answer to the question may change; without it, none.",
                examples=[["date", "time"]],
            ),
            "escalate": {
                "description": "Actions on the question about the step while it has no answer, in the order of time.",
                "type": "array",
                "items": _ref("escalation"),
                **SO_MANY,
            },
        },
    )


_WINDOW = _object(
    "A part of the day. One that ends before it begins goes on past midnight.",
    {
        "from": {
            "description": "Time of day at which it begins.",
            "type": "string",
            "pattern": TIME_OF_DAY_PATTERN,
            "examples": ["22:00"],
        },
        "to": {
            "description": "Time of day at which it ends.",
            "type": "string",
            "pattern": TIME_OF_DAY_PATTERN,
            "examples": ["06:00"],
        },
        "days": _one_or_many(
            _enum(DAYS), "The days that it begins on; without it, all.", examples=[["sat", "sun"]]
        ),
        "utc_offset": {
            "description": "The offset of its clock from UTC.",
            "type": "string",
            "pattern": OFFSET_PATTERN,
            "default": "+00:00",
            "examples": ["+02:00"],
        },
    },
)

_ATTEMPT_NUMBER = _count(1, MOST_ATTEMPTS)
_MATCH = _object(
    "Description of a failure: a failure fits if every field fits.",
    {
        "node": _ref("toolPatterns", "The nodes, by name; `*` stands for any text.", examples=["book*"]),
        "tool": _ref("toolPatterns", "The tools, by name; `*` stands for any text.", examples=["table.*"]),
        "domain": _one_or_many(_enum(DOMAINS), "Domain of the tool.", examples=["external_api"]),
        "code": _ref("codes", "The codes that fit.", examples=[["timeout", "503"]]),
        "class": _ref("failClasses", "The classes that fit.", examples=["transient"]),
        "attempt": {
            "description": "The attempts: from this one on, or `from` one `to` another.",
            "anyOf": [
                _ATTEMPT_NUMBER,
                _object("Both included.", {"from": _ATTEMPT_NUMBER, "to": _ATTEMPT_NUMBER}),
            ],
            "examples": [3, {"from": 1, "to": 2}],
        },
        "time": _one_or_many(
            _ref("failoverWindow"),
            "Part of the day in which the failure happens, or several.",
            examples=[{"from": "22:00", "to": "06:00"}],
        ),
        "parameters": {
            "description": "Parameters of the tool, by their path with dots, each with the value, or values, that fit.",
            "type": "object",
            "examples": [{"table.kind": ["window", "terrace"]}],
        },
        "if": _ref("condition", "Further condition; `last_error` is the failure."),
    },
)


def _action(strategies: Sequence[Strategy]) -> _Schema:
    """Return the schema of a policy's action. An action names what its strategy takes, and nothing else."""
    action = _object(
        "Action of a policy.",
        {
            "strategy": _enum([one.name for one in strategies], "The strategy.", default=Action().strategy),
            "hint": {**_NAMES, "description": "Hint of the replan.", "examples": ["alternative_source"]},
            "tool": {
                **_NAMES,
                "description": "The tool that is called in place.",
                "examples": ["delivery.order"],
            },
            "with": {
                "description": "Arguments that take the place of those with the same names.",
                "type": "object",
                "additionalProperties": _ref("value"),
                "examples": [{"hour": 20}],
            },
        },
    )
    nothing: _Schema = {"hint": False, "tool": False, "with": {"maxProperties": 0}}
    action["anyOf"] = [
        {
            "required": ["strategy"],
            "properties": {"strategy": {"enum": _alone(strategies)}, **nothing},
        }
    ]
    for one in strategies:
        for name in one.takes:
            said = {"with": {"minProperties": 1}} if name == "with" else {}
            action["anyOf"].append(
                {"required": [name], "properties": {"strategy": {"const": one.name}, **said}}
            )
    return action


def _alone(strategies: Iterable[Strategy]) -> list[str]:
    """Return the strategies that a policy can name without saying more."""
    return [one.name for one in strategies if not one.takes]


def _policy(strategies: Iterable[Strategy]) -> _Schema:
    return _object(
        "Policy: an action for the failures that fit one description.",
        {
            "name": _ref("nodeName", "The policy's name."),
            "when": _ref("failoverMatch", "Failures that the policy is for."),
            "then": {
                "description": "Action of the policy.",
                "anyOf": [_enum(_alone(strategies)), _ref("failoverAction")],
            },
            "message": {
                "description": "Message for the saga's user when the policy is taken, or the text of the question that it asks.",
                "type": "string",
            },
            "at_most": _count(1, MOST_TIMES, "Number of uses of the policy for one step.", default=1),
        },
        ("name", "then"),
    )


_CATCH = _object(
    "Nodes to go on to when the node has failed and the failure fits. A field that is left out fits all.",
    {
        "code": _ref("codes", "The codes that fit.", examples=["no_tables", ["timeout", 503]]),
        "class": _ref("failClasses", "The classes that fit.", examples=["transient"]),
        "if": _ref(
            "condition",
            "Further condition; `last_error` is the failure.",
            examples=["last_error.attempt > 2"],
        ),
        "then": _ref("targets", "Nodes to continue with.", examples=["tell"]),
    },
    ("then",),
)


def definitions() -> dict[str, _Schema]:
    """Return the definitions by the names that schemas refer to, with the present strategies."""
    strategies = [*STRATEGIES.values()]
    step = _enum([*(one.name for one in strategies), ASK, FAIL])
    return {
        "code": _CODE,
        "codes": _one_or_many(_ref("code")),
        "failClass": _enum(CLASSES),
        "failClasses": _one_or_many(_ref("failClass")),
        "toolNames": _one_or_many(_NAMES),
        "ladder": {"anyOf": [step, {"type": "array", "minItems": 1, "uniqueItems": True, "items": step}]},
        "retry": _or_shorter(_enum(PRESETS), _RETRY),
        "reaction": _or_shorter(_ref("ladder"), _reaction(strategies)),
        "onFailure": {
            "description": "Reaction to a failure: by code, by class, or for `any` failure. The code counts most.",
            "anyOf": [
                _ref("ladder"),
                {
                    "type": "object",
                    "propertyNames": {"pattern": CODE_PATTERN},
                    "additionalProperties": _ref("reaction"),
                },
            ],
            "examples": [{"timeout": {"retry": "critical"}, "permanent": "escalate"}],
        },
        "catchRule": _CATCH,
        "catch": {
            "anyOf": [
                _ref("targets"),
                _ref("catchRule"),
                {"type": "array", "minItems": 1, "items": _ref("catchRule")},
            ]
        },
        "failoverWindow": _WINDOW,
        "failoverMatch": _MATCH,
        "failoverAction": _action(strategies),
        "failover": {
            "description": "Policies, asked in their order before anything else is done: the first that fits is taken.",
            "type": "array",
            "maxItems": MOST_POLICIES,
            "items": _policy(strategies),
            "examples": [
                [{"name": "full", "when": {"code": "not_found"}, "then": {"tool": "delivery.order"}}]
            ],
        },
    }
