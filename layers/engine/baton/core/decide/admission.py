"""Whether a ready node may begin now, by the limits of its saga and its own.

Limits are counted in core/log/folding/workflow_limits.py. A node that is held here goes on after something that is sure to come: the end
of a running step, of an open child, or of a pause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from baton.core.graph.graph import Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import COUNTED, SAGA, TERMINATE, THROTTLE, Caps, failure_of
from baton.core.log.state import State, Used, node_of, owner_of
from baton.core.nodes.base import CHILD, Activation

if TYPE_CHECKING:
    from baton.core.decide.builder import DecisionBuilder

PAUSE_MS = Limits().throttle_pause_ms
HELD = "held"
_NONE = Used()
_CHILDREN = "/children"


def overtaken(builder: DecisionBuilder, at: Activation) -> ev.Failure | None:
    """Why a node with a `wall_time` that has begun may not go on. Otherwise its time is one of the decision's."""
    since = builder.state.begun.get(at.slot)
    if since is None:
        return None
    until = since + at.node.limits["wall_time"].most
    if builder.now >= until:
        return failure_of("wall_time", at.node.limits["wall_time"], at.node.name, builder.now - since)
    builder.due_by(until)
    return None


def ask(builder: DecisionBuilder, at: Activation) -> ev.Failure | str:
    """Empty: it may begin, or has begun. `HELD`: not now. A failure: never."""
    caps, state = builder.program.caps, builder.state
    assert caps is not None
    kind = builder.program.kinds[at.node.kind]
    if state.has_begun(at.slot):
        return ""
    if "wall_time" in at.node.limits and kind.lasts and at.slot not in state.begun:
        builder.note(ev.NodeBegan(node=at.node.name, iteration=at.iteration, item=at.item, at=builder.now))
        builder.due_by(builder.now + at.node.limits["wall_time"].most)
    is_slow = False
    under_way = _under_way(builder, caps)
    for scope, ahead in ((SAGA, under_way), (at.node.name, 0)):
        for name, cap in caps.of.get(scope, {}).items():
            cost = _declared(at) if name == "cost" and cap.then == TERMINATE else 0
            found = _counted(state, at, scope, name, ahead) + cost
            if cost and found <= cap.most < found + _reserved(builder, scope):
                return HELD  # the others may cost less than they have declared
            if found <= cap.most:
                continue
            if cap.then == TERMINATE:
                return _ended(builder, at, scope, failure_of(name, cap, scope, found), cost)
            if cap.then == THROTTLE:
                is_slow = _is_slow(builder, caps, scope, at.node) or is_slow
    if not kind.load:
        return ""  # a node that does no work takes no place from one that does
    if is_slow or _is_full(builder, caps, at.node):
        return HELD
    _begins(builder, caps, at.node)
    return ""


def _counted(state: State, at: Activation, scope: str, name: str, ahead: int) -> int:
    """How much of a limit is used when the node begins, without what it declares; `ahead`: nodes that have begun before."""
    found: int = getattr(state.used.get(scope, _NONE), name) if name in COUNTED else 0
    return found + ahead + 1 if name == "hops" and not at.item else found


def _ended(
    builder: DecisionBuilder, at: Activation, scope: str, failure: ev.Failure, cost: int
) -> ev.Failure | str:
    """A limit is passed, if need be by what the node declares: its own fails it, the saga's ends the saga."""
    if cost:
        failure = replace(failure, message=f"{failure.message} with what `{at.node.tool}` may cost")
    if scope != SAGA:
        return failure
    builder.note(ev.LimitReached(failure=failure))
    return HELD


def _declared(at: Activation) -> int:
    """What the tool says that one call of it may cost; a map itself makes none."""
    return 0 if at.node.each is not None and not at.item else at.node.cost


def _reserved(builder: DecisionBuilder, scope: str) -> int:
    """What the steps under way, in the saga or of one node, may still cost by what their tools declare."""
    slots = {*builder.running, *(step.slot for step in builder.run)}
    costs = {slot: builder.program.node_at(builder.state, slot).cost for slot in slots}
    return sum(cost for slot, cost in costs.items() if scope in (SAGA, node_of(owner_of(slot))[0]))


def _under_way(builder: DecisionBuilder, caps: Caps) -> int:
    """How many nodes have begun and will have run when they are done: one for all items of a node."""
    busy, opened = _busy(builder, caps)[SAGA], builder.state.open
    if not builder.state.items:
        return busy + len(opened)
    return len({owner_of(slot) for slot in (*builder.running, *(step.slot for step in builder.run), *opened)})


def _is_slow(builder: DecisionBuilder, caps: Caps, scope: str, node: Node) -> bool:
    """Whether a node behind a throttled limit still has to wait: for earlier nodes, then for the end of the pause."""
    busy = _busy(builder, caps)
    if scope == SAGA and (busy[SAGA] or (_is_child(builder, node) and busy[_CHILDREN])):
        return True
    until = builder.state.used[scope].last + PAUSE_MS
    if until > builder.now:
        builder.due_by(until)
        return True
    return False


def _is_full(builder: DecisionBuilder, caps: Caps, node: Node) -> bool:
    """Whether as many as a throttled fan-out allows are at work: behind one of its senders, or in the saga."""
    if not caps.wide:
        return False
    busy = _busy(builder, caps)
    if SAGA in caps.wide and busy[SAGA] + busy[_CHILDREN] >= caps.saga["fan_out"].most:
        return True
    return any(busy[name] >= caps.of[name]["fan_out"].most for name in node.before if name in caps.wide)


def _busy(builder: DecisionBuilder, caps: Caps) -> dict[str, int]:
    """How many are at work: steps in the saga, children in the saga, both behind each node whose fan-out is throttled."""
    if builder.busy is None:
        builder.busy = dict.fromkeys((SAGA, _CHILDREN, *caps.wide), 0)
        for slot in builder.state.tokens.keys() & set(builder.running):
            _begins(builder, caps, builder.program.nodes[node_of(slot)[0]])
        for slot in builder.state.children:  # one that has ended is closed in this very decision
            _begins(builder, caps, builder.program.nodes[node_of(slot)[0]])
    return builder.busy


def _is_child(builder: DecisionBuilder, node: Node) -> bool:
    return builder.program.kinds[node.kind].load == CHILD


def _begins(builder: DecisionBuilder, caps: Caps, node: Node) -> None:
    busy = _busy(builder, caps)
    busy[_CHILDREN if _is_child(builder, node) else SAGA] += 1
    for name in node.before:
        if name in caps.wide:
            busy[name] += 1
