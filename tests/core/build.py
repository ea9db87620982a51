"""Values for the tests of the core: graphs, outcomes, strategies, and a saga carried on entry by entry.

Nothing here stands in for anything: it only calls the core and keeps what came out. No assertions about
behaviour, except those invariants that must hold after every single entry.
"""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from baton.core.conditions import SandboxAnswer
from baton.core.decide.context import FetchedValues, Standing
from baton.core.decide.decide import Decision, advance
from baton.core.decide.decision import CancelChildren, TendChildren
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.decide.spending import ANY_AMOUNT, DEFAULT, Bounds
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.failures.policy import ANY, PolicyChange, Rules
from baton.core.graph.graph import Graph, Node
from baton.core.log import codec
from baton.core.log import events as ev
from baton.core.log.folding import received
from baton.core.log.folding.fold import fold
from baton.core.log.folding.forks import fork_in, fork_to
from baton.core.log.folding.workflow_limits import counts_of
from baton.core.log.functions import KnownFunctions
from baton.core.log.state import State
from baton.core.nodes.registry import KINDS
from baton.errors import InvalidDefinition, Problem
from tests.core.asked import children_ended, steps_of
from tests.core.strategies import ROLLBACK

T0 = 1_700_000_000_000
TRACE = "00-0af7651916cd43dd8448eb211c80319c"
MORE = int(os.environ.get("BATON_EXAMPLES", "1"))
"""So many times the examples; `make soak` asks for more."""
# Neither limit on time: both are those of a machine that does nothing else.
PROPERTY = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=12 * MORE,
    suppress_health_check=[HealthCheck.too_slow],
)
FEW = settings(PROPERTY, max_examples=5 * MORE)
FEWEST = settings(PROPERTY, max_examples=3 * MORE)


# ---- graphs ------------------------------------------------------------------------------------------------


def task(name: str, *before: str, **more: Any) -> Node:
    return Node(name=name, kind="task", before=before, tool="t", arguments=more.pop("arguments", {}), **more)


def wait(name: str, *before: str, signal: str = "", ms: int | None = None) -> Node:
    return Node(name=name, kind="wait", before=before, signal=signal, wait_ms=ms)


def child(name: str, *before: str, workflow: str = "other", **more: Any) -> Node:
    return Node(
        name=name, kind="workflow", before=before, workflow=workflow, arguments=more.pop("arguments", {})
    )


AT_ONCE = {ANY: PolicyChange(ladder=(ROLLBACK,))}
"""Rules by which a step that fails has failed, for tests of something else than what is done about it."""


def program(*nodes: Node, output: Any = None, failures: Rules = AT_ONCE) -> Program:
    """A program of these nodes, which stand in a topological order; `after` follows from `before`."""
    after = {node.name: tuple(other.name for other in nodes if node.name in other.before) for node in nodes}
    linked = tuple(msgspec.structs.replace(node, after=after[node.name]) for node in nodes)
    return Program(Graph(name="w", nodes=linked, output=output, failures=dict(failures)), KINDS)


def chain(length: int, **arguments: Any) -> Program:
    nodes = [task(f"n{i}", *([f"n{i - 1}"] if i else []), arguments=arguments) for i in range(length)]
    after = [(node.name,) for node in nodes[1:]] + [()]
    linked = (msgspec.structs.replace(node, after=then) for node, then in zip(nodes, after, strict=True))
    return Program(Graph(name="w", nodes=tuple(linked), failures=AT_ONCE), KINDS)


# ---- documents ---------------------------------------------------------------------------------------------


def tool_spec(name: str = "t", result: Mapping[str, Any] | None = None, **parameters: Any) -> ToolSpec:
    """A tool that takes exactly these parameters, by their schemas; none is required."""
    return ToolSpec(
        name=name,
        version="1",
        effect="pure",
        parameters={
            "type": "object",
            "properties": parameters,
            "additionalProperties": False,
        },
        result=dict(result or {}),
        timeout_ms=60_000,
    )


TOOLS = {spec.name: spec for spec in (tool_spec(), tool_spec("table.hold", x={"type": "integer"}))}


def problems_of(text: str, tools: Mapping[str, ToolSpec] | None = None) -> tuple[Problem, ...]:
    """What is wrong with a document; empty when it compiles."""
    try:
        compile_document(text, TOOLS if tools is None else tools)
    except InvalidDefinition as error:
        return error.problems
    return ()


# ---- a saga ------------------------------------------------------------------------------------------------


def done(slot: str, value: Any = None, *, ref: str = "", attempt: int = 1) -> Outcome:
    output = ev.Value(ref=ref, size=9) if ref else ev.Value(v=value)
    return Outcome(slot=slot, attempt=attempt, started_at=T0, ended_at=T0 + 5, output=output)


def failed(slot: str, code: str = "tool_error", kind: str = "") -> Outcome:
    failure = ev.Failure(code, "it broke", slot, kind)
    return Outcome(slot=slot, attempt=1, started_at=T0, ended_at=T0 + 5, failure=failure)


def interrupted(slot: str) -> Outcome:
    return Outcome(slot=slot, attempt=1, started_at=T0, ended_at=T0 + 5, budget_ms=4_000)


def entry(version: int, *events: ev.Event, branch: int = 0, **more: Any) -> ev.Entry:
    fields = {"at": T0 + version, "invocation": "i1", **more}
    return ev.Entry(version=version, branch=branch, events=events, **fields)


def started(
    graph: Program, given: ev.Value | None = None, *, dead: Iterable[str] = (), **more: Any
) -> ev.SagaStarted:
    """Entry 1's event; the entry nodes named in `dead` get a dead token."""
    fields = {
        "workflow": "w",
        "graph": "hash",
        "tenant": "acme",
        "user": "ada",
        "saga": "s1",
        "at": T0,
        **more,
    }
    emits = tuple(
        ev.Token("", node.name, (0,) * len(node.loops), node.name not in set(dead))
        for node in graph.graph.nodes
        if not node.before
    )
    counts = counts_of(graph.graph)
    return ev.SagaStarted(input=given or ev.Value(), emits=emits, counts=counts, **fields)


class Saga:
    """A program and its log so far; every entry goes through the codec and is folded."""

    def __init__(self, graph: Program, given: Any = None, *, dead: Iterable[str] = (), **more: Any) -> None:
        self.program = graph
        self.now = T0
        self.epoch = 1
        self.state = State()
        self.entries: list[ev.Entry] = []
        self.states = [self.state]
        self.decision = Decision()
        self.terms = ANY_AMOUNT
        self.cancelled = set[tuple[str, bool]]()
        self.functions: KnownFunctions | None = None
        """The functions that the program runs."""
        self.children_have_acted = False
        """True: what is stopped with the saga has something to undo."""
        value = given if isinstance(given, ev.Value) else ev.Value(v=given)
        self.put(started(graph, value, dead=dead, **more), epoch=0, invocation="api")

    def put(self, *events: ev.Event, epoch: int | None = None, invocation: str = "") -> State:
        """Append one entry, as the holder of the lease unless told otherwise."""
        number = self.epoch if epoch is None else epoch
        written = entry(
            self.state.version + 1,
            *events,
            branch=self.state.lineage.branch,
            at=self.now,
            epoch=number,
            invocation=invocation or f"i{number}",
            cold=number > self.state.epoch,
            traceparent=f"{TRACE}-{self.state.version:016x}-01",
        )
        read = codec.decode_entry(codec.encode_entry(written))
        assert read == written
        fork = fork_in(read)
        if fork is not None:
            self.state = fork_to(self.state, self.states[fork.cut], read, fork)
        else:
            self.state = fold(self.state, read)
        assert all(self.state.tokens.values()), "a slot without a token is no slot"
        assert self.state.graphs or self.state.outputs.keys() <= self.program.nodes.keys()
        assert self.state.open.keys() <= self.state.tokens.keys()
        self.entries.append(read)
        self.states.append(self.state)
        return self.state

    def go(
        self,
        *outcomes: Outcome,
        running: Iterable[str] = (),
        blobs: Mapping[str, Any] | None = None,
        answers: Mapping[str, SandboxAnswer] | None = None,
        looked: Mapping[str, tuple[int, bool]] | None = None,
        standing: Standing | None = None,
        after_ms: int = 0,
        room: int = DEFAULT.entry_bytes,
    ) -> Decision:
        """Let time pass, settle the outcomes, append what follows; what is to be done then.

        With less `room` in an entry it takes several. Children that are to stop are asked once, and the decision has that, too;
        those that a stopping saga waits for report that they are cancelled.
        """
        self.now += after_ms
        asked: tuple[CancelChildren | TendChildren, ...] = ()
        while True:
            entries = (
                {one.version: one for one in self.entries}
                if self.program.has_reversible or self.state.undo.head
                else {}
            )
            found = FetchedValues(
                blobs or {},
                answers or {},
                looked=looked or {},
                entries=entries,
                standing=standing,
                cancelled=self.cancelled,
                functions=self.functions,
            )
            step = advance(
                self.program,
                self.state,
                outcomes,
                self.now,
                list(running),
                found,
                Bounds(entry_bytes=room, money=self.terms),
            )
            if step.events:
                self.put(*step.events)
            stops = self.state.is_stopping and self.state.undo.work is None
            waits_for = step.decision.of(TendChildren) if stops else None
            if waits_for is not None and not step.more:
                asked = (*asked, waits_for)
                self.put(*children_ended(waits_for.children, undoable=self.children_have_acted))
                outcomes = outcomes[step.taken :]
                continue
            command = step.decision.of(CancelChildren)
            if not step.more and (command is None or asked):
                rest = (one for one in step.decision.commands if one is not command)
                self.decision = replace(step.decision, commands=(*asked, *rest)) if asked else step.decision
                return self.decision
            if not step.more and command is not None:
                asked = (*asked, command)
                self.cancelled |= {(child.saga, command.revert) for _, child in command.children}
            outcomes = outcomes[step.taken :]

    def signal(self, name: str, payload: Any = None, key: str = "") -> None:
        self.put(
            ev.SignalReceived(
                name=name, key=key or f"k-{name}", payload=ev.Value(v=payload), by="ada", at=self.now
            ),
            epoch=0,
            invocation="api",
        )

    def cancel(self, grace_ms: int = 0) -> None:
        self.put(
            ev.CancelRequested(reason="enough", by="ada", at=self.now, grace_ms=grace_ms),
            epoch=0,
            invocation="api",
        )

    def tell(self) -> Decision:
        """Tell what is to be told, and say so."""
        self.go()
        self.note_told()
        return self.go()

    def note_told(self) -> None:
        """Say that everything was told and listed."""
        pending = received.pending_notices(self.state)
        shown = {
            ask.id: ev.Shown(to=received.audience_of(self.state, ask), until=ask.ends_at, told=True)
            for ask in pending.asks.values()
        }
        keys = tuple(notice.key for notice in pending.notices)
        self.put(ev.NoticesSent(keys=keys, shown=shown, withdrawn=pending.stale))

    def die(self) -> None:
        """The invocation died; the next one has taken the lease and says so."""
        dead = self.epoch
        self.epoch += 1
        self.put(ev.Revived(dead=f"i{dead}", dead_epoch=dead, dead_until=self.now, at=self.now))

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events of the last entry."""
        return [str(event.__struct_config__.tag) for event in self.entries[-1].events]


def ready(decision: Decision) -> list[str]:
    """The slots of the steps to run."""
    return [step.slot for step in steps_of(decision)]


def slots(state: State) -> set[str]:
    return set(state.tokens)


def replay(entries: Iterable[ev.Entry]) -> State:
    """A whole log folded, through all its forks."""
    states = [State()]
    for one in entries:
        fork = fork_in(one)
        states.append(fork_to(states[-1], states[fork.cut], one, fork) if fork else fold(states[-1], one))
    return states[-1]


# ---- strategies --------------------------------------------------------------------------------------------

_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
JSON: st.SearchStrategy[Any] = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def of_type(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field of an event, by its type: a new kind or field needs no new strategy."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return st.one_of(*map(of_type, arguments))
    if origin is tuple:
        return st.lists(of_type(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(of_type(arguments[0]), of_type(arguments[1]), max_size=3)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return of_struct(hint)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        int: st.integers(0, 2**53),
        str: st.text(max_size=20),
        bool: st.booleans(),
        type(None): st.none(),
        Any: JSON,
    }
    return simple[hint]


@cache
def of_struct(struct: type[Any]) -> st.SearchStrategy[Any]:
    """Values of a struct; none of its own kind in it."""
    hints = {name: hint for name, hint in typing.get_type_hints(struct).items() if hint != struct | None}
    return st.builds(
        struct, **{name: of_type(hints[name]) for name in struct.__struct_fields__ if name in hints}
    )


EVENTS: st.SearchStrategy[Any] = st.one_of(*map(of_struct, typing.get_args(ev.Event)))
ENTRIES = st.builds(
    ev.Entry,
    version=st.integers(1, 2**53),
    branch=st.integers(0, 9),
    at=st.integers(0, 2**53),
    epoch=st.integers(0, 99),
    invocation=st.text(max_size=20),
    cold=st.booleans(),
    traceparent=st.text(max_size=20),
    events=st.lists(EVENTS, max_size=4).map(tuple),
)
