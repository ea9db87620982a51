"""Images and files in the prompts of models and agents: what is sent, recorded, and held for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.core.log.codec import encode_entry
from baton.core.log.events import AgentBegan
from baton.core.models.messages import MEDIA_TOKENS
from baton.ports.models import ModelRequest
from tests.core.test_prompt_parts import ASK, PNG, encoded
from tests.kit.scripted import Scripted, asks_for, in_turn, says
from tests.kit.world import TENANT, World
from tests.runtime.test_agents import Desk, of_kind, ran

LARGE = encoded(b"\x89PNG" + bytes(60_000))
PROMPT = 'prompt: [{text: "What is ${input.what}?"}, {image: "${input.photo}"}]'
MODEL = f"name: w\nnodes: {{a: {{model: {{name: m, {PROMPT}}}}}}}\noutput: ${{ctx.a.output}}"
AGENT = (
    f'name: w\nnodes: {{a: {{agent: {{model: m, {PROMPT}, tools: ["sum.add"]}}}}}}\noutput: ${{ctx.a.output}}'
)


def image_of(request: ModelRequest) -> str:
    text, image = request.messages[0]["content"]
    assert text == {"type": "text", "text": "What is it?"}
    return str(image["image_url"]["url"])


async def test_a_model_sees_the_image_and_money_is_held_for_its_tokens() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("A cat.")))
    shown = await ran(world, MODEL, {"what": "it", "photo": LARGE})
    assert shown["result"] == "A cat."
    (request,) = model.requests
    assert image_of(request) == f"data:image/png;base64,{LARGE}"
    assert MEDIA_TOKENS < request.most_input < MEDIA_TOKENS + 500 < len(LARGE)


async def test_the_log_of_an_agent_holds_a_reference_and_every_turn_begins_alike() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(asks_for(("sum_add", {"a": 1, "b": 2})), says("A cat.")))
    shown = await ran(world, AGENT, {"what": "it", "photo": LARGE})
    assert shown["result"] == "A cat."
    one, two = model.requests
    assert image_of(one) == f"data:image/png;base64,{LARGE}"
    assert two.messages[: len(one.messages)] == one.messages
    (began,) = of_kind(world, shown["id"], AgentBegan)
    assert began.given.ref
    assert all(LARGE.encode() not in encode_entry(entry) for entry in world.entries(shown["id"])[1:])


@pytest.mark.parametrize("text", [MODEL, AGENT], ids=["model", "agent"])
async def test_an_image_is_read_by_its_reference(text: str) -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("A cat.")))
    ref = world.blobs.put(TENANT, json.dumps(PNG).encode())
    assert (await ran(world, text, {"what": "it", "photo": ref}))["result"] == "A cat."
    assert image_of(model.requests[0]) == f"data:image/png;base64,{PNG}"


@pytest.mark.parametrize("text", [MODEL, AGENT], ids=["model", "agent"])
@pytest.mark.parametrize("photo", ["hello", "cas://sha256/" + "0" * 64], ids=["no image", "no value"])
async def test_what_is_no_image_fails_the_node_and_nothing_is_asked_or_paid(text: str, photo: str) -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("A cat.")))
    shown = await ran(world, text, {"what": "it", "photo": photo})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "validation_failed")
    assert not model.requests


@pytest.mark.parametrize("text", [MODEL, AGENT], ids=["model", "agent"])
async def test_a_stored_value_that_is_no_json_fails_the_node(text: str) -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(in_turn(says("A cat.")))
    ref = world.blobs.put(TENANT, b"\x93\x00\xff, as a thread of LangGraph has it")
    shown = await ran(world, text, {"what": "it", "photo": ref})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "validation_failed"), shown["parked"]


async def test_thinking_is_within_what_is_held_for_the_answer() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("Three.")))
    text = "name: w\nnodes: {a: {model: {name: m, prompt: hi, thinking: high}, limits: {tokens: 2000}}}"
    assert (await ran(world, text, {}))["status"] == "completed"
    (request,) = model.requests
    assert (request.thinking, request.most_output < 2_000) == ("high", True)


async def test_a_prompt_that_is_given_whole_may_have_images() -> None:
    world = World.start()
    world.models = model = Scripted(in_turn(says("A cat.")))
    given: Any = [ASK, {"image": PNG}]
    text = "name: w\nnodes: {a: {model: {name: m, prompt: '${input}'}}}\noutput: ${ctx.a.output}"
    assert (await ran(world, text.replace("${input}", "${input.p}"), {"p": given}))["result"] == "A cat."
    assert len(model.requests[0].messages[0]["content"]) == 2
