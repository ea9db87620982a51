"""What is done about an attempt that failed: retry, replan, ask, escalate; or nothing, and the step has failed.

Belongs here: from a failure to the events that say what follows, by failover policies and the ladder
(core/failures/). Does not belong here: where it goes on from a step that has failed (transitions.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baton.core.decide.context import Scope
from baton.core.decide.transitions import is_handled
from baton.core.expressions import ExpressionError
from baton.core.failures import quoted
from baton.core.failures.alternatives import Alternative, choose
from baton.core.failures.codes import kind_of, told
from baton.core.failures.failover import Context, Policy, first_match
from baton.core.failures.ladder import Bounds, Rung, next_rung
from baton.core.failures.matrix import Rules, cell_of, severity_of
from baton.core.failures.policy import (
    ASK,
    ASK_USER,
    ESCALATE,
    FAIL,
    REPLAN,
    RETRY,
    ROLLBACK,
    STRATEGIES,
    Cell,
    Change,
    merge,
)
from baton.core.failures.retry import draw, pause
from baton.core.graph.graph import Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.answers import ON_CALL
from baton.core.log.state import UNKNOWN_OUTCOME, Failing, node_of
from baton.core.sizes import excess_of

ESCALATED = "escalated"  # what a saga is parked for
LOOK_AFTER_MS = 1_000
# Bytes of what a policy puts in place of arguments: the state holds it until the step is done.
MOST_ARGUMENTS = 32_768
OPTIONS = ("retry", "use", "fail")
POSSIBLE = frozenset({REPLAN, ASK_USER, ROLLBACK, ESCALATE})
BOUNDS = Bounds()


def react(
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
    cell = cell_of(
        failure.code,
        kind,
        node.domain,
        _rules(failure.code, graph.failures, node.failures),
        is_handled=not in_doubt and (scope.state.handled or is_handled(scope, failure)),
        last=ASK if in_doubt else scope.state.last or ASK,
    )
    rung: Rung | None = None
    policy: Policy | None = None
    arguments: dict[str, Any] = {}
    broken: tuple[str, ...] = ()
    if above:
        if above in cell.ladder:
            left = cell.ladder[cell.ladder.index(above) + 1 :]
        else:  # a policy has asked where the ladder would not
            order = list(STRATEGIES)
            left = tuple(one for one in cell.ladder if order.index(one) > order.index(above))
        cell = merge(cell, Change(ladder=left, at_most={RETRY: 0}))
    else:
        policy, arguments, broken = _policy(scope, node, failing, kind)
    if policy is not None:
        rung = _by_policy(scope, policy, cell, failing, now, retry_after_ms)
        if rung is None:
            broken = (*broken, f"{policy.name}: used up")
            policy, arguments = None, {}
    if rung is None:
        rung = _climb(scope, node, cell, failing, now, retry_after_ms)
    if failure.doubt and rung.strategy != RETRY:
        # Whatever is done about it, first it has to be known whether it has happened.
        why = (*broken, *rung.why, f"{rung.strategy}: it may have happened, so somebody looks first")
        yield ev.StrategyChosen(
            node=name,
            iteration=iteration,
            strategy=RETRY,
            code=failure.code,
            at=now,
            due_at=max(now + LOOK_AFTER_MS, _earliest(failure, now)),
            look=True,
            why=why,
        )
        return
    if rung.strategy in {ROLLBACK, FAIL}:
        # Nothing that was done can be undone yet, so to undo it all is to do nothing.
        return
    message = (policy.message if policy is not None else "") or cell.message
    ask = _ask(scope, rung.strategy, cell, failing, message, now)
    yield ev.StrategyChosen(
        node=name,
        iteration=iteration,
        strategy=rung.strategy,
        code=failure.code,
        at=now,
        due_at=max(now + rung.delay_ms, _earliest(failure, now)) if rung.strategy == RETRY else 0,
        hooks=tuple(node.hooks[hook] for hook in rung.hooks if hook in node.hooks),
        hint=rung.hint,
        way=rung.way,
        arguments=arguments,
        policy="" if policy is None else policy.name,
        why=(*broken, *rung.why),
        ask=ask,
        severity=cell.severity if rung.strategy == ESCALATE else "",
    )
    if ask is None:
        return
    yield ev.NoticeDue(notice=_notice(scope, node, rung.strategy, cell, ask, failure, now))
    if rung.strategy == ESCALATE:
        yield ev.Parked(code=ESCALATED, message=ask.message, node=name)


def _rules(code: str, *levels: Rules) -> tuple[Rules, ...]:
    """What the author says. Of an effect in doubt only what is said of just that: it is no failure like others."""
    if code != UNKNOWN_OUTCOME:
        return levels
    return tuple({name: change for name, change in level.items() if name == code} for level in levels)


def _earliest(failure: ev.Failure, now: int) -> int:
    """Before then nobody looks whether it has happened: what was cut off in the middle may still come to its end."""
    return now + Limits().effect_grace_ms if failure.doubt and failure.code == "timeout" else now


def _climb(
    scope: Scope, node: Node, cell: Cell, failing: Failing, now: int, retry_after_ms: int | None
) -> Rung:
    return next_rung(
        cell,
        failing.history,
        code=failing.failure.code,
        now=now,
        retry_after_ms=retry_after_ms,
        draw=draw(scope.state.saga, scope.slot, failing.attempts),
        possible=POSSIBLE,
        ways=node.ways,
        bounds=BOUNDS,
    )


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


def _by_policy(
    scope: Scope, policy: Policy, cell: Cell, failing: Failing, now: int, retry_after_ms: int | None
) -> Rung | None:
    """What a failover policy says; None when there is no pause left for a retry, or no way for a hint."""
    action = policy.then
    if action.strategy == RETRY:
        since = failing.history.since
        delay = pause(
            cell.policy,
            failing.history.retries + 1,
            elapsed_ms=max(0, now - since) if since else 0,
            retry_after_ms=retry_after_ms,
            draw=draw(scope.state.saga, scope.slot, failing.attempts),
        )
        return None if delay is None else Rung(strategy=RETRY, delay_ms=delay)
    if action.strategy != REPLAN:
        return Rung(strategy=action.strategy)
    way = None
    if action.tool:
        way = Alternative(name=f"policy {policy.name}", tool=action.tool)
    elif action.hint:
        ways = scope.program.nodes[node_of(scope.slot)[0]].ways
        way = choose([action.hint], [way for way in ways if way.hints], failing.history.ways)
        if way is None and not action.arguments:
            return None
    return Rung(strategy=REPLAN, hint=action.hint, way=way)


def _ask(scope: Scope, strategy: str, cell: Cell, failing: Failing, message: str, now: int) -> ev.Ask | None:
    if strategy not in {ASK_USER, ESCALATE}:
        return None
    failure = failing.failure
    name = f"{scope.state.branch}.{scope.slot}.{failing.attempts}"
    own = severity_of(failure.code, failure.kind)
    return ev.Ask(
        id=name if strategy == ASK_USER else f"{name}.incident",
        kind=cell.question,
        message=f"{message or told(failure.code).says} ({failure.code}: {failure.message})"[:2_000],
        options=OPTIONS,
        expires_at=now + BOUNDS.question_ms if strategy == ASK_USER else 0,
        severity="" if cell.severity == own else cell.severity,
        to=ON_CALL if strategy == ESCALATE else "",
        may_change=cell.may_change,
    )


def _notice(
    scope: Scope, node: Node, strategy: str, cell: Cell, ask: ev.Ask, failure: ev.Failure, now: int
) -> ev.Notice:
    is_incident = strategy == ESCALATE
    return ev.Notice(
        key=f"{scope.state.saga}/{ask.id}",
        to=ON_CALL if is_incident else "user",
        code=failure.code,
        message=ask.message,
        severity=cell.severity,
        node=node.name,
        at=now,
        incident=is_incident,
    )
