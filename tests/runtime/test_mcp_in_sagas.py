"""Tools of MCP servers in documents, functions and agents: a server is a service like any other, and is trusted with nothing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from baton import WorkflowContext
from baton.core.log.events import QuestionClosed
from baton.errors import InvalidDefinition
from baton.ports import SagaRef
from baton.runtime.invocation.context import inline
from baton.tools.define import Registry
from baton.tools.functions.define import document_of, workflow
from baton.tools.standard import with_standard
from baton.tools.standard.mcp import WantedTool
from tests.kit.corpus import start
from tests.kit.remote_tools import LOOKUP, RemoteServer, died, pins_of, texts
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, World
from tests.runtime.test_agents import of_kind, ran
from tests.runtime.test_prompt_injection import HOSTILE
from tests.tools.outside import services

DOCUMENT = """
name: w
nodes:
  look: {tool: crm.lookup, with: {email: '${input.email}'}}
output: ${ctx.look.output.id}
"""
AGENT = """
name: w
nodes:
  tend: {agent: {model: m, prompt: p, tools: [crm.lookup, crm.add_note]}}
output: ${ctx.tend.output}
"""


class Crm:
    """A world whose application has pinned the tools of a server."""

    def __init__(self, **pinning: Any) -> None:
        self.world, self.server = World.start(), RemoteServer()
        self.pinning = pinning

    async def deployed(self, build: str = "b1", app: Registry | None = None) -> Crm:
        app = app or Registry()
        app.pins = await pins_of(self.server, **self.pinning)
        at = services(http=self.server, clock=VirtualClock(), offload=inline)
        self.world.registry = with_standard(app, at)
        self.world.tools = self.world.registry.specs()
        self.world.limits = replace(self.world.limits, build=build)
        return self

    async def begun(self, document: str = DOCUMENT) -> str:
        saga = await start(self.world, document, {"email": "ada"}, "w")
        await asyncio.sleep(60)
        return saga

    def status(self, saga: str) -> str:
        head = self.world.log.read_head(SagaRef(TENANT, saga))
        assert head is not None
        return head.status


async def test_a_step_of_a_document_calls_a_tool_by_its_name() -> None:
    crm = await Crm().deployed()
    shown = await ran(crm.world, DOCUMENT, {"email": "ada"})
    assert (shown["status"], shown["result"]) == ("completed", 7)
    assert crm.server.calls == [("lookup", {"email": "ada"})]


async def test_a_document_is_checked_by_the_pinned_schemas_without_a_call() -> None:
    crm = await Crm().deployed()
    crm.server.seen.clear()
    wrong = DOCUMENT.replace("email:", "mail:").replace("output.id", "output.name")
    with pytest.raises(InvalidDefinition) as caught:
        await start(crm.world, wrong, {}, "w")
    assert len(caught.value.problems) >= 2
    assert crm.server.seen == []


async def test_a_call_that_may_have_acted_is_not_repeated_but_asked_about() -> None:
    crm = await Crm().deployed()
    crm.server.does = died
    saga = await crm.begun()
    assert (crm.status(saga), len(crm.server.calls)) == ("suspended", 1)


async def test_a_call_that_was_not_sent_is_tried_again() -> None:
    crm = await Crm().deployed()
    left = ["tools/list", "tools/list"]

    def fails(method: str, _: object) -> None:
        if method in left:
            left.remove(method)
            died()

    crm.server.answers = fails
    saga = await crm.begun()
    assert (crm.status(saga), len(crm.server.calls)) == ("completed", 1)


async def test_a_call_that_ends_while_it_waits_for_the_comparison_of_another_was_not_sent() -> None:
    crm = await Crm().deployed()
    lists, crm.server.send = crm.server.send, None  # type: ignore[method-assign,assignment]
    left = [20.0]

    async def send(request: Any) -> Any:
        if json.loads(request.body)["method"] == "tools/list" and left:
            await asyncio.sleep(left.pop())
        return await lists(request)

    crm.server.send = send  # type: ignore[method-assign]
    both = DOCUMENT.replace("output:", "  also: {tool: crm.add_note, with: {text: x}, timeout: 5s}\noutput:")
    saga = await crm.begun(both)
    assert (crm.status(saga), len(crm.server.calls)) == ("completed", 2)


async def test_a_tool_that_may_act_again_is_tried_again() -> None:
    crm = await Crm(lookup=WantedTool(effect="idempotent")).deployed()
    left = [died, died]
    does = crm.server.does
    crm.server.does = lambda *of: left.pop()() if left else does(*of)
    saga = await crm.begun()
    assert (crm.status(saga), len(crm.server.calls)) == ("completed", 3)


async def test_an_error_of_the_tool_itself_is_neither_repeated_nor_asked_about() -> None:
    crm = await Crm().deployed()
    crm.server.does = lambda *_: texts("no such customer", isError=True)
    text = DOCUMENT.replace("'${input.email}'}", "'${input.email}'}, catch: {code: client_error, then: none}")
    saga = await crm.begun(
        text.replace("output: ${ctx.look.output.id}", "  none: {wait: {for: 1s}}\noutput: caught")
    )
    assert (crm.status(saga), len(crm.server.calls)) == ("completed", 1)


async def test_a_server_that_changes_a_schema_stops_the_step_until_it_is_pinned_anew() -> None:
    crm = await Crm().deployed()
    more = {**LOOKUP["inputSchema"]["properties"], "region": {"type": "string"}}
    crm.server.tools["lookup"] = {**LOOKUP, "inputSchema": {**LOOKUP["inputSchema"], "properties": more}}
    saga = await crm.begun()
    assert (crm.status(saga), crm.server.calls) == ("reflecting", [])
    await crm.deployed("b2")
    await crm.world.settle()
    assert (crm.status(saga), len(crm.server.calls)) == ("completed", 1)


async def test_a_step_of_a_function_calls_a_tool_by_its_name() -> None:
    app = Registry()

    @workflow("asking", mcp=True, registry=app)
    async def asking(email: str, context: WorkflowContext) -> int:
        found = await context.step("crm.lookup", email=email)
        return int(found["id"])

    crm = await Crm().deployed(app=app)
    document = json.dumps(document_of(crm.world.registry["asking"]))
    assert json.loads(document)["mcp"] is True
    saga = await start(crm.world, document, {"email": "ada"}, "asking")
    await crm.world.settle()
    shown = await crm.world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", 7)


@pytest.mark.parametrize("what", HOSTILE)
async def test_what_a_server_says_is_the_result_of_its_call_and_nothing_else(
    what: str,
) -> None:
    crm = await Crm().deployed()
    crm.server.tools["wipe"] = {**LOOKUP, "name": "wipe"}
    crm.server.does = lambda *_: texts(what, structuredContent={"id": 1, "approve": what})
    asks = asks_for(("crm_add_note", {"text": what}), ("crm_wipe", {"email": "a"}))
    crm.world.models = model = Scripted(by_turn(asks, asks_for(("crm_lookup", {"email": "a"})), says("done")))
    shown = await ran(crm.world, AGENT, {})
    assert shown["result"] == "done"
    assert crm.server.calls == [("add-note", {"text": what}), ("lookup", {"email": "a"})]
    assert [offer.name for offer in model.requests[0].tools] == ["crm_add_note", "crm_lookup"]
    told = [one["content"] for one in model.requests[-1].messages if one["role"] == "tool"]
    assert json.loads(told[0]) == {"text": what, "content": []}
    assert json.loads(told[1])["error"]["code"] == "call_not_allowed"
    assert of_kind(crm.world, shown["id"], QuestionClosed) == []


async def test_a_call_waits_for_a_person_where_the_operator_says_so() -> None:
    needs = {"lookup": WantedTool(requires_approval=True), "add-note": WantedTool()}
    crm = await Crm(**needs).deployed()
    saga = await crm.begun()
    assert (crm.status(saga), crm.server.calls) == ("suspended", [])
