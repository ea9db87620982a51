"""The compiled graph: frozen, addressed by the hash of its content, stored as a blob.

What a running process derives from a graph for speed is in core/decide/program.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import msgspec

from baton.core.conditions.model import Condition
from baton.core.effects.risk import RiskRule
from baton.core.effects.toolspec import PURE, Approval
from baton.core.failures.alternatives import Alternative
from baton.core.failures.failover import Policy
from baton.core.failures.policy import PolicyChange
from baton.errors import UnknownEntry


class _Rule(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Rule for events of this type and source (empty: any source) for which the condition holds.

    `correlation_key`, and the fields of the subclasses, are templates of the event.
    """

    type: str
    source: str = ""
    when: Condition | None = None
    correlation_key: str = ""

    def is_for(self, type: str, source: str) -> bool:
        """Return true if the rule is for this type and source; its condition may still refuse the event."""
        return self.type == type and self.source in ("", source)


class StartRule(_Rule, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Rule by which an event starts a saga.

    `user` is a template of the event; without one, the saga is of the user who has registered the rule.
    `tag` names the version that is started; empty: the newest, which has the rule.
    """

    input: Any = None
    labels: dict[str, str] = {}
    user: str = ""
    tag: str = ""


class SignalRule(_Rule, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Rule by which an event is a signal for the saga that was started with the same correlation key."""

    signal: str
    payload: Any = None


class Events(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Rules for events.

    Of the rules that fit, the first of `start` counts, and of `signal` the first for each signal.
    """

    start: tuple[StartRule, ...] = ()
    signal: tuple[SignalRule, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The types of events that any rule is for, each once."""
        return tuple(sorted({rule.type for rule in (*self.start, *self.signal)}))


SKIP, QUEUE, ALLOW = "skip", "queue", "allow"
OVERLAPS = (SKIP, QUEUE, ALLOW)
"""Treatments of a tick while a saga of the schedule is still at work.

The tick is skipped, waits for the end of the saga, or starts a saga beside it.
"""


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Ticks by a cron expression of five fields, or one tick every `rate` ms.

    `catch_up`: number of overdue ticks that are started, the newest ones. `input` is a template.
    `labels` are the labels of its sagas. `tag` names the version that is started; empty: the newest.
    """

    cron: str = ""
    rate: int = 0
    timezone: str = "UTC"
    overlap: str = SKIP
    catch_up: int = 1
    input: Any = None
    labels: dict[str, str] = {}
    tag: str = ""


FORMAT = 1
FUNCTION = "function"
"""The kind of a node that runs a Python function, and of the steps in it."""
START = "start"
"""The kind of an operation of a function that starts a saga and does not wait for its end."""


class _Part(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Root of what graphs are made of: what a newer version added is refused, never passed over."""


class Rule(_Part, frozen=True, kw_only=True):
    """One rule of a branch: when the condition holds, on to these nodes."""

    condition: Condition
    then: tuple[str, ...]


class Branch(_Part, frozen=True, kw_only=True):
    """Choice of the next nodes: the first rule that holds, or the node of `among` that `choose` names."""

    rules: tuple[Rule, ...] = ()
    default: tuple[str, ...] = ()
    choose: str = ""
    among: tuple[str, ...] = ()

    @property
    def targets(self) -> frozenset[str]:
        """Every node that it can choose."""
        return frozenset((*self.default, *self.among, *(name for rule in self.rules for name in rule.then)))


class Pause(_Part, frozen=True, kw_only=True):
    """Pause between two rounds: `ms`, each time `factor` times as long, up to `most_ms`.

    `of`, a template of a duration, takes their place.
    """

    ms: int = 0
    factor: float = 1.0
    most_ms: int = 0
    of: Any = None


class Poll(_Part, frozen=True, kw_only=True):
    """Loop of one node that asks again.

    No round begins later than `within_ms` after the first (0: no deadline).
    A loop that gives up fails as a poll does.
    """

    within_ms: int = 0


class Loop(_Part, frozen=True, kw_only=True):
    """Loop, held by its last node. `max_iterations` counts rounds.

    `initial`: a template of the node's output before the first round, for nodes that read it.
    """

    condition: Condition
    max_iterations: int
    back_to: str
    break_path: tuple[str, ...] = ()
    timeout_path: tuple[str, ...] = ()
    pause: Pause | None = None
    initial: Any = None
    poll: Poll | None = None


class Join(_Part, frozen=True, kw_only=True):
    """Condition under which a node with several incoming edges runs.

    `need`: number of live edges, 0 for all edges.
    `tolerated`: number of edges that may fail; -1 if the document gives none, so that a failure before it is
    not the join's.
    `rest`: `cancel` or `run` the nodes that are not done when the join fires.
    """

    need: int = 0
    tolerated: int = -1
    rest: str = "cancel"


class Cap(_Part, frozen=True, kw_only=True):
    """One limit: the most there may be, and what happens beyond it: terminate, throttle or summarise."""

    most: int
    then: str = "terminate"


class Catch(_Part, frozen=True, kw_only=True):
    """Rule for a failed node: `then` come next if the failure fits. An empty field fits every failure."""

    codes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    condition: Condition | None = None
    then: tuple[str, ...]

    @property
    def fits_all(self) -> bool:
        """Return true if the rule is for every failure."""
        return not self.codes and not self.kinds and self.condition is None

    def fits(self, code: str, kind: str) -> bool:
        """Return true if the rule is for this code and class of failure; its condition may still refuse."""
        return (not self.codes or code in self.codes) and (not self.kinds or kind in self.kinds)


class Asks(_Part, frozen=True, kw_only=True):
    """Question that a node asks a person.

    `says` is a template: title, message, details, options, takeover, and the recipient `to`.
    `type` is one of TYPES of core/log/questions.py. `schema` is the JSON Schema of the answer's data.
    """

    type: str
    says: Any
    expires_ms: int
    schema: Any = None


class CallbackTimes(_Part, frozen=True, kw_only=True):
    """Milliseconds that a node waits for work elsewhere, and between its heartbeats (0: no heartbeat)."""

    timeout_ms: int
    heartbeat_ms: int = 0


class Node(_Part, frozen=True, kw_only=True):
    """One node.

    A flat struct for every kind: the order of the fields is that of the stored bytes.
    New fields are appended.
    """

    name: str
    kind: str  # one of core/nodes/
    before: tuple[str, ...] = ()  # forward edges, both ways; a loop's back edge is in neither
    after: tuple[str, ...] = ()
    arguments: Any = None  # the document's `with`
    tool: str = ""
    tool_version: str = ""
    schema_hash: str = ""
    effect: str = ""
    timeout_ms: int = 0  # of an attempt; 0: the engine's default
    wait_ms: int | None = None  # None: the wait has no time limit
    wait_for: Any = None  # templates of a duration and of a time
    wait_until: Any = None
    signal: str = ""
    workflow: str = ""
    value: Any = None  # what a node gives that runs nothing
    when: Condition | None = None
    branch: Branch | None = None
    loop: Loop | None = None
    join: Join | None = None
    loops: tuple[str, ...] = ()  # the last nodes of the loops around it, outermost first
    output_schema: Any = None
    limits: dict[str, Cap] = {}  # fan_out, hops, wall_time (ms), bytes, cost (micro-dollars)
    failures: dict[str, PolicyChange] = {}  # rules by code or class, over the graph's
    failover: tuple[Policy, ...] = ()  # asked before the graph's
    catch: tuple[Catch, ...] = ()
    domain: str = ""
    cost: int = 0  # reserved for each attempt, in micro-dollars
    timed: bool = False  # it matters when the node became ready
    ways: tuple[Alternative, ...] = ()  # in the order in which they are tried
    hooks: dict[str, str] = {}  # what can be done before a retry, and the tool that does it
    asks: Asks | None = None
    approval: Approval | None = None  # whether a person is asked before the tool acts
    callback: CallbackTimes | None = None  # the tool hands the work over, and the node waits for it
    agent: AgentParts | None = None
    replan: ReplanParts | None = None  # what a model may put in the place of a step that has failed
    undo: dict[str, Undo] = {}  # by tool that may have done the node's work: what takes that back
    stays: bool = False  # nothing takes it back
    key: str = ""  # template of the text that makes calls the same, in place of what the tool says
    breaker: str = ""  # what one circuit breaker guards in common, in place of what the tool says
    each: Each | None = None  # what is done for each item of the list that `arguments` give
    fresh: bool = False  # a wait takes only what comes while it is open
    verified: bool = (
        False  # its tool is idempotent, and names another one that can look whether a call has happened
    )
    function: FunctionParts | None = None  # the code that the node runs

    @property
    def work(self) -> Node:
        """The work of the node: the node itself, or the node that runs for each item of its list."""
        return self if self.each is None else self.each.do

    @property
    def starts(self) -> tuple[str, ...]:
        """The workflows and named graphs that it starts, or lets its model start."""
        calls = () if self.agent is None else self.agent.calls
        return tuple(one.workflow for one in (self.work, *calls) if one.workflow)

    @property
    def is_reversible(self) -> bool:
        """True if an inverse exists for a call of the node itself."""
        return bool(self.undo)

    def keeps(self, tool: str) -> bool:
        """Return true if the inverse of a call of this tool needs arguments of the call."""
        return tool in self.undo and self.undo[tool].keeps != ()

    def keeps_key(self, tool: str) -> bool:
        """Return true if the inverse of a call of this tool needs the idempotency key of the call."""
        return tool in self.undo and self.undo[tool].keyed

    def kept(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call of this tool that its inverse needs."""
        keeps = self.undo[tool].keeps
        return {
            name: arguments[name] for name in (arguments if keeps is None else keeps) if name in arguments
        }

    def inverse(self, tool: str, item: str = "") -> Undo | None:
        """Return the inverse of a tool's work for the node, or for one of its items; None if it has none."""
        if not item:
            return self.undo.get(tool)
        if self.each is not None:
            return self.each.do.undo.get(tool)
        parts = self.agent or self.replan or self.function
        if parts is None or self.stays:
            return None
        return next((call.undo[tool] for call in parts.calls if tool in call.undo), None)

    @property
    def is_pure(self) -> bool:
        """True if a call of the node changes nothing outside, and costs nothing."""
        return self.effect == PURE and not self.cost and self.callback is None and self.approval is None

    @property
    def has_pure(self) -> bool:
        """True if any of the node's work is pure."""
        parts = self.agent or self.function
        return self.work.is_pure or (parts is not None and any(call.is_pure for call in parts.calls))

    @property
    def has_reversible(self) -> bool:
        """True if an inverse exists for any of the node's work."""
        parts = self.agent or self.replan or self.function
        if self.each is not None:
            return bool(self.each.do.undo)
        return bool(self.undo) or (
            parts is not None and not self.stays and any(call.undo for call in parts.calls)
        )


class Undo(_Part, frozen=True, kw_only=True):
    """Inverse of a step: `step`, whose arguments may name the input and the output of the undone step.

    `keeps`: arguments of the undone step that are named there; None: all of them.
    `in_doubt`: `call` if the inverse may be called while the outcome of the undone step is unknown;
    empty: a person is asked.
    `keyed`: the inverse gets the idempotency key of the undone step.
    """

    step: Node
    keeps: tuple[str, ...] | None = ()
    in_doubt: str = ""
    keyed: bool = False


class Each(_Part, frozen=True, kw_only=True):
    """Work of a map for each item (`do`), its concurrency, and the condition under which it is done.

    `need`: number of items that must succeed, 0 for all.
    `tolerated`: number of items that may fail; `share`: percentage that may fail.
    Both are -1 where the document gives none.
    `rest`, when the outcome is known: `cancel` the rest, `run` it first,
    or go on with it `beside` the next nodes.
    `most`: items of the longest list.
    """

    do: Node
    at_once: int
    most: int
    need: int = 0
    tolerated: int = -1
    share: int = -1
    rest: str = "cancel"

    @property
    def tells_all(self) -> bool:
        """True if the output gives the outcome of each item, because not all items must succeed."""
        return self.need > 0 or self.tolerated >= 0 or self.share >= 0


class AgentParts(_Part, frozen=True, kw_only=True):
    """Steps and limits of an agent.

    `turn` is the step of all its turns; `calls` has one step for each tool that the agent may call.
    `tokens` 0: no limit. `repeatable`: tools that are called again with the same arguments.
    `operations`: a step for each operation of an API, by the name under which the model calls it.
    `idle_ms`: the time for which a conversation waits for a message; 0: an answer ends the agent.
    """

    turn: Node
    calls: tuple[Node, ...] = ()
    turns: int
    calls_in_a_turn: int
    calls_in_all: int
    tokens: int = 0
    repeatable: tuple[str, ...] = ()
    operations: dict[str, Node] = {}
    idle_ms: int = 0

    @property
    def by_name(self) -> dict[str, Node]:
        """The steps of its calls, by the name under which the model calls each."""
        return {**{call.tool: call for call in self.calls}, **self.operations}

    @property
    def approvals(self) -> dict[str, Any]:
        """The templates of questions about its calls, by the same names."""
        asking = ((name, call.approval) for name, call in self.by_name.items())
        return {name: one.says for name, one in asking if one is not None and one.says is not None}


class FunctionParts(_Part, frozen=True, kw_only=True):
    """Python function that a node runs: its `name`, and one step for each tool that it may call.

    `build`: code with which a saga stays that begins it. Only a worker sets it.
    """

    name: str
    calls: tuple[Node, ...] = ()
    build: str = ""

    def call(self, tool: str) -> Node | None:
        """Return the step of a tool; None if the function may not call it."""
        for call in self.calls:
            if call.tool == tool:
                return call
        return None


class ReplanParts(_Part, frozen=True, kw_only=True):
    """Alternatives that a model may put in the place of a step.

    `plan` is the step that asks the model; `calls` has one step for each tool that the model may call.
    No alternative begins later than `within_ms`.
    `repeatable`: tools that are called again with the same arguments.
    `by_person`: a person chooses the alternative.
    """

    plan: Node
    calls: tuple[Node, ...]
    steps: int
    within_ms: int
    repeatable: tuple[str, ...] = ()
    by_person: bool = False


class Handler(_Part, frozen=True, kw_only=True):
    """Workflow or named graph that is started when a saga has failed for good.

    `arguments` None: its input is a report.
    """

    workflow: str
    arguments: Any = None
    on_cancel: bool = False


class Graph(_Part, frozen=True, kw_only=True, dict=True):
    """A workflow, compiled. As with nodes, new fields are appended."""

    format: int = FORMAT
    name: str
    nodes: tuple[Node, ...]  # in a topological order
    output: Any = None  # a template
    input_schema: Any = None
    limits: dict[
        str, Cap
    ] = {}  # the saga's, by the names of a node's; wall_time also stands for the document's `timeout`
    failures: dict[str, PolicyChange] = {}
    failover: tuple[Policy, ...] = ()
    risk: tuple[RiskRule, ...] | None = None  # the document's own rules; None: the default ones
    undo_together: bool = False  # steps are undone side by side
    handler: Handler | None = None
    schedule: Schedule | None = None  # when it is started by itself
    events: Events | None = None  # what events from outside do
    graphs: dict[str, Graph] = {}  # those that its nodes start by their names; none of these has any itself
    mcp: str | None = None  # the text of the tool that it is at `/mcp`; None: it is none

    @property
    def work(self) -> tuple[Node, ...]:
        """The work of each node, in order."""
        return tuple(node.work for node in self.nodes)

    @cached_property
    def costs(self) -> bool:
        """True if some node gives a cost, or may ask a model. Of a function, its tools are known here."""
        return any(
            node.cost
            or node.replan is not None
            or (node.function is not None and any(call.cost for call in node.function.calls))
            for node in self.work
        )


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Graph).decode


def encode_graph(graph: Graph) -> bytes:
    """Encode a graph deterministically: equal graphs have equal bytes."""
    return _encode(graph)


def decode_graph(data: bytes, kinds: Collection[str]) -> Graph:
    """Decode a graph, all of whose nodes are of these kinds.
    Raises `UnknownEntry` for a graph that a newer version compiled.
    """
    try:
        graph = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnknownEntry(f"a graph that this version cannot read: {error}") from error
    all_of_them = (graph, *graph.graphs.values()) if graph.graphs else (graph,)
    strange = {node.kind for one in all_of_them for node in one.nodes} - set(kinds)
    if graph.format != FORMAT or strange:
        raise UnknownEntry(f"a graph of format {graph.format} with nodes of unknown kinds {sorted(strange)}")
    return graph


def hash_of(data: bytes) -> str:
    """Return the SHA-256, hexadecimal, that names a graph's bytes."""
    return hashlib.sha256(data).hexdigest()


INPUT, OUTER = "input", "outer"
"""Keys of a named graph's start: its input, and the values that its expressions name of its starter."""
WHOLE_INPUT = "${input}"
"""The input of a named graph that is given no other one: that of its starter."""
HANDLER = "failure-handler"
"""The last part of the id of a failure handler's saga."""
_OF, _IN = ".", "#"


def inner_name(workflow: str, graph: str) -> str:
    """Return the name under which sagas of a named graph are listed.
    No workflow can be registered under it: a name has no dot.
    """
    return f"{workflow}{_OF}{graph}"


def graph_name(workflow: str) -> str:
    """Return the name of the graph in the document; empty for a registered workflow."""
    return workflow.partition(_OF)[2]


def starter_of(workflow: str) -> str:
    """Return the workflow in whose document a named graph is; a registered workflow itself."""
    return workflow.partition(_OF)[0]


def written_for(saga: str, workflow: str) -> tuple[str, str]:
    """Return the saga and workflow that stand for `saga` in expressions.

    For a failure handler in the document they are those of the failed saga.
    """
    if not (graph_name(workflow) and saga.endswith(f".{HANDLER}")):
        return saga, workflow
    return saga.rsplit(".", 2)[0], starter_of(workflow)


def inner_graph(graph: str, name: str) -> str:
    """Return the name that stands for the hash of a named graph in the saga that runs it.

    `graph` is the same name of the starter.
    """
    return f"{graph.partition(_IN)[0]}{_IN}{name}"


def split_hash(graph: str) -> tuple[str, str]:
    """Return the hash of the document's graph, and the name of the named graph that a saga runs.

    The name is empty for the document's own graph.
    """
    whole, _, name = graph.partition(_IN)
    return whole, name


def started(given: Any, seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of a named graph.

    `seen` is a template of the values that the graph names of its place of start.
    """
    return {INPUT: given, **({OUTER: dict(seen)} if seen else {})}


def split(workflow: str, given: Any) -> tuple[Any, Any]:
    """Return the input of a started saga, and the values that a named graph names of its starter, or None.

    Either is returned only if it is not passed by reference.
    """
    return (given.get(INPUT), given.get(OUTER)) if graph_name(workflow) else (given, None)


NODE_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
WORKFLOW_NAME = r"^[a-z][a-z0-9-]{0,63}$"
ANY_WORKFLOW_NAME = WORKFLOW_NAME[:-1] + r"(\.[A-Za-z_][A-Za-z0-9_]{0,63})?$"
"""Of a workflow, or of a graph in its document: `NAME.GRAPH`."""
TAG_NAME = r"^[a-z][a-z0-9-]{0,31}$"
"""Of a tag of a workflow, which names one of its versions: no number is one."""
WORKFLOW_REFERENCE = r"^[a-z][a-z0-9-]{0,63}(@([0-9]{1,9}|[a-z][a-z0-9-]{0,31}))?$"
"""`NAME` (its newest version), `NAME@VERSION` or `NAME@TAG`."""
