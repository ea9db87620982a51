"""Facts that a process derives once from a graph: lookups, parsed templates, and the later readers of
outputs.

Sets of nodes are integers, one bit per node, so that "can a later step still read this?" costs the tokens in
flight and not the nodes of the graph.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from baton.core.conditions import names_of
from baton.core.effects.toolspec import ToolSpec
from baton.core.expressions import Path, Template, compile_template, parse
from baton.core.failures.failover import Policy, matches_patterns
from baton.core.graph.graph import Graph, Join, Loop, Node, graph_name
from baton.core.graph.index import GraphIndex
from baton.core.limits import USUAL, Limits
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import caps_of, counts_of
from baton.core.log.records import Failure
from baton.core.log.scopes import is_index
from baton.core.log.slots import Slot, owner_of
from baton.core.log.state import State, unrescued
from baton.core.nodes.base import Kinds

PENDING, READY, SKIPPED, FAILS = "pending", "ready", "skipped", "fails"

_ALL = Join()


def readiness_of(
    node: Node,
    tails: frozenset[str],
    arrived: Mapping[str, bool],
    failed: Collection[str] = (),
    lost: Collection[str] = (),
) -> str:
    """Return PENDING, READY, SKIPPED or FAILS.

    `arrived` maps senders to alive; `failed` are those of the dead that carry errors, `lost` those that carry
    only failures which were caught, and are not rescued here. `tails` are the nodes from which a loop comes
    back to this one: a round after the first has no other edges.
    """
    if tails and not tails.isdisjoint(arrived):
        return READY
    join = node.join or _ALL
    alive, missing = sum(arrived.values()), max(len(node.before), 1) - len(arrived)
    if join.tolerated < 0:
        return _plain(join.need, alive, missing, bool(failed or lost))
    if len(failed) > join.tolerated:
        return FAILS
    if join.need == 0:
        if missing:
            return PENDING
        # An edge that has not arrived could have rescued what was lost.
        if len(failed) + len(lost) > join.tolerated:
            return FAILS
        return READY if alive or failed or lost else SKIPPED
    if alive >= join.need:
        return READY
    if failed and alive + missing < join.need:
        return FAILS
    return PENDING if missing else SKIPPED


def _plain(need: int, alive: int, missing: int, lacks: bool) -> str:
    """Return the readiness of a join that tolerates nothing: it passes failed and lost edges on."""
    if need:
        return READY if alive >= need else PENDING if missing else SKIPPED
    if missing:
        return PENDING
    return READY if alive and not lacks else SKIPPED


NO_VALUE = Template(None, ())
_NO_TAILS: frozenset[str] = frozenset()
Policies = tuple[tuple[Policy, Template], ...]


class Program:
    """A graph made ready to run. Immutable after construction.

    kinds: the kinds of its nodes. most_hops: most nodes that a saga with loops may run; 0: any number.
    skew_ms: the largest difference between the clocks of two processes. graphs: the named graphs of its
    document, if it is one of them itself.
    build: the identity of the deployed code; empty if unknown. timeout_ms: that of an attempt whose node
    names none. limits: those of the deployment, for what the document leaves open.
    """

    earlier: tuple[tuple[int, Program], ...] = ()
    """Of a saga whose graph has changed: the programs before, each with the last version under it."""

    def __init__(
        self,
        graph: Graph,
        kinds: Kinds,
        most_hops: int = 0,
        skew_ms: int = 0,
        graphs: Mapping[str, Graph] | None = None,
        build: str = "",
        timeout_ms: int = USUAL.step_timeout_ms,
        limits: Limits = USUAL,
    ) -> None:
        self.graph = graph
        self.graphs = graph.graphs if graphs is None else graphs
        self.kinds = kinds
        self.most_hops, self.skew_ms, self.timeout_ms = most_hops, skew_ms, timeout_ms
        self.build, self.limits = build, limits
        self.index = GraphIndex(graph)
        self.caps, self.counts = caps_of(graph), counts_of(graph)
        self.ends = frozenset(node.name for node in graph.nodes if kinds[node.kind].ends)
        """The nodes with which the saga ends."""
        self.nodes = self.index.nodes
        self.unfit: Mapping[str, str] = {}
        """By node: the reason why the schema of its deployed tool does not fit."""
        self.arguments: dict[str, Template] = {
            node.name: compile_template(kinds[node.kind].template(node)) for node in graph.nodes
        }
        self.bodies: dict[str, Template] = {
            node.name: compile_template(kinds[node.each.do.kind].template(node.each.do))
            for node in graph.nodes
            if node.each is not None
        }
        """The arguments of each item of a map."""
        works = [node if node.each is None else node.each.do for node in graph.nodes]
        self.keys: dict[str, Template] = {
            node.name: compile_template(work.key)
            for node, work in zip(graph.nodes, works, strict=True)
            if work.key
        }
        """The keys that the document gives to calls of tools."""
        self.approvals: dict[str, Template] = {
            node.name: compile_template(said) for node in graph.nodes if (said := _asked(node)) is not None
        }
        """The document's texts in questions about calls of tools."""
        self.choices: dict[str, Path] = {
            node.name: parse(node.branch.choose)
            for node in graph.nodes
            if node.branch is not None and node.branch.choose
        }
        self.failover = _failover_of(graph, kinds)
        """For each node that calls tools: the policies that may apply to it, its own first, each with its
        arguments.
        """
        self.planned = frozenset(
            call.tool
            for node in graph.nodes
            if node.replan is not None
            for call in node.replan.calls
            if call.tool not in node.replan.repeatable
        )
        """The tools whose calls a model may plan: the output of an equal earlier call is reused."""
        self.has_reversible = any(node.has_reversible for node in graph.nodes)
        """True if one of its steps is reversible."""
        self.has_pure = any(node.has_pure for node in graph.nodes)
        """True if the ends of some steps may wait for each other before they are written."""
        self.shares = graph.handler is not None or any(node.starts for node in graph.nodes)
        """True if the graph starts sagas, which share its limits of money."""
        self.has_late = any(node.each is not None and node.each.rest == "beside" for node in graph.nodes)
        """True if one of its maps goes on while its items run."""
        self.has_rounds = any(node.loop is not None for node in graph.nodes)
        """True if it has loops: the end of a round stops the steps that still run in it."""
        self.initials: dict[str, Template] = {
            node.name: compile_template(node.loop.initial)
            for node in graph.nodes
            if node.loop is not None and node.loop.initial is not None
        }
        """By the last nodes of loops, their outputs before the first round."""
        self.output = compile_template(graph.output)
        given = None if graph.handler is None else graph.handler.arguments
        self.handler = None if given is None else compile_template(given)
        """The input of the failure handler; None: a report."""
        self._bit = {node.name: 1 << index for index, node in enumerate(graph.nodes)}
        self._single = frozenset(
            node.name
            for node in graph.nodes
            if len(node.before) < 2 and node.join is None and node.name not in self.index.tails_of
        )
        """The nodes with at most one edge before them, which wait for no other."""
        self.plain = {
            node.name: tuple(
                ev.Token(node.name, dst, self.index.arriving(node.name, dst, ())) for dst in node.after
            )
            for node in graph.nodes
            if not (node.loops or node.loop or node.branch or node.catch)
        }
        """For each node that goes on along all of its edges, in no loop: the tokens that it emits when it is
        done.
        """
        self._uncounted = sum(
            self._bit[node.name] for node in graph.nodes if node.loop or node.function or node.agent
        )
        self._ahead = self._reach()
        self.tells_batch = False
        """True if a `catch` or the failure handler reads the result of each node before the failed join."""
        self.carried: dict[str, tuple[str, ...]] = {}
        """For each last node of a loop: the nodes whose outputs the next round reads as the previous ones."""
        self._readers = self._find_readers()
        read = () if self.handler is None else self.handler.paths
        started = "" if graph.handler is None else graph.handler.workflow
        self.tells_batch |= any(path.root == "last_error" and _asks_batch(path, started) for path in read)
        self.for_handler = frozenset(path.node for path in read if path.node)
        """The nodes whose outputs the failure handler reads."""
        self._for_output = frozenset(path.node for path in self.output.paths if path.node) | self.for_handler

    def node_at(self, state: State, slot: str) -> Node:
        """Return the node at a slot, or the part of a node that an item is."""
        place = Slot.parse(slot)
        node = self.nodes[place.node]
        if not place.item:
            return node
        if (undoing := state.undo.work) is not None and slot in undoing.steps:
            return undoing.part(self.at(undoing.steps[slot].version).nodes[place.node], place)
        return self.kinds[node.kind].part(node, state.open.get(place.owner), place.item)

    def is_one_of_many(self, slot: str) -> bool:
        """Return true if a slot is that of one item of a list."""
        return (
            "#" in slot
            and self.nodes[Slot.parse(slot).node].each is not None
            and is_index(Slot.parse(slot).item)
        )

    def template(self, slot: str) -> Template:
        """Return the template that is rendered when a slot is ready."""
        name = Slot.parse(slot).node
        return self.bodies[name] if self.bodies and self.is_one_of_many(slot) else self.arguments[name]

    def keeps_failure(self, slot: str) -> bool:
        """Return true if the node of this slot is told of a failure there, and goes on from it."""
        if Slot.parse(slot).scope:
            return True
        return "#" in slot and self.kinds[self.nodes[Slot.parse(slot).node].kind].keeps_failure(
            Slot.parse(slot).item
        )

    def is_poll(self, name: str) -> bool:
        """Return true for a node whose rounds are the tries of a poll: they have one effect."""
        node = self.nodes.get(name)
        return node is not None and node.loop is not None and node.loop.poll is not None

    def readiness(self, state: State, slot: str) -> str:
        """Return the readiness of a slot with tokens: PENDING, READY, SKIPPED or FAILS."""
        if "#" in slot:
            return READY  # an item waits for no edges
        name, arrived = Slot.parse(slot).node, state.tokens[slot]
        if name in self._single:
            return READY if True in arrived.values() else SKIPPED
        return self.readiness_at(name, arrived, state.errors.get(slot))

    def readiness_at(
        self,
        name: str,
        arrived: Mapping[str, bool],
        errors: Mapping[str, tuple[Failure, ...]] | None = None,
    ) -> str:
        """Return the readiness of a node, by arrived tokens (sender to alive) and the errors on its edges."""
        tails = self.index.tails_of.get(name, _NO_TAILS)
        if not errors:
            return readiness_of(self.nodes[name], tails, arrived)
        dead = {
            src: unrescued(self.index, src, name, arrived, carried)
            for src, carried in errors.items()
            if not arrived.get(src)
        }
        failed = [src for src, left in dead.items() if not all(one.handled for one in left)]
        lost = [src for src, left in dead.items() if left and src not in failed]
        return readiness_of(self.nodes[name], tails, arrived, failed, lost)

    def has_come(self, state: State, slot: str) -> bool:
        """Return true if all that the join at `slot` waits for has arrived, and lets it run."""
        return self.readiness(state, slot) == READY

    def loop_around(self, reader: str, node: str) -> str:
        """Return the last node of the innermost loop around both; only for nodes that have one."""
        return self.nodes[reader].loops[self.index.shared(reader, node) - 1]

    def first_of(self, reader: str, path: Path) -> Template:
        """Return the output of the last node of the loop around a reader before the first round, if `path`
        names that.
        """
        is_tail = bool(self.initials) and self.loop_around(reader, path.node) == path.node
        return self.initials.get(path.node, NO_VALUE) if is_tail else NO_VALUE

    def _reach(self) -> dict[str, int]:
        """Return for each node: itself and all that can run after it, in a later round of its loops too."""
        forward: dict[str, int] = {}
        for node in reversed(self.graph.nodes):
            mask = self._bit[node.name]
            for follower in node.after:
                mask |= forward[follower]
            forward[node.name] = mask
        ahead = {}
        for node in self.graph.nodes:
            ahead[node.name] = forward[node.name]
            if node.loops:
                outermost = self.nodes[node.loops[0]].loop
                assert outermost is not None
                ahead[node.name] |= forward[outermost.back_to]
        return ahead

    def _find_readers(self) -> dict[str, int]:
        """Return for each node: those that read its output, and the ends of loops that carry it into the next
        round.
        """
        readers = dict.fromkeys(self.nodes, 0)
        for name, node in self.nodes.items():
            for path in self._paths_at(node):
                if path.is_previous:
                    tail = self.loop_around(name, path.node)
                    readers[path.node] |= self._bit[tail]
                    known = self.carried.get(tail, ())
                    self.carried[tail] = known if path.node in known else (*known, path.node)
                    for first in self.first_of(name, path).paths:
                        if first.node:
                            readers[first.node] |= self._bit[name]
                elif path.node in readers:
                    readers[path.node] |= self._bit[name]
                elif path.root == "last_error" and _asks_batch(path, node.workflow):
                    self.tells_batch = True
                elif path.root == "join" and path.steps[0] in ("outputs", "batch"):
                    for before in node.before:
                        readers[before] |= self._bit[name]
        return readers

    def _paths_at(self, node: Node) -> Iterator[Path]:
        yield from self.arguments[node.name].paths
        if node.each is not None:
            yield from self.bodies[node.name].paths
        for template in filter(None, (self.keys.get(node.name), self.approvals.get(node.name))):
            yield from template.paths
        for policy, template in self.failover.get(node.name, ()):
            yield from template.paths
            if policy.when.condition is not None:
                yield from names_of(policy.when.condition)
        for rule in node.catch:
            if rule.condition is not None:
                yield from names_of(rule.condition)
        if node.when is not None:
            yield from names_of(node.when)
        if node.loop is not None:
            yield from names_of(node.loop.condition)
            yield from _pause_of(node.loop)
        if node.branch is not None:
            for choice in node.branch.rules:
                yield from names_of(choice.condition)
        if node.name in self.choices:
            yield self.choices[node.name]

    def has_other_schemas(self, tools: Mapping[str, ToolSpec]) -> bool:
        """Return true if a deployed tool has other schemas than the graph, by their hashes."""
        works = [node.work for node in self.graph.nodes if node.work.schema_hash]
        return any(work.schema_hash != tools[work.tool].schema_hash for work in works if work.tool in tools)

    def with_unfit(self, unfit: Mapping[str, str]) -> Program:
        """Return the program with the nodes that do not fit the schemas of the deployed tools."""
        program = copy(self)
        program.unfit = unfit
        return program

    def with_earlier(self, earlier: Sequence[tuple[int, Program]]) -> Program:
        """Return the program of a saga that ran these programs before, each up to a version of its log.
        Nodes of these have no edges any more; the saga may still undo their effects.
        """
        program = copy(self)
        program.index = copy(self.index)
        program.earlier = tuple(earlier)
        known = (dict(one.nodes) for _, one in reversed(earlier))
        program.nodes = program.index.nodes = dict(ChainMap(dict(self.nodes), *known))
        return program

    def at(self, version: int) -> Program:
        """Return the program that the saga ran when it wrote the entry of this version."""
        return next((program for last, program in self.earlier if version <= last), self)

    def paths(self) -> Iterator[tuple[str, Path]]:
        """Yield each path in the document with the node that reads it; empty for the output of the saga."""
        for node in self.graph.nodes:
            for path in self._paths_at(node):
                yield node.name, path
        for path in (*self.output.paths, *(() if self.handler is None else self.handler.paths)):
            yield "", path

    def ahead_of(self, slots: Collection[str], late: Collection[str] = ()) -> int:
        """Return every node that can still run when these slots hold the tokens in flight; nothing follows
        from those that are `late`.
        """
        mask = 0
        for slot in slots:
            mask |= self._ahead[Slot.parse(slot).node]
        for slot in late:
            mask |= self._bit[Slot.parse(slot).node]
        return mask

    def ahead_in(self, state: State) -> int:
        """Return every node that can still run. Nothing follows from a map that has gone on."""
        late = state.late if self.has_late else ()
        return self.ahead_of([slot for slot in state.tokens if owner_of(slot) not in late], late)

    def most_left(self, state: State) -> int | None:
        """Return the number of nodes that can still run; None: a loop, a function or an agent decides,
        or none can.
        """
        ahead = self.ahead_in(state)
        return ahead.bit_count() or None if not ahead & self._uncounted else None

    def most_rounds(self, node: str) -> list[int]:
        """Return the most rounds of each loop around a node, the outermost first."""
        loops = (self.nodes[tail].loop for tail in self.nodes[node].loops)
        return [loop.max_iterations for loop in loops if loop is not None]

    def takers(self, state: State, signal: str) -> Iterator[Node]:
        """Yield the waits for a signal of this name that are open or may yet be reached.

        Of those of a function, the open ones are known.
        """
        for slot, work in state.open.items():
            if "#" in slot and work.signal == signal:
                yield self.node_at(state, slot)
        ahead = self.ahead_in(state)
        yield from (
            node for node in self.graph.nodes if node.signal == signal and self._bit[node.name] & ahead
        )

    def loses(self, state: State, signal: str) -> bool:
        """Return true if a signal of this name is lost now: no wait is open for it, and no wait takes a
        signal that came before it.
        """
        if any(work.signal == signal for work in state.open.values()):
            return False
        takers = [node for node in self.graph.nodes if node.signal == signal]
        return bool(takers) and all(node.work.fresh for node in takers)

    def is_ahead(self, node: str, ahead: int) -> bool:
        """Return true if the node can still run."""
        return bool(self._bit[node] & ahead)

    def is_read(self, node: str) -> bool:
        """Return true if a node reads the output of `node` at all."""
        return node in self._for_output or bool(self._readers[node])

    def is_needed(self, node: str, ahead: int) -> bool:
        """Return true if the output of `node`, which may be of an earlier graph, can still be read."""
        return node in self._for_output or bool(self._readers.get(node, 0) & ahead)


def _asked(node: Node) -> Any:
    """Return the template of the texts in questions about a node's calls; None without."""
    if node.agent is not None:
        return node.agent.approvals or None
    approval = node.work.approval
    return None if approval is None else approval.says


def _pause_of(loop: Loop) -> tuple[Path, ...]:
    return () if loop.pause is None else compile_template(loop.pause.of).paths


def _asks_batch(path: Path, starts: str) -> bool:
    """Return true if the path reads `last_error.batch`.

    A named graph that is started may read all fields of `last_error`.
    """
    return path.steps[:1] == ("batch",) or (not path.steps and bool(graph_name(starts)))


def _failover_of(graph: Graph, kinds: Kinds) -> dict[str, Policies]:
    shared = [(policy, compile_template(policy.then.arguments)) for policy in graph.failover]
    return {
        node.name: (
            *((policy, compile_template(policy.then.arguments)) for policy in node.failover),
            *(one for one in shared if matches_patterns(node.name, one[0].when.nodes)),
        )
        for node in graph.nodes
        if kinds[node.kind].has_attempts
    }
