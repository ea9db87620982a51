"""What a node of a graph is sure to find done when it runs, by a careful reading of the graph alone.

Sound, not complete: whatever it does not know of is read with `?`. Shares no code with the compiler, which knows more.
"""

from __future__ import annotations

from collections.abc import Collection

from tests.core.graphs.plan import Plan

START = "<start>"


def sure_of(plan: Plan) -> dict[str, set[str]]:
    """For each node: those that have surely given something by then. Under the empty name: by the end."""
    always: dict[str, set[str]] = {}
    sure: dict[str, set[str]] = {}
    failed: dict[str, set[str]] = {}
    """What is sure when the node failed, or passes on that another did."""
    for name in plan.order:
        always[name] = _runs_if(plan, always, name)
        before = plan.before[name]
        _, tolerated, _ = plan.join(name)
        if not before:
            sure[name] = failed[name] = {START}
            continue
        if tolerated is not None:
            sure[name] = set.intersection(*(failed[source] for source in before))
        else:
            sure[name] = set.intersection(*(_by_edge(plan, sure, source, name) for source in before))
            if plan.join(name)[0] == 0:
                _add_all(plan, sure, always, name)
        failed[name] = sure[name].intersection(
            *(failed[source] for source in before if source in plan.tolerated or _may_be_lost(plan, source))
        )
        if plan.headed[name] and name in plan.tolerated:
            # It may come to a second round although it was skipped in the first, by a join that needs only failures.
            sure[name] = failed[name]
    sure[""] = _by_the_end(plan, always, sure)
    return sure


def _by_edge(plan: Plan, sure: dict[str, set[str]], source: str, name: str) -> set[str]:
    """What is done if this edge is alive: its sender, too, but where it is one that is taken on failure."""
    return sure[source] if name in plan.handlers(source) else sure[source] | {source}


def _add_all(plan: Plan, sure: dict[str, set[str]], always: dict[str, set[str]], name: str) -> None:
    """A join of all its edges waits for those, too, that are sure to be done."""
    moved = True
    while moved:
        known = set(sure[name])
        for source in plan.before[name]:
            if (
                source not in known
                and "catch" not in plan.nodes[source]
                and always[source] & known
                and _is_certain(plan, source, name, plan.targets(source))
            ):
                sure[name] |= sure[source] | {source}
        moved = known != sure[name]


def _is_certain(plan: Plan, source: str, name: str, chosen: Collection[str] = ()) -> bool:
    """Whether the edge is alive whenever its sender is done, and nothing else can end what it leads out of.

    With what its branch chose, if that is not the question.
    """
    if (name in plan.targets(source) and name not in chosen) or name in plan.handlers(source):
        return False
    common = plan.common(source, name)
    if common == len(plan.loops[source]):
        return True
    if plan.nodes[source].get("loop", {}).get("timeout_path") or common < len(plan.loops[source]) - 1:
        return False
    body = plan.body(plan.loops[source][common])
    return all(other == source or set(plan.after[other]) <= body for other in body)


def _may_be_lost(plan: Plan, name: str) -> bool:
    """Whether a failure that was caught may be on its edges."""
    return any(name in plan.ahead[other] for other in plan.nodes if plan.catch(other)) or any(
        plan.catch(other) for tail in plan.loops[name] for other in plan.body(tail)
    )


def _runs_if(plan: Plan, always: dict[str, set[str]], name: str) -> set[str]:
    """Nodes of which each, once done, is enough for this one to run."""
    if "when" in plan.nodes[name] or plan.join(name)[0] > 1 or plan.join(name)[1] is not None:
        return set()
    if not plan.before[name]:
        return {START}
    if not plan.join(name)[0] and any(_may_be_lost(plan, source) for source in plan.before[name]):
        return set()
    certain = [source for source in plan.before[name] if _is_certain(plan, source, name)]
    # One whose failure is caught may not be done at all.
    return {
        other for source in certain for other in (() if "catch" in plan.nodes[source] else always[source])
    }.union(certain)


def _by_the_end(plan: Plan, always: dict[str, set[str]], sure: dict[str, set[str]]) -> set[str]:
    hasty = [name for name in plan.nodes if plan.join(name)[0] or plan.join(name)[1] is not None]
    stoppable = {other for name in hasty for other in plan.leads_only_to([name])}
    runs = {
        name
        for name in plan.nodes
        if START in always[name]
        and not plan.loops[name]
        and name not in stoppable
        and name not in plan.tolerated
        and "catch" not in plan.nodes[name]
    }
    return runs.union(*(sure[name] for name in runs)) if runs else set()


def is_racing(plan: Plan, source: str, name: str) -> bool:
    """Whether `source` may be at work beside `name` (empty: the end) although a way leads from one to the other."""
    if not name:
        return False
    between = (join for join in plan.ahead[source] if join != source and name in plan.ahead[join])
    for join in between:
        need, tolerated, rest = plan.join(join)
        is_hasty = need > 0 or tolerated is not None
        if is_hasty and (rest == "run" or source not in plan.rest[join][1]):
            return True
    return False
