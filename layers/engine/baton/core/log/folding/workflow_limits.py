"""The limits of a graph, compared with the use so far (docs/semantics.md, "Limits").

This file counts, compares, and makes the failures. The choice of steps that begin is in
core/decide/scheduling.py, summaries are in core/summary.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import msgspec
from msgspec.structs import replace

from baton.core.graph.graph import Cap, Graph, Node, hash_of
from baton.core.limits import DAY_MS, Limits
from baton.core.log import events as ev
from baton.core.log.codec import PERIOD, SCHEME
from baton.core.log.scopes import Agent
from baton.core.log.slots import Slot, owner_of
from baton.core.log.state import State, Used
from baton.core.models.usage import Allowance, Usage, tokens_of
from baton.core.money import dollars
from baton.core.summary import LONGEST, summary_of

SAGA = ""
LOOPING = "#hops"  # no node's name
"""The limit owner that counts only the nodes that have run in a saga with loops."""
COUNTED = ("hops", "bytes", "cost", "tokens")
RETRIED = "#retries"  # no node's name
"""The owner that counts the retries of a saga; it is there from the first one on."""
RETRIES, RETRY_TIME = "retries", "retry_time"
OF_RETRIES = (RETRIES, RETRY_TIME)
"""The limits that are checked before a retry."""
ASKED = ("cost", "tokens")
"""The limits of a node that are checked at each of its requests to a model."""
TERMINATE, THROTTLE, SUMMARISE = "terminate", "throttle", "summarise"
OUT_OF_TIME = "limit_wall_time"
_NONE = Used()
_encode = msgspec.json.Encoder().encode


class Caps:
    """The limits of a graph that has any. Immutable after construction."""

    def __init__(self, graph: Graph) -> None:
        self.of: Mapping[str, Mapping[str, Cap]] = {
            SAGA: graph.limits,
            **{node.name: node.limits for node in graph.nodes if node.limits},
        }
        self.saga = graph.limits
        self.wide = frozenset(
            scope for scope, limits in self.of.items() if _does(limits.get("fan_out"), THROTTLE)
        )
        """The owners of limits whose fan-out is throttled."""

    def reached(self, state: State, now: int) -> ev.Failure | None:
        """Return the reason why the whole saga has to end, or None."""
        deadline = self.deadline(state)
        if deadline is not None and now >= deadline:
            return limit_failure("wall_time", self.saga["wall_time"], "", now - _since(state))
        used = state.used.get(SAGA, _NONE)
        for name in ("bytes", "cost"):
            cap, found = self.saga.get(name), getattr(used, name)
            if _does(cap, TERMINATE) and found > cap.most:
                return limit_failure(name, cap, "", found)
        return None

    def deadline(self, state: State) -> int | None:
        """Return the end of the saga's time; None without a limit."""
        cap = self.saga.get("wall_time")
        return None if cap is None else _since(state) + cap.most

    def fault(self, state: State, node: Node, live: int, size: int, cost: int) -> ev.Failure | None:
        """Return the failure of the limit that a done node exceeds, or None.

        The node sends on to `live` nodes, gave `size` bytes, and spent `cost`.
        """
        for limits in (node.limits, self.saga):
            cap = limits.get("fan_out")
            if _does(cap, TERMINATE) and live > cap.most:
                return limit_failure("fan_out", cap, node.name, live)
        used = state.used.get(node.name, _NONE)
        for name, more in (("bytes", size), ("cost", cost)):
            cap, found = node.limits.get(name), getattr(used, name) + more
            if _does(cap, TERMINATE) and found > cap.most:
                return limit_failure(name, cap, node.name, found)
        return None

    def fit(
        self, state: State, node: Node, value: ev.Value, content: Callable[[ev.Value], Any]
    ) -> tuple[ev.Value, ev.Value | None]:
        """Return the output as the log holds it, and the full one if that is only a summary."""
        left = [
            cap.most - state.used.get(scope, _NONE).bytes
            for scope, limits in ((node.name, node.limits), (SAGA, self.saga))
            if _does(cap := limits.get("bytes"), SUMMARISE)
        ]
        size = json_bytes(value)
        if not left or size <= min(left):
            return value, None
        whole = content(value)
        ref = value.ref.partition(PERIOD)[0] or SCHEME + hash_of(_encode(whole))
        # No more than half of what is left, so that one large output does not take all from those after it.
        short = ev.Value(v=summary_of(whole, min(LONGEST, min(left) // 2), size, ref))
        return (short, value) if json_bytes(short) < size else (value, None)


def caps_of(graph: Graph) -> Caps | None:
    """Return the limits of a graph; None for a graph without limits, which then pays nothing for them."""
    return Caps(graph) if graph.limits or any(node.limits for node in graph.nodes) else None


def counts_of(graph: Graph) -> tuple[str, ...]:
    """Return the owners of limits for which the state has to count: nodes by name, the saga as an
    empty text.
    """
    counted = (*COUNTED, *OF_RETRIES)
    found = tuple(node.name for node in graph.nodes if not node.limits.keys().isdisjoint(counted))
    if not graph.limits.keys() <= {"fan_out", *OF_RETRIES}:
        found = (SAGA, *found)
    return (*found, LOOPING) if any(node.loops for node in graph.nodes) else found


def endless_failure(state: State, most: int) -> ev.Failure | None:
    """Return the reason why a saga with loops has to end, whatever its document says; None if it need not.

    `most` 0: any number of nodes.
    """
    used = state.used.get(LOOPING)
    if used is None or not 0 < most < used.hops:
        return None
    text = f"a saga may run {most:,} nodes in this deployment, and it came to {used.hops:,}"
    return ev.Failure("limit_hops", text)


def turns_of(state: State) -> int:
    """Return the turns of a saga whose caller limits them, with those of sagas below it."""
    return state.used.get(SAGA, _NONE).turns


def left_to_child(state: State, node: Node, saga: Mapping[str, Cap], agent: Agent | None) -> Allowance | None:
    """Return what limits of tokens and turns leave to a child of the node that begins now, or None.
    Children that run at the same time do not see each other's use.

    `saga`: the limits of its graph. `agent`: the one that calls the child; it keeps one turn for its answer.
    """
    allowed, used = state.origin.allowed or Allowance(), state.used.get(SAGA, _NONE)
    caps = ((node.name, node.limits.get("tokens")), (SAGA, saga.get("tokens")))
    tokens = [cap.most - state.used.get(owner, _NONE).tokens for owner, cap in caps if _does(cap, TERMINATE)]
    turns = [allowed.turns - used.turns] if allowed.turns else []
    if allowed.tokens:
        tokens.append(allowed.tokens - used.tokens)
    if agent is not None and node.agent is not None:
        turns.append(node.agent.turns - agent.turn - agent.used.turns - 1)
        if node.agent.tokens:
            tokens.append(node.agent.tokens - agent.used.tokens)
    if not (tokens or turns):
        return None
    least_tokens, least_turns = (max(min(left), 1) if left else 0 for left in (tokens, turns))
    return Allowance(tokens=least_tokens, turns=least_turns)


def used_of_caller(state: State) -> Allowance | None:
    """Return what a saga has used of its caller's limits; None without them."""
    allowed, used = state.origin.allowed, state.used.get(SAGA, _NONE)
    if allowed is None:
        return None
    return Allowance(tokens=used.tokens if allowed.tokens else 0, turns=used.turns if allowed.turns else 0)


def count_turns(state: State, turns: int) -> dict[str, Used]:
    """Return the use with turns, which are counted if the saga's caller limits them."""
    allowed = state.origin.allowed
    if allowed is None or not allowed.turns:
        return state.used
    known = state.used.get(SAGA, _NONE)
    return {**state.used, SAGA: replace(known, turns=known.turns + turns)}


def too_old(state: State, now: int) -> ev.Failure | None:
    """Return the reason why a saga has to end that outlasts the retention of its data; None if it need not.

    This limit holds whatever its document says.
    """
    if not 0 < state.origin.ends_by <= now:
        return None
    days = (state.origin.ends_by - state.origin.started_at) // DAY_MS
    return ev.Failure(
        "limit_wall_time", f"a saga may last {days} days in this deployment, and these are over"
    )


def count_node(used: dict[str, Used], event: ev.Settles, *, is_run: bool) -> dict[str, Used]:
    """Return the use with a settled node, which ran unless it was skipped."""
    if isinstance(event, ev.StepSucceeded | ev.StepFailed) and event.attempt > 1:
        used = with_retry_time(used, event.node, event.ended_at - event.started_at)
    if not is_run:
        return used
    looped = used.get(LOOPING)
    if looped is not None:
        used = {**used, LOOPING: replace(looped, hops=looped.hops + 1)}
        if SAGA not in used and event.node not in used:
            return used
    size = json_bytes(event.output) if isinstance(event, ev.Gives) else 0
    ended_at = event.ended_at if isinstance(event, ev.StepSucceeded | ev.StepFailed) else 0
    news = {
        scope: replace(
            known,
            hops=known.hops + 1,
            bytes=known.bytes + size,
            last=max(known.last, ended_at),
        )
        for scope in (SAGA, event.node)
        if (known := used.get(scope)) is not None
    }
    return {**used, **news}


def with_retry(used: dict[str, Used], node: str, pause_ms: int) -> dict[str, Used]:
    """Return the use with a retry of a step of a node, which begins after a pause."""
    retried = {
        scope: replace(known, retries=known.retries + 1)
        for scope in (RETRIED, node)
        if (known := used.get(scope, _NONE if scope == RETRIED else None)) is not None
    }
    return with_retry_time({**used, **retried}, node, pause_ms)


def with_retry_time(used: dict[str, Used], node: str, ms: int) -> dict[str, Used]:
    """Return the use with the time of a retry; the same if none has been counted."""
    if RETRIED not in used:
        return used
    scopes = (scope for scope in (RETRIED, node) if scope in used)
    return used | {scope: replace(used[scope], retry_time=used[scope].retry_time + ms) for scope in scopes}


def retried(state: State, scope: str) -> Used:
    """Return the use of retries of the saga (`SAGA`), or of a node."""
    return state.used.get(scope or RETRIED, _NONE)


def used_up(state: State, graph: Graph, node: Node, limits: Limits, pause_ms: int) -> tuple[str, str] | None:
    """Return the limit that does not allow a further retry after a pause of a step of the node, and its
    excess in words; None if all do. A saga whose graph has no such limit has the deployment's.
    """
    of_deployment = ((limits.saga_retries, "SagaRetries"), (limits.saga_retry_ms, "SagaRetryMs"))
    for name, (most, setting) in zip(OF_RETRIES, of_deployment, strict=True):
        _, shown = _SHOWN[name]
        for scope, cap in ((node.name, node.limits.get(name)), (SAGA, graph.limits.get(name))):
            used = retried(state, scope)
            found = used.retries + 1 if name == RETRIES else used.retry_time + pause_ms
            by = f"`limits.{name}` of {f'node `{scope}`' if scope else 'the saga'}"
            if cap is None and not scope and most:
                cap, by = Cap(most=most), f"`{setting}` of the deployment"
            if cap is not None and found > cap.most:
                return f"limit_{name}", f"{by} is {shown(cap.most)}, and that is used up"
    return None


def pay(state: State, slot: str, cost: int, *, is_late: bool = False) -> State:
    """Return the state with the cost reported at a slot, unless that has been settled; `is_late`:
    also then.
    """
    if not cost or not (is_late or slot in state.tokens):
        return state
    used = {
        scope: replace(known, cost=known.cost + cost)
        for scope in (SAGA, Slot.parse(slot).node)
        if (known := state.used.get(scope)) is not None
    }
    money = replace(state.money, spent=state.money.spent + cost)
    return replace(state, money=money, used={**state.used, **used})


def cut_back(before: State, at_cut: State, now: int) -> dict[str, Used]:
    """Return the use with which a fork begins: that of its cut, with all the money and tokens spent, and its
    time anew.
    """
    return {
        scope: replace(
            used,
            cost=before.used[scope].cost,
            tokens=before.used[scope].tokens,
            turns=before.used[scope].turns,
            since=now,
        )
        for scope, used in at_cut.used.items()
    }


def late(state: State, running: Collection[str]) -> tuple[str, ...]:
    """Return the running steps that must not be waited for: their time, or their saga's, is over."""
    failure = state.failure
    if failure is None or failure.code != OUT_OF_TIME:
        return ()
    return tuple(slot for slot in running if failure.node in ("", Slot.parse(slot).node))


def json_bytes(value: ev.Value) -> int:
    """Return the bytes of a value as JSON."""
    return value.size if value.ref else len(_encode(value.v))


def _since(state: State) -> int:
    used = state.used.get(SAGA)
    return used.since if used is not None and used.since else state.origin.started_at


def _does(cap: Cap | None, then: str) -> TypeGuard[Cap]:
    return cap is not None and cap.then == then


def limit_failure(name: str, cap: Cap, node: str, found: int) -> ev.Failure:
    """Return the failure of an exceeded limit of a node, or (without one) of the saga."""
    key, shown = _SHOWN[name]
    whose = f"node `{node}`" if node else "the saga"
    came = "that time is over" if name == "wall_time" else f"it came to {shown(found)}"
    text = f"`limits.{key}` of {whose} is {shown(cap.most)}, and {came}"
    if name == "hops" and node:
        text = f"`limits.hops` of {whose} is {cap.most}, and this would be its run {found}"
    return ev.Failure(f"limit_{name}", text, node)


_SHOWN: dict[str, tuple[str, Callable[[int], str]]] = {
    "fan_out": ("fan_out", "{} nodes at once".format),
    "hops": ("hops", "{} nodes".format),
    "wall_time": ("wall_time", lambda ms: f"{ms / 1_000:g} s"),
    "bytes": ("bytes", "{:,} bytes".format),
    "tokens": ("tokens", "{:,} tokens".format),
    RETRIES: (RETRIES, "{:,}".format),
    RETRY_TIME: (RETRY_TIME, lambda ms: f"{ms / 1_000:g} s"),
    "cost": ("cost_usd", lambda micro: f"{dollars(micro)} dollars"),
}


ModelSums: TypeAlias = dict[str, tuple[int, int, int]]
"""By model: tokens read, tokens written, micro-dollars."""
MOST_MODELS, LONGEST_NAME = 6, 48
"""Most models with sums of their own, and most characters of their names, so that the head of a saga stays
one write unit.
"""
OTHERS, UNANSWERED = "others", "requests without an answer"


def with_models(
    state: State, slot: str, usage: Sequence[Usage], assumed: int = 0, *, is_answered: bool = False
) -> State:
    """Return the state with the tokens that models have read and written, and with the cost assumed for
    unanswered requests.

    `is_answered`: a turn reports its use in its answer; its agent counts that with the answer.
    """
    if not usage and not assumed:
        return state
    sums = dict(state.money.models)
    for one in usage:
        _add(sums, one.model[:LONGEST_NAME], one.input, one.output, one.cost)
    if assumed:
        _add(sums, UNANSWERED, 0, 0, assumed)
    state = replace(state, money=replace(state.money, models=sums))
    if not usage:
        return state
    of_agent = [one for one in usage if one.model == UNANSWERED] if is_answered else usage
    return _with_tokens(state, slot, tokens_of(usage), Allowance(tokens=tokens_of(of_agent)))


def with_child_use(state: State, slot: str, used: Allowance | None) -> State:
    """Return the state with the tokens and turns of a child, as far as limits count them."""
    if used is None:
        return state
    state = replace(state, used=count_turns(state, used.turns))
    return _with_tokens(state, slot, used.tokens, used)


def _with_tokens(state: State, slot: str, tokens: int, of_agent: Allowance) -> State:
    """Count tokens for the saga, the node and the agent, as far as they have limits."""
    owner = owner_of(slot)
    used = {
        scope: replace(known, tokens=known.tokens + tokens)
        for scope in (SAGA, Slot.parse(owner).node)
        if (known := state.used.get(scope)) is not None
    }
    state = replace(state, used={**state.used, **used}) if used else state
    work = state.open.get(owner)
    if owner == slot or not isinstance(work, Agent):
        return state
    tokens, turns = work.used.tokens + of_agent.tokens, work.used.turns + of_agent.turns
    progress = replace(work.used, tokens=tokens, turns=turns)
    return replace(state, open={**state.open, owner: replace(work, used=progress)})


def _add(sums: ModelSums, name: str, read: int, written: int, cost: int) -> None:
    if name not in sums and len(sums) >= MOST_MODELS:
        name = OTHERS
    before = sums.get(name, (0, 0, 0))
    sums[name] = (before[0] + read, before[1] + written, before[2] + cost)
    if not any(sums[name]):  # what was held for a request has come back
        del sums[name]
