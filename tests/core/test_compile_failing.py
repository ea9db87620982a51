"""`retry`, `on_failure` and `failover`: what a graph keeps of them, and what is told of what cannot be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from baton.core.conditions.model import Matches
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.failures.alternatives import Alternative
from baton.core.failures.codes import CODES, UNTRIED
from baton.core.failures.failover import Action, Match, Policy
from baton.core.failures.policy import PolicyChange, RetryChange
from baton.core.graph.graph import Graph, Node, decode_graph, encode_graph
from baton.core.nodes.registry import KINDS
from baton.errors import InvalidDefinition, UnknownEntry
from tests.core import compiling
from tests.core.build import Saga, done, problems_of, ready, tool_spec
from tests.core.compiling import document
from tests.kit.sentences import Says

ANY = {"additionalProperties": True}
TOOLS: Mapping[str, ToolSpec] = {
    **compiling.TOOLS,
    "find": msgspec.structs.replace(
        tool_spec("find", city={"type": "string"}, hour={}),
        domain="external_api",
        cost=50_000,
        fallbacks={"hour": (20, 21)},
    ),
    "find.other": msgspec.structs.replace(
        tool_spec("find.other", city={}, hour={}), instead_of=("find",), hints=("alternative_provider", "mine")
    ),
    "log_in": msgspec.structs.replace(
        tool_spec("log_in", failure={}), carries_out=("refresh_credentials", "refresh_and_retry")
    ),
    "needy": msgspec.structs.replace(
        tool_spec("needy"), parameters={"type": "object", "properties": {"city": {}, "key": {}}, "required": ["key"]}
    ),
    "help": tool_spec("help", failure={}, arguments={}),
    "charge": msgspec.structs.replace(
        tool_spec("charge"), effect="once",
        parameters={"type": "object", "properties": {"failure": {}}, "required": ["failure"]},
    ),
}  # fmt: skip
RAILS = "guardrails: {allowed_tools: [t, find, log_in]}"


def told(nodes: str, *more: str) -> list[tuple[str, str, str]]:
    return [(one.path, one.message, one.suggestion) for one in problems_of(document(nodes, *more), TOOLS)]


def compiled(nodes: str, *more: str) -> Graph:
    return compile_document(document(nodes, *more), TOOLS)


def node(name: str, nodes: str, *more: str) -> Node:
    return next(one for one in compiled(nodes, *more).nodes if one.name == name)


# ---- what is kept ------------------------------------------------------------------------------------------------


def test_what_a_document_says_of_failures_is_stored_where_it_says_it() -> None:
    graph = compiled(
        "a: {retry: quick, on_failure: {503: {message: Later.}}}, b: {value: 1}",
        "retry: critical",
        "on_failure: {any: [retry, escalate]}",
        "failover: [{name: p, when: {node: a*}, then: rollback}]",
    )
    assert graph.failures == {
        "any": PolicyChange(retry=RetryChange(preset="critical"), ladder=("retry", "escalate"))
    }
    assert graph.failover == (Policy(name="p", when=Match(nodes=("a*",)), then=Action(strategy="rollback")),)
    a, b = graph.nodes
    assert a.failures == {
        "any": PolicyChange(retry=RetryChange(preset="quick")),
        "service_unavailable": PolicyChange(message="Later."),
    }
    assert (b.failures, b.failover, b.ways, b.hooks) == ({}, (), (), {})


def test_a_policy_keeps_its_condition_and_what_it_puts_in_place() -> None:
    (a,) = compiled(
        "a: {tool: find, failover: [{name: p, when: {if: {schema: {}}}, then: {tool: needy, with: {key: '${input.x}'}}}]}"
    ).nodes
    assert a.failover == (
        Policy(
            name="p",
            when=Match(condition=Matches(schema={}, of="last_error")),
            then=Action(tool="needy", arguments={"key": "${input.x}"}),
        ),
    )


def test_what_a_tool_says_of_itself_is_stored_with_its_node() -> None:
    found = node("a", "a: {tool: find}")
    assert (found.domain, found.cost) == ("external_api", 50_000)
    assert [way.name for way in found.ways][:3] == ["find.other", "log_in first", "hour=20"]
    assert found.hooks == {"refresh_and_retry": "log_in", "refresh_credentials": "log_in"}


def test_a_tool_that_may_not_run_is_no_way_out() -> None:
    found = node("a", "a: {tool: find}", RAILS)
    assert "find.other" not in [way.name for way in found.ways]
    assert "log_in first" in [way.name for way in found.ways]


def test_a_tool_that_a_document_names_is_a_way_or_a_hook() -> None:
    helps = Alternative(name="help", tool="help", hints=("help",))
    said = "on_failure: {any: {hints: [help, alternative_provider], before_retry: [help, log_in]}}"
    found = node("a", f"a: {{tool: find, {said}}}")
    assert found.ways[-1] == helps
    assert found.hooks["help"] == "help"
    assert found.hooks["log_in"] == "log_in"
    twice = "failover: [{name: p, then: {hint: help}}, {name: q, then: {hint: help}}]"
    assert [way.name for way in node("a", "a: {tool: find}", twice).ways].count("help") == 1
    assert helps in node("a", "a: {tool: find}, b: {tool: find}", said).ways


def test_a_graph_that_says_nothing_of_failures_is_what_it_was() -> None:
    data = encode_graph(compile_document(document("a: {}, b: {value: 1, after: a}"), {"t": TOOLS["t"]}))
    (a, _) = json.loads(data)["nodes"]
    assert a.keys() == {
        "name",
        "kind",
        "after",
        "tool",
        "tool_version",
        "schema_hash",
        "effect",
        "timeout_ms",
        "arguments",
    }
    assert json.loads(data).keys() == {"name", "nodes"}


@pytest.mark.parametrize("where", ["failures.any.nwe", "failures.any.retry.nwe", "failover.0.nwe",
                                   "failover.0.when.nwe", "failover.0.then.nwe", "failover.0.when.times.0.nwe"])  # fmt: skip
def test_a_rule_that_a_newer_version_knows_is_refused(where: str) -> None:
    graph = compiled(
        "a: {}",
        "retry: quick",
        "failover: [{name: p, when: {time: {from: '22:00'}}, then: {with: {x: 1}}}]",
    )
    value = json.loads(encode_graph(graph))
    inner: Any = value
    *path, last = where.split(".")
    for step in path:
        inner = inner[int(step)] if step.isdigit() else inner[step]
    inner[last] = 1
    with pytest.raises(UnknownEntry):
        decode_graph(json.dumps(value).encode(), KINDS)


# ---- what is told ------------------------------------------------------------------------------------------------

P = "failover: [{name: p, %s}]"
A = "a: {tool: find, %s}"
ONCE = "what goes before a tool is called anew for every attempt, and no claim is made for it"
WRONG: list[tuple[str, str, str, str]] = [
    ("a hint that is unknown", A % "on_failure: {timeout: {hints: [falback_model]}}", "",
     "/nodes/a/on_failure/timeout/hints/0"),
    ("a hook that is unknown", "a: {}", "on_failure: {any: {before_retry: [clear_cash]}}",
     "/on_failure/any/before_retry/0"),
    ("a hint that no tool carries out", A % "on_failure: {any: {hints: [alternative_provider, rephrase_request]}}", "",
     "/nodes/a/on_failure/any/hints/1"),
    ("a hook that no tool carries out", A % "on_failure: {any: {before_retry: clear_cache}}", "",
     "/nodes/a/on_failure/any/before_retry/0"),
    ("a tool that is no help", A % "on_failure: {any: {hints: needy}}", "", "/nodes/a/on_failure/any/hints/0"),
    ("a tool that may act only once, before another", A % "on_failure: {any: {hints: charge}}", "",
     "/nodes/a/on_failure/any/hints/0"),
    ("a hook that may act only once", A % "on_failure: {any: {before_retry: charge}}", "",
     "/nodes/a/on_failure/any/before_retry/0"),
    ("a policy with a tool that may act only once, before another", "a: {tool: find}", P % "then: {hint: charge}",
     "/failover/0/then/hint"),
    ("an argument to change that the tool does not take", A % "on_failure: {any: {may_change: [city, houre]}}", "",
     "/nodes/a/on_failure/any/may_change/1"),
    ("an argument to change that no tool takes", "a: {tool: find}, b: {tool: help}",
     "on_failure: {any: {may_change: [failure, x]}}", "/on_failure/any/may_change/1"),
    ("a hint that may not run", A % "on_failure: {any: {hints: help}}", RAILS, "/nodes/a/on_failure/any/hints/0"),
    ("a hook that may not run", A % "on_failure: {any: {before_retry: help}}", RAILS,
     "/nodes/a/on_failure/any/before_retry/0"),
    ("a policy for no node", "a: {}", P % "when: {node: [a, b*]}, then: rollback", "/failover/0/when/node/1"),
    ("a policy of another node", A % (P % "when: {node: b}, then: rollback"), "", "/nodes/a/failover/0/when/node"),
    ("a policy for a tool that is none", "a: {tool: find}", P % "when: {tool: fnid}, then: rollback", "/failover/0/when/tool/0"),
    ("a policy for a tool that is not here", "a: {}", P % "when: {tool: find}, then: rollback", "/failover/0/when"),
    ("a policy where there is no task", "a: {value: 1}", P % "then: rollback", "/failover/0"),
    ("a policy with an unknown hint", "a: {}", P % "then: {hint: what}", "/failover/0/then/hint"),
    ("a policy with a hint that no tool carries out", "a: {}", P % "then: {hint: rephrase_request}", "/failover/0/then/hint"),
    ("a policy with no such tool", "a: {}", P % "then: {tool: fnid}", "/failover/0/then/tool"),
    ("a policy with a tool that may not run", "a: {}", f"{P % 'then: {tool: find.other}'}\n{RAILS}", "/failover/0/then/tool"),
    ("an argument that its tool does not take", "a: {tool: find}", P % "then: {with: {citty: x}}", "/failover/0/then/with/citty"),
    ("an argument of the wrong type", A % (P % "then: {with: {city: 5}}"), "", "/nodes/a/failover/0/then/with/city"),
    ("an argument that its tool lacks", "a: {tool: find}, b: {tool: find, with: {}}", P % "then: {tool: needy}", "/failover/0/then"),
    ("an expression of the wrong type", A % (P % "then: {with: {city: '${last_error.attempt}'}}"), "",
     "/nodes/a/failover/0/then/with/city"),
    ("an expression that cannot be read", A % (P % "then: {with: {city: '${a.x}'}}"), "", "/nodes/a/failover/0/then/with/city"),
    ("a node that comes later", "a: {}, b: {after: a}", P % "when: {node: a}, then: {with: {x: '${ctx.b.output}'}}",
     "/failover/0/then/with/x"),
    ("its own output", A % (P % "then: {with: {city: '${output}'}}"), "", "/nodes/a/failover/0/then/with/city"),
    ("its own output in a condition", "a: {}", P % "when: {if: output.x > 1}, then: rollback", "/failover/0/when/if"),
    ("a condition that cannot be read", "a: {}", P % "when: {if: {jsonpath: 5}}, then: rollback", "/failover/0/when/if/jsonpath"),
    ("a failure has no such part", "a: {}", P % "when: {if: last_error.zz == 1}, then: rollback", "/failover/0/when/if"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "more", "path"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_what_is_told(nodes: str, more: str, path: str, says: Says) -> None:
    ((found, *said),) = told(nodes, more)
    assert found == path
    says(said)


@pytest.mark.parametrize(
    ("nodes", "more"),
    [
        ("a: {}", "on_failure: {timeout: rollback}"),
        ("a: {tool: find}, b: {}", "on_failure: {any: {hints: [alternative_provider, mine]}}"),
        ("a: {value: 1}", "on_failure: {any: {hints: [rephrase_request], before_retry: [clear_cache]}}"),
        ("a: {tool: find}", P % "when: {tool: 'find*', if: last_error.parameters.x == 1}, then: {hint: fallback_model}"),
        ("a: {tool: find, with: {city: x}}", P % "then: {tool: find.other, with: {hour: '${last_error.attempt}'}}"),
        ("a: {}, b: {after: a}", P % "then: {with: {x: '${ctx.a.output?}'}}, when: {node: b}"),
        ("a: {with: {x: '${last_error.retryable}'}}", ""),
    ],
)  # fmt: skip
def test_what_is_right(nodes: str, more: str) -> None:
    assert told(nodes, more) == []


@pytest.mark.parametrize("field", ["retry: quick", "on_failure: [rollback]", "failover: []"])
@pytest.mark.parametrize("kind", ["wait: {for: 1}", "workflow: other", "value: 1", "human: {title: x}"])
def test_only_what_a_tool_does_can_be_done_again(kind: str, field: str, says: Says) -> None:
    if kind.startswith("workflow") and not field.startswith("failover"):
        return  # another child is started
    first, *_ = told(f"a: {{{kind}, {field}}}")
    says(first[:2])


def test_a_policy_of_the_document_is_told_of_once_however_many_nodes_it_is_for() -> None:
    nodes = ", ".join(f"n{i}: {{}}" for i in range(40))
    assert len(told(nodes, P % "then: {with: {x: '${ctx.zz.output}', y: 1}}")) == 2


def test_a_broken_node_is_told_of_only_what_is_wrong_with_it(says: Says) -> None:
    says(told("a: {tool: nope, on_failure: {any: {hints: [fallback_model]}}}", P % "then: {with: {x: '${input}'}}"))  # fmt: skip


# ---- what is kept until then -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    ["then: {with: {x: '${ctx.a.output}'}}", "then: rollback, when: {if: ctx.a.output.score > 1}"],
)
@pytest.mark.parametrize("at", ["", "c"])
def test_an_output_that_only_a_policy_names_stays_as_long_as_that_may_be_asked(policy: str, at: str) -> None:
    failover = P % (policy if at else policy.replace("when: {", "when: {node: c, "))
    failover = failover if at or "when" in failover else failover.replace("then", "when: {node: c}, then")
    nodes = f"a: {{}}, b: {{after: a}}, c: {{after: b, {failover if at else ''}}}"
    saga = Saga(Program(compiled(nodes, "" if at else failover), KINDS))
    saga.go(done("a", {"score": 2}))
    assert "a" in saga.state.outputs
    assert ready(saga.go(done("b", {}))) == ["c"]
    assert "a" in saga.state.outputs


def test_a_task_has_its_own_policies_first_and_those_of_the_document_that_may_be_for_it() -> None:
    ours = Program(
        compiled(
            f"a: {{{P % 'then: rollback'}}}, b: {{}}, v: {{value: 1}}",
            "failover: [{name: q, when: {node: a}, then: {with: {x: 1}}}, {name: r, then: escalate}]",
        ),
        KINDS,
    )
    names = {name: [policy.name for policy, _ in policies] for name, policies in ours.failover.items()}
    assert names == {"a": ["p", "q", "r"], "b": ["r"]}
    assert ours.failover["a"][1][1].value == {"x": 1}


def test_everything_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidDefinition) as found:
        compiled("a: {on_failure: {any: {hints: [x, y]}}, retry: nope}", "on_failure: {any: nope}")
    assert [problem.path for problem in found.value.problems] == [
        "/nodes/a/on_failure/any/hints/0",
        "/nodes/a/on_failure/any/hints/1",
        "/nodes/a/retry",
        "/on_failure/any",
    ]


UNTRIED_PROBLEM = (
    "no attempt fails with `{}`, so nothing can be tried again, done another way or asked about it",
    "`catch` says where it goes on from such a failure",
)


@pytest.mark.parametrize(
    ("where", "code", "more"),
    [
        ("/nodes/a/on_failure/input_unbound", "input_unbound", ("a: {tool: t, on_failure: {input_unbound: ask_user}}",)),
        ("/on_failure/join_failed", "join_failed", ("a: {tool: t}", "on_failure: {join_failed: retry, any: retry}")),
        (
            "/failover/0/when/code", "child_failed",
            ("a: {tool: t}", "failover: [{name: p, when: {code: child_failed}, then: retry}]"),
        ),
        (
            "/failover/0/when/code/1", "limit_hops",
            ("a: {tool: t}", "failover: [{name: p, when: {code: [timeout, limit_hops]}, then: retry}]"),
        ),
    ],
)  # fmt: skip
def test_a_rule_about_what_no_attempt_fails_with_is_a_problem(
    where: str, code: str, more: tuple[str, ...]
) -> None:
    text, hint = UNTRIED_PROBLEM
    assert told(*more) == [(where, text.format(code), hint)]


def test_only_the_engines_own_codes_are_of_no_attempt_and_catch_takes_them() -> None:
    assert CODES.keys() >= UNTRIED
    codes = ", ".join(sorted(UNTRIED))
    assert told(f"a: {{tool: t, catch: {{code: [{codes}], then: b}}}}, b: {{tool: t}}") == []
    for code in ("timeout", "result_invalid", "output_invalid", "unknown_outcome", "rows_refused", "my_own"):
        assert told(f"a: {{tool: t, on_failure: {{{code}: ask_user}}}}") == []
