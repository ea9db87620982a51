"""carry_problems(state, old, new) -> problems: why a saga cannot go on with another graph from where it is.

A patch, a migration and a fork with another graph ask it. It is pure: the graph changes with the entry after
`state`, and the events of work under way come later.

- A node that something has come to stays, as the same kind, in the same loops.
- What has begun keeps what it began with. A kind says which fields that are (`Kind.begun_with`).
- A node that may be running keeps its work; while the saga is held back, nothing runs.
- Nothing is left waiting, and nothing runs twice: of the nodes ahead, the old ones were ahead before, and
  every edge into one has spoken or comes from a node ahead. Later rounds of a loop are free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from baton.core.decide.program import READY, Program
from baton.core.decide.unknown_outcomes import may_stand
from baton.core.expressions import escape
from baton.core.graph.graph import Node
from baton.core.log.slots import Slot
from baton.core.log.state import State
from baton.core.nodes.base import work_of
from baton.errors import Problem

_WORDS = {
    "arguments": "with",
    "wait_ms": "wait",
    "wait_for": "wait",
    "wait_until": "wait",
    "fresh": "wait",
    "asks": "human",
    "each": "map",
}
"""Names of fields in a document, where a graph has another one."""
MOST_CHANGES: Final = 100
"""Changes of the graph that a saga may have: each load of the saga needs all of its graphs."""
_SAME: Mapping[str, str] = {}


def carry_problems(
    state: State, old: Program, new: Program, *, may_run: bool, renamed: Mapping[str, str] = _SAME
) -> tuple[Problem, ...]:
    """Return all problems, each with the place in the document of the new graph.

    `may_run`: a worker may run steps of it at this moment. `renamed`: new names of nodes by the old ones.
    """
    return tuple(_Carrying(state, old, new, may_run=may_run, renamed=renamed).problems())


def dropped_outputs(
    state: State, old: Program, new: Program, renamed: Mapping[str, str] = _SAME
) -> dict[str, str]:
    """Return the nodes whose outputs the new graph reads, and the state has dropped or never kept: their new
    names by the old ones.
    """
    return _Carrying(state, old, new, may_run=False, renamed=renamed).dropped()


def still_to_run(state: State, old: Program, new: Program) -> frozenset[str]:
    """Return the nodes of the new graph that the saga has come to, or comes to from where it is."""
    return _Carrying(state, old, new, may_run=False, renamed=_SAME).after


class _Carrying:
    """A saga on its way from one graph to another. Names of nodes are new ones where none says otherwise."""

    def __init__(
        self, state: State, old: Program, new: Program, *, may_run: bool, renamed: Mapping[str, str]
    ) -> None:
        self._state, self._old, self._new, self._may_run = state, old, new, may_run
        self._names = {node.name: renamed.get(node.name, node.name) for node in old.graph.nodes}
        self._here = [slot for slot in state.tokens if "#" not in slot]
        self._known = frozenset(self._names.values())
        self._arrived: dict[str, set[str]] = {}
        for slot in self._here:
            senders = self._arrived.setdefault(self._name(slot), set())
            senders.update(self._names[src] for src in state.tokens[slot] if src)
        self._fired = {self._name(slot) for slot in state.closed}
        """Joins that have fired: edges that speak later are absorbed, and lead no further."""
        self._begun = {
            self._name(slot)
            for slot in self._here
            if state.has_begun(slot) or old.readiness(state, slot) == READY
        }
        late = {self._name(slot) for slot in state.late}
        self._before = {self._names[name] for name in self._ahead(old, self._back(late), self._back(None))}
        begin = self._arrived.keys() & new.nodes.keys()
        self.after = frozenset(self._ahead(new, late, begin))
        """The nodes that run or are still to run in this round."""
        self._again = self.after.union(
            *(_body(new, tail) for tail in {tail for name in begin for tail in new.nodes[name].loops})
        )
        """Nodes that run in this round, or may do so in a later one."""

    def _name(self, slot: str) -> str:
        """Return the name of the node of a slot."""
        return self._names[Slot.parse(slot).node]

    def _back(self, names: Collection[str] | None) -> set[str]:
        """Return the old names of these nodes; None: of those that something has come to."""
        wanted = self._arrived if names is None else names
        return {old for old, name in self._names.items() if name in wanted}

    def _ahead(self, program: Program, late: Collection[str], begin: Collection[str]) -> set[str]:
        """Return the nodes from `begin` on, in this round, and those to which the loops under way lead.
        Nothing follows from those that are late.
        """
        fired = self._fired if program is self._new else self._back(self._fired)
        found, nodes = set(begin), program.nodes
        for tail in sorted({tail for name in found - set(late) for tail in nodes[name].loops}):
            outside = (name for one in _body(program, tail) for name in nodes[one].after)
            found.update(name for name in outside if tail not in nodes[name].loops and name not in fired)
        for node in program.graph.nodes:  # in a topological order
            if node.name in found and node.name not in late:
                found.update(name for name in node.after if name not in fired)
        return found

    def problems(self) -> Iterator[Problem]:
        if len(self._state.graphs) >= MOST_CHANGES and self._new is not self._old:
            text = f"the graph of the saga has changed {MOST_CHANGES} times, and no saga has more changes"
            yield Problem("", text, "start a saga with a new version of the workflow")
            return
        for slot in self._here:
            yield from self._at(slot)
        yield from self._in_loops()
        for slot in self._state.closed:
            yield from self._after_join(slot)
        for node in self._new.graph.nodes:
            if node.name in self.after:
                yield from self._ahead_problems(node)
        for name in self._before - self.after:
            if name in self._new.nodes and name not in self._arrived:
                yield _problem(
                    name, f"the saga has not come to `{name}`, and from where it is nothing leads to it"
                )
        yield from self._unread()

    def _at(self, slot: str) -> Iterator[Problem]:
        """Yield the problems of a node that something has come to."""
        old, name = self._old.nodes[Slot.parse(slot).node], self._name(slot)
        node = self._new.nodes.get(name)
        if node is None:
            yield _problem(name, f"the saga has come to `{name}`, and the new graph lacks it", "leave it in")
            return
        if node.kind != old.kind:
            yield _problem(
                name, f"the saga has come to `{name}`, which is of the kind `{old.kind}`, not `{node.kind}`"
            )
            return
        if node.loops != tuple(self._names[tail] for tail in old.loops):
            yield _problem(name, f"the saga has come to `{name}`, and other loops are around it now")
            return
        edges = {*node.before, *self._new.index.tails_of.get(name, ())}
        for src in sorted(self._arrived[name] - edges):
            yield _problem(
                name, f"`{src}` has ended, and led to `{name}`; the new graph has no such edge", "leave it in"
            )
        if name in self._begun and set(node.before) == {self._names[src] for src in old.before}:
            yield from self._readiness(slot, node)
        yield from self._work(slot, old, node)

    def _readiness(self, slot: str, node: Node) -> Iterator[Problem]:
        """Yield the problem of a node that has begun and would not have begun by its new join."""
        state = self._state
        arrived = {self._names.get(src, src): alive for src, alive in state.tokens[slot].items()}
        errors = {self._names[src]: carried for src, carried in state.errors.get(slot, {}).items()}
        if self._new.readiness_at(node.name, arrived, errors) != READY:
            yield _problem(
                node.name,
                f"`{node.name}` has begun, and by its new `join` it would wait or fail",
                "leave `join` as it is",
            )

    def _in_loops(self) -> Iterator[Problem]:
        """Yield the nodes that come into a loop under way, or leave it: its end speaks for them."""
        for tail in sorted(
            {tail for slot in self._here for tail in self._old.nodes[Slot.parse(slot).node].loops}
        ):
            before = {self._names[name] for name in _body(self._old, tail)}
            after = _body(self._new, self._names[tail])
            for name in sorted((before ^ after) & self._known & self._new.nodes.keys() if after else ()):
                what = "leaves it" if name in before else "comes into it"
                yield _problem(
                    name,
                    f"the saga is in the loop that ends at `{self._names[tail]}`, and `{name}` {what}",
                    f"leave `{name}` where it is, or add another node",
                )

    def _work(self, slot: str, old: Node, node: Node) -> Iterator[Problem]:
        """Yield the changes of work that has begun, or may run."""
        state, work = self._state, self._state.open.get(slot)
        if work is not None:
            kind = self._old.kinds[old.kind]
            changed = _changed(kind.begun_with(old, work), kind.begun_with(node, work))
            if changed:
                yield _problem(
                    node.name,
                    f"`{node.name}` is at work, and goes on with the {changed} that it began with",
                    f"leave {changed} as it is, or fork the saga from before `{node.name}`",
                )
            return
        changed = _changed(work_of(old), work_of(node))
        if not changed or self._old.readiness(state, slot) != READY:
            return
        failing = state.failing.get(slot)
        if self._may_run:
            yield _problem(
                node.name,
                f"`{node.name}` may be running, and the new graph changes its {changed}",
                "pause the saga first (`baton pause SAGA`)",
            )
        elif state.items_of(slot) or may_stand(self._old, state, slot, ()):
            yield _problem(
                node.name,
                f"`{node.name}` has begun and may have acted, and the new graph changes its {changed}",
                f"fork the saga from before `{node.name}`",
            )
        elif failing is not None and (failing.way is not None or failing.arguments):
            yield _problem(
                node.name,
                f"the next attempt of `{node.name}` has another tool or other arguments since its last failure, so its {changed} would not count",
                f"fork the saga from before `{node.name}`",
            )

    def _after_join(self, slot: str) -> Iterator[Problem]:
        """Yield the problem of a join that has fired early, and loses or gets an edge."""
        name, before = self._name(slot), self._old.nodes[Slot.parse(slot).node].before
        node = self._new.nodes.get(name)
        if node is None or {self._names[src] for src in before} != set(node.before):
            yield _problem(
                name, f"`{name}` has gone on before all edges into it have ended; they stay as they are"
            )

    def _ahead_problems(self, node: Node) -> Iterator[Problem]:
        """Yield the problems of a node that the saga comes to from here."""
        name = node.name
        if name in self._known and name not in self._before:
            yield _problem(
                name,
                f"the saga has passed `{name}`, and it would run again",
                f"let no node that is still to run lead to `{name}`",
            )
            return
        if name in self._fired:
            return
        arrived = self._arrived.get(name, set())
        is_later_round = not arrived.isdisjoint(self._new.index.tails_of.get(name, ()))
        for src in node.before:
            speaks = self._will_speak(src, node)
            if src in arrived or (is_later_round and not speaks) or (speaks and name not in self._begun):
                continue
            if speaks:
                yield _problem(
                    name,
                    f"`{name}` has begun, and `{src}` comes too late to lead to it",
                    f"let `{src}` lead to a later node",
                )
            else:
                yield _problem(
                    name,
                    f"`{name}` would wait for `{src}`, which does not run any more",
                    f"let `{src}` not lead to `{name}`, or fork the saga from before that",
                )

    def _will_speak(self, src: str, node: Node) -> bool:
        """Return true if an edge speaks later: its node is ahead, or a loop that it leaves is not over."""
        around = self._new.nodes[src].loops[self._new.index.shared(src, node.name) :]
        return src in self.after or any(tail in self.after for tail in around)

    def dropped(self) -> dict[str, str]:
        """Return what `dropped_outputs` does."""
        read = set[str]()
        for reader, path in self._new.paths():
            if reader and reader not in self._again:
                continue
            read.add(path.node)
            if path.root == "join" and path.steps[0] in ("outputs", "batch"):
                read.update(self._new.nodes[reader].before)
        kept = {self._names.get(name, name) for name in self._state.outputs}
        return {
            old: name for old, name in self._names.items() if name in read - kept and name not in self.after
        }

    def _unread(self) -> Iterator[Problem]:
        """Yield what nodes that are still to run read of new ones that never do."""
        known = self._known | self._again
        for reader, path in self._new.paths():
            is_ahead = not reader or reader in self._again
            if is_ahead and path.node in self._new.nodes and path.node not in known and not path.may_be_null:
                where = f"`{reader}`" if reader else "the saga's output"
                text = f"{where} reads the output of `{path.node}`, whose place the saga has passed: it never runs"
                yield (_problem(reader, text) if reader else Problem("/output", text))


def _body(program: Program, tail: str) -> set[str]:
    """Return the nodes of the loop that ends at `tail`; none where there is no such loop."""
    return {node.name for node in program.graph.nodes if tail in node.loops}


def _problem(name: str, message: str, suggestion: str = "") -> Problem:
    return Problem(f"/nodes/{escape(name)}", message, suggestion)


def _changed(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """Return the fields that differ, in words; empty: none."""
    fields = dict.fromkeys(_WORDS.get(name, name) for name in old if old[name] != new[name])
    return " and ".join(f"`{name}`" for name in fields)
