"""Agents in the tests of an application: their models are scripted, and what they did can be looked at."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from baton import Context, StepFailure, tool
from baton.builder import OUTPUT, Workflow, choose
from baton.errors import NotFound
from baton.ports.models import LENGTH, ModelCall
from baton.testing import Call, ModelAnswer, ModelRequest, Result, Unanswered, call, every_tool_once, run
from baton.tools.define import Registry
from tests.kit.sentences import Says

TOOLS = Registry()
KEYS: list[str] = []


class Table(BaseModel):
    """A table that is free."""

    number: int
    seats: int = Field(ge=2)


@tool("table.search", registry=TOOLS, effect="pure")
async def search(city: str, party: int = 2) -> list[Table]:
    """Tables that are free."""
    return [Table(number=len(city), seats=max(party, 2))]


@tool("table.hold", registry=TOOLS)
async def hold(table: Table, context: Context) -> str:
    """Hold a table."""
    KEYS.append(context.idempotency_key)
    return f"held {table.number}"


@tool("table.broken", registry=TOOLS)
def broken() -> None:
    raise StepFailure("business_rule", "closed today")


@tool("odd", registry=TOOLS, effect="pure")
def odd(code: str = Field(pattern="^[A-Z]{3}$")) -> str:
    return code


def agent(*tools: str, **more: Any) -> Workflow:
    w = Workflow("evening")
    found = w.agent("find", "small", f"A table in {w.input.city}.", tools=list(tools or ("table.*",)), **more)
    w.output(found.output)
    return w


def of(models: Any, *tools: str, more: dict[str, Any] | None = None, **options: Any) -> Result:
    KEYS.clear()
    return run(agent(*tools, **more or {}), {"city": "Wien"}, tools=TOOLS, models=models, **options)


# ---- what a model says ---------------------------------------------------------------------------------------------


def test_a_list_has_the_answers_in_turn() -> None:
    result = of([[call("table.search", city="Wien"), call("table.broken")], "Table 4."])
    assert (result.status, result.output) == ("completed", "Table 4.")
    first, last = result.turns("find")
    assert first.calls == (
        Call("table.search", {"city": "Wien"}, [{"number": 4, "seats": 2}], attempts=1),
        Call("table.broken", {}, error="business_rule: closed today", attempts=1),
    )
    assert (first.answer, last.answer, last.calls) == (None, "Table 4.", ())
    assert result.steps["find"].status == "succeeded"
    assert result.steps["find"].output == "Table 4."


def test_one_answer_is_given_each_time() -> None:
    assert of("None is free.").output == "None is free."


def test_a_function_of_the_request_answers() -> None:
    def script(request: ModelRequest) -> object:
        last = request.messages[-1]
        if last["role"] == "user":
            assert last["content"] == "A table in Wien."
            return call("table.search", city=last["content"].split()[-1].strip("."))
        return f"It is {json.loads(last['content'])[0]['number']}."

    assert of(script).output == "It is 4."


def test_an_async_function_may_take_its_time() -> None:
    async def script(request: ModelRequest) -> str:
        await asyncio.sleep(25)
        return "at last"

    result = of(script)
    assert (result.output, round(result.took_s)) == ("at last", 25)


def test_a_value_is_written_as_json_and_text_as_it_is() -> None:
    schema = {"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}}
    result = of(["four", {"number": "4"}, {"number": 4}], more={"output_schema": schema})
    assert result.output == {"number": 4}
    (turn,) = result.turns("find")
    assert (turn.attempts, turn.answer) == (3, {"number": 4})
    assert result.attempts("find") == 3


def test_a_failure_is_a_failure_of_the_model() -> None:
    busy = StepFailure("rate_limited", "slow down")
    result = of([busy, "There."])
    assert (result.output, result.turns("find")[0].attempts) == ("There.", 2)
    refused = of(StepFailure("bad_request", "no"), more={"on_failure": "fail"})
    assert (refused.status, refused.error) == ("failed", "bad_request: no")
    (turn,) = refused.turns("find")
    assert (turn.answer, turn.error) == (None, "bad_request: no")
    assert refused.steps["find"].status == "failed"


def test_a_whole_answer_may_be_wrong_on_purpose(says: Says) -> None:
    nonsense = ModelAnswer(calls=(ModelCall(id="x", name="nonsense", arguments="{"),), finish="calls")
    cut = ModelAnswer(text="Tab", finish=LENGTH)
    result = of([nonsense, cut, "Sorry."])
    first, last = result.turns("find")
    says(first.calls[0].error)
    assert (result.output, last.attempts) == ("Sorry.", 2)


def test_several_nodes_have_a_script_each() -> None:
    w = Workflow("two")
    sort = w.model("sort", "small", "Which cuisine?")
    find = w.agent("find", "large", f"Find {sort.output}.", tools="table.search", after=sort)
    w.output(find.output)
    models = {"sort": "noodles", "find": [call("table.search", city="Wien"), "Table 4."]}
    result = run(w, tools=TOOLS, models=models)
    assert result.output == "Table 4."
    assert [turn.answer for turn in result.turns("sort")] == ["noodles"]
    assert [len(turn.calls) for turn in result.turns("find")] == [1, 0]


def test_agents_of_children_are_scripted_by_their_nodes() -> None:
    w = Workflow("parent")
    w.output(w.workflow("evening", "evening", with_={"city": "Wien"}).output)
    result = run(w, tools=TOOLS, workflows=[agent()], models={"find": "Table 4."})
    assert result.output == "Table 4."


# ---- every tool once -----------------------------------------------------------------------------------------------


def test_every_tool_is_called_once_with_arguments_that_it_takes() -> None:
    schema = {"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}}
    result = of(every_tool_once(), more={"output_schema": schema})
    assert result.output == {"number": 1}
    first, _ = result.turns("find")
    assert [(one.tool, one.arguments) for one in first.calls] == [
        ("table.broken", {}),
        ("table.hold", {"table": {"number": 1, "seats": 2}}),
        ("table.search", {"city": "text"}),
    ]


def test_every_tool_is_called_although_an_answer_may_ask_for_few() -> None:
    result = of(every_tool_once(answer="enough"), more={"calls_in_a_turn": 1})
    made = [one.tool for turn in result.turns("find") for one in turn.calls if one.attempts]
    assert (made, result.output) == (["table.broken", "table.hold", "table.search"], "enough")


def test_no_more_is_asked_for_than_the_agent_may_call() -> None:
    result = of(every_tool_once(), more={"calls": 2})
    made = [one.tool for turn in result.turns("find") for one in turn.calls if one.attempts]
    assert (made, result.output, len(result.turns("find"))) == (["table.broken", "table.hold"], "done", 3)


def test_its_arguments_may_be_given() -> None:
    result = of(
        every_tool_once({"odd": {"code": "ABC"}, "table.search": {"city": "Graz"}}), "odd", "table.search"
    )
    assert [one.output for one in result.turns("find")[0].calls] == ["ABC", [{"number": 4, "seats": 2}]]


def test_where_no_example_can_be_made_it_says_what_to_write(says: Says) -> None:
    with says.raised(ValueError):
        of(every_tool_once(), "odd")
    schema = {"type": "string", "pattern": "^[A-Z]{3}$"}
    with says.raised(ValueError):
        of(every_tool_once(), more={"output_schema": schema})
    with says.raised(ValueError):
        of(every_tool_once({"table.serch": {}}))


# ---- what it came to -----------------------------------------------------------------------------------------------


def test_tokens_and_dollars_are_counted_for_any_model() -> None:
    result = of([call("table.search", city="Wien"), "Table 4."])
    turns = result.turns("find")
    assert all(turn.read > 10 and turn.written > 0 for turn in turns)
    assert result.tokens == sum(turn.read + turn.written for turn in turns)
    assert result.spent_usd == pytest.approx(sum(turn.spent_usd for turn in turns)) != 0
    dear = of("Table 4.", more={"price": {"input": 100, "output": 100}})
    assert dear.spent_usd > 50 * of("Table 4.").spent_usd


def test_a_turn_in_the_background_costs_what_its_answer_has_cost() -> None:
    script = [call("table.search", city="Wien"), "Table 4."]
    waiting, handed = of(script), of(script, more={"background": True, "max_output": 100})
    assert handed.spent_usd == waiting.spent_usd
    assert handed.turns("find") == waiting.turns("find")


def test_equal_calls_are_marked_as_repeated() -> None:
    one = call("table.search", city="Wien")
    result = of([[one, one], "Table 4."])
    first, again = result.turns("find")[0].calls
    assert (first.repeated, again.repeated, again.attempts) == (False, True, 0)
    assert first.output == again.output


def test_a_failing_test_shows_the_turns() -> None:
    shown = repr(of([[call("table.search", city="Wien"), call("table.broken")], "Table 4."]))
    assert shown.splitlines()[1:] == [
        "  find: succeeded = 'Table 4.'",
        "    turn 1: table.search(city='Wien') = [{'number': 4, 'seats': 2}], table.broken() (business_rule: closed today)",
        "    turn 2: = 'Table 4.'>",
    ]


def test_turns_are_of_a_node_that_there_is() -> None:
    with pytest.raises(NotFound, match="Did you mean `find`"):
        of("Table 4.").turns("fnd")


def test_an_agent_in_a_loop_has_turns_in_each_round() -> None:
    text = """
name: it
nodes:
  find:
    agent: {model: small, prompt: Go., tools: [table.search]}
    loop: {while: "loop.iteration < 1", back_to: find}
output: "${ctx.find.output}"
"""
    result = run(text, tools=TOOLS, models=["one", call("table.search", city="Wien"), "two"])
    assert result.output == "two"
    assert [len(result.turns(place)) for place in ("find", "find@0", "find@1")] == [3, 1, 2]


def test_a_call_whose_worker_dies_is_made_again_and_the_list_goes_on_where_it_was() -> None:
    seat = {"number": 4, "seats": 2}
    result = of([call("table.hold", table=seat), "Held."], kills={"find": "after"})
    assert (result.output, result.view["revivals"]) == ("Held.", 1)
    assert len(KEYS) == 2
    assert len(set(KEYS)) == 1


def test_a_person_may_be_asked_about_a_turn() -> None:
    more = {"corrections": 0, "output_schema": {"type": "integer"}}
    with pytest.raises(Unanswered) as asked:
        of(["four", 4], more=more)
    assert asked.value.result.steps["find"].status == "failing"
    result = of(["four", 4], more=more, answers={"find": "retry"})
    assert (result.output, result.turns("find")[0].attempts) == (4, 2)


def test_an_agent_hears_messages_while_it_works(says: Says) -> None:
    async def script(request: ModelRequest) -> str:
        await asyncio.sleep(20)
        return f"heard {len(request.messages)}"

    result = of(script, more={"signal": "more"}, signals=[("10s", "more", "And a view.")])
    assert (result.status, len(result.turns("find")), result.output) == ("completed", 2, "heard 3")
    with says.raised(ValueError):
        of("x", more={"signal": "more"}, signals={"more": "And a view."})


def test_an_agent_may_choose_where_to_go_on() -> None:
    w = Workflow("choosing")
    plan = w.agent("plan", "small", "Where to?", branch=choose(OUTPUT.next, ["book", "ask"], default="ask"))
    booked, asked = w.value("book", "booked"), w.value("ask", "asked")
    w.output([booked.maybe, asked.maybe, plan.output.reasoning])
    chosen = run(w, tools=TOOLS, models=[{"next": ["book"], "reasoning": "A table is free."}])
    assert chosen.output == ["booked", None, "A table is free."]
    assert run(w, tools=TOOLS, models=every_tool_once()).output == [None, "asked", "text"]


# ---- mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "models",
    [
        None,
        {},
        {"fnd": "x"},
        lambda _: None,
        lambda _: object(),
        [call("table.search", city=object())],
        [call("table.serch")],
    ],
)  # fmt: skip
def test_a_mistake_is_told(models: Any, says: Says) -> None:
    with says.raised(ValueError):
        of(models)


def test_a_list_that_is_too_short_says_what_is_asked(says: Says) -> None:
    with says.raised(AssertionError):
        of([call("table.search", city="Wien")])


def test_what_a_script_asserts_fails_the_test() -> None:
    def script(request: ModelRequest) -> str:
        assert "Graz" in request.messages[-1]["content"], "another city"
        return "x"

    with pytest.raises(AssertionError, match="another city"):
        of(script)


def test_a_list_for_several_nodes_is_refused(says: Says) -> None:
    w = Workflow("two")
    w.model("a", "small", "One.")
    w.model("b", "small", "Two.")
    with says.raised(ValueError):
        run(w, tools=TOOLS, models=["x", "y"])
    with says.raised(ValueError):
        run("name: it\nnodes: {a: {value: 1}}", tools=TOOLS, models="x")


# ---- what is meant by what a test says


@pytest.mark.parametrize(
    "models",
    [
        call("table.search", city="Wien"),
        every_tool_once,
        lambda: "x",
        dict,
        {"cuisine": "Thai"},
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_can(models: Any, says: Says) -> None:
    with says.raised(ValueError):
        of(models)


def test_an_answer_that_is_a_list_stands_in_a_list(says: Says) -> None:
    names = {"output_schema": {"type": "array", "items": {"type": "string"}}}
    with says.raised(AssertionError):
        of(["Anna", "Bo"], more=names)
    assert of([["Anna", "Bo"]], more=names).output == ["Anna", "Bo"]


def test_tools_are_called_as_the_document_calls_them(says: Says) -> None:
    with says.raised(ValueError):
        of([call("table.serch", city="Wien")])
    with says.raised(ValueError):
        of([call("zzz")])


def test_no_call_of_an_answer_that_was_cut_off_is_made() -> None:
    KEYS.clear()
    whole = ModelCall(id="1", name="table_hold", arguments='{"table": {"number": 1, "seats": 2}}')
    half = ModelCall(id="2", name="table_hold", arguments='{"table": {"num')
    result = of([ModelAnswer(calls=(whole, half), finish=LENGTH), "no table"])
    assert (result.status, result.output, KEYS) == ("completed", "no table", [])


def test_a_document_does_not_make_a_model_cheaper_whose_price_the_deployment_knows() -> None:
    free = of("Table 4.", more={"price": {"input": 0, "output": 0}})
    assert free.spent_usd == of("Table 4.").spent_usd > 0


def test_a_model_answer_that_does_not_say_its_tokens_has_used_one_for_four_bytes() -> None:
    document = "name: w\nnodes: {a: {model: {name: m, prompt: hi}}}\noutput: '${ctx.a.output}'"
    said, unsaid = (
        run(document, models=[one], tools=TOOLS) for one in ("x" * 40, ModelAnswer(text="x" * 40))
    )
    assert unsaid.tokens == said.tokens < 100
