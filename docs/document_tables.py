"""The tables of docs/documents.md and the published schema, made of the schema that core/documents/schema.py gives.

Markers and pages are in generate.py.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from baton.core.documents.nodes.base import COMMON, NodeDocument
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.documents.schema import document_schema
from baton.core.documents.text import write_yaml
from baton.core.effects.risk import DEFAULT_RULES, above_in_words
from baton.core.graph.graph import WORKFLOW_REFERENCE

# What the table says of the values of a shared definition.
_SHARED = {
    "humanAudience": "`starter`, or an object with `user`, `group` or `role`",
    "modelPrice": "an object: dollars for a million tokens of `input`, of `output` and, if it differs, of `cached` input",
    "duration": "a [duration](#durations)",
    "value": "any [value](#expressions)",
    "after": "a node, or a list of nodes",
    "targets": "a node, or a list of different nodes",
    "allowed": "a node, or a list of nodes",
    "operations": "an object: for each API, an id or a list of ids",
    "toolPatterns": "a pattern of tool names, or a list of patterns",
    "nodePaths": "a path, or a list of paths",
    "call": "a pattern of tool names, or [another call](agents.md#other-agents-workflows-and-people)",
    "condition": "a [condition](#conditions)",
    "branch": "a [branch](#branch)",
    "loop": "a [loop](#loop)",
    "poll": "a [poll](#poll)",
    "pause": "a [duration](#durations), a text with [expressions](#expressions), or `first`, `factor` and `most`",
    "factor": "a number from 1 to 10",
    "join": "a [join](#join)",
    "map": "a [map](#map)",
    "list": "a list, or one [expression](#expressions) that gives one",
    "callback": "a [callback](#callback)",
    "catch": "a [catch](#catch)",
    "retry": "[retries](failures.md#what-a-document-can-say)",
    "onFailure": "[reactions](failures.md#what-a-document-can-say)",
    "failover": "[policies](failures.md#what-a-document-can-say)",
    "ladder": "a strategy, a list of them, `ask` or `fail`",
    "code": "a code",
    "codes": "a code, or a list of codes",
    "failClasses": "a [class](failures.md#what-a-failure-is), or a list of classes",
    "limits": "[limits](#limits)",
    "schedule": "a [schedule](schedules.md)",
    "events": "[rules for events](events.md)",
    "startRule": "[rules that start sagas](events.md)",
    "signalRule": "[rules that signal sagas](events.md)",
    "rate": "a [duration](#durations), or `5 minutes`",
    "guardrails": "[guardrails](#guardrails)",
    "jsonSchema": "a JSON Schema",
    "jsonSchemaOrName": "a JSON Schema, or the name of one",
    "failClass": "a [class](failures.md#what-a-failure-is)",
    "failMessage": "a text, with [expressions](#expressions)",
    "waitDuration": "a [duration](#durations), or a text with [expressions](#expressions)",
    "waitTime": "a [time](#durations), or a text with [expressions](#expressions)",
    "waitFor": "`all`, `any`, or a whole number from 1",
    "tolerated": 'a whole number from 0, or a share such as `"25%"`',
    "expression": "an [expression](#expressions)",
    "nodeName": "a name of a node",
    "rule": "rules, each with `if` and `then`",
    "countLimit": "a whole number, or `max` and `then`",
    "retryLimit": "a whole number, or `max` and `then`",
    "bytesLimit": "a whole number, or `max` and `then`",
    "timeLimit": "a [duration](#durations), or `max` and `then`",
    "conversation": "`true`, or an object with `idle`, a [duration](#durations)",
    "approval": "`true`, or an [approval](#approvals)",
    "replan": "[what a model suggests](failures.md#suggested-by-a-model)",
    "compensation": "a name of a tool, `none`, or an [object](failures.md#undoing)",
    "failureHandler": "a name of a workflow, or an [object](failures.md#when-a-saga-has-failed)",
    "riskRule": "[rules of risk](#approvals)",
    "escalation": "[steps](#escalation)",
    "costLimit": "a number, or `max` and `then`",
}

# What a text with one of these patterns is called.
_NAMES = {
    r"^[A-Za-z_][A-Za-z0-9_]{0,63}$": "name",
    r"^[a-z][a-z0-9-]{0,63}$": "name of a workflow",
    WORKFLOW_REFERENCE: "name of a workflow",
    r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$": "name of a model",
}


def schema_text() -> str:
    """The JSON Schema as the file that is published."""
    return json.dumps(document_schema(), indent=2, ensure_ascii=False) + "\n"


def document_fields() -> str:
    """The fields of a document."""
    schema = document_schema()
    return _rows(schema, schema)


def node_fields() -> str:
    """A section for each kind of node that can be run: its purpose, an example, the fields it alone has."""
    schema = document_schema()
    return "\n\n".join(_section(schema, kind) for kind in NODE_TYPES if kind.runs)


def shared_fields() -> str:
    """The fields that several kinds of node have."""
    schema = document_schema()
    owners = {name: kind.kind for kind in NODE_TYPES for name in kind.own if name in _shared()}
    return _table([row for name, kind in owners.items() for row in _alone(schema, kind, name)])


def _shared() -> set[str]:
    """The names of fields that more than one kind of node has."""
    counted = Counter(name for kind in NODE_TYPES for name in kind.own)
    return {name for name, kinds in counted.items() if kinds > 1}


def common_fields() -> str:
    """What a node of any kind may have."""
    schema = document_schema()
    return _rows(_only(schema["$defs"]["task"], COMMON), schema)


def branch_fields() -> str:
    """The fields of a branch, and of its rules."""
    return _part("branch", **{"rules[].": "rule"})


def loop_fields() -> str:
    """The fields of a loop."""
    return _part("loop")


def poll_fields() -> str:
    """The fields of a poll, and of a pause that grows."""
    return _part("poll", **{"every.": "pause"})


def handler_fields() -> str:
    """The fields of a failure handler."""
    return _part("failureHandler")


def map_fields() -> str:
    """The fields of `map`."""
    return _part("map")


def join_fields() -> str:
    """The fields of a join that is written as an object."""
    return _part("join")


def callback_fields() -> str:
    """The fields of a callback that is written as an object."""
    return _part("callback")


def catch_fields() -> str:
    """The fields of a rule of `catch`."""
    return _part("catchRule")


def limit_fields() -> str:
    """What can be limited."""
    return _part("limits")


def guardrail_fields() -> str:
    """The fields of guardrails."""
    return _part("guardrails")


def approval_fields() -> str:
    """The fields of `requires_approval` that is written as an object."""
    return _part("approval")


def replan_fields() -> str:
    """The fields of `replan`."""
    return _part("replan").replace("](#", "](documents.md#")  # it stands on another page


def compensate_fields() -> str:
    """The fields of `compensate`."""
    return _part("compensation").replace("](#", "](documents.md#")  # it stands on another page


def escalation_fields() -> str:
    """The fields of a step of `escalate`."""
    return _part("escalation")


def risk_fields() -> str:
    """The fields of a rule of risk."""
    return _part("riskRule")


def default_risk() -> str:
    """The rules of a document that has none of its own."""
    rows = [
        f"| {rule.action or 'any'} | {above_in_words(rule).strip() or 'any'} | `{rule.level}` |"
        for rule in DEFAULT_RULES
    ]
    return "\n".join(
        ["| action | how much | level |", "|---|---|---|", *rows, "| any | everything else | `low` |"]
    )


def _part(name: str, **inside: str) -> str:
    schema = document_schema()
    owner = _object(schema["$defs"][name])
    rows = list(_fields(owner, schema, ""))
    for prefix, part in inside.items():
        rows += _fields(_object(schema["$defs"][part]), schema, prefix)
    return _table(rows)


def _object(part: dict[str, Any]) -> dict[str, Any]:
    """The object of a part that may be written shorter."""
    return next((shape for shape in part.get("anyOf", ()) if "properties" in shape), part)


def _only(owner: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {**owner, "properties": {name: owner["properties"][name] for name in names}}


def _section(schema: dict[str, Any], kind: NodeDocument) -> str:
    example = write_yaml({"nodes": {"example": dict(kind.example)}})
    elsewhere = [name for name in kind.own if name in _shared()]
    rows = _alone(
        schema, kind.kind, kind.key, *(name for name in kind.own if name not in (*elsewhere, *COMMON))
    )
    also = []
    if kind.kind == "agent":
        known = [
            (field.replace("model.", "agent.", 1), *rest) for field, *rest in _alone(schema, "model", "model")
        ]
        same = [row[0] for row in rows if row in known]
        rows = [row for row in rows if row not in known]
        also = [f"As of a [model](#model): {', '.join(same)}."]
    if elsewhere:
        also.append(f"[Shared fields](#shared-fields): {', '.join(f'`{name}`' for name in elsewhere)}.")
    return "\n\n".join([f"### {kind.title}", kind.description, f"```yaml\n{example}```", _table(rows), *also])


def _alone(schema: dict[str, Any], kind: str, *names: str) -> list[tuple[str, str, str, str]]:
    """The rows of these fields of a kind, and of what is inside them."""
    return list(_fields(_only(schema["$defs"][kind], names), schema, ""))


def _rows(owner: dict[str, Any], schema: dict[str, Any]) -> str:
    return _table(_fields(owner, schema, ""))


def _table(rows: Iterator[tuple[str, str, str, str]] | list[tuple[str, str, str, str]]) -> str:
    lines = ["| field | value | meaning |", "|---|---|---|"]
    for name, value, required, meaning in rows:
        lines.append(f"| {name}{' (required)' if required else ''} | {value} | {meaning} |")
    return "\n".join(lines)


def _fields(
    owner: dict[str, Any], schema: dict[str, Any], prefix: str
) -> Iterator[tuple[str, str, str, str]]:
    for name, written in owner["properties"].items():
        field = _described(written, schema)
        required = "yes" if name in owner.get("required", ()) else ""
        if "oneOf" in field:
            *others, last = (f"`{shape['required'][0]}`" for shape in field["oneOf"])
            choice = f"an object with {', '.join(others)} or {last}"
            yield f"`{prefix}{name}`", choice, required, field["description"]
            yield from _fields(field, schema, f"{prefix}{name}.")
        elif "properties" in (inside := _shown_here(field.get("items", field), schema)):
            is_one = "items" not in field
            what = "an object" if is_one else "a list of objects"
            yield f"`{prefix}{name}`", what, required, field["description"]
            yield from _fields(inside, schema, f"{prefix}{name}" + ("." if is_one else "[]."))
        else:
            yield f"`{prefix}{name}`", _value(field, schema), required, field["description"] + _default(field)


def _default(field: dict[str, Any]) -> str:
    """The default as a sentence, unless it is nothing or the description has it."""
    default = field.get("default")
    if not default or isinstance(default, dict | list) or "ithout it" in field["description"]:
        return ""
    return f" Default: `{json.dumps(default) if isinstance(default, bool) else default}`."


def _described(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A field with what is said where it refers to: all of one that kinds share, and else the description."""
    if "description" in field:
        return field
    referred: dict[str, Any] = schema["$defs"][field["$ref"].removeprefix("#/$defs/")]
    if field["$ref"].startswith("#/$defs/node."):
        return _described(referred, schema)
    return {**field, "description": referred["description"]}


def _shown_here(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A field with the definition that it refers to, if no table and no words of its own show that."""
    name = str(field.get("$ref", "")).removeprefix("#/$defs/")
    return field if not name or name in _SHARED else schema["$defs"][name]


def _value(field: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in field:
        return _SHARED[field["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in field:
        return f"{_value(field['anyOf'][0], schema)}, or a list of such"
    if field.get("type") == "boolean":
        return "`true`" if field.get("const") else "`true` or `false`"
    if "enum" in field:
        return " or ".join(f"`{word}`" for word in field["enum"])
    if field["type"] == "object":
        return _object_words(field, schema)
    if field["type"] == "array":
        each = _value(field["items"], schema)
        return f"a list, each {each}" if each.startswith("a ") else f"a list of {each}"
    if field["type"] == "number":
        return f"a number from {field['minimum']:,} to {field['maximum']:,}"
    if field["type"] == "integer":
        return f"a whole number from {field['minimum']:,} to {field['maximum']:,}"
    if (pattern := field.get("pattern", "")) in _NAMES:
        return f"a [{_NAMES[pattern]}](#names)"
    return f"text that matches `{pattern}`" if pattern else "text"


def _object_words(field: dict[str, Any], schema: dict[str, Any]) -> str:
    inner = field.get("additionalProperties")
    if inner is None:
        return "an object"
    if "maxProperties" in field:
        return f"an object of 1 to {field['maxProperties']:,} [nodes](#nodes) by [name](#names)"
    what = {
        "#/$defs/value": "[values](#expressions)",
        "#/$defs/jsonSchema": "JSON Schemas; names as for nodes",
        "#/$defs/namedGraph": "[graphs](#graphs-of-a-document); names as for nodes",
        "#/$defs/allowed": "nodes, or lists of nodes, by node",
    }
    return f"an object of {what.get(inner.get('$ref', ''), 'texts')}"
