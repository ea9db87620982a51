"""What the outside sees: times as ISO 8601, every field of the log, and what each active node is doing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.conditions.model import AllOf, Cel
from baton.core.effects.risk import Risk
from baton.core.expressions import iso
from baton.core.failures.codes import advice_for
from baton.core.graph.graph import Branch, Cap, Catch, Graph, Join, Node
from baton.core.log import events as ev
from baton.core.read.definition_views import graph_view
from baton.core.read.views import OF_UNDOING, entry_view, saga_view, tool_view, view_without_graph
from tests.core.build import (
    EVENTS,
    PROPERTY,
    T0,
    Saga,
    chain,
    child,
    done,
    entry,
    failed,
    program,
    task,
    tool_spec,
    wait,
)
from tests.kit.views import as_json

AT = "2023-11-14T22:13:20.000Z"


def view(saga: Saga) -> Any:
    return as_json(saga_view(saga.state, saga.program))


def test_a_time_is_iso_8601_in_utc_with_milliseconds() -> None:
    assert iso(T0) == AT
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(1_795_255_200_007) == "2026-11-21T10:00:00.007Z"


@given(st.integers(0, 4_102_444_800_000))
@PROPERTY
def test_no_millisecond_is_lost(milliseconds: int) -> None:
    assert round(datetime.fromisoformat(iso(milliseconds)).timestamp() * 1_000) == milliseconds


# ---- a saga ---------------------------------------------------------------------------------------------------


def test_a_saga_that_has_just_begun() -> None:
    assert view(Saga(chain(1))) == {
        "id": "s1", "workflow": "w", "graph": "hash", "status": "running", "reason": None, "user": "ada", "labels": {},
        "version": 1, "branch": 0, "created_at": AT, "updated_at": AT, "ends_by": None, "expires_at": None, "steps": 0,
        "most_steps": 1,
        "active": [{"node": "n0", "iteration": [], "state": "ready"}],
        "cancelling": False, "result": None, "error": None, "invocations": 0, "revivals": 0, "interruptions": 0,
        "spent_usd": 0.0, "budget_usd": None, "failing": [], "questions": [], "parked": None, "undo": None, "limits": [],
        "large_result": None, "parent": None, "handles": None, "failure_handler": None,
        "on_failure": {"steps": "fails", "nodes": {}}, "input": {}, "large_input": None, "workflow_version": None, "build": None,
        "workflow_tag": None, "former_graphs": [], "forked_from": None,
    }  # fmt: skip


def test_each_active_node_says_what_it_is_doing() -> None:
    nodes = (
        task("a"),
        wait("w", signal="go", ms=1_000),
        wait("v", signal="s"),
        wait("u", ms=1_000),
        child("c"),
    )
    saga = Saga(program(*nodes, task("b"), task("j", "a", "b")))
    saga.go()
    saga.go(done("a"))
    assert view(saga)["active"] == [
        {
            "node": "w",
            "iteration": [],
            "state": "waiting",
            "signal": "go",
            "until": "2023-11-14T22:13:21.000Z",
        },
        {"node": "v", "iteration": [], "state": "waiting", "signal": "s", "until": None},
        {
            "node": "u",
            "iteration": [],
            "state": "waiting",
            "signal": None,
            "until": "2023-11-14T22:13:21.000Z",
        },
        {"node": "c", "iteration": [], "state": "child", "saga": "s1.0.c"},
        {"node": "b", "iteration": [], "state": "ready"},
        {"node": "j", "iteration": [], "state": "joining", "waits_for": ["b"]},
    ]


def test_a_join_that_fired_waits_for_nothing_more() -> None:
    saga = Saga(program(task("a"), wait("w"), task("j", "a", "w", join=Join(need=1, rest="run"))))
    saga.go()
    saga.go(done("a"))
    shown = next(one for one in view(saga)["active"] if one["node"] == "j")
    assert shown == {"node": "j", "iteration": [], "state": "ready"}


def test_the_status_is_waiting_when_all_else_is_joining() -> None:
    saga = Saga(program(task("a"), wait("w", signal="go"), task("j", "a", "w")))
    saga.go()
    saga.go(done("a"))
    assert view(saga)["status"] == "waiting"


def test_a_round_of_a_loop_is_shown_apart_from_its_node() -> None:
    saga = Saga(program(task("a"), task("b", "a")))
    saga.put(
        ev.StepSucceeded(
            node="a", emits=(ev.Token("a", "b", (2, 1)),), attempt=1, output=ev.Value(), started_at=1, ended_at=2,
            tool="t", tool_version="1", schema_hash="h",
        )
    )  # fmt: skip
    assert view(saga)["active"] == [{"node": "b", "iteration": [2, 1], "state": "ready"}]


def test_a_finished_saga_shows_its_result_inline_or_as_a_reference() -> None:
    saga = Saga(program(task("a"), output="${ctx.a.output}"))
    saga.go(done("a", {"n": 1}))
    shown = view(saga)
    assert (shown["status"], shown["result"], shown["active"]) == ("completed", {"v": {"n": 1}}, [])
    blob = ev.SagaEnded(status="completed", output=ev.Value(ref="cas://x", size=9))
    other = Saga(chain(1))
    other.put(blob)
    assert view(other)["result"] == {"ref": "cas://x", "size": 9}


def test_a_failure_is_shown_as_soon_as_it_is_known() -> None:
    saga = Saga(program(task("a"), task("b")))
    saga.go(failed("a"), running=["b"])
    expected = {
        "code": "tool_error", "message": "it broke", "node": "a", "kind": "unknown",
        "says": "The tool raised an error.", "advice": advice_for("tool_error").advice,
    }  # fmt: skip
    assert (view(saga)["status"], view(saga)["error"]) == ("running", expected)
    saga.go(done("b"))
    assert (view(saga)["status"], view(saga)["error"]) == ("failed", expected)


def test_a_failure_has_the_kind_that_its_tool_gave_it() -> None:
    saga = Saga(program(task("a")))
    saga.go(failed("a", "card_declined", kind="permanent"))
    assert (view(saga)["error"]["code"], view(saga)["error"]["kind"]) == ("card_declined", "permanent")


def test_a_saga_that_is_being_cancelled_says_so_until_it_is() -> None:
    saga = Saga(chain(1))
    saga.cancel(grace_ms=9)
    assert view(saga)["cancelling"] is True
    saga.go()
    shown = view(saga)
    assert (shown["cancelling"], shown["status"]) == (False, "cancelled")
    assert (shown["error"]["code"], shown["error"]["message"]) == ("cancelled", "enough")
    assert shown["error"]["says"] == "It was cancelled."


def test_a_parked_saga_has_its_reason_until_it_ends() -> None:
    saga = Saga(chain(1))
    saga.put(ev.Parked(code="over_budget", message="too long", node="n0"))
    assert (view(saga)["status"], view(saga)["reason"]) == ("parked", "over_budget: too long")
    saga.cancel()
    saga.go()
    assert view(saga)["reason"] is None


# ---- the log ---------------------------------------------------------------------------------------------------


def test_an_entry_is_shown_whole_defaults_included() -> None:
    event = ev.StepSucceeded(
        node="a", iteration=(1,), attempt=1,
        emits=(ev.Token("a", "b", (1,)), ev.Token("a", "c", (), False)),
        output=ev.Value(v={"n": 1}), started_at=T0, ended_at=T0 + 7, tool="t", tool_version="1", schema_hash="h",
    )  # fmt: skip
    assert entry_view(entry(2, event, at=T0, epoch=3, cold=True, traceparent="00-a")) == {
        "format": 1, "version": 2, "branch": 0, "at": AT, "epoch": 3, "invocation": "i1", "cold": True,
        "traceparent": "00-a",
        "events": [{
            "kind": "step_succeeded", "node": "a", "iteration": [1],
            "emits": [{"from": "a", "to": "b", "iteration": [1], "alive": True},
                      {"from": "a", "to": "c", "iteration": [], "alive": False}],
            "errors": [], "way": "", "drops": [], "carry": [], "forget": [], "fault": None, "full": None, "cost": 0, "recorded": False, "blocked_ms": 0, "callback": "", "attempt": 1, "output": {"v": {"n": 1}}, "started_at": AT,
            "ended_at": "2023-11-14T22:13:20.007Z", "tool": "t", "tool_version": "1", "schema_hash": "h",
            "keep": True,
        }],
    }  # fmt: skip


@pytest.mark.parametrize(("until", "shown"), [(None, None), (T0, AT)])
def test_a_time_that_may_be_missing(until: int | None, shown: str | None) -> None:
    (event,) = entry_view(entry(1, ev.WaitOpened(node="w", until=until)))["events"]
    assert event["until"] == shown


TIMES = (
    *("at", "started_at", "ended_at", "until", "dead_until", "due_at", "expires_at", "expires", "ends_by"),
    *("asked_at", "told_at", "moved_at", "due"),
)


def at_a_time(value: Any) -> Any:
    """The same with times that a calendar knows."""
    if isinstance(value, dict):
        return {key: at_a_time(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(map(at_a_time, value))
    if not isinstance(value, msgspec.Struct):
        return value
    named = {name: getattr(value, name) for name in value.__struct_fields__}
    fields = {name: T0 if name in TIMES and of is not None else at_a_time(of) for name, of in named.items()}
    return msgspec.structs.replace(value, **fields)


@given(st.lists(EVENTS, max_size=3))
@PROPERTY
def test_every_entry_can_be_shown_as_json(events: list[Any]) -> None:
    shown = [at_a_time(event) for event in events]
    whole = entry_view(entry(1, *shown))
    assert msgspec.json.decode(msgspec.json.encode(whole)) == whole
    for one, event in zip(whole["events"], events, strict=True):
        maybe = " ".join(
            (
                "item usage is_result result assumed digest cache paused outer passed running goes_on",
                *OF_UNDOING,
            )
        )
        seldom = {name for name in maybe.split() if not getattr(event, name, None)}
        assert set(one) == {"kind", *event.__struct_fields__} - seldom


# ---- workflows and tools ---------------------------------------------------------------------------------------------


def test_a_graph_is_shown_with_its_nodes_in_order_and_its_edges() -> None:
    graph = Graph(
        name="w",
        input_schema={"type": "object"},
        nodes=(
            task("a", timeout_ms=5_000, tool_version="2", effect="pure"),
            wait("b", "a", signal="go"),
            wait("c", "a", ms=1_000),
            child("d", "b", "c"),
        ),
    )
    shown = graph_view(graph)
    assert shown["input"] == {"type": "object"}
    assert [(edge["from"], edge["to"], edge["kind"]) for edge in shown["edges"]] == [
        ("a", "b", "after"), ("a", "c", "after"), ("b", "d", "after"), ("c", "d", "after"),
    ]  # fmt: skip
    assert shown["nodes"] == [
        {
            "name": "a",
            "kind": "task",
            "tool": "t",
            "tool_version": "2",
            "effect": "pure",
            "timeout_ms": 5_000,
        },
        {"name": "b", "kind": "wait", "wait_ms": None, "signal": "go"},
        {"name": "c", "kind": "wait", "wait_ms": 1_000, "signal": None},
        {"name": "d", "kind": "workflow", "workflow": "other"},
    ]


def test_what_a_node_may_have_besides_is_shown_where_it_has_it() -> None:
    whole = Node(
        name="a",
        kind="pass",
        value={"n": "${input}"},
        when=AllOf(conditions=(Cel(expression="true"),)),
        join=Join(),
        branch=Branch(choose="output", among=("b",)),
        output_schema={"type": "object"},
        limits={"hops": Cap(most=2)},
    )
    shown = graph_view(
        Graph(name="w", nodes=(whole, task("b", "a", join=Join(need=2, tolerated=1, rest="run"))))
    )
    assert shown["nodes"][0] == {
        "name": "a", "kind": "pass", "value": {"n": "${input}"}, "output_schema": {"type": "object"},
        "limits": {"hops": {"most": 2, "then": "terminate"}},
        "when": {"is": "all", "conditions": [{"is": "cel", "expression": "true"}]},
        "join": {"wait_for": "all", "tolerated_failures": None, "rest": "cancel"},
        "branch": {"rules": [], "choose": "output", "among": ["b"], "default": []},
    }  # fmt: skip
    assert shown["nodes"][1]["join"] == {"wait_for": 2, "tolerated_failures": 1, "rest": "run"}


def test_a_wait_whose_time_is_an_expression_shows_it() -> None:
    nodes = (
        Node(name="a", kind="wait", wait_for="${input.pause}"),
        Node(name="b", kind="wait", wait_until="${input.at}"),
    )
    shown = graph_view(Graph(name="w", nodes=nodes))["nodes"]
    assert (shown[0]["wait_for"], shown[1]["wait_until"]) == ("${input.pause}", "${input.at}")
    assert "wait_until" not in shown[0]


def test_a_tool_is_shown_with_its_schemas_and_their_hash() -> None:
    spec = msgspec.structs.replace(tool_spec("t", n={"type": "integer"}), timeout_ms=0)
    shown = as_json(tool_view(spec))
    assert (shown["name"], shown["timeout_ms"], shown["schema_hash"]) == ("t", None, spec.schema_hash)
    assert (shown["input"], shown["output"]) == (spec.parameters, spec.result)
    assert as_json(tool_view(msgspec.structs.replace(spec, timeout_ms=7)))["timeout_ms"] == 7
    assert (shown["domain"], shown["cost_usd"]) == (None, 0)
    risky = as_json(tool_view(msgspec.structs.replace(spec, risk=Risk(action="message"))))
    assert (risky["risk"]["action"], "level" in risky["risk"]) == ("message", False)
    costly = as_json(tool_view(msgspec.structs.replace(spec, domain="model_call", cost=50_000)))
    assert (costly["domain"], costly["cost_usd"]) == ("model_call", 0.05)


def test_where_a_failure_leads_is_part_of_the_graph() -> None:
    condition = Cel(expression="last_error.attempt > 2")
    rules = (
        Catch(codes=("timeout",), kinds=("transient",), condition=condition, then=("b",)),
        Catch(then=("c",)),
    )
    graph = Graph(
        name="w",
        nodes=(task("a", catch=rules, after=("b", "c", "d")), task("b", "a"), task("c", "a"), task("d", "a")),
    )
    shown = graph_view(graph)
    assert [(edge["to"], edge["kind"]) for edge in shown["edges"]] == [
        ("b", "catch"),
        ("c", "catch"),
        ("d", "after"),
    ]
    first, second = shown["nodes"][0]["catch"]
    assert (first["code"], first["class"], first["then"]) == (["timeout"], ["transient"], ["b"])
    assert first["if"]["expression"] == "last_error.attempt > 2"
    assert second == {"code": [], "class": [], "if": None, "then": ["c"]}


def test_the_times_inside_of_failures_and_questions_are_iso_8601_too() -> None:
    failure = ev.Failure("x", "m", "a", at=T0)
    ask = ev.Ask(id="q", kind="error_resolution", message="m", options=("retry",), expires_at=T0)
    chosen = ev.StrategyChosen(node="a", strategy="ask_user", code="x", at=T0, ask=ask)
    parked = ev.Parked(code="c", message="m")
    notice = ev.NoticeDue(notice=ev.Notice(key="k", to="user", code="x", message="m", at=T0))
    skipped = ev.NodeSkipped(node="b", why="", errors=(failure,))
    shown = entry_view(entry(1, chosen, parked, notice, skipped))["events"]
    assert (shown[0]["due_at"], shown[0]["ask"]["expires_at"]) == (None, AT)
    assert (shown[1]["until"], shown[2]["notice"]["at"]) == (None, AT)
    assert shown[3]["errors"] == [{"code": "x", "message": "m", "node": "a", "at": AT}]


def test_a_saga_says_until_when_it_may_last_and_when_it_is_deleted() -> None:
    saga = Saga(chain(1))
    origin = msgspec.structs.replace(saga.state.origin, ends_by=86_400_000, expires=3 * 86_400_000)
    saga.state = msgspec.structs.replace(saga.state, origin=origin)
    shown = view(saga)
    assert (shown["ends_by"], shown["expires_at"]) == ("1970-01-02T00:00:00.000Z", "1970-01-04T00:00:00.000Z")


def test_a_row_of_the_inbox_has_its_end_as_a_time_or_none() -> None:
    rows = {"a": ev.Shown(to="user:bob", until=T0, told=True), "b": ev.Shown(to="on_call")}
    sent = ev.NoticesSent(keys=("k",), shown=rows)
    view = entry_view(ev.Entry(version=2, branch=0, at=T0, invocation="i", events=(sent,)))
    assert view["events"][0]["shown"] == {
        "a": {"to": "user:bob", "until": AT, "told": True},
        "b": {"to": "on_call"},
    }


def test_a_saga_without_its_graph_is_told_without_its_nodes() -> None:
    saga = Saga(program(task("a"), task("b", "a")), user="ann")
    saga.go(done("a", 1))
    view = view_without_graph(saga.state, "running", "it is gone")
    assert (view.status, view.missing_graph, view.user) == ("running", "it is gone", "ann")
    assert (view.active, view.undo, view.version) == ([], None, saga.state.version)
