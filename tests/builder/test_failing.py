"""What is done when a step fails: what a document can say, calls can, and it means the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from baton import Workflow, caught, matches
from baton.core.documents.compile import compile_document
from baton.core.documents.text import parse_document
from baton.core.graph.graph import encode_graph
from baton.errors import InvalidDefinition
from baton.tools import define
from baton.tools.define import Registry, tool
from tests.core.build import tool_spec
from tests.kit.sentences import Says

FIND = tool_spec("find", {}, city={}, hour={})
TOOLS = {"find": FIND, "other.find": tool_spec("other.find", {}, city={}, hour={})}
DINNER = """
name: dinner
retry: {preset: critical, base: 2s, schedule: [1s, 60s]}
on_failure: {503: {message: Later.}, permanent: rollback}
failover:
  - name: late
    when: {node: find, attempt: 3, if: last_error.class == 'transient'}
    then: escalate
nodes:
  find:
    tool: find
    with: {city: "${input.city}"}
    retry: quick
    on_failure: [retry, escalate]
    failover:
      - name: elsewhere
        when: {tool: ["find"], code: [503], time: {from: "22:00"}, parameters: {city: Wien}, if: {schema: {}}}
        then: {tool: other.find, with: {hour: "${input.hour}"}}
        at_most: 2
    catch:
      - {code: [not_found, 404], class: recoverable, if: last_error.attempt > 1, then: [wait, tell]}
      - {then: tell}
  wait: {wait: {for: 1}, catch: tell}
  tell: {value: "${last_error.code}", catch: [end]}
  end: {value: null}
"""


def dinner() -> Workflow:
    built = Workflow(
        "dinner",
        retry={"preset": "critical", "base": timedelta(seconds=2), "schedule": ["1s", timedelta(minutes=1)]},
        on_failure={"503": {"message": "Later."}, "permanent": "rollback"},
        failover=[
            {
                "name": "late",
                "when": {"node": "find", "attempt": 3, "if": "last_error.class == 'transient'"},
                "then": "escalate",
            }
        ],
    )
    built.task(
        "find",
        "find",
        with_={"city": built.input.city},
        retry="quick",
        on_failure=["retry", "escalate"],
        failover=[
            {
                "name": "elsewhere",
                "when": {
                    "tool": ["find"],
                    "code": (503,),
                    "time": {"from": "22:00"},
                    "parameters": {"city": "Wien"},
                    "if": matches({}),
                },
                "then": {"tool": "other.find", "with": {"hour": built.input.hour}},
                "at_most": 2,
            }
        ],
        catch=[
            caught(
                ["wait", "tell"],
                code=["not_found", 404],
                class_="recoverable",
                if_=f"{built.last_error.attempt} > 1",
            ),
            caught("tell"),
        ],
    )
    built.wait("wait", 1, catch="tell")
    built.value("tell", built.last_error.code, catch=["end"])
    built.value("end", None)
    return built


def test_it_is_the_document_that_is_written_and_the_same_graph() -> None:
    value = parse_document(DINNER).value
    assert dinner().document() == value
    assert encode_graph(dinner().compile(TOOLS)) == encode_graph(compile_document(DINNER, TOOLS))


def test_one_rule_alone_is_a_list_of_one() -> None:
    built = Workflow("w")
    end = built.value("end", 1)
    built.value("a", 1, catch=caught(end))
    assert built.document()["nodes"]["a"]["catch"] == [{"then": "end"}]


def test_tools_may_be_given_as_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(define, "REGISTRY", Registry())

    @tool("failing.first", effect="pure")
    def first() -> None: ...

    built = Workflow("w", on_failure={"any": {"hints": first, "before_retry": [first, "clear_cache"]}})
    built.task("a", first, failover=[{"name": "p", "then": {"tool": first, "hint": "x"}}])
    built.task("b", first, replan={"model": "m", "tools": [first, "table.*"], "within": timedelta(minutes=2)})
    document = built.document()
    assert document["nodes"]["b"]["replan"] == {
        "model": "m",
        "tools": ["failing.first", "table.*"],
        "within": "120s",
    }
    assert document["on_failure"] == {
        "any": {"hints": "failing.first", "before_retry": ["failing.first", "clear_cache"]}
    }
    assert document["nodes"]["a"]["failover"][0]["then"] == {"tool": "failing.first", "hint": "x"}


@pytest.mark.parametrize(
    ("catch", "path"),
    [
        ([caught("b"), "b"], "/nodes/a/catch/1"),
        (7, "/nodes/a/catch"),
        (caught(8), "/nodes/a/catch/0/then"),  # type: ignore[arg-type]  # the mistake
    ],
)
def test_what_is_no_handler_is_told(catch: Any, path: str, says: Says) -> None:
    built = Workflow("w")
    built.value("b", 1)
    built.value("a", 1, catch=catch)
    with pytest.raises(InvalidDefinition) as found:
        built.document()
    (problem,) = found.value.problems
    assert problem.path == path
    says(problem.message)
