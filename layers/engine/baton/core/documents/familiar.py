"""Words of other tools, and the words of a document that mean the same.

Keys that are nearly right are in familiar.py; the value under a wrong key is handled in read.py.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from baton.core.documents.models import KINDS, NodeModel, WorkflowModel
from baton.core.documents.nodes.base import Words
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.documents.parts.control import (
    BranchModel,
    JoinModel,
    LimitsModel,
    LoopModel,
    PollModel,
    RuleModel,
)
from baton.core.documents.parts.failing import CatchModel, RetryModel
from baton.core.documents.parts.fields import Defined
from baton.core.documents.parts.node import CallbackModel, MapModel, ReplanModel
from baton.core.documents.parts.people import FAMILIAR, ApprovalModel, CallRiskModel, RiskRuleModel
from baton.core.documents.parts.triggers import EventsModel, ScheduleModel, SignalRuleModel, StartRuleModel
from baton.core.expressions import escape
from baton.core.graph.graph import NODE_NAME, WORKFLOW_NAME, WORKFLOW_REFERENCE

OTHER_END = "write it at the other end, as `after`; a `branch` chooses between nodes"
*_SOME, _LAST = (f"`{key}`" for key in KINDS)
_KINDS = f"{', '.join(_SOME)} and {_LAST}"
_NODE = Words(
    keys={
        **{kind.key: kind.familiar for kind in NODE_TYPES if kind.familiar},
        "with": "inputs arg args argument arguments param params parameters kwargs payload data",
        "after": "depends_on depends depend needs need requires require upstream previous follows dependencies",
        "when": "if only_if run_if condition predicate",
        "branch": "switch choice choices case cases conditions router route",
        "loop": "while repeat",
        "join": "trigger_rule join_on",
        "map": "for_each for map_over loop_over items with_items each matrix iterate",
        "catch": "on_error on_exception catches except rescue error_handler handler_on_error",
        "retry": "retries retry_policy retrier",
        "timeout": "timeout_seconds time_limit deadline max_time",
        "breaker": "circuit_breaker",
        "compensate": "compensation compensator compensated_by undo rollback inverse",
        "requires_approval": "needs_approval require_approval confirm confirmation interrupt_before",
        "output_schema": "returns output_type result_schema schema response_format response_model json_schema",
        "description": "comment doc docs title label summary",
    },
    said={
        "next then go_to to transition transitions downstream on_success": OTHER_END,
        **{word: said for kind in NODE_TYPES for word, said in kind.advice.items()},
        "type kind": f"leave it out: {_KINDS} each say what the node is",
        "name id": "leave it out: the key above is the node's name",
        "output outputs result results": (
            "leave it out: what a tool returns is there as `${ctx.NODE.output}`, and `value` makes another"
        ),
        "unless skip_if": "write the opposite of it as `when`",
        "until repeat_until": "write a `loop` with the opposite of it as its `while`, or a `poll`",
        "parallel branches concurrent": (
            "nodes that come `after` the same one run side by side; write them beside this one"
        ),
    },
)
_DOCUMENT = Words(
    keys={
        "nodes": "steps tasks jobs activities states stages actions workflow_steps",
        "name": "id workflow title saga workflow_name",
        "input": "inputs params parameters arguments args input_schema schema",
        "output": "outputs result results return returns",
        "on_failure": "on_error errors on_exception",
        "schemas": "definitions defs $defs types components",
        "metadata": "tags labels annotations",
        "timeout": "timeout_seconds time_limit deadline execution_timeout",
        "description": "comment doc docs summary",
        "retry": "retries retry_policy",
        "guardrails": "permissions policy",
    },
    said={
        "start start_at entry entrypoint begin initial": "leave it out: nodes without `after` begin with the saga",
        "version schema_version api_version": (
            "leave it out: each document that is registered under the name is its next version"
        ),
        "edges connections transitions links dependencies": "each node says itself what it comes `after`",
        "cron rate every": "write `schedule: {cron: …}` or `schedule: {rate: …}`",
        "on trigger triggers": "leave it out, or write a `schedule` or `events`: else a saga is started by a call",
        "env vars variables constants": "write it as a node with a `value`, or as `input`",
        "map": "it belongs to a node: `nodes: {each: {map: {over: …}, tool: …}}`",
    },
)
_RULE = Words(keys={"if": "when condition cond case", "then": "next go_to to"})
_LOOP = Words(
    keys={
        "while": "if when condition",
        "max_iterations": "max times count limit iterations rounds max_rounds",
        "back_to": "to go_to from start",
        "break_path": "next then exit break",
        "pause": "every interval delay sleep backoff wait",
        "initial": "init seed start_with",
    },
    said={"until": "write the opposite of it as `while`"},
)
_POLL = Words(
    keys={
        "until": "while if when condition done",
        "every": "interval delay pause sleep backoff wait",
        "tries": "max times count limit attempts max_attempts max_iterations retries at_most",
        "within": "timeout deadline max_time for",
        "initial": "init seed start_with",
    }
)
_CATCH = Words(
    keys={
        "code": "error errors codes error_equals on exception",
        "class": "kind type",
        "then": "next go_to to",
        "if": "when condition",
    }
)
_OF_RULES = {
    "type": "event on detail_type name",
    "when": "where if filter condition",
    "correlation_key": "key correlation correlate_by business_key",
}
WORDS: Mapping[type[BaseModel], Words] = {
    NodeModel: _NODE,
    WorkflowModel: _DOCUMENT,
    **{kind.model: kind.inside for kind in NODE_TYPES if kind.model and kind.inside},
    **{model: words for kind in NODE_TYPES for model, words in kind.deeper.items()},
    ApprovalModel: Words(
        keys={
            "always": "required enabled when",
            "title": "question prompt text subject",
            "message": "description body instructions",
            "to": "assignee audience user group role who approvers approver",
            "expires": "timeout expires_in deadline ttl",
            "escalate": FAMILIAR,
        },
    ),
    RiskRuleModel: Words(
        keys={"level": "risk", "above": "over amount max threshold", "party_above": "party"}
    ),
    CallRiskModel: Words(
        keys={"level": "risk severity", "action": "kind type", "amount": "price total", "party": "people"}
    ),
    RuleModel: _RULE,
    LimitsModel: Words(
        keys={
            "cost_usd": "cost max_cost max_cost_usd max_usd budget max_budget budget_usd spend",
            "wall_time": "max_duration duration",
            "tokens": "max_tokens max_total_tokens token_limit token_budget",
        }
    ),
    BranchModel: Words(keys={"default": "else otherwise", "rules": "choices cases conditions"}),
    LoopModel: _LOOP,
    PollModel: _POLL,
    CallbackModel: Words(
        keys={"timeout": "within deadline", "heartbeat": "heartbeat_timeout heartbeat_seconds"}
    ),
    ReplanModel: Words(
        keys={
            "model": "name llm",
            "tools": "allowed_tools",
            "alternatives": "max_alternatives count",
            "within": "timeout time_limit",
        }
    ),
    ScheduleModel: Words(
        keys={
            "cron": "expression schedule_expression at when",
            "rate": "every interval each",
            "timezone": "tz time_zone zone schedule_expression_timezone",
            "overlap": "concurrency concurrency_policy overlap_policy",
            "catch_up": "catchup backfill catchup_window",
            "input": "with payload arguments",
        }
    ),
    EventsModel: Words(keys={"start": "starts on triggers", "signal": "signals correlate"}),
    StartRuleModel: Words(keys={**_OF_RULES, "input": "with arguments data payload"}),
    SignalRuleModel: Words(keys={**_OF_RULES, "payload": "data body input with"}),
    JoinModel: Words(
        keys={"wait_for": "type mode policy count need"}, said={"any first one": "write `join: any`"}
    ),
    MapModel: Words(
        keys={
            "over": "items list in items_path each of",
            "concurrency": "max_concurrency parallelism at_once batch_size limit",
            "wait_for": "need min_success success_count",
            "tolerated_failures": "tolerated tolerated_failure_percentage tolerated_failure_count max_failures tolerance",
        },
        said={
            "as item_name iterator var": "leave it out: the item is `${item}`, and its place in the list `${index}`",
            "map for_each": "a map in a map is a `graph` for each item: write the inner `map` in that graph",
            "do body tool workflow with steps node processor item_processor": "write it beside `map`: the node is what is done for each item",
        },
    ),
    CatchModel: _CATCH,
    RetryModel: Words(
        keys={
            "max_attempts": "attempts max retries times count max_retries limit",
            "base": "delay interval wait interval_seconds initial_interval",
            "multiplier": "backoff_rate factor",
        }
    ),
}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def plainly(word: str) -> str:
    """Return a word as the keys of a document are written: `dependsOn` and `depends-on` are `depends_on`."""
    return _CAMEL.sub("_", word).replace("-", "_").replace(" ", "_").lower()


_LONGEST = 64
_OF_WORKFLOWS = "names of workflows have small letters, digits and `-`, begin with a letter, and have at most 64 characters"
_RULES = {
    NODE_NAME: "names of nodes, signals and schemas have letters, digits and `_`, do not begin with a digit, and have at "
    "most 64 characters",
    WORKFLOW_NAME: _OF_WORKFLOWS,
    WORKFLOW_REFERENCE: f"{_OF_WORKFLOWS}; `@` and the number of a version, or a tag, may follow",
}
_OTHER = "such names are words of small letters, digits and `_` with a `.` between them"


def right_name(text: str, pattern: str) -> str:
    """Return a suggestion for a text that does not match the pattern of a name."""
    rule, near = _RULES.get(pattern, _OTHER), _nearest(text, pattern)
    return f"write `{near}`: {rule}" if re.fullmatch(pattern, near) else rule


def _nearest(text: str, pattern: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    if pattern == NODE_NAME:
        name = re.sub(r"[^A-Za-z0-9_]+", "_", plain.strip())
        return f"{'_' * name[:1].isdigit()}{name}"[:_LONGEST]
    name, at, version = plain.partition("@")
    between = "-" if pattern in _RULES else "_"
    name = re.sub(r"[^a-z0-9.]+" if between == "_" else r"[^a-z0-9]+", between, _CAMEL.sub("-", name).lower())
    name = name.strip(between)[:_LONGEST]
    return f"{name}{at}{version}" if pattern == WORKFLOW_REFERENCE and version else name


# Looking for the nearest of many names takes long, and authors repair a document from its beginning.
MAX_HINTS = 1_000
# Keys are short: with less in common, the nearest would be one by chance.
_NEAR = 0.6

# What has fields of its own beside the key of the kind.
_PARTS: Mapping[str, type[BaseModel]] = {"map": MapModel, "join": JoinModel, "loop": LoopModel}


def existing_part(location: Sequence[Any], document: Any) -> list[Any]:
    """Return as much of a location as the document has: `join: 0` has no `wait_for` in it.
    A missing key counts as had.

    A place in a list is none where one thing stands for a list of it.
    """
    value, taken = document, []
    for step in location:
        if isinstance(value, dict) and isinstance(step, int):
            continue
        if not isinstance(value, (dict, list)) or isinstance(step, str) == isinstance(value, list):
            break
        taken.append(step)
        value = value.get(step) if isinstance(value, dict) else value[step]
    return taken


def deep_copy(value: Any) -> Any:
    """Copy a JSON value so that every place has an object of its own.

    A change at one place is then none at another, nor of what the caller has.
    """
    if isinstance(value, dict):
        return {key: deep_copy(item) for key, item in value.items()}
    return [deep_copy(item) for item in value] if isinstance(value, list) else value


def pointer_of(location: Sequence[Any]) -> str:
    """Return a JSON Pointer (RFC 6901)."""
    return "".join(f"/{escape(step)}" for step in location)


def model_around(location: Sequence[Any]) -> type[BaseModel]:
    """Return the model of the object that has the last step of the location in it."""
    in_node = location[0] == "nodes"
    model: type[BaseModel] = NodeModel if in_node else WorkflowModel
    steps = iter([step for step in location[2 if in_node else 0 : -1] if isinstance(step, str)])
    for step in steps:
        model, is_by_name = _inside(model).get(step, (BaseModel, False))
        if is_by_name:
            next(steps, None)
    return model


@lru_cache(maxsize=128)
def _inside(model: type[BaseModel]) -> Mapping[str, tuple[type[BaseModel], bool]]:
    """Return the models of objects under the keys of a model, or in lists there; true for objects by name."""
    return {
        key: found
        for key, field in _fields(model).items()
        if (found := _model_in(field.annotation, field.metadata)) is not None
    }


def _model_in(annotation: Any, metadata: Sequence[Any] = ()) -> tuple[type[BaseModel], bool] | None:
    if named := next((one.model for one in metadata if isinstance(one, Defined) and one.model), None):
        return named, False
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    inner, *more = get_args(annotation) or (None,)
    if get_origin(annotation) is Annotated:
        return _model_in(inner, more)
    if get_origin(annotation) is dict:
        return (found[0], True) if (found := _model_in(more[0])) else None
    return next((found for one in (inner, *more) if one and (found := _model_in(one))), None)


def fields_around(location: Sequence[Any]) -> Mapping[str, FieldInfo]:
    """Return the possible fields beside the last step of the location, by the keys that a document writes."""
    return _fields(model_around(location))


def _fields(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def nearest_valid_form(location: Sequence[Any]) -> str:
    """Return the known key that the location's last step nearly is or means elsewhere; else an empty text."""
    return _meant(str(location[-1]), model_around(location))


def belongs(location: Sequence[Any], node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the place in its node where the last step of the location belongs.

    It is empty if the place is not known, or if the step stands there.

    A field of the node can stand below the key of its kind, one of the kind
    or of `map` beside that, and a limit at either place.
    """
    below = tuple(location[2:-1])
    word = plainly(str(location[-1]))
    kind = next((one for one in NODE_TYPES if one.key in node and (one.key != word or below)), None)
    if kind is None or below not in ((), (kind.key,)):
        return ()
    inside, beside = _key(word, kind.model) if kind.model else "", _key(word, NodeModel)
    if below and (inside or beside in kind.fields):
        return () if inside else (beside,)
    if not below and inside and (inside == word or not beside):
        held = node[kind.key]
        return () if isinstance(held, dict) and inside in held else (kind.key, inside)
    for key, model in () if below else _PARTS.items():
        if key in node and (field := _key(word, model)) and (field == word or not beside):
            return (key, field)
    limit = _key(word, LimitsModel)
    return ("limits", limit) if limit and not beside else ()


def _key(word: str, model: type[BaseModel]) -> str:
    """Return the key of an object that is called so, here or elsewhere; an empty string if there is none."""
    return word if word in _fields(model) else WORDS[model].key(word) if model in WORDS else ""


def advice(location: Sequence[Any]) -> str:
    """Return the message about a key of another tool that has no counterpart here."""
    words = WORDS.get(model_around(location))
    return words.advice(plainly(str(location[-1]))) if words is not None else ""


@lru_cache(maxsize=MAX_HINTS)  # asked more than once for each, and looking takes long
def _meant(name: str, model: type[BaseModel]) -> str:
    known, word = tuple(_fields(model)), plainly(name)
    if word in known:
        return word
    if (words := WORDS.get(model)) is not None:
        if key := words.key(word):
            return key
        if words.advice(word):
            return ""
    return next(iter(get_close_matches(name, known, n=1, cutoff=_NEAR)), "")
