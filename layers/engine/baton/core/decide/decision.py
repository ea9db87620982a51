"""Decisions: the commands of the core to the runtime, as data, and the decision in the making.
The performers are in runtime/engine/run.py and runtime/worker.

Nothing acts before it is written: a command is performed after the entry that holds its reason, and is
idempotent. What a later decision needs to know of it is in `FetchedValues`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from baton.core.conditions import SandboxQuestion
from baton.core.decide import spending
from baton.core.decide.context import EvaluationContext, FetchedValues, LackingError, started
from baton.core.decide.program import FAILS, READY, Program
from baton.core.decide.spending import DEFAULT, Bounds
from baton.core.decide.unknown_outcomes import (
    ends_first,
)
from baton.core.effects.risk import RiskRule
from baton.core.expressions import ExpressionError, excess_of
from baton.core.failures.alternatives import Alternative
from baton.core.graph.graph import INPUT, Cap, FunctionParts, Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.received import PendingNotices
from baton.core.log.folding.workflow_limits import left_to_child
from baton.core.log.functions import FunctionCall, FunctionProgress
from baton.core.log.records import Child
from baton.core.log.scopes import Agent, act_digest
from baton.core.log.slots import Slot, owner_of
from baton.core.log.state import State
from baton.core.models.usage import Allowance
from baton.core.nodes.base import Activation, UnfitError


class RunStep(Struct, frozen=True, gc=False):
    """Run a tool once: this attempt, after the `hooks` (tools) and by the alternative `way`.

    `failure`: that of the last attempt.
    `look`: only find out if the last attempt has acted. `since`: the time when the step became ready, where
    that matters.
    `approved`: the digests of the calls that people have approved; `risk`: the document's own rules, if any.
    `decided`: the claim of an attempt whose outcome a person has given: it has not happened, or gave the
    output `given`.
    `digest` names the call, where a model may plan an equal one. `correction`: the fault of a model's last
    answer; `refused`: that answer, as JSON.
    `cap`: the limit on the whole saga's cost by its document, and `tokens`: that on the tokens of its models;
    `shares`: its graph starts sagas, which share these limits.
    `costs`: a step of its graph has a cost, so that limits of money may hold for all of them.
    `generation`: incarnation of its slot, or of its subject. `within_ms`: the longest duration of the
    attempt, whatever its timeout; 0: the timeout alone. `reversible`: parts of the call may have to be kept.
    `key`: what makes calls the same, if the document says so.
    `unfit`: the reason why the schema of the deployed tool does not fit.
    """

    slot: str
    node: Node
    place: Slot
    arguments: Any
    attempt: int = 1
    hooks: tuple[str, ...] = ()
    way: Alternative | None = None
    failure: ev.Failure | None = None
    since: int = 0
    look: bool = False
    decided: str = ""
    given: ev.Value | None = None
    approved: tuple[str, ...] = ()
    risk: tuple[RiskRule, ...] | None = None
    digest: str = ""
    correction: str = ""
    refused: str = ""
    cap: Cap | None = None
    tokens: Cap | None = None
    shares: bool = False
    costs: bool = False
    generation: int = 0
    within_ms: int = 0
    reversible: bool = False
    key: str = ""
    unfit: str = ""


When = Literal["first", "after"]


class Command(Struct, frozen=True, gc=False):
    """An action of the runtime.

    `first`: no decision is possible without it. `after`: once the events of the decision are appended.
    """

    when: ClassVar[When] = "after"


class FetchValues(Command, frozen=True):
    """Fetch blobs that an expression names, and entries of the log."""

    when: ClassVar[When] = "first"
    refs: frozenset[str]
    entries: frozenset[int] = frozenset()


class JudgeConditions(Command, frozen=True):
    """Judge conditions in Python."""

    when: ClassVar[When] = "first"
    questions: frozenset[SandboxQuestion]


class RunFunctions(Command, frozen=True):
    """Let functions run on until they wait for operations or are over."""

    when: ClassVar[When] = "first"
    calls: tuple[FunctionCall, ...]


class LookAtStanding(Command, frozen=True):
    """Measure how long the time of these children, by id, has stood still."""

    when: ClassVar[When] = "first"
    children: tuple[str, ...]


class StopSteps(Command, frozen=True):
    """Stop the running steps at these slots, or all of them.

    The rest of the decision is not performed; the saga decides anew.
    """

    slots: tuple[str, ...] = ()


class CancelChildren(Command, frozen=True):
    """Ask children (slot, child) to stop. A later decision records those that were asked.

    `revert`: the children take their effects back before they end; of those that were left behind (without
    a slot), the ones that are in the list of the saga.
    """

    children: tuple[tuple[str, Child], ...]
    revert: bool = False


class StartHandler(Command, frozen=True):
    """Start the failure handler of a saga that is about to end. A later decision records the end, which names
    the handler, or says why there is none: no worker visits a saga that has ended.
    """

    child: Child


class RunSteps(Command, frozen=True):
    """Run the steps that are ready and not running."""

    steps: tuple[RunStep, ...]


class TendChildren(Command, frozen=True):
    """Start children (slot, child) that do not exist, and ask the existing ones if they have ended.

    Members of the scope of a saga that stops are asked to take their effects back, and if they have.
    """

    children: tuple[tuple[str, Child], ...]


class SendNotices(Command, frozen=True):
    """Send people outside their notices, and put and withdraw rows in the inbox."""

    pending: PendingNotices


C = TypeVar("C", bound=Command)


class Decision(Struct, frozen=True, gc=False):
    """The next actions of a saga.

    record: facts to append before anything else happens. commands: actions, at most one of each kind, in the
    order in which they are performed. again: the time at which a step is tried again. due: the time at which
    time alone changes the decision (None: never). has_more: more can be decided once the earlier decisions
    are in the log. after: the state after the facts, if known.
    """

    record: tuple[ev.Event, ...] = ()
    commands: tuple[Command, ...] = ()
    again: int | None = None
    due: int | None = None
    has_more: bool = False
    after: State | None = None

    def of(self, kind: type[C]) -> C | None:
        """Return the command of this kind, or None."""
        for command in self.commands:
            if type(command) is kind:
                return command
        return None

    @property
    def is_lacking(self) -> bool:
        """True if a fetch is needed before more can be decided; decide again with its result."""
        return bool(self.commands) and any(command.when == "first" for command in self.commands)


def next_up(run: Collection[RunStep], children: Collection[tuple[str, Child]]) -> tuple[Command, ...]:
    """Return the commands for work that can go on now."""
    steps = (RunSteps(tuple(run)),) if run else ()
    return (*steps, TendChildren(tuple(children))) if children else steps


def missing(
    needs: Collection[str],
    questions: Collection[SandboxQuestion],
    entries: Collection[int] = (),
) -> tuple[Command, ...]:
    """Return the commands that fetch the data needed for a decision."""
    fetch = (FetchValues(frozenset(needs), frozenset(entries)),) if needs or entries else ()
    return (*fetch, JudgeConditions(frozenset(questions))) if questions else fetch


ENDS = (READY, FAILS)


def activation(program: Program, state: State, slot: str) -> Activation:
    """Return the node at a slot, with its round and item."""
    place = Slot.parse(slot)
    return Activation(slot, program.node_at(state, slot) if place.item else program.nodes[place.node], place)


class DecisionBuilder(Struct):
    """A decision in the making. `state` moves on with every fact noted."""

    program: Program
    state: State
    now: int
    running: Collection[str]
    found: FetchedValues
    record: list[ev.Event] = []
    run: list[RunStep] = []
    children: list[tuple[str, Child]] = []
    due: int | None = None
    again: int | None = None
    """Time at which the first of the waiting steps is tried again."""
    needs: set[str] = set()
    entries: set[int] = set()
    questions: set[SandboxQuestion] = set()
    functions: list[FunctionCall] = []
    busy: dict[str, int] | None = None
    """The counts of scheduling.py."""
    bounds: Bounds = DEFAULT
    reserved: int | None = None
    """Highest cost of running and starting steps in micro-dollars; computed when it is needed."""

    @property
    def skew_ms(self) -> int:
        """Largest difference between the clocks of two processes, in milliseconds."""
        return self.program.skew_ms

    @property
    def limits(self) -> Limits:
        """Limits of the deployment."""
        return self.program.limits

    @property
    def most_bytes(self) -> int:
        """Most bytes, as JSON, of a value that the engine makes."""
        return self.bounds.value_bytes

    def note(self, event: ev.Event) -> None:
        """Record a fact; the rest of this decision is made as if it were in the log.

        Raises `LackingError`.
        """
        if self.program.has_rounds:
            *first, event = ends_first(self.program, self.state, event, self.now, self.running, self.found)
            for one in first:
                self.note(one)
        self.record.append(event)
        self.state = apply(self.state, event)
        if self.program.index.settles_joins_one_by_one:
            for token in event.emits:
                self.close(token.slot)

    def close(self, slot: str) -> None:
        """Fire a join that becomes ready before every edge has arrived; it ignores the edges that arrive
        later.
        """
        state, program = self.state, self.program
        place = Slot.parse(slot)
        node = program.nodes[place.node]
        arrived = state.tokens.get(slot)
        if (
            arrived is None
            or node.join is None
            or place.item
            or slot in state.closed
            or program.readiness(state, slot) not in ENDS
        ):
            return
        unspoken = tuple(src for src in node.before if src not in arrived)
        is_later_round = not program.index.tails_of.get(place.node, frozenset()).isdisjoint(arrived)
        if unspoken and not is_later_round:
            by = tuple(src for src in node.before if arrived.get(src))
            self.note(ev.JoinFired(node=place.node, iteration=place.iteration, by=by, unspoken=unspoken))

    def due_by(self, moment: int) -> None:
        """Note a time at which the saga is checked again, at the latest."""
        self.due = moment if self.due is None else min(self.due, moment)

    def again_at(self, moment: int) -> None:
        """Note the time at which a waiting step is tried again."""
        self.due_by(moment)
        self.again = moment if self.again is None else min(self.again, moment)

    def lacks(self, error: LackingError) -> None:
        self.needs |= error.needs
        self.entries |= error.entries
        self.questions |= error.questions
        self.functions += error.functions

    # ---- what a kind of node gets (core/nodes/base.py)

    def arguments(self, at: Activation) -> Any:
        if at.place.item and (given := self._given(at)) is not None:
            own = self.program.kinds[at.node.kind].template(at.node) or {}
            return {**given, **{name: value for name, value in own.items() if value is not None}}
        try:
            return self.context(at.slot).render(self.program.template(at.slot))
        except ExpressionError as error:
            raise UnfitError(ev.failed_with("input_unbound", str(error), at.node.name)) from error

    def _given(self, at: Activation) -> Mapping[str, Any] | None:
        """Return the arguments of an item from its node, or None."""
        return self.program.kinds[self.program.nodes[at.place.node].kind].gives(at, self)

    def key(self, at: Activation) -> str:
        """Return the key that the document gives to a call. Raises `UnfitError`, `LackingError`."""
        try:
            said = self.context(at.slot).render(self.program.keys[at.place.node])
        except ExpressionError as error:
            raise UnfitError(ev.failed_with("input_unbound", str(error), at.node.name)) from error
        text = said if isinstance(said, str) else "" if said is None else encode(said).decode()
        if not text.strip():
            raise UnfitError(ev.Failure("key_incomplete", "its `key` is empty", at.node.name))
        return text

    def value(self, at: Activation) -> ev.Value:
        return self.made(at, self.arguments(at), "is to get")

    def made(self, at: Activation, given: Any, does: str = "gives") -> ev.Value:
        if excess := excess_of(given, self.most_bytes):
            text = f"what the node {does} is too large: {excess}"
            raise UnfitError(ev.Failure("value_too_large", text, at.node.name))
        return ev.Value(v=given)

    def started(self, at: Activation) -> tuple[ev.Value, dict[str, ev.Value]]:
        if at.place.item and (given := self._given(at)) is not None:
            return self.made(at, {INPUT: given}, "is to get"), {}
        try:
            rest, passed = started(self.context(at.slot), self.program.template(at.slot))
        except ExpressionError as error:
            raise UnfitError(ev.failed_with("input_unbound", str(error), at.node.name)) from error
        return self.made(at, rest, "is to get"), passed

    def content(self, at: Activation, value: ev.Value) -> Any:
        return self.context(at.slot).content(value)

    def contents(self, at: Activation, values: Sequence[ev.Value]) -> list[Any]:
        if missing := self.found.lacks(value.ref for value in values if value.ref):
            raise LackingError(missing)
        return [self.content(at, value) for value in values]

    def looked(self, at: Activation) -> tuple[int, bool] | None:
        """Return the time of the last poll of the open work, and true if it was over then; else None."""
        return self.found.looked.get(at.slot)

    def ran(self, call: FunctionCall) -> FunctionProgress:
        known = self.found.functions
        if known is None or (progress := known.progress(call)) is None:
            raise LackingError(functions=(call,))
        return progress

    def function(self, at: Activation) -> FunctionParts:
        parts = self.program.nodes[at.place.node].function
        assert parts is not None, "nothing else has operations"
        return parts

    def may_spend(self, at: Activation) -> bool:
        node, terms = at.node, self.bounds.money
        if not terms.saga or (not node.cost and self.state.money.spent < terms.saga):
            return True
        if self.reserved is None:
            self.reserved = sum(self.program.node_at(self.state, slot).cost for slot in self.running)
        answer = spending.ask_money(self.state, terms, node, self.reserved)
        if isinstance(answer, ev.Parked):
            notice = spending.parked_notice(spending.saga_key(self.state, terms), answer, self.now)
            self.note(ev.NoticeDue(notice=notice))
            self.note(answer)
        if answer == spending.BEGINS:
            self.reserved += node.cost
        return answer == spending.BEGINS

    def left_to_child(self, at: Activation, agent: Agent | None) -> Allowance | None:
        node, limits = self.program.nodes[at.place.node], self.program.graph.limits
        return left_to_child(self.state, node, limits, agent)

    def context(self, slot: str, output: ev.Value | None = None) -> EvaluationContext:
        """Return the values that expressions at a slot can read."""
        return EvaluationContext(self.program, self.state, self.found, slot, output)


def late_last(state: State, run: list[RunStep]) -> list[RunStep]:
    """Return the steps in the order in which they get a place: nodes after a map that has gone on come before
    its items.
    """
    late = state.late
    return sorted(run, key=lambda step: owner_of(step.slot) in late)


def one_after_a_crash(builder: DecisionBuilder, run: list[RunStep]) -> list[RunStep]:
    """Return one of the steps after a crash, another one first each time, because any of them may have caused
    it.
    """
    state = builder.state
    if not run or not state.recovery.epoch or state.recovery.epoch != state.epoch:
        return run
    turn = state.counts.revivals % len(run)
    return [] if builder.running else run[turn : turn + 1]


def next_attempt(builder: DecisionBuilder, at: Activation, arguments: Any) -> RunStep:
    """Return the attempt to make now."""
    state, limits = builder.state, builder.program.graph.limits
    failing, since = state.failing.get(at.slot), state.first_started_at.get(at.slot, 0)
    cap, tokens = limits.get("cost"), limits.get("tokens")
    if (allowed := state.origin.allowed) is not None and allowed.tokens:
        tokens = min((one for one in (Cap(most=allowed.tokens), tokens) if one), key=lambda cap: cap.most)
    if failing is not None and failing.arguments:
        arguments = {**arguments, **failing.arguments}
    step = RunStep(
        at.slot,
        at.node,
        at.place,
        arguments,
        since=since,
        approved=state.approved.get(at.slot, ()),
        risk=builder.program.graph.risk,
        digest=digest_of(builder, at, arguments) if builder.program.planned else "",
        cap=cap,
        tokens=tokens,
        shares=builder.program.shares,
        costs=builder.program.graph.costs,
        generation=state.incarnation_of(at.place),
        reversible=builder.program.has_reversible and at.node.is_reversible,
        key=builder.key(at) if at.node.key else "",
    )
    if failing is None:
        return step
    return replace(
        step,
        attempt=failing.attempts + 1,
        hooks=failing.hooks,
        way=failing.way,
        failure=failing.failure,
        look=failing.look,
        decided=failing.decided,
        given=failing.given,
        correction=failing.correction,
        refused=failing.refused,
    )


def digest_of(builder: DecisionBuilder, at: Activation, arguments: Any) -> str:
    """Return the name of the call if a model may plan an equal one, else an empty text."""
    failing = builder.state.failing.get(at.slot)
    # What is called before it, or in its place, makes another call of it.
    is_plain = failing is None or (failing.way is None and not failing.hooks)
    if not is_plain or at.place.scope or at.node.tool not in builder.program.planned:
        return ""
    return act_digest(builder.state.origin.user, at.node.tool, arguments)
