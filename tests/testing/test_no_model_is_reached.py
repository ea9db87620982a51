"""A test of an application reaches no model of a provider, whatever asks one and whatever the shell is logged in to."""

from __future__ import annotations

import socket

import pytest

from baton import tool
from baton.testing import run
from baton.tools.define import Registry
from tests.kit.sentences import Says

TOOLS = Registry()


@tool("held", registry=TOOLS, effect="pure")
def held() -> str:
    return "held"


ASKS = {
    "a node": "nodes: {ask: {model: {name: gpt-5-mini, prompt: x}}}",
    "an agent": "nodes: {ask: {agent: {model: gpt-5-mini, prompt: x, tools: [held]}}}",
    "an agent for each item": "nodes: {ask: {map: {over: [1]}, agent: {model: gpt-5-mini, prompt: x}}}",
    "a graph": "nodes: {start: {graph: g}}\ngraphs: {g: {nodes: {ask: {model: {name: gpt-5-mini, prompt: x}}}}}",
    "another way": "nodes: {ask: {tool: held, replan: {model: gpt-5-mini, tools: [held]}}}",
    "a failure handler": "nodes: {no: {fail: {code: c, message: m}}}\nfailure_handler: {graph: g}\n"
    "graphs: {g: {nodes: {ask: {model: {name: gpt-5-mini, prompt: x}}}}}",
}


@pytest.fixture(autouse=True)
def logged_in_without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*_: object) -> None:
        raise AssertionError("a test has reached out")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-real-account")
    monkeypatch.setattr(socket.socket, "connect", reached)
    monkeypatch.setattr(socket, "getaddrinfo", reached)


@pytest.mark.parametrize("document", ASKS.values(), ids=ASKS)
def test_without_a_script_it_says_which_node_asks_before_anything_runs(document: str, says: Says) -> None:
    with says.raised(ValueError):
        run(f"name: w\n{document}", tools=TOOLS)


@pytest.mark.parametrize("document", ASKS.values(), ids=ASKS)
def test_with_a_script_that_alone_answers(document: str) -> None:
    result = run(f"name: w\n{document}", tools=TOOLS, models={"ask": ["hello"]})
    assert result.status == ("failed" if "failure_handler" in document else "completed")
