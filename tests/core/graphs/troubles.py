"""What random graphs say about failures: edges that are taken on failure, and what is done about attempts that fail.

They are drawn onto a graph in the making. What they mean is in failing.py and interpreter.py.
"""

from __future__ import annotations

import random
from typing import Any

from tests.core.graphs.failing import ASK, ESCALATE, REPLAN, RETRY, UNDO
from tests.core.graphs.plan import Plan

Doc = dict[str, Any]

CATCHES: tuple[Doc, ...] = (
    {},
    {},
    {"code": ["timeout"]},
    {"code": ["tool_error", "conflict"]},
    {"class": ["transient", "recoverable"]},
    {"class": ["permanent"]},
    {"class": ["user_resolvable", "unknown", "permanent"]},
    {"if": "last_error.code == 'timeout'"},
    {"if": "last_error.attempt < 3", "class": ["transient", "unknown"]},
    {"code": ["not_found"], "if": "input.go == 'red'"},
    {"if": "input.nothing == 1"},
)
SCHEDULES = (["1ms"], ["700ms"], ["200ms", "3000ms"], ["2000ms", "5ms", "900ms"])
LADDERS: tuple[Any, ...] = (
    UNDO,
    [UNDO],
    [RETRY],
    [RETRY, UNDO],
    [RETRY, REPLAN, UNDO],
    [RETRY, ASK],
    [ASK, UNDO],
    [ASK, ESCALATE],
    [REPLAN, RETRY, ASK],
    [RETRY, ESCALATE],
    [ESCALATE],
)
KEYS = ("any", "any", "timeout", "tool_error", "conflict", "transient", "recoverable", "unknown", "permanent")
NEVER_TRIED = ("permanent",)


def draw_catches(draw: random.Random, plan: Plan, nodes: Doc) -> None:
    """Some edges become such as are taken on failure."""
    for name in nodes:
        after = plan.after[name]
        if not after or draw.random() > (0.9 if "loop" in nodes[name] else 0.5):
            continue
        targets = draw.sample(after, min(len(after), draw.choice((1, 2, 2))))
        if len(targets) == len(after) and draw.random() < 0.6:
            targets = targets[1:]
        if not targets:
            continue
        _draw_meeting(draw, plan, nodes, name, targets)
        if draw.random() < 0.2:
            nodes[name]["catch"] = targets[0] if len(targets) == 1 else targets
            continue
        rules = [{**draw.choice(CATCHES), "then": target} for target in targets]
        if draw.random() < 0.4:
            rules.append({**draw.choice(CATCHES), "then": targets})
        if draw.random() < 0.4:
            rules[-1] = {"then": rules[-1]["then"]}
        # Behind a rule that fits everything none is ever asked.
        rules.sort(key=lambda rule: len(rule) == 1)
        whole = next((number for number, rule in enumerate(rules, 1) if len(rule) == 1), len(rules))
        rules = rules[:whole]
        nodes[name]["catch"] = rules


def _draw_meeting(draw: random.Random, plan: Plan, nodes: Doc, name: str, handlers: list[str]) -> None:
    """Sometimes the way of a handler meets the node's own again, or another way leads to the handler, too."""
    handler, ranked = draw.choice(handlers), list(nodes)
    behind = [
        other
        for other in sorted(plan.ahead[handler])
        if other not in (*plan.after[name], *handlers) and plan.loops[other] == plan.loops[name]
    ]
    if behind and draw.random() < 0.7:
        # Rather further away than next to it: more can happen on the way.
        meeting = max(draw.choice(behind), draw.choice(behind), key=ranked.index)
        nodes[meeting]["after"].append(name)
    beside = [
        other
        for other in ranked[: ranked.index(handler)]
        if other != name and plan.loops[other] == plan.loops[handler] and other not in plan.before[handler]
    ]
    if beside and draw.random() < 0.3:
        nodes[handler]["after"].append(draw.choice(beside))


def draw_rules(draw: random.Random, document: Doc) -> None:
    """What is done about attempts that fail, of the document and of some nodes."""
    document["on_failure"] = _rules(draw) if draw.random() < 0.5 else {}
    if draw.random() < 0.4:
        document["retry"] = _retry(draw)
    for node in document["nodes"].values():
        if "tool" not in node:
            continue
        if draw.random() < 0.3:
            node["tool"] = "fetch"
        if draw.random() < 0.25:
            node["retry"] = _retry(draw)
        if draw.random() < 0.35:
            node["on_failure"] = _rules(draw) if draw.random() < 0.7 else draw.choice((UNDO, ASK))
        if not _is_tried(document, node):
            node.pop("retry", None)
    if not any(_is_tried(document, node) for node in document["nodes"].values() if "tool" in node):
        document.pop("retry", None)


def _is_tried(document: Doc, node: Doc) -> bool:
    """Whether anything is tried again at a task: if not, its `retry` can do nothing, and the compiler says so."""
    ladders: Doc = {"any": (RETRY,)}
    for level in (document, node):
        said = level.get("on_failure", {})
        rules = said if isinstance(said, dict) else {"any": {"ladder": said}}
        ladders |= {key: rule["ladder"] for key, rule in rules.items() if "ladder" in rule}
    return any(RETRY in ladder for ladder in ladders.values())


def _retry(draw: random.Random) -> Any:
    preset = draw.choice(("immediate", "immediate", "quick", "none"))
    return preset if draw.random() < 0.6 else {"schedule": draw.choice(SCHEDULES)}


def _rules(draw: random.Random) -> Doc:
    return {key: _rule(draw, key) for key in draw.sample(KEYS, draw.choice((1, 1, 2)))}


def _rule(draw: random.Random, key: str) -> Doc:
    rule: Doc = {}
    if draw.random() < 0.7:
        rule["ladder"] = draw.choice(LADDERS)
    # Of a ladder without it, or of what is permanent, the compiler says that it can do nothing.
    if draw.random() < 0.4 and RETRY in rule.get("ladder", () if key in NEVER_TRIED else (RETRY,)):
        rule["retry"] = _retry(draw)
    if draw.random() < 0.3:
        rule["at_most"] = {draw.choice((RETRY, REPLAN, ASK, ESCALATE)): draw.choice((0, 1, 1, 2))}
    return rule or {"ladder": UNDO}
