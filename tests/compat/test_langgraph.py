"""LangGraph graphs as they are, in functions and as tools, in virtual time: what is recorded, asked, repeated and refused."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as chain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from baton import StepFailure, WorkflowContext, tool, workflow
from baton.compat.langgraph import (
    BatonChatModel,
    GraphQuestion,
    GraphTool,
    graph_tool,
    idempotency_key,
    once,
    record_tool_call,
    run_graph,
)
from baton.core.limits import Limits
from baton.core.log.events import QuestionOpened, UnitRecorded
from baton.core.log.questions import Answer
from baton.core.models.usage import Price
from baton.testing import Result, call, run
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.kit.faults import CRASH_AFTER, FREEZE, STALL, Plan
from tests.kit.process import pause
from tests.kit.scripted import Scripted, says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

ASKED = {"messages": [{"role": "user", "content": "Order 7 came broken."}]}


class Said(TypedDict):
    """State of graphs whose nodes say something, side by side."""

    said: Annotated[list[str], lambda left, right: sorted([*left, *right])]


@dataclass
class Shop:
    """A shop: the requests that its model has answered, and the refunds, by their keys."""

    asked: list[int] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    refunds: list[str] = field(default_factory=list)
    seconds: float = 0
    used: dict[str, int] = field(default_factory=lambda: {"input_tokens": 40, "output_tokens": 10})

    def tools(self) -> list[BaseTool]:
        @chain_tool
        async def find_order(number: int) -> str:
            """Find an order."""
            await pause(self.seconds)
            self.found.append(idempotency_key())
            return f"order {number}: a vase, 120 USD"

        @chain_tool
        async def refund(number: int) -> str:
            """Pay an order back."""
            if not interrupt({"question": f"Pay order {number} back?"}):
                return "refused"
            await pause(self.seconds)
            self.refunds.append(idempotency_key())
            return f"order {number} is paid back"

        return [find_order, refund]

    def graph(self, name: str = "") -> Any:
        """The agent of the tutorials: model, tools, model."""
        tools = self.tools()
        model = BatonChatModel(model=ShopModel(shop=self, model_name=name)).bind_tools(tools)

        async def agent(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("agent", agent)
        graph.add_node("tools", ToolNode(tools, awrap_tool_call=record_tool_call))
        graph.add_edge(START, "agent")
        graph.add_conditional_edges("agent", tools_condition)
        graph.add_edge("tools", "agent")
        return graph.compile()


class ShopModel(BaseChatModel):
    """A model that finds the order, pays it back, and says so."""

    shop: Shop
    model_name: str = ""

    @property
    def _llm_type(self) -> str:
        return "shop"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[one.name for one in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        await pause(self.shop.seconds)
        self.shop.asked.append(len(messages))
        assert kwargs["tools"] == ["find_order", "refund"]
        results = [str(one.content) for one in messages if isinstance(one, ToolMessage)]
        calls = ("find_order", "refund")[len(results) : len(results) + 1]
        message = AIMessage(
            "" if calls else f"Done: {results[-1]}",
            tool_calls=[{"name": one, "args": {"number": 7}, "id": f"call-{one}"} for one in calls],
            usage_metadata={**self.shop.used, "total_tokens": sum(self.shop.used.values())},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def declared(graph: Any, registry: Registry | None = None, **options: Any) -> tuple[Registry, Any, GraphTool]:
    """Declare a graph, and the function that runs it."""
    registry = registry or Registry()
    support = graph_tool("shop.support", graph, registry=registry, **options)

    @workflow("support", registry=registry, tools=[support])
    async def flow(input: dict[str, Any], context: WorkflowContext) -> Any:
        return await run_graph(context, support, input)

    return registry, flow, support


def served(shop: Shop, answer: str = "approve", **options: Any) -> Result:
    registry, flow, _ = declared(shop.graph())
    return run(flow, {"input": ASKED}, tools=registry, answers={"ask": answer}, **options)


def texts(output: Any) -> list[str]:
    return [one["content"] for one in output["messages"]]


def titles(result: Result) -> list[str]:
    events = [event for entry in result.entries for event in entry["events"]]
    return [event["ask"]["title"] for event in events if event["kind"] == "question_opened"]


def units(result: Result) -> list[str]:
    """The units of a run, as a test names them."""
    events = [event for entry in result.entries for event in entry["events"]]
    labels = {
        one["item"]: one.get("label") or one["item"]
        for event in events
        if event["kind"] == "operations_began"
        for one in event["operations"]
    }
    return [f"{labels[one['item']]}: {one['name']}" for one in events if one["kind"] == "unit_recorded"]


# ---- a graph runs unchanged


@pytest.mark.parametrize(
    ("answer", "said", "paid"),
    [("approve", "order 7 is paid back", 1), ("reject", "refused", 0)],
)
def test_an_interrupt_is_a_question_and_its_answer_goes_back(answer: str, said: str, paid: int) -> None:
    result = served(shop := Shop(), answer)
    assert (result.status, result.way) == ("completed", ["support", "ask_person[1]/ask", "support#2"])
    assert texts(result.output) == [
        "Order 7 came broken.",
        "",
        "order 7: a vase, 120 USD",
        "",
        said,
        f"Done: {said}",
    ]
    assert (shop.asked, len(shop.refunds)) == ([1, 3, 5], paid)
    assert titles(result) == ["Pay order 7 back?"]


def test_its_units_have_the_names_of_nodes_calls_and_supersteps() -> None:
    found = units(served(Shop()))
    assert sum("checkpoint" in one for one in found) <= 9, "one for a superstep, and a few"
    named = [one.rpartition(" ")[0] for one in found if "checkpoint" not in one]
    assert named == [
        "support: agent/model 1",
        "support: tools/find_order 2",
        "support: agent/model 3",
        "support#2: tools/refund 4",
        "support#2: agent/model 5",
    ]


FEW = 3
"""Of so many units one is tried; in `make soak` each."""
KILLS = [("after", FEW), *(pytest.param(one, 1, marks=pytest.mark.soak) for one in ("before", "after"))]


@pytest.mark.parametrize(("moment", "some"), KILLS)
def test_a_worker_that_dies_at_any_unit_repeats_that_unit_alone(moment: str, some: int) -> None:
    for unit in units(served(Shop()))[::some]:
        result = served(shop := Shop(), kills={unit: moment})
        assert (result.status, result.view["revivals"], len(result.output["messages"])) == ("completed", 1, 6)
        repeated = moment == "after"
        assert len(shop.asked) == 3 + (repeated and "/model" in unit), unit
        assert len(shop.found) == 1 + (repeated and "find_order" in unit), unit
        assert len(shop.refunds) == 1 + (repeated and "refund" in unit), unit
        assert len({*shop.refunds}) == len({*shop.found}) == 1, "a repeated call has its key"


@pytest.mark.parametrize("binds", [True, False])
def test_a_model_of_a_test_may_return_itself_with_its_tools(binds: bool) -> None:
    class Itself(ShopModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self.model_copy(update={"model_name": "bound"}) if binds else None

    model = BatonChatModel(model=Itself(shop=Shop()), priced_as="")
    if binds:
        bound: Any = model.bind_tools([])
        assert (bound.model.model_name, bound.priced_as) == ("bound", "")
    else:
        with pytest.raises(TypeError, match=r"Itself\.bind_tools"):
            model.bind_tools([])


def test_a_plain_node_that_invokes_a_model_is_recorded_from_its_thread() -> None:
    shop = Shop()
    model = BatonChatModel(model=ShopModel(shop=shop)).bind_tools(shop.tools())

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    async def blocks(state: MessagesState) -> dict[str, Any]:
        return agent(state)

    results = []
    for node in (agent, blocks):
        graph = StateGraph(MessagesState).add_node("agent", node).add_edge(START, "agent").compile()
        registry, flow, _ = declared(graph)
        results.append(run(flow, {"input": ASKED}, tools=registry))
    assert [one.status for one in results] == ["completed", "parked"]
    assert any(one.startswith("support: agent/model 1") for one in units(results[0]))
    assert "ainvoke" in results[1].error
    assert shop.asked == [1]


# ---- interrupts


def test_several_interrupts_at_once_are_several_questions() -> None:
    def asks(title: str) -> Any:
        async def node(state: Said) -> dict[str, Any]:
            return {"said": [interrupt({"title": title, "options": ["approve", "later"]})]}

        return node

    async def twice(state: Said) -> dict[str, Any]:
        return {"said": [f"{interrupt('first?')} {interrupt('second?')}"]}

    graph = StateGraph(Said)
    for name, node in {"size": asks("Size?"), "hue": asks("Hue?"), "both": twice}.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    registry, flow, _ = declared(graph.compile())
    answers = {"ask": ["approve", "approve", "approve", "reject"]}
    clean = run(flow, {"input": {"said": []}}, tools=registry, answers=answers)
    assert (clean.status, clean.output) == ("completed", {"said": ["True False", "approve", "approve"]}), (
        clean
    )
    for unit in ["support#2", *units(clean)[::FEW]]:
        moment = (
            "before" if ":" in unit else "after"
        )  # its second question was recorded, and its step was not
        result = run(flow, {"input": {"said": []}}, tools=registry, answers=answers, kills={unit: moment})
        assert (result.output, len(titles(result))) == (clean.output, 4), unit


def test_a_node_that_has_ended_beside_one_that_was_cut_off_does_not_run_again() -> None:
    ran: list[str] = []

    async def quick(state: Said) -> dict[str, Any]:
        ran.append("quick")
        return {"said": ["quick"]}

    async def slow(state: Said) -> dict[str, Any]:
        await asyncio.sleep(1)
        return {"said": [await once("ask", str, "slow")]}

    graph = StateGraph(Said).add_node("quick", quick).add_node("slow", slow)
    registry, flow, _ = declared(graph.add_edge(START, "quick").add_edge(START, "slow").compile())
    (unit,) = [one for one in units(run(flow, {"input": {"said": []}}, tools=registry)) if "slow/ask" in one]
    ran.clear()
    result = run(flow, {"input": {"said": []}}, tools=registry, kills={unit: "after"})
    assert (result.output, ran) == ({"said": ["quick", "slow"]}, ["quick"])


def test_an_interrupt_of_a_nested_graph_is_a_question_and_no_finished_node_runs_again() -> None:
    ran: Counter[str] = Counter()

    def counted(name: str, asks: str = "") -> Any:
        async def node(state: Said) -> dict[str, Any]:
            said = interrupt(asks) if asks else name
            ran[name] += 1
            return {"said": [f"{name} {said}"]}

        return node

    inner = StateGraph(Said).add_node("look", counted("look")).add_node("decide", counted("decide", "Sure?"))
    inner = inner.add_edge(START, "look").add_edge("look", "decide")
    outer = StateGraph(Said).add_node("first", counted("first")).add_node("inner", inner.compile())
    outer = outer.add_node("last", counted("last"))
    graph = outer.add_edge(START, "first").add_edge("first", "inner").add_edge("inner", "last").compile()
    registry, flow, _ = declared(graph)
    clean = run(flow, {"input": {"said": []}}, tools=registry, answers={"ask": "approve"})
    assert {"decide True", "first first", "last last"} <= {*clean.output["said"]}, clean
    assert ran == Counter(["first", "look", "decide", "last"])
    for unit in units(clean)[::FEW]:
        ran.clear()
        result = run(
            flow, {"input": {"said": []}}, tools=registry, answers={"ask": "approve"}, kills={unit: "after"}
        )
        assert (result.output, result.view["revivals"]) == (clean.output, 1)
        assert sum(ran.values()) <= 5, "at most the node that was cut off runs again"


def test_what_a_node_has_done_before_its_interrupt_is_not_done_again_for_the_answer() -> None:
    acts: list[str] = []

    def sends(to: str) -> str:
        acts.append(to)
        return f"{to} {len(acts)}"

    async def node(state: Said) -> dict[str, Any]:
        first = [await once("send", sends, one) for one in ("a", "a", "b")]
        interrupt("Go on?")
        return {"said": [*first, await once("send", sends, "a")]}

    graph = StateGraph(Said).add_node("node", node).add_node("next", node)
    compiled = graph.add_edge(START, "node").add_edge("node", "next").compile()
    registry, flow, _ = declared(compiled)
    for kills in ({}, {"support#2": "after"}, {"support#2: checkpoint 1": "after"}):
        acts.clear()
        result = run(flow, {"input": {"said": []}}, tools=registry, answers={"ask": "approve"}, kills=kills)
        assert result.output == {"said": ["a 1", "a 2", "a 4", "a 5", "a 6", "a 8", "b 3", "b 7"]}
        assert acts == ["a", "a", "b", "a"] * 2


def test_a_schema_of_an_interrupt_is_that_of_its_question() -> None:
    class Address(BaseModel):
        city: str

    async def node(state: Said) -> dict[str, Any]:
        return {"said": [str(interrupt("Where to?", response_schema=Address))]}

    graph = StateGraph(Said).add_node("node", node).add_edge(START, "node").compile()
    registry, flow, _ = declared(graph)
    answer = {"action": "submit", "data": {"city": "Berlin"}}
    result = run(flow, {"input": {"said": []}}, tools=registry, answers={"ask": answer})
    assert (result.status, result.output) == ("completed", {"said": ["city='Berlin'"]}), result


def test_calls_that_langchains_middleware_shows_are_decided_one_by_one() -> None:
    requests = [{"name": one, "args": {"n": 1}, "description": f"{one}?"} for one in ("send", "delete")]

    async def node(state: Said) -> dict[str, Any]:
        decided = interrupt({"action_requests": requests, "review_configs": []})
        return {"said": [json.dumps(decided, sort_keys=True)]}

    graph = StateGraph(Said).add_node("node", node).add_edge(START, "node").compile()
    registry, flow, _ = declared(graph)
    answers: Any = {"ask": ["approve", {"action": "reject", "comment": "never"}]}
    result = run(flow, {"input": {"said": []}}, tools=registry, answers=answers)
    decided = {"decisions": [{"type": "approve"}, {"message": "never", "type": "reject"}]}
    assert json.loads(result.output["said"][0]) == decided
    assert titles(result) == ["send?", "delete?"]


def test_an_application_answers_an_interrupt_in_its_own_way() -> None:
    registry = Registry()
    support = graph_tool("shop.support", Shop().graph, registry=registry)  # made when it first runs

    async def by_signal(context: WorkflowContext, question: GraphQuestion) -> Any:
        return await context.signal("decision")

    @workflow("support", registry=registry, tools=[support])
    async def flow(context: WorkflowContext) -> Any:
        return await run_graph(context, support, ASKED, ask=by_signal)

    result = run(flow, {}, tools=registry, signals={"decision": True})
    assert texts(result.output)[-1] == "Done: order 7 is paid back"


def test_a_graph_is_a_tool_of_a_document() -> None:
    registry, _, _ = declared(Shop().graph())
    document = f"name: w\nnodes: {{a: {{tool: shop.support, with: {{input: {json.dumps(ASKED)}}}}}}}\noutput: ${{ctx.a.output}}"
    found = run(document, tools=registry).output
    assert [one["value"] for one in found["questions"]] == [{"question": "Pay order 7 back?"}]
    assert found["state"]


@pytest.mark.parametrize("more", [{"resume": {"q": True}}, {"thread": "of-another"}, {"state": "s"}])
def test_a_model_neither_answers_questions_nor_opens_threads(more: dict[str, Any]) -> None:
    shop = Shop()
    registry, _, _ = declared(shop.graph())
    document = "name: w\nnodes: {a: {agent: {model: m, prompt: p, tools: [shop.support]}}}"
    result = run(document, tools=registry, models=[call("shop.support", input=ASKED, **more), "I cannot."])
    (found,) = result.turns("a")[0].calls
    assert ("input_invalid" in str(found.error), shop.asked) == (True, [])


# ---- the end of a saga, and other branches


def test_a_cancelled_saga_undoes_what_the_graph_has_done() -> None:
    undone: list[Any] = []
    registry = Registry()

    @tool("shop.take_back", registry=registry)
    async def take_back(output: dict[str, Any]) -> None:
        undone.append(texts(output)[-1])

    shop = Shop()
    support = graph_tool("shop.support", shop.graph(), registry=registry, undo="shop.take_back")

    @workflow("support", registry=registry, tools=[support])
    async def flow(fails: bool, context: WorkflowContext) -> Any:
        await run_graph(context, support, ASKED)
        if fails:
            raise StepFailure("no", "it is no use", kind="permanent")
        return await context.signal("never")

    failed = run(flow, {"fails": True}, tools=registry, answers={"ask": "approve"})
    assert (failed.status, undone) == ("rolled_back", ["Done: order 7 is paid back", ""])
    undone.clear()
    cancel = {"at": "1h", "undo": True}
    stopped = run(flow, {"fails": False}, tools=registry, answers={"ask": "approve"}, cancel=cancel)
    assert (stopped.status, len(undone), len(shop.refunds)) == ("rolled_back", 2, 2)


async def in_world(shop: Shop, name: str = "", **options: Any) -> tuple[World, str]:
    """Begin the agent in a simulated deployment; return its saga. `name`: of its model, for the price."""
    world = World.start(**options)
    declared(shop.graph(name), world.registry)
    world.tools = world.registry.specs()
    await world.service_without_faults().register(
        json.dumps(document_of(world.registry["support"])), json_only=True
    )
    view, _ = await world.service_without_faults().start("support", {"input": ASKED}, "")
    return world, str(view["id"])


async def answered(world: World, saga: str, action: str = "approve") -> dict[str, Any]:
    await world.settle()
    (ask,) = (await world.queries_without_faults().show(saga))["questions"]
    await world.service_without_faults().answer(saga, Answer(ask=ask["id"], action=action), key=action)
    await world.settle()
    return await world.queries_without_faults().show(saga)


async def test_a_fork_from_before_an_answer_takes_another_one() -> None:
    world, saga = await in_world(shop := Shop())
    assert texts((await answered(world, saga))["result"])[-1] == "Done: order 7 is paid back"
    (asked,) = [
        one.version
        for one in world.entries(saga)
        if any(isinstance(event, QuestionOpened) for event in one.events)
    ]
    service = world.service_without_faults()
    await service.fork(saga, asked, "again", key="fork-1")
    assert texts((await answered(world, saga, "reject"))["result"])[-1] == "Done: refused"
    assert (len(shop.refunds), shop.asked) == (1, [1, 3, 5, 5]), (
        "what came before the fork is not asked again"
    )


def what_came(shop: Shop, fate: str, at: int) -> tuple[str, str, int]:
    """Run it while one write of a worker meets its fate; return status, last text, and the calls beyond one of each."""

    async def story() -> tuple[str, str, int]:
        world, saga = await in_world(shop, plan=Plan(at={at: fate}))
        view = await answered(world, saga)
        recorded = [event for event in world.events(saga) if isinstance(event, UnitRecorded)]
        assert len({(one.item, one.key) for one in recorded}) == len(recorded), "a unit is recorded once"
        return view["status"], texts(view["result"])[-1], len(shop.asked) + len(shop.refunds) - 4

    return run_virtual(story())


SOME = range(4, 38, 9)
ALL = pytest.param(range(1, 38), marks=pytest.mark.soak)


@pytest.mark.parametrize("writes", [SOME, ALL])
@pytest.mark.parametrize("fate", [CRASH_AFTER, STALL, FREEZE])
def test_a_worker_that_is_frozen_or_loses_its_lease_repeats_no_recorded_call(
    fate: str, writes: range
) -> None:
    for at in writes:
        status, said, more = what_came(Shop(seconds=0.3), fate, at)
        assert (status, said) == ("completed", "Done: order 7 is paid back"), at
        assert more <= 1, "the call during which it stood still, at most"


# ---- threads, long runs, money, and what is refused


def _counting() -> Any:
    async def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"{len(state['messages'])}")]}

    return StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")


@pytest.mark.parametrize("has_saver", [False, True])
def test_a_thread_outlasts_a_run_and_is_the_savers_that_the_graph_has(has_saver: bool) -> None:
    registry, saver = Registry(), InMemorySaver() if has_saver else None
    chat = graph_tool("shop.chat", _counting().compile(checkpointer=saver), registry=registry)

    @workflow("talk", registry=registry, tools=[chat])
    async def talk(context: WorkflowContext) -> Any:
        await run_graph(context, chat, {"messages": [("user", "a")]}, thread="ann")
        await run_graph(context, chat, {"messages": [("user", "b")]}, thread="bob")
        return await run_graph(context, chat, {"messages": [("user", "c")]}, thread="ann")

    for kills in ({}, {"chat#3: checkpoint 1": "after"}, {"chat#3": "after"}):
        result = run(talk, {}, tools=registry, kills=kills)
        assert texts(result.output) == ["a", "1", "c", "3"]
        if saver is not None:
            found = saver.get_tuple({"configurable": {"thread_id": "ann"}})
            assert found is not None
            assert len(found.checkpoint["channel_values"]["messages"]) == 4
            saver.delete_thread("ann")


def test_a_long_graph_goes_on_in_steps_with_journals_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baton.compat.langgraph.run.MOST_UNITS", 3)
    result = served(shop := Shop(), kills={"support#2: checkpoint 1": "after"})
    assert (result.status, shop.asked, len(shop.refunds)) == ("completed", [1, 3, 5], 1)
    assert len([one for one in result.way if one.startswith("support")]) >= 3
    assert texts(result.output)[-1] == "Done: order 7 is paid back"


async def test_money_is_held_before_a_request_and_its_usage_counts_after_it() -> None:
    world, saga = await in_world(shop := Shop(), name="gpt-5-mini", models=_Priced())
    view = await answered(world, saga)
    assert (view["status"], view["spent_usd"]) == ("completed", 3 * (40 * 2 + 10 * 8) / 1e6)
    poor, saga = await in_world(
        shop := Shop(), name="gpt-5-mini", models=_Priced(), limits=Limits(saga_budget_usd="0.01")
    )
    await poor.settle()
    view = await poor.queries_without_faults().show(saga)
    assert (view["status"], shop.asked) == ("parked", []), "no request without money for its longest answer"


class _Priced(Scripted):
    """Models of which only prices are asked for."""

    def __init__(self) -> None:
        super().__init__(lambda request, number: says("no"))

    def price(self, model: str) -> Price | None:
        return Price(input=2_000_000, output=8_000_000)


@dataclass
class Parcel:
    city: str


def test_a_value_that_no_checkpoint_gives_back_is_refused_unless_its_type_is_allowed() -> None:
    class State(TypedDict):
        parcel: Any

    async def node(state: Any) -> dict[str, Any]:
        return {"parcel": Parcel("Berlin")}

    async def then(state: Any) -> dict[str, Any]:
        return {"parcel": state["parcel"].city}

    graph = StateGraph(State).add_node("node", node).add_node("then", then)
    compiled = graph.add_edge(START, "node").add_edge("node", "then").compile()
    registry, flow, _ = declared(compiled)
    refused = run(flow, {"input": {"parcel": None}}, tools=registry)
    assert refused.status == "parked"
    assert "types=[Parcel]" in refused.error
    registry, flow, _ = declared(compiled, types=[Parcel])
    result = run(flow, {"input": {"parcel": None}}, tools=registry, kills={"support: checkpoint 3": "after"})
    assert result.output == {"parcel": "Berlin"}, result


def test_a_graph_without_an_end_fails_its_step() -> None:
    graph = _counting().add_edge("node", "node").compile()
    registry, flow, _ = declared(graph, config={"recursion_limit": 3})
    assert run(flow, {"input": {"messages": []}}, tools=registry).error.startswith("loop_exhausted")


async def test_a_graph_runs_outside_of_baton_as_it_did() -> None:
    graph = (shop := Shop()).graph()
    saver = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "t"}}
    graph = graph.copy({"checkpointer": saver})
    assert (await graph.ainvoke(ASKED, config))["__interrupt__"]
    found = await graph.ainvoke(Command(resume=True), config)
    assert (
        texts({"messages": [one.model_dump() for one in found["messages"]]})[-1]
        == "Done: order 7 is paid back"
    )
    assert (shop.asked, shop.refunds) == ([1, 3, 5], [""])


def test_neither_langgraph_nor_langchain_is_imported_before_a_graph_runs() -> None:
    code = (
        "import sys, baton, baton.wiring, baton.compat.langgraph as it; it.graph_tool('a.b', lambda: None); "
    )
    code += "print([one for one in sys.modules if one.split('.')[0] in ('langgraph', 'langchain_core', 'langsmith')])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
