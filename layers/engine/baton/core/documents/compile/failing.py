"""What is done when a step fails: names of hints, hooks and tools, and policies that can never be taken.

Conditions of policies are in checks/expressions.py; `catch` is in analysis/edges.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from baton.core.documents.compile import rules
from baton.core.documents.compile.analysis.handling import rules_of, strange_names
from baton.core.documents.compile.analysis.source import may_run
from baton.core.documents.compile.checks.expressions import Place, check_path, differ, first_of, types
from baton.core.documents.compile.checks.roots import root_hint
from baton.core.documents.compile.tools import allows, exists, known, takes
from baton.core.documents.parts.escalation import escalation_problems
from baton.core.effects.operations import choice_problems, list_problems
from baton.core.effects.toolspec import ONCE
from baton.core.expressions import ExpressionError, expressions_in
from baton.core.failures.alternatives import way_by
from baton.core.failures.codes import class_of
from baton.core.failures.failover import named
from baton.core.failures.policy import HINTS, HOOKS, Change
from baton.core.failures.strategies.ladder import entry_of
from baton.core.failures.strategies.registry import STRATEGIES
from baton.core.log.answers import GIVE_UP, TRY_AGAIN, is_for_a_person
from baton.core.log.state import UNKNOWN_OUTCOME
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.documents.definition import NodeModel, WorkflowModel
    from baton.core.documents.parts.failing import PolicyModel, ReactionModel
    from baton.core.failures.alternatives import Alternative


def check(source: Source) -> Iterator[Problem]:
    """Problems of the names in `retry`, `on_failure`, `failover` and `catch`, and of rules that can do nothing."""
    yield from rules.check(source)
    yield from _rules(source, "", source.model, source.tasks)
    for name in source.tasks:
        yield from _rules(source, f"/nodes/{name}", source.nodes[name], (name,))
    for place, policy, names in source.policies:
        yield from _policy(source, place, policy, names)
    if source.model.replan is not None:
        patterns = source.model.replan.tools
        yield from allows(source, "/replan/tools", patterns)
        specs = [spec for name, spec in sorted(source.allowed.items()) if may_run(name, patterns)]
        yield from list_problems("/replan", specs, source.model.replan.operations)


def named_tools(
    source: Source, tool: str, changes: Sequence[Change]
) -> tuple[tuple[Alternative, ...], dict[str, str]]:
    """The alternatives and hooks of a tool with those that rules name by the names of tools."""
    ways, hooks = source.ways(tool), source.hooks(tool)
    for change in changes:
        for hint in change.hints or ():
            if hint not in HINTS and (way := way_by(hint, tool, source.allowed)) is not None:
                ways = (*ways, *(() if way in ways else (way,)))
        own = {
            name: name for name in change.before_retry or () if name not in hooks and _may_help(source, name)
        }
        hooks = {**hooks, **own}
    return ways, hooks


def _rules(
    source: Source, at: str, said: NodeModel | WorkflowModel, names: Sequence[str]
) -> Iterator[Problem]:
    changes = rules_of(None, said.on_failure)
    place = f"{at}/on_failure"
    strange = set()
    for below, message, hint in strange_names(changes, source.known_names, source.hint):
        strange.add(below)
        yield Problem(place + below, message, hint)
    for code, change in changes.items():
        for index, hint in enumerate(change.hints or ()):
            if (below := f"/{code}/hints/{index}") not in strange:
                yield from _hint(source, place + below, hint, names)
                if hint in source.tools:
                    for name in names:
                        yield from choice_problems(
                            source.tools[hint], source.nodes[name].with_, f"/nodes/{name}/with"
                        )
        for index, hook in enumerate(change.before_retry or ()):
            if (below := f"/{code}/before_retry/{index}") not in strange:
                yield from _hook(source, place + below, hook, names)
        for index, argument in enumerate(change.may_change or ()):
            yield from _argument(source, f"{place}/{code}/may_change/{index}", argument, names)
    for code, reaction in said.on_failure.items():
        if reaction.escalate is not None:
            yield from _escalation(f"{place}/{code}", code, reaction)


def _escalation(place: str, code: str, reaction: ReactionModel) -> Iterator[Problem]:
    """What is wrong with the escalation of the question about a failed step."""
    question = reaction.question or entry_of(code, reaction.class_ or class_of(code)).question
    refused = {}
    if is_for_a_person(question, code):
        what = "whether it has happened" if code == UNKNOWN_OUTCOME else "what is to be approved"
        why = f"`{TRY_AGAIN}` without a person: only a person can say {what}"
        refused[TRY_AGAIN] = (why, f"write `decide: {GIVE_UP}`, or `hand_on`")
    yield from escalation_problems(
        f"{place}/escalate",
        reaction.escalate or (),
        answers=(TRY_AGAIN, GIVE_UP),
        refused=refused,
    )
    for index, step in enumerate(reaction.escalate or ()):
        for pointer, _ in expressions_in(step.said(), f"{place}/escalate/{index}"):
            yield Problem(pointer, "a rule for failures has no expressions", "write the name itself")


def _argument(source: Source, place: str, argument: str, names: Sequence[str]) -> Iterator[Problem]:
    """An argument that an answer may change, and that no tool of these nodes takes."""
    specs = [source.tools[tool] for name in names if (tool := source.tool(name)) in source.tools]
    taken = [name for spec in specs for name in spec.parameters.get("properties", {})]
    is_closed = all(spec.parameters.get("additionalProperties") is False for spec in specs)
    if specs and is_closed and argument not in taken:
        yield Problem(place, f"`{specs[0].name}` takes no `{argument}`", source.hint(argument, taken))


def _hint(source: Source, place: str, hint: str, names: Sequence[str]) -> Iterator[Problem]:
    """A hint that cannot be carried out for any of these nodes."""
    tools = {source.tool(name) for name in names} & source.tools.keys()
    for tool in sorted(tools):
        if any(hint in way.hints or not way.hints for way in source.ways(tool)):
            return
        if hint not in HINTS and way_by(hint, tool, source.allowed) is not None:
            return
    if tools:
        yield from _unknown(source, place, hint, min(tools))


def _hook(source: Source, place: str, hook: str, names: Sequence[str]) -> Iterator[Problem]:
    tools = {source.tool(name) for name in names} & source.tools.keys()
    is_tool = hook not in HOOKS and _may_help(source, hook)
    if tools and not is_tool and not any(hook in source.hooks(tool) for tool in tools):
        yield from _unknown(source, place, hook, min(tools))


def _may_help(source: Source, name: str) -> bool:
    """Whether a tool of this name may be called before others."""
    spec = source.allowed.get(name)
    return spec is not None and spec.effect != ONCE


def _unknown(source: Source, place: str, name: str, tool: str) -> Iterator[Problem]:
    if name in source.tools:
        if name not in source.allowed:
            yield from exists(source, place, name)
        elif source.tools[name].effect == ONCE:
            what = f"`{name}` has the effect `once`, and cannot help `{tool}`"
            why = "what goes before a tool is called anew for every attempt, and no claim is made for it"
            yield Problem(place, what, why)
        else:
            yield Problem(place, f"`{name}` can neither stand in for `{tool}` nor help it")
        return
    yield Problem(
        place,
        f"no tool carries out `{name}` for `{tool}`",
        f'declare one with `@tool(…, carries_out="{name}")`, or leave it out',
    )


# ---- policies --------------------------------------------------------------------------------------------------


def _policy(source: Source, place: str, policy: PolicyModel, names: tuple[str, ...]) -> Iterator[Problem]:
    when, then = policy.when, policy.then
    all_names = names if place.startswith("/nodes/") else source.tasks
    is_lost = False
    for index, pattern in enumerate(when.node):
        if not any(named(name, [pattern]) for name in all_names):
            is_lost = True
            where = f"{place}/when/node" + (f"/{index}" if len(when.node) > 1 else "")
            yield Problem(where, f"no task here is called `{pattern}`", source.hint(pattern, all_names))
    where = f"{place}/when/tool"
    for problem in known(where, when.tool, source):
        is_lost = True
        yield problem
    if not names and not is_lost:
        yield Problem(f"{place}/when" if when.model_fields_set else place, "no task here is like this")
    if policy.message and STRATEGIES[then.strategy].ends:
        yield Problem(
            f"{place}/message",
            f"this does nothing with `{then.strategy}`: no person is told of that",
            "leave it out; a `failure_handler` can tell people what has failed",
        )
    if then.hint is not None:
        yield from _named_hint(source, f"{place}/then/hint", then.hint, names)
    if then.tool is not None:
        yield from exists(source, f"{place}/then/tool", then.tool)
    yield from _with(source, place, policy, names)
    if then.tool is not None or then.with_:
        yield from first_of(place, names, _given(source, place, policy, names))


def _named_hint(source: Source, place: str, hint: str, names: Sequence[str]) -> Iterator[Problem]:
    changes = {"any": Change(hints=(hint,))}
    strange = list(strange_names(changes, source.known_names, source.hint))
    for _, message, meant in strange:
        yield Problem(place, message, meant)
    if not strange:
        yield from _hint(source, place, hint, names)


def _with(source: Source, place: str, policy: PolicyModel, names: tuple[str, ...]) -> Iterator[Problem]:
    """Expressions in the arguments that a policy gives, at each of its nodes."""
    below, given, paths = f"{place}/then/with", policy.then.with_, []
    for pointer, found in expressions_in(given, below):
        if isinstance(found, ExpressionError):
            yield Problem(pointer, str(found), root_hint(source, found))
        else:
            paths.append((pointer, found))

    def at(name: str) -> Iterator[Problem]:
        for pointer, path in paths:
            yield from check_path(source, pointer, path, Place(name, is_failing=True))
        spec = source.tools.get(policy.then.tool or source.tool(name))
        if spec is not None:
            yield from types(source, name, given, spec, below)

    if not differ(path for _, path in paths):
        # One problem for each tool is enough.
        names = tuple({source.tool(name): name for name in reversed(names)}.values())[::-1]
    if paths:
        yield from first_of(place, names, map(at, names))


def _given(source: Source, place: str, policy: PolicyModel, names: Sequence[str]) -> Iterator[list[Problem]]:
    """For each node: arguments that the policy gives there, and those that its tool lacks."""
    then, known_well = policy.then, set()
    for name in names:
        node, found = source.nodes[name], list[Problem]()
        spec = source.tools.get(then.tool or source.tool(name))
        if spec is not None and spec.name not in known_well:
            known_well.add(spec.name)
            found += takes(source, spec, then.with_, f"{place}/then/with")
        if spec is not None:
            found += choice_problems(spec, {**node.with_, **then.with_}, f"{place}/then/with")
        for key in spec.parameters.get("required", ()) if spec is not None and then.tool is not None else ():
            if key not in then.with_ and key not in node.with_:
                message = f"`{then.tool}` needs `{key}`, which `{name}` has not"
                found.append(Problem(f"{place}/then", message, f"write `{key}` under `with`"))
        yield found
