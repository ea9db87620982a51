"""Workflows written in Python, which yield the same documents as YAML. The compiler validates all documents
alike.
"""

from baton.builder.conditions import (
    Condition,
    all_of,
    any_of,
    cel,
    compare,
    jsonpath,
    matches,
    not_,
    python,
)
from baton.builder.control import (
    Branch,
    Guardrails,
    Join,
    Limits,
    Loop,
    Poll,
    Rule,
    branch,
    choose,
    join,
    loop,
    poll,
    rule,
)
from baton.builder.failing import Caught, Policy, Reaction, Retry, caught
from baton.builder.references import OUTPUT, Node, Reference
from baton.builder.workflow import Workflow

__all__ = [
    "OUTPUT",
    "Branch",
    "Caught",
    "Condition",
    "Guardrails",
    "Join",
    "Limits",
    "Loop",
    "Node",
    "Policy",
    "Poll",
    "Reaction",
    "Reference",
    "Retry",
    "Rule",
    "Workflow",
    "all_of",
    "any_of",
    "branch",
    "caught",
    "cel",
    "choose",
    "compare",
    "join",
    "jsonpath",
    "loop",
    "matches",
    "not_",
    "poll",
    "python",
    "rule",
]
