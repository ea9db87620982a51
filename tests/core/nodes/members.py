"""Every leaf as a member of every scope, on graphs as data, and a player that knows neither. No assertions here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from baton.core.conditions.model import Compare
from baton.core.decide.decision import RunStep
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.failures.policy import ANY, FAIL, PolicyChange, RetryChange
from baton.core.graph.graph import (
    AgentParts,
    Asks,
    CallbackTimes,
    Catch,
    Each,
    FunctionParts,
    Graph,
    Loop,
    Node,
    ReplanParts,
    Undo,
)
from baton.core.log import events as ev
from baton.core.log.folding.received import CALLBACK, CallbackReport, callback_of
from baton.core.log.functions import AskedOperation, FunctionCall, FunctionProgress
from baton.core.log.records import Child
from baton.core.log.slots import Slot
from baton.core.log.state import ANSWER, State
from baton.core.log.work import Callback, Question, Wait
from baton.core.nodes.registry import KINDS
from tests.core.asked import children_of, steps_of
from tests.core.build import AT_ONCE, Saga

HOUR = 3_600_000
BROKEN = ev.Failure("broken", "it broke", "a")
ENDS_IT = {ANY: PolicyChange(last=FAIL, retry=RetryChange(max_attempts=1))}
LEAVES: dict[str, Mapping[str, Any]] = {
    "step": {"kind": "task", "tool": "leaf"},
    "time": {"kind": "wait", "wait_ms": HOUR},
    "signal": {"kind": "wait", "signal": "go", "wait_ms": HOUR},
    "question": {
        "kind": "human",
        "asks": Asks(type="approval", says={"title": "May it?"}, expires_ms=HOUR),
    },
    "callback": {"kind": "task", "tool": "leaf", "callback": CallbackTimes(timeout_ms=HOUR)},
    "promise": {"kind": "callback", "effect": "pure", "callback": CallbackTimes(timeout_ms=HOUR)},
    "child": {"kind": "workflow", "workflow": "other", "timeout_ms": HOUR},
    "start": {"kind": "start", "workflow": "other"},
    "graph": {"kind": "subgraph", "workflow": "w#g", "timeout_ms": HOUR},
}
_BACK = Undo(step=Node(name="a", kind="task", tool="back", arguments={}, failures=ENDS_IT))
ACTING = {
    **{f"undoable {name}": {**LEAVES[name], "undo": {"leaf": _BACK}} for name in ("step", "callback")},
    **{f"undoable {name}": LEAVES[name] for name in ("child", "graph")},
}
"""Leaves whose work is undone if the saga fails after it."""
CANNOT = {("time", "fails"), ("step", "expires"), ("start", "expires")}
"""A time comes; a step has no open work that could run out of time, and a start no time."""


def leaf(name: str, more: Mapping[str, Any]) -> Node:
    """The leaf as the node `a`, or as the part of it that a model calls `leaf`."""
    return Node(name="a", failures=ENDS_IT, **{"arguments": {}, **(LEAVES | ACTING)[name], **more})


def in_a_round(name: str, more: Mapping[str, Any]) -> Node:
    again = Compare(left="${loop.iteration}", operator="<", right=1)
    loop = Loop(back_to="a", condition=again, max_iterations=3)
    return leaf(name, {**more, "loops": ("a",), "loop": loop})


def in_a_map(name: str, more: Mapping[str, Any], **each: Any) -> Node:
    limits = {"at_once": 2, "most": 1_000, **each}
    return Node(name="a", kind="map", arguments=[1, 2], each=Each(do=leaf(name, {}), **limits), **more)


def in_an_agent(name: str, more: Mapping[str, Any]) -> Node:
    return agent_of(leaf(name, {"tool": "leaf"}), **more)


def agent_of(*calls: Node, **more: Any) -> Node:
    turn = Node(name="a", kind="agent", tool="std.model", arguments={}, failures=ENDS_IT)
    parts = AgentParts(
        turn=turn, calls=calls, turns=9, calls_in_a_turn=9, calls_in_all=99, repeatable=("leaf",)
    )
    return Node(name="a", kind="agent", arguments={"model": "m"}, agent=parts, **more)


def in_a_replan(name: str, more: Mapping[str, Any]) -> Node:
    plan = Node(name="a", kind="task", tool="std.model", arguments={}, failures=ENDS_IT)
    parts = ReplanParts(
        plan=plan, calls=(leaf(name, {"tool": "leaf"}),), steps=2, within_ms=99 * HOUR, repeatable=("leaf",)
    )
    rule = {ANY: PolicyChange(ladder=("replan",), retry=RetryChange(max_attempts=1))}
    return Node(name="a", kind="task", tool="first", arguments={}, replan=parts, failures=rule, **more)


def in_a_function(name: str, more: Mapping[str, Any]) -> Node:
    return function_of(name, leaf(name, {"kind": "function", "tool": "leaf"}), **more)


def function_of(name: str, *calls: Node, **more: Any) -> Node:
    parts = FunctionParts(name=name, calls=calls)
    return Node(name="a", kind="function", arguments={}, function=parts, **more)


class InTurn:
    """A function that asks for one operation after the other, and fails with the first that does."""

    def __init__(self, *operations: AskedOperation) -> None:
        self.operations = operations

    def progress(self, call: FunctionCall) -> FunctionProgress:
        number = max(call.work.heard - 1, 0) + len(call.results)
        if (failure := next((one.failure for one in call.results if one.failure), None)) is not None:
            return FunctionProgress(at=call.now, failure=failure)
        if number == len(self.operations):
            return FunctionProgress(at=call.now, output=ev.Value(v="returned"))
        return FunctionProgress(at=call.now, operations=(self.operations[number],))


def asked(item: str, name: str) -> AskedOperation:
    """A member of this leaf, as a function asks for it."""
    fields = LEAVES[name.removeprefix("undoable ")]
    given = ev.Value(v={"n": 7, "message": "Of the model", "title": "Mine?"})
    if fields["kind"] == "task":
        return AskedOperation(item=item, digest="d", tool="leaf", given=given)
    node = to_builtins(leaf(name, {}))
    return AskedOperation(item=item, digest="d", node={**node, "arguments": None}, given=given)


SCOPES: Mapping[str, Callable[[str, Mapping[str, Any]], Node]] = {
    "round": in_a_round,
    "map": in_a_map,
    "agent": in_an_agent,
    "replan": in_a_replan,
    "function": in_a_function,
}


@cache
def program_of(scope: str, name: str, *, caught: bool = False, **each: Any) -> Program:
    """The scope `a` with two members of this leaf; where it is `caught`, `h` goes on from its failure."""
    handlers = ("h",) if caught else ()
    more: dict[str, Any] = {"after": handlers, "catch": tuple(Catch(then=handlers) for _ in handlers)}
    node = in_a_map(name, more, **each) if each else SCOPES[scope](name, more)
    nodes = (
        node,
        *(Node(name=one, kind="pass", before=("a",), value="${last_error.code}") for one in handlers),
    )
    return Program(Graph(name="w", nodes=nodes, output="${ctx.a.output?}", failures=AT_ONCE), KINDS)


def undone_of(scope: str, name: str) -> Program:
    """The scope `a` with two members of this leaf, and behind it a step that fails, so that all of it is undone."""
    node = SCOPES[scope](name, {"after": ("b",)})
    fails = Node(name="b", kind="task", tool="boom", before=("a",), arguments={})
    return Program(Graph(name="w", nodes=(node, fails), failures=AT_ONCE), KINDS)


class _Died(Exception):
    """The worker has died behind a write."""


class Played(Saga):
    """A saga that is played to its end: steps return, people and others answer, and time passes.

    `fate`: `ok`, `fails`, or `expires` for members without any answer. `dies_at`: the number of the entry behind
    which the worker dies, once. `cancelled_at`: the same for a request to cancel.
    """

    def __init__(self, graph: Program, fate: str = "ok", *, dies_at: int = 0, cancelled_at: int = 0) -> None:
        self.fate, self.dies_at, self.cancelled_at = fate, dies_at, cancelled_at
        self.undone: list[str] = []
        """The slots of all that was undone."""
        self.called: dict[str, Any] = {}
        """The arguments of each step."""
        super().__init__(graph)
        if (parts := graph.nodes["a"].function) is not None:
            self.functions = InTurn(asked("leaf", parts.name), asked("leaf-2", parts.name))

    def put(self, *events: ev.Event, epoch: int | None = None, invocation: str = "") -> State:
        state = super().put(*events, epoch=epoch, invocation=invocation)
        if self.dies_at and len(self.entries) >= self.dies_at and epoch is None:
            self.dies_at = 0
            raise _Died
        return state

    def twin(self) -> Played:
        """A second saga that stands where this one does."""
        twin = copy(self)
        for name in ("entries", "states", "undone", "called", "cancelled"):
            setattr(twin, name, copy(getattr(self, name)))
        return twin

    def play(self) -> Played:
        outcomes: tuple[Outcome, ...] = ()
        for _ in range(80):
            try:
                decision = self.go(*outcomes)
                outcomes = ()
                if self.state.ended is not None:
                    return self
                if self.cancelled_at and len(self.entries) >= self.cancelled_at:
                    self.cancelled_at = 0
                    self.cancel()
                    continue
                outcomes = tuple(self._outcome(step) for step in steps_of(decision))
                undoes = [one for one in children_of(decision) if self.state.in_scope(one[0])]
                for slot, child in undoes:
                    self.undone.append(slot)
                    self.put(ev.ChildUndone(**Slot.parse(slot).fields, child=child.saga))
                if not outcomes and not undoes and not self._tell(children_of(decision)):
                    assert decision.due is not None, f"nothing can happen any more: {self.state.open}"
                    self.now = max(self.now, decision.due)
            except _Died:
                self.die()
                outcomes = ()
        raise AssertionError(f"it has no end: {self.state.tokens}")

    def _outcome(self, step: RunStep) -> Outcome:
        said = Outcome(
            slot=step.slot,
            attempt=step.attempt,
            started_at=self.now,
            ended_at=self.now + 1,
            tool=step.node.tool,
        )
        item = step.place.item
        self.called[step.slot] = step.arguments
        call = {"tool": "leaf", "arguments": {"n": 7, "message": "Of the model", "title": "Mine?"}}
        if step.place.scope:
            self.undone.append(step.slot)
            return replace(said, output=ev.Value())
        if step.node.tool == "boom":
            return replace(said, failure=BROKEN)
        if step.node.tool == "first":
            return replace(said, failure=ev.Failure("not_found", "it is not there", "a", "permanent"))
        if item == "plan":
            way = {"steps": [call, call], "why": "", "trade_offs": "", "score": 1.0}
            return replace(said, output=ev.Value(v={"alternatives": [way], "dropped": []}))
        if step.node.tool == "std.model":
            parts = self.program.nodes["a"].agent
            tools = [one.tool for one in parts.calls] if parts is not None and item == "t1" else []
            asks = [{**call, "tool": tool} for tool in (tools * 2 if len(tools) == 1 else tools)]
            return replace(
                said, output=ev.Value(v={"text": "", "calls": asks, "data": "answer", "tokens": [1, 1]})
            )
        if step.node.callback is not None:
            return replace(said, output=ev.Value(), handed=callback_of(self.state, step.slot))
        if self.fate == "fails":
            return replace(said, failure=BROKEN)
        return replace(said, output=ev.Value(v="ok"))

    def _tell(self, children: tuple[tuple[str, Child], ...]) -> bool:
        """Let others say what the members wait for; False: they say nothing."""
        for slot, child in children:
            if child.overdue or self.fate != "expires":
                status = "cancelled" if child.overdue else "failed" if self.fate == "fails" else "completed"
                failure = BROKEN if status == "failed" else None
                self.put(
                    ev.ChildReported(
                        slot=slot,
                        child=child.saga,
                        status=status,
                        output=ev.Value(v="ok"),
                        failure=failure,
                        undoable="b" in self.program.nodes,
                    )
                )
                return True
        if self.fate == "expires":
            return False
        told = [
            one for slot, work in self.state.open.items() if (one := self._said_of(slot, work)) is not None
        ]
        for one in told:
            super().put(one, epoch=0, invocation="api")
        return bool(told)

    def _said_of(self, slot: str, work: Any) -> ev.SignalReceived | None:
        said: dict[str, Any] = {"by": "ada", "at": self.now, "payload": ev.Value(v="ok")}
        failure = BROKEN if self.fate == "fails" else None
        if isinstance(work, Wait) and work.signal:
            key = f"go-{len(self.entries)}-{Slot.parse(slot).text}"
            return ev.SignalReceived(name=work.signal, key=key, failure=failure, **said)
        if isinstance(work, Question):
            answer = {"ask": work.ask.id, "action": "reject" if self.fate == "fails" else "approve"}
            return ev.SignalReceived(name=ANSWER, key=work.ask.id, **{**said, "payload": ev.Value(v=answer)})
        if isinstance(work, Callback):
            report = CallbackReport(status="failure", code="broken", message="it broke") if failure else None
            return ev.SignalReceived(
                name=CALLBACK, key=work.id, failure=None if report is None else report.failure(), **said
            )
        return None
