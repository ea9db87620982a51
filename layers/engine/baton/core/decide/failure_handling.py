"""What is done about an attempt that failed, as events; or nothing, and the step has failed.

Failover policies and the ladder (core/failures/) choose the events. Where the saga goes on from a step that has failed
is in transitions.py. This file and the strategies are loaded with the first failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from baton.core.decide.child_rules import cause_of, entry_of_child
from baton.core.decide.context import EvaluationContext
from baton.core.decide.transitions import caught, is_handled
from baton.core.decide.unknown_outcomes import looks_first
from baton.core.expressions import ExpressionError
from baton.core.failures import quoted
from baton.core.failures.codes import PERMANENT, class_of, told
from baton.core.failures.defects import DEFECTS, INPUT_INVALID
from baton.core.failures.failover import Context, Policy, first_match
from baton.core.failures.policy import ASK, Change, PolicyEntry, Rules
from baton.core.failures.retry import draw
from baton.core.failures.strategies.base import STARTER, SUGGEST, Situation, Strategy
from baton.core.failures.strategies.ladder import entry_of, is_said, merge, next_step, severity_of
from baton.core.failures.strategies.registry import LOOK, STRATEGIES, of
from baton.core.graph.graph import Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.answers import ACTIONS, GIVE_UP, TRY_AGAIN, is_for_a_person
from baton.core.log.records import Escalation
from baton.core.log.state import UNKNOWN_OUTCOME, Failing, item_of, node_of, owner_of
from baton.core.log.undos import is_undo
from baton.core.sizes import excess_of

# Bytes of what a policy puts in place of arguments: the state holds it until the step is done.
MOST_ARGUMENTS = 32_768
LONGEST_TOLD = 2_000


def handle_failure(
    context: EvaluationContext, failing: Failing, now: int, retry_after_ms: int | None = None, above: str = ""
) -> Iterator[ev.Event]:
    """The events that handle `failing.failure`; none when the step fails for good.

    `context` is that of the step, `failing` what was tried for it until now; `above`: only strategies that come after
    this one, which did not help. Raises `LackingError`.
    """
    name, iteration = node_of(context.slot)
    node = context.program.node_at(context.state, context.slot)
    failure = failing.failure
    class_ = failure.kind or class_of(failure.code)
    code = failure.code
    is_bug = is_defect(context, node, failure)
    if node.workflow:
        entry = entry_of_child(failure, node.failures)
        code, _ = cause_of(failure, node.failures)
    else:
        entry = _entry(context, node, failure, class_, is_bug=is_bug)
    policy: Policy | None = None
    arguments: dict[str, Any] = {}
    broken: tuple[str, ...] = ()
    if above:
        entry = _above(entry, above)
    else:
        policy, arguments, broken = _policy(context, node, failing, class_, entry.kind, names=is_bug)
    at = Situation(
        entry=entry,
        history=failing.history,
        code=code,
        now=now,
        retry_after_ms=retry_after_ms,
        draw=draw(context.state.origin.saga, context.slot, failing.attempts),
        ways=node.ways,
        may_suggest=node.replan is not None,
    )
    step = None if policy is None else of(policy.then.strategy).by_policy(at, policy)
    if policy is not None and step is None:
        broken = (*broken, f"{policy.name}: used up")
        policy, arguments = None, {}
    step = step or next_step(at)
    may_have_acted = failure.doubt or (not above and looks_first(context.state, context.slot, failing, node))
    if may_have_acted and not of(step.strategy).repeats:
        # Whatever is done about it, first it has to be known whether it has happened.
        step, policy, arguments = LOOK.before(step), None, {}
    strategy = of(step.strategy)
    if strategy.ends or (strategy.parks and is_undo(context.slot) and not is_bug):
        return  # a saga that undoes what it has done is not parked for the business of one of its steps
    message = (policy.message if policy is not None else "") or entry.message
    ask = _ask(context, strategy, entry, failing, message, now) if strategy.asks else None
    if step.way is not None or arguments:
        from baton.core.decide.other_ways import changed  # few steps have another way

        yield from changed(context, failing, now, arguments, step.way)
    yield ev.StrategyChosen(
        node=name,
        iteration=iteration,
        item=item_of(context.slot),
        strategy=step.strategy,
        code=failure.code,
        at=now,
        due_at=max(now + step.delay_ms, _earliest(failure, now, is_look=step.look))
        if strategy.repeats
        else 0,
        hooks=tuple(node.hooks[hook] for hook in step.hooks if hook in node.hooks),
        hint=step.hint,
        way=step.way,
        arguments=arguments,
        policy="" if policy is None else policy.name,
        why=(*broken, *step.why),
        ask=ask,
        severity=entry.severity if strategy.parks else "",
        look=step.look,
        message="" if policy is None else policy.message[:LONGEST_TOLD],
        build=context.program.build if is_bug and strategy.parks else "",
    )
    if step.hint == SUGGEST and node.replan is not None:
        yield ev.ReplanBegan(node=name, iteration=iteration, until=now + node.replan.within_ms)
    if ask is None:
        if policy is not None and policy.message:
            yield ev.NoticeDue(notice=_told(context, policy, failing, now))
        return
    # The incident of a defect that other code has not mended is open already.
    if not (is_bug and strategy.parks and failing.incident == failure.code):
        yield ev.NoticeDue(notice=_notice(context, strategy, entry, ask, failure, now))
    if strategy.parks:
        since, build = (now, context.program.build) if is_bug else (0, "")
        yield ev.Parked(code=strategy.parks, message=ask.message, node=name, at=since, build=build)


def _entry(
    context: EvaluationContext, node: Node, failure: ev.Failure, class_: str, *, is_bug: bool
) -> PolicyEntry:
    """The entry of the matrix for a step's failure, with the rules of the document and of the node."""
    in_doubt, origin = failure.code == UNKNOWN_OUTCOME, context.state.origin
    of_graph = () if is_undo(context.slot) and not in_doubt else (context.program.graph.failures,)
    if is_bug:
        takes = _names(context, failure)
    else:
        takes = not in_doubt and (origin.handled or is_handled(context, failure))
    rules = _rules(failure.code, *of_graph, node.failures)
    last = ASK if in_doubt else origin.last or ASK
    return entry_of(
        failure.code,
        class_,
        node.domain,
        rules,
        is_handled=takes,
        last=last,
        is_defect=is_bug,
        on_purpose=failure.on_purpose,
    )


def is_defect(context: EvaluationContext, node: Node, failure: ev.Failure) -> bool:
    """Tell whether a failure says that code is wrong, and neither a map tolerates it nor a model is to correct it."""
    program, slot = context.program, context.slot
    if failure.code not in DEFECTS or node.workflow or failure.on_purpose:
        return False
    if is_undo(slot):
        work = context.state.undo.work
        # Where a step is in doubt it is its own failure, and not that of what undoes it.
        return work is not None and slot in work.steps and not work.steps[slot].doubt
    if program.is_one_of_many(slot):
        whole = program.nodes[node_of(slot)[0]]
        return not program.kinds[whole.kind].tolerates(whole, context.state.open[owner_of(slot)])
    # The arguments of such a call are a model's.
    return not (program.keeps_failure(slot) and failure.code == INPUT_INVALID)


def _names(context: EvaluationContext, failure: ev.Failure) -> bool:
    """Tell whether a `catch` that names the code of a defect takes it. Raises `LackingError`."""
    program = context.program
    if is_undo(context.slot):
        return False
    if program.keeps_failure(context.slot) and not program.is_one_of_many(context.slot):
        return False  # a model is told, and not its agent's `catch`
    slot = owner_of(context.slot)
    number = caught(replace(context, slot=slot), failure)
    return number is not None and failure.code in program.nodes[node_of(slot)[0]].catch[number].codes


def stays(context: EvaluationContext, failure: ev.Failure) -> bool:
    """Whether the rules of the document let the saga end with this failure, and undo nothing: their ladder has no `rollback`."""
    node = context.program.node_at(context.state, context.slot)
    class_ = failure.kind or class_of(failure.code)
    if node.workflow:
        entry = entry_of_child(failure, node.failures)
        code, kind = cause_of(failure, node.failures)
        return is_said(code, kind, (node.failures,)) and not any(of(name).undoes for name in entry.ladder)
    levels = _rules(failure.code, context.program.graph.failures, node.failures)
    entry = entry_of(failure.code, class_, node.domain, levels)
    return is_said(failure.code, class_, levels) and not any(of(name).undoes for name in entry.ladder)


def goes_another_way(context: EvaluationContext, failing: Failing) -> bool:
    """Whether a failover policy fits that calls something else, or with other arguments. Raises `LackingError`."""
    node = context.program.node_at(context.state, context.slot)
    policy, _, _ = _policy(context, node, failing, class_of(failing.failure.code))
    then = None if policy is None else policy.then
    return then is not None and bool(then.tool or then.hint or then.arguments)


def _above(entry: PolicyEntry, name: str) -> PolicyEntry:
    """With the strategies alone that come after one that has led to nothing, and nothing is repeated."""
    # Where a policy has asked and the ladder would not, the order is the usual one.
    order = entry.ladder if name in entry.ladder else (*STRATEGIES,)
    passed = order[: order.index(name) + 1] if name in order else ()
    left = tuple(one for one in entry.ladder if one not in passed)
    at_most = {one.name: 0 for one in STRATEGIES.values() if one.repeats}
    return merge(entry, Change(ladder=left, at_most=at_most))


def _rules(code: str, *levels: Rules) -> tuple[Rules, ...]:
    """The author's rules. For an unknown outcome only the rules for that very code apply."""
    if code != UNKNOWN_OUTCOME:
        return levels
    return tuple({name: change for name, change in level.items() if name == code} for level in levels)


def _earliest(failure: ev.Failure, now: int, *, is_look: bool) -> int:
    """When `verify` looks at the earliest whether it has happened: a call that was cut off may still complete."""
    return now + Limits().effect_grace_ms if (failure.doubt or is_look) and failure.code == "timeout" else now


def _policy(
    context: EvaluationContext,
    node: Node,
    failing: Failing,
    class_: str,
    kind: str = "",
    *,
    names: bool = False,
) -> tuple[Policy | None, dict[str, Any], tuple[str, ...]]:
    """The failover policy that fits, with what it puts in place of arguments; and what broke in those that do not.

    One whose condition or `with` breaks does not fit: a policy must not hide the failure that it is about. Nor does one for
    all failures that tries again what is permanent; `kind`: the class that rules have made of `class_`. `names`: only those that
    name its code.
    """
    rest = context.program.failover.get(node.name, ())
    if rest and (kind or class_) == PERMANENT:
        rest = tuple(one for one in rest if one[0].when.is_named or not of(one[0].then.strategy).repeats)
    if names:
        rest = tuple(one for one in rest if failing.failure.code in one[0].when.codes)
    is_part = context.program.keeps_failure(context.slot) and not context.program.is_one_of_many(context.slot)
    if not rest or is_part:
        return None, {}, ()
    about, blamed = _about(context, node, failing, class_), context.blaming(failing.failure)
    broken: list[str] = []
    while rest:
        found = first_match([policy for policy, _ in rest], about, used=failing.policies, judge=blamed.holds)
        broken += (quoted(f"{name}: {why}", 500) for name, why in found.broken.items())
        if found.policy is None:
            break
        index = next(index for index, (policy, _) in enumerate(rest) if policy is found.policy)
        arguments: dict[str, Any] = {}
        try:
            arguments = blamed.render(rest[index][1])
            excess = excess_of(arguments, MOST_ARGUMENTS)
        except ExpressionError as error:
            excess = str(error)
        if not excess:
            return found.policy, arguments, tuple(broken)
        broken.append(quoted(f"{found.policy.name}: with: {excess}", 500))
        rest = rest[index + 1 :]
    return None, {}, tuple(broken)


def _about(context: EvaluationContext, node: Node, failing: Failing, class_: str) -> Context:
    failure = failing.failure
    given = context.render(context.program.template(context.slot))
    return Context(
        node=node.name,
        tool=failure.tool or node.tool,
        domain=node.domain,
        code=failure.code,
        kind=class_,
        status=failure.status,
        attempt=failing.attempts,
        at=failure.at,
        parameters={**given, **failing.arguments},
        message=failure.message,
    )


def _ask(
    context: EvaluationContext,
    strategy: Strategy,
    entry: PolicyEntry,
    failing: Failing,
    message: str,
    now: int,
) -> ev.Ask:
    failure = failing.failure
    own = severity_of(failure.code, failure.kind)
    return ev.Ask(
        id=f"{context.state.lineage.branch}.{context.slot}.{failing.attempts}{strategy.suffix}",
        kind=entry.question,
        message=f"{message or told(failure.code).says} ({failure.code}: {failure.message})"[:LONGEST_TOLD],
        options=tuple(ACTIONS),
        expires_at=now + waits if (waits := strategy.waits_ms(entry)) else 0,
        severity="" if entry.severity == own else entry.severity,
        to="" if strategy.asks == STARTER else strategy.asks,
        may_change=entry.may_change,
        asked_at=now,
        # An incident waits until an operator decides: nothing happens to it by itself.
        escalate=_escalation(entry, failure.code, now) if entry.escalate and strategy.lasts_ms else (),
    )


def _escalation(entry: PolicyEntry, code: str, now: int) -> tuple[Escalation, ...]:
    from baton.core.log.escalation import steps_of  # few rules have one

    steps = steps_of(entry.escalate, now)
    # A rule for many failures may be about one of those after which only a person can say that it is tried again.
    is_given = steps[-1].decide == TRY_AGAIN and is_for_a_person(entry.question, code)
    return (*steps[:-1], replace(steps[-1], decide=GIVE_UP)) if is_given else steps


def _told(context: EvaluationContext, policy: Policy, failing: Failing, now: int) -> ev.Notice:
    """What the saga's user is told of a policy that asks no person."""
    state, failure = context.state, failing.failure
    return ev.Notice(
        key=f"{state.origin.saga}/{state.lineage.branch}.{context.slot}.{failing.attempts}.policy",
        to=STARTER,
        code=failure.code,
        message=policy.message[:LONGEST_TOLD],
        severity=severity_of(failure.code, failure.kind),
        node=node_of(context.slot)[0],
        at=now,
    )


def _notice(
    context: EvaluationContext,
    strategy: Strategy,
    entry: PolicyEntry,
    ask: ev.Ask,
    failure: ev.Failure,
    now: int,
) -> ev.Notice:
    return ev.Notice(
        key=f"{context.state.origin.saga}/{ask.id}",
        to=strategy.asks,
        code=failure.code,
        message=ask.message,
        severity=entry.severity,
        node=node_of(context.slot)[0],
        at=now,
        incident=bool(strategy.parks),
        ask=ask.id,
    )
