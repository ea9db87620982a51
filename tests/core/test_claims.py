"""Which attempts of a log have a claim: those of steps, and of calls of agents, whose tools may act only once."""

from __future__ import annotations

from baton.core.graph.graph import AgentParts, Graph, Node
from baton.core.log import events as ev
from baton.core.log.scopes import Called
from baton.core.read.usage import Claims

CALLS = tuple(
    Node(name="think", kind="task", tool=tool, effect=effect)
    for tool, effect in (("pay", "once"), ("look", "pure"))
)
GRAPH = Graph(
    name="w",
    nodes=(
        Node(name="book", kind="task", tool="pay", effect="once"),
        Node(name="see", kind="task", tool="look", effect="pure"),
        Node(
            name="think",
            kind="agent",
            agent=AgentParts(
                turn=Node(name="think", kind="task"), calls=CALLS, turns=9, calls_in_a_turn=9, calls_in_all=9
            ),
        ),
    ),
)


def attempt(node: str, item: str = "", callback: str = "") -> ev.AttemptFailed:
    return ev.AttemptFailed(
        node=node,
        item=item,
        attempt=1,
        failure=ev.Failure("timeout", "no"),
        started_at=1,
        ended_at=2,
        tool="t",
        tool_version="1",
        schema_hash="",
        callback=callback,
    )


def test_an_attempt_of_a_step_or_of_a_call_has_a_claim_where_its_tool_may_act_only_once() -> None:
    claims = Claims.of(GRAPH)
    assert claims.has(attempt("book"))
    assert not claims.has(attempt("see"))
    assert not claims.has(attempt("think", "t1"))
    began = ev.CallsBegan(
        node="think", calls=(Called(item="t1-0", tool="pay"), Called(item="t1-1", tool="look"))
    )
    assert not claims.has(began)
    assert claims.has(attempt("think", "t1-0"))
    assert not claims.has(attempt("think", "t1-1"))


def test_an_attempt_that_ends_elsewhere_had_its_claim_when_it_was_handed_over() -> None:
    claims = Claims.of(GRAPH)
    assert not claims.has(attempt("book", callback="c1"))
    opened = ev.CallbackOpened(
        node="book",
        callback="c1",
        until=9,
        attempt=1,
        started_at=1,
        ended_at=2,
        tool="t",
        tool_version="1",
        schema_hash="",
    )
    assert claims.has(opened)
