"""Public views of a saga: JSON made from state and entries. Times as ISO 8601, money in dollars."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict, replace

from baton.core.decide.program import PENDING, Program
from baton.core.effects.risk import Risk
from baton.core.effects.toolspec import ToolSpec
from baton.core.expressions import iso
from baton.core.failures.codes import advice_for, class_of
from baton.core.failures.names import RETRYABLE
from baton.core.graph.graph import Graph
from baton.core.log.events import Ask, Entry, Event, Failure, Notice, Opens, Shown
from baton.core.log.events import NotUndone as LoggedNotUndone
from baton.core.log.folding.workflow_limits import COUNTED, OF_RETRIES, retried
from baton.core.log.questions import (
    ERROR,
    audience,
    changeable,
    may_answer,
    open_questions,
    tool_asked_about,
    unclosed_questions,
)
from baton.core.log.questions import visible_arguments as without_secrets
from baton.core.log.records import Escalation, Option, Paused
from baton.core.log.slots import Slot
from baton.core.log.state import Held, State, status_of
from baton.core.log.undos import Undoable
from baton.core.money import MICRO
from baton.core.read.answers import (
    ITEM,
    LABEL,
    Amount,
    Answerer,
    Asked,
    Choice,
    Count,
    EscalationStep,
    FailingStep,
    FailureHandler,
    ForkedFrom,
    LargeValue,
    LimitUse,
    NotUndone,
    ParkedAs,
    Question,
    QuestionClaim,
    SagaError,
    Schema,
    Status,
    Takeover,
    Time,
    UnderWay,
    Undoing,
    UnreadableEntries,
    Version,
    View,
    WasUndone,
)
from baton.core.read.definition_views import (
    STATES,
    UNITS,
    OnFailure,
    Tool,
    ToolRisk,
    cap_view,
    foretold,
    json_form,
)


def open_question_view(
    state: State, program: Program, tools: Mapping[str, ToolSpec], slot: str, ask: Ask
) -> Question:
    """Return a question that waits for an answer: for whom it is,
    and the arguments that an answer may change.
    """
    place = Slot.parse(slot)
    failing = state.failing.get(slot)
    tool = None if failing is None else tools.get(tool_asked_about(program.node_at(state, slot), failing))
    return Question(
        **_asked(place.node, place.iteration, ask),
        for_=[_person(one) for one in may_answer(state, ask)],
        claim=_claim(state, ask),
        escalate=[_step(state, step) for step in ask.escalate],
        arguments=changeable(ask, tool.parameters if tool is not None else {}),
    )


def _person(one: tuple[str, str]) -> Answerer:
    return Answerer(kind=one[0], name=one[1])


def _claim(state: State, ask: Ask) -> QuestionClaim | None:
    """Return the user who has claimed it, the time of the claim, and the audience before it."""
    if not ask.candidates:
        return None
    by = audience(state, ask.to)[1]
    return QuestionClaim(by=by, at=iso(ask.moved_at), from_=_person(audience(state, ask.candidates)))


def _step(state: State, step: Escalation) -> EscalationStep:
    """Return the view of the next step of an escalation, if no answer comes."""
    return EscalationStep(
        at=iso(step.at),
        action="decide" if step.decide else "remind" if step.to is None else "hand_on",
        to=None if step.to is None else _person(audience(state, step.to)),
        answer=step.decide or None,
    )


def question_view(node: str, iteration: tuple[int, ...], ask: Ask) -> Asked:
    """Return a question to a person; `expires_at` None: it waits for ever."""
    return Asked(**_asked(node, iteration, ask))


def _asked(node: str, iteration: tuple[int, ...], ask: Ask) -> dict[str, Any]:
    return {
        "id": ask.id,
        "node": node or None,
        "iteration": list(iteration),
        "asked_for": asked_for(ask.type, ask.kind),
        "message": ask.message,
        "options": list(ask.actions),
        "expires_at": time_view(ask.expires_at),
        "type": ask.type,
        "title": ask.title or None,
        "details": ask.details,
        "choices": [_choice(one) for one in ask.options if isinstance(one, Option)],
        "schema_": ask.schema,
        "takeover": None if ask.takeover is None else Takeover(**asdict(ask.takeover)),
        "asked_at": time_view(ask.asked_at),
        "risk": ask.risk or None,
        "digest": ask.digest or None,
        "told_at": time_view(ask.told_at),
    }


def asked_for(type_: str, kind: str) -> str | None:
    """Return the kind of the question where the type alone, `error`, does not tell it.

    None for any other question, whose `kind` repeats the type.
    """
    return kind if type_ == ERROR else None


def _choice(option: Option) -> Choice:
    return Choice(**asdict(option) | {"label": option.label or option.id})


def time_view(milliseconds: int) -> str | None:
    return iso(milliseconds) if milliseconds else None


OF_UNDOING = frozenset(
    {
        *("prior", "lasting", "kept", "key", "acted", "not_before", "stays", "undo", "back_to", "together"),
        *("undoable", "undone", "again", "child", "doubtful", "stands", "doubts", "doubt", "redone"),
        *("polled", "stopped", "nothing"),
    }
)
"""Fields of events that are shown where something is undone, or can be."""


def undo_view(state: State, program: Program) -> Undoing | None:
    """Return the state of undoing; None for a saga that has done nothing that could be undone."""
    undo, work = state.undo, state.undo.work
    report = None if state.ended is None else state.ended.undone
    if not (program.has_reversible or undo.head or work is not None or report is not None):
        return None
    return Undoing(
        undoable=undo.can,
        lasting=undo.cannot,
        failed=[_failed(one) for one in undo.failed if not one.doubt],
        doubtful=list(undo.in_doubt),
        more_failed=undo.set_aside,
        more_doubtful=undo.unknown - len(undo.in_doubt),
        under_way=None
        if work is None
        else UnderWay(
            since=iso(work.at),
            reason=work.reason,
            by=work.by or None,
            back_to=work.back_to or None,
            undone=work.done,
            failed=undo.fails,
            left=undo.can + undo.doubts + len(work.again) + work.set_aside + len(work.steps),
        ),
        done=None
        if report is None
        else WasUndone(
            undone=report.done,
            failed=report.fails,
            lasting=report.lasts,
            stays=list(report.lasting),
            back_to=report.back_to or None,
        ),
    )


UNSURE = "it may be undone all the same"


def _failed(one: LoggedNotUndone) -> NotUndone:
    return NotUndone(
        step=one.slot,
        version=one.version,
        tool=one.tool,
        code=one.code,
        message=f"{UNSURE}: {one.message}" if one.unsure else one.message,
    )


_NO_TOOLS: Mapping[str, ToolSpec] = MappingProxyType({})
_TIMES = frozenset(
    {
        "at",
        "started_at",
        "ended_at",
        "until",
        "dead_until",
        "due_at",
        "expires_at",
        "expires",
        "ends_by",
        "asked_at",
        "due",
        "told_at",
        "moved_at",
    }
)
# A time that may be absent, and is 0 in the log then.
_MAYBE = frozenset({"due_at", "expires_at", "until", "due"})


class ActiveNode(View):
    """A node that has not ended."""

    node: str
    iteration: list[int]
    state: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
    item: Annotated[str | UnsetType, ITEM] = UNSET
    label: Annotated[str | UnsetType, LABEL] = UNSET
    turn: Annotated[int | UnsetType | None, "For a running agent: number of the current turn."] = UNSET
    calls: Annotated[int | UnsetType | None, "For a running agent: number of tool calls so far."] = UNSET
    tokens: Annotated[
        int | UnsetType | None, "For a running agent: tokens in its requests and answers so far."
    ] = UNSET
    alternative: Annotated[
        int | UnsetType | None, "For a replanned step: number of the alternative in use."
    ] = UNSET
    signal: Annotated[str | UnsetType | None, "Signal that the node waits for."] = UNSET
    until: Annotated[Time | UnsetType | None, "Time when the wait ends without a signal."] = UNSET
    breaker: Annotated[str | UnsetType, "Open circuit breaker; `until` is the time of the next check."] = (
        UNSET
    )
    limit: Annotated[
        str | UnsetType,
        "Code of the limit of money whose rest others hold, such as `budget_saga`; `until` is the time when the node asks again.",
    ] = UNSET
    needs_usd: Annotated[float | UnsetType, "Dollars of `limit` that the node needs."] = UNSET
    callback: Annotated[
        str | UnsetType, "Identifier of the callback that the node waits for. It is not the callback's token."
    ] = UNSET
    since: Annotated[
        Time | UnsetType | None,
        "Time when the tool handed over its work, or when the circuit breaker or the limit last blocked the node.",
    ] = UNSET
    heard_at: Annotated[
        Time | UnsetType | None,
        "Time of the last heartbeat. Before the first heartbeat: time when the tool handed over its work.",
    ] = UNSET
    heartbeat_by: Annotated[Time | UnsetType | None, "Time when the next heartbeat is due."] = UNSET
    payload: Annotated[Schema | UnsetType | None, "JSON Schema of the signal's payload, if declared."] = UNSET
    most_rounds: Annotated[
        list[int] | UnsetType, "Maximum rounds of each enclosing loop. `iteration` counts them from 0."
    ] = UNSET
    saga: Annotated[str | UnsetType, "Child saga that the node waits for."] = UNSET
    ask: Annotated[str | UnsetType, "Question that the node waits for."] = UNSET
    overdue: Annotated[bool | UnsetType, "True if the child saga has exceeded its time limit."] = UNSET
    items: Annotated[int | UnsetType, "For a map: number of items."] = UNSET
    begun: Annotated[int | UnsetType, "For a map: number of items that have begun."] = UNSET
    failed: Annotated[int | UnsetType, "For a map: number of items that have failed."] = UNSET
    late: Annotated[bool | UnsetType, "True if the map no longer waits for the items that are left."] = UNSET
    ended_since: Annotated[int | UnsetType, "For a late map: number of items that have ended since."] = UNSET
    results: Annotated[int | UnsetType, "For a function: number of results that it has received."] = UNSET
    units: Annotated[int | UnsetType, "Number of units of its work that its tool has recorded."] = UNSET
    published: Annotated[
        dict[str, Any] | UnsetType, "For a function: the newest value of each name that it publishes."
    ] = UNSET
    waits_for: Annotated[list[str] | UnsetType, "Nodes whose edges into this node are not decided."] = UNSET


class FormerGraph(View):
    """A graph that a saga ran before its graph was changed."""

    graph: str
    workflow: str
    last_version: Annotated[Version, "Last version of the log at which the saga ran it."]


class Saga(View):
    """The state of a saga, computed from its log."""

    id: str
    workflow: str
    graph: str
    workflow_version: Annotated[
        int | None, "Version of the workflow whose graph the saga runs, if it is among the newest 100."
    ]
    former_graphs: Annotated[
        list[FormerGraph], "Graphs that the saga ran before its graph was changed, oldest first."
    ]
    workflow_tag: Annotated[str | None, "Tag that named the version at the start. Null: none did."]
    build: Annotated[
        str | None,
        "Build of the code with which the saga stays. Null if it goes on with the newest code.",
    ]
    status: Status
    reason: Annotated[
        str | None, "Reason why the saga is parked, or children for which a saga that stops waits."
    ]
    user: Annotated[str, "User who started the saga."]
    labels: Annotated[dict[str, str], "Labels set at the start. `GET /sagas` filters by them."]
    version: Annotated[Version, "Version of the saga's log."]
    branch: Count
    created_at: Time
    updated_at: Time
    ends_by: Annotated[Time | None, "Time at which a saga that has not ended fails. Null if unlimited."]
    expires_at: Annotated[Time | None, "Time when all data of the saga is deleted. Null if it is kept."]
    steps: Annotated[Count, "Number of completed steps."]
    most_steps: Annotated[
        int | None,
        "Maximum total number of steps. Null if a loop, a function or an agent decides it, or if the saga starts no further steps.",
    ]
    active: list[ActiveNode]
    cancelling: bool
    input: Annotated[Any, "Input of the saga. Null if it is large."]
    large_input: Annotated[LargeValue | None, "Reference to an input that exceeds the size limit."]
    result: Annotated[Any, "Output after the end of the saga. Null before, and if it is large."]
    large_result: Annotated[LargeValue | None, "Reference to an output that exceeds the size limit."]
    error: SagaError | None
    invocations: Count
    revivals: Count
    interruptions: Count
    spent_usd: Annotated[Amount, "Costs in US dollars reported by tools and children."]
    budget_usd: Annotated[
        float | None, "Budget of the saga in US dollars, as set by an operator. Null if the default applies."
    ]
    failing: Annotated[list[FailingStep], "Steps that are retried or that a question is about."]
    on_failure: Annotated[OnFailure | None, "Action after a permanent failure. Null after the end."]
    questions: Annotated[list[Question], "Open questions of the saga."]
    parked: ParkedAs | None
    undo: Annotated[
        Undoing | None,
        "Steps that can be undone, the progress of a rollback, and its result. Null if nothing in the saga can be undone.",
    ]
    parent: Annotated[str | None, "Saga that waits for this saga."]
    forked_from: Annotated[ForkedFrom | None, "Null unless a fork has made it as a new saga."]
    handles: Annotated[str | None, "For a failure handler: the saga that failed."]
    failure_handler: Annotated[
        FailureHandler | None,
        "Failure handler that was started after the saga failed permanently. Null if none was started.",
    ]
    limits: Annotated[list[LimitUse], "Limits that apply to the saga, and their use."]
    unreadable: Annotated[
        UnreadableEntries | UnsetType,
        "Entries of the log that cannot be read. The answer then describes the saga before them; only `status` is the last one that a worker stored.",
    ] = UNSET
    missing_graph: Annotated[
        str | UnsetType,
        "Reason why the saga's graph is lost. The answer then has nothing of its nodes. A diagnosis restores the graph.",
    ] = UNSET


def saga_view(state: State, program: Program, tools: Mapping[str, ToolSpec] = _NO_TOOLS) -> Saga:
    """Return the answer of `GET /sagas/{id}`; `result` and `input` as in the log: `v`, or `ref` and `size` of
    a blob.

    `tools` give the schemas of arguments that an answer may change. The caller adds related sagas.
    """
    return Saga(
        id=state.origin.saga,
        workflow=state.origin.workflow,
        graph=state.origin.graph,
        workflow_version=None,
        former_graphs=[
            FormerGraph(graph=one.graph, workflow=one.workflow, last_version=one.last) for one in state.graphs
        ],
        workflow_tag=state.origin.tag or None,
        build=state.pinned or None,
        status=_status(state, program),
        reason=_reason(state),
        user=state.origin.user,
        labels=state.origin.labels,
        version=state.version,
        branch=state.lineage.branch,
        created_at=iso(state.origin.started_at),
        updated_at=iso(state.last_at),
        ends_by=iso(state.origin.ends_by) if state.origin.ends_by else None,
        expires_at=iso(state.origin.expires) if state.origin.expires else None,
        steps=state.counts.steps,
        most_steps=_most_steps(state, program),
        active=[_active(state, program, slot) for slot in state.tokens],
        cancelling=state.cancel is not None and state.ended is None,
        input=msgspec.to_builtins(state.origin.input),
        large_input=None,
        result=msgspec.to_builtins(state.ended.output) if state.ended else None,
        large_result=None,
        error=_error(state),
        invocations=state.counts.invocations,
        revivals=state.counts.revivals,
        interruptions=state.counts.interrupted,
        spent_usd=state.money.spent / MICRO,
        budget_usd=state.money.budget / MICRO if state.money.budget else None,
        failing=[_failing(state, program, slot) for slot in state.failing],
        on_failure=foretold(program, handled=state.origin.handled, last=state.origin.last)
        if state.ended is None
        else None,
        questions=[
            open_question_view(state, program, tools, slot, ask) for slot, ask in unclosed_questions(state)
        ],
        parked=_parked(state),
        undo=undo_view(state, program),
        parent=None,
        forked_from=ForkedFrom.of(state.origin.source, state.origin.copied),
        handles=None,
        failure_handler=None,
        limits=_used(state, program),
    )


def view_without_graph(state: State, status: str, why: str) -> Saga:
    """Return the same of a saga whose graph is lost, without its nodes. `status`: that of its head."""
    rest = replace(state, tokens={}, open={}, failing={}, undo=Undoable())
    view = saga_view(rest, Program(Graph(name=state.origin.workflow, nodes=()), {}))
    view.status, view.missing_graph = status, why
    return view


def handler_view(state: State) -> FailureHandler | None:
    """Return the saga of the failure handler, or the reason why there is none."""
    end = state.ended
    if end is None or not (end.handler or end.unhandled):
        return None
    why = end.unhandled.message if end.unhandled else None
    return FailureHandler(saga=end.handler or None, status=None, why=why)


def _used(state: State, program: Program) -> list[LimitUse]:
    """Return the use of the limits that count, and the end of the saga's time."""
    rows = []
    for scope, limits in program.caps.of.items() if program.caps is not None else ():
        for name, cap in limits.items():
            row = LimitUse(node=scope or None, limit=UNITS.get(name, name), **cap_view(name, cap))
            if name in COUNTED or name in OF_RETRIES:
                used = getattr(retried(state, scope) if name in OF_RETRIES else state.used[scope], name)
                row.used = used / MICRO if name == "cost" else used
                rows.append(row)
            elif name == "wall_time" and not scope:
                assert program.caps is not None
                row.until = iso(program.caps.deadline(state) or 0)
                rows.append(row)
    return rows


def _place(state: State, program: Program, slot: str) -> dict[str, Any]:
    at = Slot.parse(slot)
    place: dict[str, Any] = {"node": at.node, "iteration": list(at.iteration)}
    if not (item := at.item):
        return place
    kind = program.kinds[program.nodes[at.node].kind]
    if at.scope:
        return place | {"item": item, "label": "undo"}
    return place | {"item": item, "label": kind.label(state.open.get(at.owner), item)}


def _failing(state: State, program: Program, slot: str) -> FailingStep:
    """Return a step some of whose attempts have failed, and what comes next."""
    failing = state.failing[slot]
    return FailingStep(
        **_place(state, program, slot),
        attempts=failing.attempts,
        **of_failure(failing.failure),
        at=time_view(failing.failure.at),
        strategy=failing.strategy,
        hint=failing.hint or None,
        way=failing.way.name if failing.way is not None else None,
        next_attempt_at=time_view(failing.due_at),
    )


def of_failure(failure: Failure) -> dict[str, Any]:
    """Return the fields of an `AttemptFailure`: those of the failure, and its meaning for a person."""
    class_ = failure.kind or class_of(failure.code)
    meant = advice_for(failure.code)
    return {
        "code": failure.code,
        "class_": class_,
        "message": failure.message,
        "retryable": class_ in RETRYABLE,
        "says": meant.says,
        "advice": meant.advice,
    }


def _parked(state: State) -> ParkedAs | None:
    """Return the reason for parking, and the end of the parking if the saga goes on by itself."""
    parked = state.parked
    if parked is None or state.ended is not None:
        return None
    return ParkedAs(
        code=parked.code,
        message=parked.message,
        node=parked.node or None,
        until=time_view(parked.until),
        stands_still_since=time_view(parked.at),
        build=parked.build or None,
        by=parked.by or None,
    )


def _most_steps(state: State, program: Program) -> int | None:
    left = None if state.is_stopping else program.most_left(state)
    return None if left is None else state.counts.steps + left


def _active(state: State, program: Program, slot: str) -> ActiveNode:
    node = Slot.parse(slot).node
    what = "joining"
    work = state.open.get(slot)
    if state.has_begun(slot):
        what = "waiting" if work is None else work.word
    elif slot in state.failing and state.failing[slot].ask is not None:
        what = "asking"
    elif slot in state.held:
        what = "held"
    elif slot in state.failing:
        what = "retrying"
    elif slot in state.pauses:
        what = "waiting"
    elif program.readiness(state, slot) != PENDING:
        what = "ready"
    units = {"units": state.journals[slot].units} if slot in state.journals else {}
    shown: dict[str, Any] = {**_place(state, program, slot), "state": what, **units}
    if rounds := program.most_rounds(node):
        shown["most_rounds"] = rounds
    if work is not None:
        shown |= work.view(program.node_at(state, slot).output_schema)
    if what == "held":
        held = state.held[slot]
        shown |= _held_view(held) | {"since": iso(held.at), "until": iso(held.until)}
    if slot in state.pauses and what == "waiting":
        shown["until"] = iso(state.pauses[slot].until)
    if what == "joining":
        arrived = state.tokens[slot]
        shown["waits_for"] = [src for src in program.nodes[node].before if src not in arrived]
    return ActiveNode(**shown)


def _held_view(held: Held) -> dict[str, Any]:
    if held.limit:
        return {"limit": held.limit, "needs_usd": held.amount / MICRO}
    return {"breaker": held.breaker}


def _status(state: State, program: Program) -> str:
    """Return the status.
    A saga whose questions all have an answer is suspended no longer: a worker is on its way to it.
    """
    status = status_of(state, program)
    if status == "suspended" and next(open_questions(state), None) is None:
        return "running"
    return status


def _reason(state: State) -> str | None:
    if state.ended is None and state.parked is not None:
        return "; ".join(f"{one.code}: {one.message}" for one in state.parked.all)
    return stopping_in_words(state)


def stopping_in_words(state: State) -> str | None:
    """Return the reason why a saga that stops has not ended: its open children; None if it has none."""
    open_ones = [work.orphan.saga for work in state.open.values() if work.orphan is not None]
    if not open_ones or not state.is_stopping or state.ended is not None:
        return None
    more = f" and of {len(open_ones) - 1} more" if len(open_ones) > 1 else ""
    return f"it stops, and waits for the end of its child `{open_ones[0]}`{more}"


def _error(state: State) -> SagaError | None:
    """Return the failure of the saga: its message, and the meaning of its code to a person."""
    failure = state.ended.failure if state.ended else state.failure
    if failure is None:
        return None
    meant = advice_for(failure.code)
    return SagaError(
        code=failure.code,
        message=failure.message,
        node=failure.node,
        kind=failure.kind or class_of(failure.code),
        says=meant.says,
        advice=meant.advice,
    )


def _tool_risk(risk: Risk) -> ToolRisk:
    """Return the risk that a tool declares; a level is of operations alone."""
    return ToolRisk(**{name: value for name, value in asdict(risk).items() if name != "level"})


def tool_view(spec: ToolSpec) -> Tool:
    """Return a tool as `GET /tools` shows it; `timeout_ms` None: the engine's default.

    `cost_usd`: maximum of one attempt.
    """
    return Tool(
        name=spec.name,
        version=spec.version,
        description=spec.description,
        effect=spec.effect,
        domain=spec.domain or None,
        cost_usd=spec.cost / MICRO,
        timeout_ms=spec.timeout_ms or None,
        input=spec.parameters,
        output=spec.result,
        schema_hash=spec.schema_hash,
        requires_approval=spec.requires_approval,
        risk=None if spec.risk is None else _tool_risk(spec.risk),
        undo=spec.undo or None,
        verify=spec.verify or None,
        breaker=spec.breaker or None,
    )


_SELDOM = OF_UNDOING | {
    *("at", "item", "usage", "is_result", "result", "assumed", "digest", "cache"),
    *("paused", "answer", "outer", "goes_on", "running", "passed"),
}
"""Shown where there is something to show: most nodes do one thing, and ask no model."""


def entry_view(entry: Entry) -> dict[str, Any]:
    """Return an entry as `GET /sagas/{id}/events` shows it; every field of the log, defaults included."""
    return asdict(entry) | {"at": iso(entry.at), "events": [_event_view(event) for event in entry.events]}


def _event_view(event: Event) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": event.__struct_config__.tag}
    for name, value in asdict(event).items():
        if name in _SELDOM and not value:
            continue
        if name in _TIMES and isinstance(value, int):
            shown[name] = iso(value) if value or name not in _MAYBE else None
        elif isinstance(value, Paused):
            shown[name] = {"until": iso(value.until), "ends_by": time_view(value.ends_by)}
        elif name == "arguments" and isinstance(event, Opens):
            shown[name] = without_secrets(value)
        elif isinstance(value, Failure | Ask | Notice):
            shown[name] = _part_view(value)
        elif name == "shown":
            shown[name] = {ask: _part_view(row) for ask, row in value.items()}
        elif name == "errors":
            shown[name] = [_part_view(failure) for failure in value]
        elif name == "emits":
            shown[name] = [
                {
                    "from": token.src,
                    "to": token.dst,
                    "iteration": list(token.iteration),
                    "alive": token.alive,
                }
                for token in value
            ]
        else:
            shown[name] = json_form(value)
    return shown


def _part_view(part: Failure | Ask | Notice | Shown) -> dict[str, Any]:
    """Return a part as the log has it, without fields that have their default, but for the times:
    null is one that is not there.
    """
    shown: dict[str, Any] = json_form(part)
    if "escalate" in shown:
        shown["escalate"] = [step | {"at": iso(step["at"])} for step in shown["escalate"]]
    return {
        name: iso(value) if name in _TIMES and value > 0 else None if name in _TIMES else value
        for name, value in shown.items()
    }
