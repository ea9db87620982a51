"""Public views of a definition: its shape, the graphs that its document names, and its failure handler.

Everything that draws a workflow draws this: `baton check`, `baton workflows`, the console.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Meta

from baton.core.decide.program import Program
from baton.core.effects.risk import ACTIONS, DEFAULT_RULES, rule_in_words
from baton.core.effects.toolspec import EFFECTS
from baton.core.failures.codes import CLASSES, PERMANENT, class_of
from baton.core.failures.policy import ASK, FAIL, PolicyEntry
from baton.core.failures.strategies.base import FailureContext, History, LadderStep, Strategy
from baton.core.failures.strategies.ladder import entry_of, is_said, ladder_of
from baton.core.failures.strategies.registry import of
from baton.core.graph.graph import Cap, Catch, Graph, Handler, Node, Pause, graph_name
from baton.core.log.work import Open
from baton.core.money import MICRO
from baton.core.nodes.base import Kinds
from baton.core.nodes.registry import KINDS
from baton.core.read.answers import Amount, Schema, View


def control_view(node: Node) -> dict[str, Any]:
    """Return the condition, join, branch and next nodes of a node; conditions as the graph has them."""
    shown: dict[str, Any] = {}
    if node.when is not None:
        shown["when"] = json_form(node.when)
    if (join := node.join) is not None:
        tolerated = None if join.tolerated < 0 else join.tolerated
        shown["join"] = {"wait_for": join.need or "all", "tolerated_failures": tolerated, "rest": join.rest}
    if (branch := node.branch) is not None:
        shown["branch"] = {
            "rules": [{"if": json_form(rule.condition), "then": list(rule.then)} for rule in branch.rules],
            "choose": branch.choose or None,
            "among": list(branch.among),
            "default": list(branch.default),
        }
    if node.catch:
        shown["catch"] = [
            {
                "code": list(rule.codes),
                "class": list(rule.kinds),
                "if": None if rule.condition is None else json_form(rule.condition),
                "then": list(rule.then),
            }
            for rule in node.catch
        ]
    if (loop := node.loop) is not None:
        shown["loop"] = {
            "while": json_form(loop.condition),
            "max_iterations": loop.max_iterations,
            "back_to": loop.back_to,
            "break_path": list(loop.break_path),
            "timeout_path": list(loop.timeout_path),
        }
        if loop.pause is not None:
            shown["loop"]["pause"] = _pause(loop.pause)
        if loop.initial is not None:
            shown["loop"]["initial"] = loop.initial
        if loop.poll is not None:
            shown["loop"]["within_ms"] = loop.poll.within_ms or None
    return shown


def _pause(pause: Pause) -> Any:
    """Return the pause as a document may have it."""
    if pause.of is not None:
        return pause.of
    if pause.factor == 1.0:
        return f"{pause.ms}ms"
    return {"first": f"{pause.ms}ms", "factor": pause.factor, "most": f"{pause.most_ms}ms"}


def json_form(value: Any) -> Any:
    """Return the value as JSON would give it back: with lists."""
    return msgspec.json.decode(msgspec.json.encode(value))


def failure_rules(graph: Graph) -> list[str]:
    """Return the document's own rules, or the default ones where a tool declares a risk;
    none where neither is.
    """
    declares = any(node.approval is not None and node.approval.risk is not None for node in graph.work)
    rules = graph.risk if graph.risk is not None else DEFAULT_RULES if declares else ()
    return [rule_in_words(rule) for rule in rules]


STATES: Final = dict.fromkeys(
    (
        *("joining", "waiting", "ready", "held", "retrying", "asking", "running"),
        *(work.word for work in get_args(Open)),
    )
)
"""States of a node that has not ended."""
UNITS: Final = {"wall_time": "wall_time_ms", "cost": "cost_usd", "retry_time": "retry_time_ms"}


def graph_view(graph: Graph, kinds: Kinds = KINDS) -> dict[str, Any]:
    """Return the shape of a workflow: input, nodes in an order in which they can run, edges, named graphs."""
    return {
        "input": graph.input_schema,
        **_shape(graph, kinds),
        "limits": _limits(graph.limits),
        "risk": failure_rules(graph),
        "graphs": [{"name": name, **_shape(inner, kinds)} for name, inner in sorted(graph.graphs.items())],
        "failure_handler": None if graph.handler is None else _handler(graph.handler),
    }


def _shape(graph: Graph, kinds: Kinds) -> dict[str, Any]:
    nodes = [_node_view(node, kinds) for node in graph.nodes]
    if graph.risk == ():  # no call is risky then
        for shown in nodes:
            if shown.get("approval") == "by_risk":
                del shown["approval"]
    return {"nodes": nodes, "edges": _edges(graph)}


def _handler(handler: Handler) -> dict[str, Any]:
    graph = graph_name(handler.workflow)
    return {
        "workflow": None if graph else handler.workflow,
        "graph": graph or None,
        "on_cancel": handler.on_cancel,
    }


def _edges(graph: Graph) -> list[dict[str, Any]]:
    """Return the edges by their receivers, with their deciders; a loop's back edge follows them."""
    nodes = {node.name: node for node in graph.nodes}
    forward = [
        {"from": before, "to": node.name, "kind": _kind(nodes[before], node.name)}
        for node in graph.nodes
        for before in node.before
    ]
    back = [(node.name, node.loop.back_to) for node in graph.nodes if node.loop is not None]
    return [*forward, *({"from": tail, "to": header, "kind": "again"} for tail, header in back)]


def _kind(sender: Node, receiver: str) -> str:
    if sender.branch is not None and receiver in sender.branch.targets:
        return "branch"
    if any(receiver in rule.then for rule in sender.catch):
        return "catch"
    if sender.loop is not None and receiver in sender.loop.break_path:
        return "break"
    return "timeout" if sender.loop is not None and receiver in sender.loop.timeout_path else "after"


def _limits(limits: Mapping[str, Cap]) -> dict[str, Any]:
    """Return the limits by name, with their unit where they have one."""
    shown: dict[str, Any] = {}
    for name, cap in limits.items():
        shown[UNITS.get(name, name)] = cap_view(name, cap)
    return shown


def cap_view(name: str, cap: Cap) -> dict[str, Any]:
    """Return a limit as `GET /workflows/{name}` shows it."""
    return {"most": cap.most / MICRO if name == "cost" else cap.most, "then": cap.then}


def _node_view(node: Node, kinds: Kinds) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": node.name, "kind": node.kind}
    if node.tool:
        shown |= {"tool": node.tool, "tool_version": node.tool_version, "effect": node.effect}
    if node.timeout_ms:
        shown["timeout_ms"] = node.timeout_ms
    shown |= kinds[node.kind].node_view(node)
    calls = (node, *(() if node.function is None else node.function.calls))
    if undo := {tool: inverse for one in calls for tool, inverse in one.undo.items()}:
        shown["undo"] = {tool: inverse.step.tool for tool, inverse in undo.items()}
        if unverified := [inverse.step.tool for inverse in undo.values() if inverse.in_doubt]:
            shown["unverified"] = unverified
    if node.loops:
        shown["loops"] = list(node.loops)
    if node.output_schema is not None:
        shown["output_schema"] = node.output_schema
    if node.limits:
        shown["limits"] = _limits(node.limits)
    return shown | control_view(node)


ORDINARY = "tool_error"
"""The code of an exception that nothing else is known of."""
_OWN = ""  # a code of a tool's own
MOST = 20
"""Nodes that are told of one by one."""
Steps = list[tuple[Strategy, str]]
"""Strategies, with what is said of each."""


class OnFailure(View):
    """Action after a step has failed permanently, that is, after its retries and alternatives."""

    steps: Annotated[str, "Action for a step without rules of its own. Empty if there is none."]
    nodes: Annotated[dict[str, str], "Nodes with other actions, by name. Contains at most 20 nodes."]


def foretold(program: Program, *, handled: bool = False, last: str = "") -> OnFailure:
    """Return the treatment of a failure after retries and alternatives, for the tasks of the graph.

    `steps` is the treatment by a task without rules of its own, empty where the graph has no such task.
    `nodes` maps the first `MOST` tasks that do something else to their words.
    `handled` and `last` are those of the saga's start.
    """
    if len(nodes := program.graph.nodes) == 1 and nodes[0].function is not None:
        return OnFailure(steps=_of_function(program, nodes[0], handled=handled), nodes={})
    known: dict[tuple[str, bool], str] = {}

    def words(node: Node) -> str:
        key = (node.domain, node.name in program.index.can_fail)
        if node.function is not None:
            return _of_function(program, node, handled=handled)
        if node.failures or node.catch:
            return _words(program, node, handled=handled, last=last or ASK)
        if key not in known:
            known[key] = _words(program, node, handled=handled, last=last or ASK)
        return known[key]

    steps, is_said, others = words(Node(name="", kind="")), False, dict[str, str]()
    for node in program.graph.nodes:
        if not program.kinds[node.kind].has_attempts:
            continue
        own = words(node)
        if own == steps:
            is_said = True
        else:
            others[node.name] = own
            if len(others) == MOST:
                break
    return OnFailure(steps=steps if is_said or len(others) == MOST else "", nodes=others)


def _of_function(program: Program, node: Node, *, handled: bool) -> str:
    """Return the treatment of a failed step of a function, about which no person is asked."""
    if node.catch or node.name in program.index.can_fail:
        end = f"the node {_course(program, node, _OWN, PERMANENT, handled=handled, last=FAIL)}"
    else:
        has_undo = program.has_reversible or bool(program.graph.graphs)
        is_undone = has_undo and _reverts(program, node)
        end = f"the saga fails and {'undoes' if is_undone else 'leaves'} what was done"
        end += ", and the saga above goes on" if handled else ""
    return f"raises in the function; if it is not caught, {end}"


def by_class(program: Program) -> dict[str, Any]:
    """Return attempts, time of retries and undoing of a task, by class of failure.

    As in `foretold`, `steps` is for a task without rules of its own, `nodes` for each task that differs.
    Each maps a class to `attempts`, the milliseconds of all pauses (`over_ms`), and `undone`:
    true if the saga undoes its steps in the end. Codes of the failure matrix may have other numbers.
    """
    tasks = [node for node in program.graph.nodes if node.tool and program.kinds[node.kind].has_attempts]
    usual = _classes(program, Node(name="", kind=""))
    nodes = {node.name: found for node in tasks if (found := _classes(program, node)) != usual}
    is_said = len(nodes) < len(tasks) or len(nodes) > MOST
    return {"steps": usual if is_said else {}, "nodes": dict(list(nodes.items())[:MOST])}


def _classes(program: Program, node: Node) -> dict[str, dict[str, Any]]:
    is_foreseen = node.name in program.index.can_fail
    found = {}
    for kind in CLASSES:
        rules = (program.graph.failures, node.failures)
        is_caught = any(rule.condition is None for rule in _catches(node, _OWN, kind))
        handled = is_foreseen or is_caught
        entry = entry_of(_OWN, kind, node.domain, rules, is_handled=handled, limits=program.limits)
        pauses = list(_pauses(entry))
        is_undone = not (is_foreseen or is_caught) and _undoes(program, node, _OWN, kind)
        found[kind] = {"attempts": len(pauses) + 1, "over_ms": sum(pauses), "undone": is_undone}
    return found


def _pauses(entry: PolicyEntry) -> Iterator[int]:
    """Yield the pauses before each attempt but the first,
    where nothing else is done about the failure before.
    """
    history, now = History(), 1
    for name in ladder_of(entry, _OWN)[:1]:
        while of(name).repeats and isinstance(
            step := of(name).next(_situation(entry, history, now)), LadderStep
        ):
            yield step.delay_ms
            history, now = of(name).recorded(history, step, now), now + step.delay_ms


def _situation(entry: PolicyEntry, history: History, now: int) -> FailureContext:
    return FailureContext(entry=entry, history=history, code=_OWN, now=now)


def _words(program: Program, node: Node, *, handled: bool, last: str) -> str:
    usual = _course(program, node, ORDINARY, class_of(ORDINARY), handled=handled, last=last)
    permanent = _course(program, node, _OWN, PERMANENT, handled=handled, last=last)
    return usual if permanent == usual else f"{usual}; permanent: {permanent}"


def _course(program: Program, node: Node, code: str, kind: str, *, handled: bool, last: str) -> str:
    """Return the strategy for one failure, and the next one if it does not help."""
    catches = _catches(node, code, kind)
    is_caught = any(rule.condition is None for rule in catches)
    goes_on = node.name in program.index.can_fail

    def done(*, is_handled: bool) -> Steps:
        rules = (program.graph.failures, node.failures)
        given: dict[str, Any] = {"is_handled": is_handled, "last": last, "limits": program.limits}
        return _done(entry_of(code, kind, node.domain, rules, **given), code)

    ends = [f"goes on with {_names(rule)}" for rule in catches]
    if not is_caught:
        *rest, last_word = [
            "fails",
            *(["what was done is undone"] if _undoes(program, node, code, kind) else []),
            *(["the saga above goes on"] if handled else []),
        ]
        fails = f"{', '.join(rest)}, and {last_word}" if rest else last_word
        ends.append("fails, and its join decides" if goes_on else fails)
    steps = done(is_handled=handled or goes_on or is_caught)
    if len(ends) > 1 and steps and not done(is_handled=True):
        # Where a condition of `catch` holds, the user is not asked.
        return f"{' or '.join(ends[:-1])}, or {_then(steps, ends[-1])}"
    return _then(steps, " or ".join(ends))


def _undoes(program: Program, node: Node, code: str, kind: str) -> bool:
    """Return true if the saga undoes its steps after this failure.

    Some step must have an inverse, and no rule of the document may leave the undoing out.
    """
    return program.has_reversible and _reverts(program, node, code, kind)


def _reverts(program: Program, node: Node, code: str = _OWN, kind: str = PERMANENT) -> bool:
    levels = (program.graph.failures, node.failures)
    ladder = entry_of(code, kind, node.domain, levels).ladder
    return not is_said(code, kind, levels) or any(of(name).reverts for name in ladder)


def _then(steps: Steps, end: str) -> str:
    """Join the strategies and the end in words. A strategy that waits for a decision is the last word."""
    words = [said for _, said in steps]
    return ", then ".join(words if steps and steps[-1][0].parks else [*words, end])


def _catches(node: Node, code: str, kind: str) -> list[Catch]:
    """Return the rules that may catch it, up to the first without a condition."""
    found = []
    for rule in node.catch:
        if rule.fits(code, kind):
            found.append(rule)
            if rule.condition is None:
                break
    return found


def _done(entry: PolicyEntry, code: str) -> Steps:
    """Return the steps of the ladder after retries and alternatives, up to the first that ends it."""
    found: Steps = []
    for name in ladder_of(entry, code):
        strategy = of(name)
        if not entry.at_most.get(name, 1):
            continue
        if strategy.foretold:
            found.append((strategy, strategy.foretell(entry)))
        if strategy.is_last:
            break
    return found


def _names(rule: Catch) -> str:
    return " and ".join(f"`{name}`" for name in rule.then)


class ToolRisk(View):
    """Risk that a tool declares: its action, and the paths of the arguments that determine the extent. A path
    is empty if the tool has no such argument.
    """

    action: Annotated[str, Meta(extra_json_schema={"enum": list(ACTIONS)})]
    amount: str
    currency: str
    currency_is: str
    minor: Annotated[bool, "True if the amount is in the smallest currency unit, such as cents."]
    party: str


class Tool(View):
    """A tool of the application."""

    name: str
    version: str
    description: str
    effect: Annotated[str, Meta(extra_json_schema={"enum": list(EFFECTS)})]
    domain: Annotated[str | None, "Domain of the tool. Null if the tool declares none."]
    cost_usd: Annotated[
        Amount, "Maximum cost of one attempt in US dollars. 0 if the tool is free or declares no cost."
    ]
    timeout_ms: Annotated[int | None, "Timeout of one attempt. Null: the engine's default applies."]
    input: Schema
    output: Schema | None
    schema_hash: str
    requires_approval: Annotated[bool, "True if a person must approve each call."]
    risk: Annotated[
        ToolRisk | None,
        "Action of the tool, and the arguments that determine its extent. Null if the tool declares no risk.",
    ]
    undo: Annotated[str | None, "Tool that undoes a call of this tool. Null if none exists."]
    verify: Annotated[str | None, "Tool that verifies whether a call took effect. Null if none exists."]
    breaker: Annotated[str | None, "Circuit breaker of the tool's target. Null if it has none."]


class Tools(View):
    """All tools, ordered by name."""

    tools: list[Tool]
