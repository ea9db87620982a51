"""What is done about an attempt that failed, as events; or nothing, and the step has failed.

Belongs here: from a failure to the events that say what follows, by failover policies and the ladder
(core/failures/). Does not belong here: where it goes on from a step that has failed (transitions.py). This file and the
strategies are loaded with the first failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baton.core.decide.context import Scope
from baton.core.decide.transitions import is_handled
from baton.core.expressions import ExpressionError
from baton.core.failures import quoted
from baton.core.failures.codes import kind_of, told
from baton.core.failures.failover import Context, Policy, first_match
from baton.core.failures.policy import ASK, Change, PolicyEntry, Rules
from baton.core.failures.retry import draw
from baton.core.failures.strategies.base import STARTER, Situation, Strategy
from baton.core.failures.strategies.ladder import entry_of, merge, next_step, severity_of
from baton.core.failures.strategies.registry import LOOK, STRATEGIES, of
from baton.core.graph.graph import Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.answers import ACTIONS
from baton.core.log.state import UNKNOWN_OUTCOME, Failing, item_of, node_of
from baton.core.sizes import excess_of

# Bytes of what a policy puts in place of arguments: the state holds it until the step is done.
MOST_ARGUMENTS = 32_768


def handle_failure(
    scope: Scope, failing: Failing, now: int, retry_after_ms: int | None = None, above: str = ""
) -> Iterator[ev.Event]:
    """What is done about `failing.failure`; nothing when it is the step's last word.

    `scope` is that of the step, `failing` what was tried for it until now; `above`: only strategies that come after
    this one, which has led to nothing. Raises `LackingError`.
    """
    name, iteration = node_of(scope.slot)
    node = scope.program.nodes[name]
    failure = failing.failure
    kind = failure.kind or kind_of(failure.code)
    graph, in_doubt = scope.program.graph, failure.code == UNKNOWN_OUTCOME
    entry = entry_of(
        failure.code,
        kind,
        node.domain,
        _rules(failure.code, graph.failures, node.failures),
        is_handled=not in_doubt and (scope.state.origin.handled or is_handled(scope, failure)),
        last=ASK if in_doubt else scope.state.origin.last or ASK,
    )
    policy: Policy | None = None
    arguments: dict[str, Any] = {}
    broken: tuple[str, ...] = ()
    if above:
        entry = _above(entry, above)
    else:
        policy, arguments, broken = _policy(scope, node, failing, kind)
    at = Situation(
        entry=entry,
        history=failing.history,
        code=failure.code,
        now=now,
        retry_after_ms=retry_after_ms,
        draw=draw(scope.state.origin.saga, scope.slot, failing.attempts),
        ways=node.ways,
    )
    step = None if policy is None else of(policy.then.strategy).by_policy(at, policy)
    if policy is not None and step is None:
        broken = (*broken, f"{policy.name}: used up")
        policy, arguments = None, {}
    step = step or next_step(at)
    if failure.doubt and not of(step.strategy).repeats:
        # Whatever is done about it, first it has to be known whether it has happened.
        step, policy, arguments = LOOK.before(step), None, {}
    strategy = of(step.strategy)
    if strategy.ends:
        return
    message = (policy.message if policy is not None else "") or entry.message
    ask = _ask(scope, strategy, entry, failing, message, now) if strategy.asks else None
    yield ev.StrategyChosen(
        node=name,
        iteration=iteration,
        item=item_of(scope.slot),
        strategy=step.strategy,
        code=failure.code,
        at=now,
        due_at=max(now + step.delay_ms, _earliest(failure, now)) if strategy.repeats else 0,
        hooks=tuple(node.hooks[hook] for hook in step.hooks if hook in node.hooks),
        hint=step.hint,
        way=step.way,
        arguments=arguments,
        policy="" if policy is None else policy.name,
        why=(*broken, *step.why),
        ask=ask,
        severity=entry.severity if strategy.parks else "",
        look=step.look,
    )
    if ask is None:
        return
    yield ev.NoticeDue(notice=_notice(scope, strategy, entry, ask, failure, now))
    if strategy.parks:
        yield ev.Parked(code=strategy.parks, message=ask.message, node=name)


def _above(entry: PolicyEntry, name: str) -> PolicyEntry:
    """With the strategies alone that come after one that has led to nothing, and nothing is repeated."""
    # Where a policy has asked and the ladder would not, the order is the usual one.
    order = entry.ladder if name in entry.ladder else (*STRATEGIES,)
    passed = order[: order.index(name) + 1] if name in order else ()
    left = tuple(one for one in entry.ladder if one not in passed)
    at_most = {one.name: 0 for one in STRATEGIES.values() if one.repeats}
    return merge(entry, Change(ladder=left, at_most=at_most))


def _rules(code: str, *levels: Rules) -> tuple[Rules, ...]:
    """What the author says. Of an effect in doubt only what is said of just that: it is no failure like others."""
    if code != UNKNOWN_OUTCOME:
        return levels
    return tuple({name: change for name, change in level.items() if name == code} for level in levels)


def _earliest(failure: ev.Failure, now: int) -> int:
    """Before then nobody looks whether it has happened: what was cut off in the middle may still come to its end."""
    return now + Limits().effect_grace_ms if failure.doubt and failure.code == "timeout" else now


def _policy(
    scope: Scope, node: Node, failing: Failing, kind: str
) -> tuple[Policy | None, dict[str, Any], tuple[str, ...]]:
    """The failover policy that fits, with what it puts in place of arguments; and what broke in those that do not.

    One whose condition or `with` breaks does not fit: a policy must not hide the failure that it is about.
    """
    rest = scope.program.failover[node.name]
    if not rest:
        return None, {}, ()
    context, blamed = _context(scope, node, failing, kind), scope.blaming(failing.failure)
    broken: list[str] = []
    while rest:
        found = first_match(
            [policy for policy, _ in rest], context, used=failing.policies, judge=blamed.holds
        )
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


def _context(scope: Scope, node: Node, failing: Failing, kind: str) -> Context:
    failure = failing.failure
    given = scope.render(scope.program.arguments[node.name])
    return Context(
        node=node.name,
        tool=failure.tool or node.tool,
        domain=node.domain,
        code=failure.code,
        kind=kind,
        status=failure.status,
        attempt=failing.attempts,
        at=failure.at,
        parameters={**given, **failing.arguments},
        message=failure.message,
    )


def _ask(
    scope: Scope, strategy: Strategy, entry: PolicyEntry, failing: Failing, message: str, now: int
) -> ev.Ask:
    failure = failing.failure
    own = severity_of(failure.code, failure.kind)
    return ev.Ask(
        id=f"{scope.state.lineage.branch}.{scope.slot}.{failing.attempts}{strategy.suffix}",
        kind=entry.question,
        message=f"{message or told(failure.code).says} ({failure.code}: {failure.message})"[:2_000],
        options=tuple(ACTIONS),
        expires_at=now + strategy.lasts_ms if strategy.lasts_ms else 0,
        severity="" if entry.severity == own else entry.severity,
        to="" if strategy.asks == STARTER else strategy.asks,
        may_change=entry.may_change,
    )


def _notice(
    scope: Scope, strategy: Strategy, entry: PolicyEntry, ask: ev.Ask, failure: ev.Failure, now: int
) -> ev.Notice:
    return ev.Notice(
        key=f"{scope.state.origin.saga}/{ask.id}",
        to=strategy.asks,
        code=failure.code,
        message=ask.message,
        severity=entry.severity,
        node=node_of(scope.slot)[0],
        at=now,
        incident=bool(strategy.parks),
    )
