"""The reaction to a failed attempt, as events; none if the step has failed for good.

Failover policies and the ladder (core/failures/) choose the events. The way on from a failed step is in
transitions.py.
This file and the strategies are loaded with the first failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from baton.core.decide.context import EvaluationContext
from baton.core.decide.decision import DecisionBuilder
from baton.core.decide.transitions import catching_rule, is_handled, settle_failed
from baton.core.decide.unknown_outcomes import (
    child_link,
    has_effects,
    leaves_unknown,
    left_call_notice,
    link,
    looks_first,
    may_have_acted,
)
from baton.core.expressions import ExpressionError, excess_of, iso
from baton.core.failures import quoted
from baton.core.failures.alternatives import Alternative
from baton.core.failures.breakers import BREAKER_OPEN
from baton.core.failures.codes import DEFECTS, INPUT_INVALID, PERMANENT, advice_for, class_of
from baton.core.failures.failover import Context, Policy, first_match
from baton.core.failures.matrix import DEFAULTS, RETRY
from baton.core.failures.policy import ASK, PRESETS, PolicyChange, PolicyEntry, Rules, draw_jitter
from baton.core.failures.strategies.base import STARTER, SUGGEST, FailureContext, Strategy
from baton.core.failures.strategies.ladder import (
    completed,
    entry_of,
    is_said,
    laid_over,
    merge,
    next_step,
    severity_of,
)
from baton.core.failures.strategies.registry import LOOK, STRATEGIES, of
from baton.core.graph.graph import FUNCTION, Node
from baton.core.limits import ON, USUAL, Limits
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import used_up
from baton.core.log.questions import ACTIONS, GIVE_UP, TRY_AGAIN, is_for_a_person, tool_asked_about
from baton.core.log.records import Escalation, Failure
from baton.core.log.slots import Slot, owner_of
from baton.core.log.state import UNKNOWN_OUTCOME, Failing, Held
from baton.core.nodes.base import Activation


def cause_of(failure: Failure) -> tuple[str, str]:
    """Return the code and the class of the child's own failure, by which rules are looked up."""
    first = failure.errors[0] if failure.errors else failure
    return first.code, first.kind or class_of(first.code)


def entry_of_child(failure: Failure, rules: Rules, limits: Limits = USUAL) -> PolicyEntry:
    """Return the policy of a child's failure.

    Without a rule there is no reaction: the child has done its best.
    """
    code, kind = cause_of(failure)
    ladder = (RETRY,) if RETRY in DEFAULTS[kind].ladder else ()
    entry = PolicyEntry(kind=kind, ladder=ladder, policy=PRESETS["none"])
    return completed(laid_over(entry, code, kind, (rules,)), limits)


# Bytes of what a policy puts in place of arguments: the state holds it until the step is done.
MOST_ARGUMENTS = 32_768
LONGEST_TOLD = 2_000


def handle_failure(
    context: EvaluationContext, failing: Failing, now: int, retry_after_ms: int | None = None, above: str = ""
) -> Iterator[ev.Event]:
    """Yield the events that handle `failing.failure`; none if the step fails for good.

    `context` is that of the step, `failing` its reactions until now; `above`: only strategies after this one,
    which did not help. Raises `LackingError`.
    """
    place = Slot.parse(context.slot)
    node = context.program.node_at(context.state, context.slot)
    failure = failing.failure
    class_ = failure.kind or class_of(failure.code)
    code = failure.code
    is_bug = is_defect(context, node, failure)
    if node.workflow:
        entry = entry_of_child(failure, node.failures, context.program.limits)
        code, _ = cause_of(failure)
    else:
        entry = _entry(context, node, failure, class_, is_bug=is_bug)
    policy: Policy | None = None
    arguments: dict[str, Any] = {}
    broken: tuple[str, ...] = ()
    if above:
        entry = _above(entry, above)
    else:
        policy, arguments, broken = _policy(context, node, failing, class_, entry.kind, names=is_bug)
    at = FailureContext(
        entry=entry,
        history=failing.history,
        code=code,
        now=now,
        retry_after_ms=retry_after_ms,
        draw=draw_jitter(context.state.origin.saga, context.slot, failing.attempts),
        alternatives=node.ways,
        may_suggest=node.replan is not None and context.program.limits.model_replanning == ON,
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
    if strategy.ends or (strategy.parks and place.scope and not is_bug):
        return  # a saga that stops is not parked for the business of one of its last steps
    message = (policy.message if policy is not None else "") or entry.message
    ask = _ask(context, strategy, entry, failing, message, now) if strategy.asks else None
    if step.way is not None or arguments:
        yield from with_changed_arguments(context, failing, now, arguments, step.way)
    yield ev.StrategyChosen(
        **place.fields,
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
        yield ev.ReplanBegan(node=place.node, iteration=place.iteration, until=now + node.replan.within_ms)
    if ask is None:
        if policy is not None and policy.message:
            yield ev.NoticeDue(notice=_told(context, policy, failing, now))
        return
    # The incident of a defect that other code has not mended is open already.
    if not (is_bug and strategy.parks and failing.incident == failure.code):
        yield ev.NoticeDue(notice=_notice(context, strategy, entry, ask, failure, now))
    if strategy.parks:
        since, build = (now, context.program.build) if is_bug else (0, "")
        yield ev.Parked(code=strategy.parks, message=ask.message, node=place.node, at=since, build=build)


def without_retry(
    context: EvaluationContext, failing: Failing, events: Sequence[ev.Event]
) -> tuple[Failing, list[ev.Event]] | None:
    """Return the failing step and its reaction in place of `events`, if they are a retry that a limit of
    retries does not allow; None if it may be tried again. Raises `LackingError`.

    The step fails with the limit. An attempt that may have acted stays one. An inverse is in no limit.
    """
    chosen = next((event for event in events if isinstance(event, ev.StrategyChosen)), None)
    program, place = context.program, Slot.parse(context.slot)
    if chosen is None or not chosen.due_at or chosen.look or place.scope:
        return None
    pause, node = max(chosen.due_at - chosen.at, 0), program.nodes[place.node]
    if (over := used_up(context.state, program.graph, node, program.limits, pause)) is None:
        return None
    (code, why), failure = over, failing.failure
    acted = failing.acted or may_have_acted(program.node_at(context.state, context.slot), failure)
    message = quoted(f"{why}; it failed with {failure.code}: {failure.message}", LONGEST_TOLD)
    last = replace(failure, code=code, kind=PERMANENT, message=message, on_purpose=False)
    failing = replace(failing, failure=last, acted=acted)
    return failing, list(handle_failure(context, failing, chosen.at, above=RETRY))


def _entry(
    context: EvaluationContext, node: Node, failure: ev.Failure, class_: str, *, is_bug: bool
) -> PolicyEntry:
    """Return the entry of the matrix for a step's failure, with the rules of the document and of the node."""
    in_doubt, origin = failure.code == UNKNOWN_OUTCOME, context.state.origin
    of_graph = () if Slot.parse(context.slot).scope and not in_doubt else (context.program.graph.failures,)
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
        limits=context.program.limits,
        is_inverse=bool(Slot.parse(context.slot).scope),
    )


def is_defect(context: EvaluationContext, node: Node, failure: ev.Failure) -> bool:
    """Return true if a failure is a defect of code that no map tolerates and no model can correct."""
    program, slot = context.program, context.slot
    if failure.code not in DEFECTS or node.workflow or failure.on_purpose:
        return False
    if Slot.parse(slot).scope:
        return True
    if program.is_one_of_many(slot):
        whole = program.nodes[Slot.parse(slot).node]
        return not program.kinds[whole.kind].tolerates(whole, context.state.open[owner_of(slot)])
    # The arguments of such a call are a model's, but for those that a function gives.
    is_of_model = program.keeps_failure(slot) and node.kind != FUNCTION
    return not (is_of_model and failure.code == INPUT_INVALID)


def _names(context: EvaluationContext, failure: ev.Failure) -> bool:
    """Return true if a `catch` that names the code of a defect takes it. Raises `LackingError`."""
    program = context.program
    if Slot.parse(context.slot).scope:
        return False
    if program.keeps_failure(context.slot) and not program.is_one_of_many(context.slot):
        return False  # a model is told, and not its agent's `catch`
    slot = owner_of(context.slot)
    number = catching_rule(replace(context, slot=slot), failure)
    return number is not None and failure.code in program.nodes[Slot.parse(slot).node].catch[number].codes


def final(context: EvaluationContext, failed: ev.StepFailed) -> ev.StepFailed:
    """Return the final failure of a step. If a rule lets the saga end with it and keep its effects, it
    `stays`.

    That is told of a failure that is not caught, in a saga with effects or with a child that may have some.
    """
    goes_on = failed.is_result or any(token.alive for token in failed.emits)
    may_revert = failed.prior is not None or has_effects(context.state, context.slot)
    if goes_on or not may_revert or not _keeps_effects(context, failed.failure):
        return failed
    return replace(failed, stays=True)


def _keeps_effects(context: EvaluationContext, failure: ev.Failure) -> bool:
    """Return true if the rules of the document let the saga end with this failure and keep its effects: no
    strategy of their ladder reverts them.
    """
    node = context.program.node_at(context.state, context.slot)
    class_ = failure.kind or class_of(failure.code)
    if node.workflow:
        entry = entry_of_child(failure, node.failures)
        code, kind = cause_of(failure)
        return is_said(code, kind, (node.failures,)) and not any(of(name).reverts for name in entry.ladder)
    levels = _rules(failure.code, context.program.graph.failures, node.failures)
    entry = entry_of(failure.code, class_, node.domain, levels)
    return is_said(failure.code, class_, levels) and not any(of(name).reverts for name in entry.ladder)


def goes_another_way(context: EvaluationContext, failing: Failing) -> bool:
    """Return true if a failover policy fits that calls another tool, or with other arguments.

    Raises `LackingError`.
    """
    node = context.program.node_at(context.state, context.slot)
    policy, _, _ = _policy(context, node, failing, class_of(failing.failure.code))
    then = None if policy is None else policy.then
    return then is not None and bool(then.tool or then.hint or then.arguments)


def _above(entry: PolicyEntry, name: str) -> PolicyEntry:
    """Return the entry with only the strategies after one that has failed, and no repetition."""
    # Where a policy has asked and the ladder would not, the order is the usual one.
    order = entry.ladder if name in entry.ladder else (*STRATEGIES,)
    passed = order[: order.index(name) + 1] if name in order else ()
    left = tuple(one for one in entry.ladder if one not in passed)
    at_most = {one.name: 0 for one in STRATEGIES.values() if one.repeats}
    return merge(entry, PolicyChange(ladder=left, at_most=at_most))


def _rules(code: str, *levels: Rules) -> tuple[Rules, ...]:
    """Return the author's rules. For an unknown outcome only the rules for that very code apply."""
    if code != UNKNOWN_OUTCOME:
        return levels
    return tuple({name: change for name, change in level.items() if name == code} for level in levels)


def _earliest(failure: ev.Failure, now: int, *, is_look: bool) -> int:
    """Return the earliest time at which `verify` checks the outcome: a call that was cut off may still
    complete.
    """
    return now + USUAL.effect_grace_ms if (failure.doubt or is_look) and failure.code == "timeout" else now


def _policy(
    context: EvaluationContext,
    node: Node,
    failing: Failing,
    class_: str,
    kind: str = "",
    *,
    names: bool = False,
) -> tuple[Policy | None, dict[str, Any], tuple[str, ...]]:
    """Return the failover policy that fits, with its arguments; and the faults of those that do not.

    A policy whose condition or `with` breaks does not fit: it must not hide the failure that it is about.
    Nor does a policy for all failures that retries a permanent one; `kind`: the class that rules have made of
    `class_`.
    `names`: only policies that name its code.
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
        message=f"{message or advice_for(failure.code).says} ({failure.code}: {failure.message})"[
            :LONGEST_TOLD
        ],
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
    from baton.core.log.questions import steps_of  # few rules have one

    steps = steps_of(entry.escalate, now)
    # A rule for many failures may be about one of those after which only a person can say that it is tried again.
    is_given = steps[-1].decide == TRY_AGAIN and is_for_a_person(entry.question, code)
    return (*steps[:-1], replace(steps[-1], decide=GIVE_UP)) if is_given else steps


def _told(context: EvaluationContext, policy: Policy, failing: Failing, now: int) -> ev.Notice:
    """Return the notice to the saga's user about a policy that asks no person."""
    state, failure = context.state, failing.failure
    return ev.Notice(
        key=f"{state.origin.saga}/{state.lineage.branch}.{context.slot}.{failing.attempts}.policy",
        to=STARTER,
        code=failure.code,
        message=policy.message[:LONGEST_TOLD],
        severity=severity_of(failure.code, failure.kind),
        node=Slot.parse(context.slot).node,
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
        node=Slot.parse(context.slot).node,
        at=now,
        incident=bool(strategy.parks),
        ask=ask.id,
    )


def handle(builder: DecisionBuilder, at: Activation, failure: ev.Failure) -> None:
    """Note the reaction to a failure. Raises `LackingError`."""
    before = builder.state.failing.get(at.slot)
    attempts = 1 if before is None else before.attempts + 1
    failure = replace(failure, kind=failure.kind or class_of(failure.code), attempt=attempts, at=builder.now)
    failing = replace(
        before or Failing(attempts=0, failure=failure), attempts=attempts, failure=failure, ask=None
    )
    context = builder.context(at.slot)
    events = list(handle_failure(context, failing, builder.now))
    if (last := without_retry(context, failing, events)) is not None:
        failing, events = last
        failure = failing.failure
    ran: dict[str, Any] = {
        **at.place.fields,
        "attempt": attempts,
        "failure": failure,
        "started_at": builder.now,
        "ended_at": builder.now,
        "tool": "",
        "tool_version": "",
        "schema_hash": "",
    }
    left = child_link(builder.program, builder.state, at.slot)
    if events:
        for event in (*([] if left is None else [left]), ev.AttemptFailed(**ran), *events):
            builder.note(event)
        return
    failed = settle_failed(context, failure).on(ev.StepFailed(**ran))
    if left is not None and (failed.emits or failed.is_result):  # else the saga stops, and asks the child
        builder.note(left)
    builder.note(final(context, failed))


def may_wait_for_breaker(context: EvaluationContext, attempt: int, held: Held) -> bool:
    """Return true if the step waits, false if the document goes another way at once. Raises `LackingError`.

    A member of the saga's own scope has no other way. A step has one if its rules or `catch` name the code
    `breaker_open`, or a failover policy fits that makes another call.
    """
    name = Slot.parse(context.slot).node
    return bool(Slot.parse(context.slot).scope) or not _has_another_way(context, attempt, held, name)


def breaker_failure(held: Held, node: str) -> ev.Failure:
    """Return the failure of the step in place of the wait."""
    text = f"the breaker `{held.breaker}` is {held.state.replace('_', '-')}; the step asks again at {iso(held.until)}"
    return ev.Failure(BREAKER_OPEN, text, node)


def _has_another_way(context: EvaluationContext, attempt: int, held: Held, name: str) -> bool:
    program, node = context.program, context.program.node_at(context.state, context.slot)
    if BREAKER_OPEN in node.failures or BREAKER_OPEN in program.graph.failures:
        return True
    if any(BREAKER_OPEN in rule.codes for rule in program.nodes[name].catch):
        return True
    if not program.failover.get(node.name):
        return False
    before = context.state.failing.get(context.slot)
    failure = breaker_failure(held, name)
    failing = Failing(
        attempts=attempt,
        failure=failure,
        policies={} if before is None else before.policies,
        arguments={} if before is None else before.arguments,
    )
    return goes_another_way(context, failing)


def with_changed_arguments(
    context: EvaluationContext,
    failing: Failing,
    now: int,
    arguments: Mapping[str, Any],
    way: Alternative | None = None,
) -> Iterator[ev.Event]:
    """Yield the events of `notices_of_left_call` for other arguments or another way; none if the next call is
    the same.

    Raises `LackingError`.
    """
    node = context.program.node_at(context.state, context.slot)
    after = replace(failing, way=way or failing.way, arguments={**failing.arguments, **arguments})
    instead = tool_asked_about(node, after)
    is_same = instead == tool_asked_about(node, failing) and _named(failing.way) == _named(after.way)
    if not is_same or failing.arguments != after.arguments:
        yield from notices_of_left_call(context, failing, instead, now)


def with_answered_arguments(
    context: EvaluationContext, failing: Failing, now: int, arguments: Mapping[str, Any]
) -> Iterator[ev.Event]:
    """Yield the events of `with_changed_arguments` for a person's arguments. Raises `LackingError`."""
    # A person who has an unknown outcome tried again says that it has not happened.
    if failing.failure.code != UNKNOWN_OUTCOME:
        yield from with_changed_arguments(context, failing, now, arguments)


def notices_of_left_call(
    context: EvaluationContext, failing: Failing, instead: str, now: int
) -> Iterator[ev.Event]:
    """Yield the events before the one with which the step goes on with another call, of the tool `instead`.

    Raises `LackingError`.
    """
    program, state, slot = context.program, context.state, context.slot
    node = program.node_at(state, slot)
    tool = failing.failure.tool or tool_asked_about(node, failing)
    if Slot.parse(slot).scope or failing.left:
        return
    if not failing.acted and not leaves_unknown(node, tool, failing.failure):
        return
    if program.has_reversible:
        yield link(context, tool, failing, instead)
    yield ev.NoticeDue(notice=left_call_notice(state, slot, tool, failing, instead, now))


def _named(way: Alternative | None) -> str:
    """Return the parts of a way by which a call of the same tool becomes another call."""
    return way.name if way is not None and (not way.first or way.arguments) else ""
