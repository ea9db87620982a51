"""Settings of a deployment that stand in for what a document leaves open, and its caps."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.failures.policy import ANY, PRESETS, PolicyChange, RetryChange
from baton.core.failures.strategies.ladder import entry_of
from baton.core.limits import OFF, USUAL, Limits
from baton.core.log.questions import question_ms
from baton.core.nodes.registry import KINDS
from tests.core.build import TOOLS, Saga, failed, tool_spec
from tests.core.failing import chosen
from tests.core.nodes.replans import program_of

HOUR = 3_600_000
TEXT = """
name: w
nodes:
  a: {tool: book}
  b: {human: {type: approval, title: May I?}}
  c: {human: {type: approval, title: May I?, expires: 2h}}
  d: {graph: g}
graphs: {g: {nodes: {e: {value: 1}}}}
"""
KNOWN = {
    **TOOLS,
    "book": replace(tool_spec("book"), effect="idempotent", undo="cancel"),
    "cancel": tool_spec("cancel"),
}


def test_what_a_document_leaves_open_is_the_deployments_when_it_is_registered() -> None:
    limits = Limits(undo_attempts=2, undo_ms=9_000, question_timeout_ms=3 * HOUR)
    graph = compile_document(TEXT, KNOWN, limits=limits)
    a, b, c, _ = graph.nodes
    retry = a.undo["book"].step.failures[ANY].retry
    assert retry is not None
    assert (retry.max_attempts, retry.budget_ms) == (2, 9_000)
    assert [node.asks.expires_ms for node in (b, c) if node.asks is not None] == [3 * HOUR, 2 * HOUR]


def test_the_default_policy_is_below_those_of_the_matrix_and_the_document() -> None:
    limits = Limits(retry_policy="critical")
    assert entry_of("timeout", "transient", limits=limits).policy == PRESETS["critical"]
    assert entry_of("timeout", "transient").policy == PRESETS["standard"]
    assert entry_of("rate_limited", "transient", limits=limits).policy == PRESETS["rate_limited"]
    rules = [{ANY: PolicyChange(retry=RetryChange(max_attempts=3))}]
    found = entry_of("timeout", "transient", "", rules, limits=limits).policy
    assert (found.max_attempts, found.base_ms) == (3, 100)
    assert entry_of("timeout", "transient", limits=limits, is_inverse=True).policy == PRESETS["standard"]


def test_what_the_document_says_is_above_the_deployment() -> None:
    limits = Limits(question_timeout_ms=HOUR, replan_attempts=1)
    entry = entry_of("timeout", "transient", "", [], limits=limits)
    assert (entry.expires_ms, entry.at_most) == (HOUR, {"replan": 1})
    rules = [{ANY: PolicyChange(expires_ms=9 * HOUR)}]
    assert entry_of("timeout", "transient", "", rules, limits=limits).expires_ms == 9 * HOUR
    said = entry_of("timeout", "transient", "", [{ANY: PolicyChange(at_most={"replan": 5})}], limits=limits)
    assert said.at_most == {"replan": 5}
    assert entry_of("timeout", "transient", "", limits=USUAL) == entry_of("timeout", "transient")


def test_a_question_waits_as_its_author_says() -> None:
    limits = Limits(question_timeout_ms=2 * HOUR)
    assert [question_ms(said, limits) for said in (0, HOUR, 9 * HOUR)] == [2 * HOUR, HOUR, 9 * HOUR]


def test_no_model_is_asked_where_the_deployment_says_so() -> None:
    text = "name: w\nnodes: {a: {tool: other, with: {n: 1}, on_failure: {any: [replan]}, replan: {model: m, tools: [stand_in]}}}"
    for limits, found in ((USUAL, ["replan"]), (Limits(model_replanning=OFF), [])):
        saga = Saga(Program(program_of(text).graph, KINDS, limits=limits))
        saga.go()
        saga.go(failed("a", "sold_out", "recoverable"))
        assert chosen(saga)[:1] == found
