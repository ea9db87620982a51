"""Branches, loops, joins, limits: what a document can say, calls can, and it means the same."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import BaseModel

import baton
from baton import (
    OUTPUT,
    Workflow,
    branch,
    caught,
    choose,
    join,
    loop,
    matches,
    poll,
    rule,
)
from baton import builder as room
from baton.builder import control, workflow
from baton.core.documents import models
from baton.core.documents.compile import compile_document
from baton.core.documents.nodes.agent import AgentModel
from baton.core.documents.nodes.base import FAILING
from baton.core.documents.nodes.child import Child
from baton.core.documents.nodes.end import EndModel, FailModel
from baton.core.documents.nodes.human import HumanModel
from baton.core.documents.nodes.model import ModelModel
from baton.core.documents.nodes.wait import WaitModel
from baton.core.documents.parts import control as shapes
from baton.core.documents.parts import failing
from baton.core.documents.parts.control import PollModel
from baton.core.documents.text import parse_document
from baton.core.graph.graph import encode_graph
from baton.errors import InvalidDefinition
from baton.tools import define
from baton.tools.define import Registry, tool
from tests.core.documents import TOOLS
from tests.kit.sentences import Says


class Verdict(BaseModel):
    score: int


ESSAY = """
name: essay
owner: team-letters
metadata: {cost-centre: "4711"}
input: {type: object}
schemas: {fine: {required: [score]}}
timeout: 7200s
limits: {hops: {max: 100, then: throttle}, cost_usd: 1.5}
guardrails: {allowed_tools: [t], allowed_transitions: {ask: [publish, drop]}}
nodes:
  draft: {tool: t, with: {before: "${ctx.judge.previous}", round: "${loop.iteration}"}, limits: {wall_time: 90s}}
  judge:
    tool: t
    with: {text: "${ctx.draft.output}"}
    after: draft
    loop:
      while: output.score < 80
      max_iterations: 5
      back_to: draft
      break_path: publish
      timeout_path: [ask, drop]
    output_schema: fine
  ask:
    wait: {signal: opinion}
    when: ctx.judge.output.score > 40
    branch:
      rules: [{if: output.yes, then: publish}, {if: {schema: fine}, then: [publish, drop]}]
      default: drop
  publish:
    tool: t
    join: any
    branch: {choose: "${output.next}", among: [tell, count], default: tell}
  drop: {value: {why: "${last_error}"}, join: {wait_for: 1, rest: run}}
  tell: {wait: {until: "2026-12-01T09:00:00Z"}}
  count: {wait: {for: "${input.pause}"}}
  end:
    value: ["${ctx.tell.output?}", "${join.outputs}", "${join.arrived}", "${join.errors}"]
    after: [tell, count]
    join: {wait_for: any, tolerated_failures: 50%}
output: "${ctx.end.output?}"
"""


def essay() -> Workflow:
    built = Workflow(
        "essay",
        owner="team-letters",
        metadata={"cost-centre": "4711"},
        input={"type": "object"},
        schemas={"fine": {"required": ["score"]}},
        timeout=timedelta(hours=2),
        limits={"hops": {"max": 100, "then": "throttle"}, "cost_usd": 1.5},
        guardrails={"allowed_tools": ["t"], "allowed_transitions": {"ask": ["publish", "drop"]}},
    )
    # A name as good as the node, which is not there yet.
    again = {"before": "${ctx.judge.previous}", "round": built.loop.iteration}
    draft = built.task("draft", "t", with_=again, limits={"wall_time": timedelta(seconds=90)})
    judge = built.task(
        "judge",
        "t",
        with_={"text": draft.output},
        after=draft,
        loop=loop(
            f"{OUTPUT.score} < 80",
            max_iterations=5,
            back_to=draft,
            break_path="publish",
            timeout_path=["ask", "drop"],
        ),
        output_schema="fine",
    )
    built.wait(
        "ask",
        signal="opinion",
        when=f"{judge.output.score} > 40",
        branch=branch(
            rule(OUTPUT.yes, "publish"), rule(matches("fine"), ["publish", "drop"]), default="drop"
        ),
    )
    built.task("publish", "t", join="any", branch=choose(OUTPUT.next, ["tell", "count"], "tell"))
    built.value("drop", {"why": built.last_error}, join=join(1, rest="run"))
    tell = built.wait("tell", until=datetime(2026, 12, 1, 9, tzinfo=UTC))
    count = built.wait("count", built.input.pause)
    came = built.join
    end = built.value(
        "end",
        [tell.maybe, came.outputs, came.arrived, came.errors],
        after=[tell, count],
        join=join("any", tolerated_failures="50%"),
    )
    built.output(end.maybe)
    return built


def test_branches_loops_and_joins_are_the_document_that_is_written() -> None:
    assert essay().document() == parse_document(ESSAY).value


def test_they_compile_to_the_same_graph() -> None:
    by_yaml = encode_graph(compile_document(ESSAY, TOOLS))
    assert encode_graph(essay().compile(TOOLS)) == by_yaml
    assert encode_graph(compile_document(essay().to_yaml(), TOOLS)) == by_yaml
    assert encode_graph(compile_document(json.dumps(essay().document()), TOOLS)) == by_yaml


# ---- nothing is missing ------------------------------------------------------------------------------------------


def keys(model: Any) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def parameters(function: Any) -> set[str]:
    return {name.rstrip("_") for name in inspect.signature(function).parameters} - {"self", "name", "more"}


def test_every_field_of_a_document_has_a_parameter() -> None:
    head = keys(models.WorkflowModel) - {"$schema", "name", "nodes", "output", "graphs"}
    assert parameters(Workflow.__init__) == head
    kinds = {
        "task": "tool",
        "wait": "wait",
        "workflow": "workflow",
        "graph": "graph",
        "function": "function",
        "value": "value",
        "fail": "fail",
        "end": "end",
        "human": "human",
        "model": "model",
        "agent": "agent",
    }
    assert set(kinds.values()) == set(models.KINDS)
    more = set(workflow.NodeFields.__annotations__)
    own = keys(models.NodeModel) - more - {*models.KINDS, *models.KINDS_TO_COME}
    assert own == {
        "with",
        "input",
        "timeout",
        "callback",
        "retry",
        "on_failure",
        "failover",
        "breaker",
        "key",
        "replan",
        "compensate",
        "requires_approval",
        "cancel_on",
    }
    assert parameters(Workflow.task) == own - {"cancel_on", "input"} | {"tool"}
    assert parameters(Workflow.wait) == keys(WaitModel)
    assert parameters(Workflow.human) == keys(HumanModel)
    assert parameters(Workflow.workflow) == {"workflow", "with"}
    assert parameters(Workflow.function) == {"function", "with"}
    assert set(workflow.OF_CHILD) == set(workflow.ChildFields.__annotations__) - more
    assert set(workflow.OF_CHILD) == set(Child.own) - {"with", "map"}
    asking = set(workflow.ModelOptions.__annotations__) - more
    assert asking - workflow.OF_MODEL == {"timeout", *FAILING}
    assert parameters(Workflow.model) == {"model", "prompt"}
    assert keys(ModelModel) == {"name", "prompt"} | workflow.OF_MODEL
    assert parameters(Workflow.agent) - {"compensate"} | workflow.OF_MODEL == keys(AgentModel)
    assert parameters(Workflow.value) == {"value"}
    assert parameters(Workflow.fail) == keys(FailModel)
    assert parameters(Workflow.end) == keys(EndModel)
    assert parameters(branch) | parameters(choose) == {*keys(shapes.BranchModel), "value"} - {"choose"}
    assert parameters(rule) == keys(shapes.RuleModel)
    assert parameters(loop) == keys(shapes.LoopModel)
    assert parameters(poll) == keys(PollModel)
    assert parameters(join) == keys(shapes.JoinModel)
    assert parameters(caught) == keys(failing.CatchModel)
    for type_, model in (
        (control.Retry, failing.RetryModel),
        (control.Reaction, failing.ReactionModel),
        (control.Match, failing.MatchModel),
        (control.Action, failing.ActionModel),
        (control.Policy, failing.PolicyModel),
    ):
        assert set(type_.__annotations__) == keys(model)
    assert set(control.Limits.__annotations__) == keys(shapes.LimitsModel)
    assert set(control.Guardrails.__annotations__) == keys(shapes.GuardrailsModel)


def test_the_front_door_has_all_that_builds(says: Says) -> None:
    functions = {name for name in room.__all__ if not name[0].isupper()} | {"OUTPUT", "Workflow"}
    assert functions <= set(baton.__all__)
    assert {getattr(baton, name) for name in functions} == {getattr(room, name) for name in functions}
    with says.raised(AttributeError):
        baton.brunch  # type: ignore[attr-defined]  # noqa: B018  # the mistake


# ---- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("until", "written"),
    [
        (datetime(2026, 12, 1, 9, tzinfo=UTC), "2026-12-01T09:00:00Z"),
        (datetime(2026, 12, 1, 9, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=1))), "2026-12-01T08:00:00.250000Z"),
        ("2026-12-01T09:00+01:00", "2026-12-01T09:00+01:00"),
        ("at ${input.when}", "at ${input.when}"),
    ],
)  # fmt: skip
def test_a_time_is_written_with_its_offset(until: datetime | str, written: str) -> None:
    built = Workflow("w")
    built.wait("a", until=until)
    assert built.document()["nodes"]["a"]["wait"] == {"until": written}
    built.compile(TOOLS)


def test_types_can_be_schemas() -> None:
    built = Workflow("w", schemas={"verdict": Verdict, "any": True})
    built.task("a", "t", output_schema=Verdict)
    built.task("b", "t", output_schema=list[int])
    built.task("c", "t", output_schema=False)
    document = built.document()
    assert document["schemas"] == {"verdict": Verdict.model_json_schema(), "any": True}
    schemas = [node["output_schema"] for node in document["nodes"].values()]
    assert schemas == [Verdict.model_json_schema(), {"type": "array", "items": {"type": "integer"}}, False]


def test_a_tool_may_be_allowed_as_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    monkeypatch.setattr(define, "REGISTRY", registry)

    @tool("table.find", registry=registry)
    def find() -> None:
        """Find it."""

    built = Workflow("w", guardrails={"allowed_tools": [find, "x.*"]})
    assert built.document()["guardrails"] == {"allowed_tools": ["table.find", "x.*"]}
    assert Workflow("w", guardrails={"allowed_tools": find}).document()["guardrails"] == {
        "allowed_tools": "table.find"
    }


# ---- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"branch": [rule("true", "b")]}, "branch"),
        ({"branch": branch("b")}, "branch/rules/0"),  # type: ignore[arg-type]  # the mistake
        ({"branch": branch(rule("true", 5))}, "branch/rules/0/then"),  # type: ignore[arg-type]  # the mistake
        ({"branch": branch(rule("true", ["b", OUTPUT]))}, "branch/rules/0/then/1"),  # type: ignore[list-item]  # the mistake
        ({"branch": choose(Workflow("v").input.x, ["b"])}, "branch/choose"),
        ({"loop": "true"}, "loop"),
        ({"loop": loop("output.x", back_to=Workflow("v").value("far", 1))}, "loop/back_to"),
        ({"loop": loop(3)}, "loop/while"),  # type: ignore[arg-type]  # the mistake
        ({"join": rule("true", "b")}, "join"),
        ({"limits": {"hops": {1, 2}}}, "limits/hops"),
        ({"output_schema": Workflow}, "output_schema"),
        ({"output_schema": branch()}, "output_schema"),
        # What the compiler says goes by the same paths.
        ({"branch": branch(rule("true", "bb"))}, "branch/rules/0/then"),
        ({"branch": branch(default="b")}, "branch/rules"),
        ({"limits": {"hopps": 3}}, "limits/hopps"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_and_only_once(fields: Any, path: str, says: Says) -> None:
    built = Workflow("w")
    built.task("b", "t", after="a")
    built.task("a", "t", **fields)
    with pytest.raises(InvalidDefinition) as caught:
        built.compile(TOOLS)
    (problem,) = caught.value.problems
    assert problem.path == f"/nodes/a/{path}"
    says(problem.message.partition(": Unable")[0])  # what follows is pydantic's


def test_times_that_are_none_are_told(says: Says) -> None:
    wrong: Any = {"a": 5}
    built = Workflow("w", guardrails={"allowed_transitions": wrong})
    built.wait("a", until=datetime(2026, 12, 1))  # noqa: DTZ001  # the mistake
    built.wait("b", until=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9))))
    with pytest.raises(InvalidDefinition) as caught:
        built.document()
    says([(problem.path, problem.message) for problem in caught.value.problems])


def test_what_is_no_field_of_a_node_is_refused_as_python_does(says: Says) -> None:
    built = Workflow("w")
    with says.raised(TypeError):
        built.value("a", 1, wen="true")  # type: ignore[call-arg]  # the mistake
    with says.raised(TypeError):
        built.value("a", 1, timeout="5s")  # type: ignore[call-arg]  # the mistake
    assert built.document()["nodes"] == {}


# ---- references --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use", [lambda x: x >= 80, lambda x: x > 80, lambda x: x + 1, lambda x: "a" + x, lambda x: 2 * x]
)
def test_an_operator_says_how_it_is_written(use: Any, says: Says) -> None:
    with says.raised(TypeError):
        use(OUTPUT.x)


def test_type_checkers_refuse_operators_too() -> None:
    with pytest.raises(TypeError):
        OUTPUT.x >= 80  # type: ignore[operator]  # noqa: B015  # the mistake
    with pytest.raises(TypeError):
        OUTPUT.x + 80  # type: ignore[operator]  # the mistake


def test_the_output_of_the_node_itself_is_of_every_workflow() -> None:
    first, second = Workflow("a"), Workflow("b")
    for built in (first, second):
        built.task("n", "t", branch=choose(OUTPUT.next, ["m"]))
    assert first.document()["nodes"] == second.document()["nodes"]
