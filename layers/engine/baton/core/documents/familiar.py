"""Words of other tools, and the words of a document that mean the same.

Keys that are nearly right are in places.py; the value under a wrong key is handled in repair.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import BaseModel

from baton.core.documents.models import WorkflowModel
from baton.core.documents.nodes.base import Words
from baton.core.documents.nodes.node_model import KINDS, NodeModel
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.documents.parts.approval import ApprovalModel, RiskRuleModel
from baton.core.documents.parts.bounds import LimitsModel
from baton.core.documents.parts.callback import CallbackModel
from baton.core.documents.parts.control import BranchModel, JoinModel, LoopModel, PollModel, RuleModel
from baton.core.documents.parts.escalation import FAMILIAR
from baton.core.documents.parts.failing import CatchModel, RetryModel
from baton.core.documents.parts.many import MapModel
from baton.core.documents.parts.outside import EventsModel, SignalRuleModel, StartRuleModel
from baton.core.documents.parts.replan import ReplanModel
from baton.core.documents.parts.schedule import ScheduleModel

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
        "name id key": "leave it out: the key above is the node's name",
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
    """A word as the keys of a document are written: `dependsOn` and `depends-on` are `depends_on`."""
    return _CAMEL.sub("_", word).replace("-", "_").replace(" ", "_").lower()
