"""Checks of failure handling: names of hints, hooks and tools, and policies that can never be taken.

Conditions of policies are in expressions.py; `catch` is in flow.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from baton.core.documents.compile.expressions import (
    ExpressionPlace,
    check_path,
    differ,
    first_of,
    root_hint,
    types,
)
from baton.core.documents.compile.source import may_run, policy_rules, strange_names
from baton.core.documents.compile.tools import allows, exists, takes, unknown_tools
from baton.core.documents.parts.people import escalation_problems
from baton.core.effects.operations import choice_problems, list_problems
from baton.core.effects.toolspec import ONCE
from baton.core.expressions import ExpressionError, expressions_in
from baton.core.failures.alternatives import way_by
from baton.core.failures.codes import CHILD_FAILED, CLASSES, CODES, UNTRIED, class_of
from baton.core.failures.failover import matches_patterns
from baton.core.failures.names import near
from baton.core.failures.policy import ANY, HINTS, HOOKS, PolicyChange, Rules
from baton.core.failures.strategies.ladder import entry_of, ladder_of
from baton.core.failures.strategies.registry import END, STRATEGIES
from baton.core.log.questions import GIVE_UP, TRY_AGAIN, is_for_a_person
from baton.core.log.state import UNKNOWN_OUTCOME
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.source import Source
    from baton.core.documents.models import NodeModel, WorkflowModel
    from baton.core.documents.parts.failing import PolicyModel, ReactionModel, RetryModel
    from baton.core.failures.alternatives import Alternative

_OWN = ""
"""Any code of a tool's own."""


def check_rules(source: Source) -> Iterator[Problem]:
    """Yield the problems of the rules of the document and of each node."""
    yield from _level(source, "", source.model, source.tasks)
    for name, node in source.nodes.items():
        # A child may have failed with any code, and rules of its node are asked about that.
        is_tried = not source.kinds[name].starts(node)
        names = (name,) if source.tool(name) else ()
        yield from _level(source, f"/nodes/{name}", node, names, is_tried=is_tried)
        for index, rule in enumerate(node.catch):
            at = "" if len(node.catch) == 1 else f"/{index}"
            place = f"/nodes/{name}/catch{at}/code"
            problems = list(_codes(place, rule.code, is_tried=False))
            yield from problems or _never(source, name, place, rule.code)
    for place, policy, _ in source.policies:
        yield from _codes(f"{place}/when/code", policy.when.code)


def _level(
    source: Source,
    at: str,
    said: NodeModel | WorkflowModel,
    names: Sequence[str],
    *,
    is_tried: bool = True,
) -> Iterator[Problem]:
    if said.retry is not None:
        problems = list(_retry(f"{at}/retry", said.retry, is_tried=is_tried))
        change = policy_rules(said.retry, {})[ANY]
        yield from problems or _idle(source, f"{at}/retry", ANY, change, names, is_whole=True)
    for code, reaction in said.on_failure.items():
        place = f"{at}/on_failure/{code}"
        problems = list(strange_code(place, code, (*CLASSES, ANY), is_tried=is_tried))
        if reaction.retry is not None:
            problems += _retry(f"{place}/retry", reaction.retry, is_tried=is_tried)
        change = policy_rules(None, {code: reaction})[code]
        yield from problems or _idle(source, place, code, change, names)


# ---- codes -----------------------------------------------------------------------------------------------------


def _retry(place: str, retry: RetryModel, *, is_tried: bool) -> Iterator[Problem]:
    yield from _codes(f"{place}/on", retry.on or (), CLASSES, is_tried=is_tried)
    yield from _codes(f"{place}/never", retry.never or (), CLASSES, is_tried=is_tried)


def _codes(
    place: str, codes: Sequence[str], more: Collection[str] = (), *, is_tried: bool = True
) -> Iterator[Problem]:
    for index, code in enumerate(codes):
        where = place + (f"/{index}" if len(codes) > 1 else "")
        yield from strange_code(where, code, more, is_tried=is_tried)


def strange_code(place: str, code: str, more: Collection[str], *, is_tried: bool = True) -> Iterator[Problem]:
    """Yield a problem for a code that no failure has, or (`is_tried`) no failure of an attempt.
    `more` are the names that may stand there, too.
    """
    if code in UNTRIED and is_tried:
        yield Problem(
            place,
            f"no attempt fails with `{code}`, so nothing can be tried again, done another way or asked about it",
            "`catch` says where it goes on from such a failure",
        )
    elif code == CHILD_FAILED and more:
        yield Problem(
            place,
            "a rule of a child looks at the code with which the child itself has failed",
            "for all failures, write `any` in `on_failure`, or leave out `on`",
        )
    elif code in CLASSES and code not in (*CODES, *more):
        yield Problem(
            place, f"`{code}` is a class, and no failure has it as its code", f"write `class: {code}`"
        )
    elif code == ANY and code not in more:
        yield Problem(place, "no failure has the code `any`", "leave it out, or name classes and codes")
    elif meant := near(code, more):
        yield Problem(place, f"no failure has the code `{code}`", f"did you mean `{meant}`?")


def _never(source: Source, name: str, place: str, codes: Sequence[str]) -> Iterator[Problem]:
    """Yield the codes with which a node of this kind never fails."""
    for index, code in enumerate(codes):
        if said := source.kinds[name].never_fails_with(code):
            yield Problem(place + (f"/{index}" if len(codes) > 1 else ""), *said)


# ---- strategies --------------------------------------------------------------------------------------------------


def _idle(
    source: Source,
    place: str,
    code: str,
    change: PolicyChange,
    names: Sequence[str],
    *,
    is_whole: bool = False,
) -> Iterator[Problem]:
    """Yield a problem for each strategy in a rule that none of its failures reaches at any of these nodes."""
    for below, strategy in _of_strategies(change):
        ladders = (ladder for name in names for ladder in _ladders(source, name, code))
        has = next(ladders, None)
        if has is None or strategy in has or any(strategy in ladder for ladder in ladders):
            continue
        right = [name for name in STRATEGIES if name in (*has, strategy)]
        where = "on_failure: {any: [%s]}" if is_whole else "ladder: [%s]"
        yield Problem(
            place if is_whole else place + below,
            f"this can do nothing: what is done about such a failure is {', '.join(has) or END.name}, and never {strategy}",
            f"write `{where % ', '.join(right)}`, or leave this out",
        )


def _of_strategies(change: PolicyChange) -> Iterator[tuple[str, str]]:
    """Yield (place, strategy) of each mention of one.
    An `at_most` is kept to where the strategy is never used, too.
    """
    for name, strategy in STRATEGIES.items():
        yield from ((f"/{field}", name) for field in strategy.only_for(change))


def _ladders(source: Source, name: str, code: str) -> Iterator[tuple[str, ...]]:
    """Yield a node's ladder for each failure that a rule with this code, class or `any` covers."""
    node = source.nodes[name]
    spec = source.tools.get(source.tool(name))
    said = (source.failures, policy_rules(node.retry, node.on_failure))
    for one, kind in _failures(code, said):
        yield ladder_of(entry_of(one, kind, spec.domain if spec is not None else "", said), one)


def _failures(code: str, said: Sequence[Rules]) -> Iterator[tuple[str, str]]:
    """Yield (code, class) of the failures that a rule is for. A code of a tool's own may be of any class."""
    own, kinds, known = {code}, tuple(CLASSES), [code] if code in CODES else []
    if code == ANY or code in CLASSES:
        kinds = (code,) if code in CLASSES else kinds
        own = {
            _OWN,
            *(one for rules in said for name, change in rules.items() for one in (name, *_on(change))),
        }
        known = [one for one in CODES if one not in UNTRIED and class_of(one) in kinds]
    yield from ((one, kind) for one in sorted(own - CODES.keys()) for kind in kinds)
    yield from ((one, class_of(one)) for one in known)


def _on(change: PolicyChange) -> Sequence[str]:
    """Return the codes that a rule has tried again."""
    return (change.retry.on or ()) if change.retry is not None else ()


def check_failing(source: Source) -> Iterator[Problem]:
    """Yield the problems of the names in `retry`, `on_failure`, `failover` and `catch`,
    and of rules that can do nothing.
    """
    yield from check_rules(source)
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
    source: Source, tool: str, changes: Sequence[PolicyChange]
) -> tuple[tuple[Alternative, ...], dict[str, str]]:
    """Return the alternatives and hooks of a tool with those that rules name by the names of tools."""
    ways, hooks = source.alternatives(tool), source.hooks(tool)
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
    changes = policy_rules(None, said.on_failure)
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
    """Yield the problems of the escalation of the question about a failed step."""
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
    """Yield a problem for an argument that an answer may change, and that no tool of these nodes takes."""
    specs = [source.tools[tool] for name in names if (tool := source.tool(name)) in source.tools]
    taken = [name for spec in specs for name in spec.parameters.get("properties", {})]
    is_closed = all(spec.parameters.get("additionalProperties") is False for spec in specs)
    if specs and is_closed and argument not in taken:
        yield Problem(place, f"`{specs[0].name}` takes no `{argument}`", source.hint(argument, taken))


def _hint(source: Source, place: str, hint: str, names: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for a hint that cannot be carried out for any of these nodes."""
    tools = {source.tool(name) for name in names} & source.tools.keys()
    for tool in sorted(tools):
        if any(hint in way.hints or not way.hints for way in source.alternatives(tool)):
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
    """Return true if a tool of this name may be called before others."""
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
        if not any(matches_patterns(name, [pattern]) for name in all_names):
            is_lost = True
            where = f"{place}/when/node" + (f"/{index}" if len(when.node) > 1 else "")
            yield Problem(where, f"no task here is called `{pattern}`", source.hint(pattern, all_names))
    where = f"{place}/when/tool"
    for problem in unknown_tools(where, when.tool, source):
        is_lost = True
        yield problem
    if not names and not is_lost:
        yield Problem(f"{place}/when" if when.model_fields_set else place, "no task here is like this")
    if policy.message and STRATEGIES[then.strategy].ends:
        yield Problem(
            f"{place}/message",
            f"this does nothing with `{then.strategy}`: that strategy notifies no person",
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
    changes = {"any": PolicyChange(hints=(hint,))}
    strange = list(strange_names(changes, source.known_names, source.hint))
    for _, message, meant in strange:
        yield Problem(place, message, meant)
    if not strange:
        yield from _hint(source, place, hint, names)


def _with(source: Source, place: str, policy: PolicyModel, names: tuple[str, ...]) -> Iterator[Problem]:
    """Yield the problems of expressions in the arguments that a policy gives, at each of its nodes."""
    below, given, paths = f"{place}/then/with", policy.then.with_, []
    for pointer, found in expressions_in(given, below):
        if isinstance(found, ExpressionError):
            yield Problem(pointer, str(found), root_hint(source, found))
        else:
            paths.append((pointer, found))

    def at(name: str) -> Iterator[Problem]:
        for pointer, path in paths:
            yield from check_path(source, pointer, path, ExpressionPlace(name, is_failing=True))
        spec = source.tools.get(policy.then.tool or source.tool(name))
        if spec is not None:
            yield from types(source, name, given, spec, below)

    if not differ(path for _, path in paths):
        # One problem for each tool is enough.
        names = tuple({source.tool(name): name for name in reversed(names)}.values())[::-1]
    if paths:
        yield from first_of(place, names, map(at, names))


def _given(source: Source, place: str, policy: PolicyModel, names: Sequence[str]) -> Iterator[list[Problem]]:
    """Yield, for each node, the problems of arguments that the policy gives there,
    and of those that its tool lacks.
    """
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
