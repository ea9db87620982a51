"""The evening from a guest's words: its scripted model, asked as the engine asks it, with the tools that the document allows."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

import sagas
from baton.cli.documents.app import documents, load_app
from baton.core.conditions.schema import violations
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import request_for
from baton.core.graph.graph import Graph
from baton.core.models.messages import wire_names
from baton.demo.promises import EFFECT_OF
from baton.demo.scenario import CITIES, GUEST, WORDS
from baton.ports import StepFailure
from baton.tools.define import REGISTRY
from examples.services.concierge import CREDENTIAL
from tests.example.conftest import Start
from tests.example.test_dinner_tools import context, perform
from tests.kit.sentences import Says

MARKED = {"repeated": True}
SAID = {"words": WORDS, **GUEST}


def graph_of(name: str) -> Graph:
    load_app("sagas")
    (path,) = [path for path in documents(sagas) if path.stem == name]
    return compile_document(path.read_text(encoding="utf-8"), REGISTRY.specs())


def asked(url: str, messages: list[dict[str, Any]], credential: str = CREDENTIAL) -> httpx.Response:
    return httpx.post(
        f"{url}/v1/chat/completions",
        json={"model": "gpt-5-mini", "messages": messages},
        headers={"authorization": credential},
    )


class Evening:
    """An agent as the engine is one, without an engine. `made` is what it called, `told` what the model heard of it."""

    def __init__(self, url: str, words: str) -> None:
        self.names = {wire: tool for tool, wire in wire_names(REGISTRY.specs()).items()}
        self.made: list[tuple[str, Any]] = []
        self.told: list[Any] = []
        self.turns = 0
        self.answer = self._ask(url, [{"role": "user", "content": json.dumps({**GUEST, "words": words})}])

    def _ask(self, url: str, messages: list[dict[str, Any]]) -> Any:
        while True:
            self.turns += 1
            said = asked(url, messages).json()["choices"][0]["message"]
            messages.append(said)
            if "tool_calls" not in said:
                return json.loads(said["content"])
            for call in said["tool_calls"]:
                result = self._call(self.names[call["function"]["name"]], call["function"]["arguments"])
                self.told.append(result)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})

    def _call(self, tool: str, text: str) -> Any:
        arguments = json.loads(text)
        assert not violations(REGISTRY.specs()[tool].parameters, arguments)
        if (tool, arguments) in self.made:
            return MARKED
        self.made.append((tool, arguments))
        try:
            (result,) = perform((tool, arguments, context(f"{len(self.made)}")))
        except StepFailure as failure:
            return {"error": {"code": failure.code, "message": str(failure)}}
        return result


def test_the_agent_meets_a_failure_asks_the_same_again_and_answers_as_its_schema_has_it(
    start_service: Start, services: dict[str, str], says: Says
) -> None:
    evening = Evening(start_service("concierge", "--delay", "all=0"), WORDS)
    assert [tool for tool, _ in evening.made] == [
        "table.search",
        "table.search",
        "delivery.quote",
    ]
    assert evening.told[0]["error"]["code"] == "no_tables"
    says(evening.told[0]["error"]["message"])
    assert evening.told[-1] == MARKED
    assert evening.turns == 3
    (plan,) = [node for node in graph_of("concierge").nodes if node.kind == "agent"]
    assert plan.agent is not None
    assert violations(plan.output_schema, evening.answer) == ()
    assert evening.answer["understood"] == "Thai food for 4 in Vienna"
    assert [step["do"] for step in evening.answer["steps"]] == ["book_table", "order_delivery"]
    assert evening.answer["steps"][0]["deposit_cents"] == 3200


def test_the_model_goes_by_the_words_of_the_guest(start_service: Start, services: dict[str, str]) -> None:
    words = "Something for six in Graz, and for dessert something Greek."
    evening = Evening(start_service("concierge", "--delay", "all=0"), words)
    (_, first), *_ = evening.made
    assert (first["party"], first["city"], first["cuisine"]) == (6, "Graz", "Greek")
    assert evening.told[0]["tables"][0]["house"] == "Olive Yard"


def test_no_credential_but_its_own_is_taken(start_service: Start) -> None:
    url = start_service("concierge", "--delay", "all=0")
    messages = [{"role": "user", "content": json.dumps(SAID)}]
    assert [asked(url, messages, given).status_code for given in (CREDENTIAL, "Bearer sk-real")] == [200, 401]


def test_what_the_agent_may_call_and_what_follows_is_compared_with_the_books_or_does_nothing() -> None:
    (plan,) = [node for node in graph_of("concierge").nodes if node.agent is not None]
    assert plan.agent is not None
    assert {step.tool for step in plan.agent.calls} == {"table.search", "delivery.quote"}
    assert {step.effect for step in plan.agent.calls} == {"pure"}
    steps = [node for name in ("concierge", "evening") for node in graph_of(name).nodes if node.tool]
    acting = {step.tool for step in steps if step.effect != "pure"}
    assert acting - set(EFFECT_OF) == {"concierge.call_off"}


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("table.hold", {"table": "vienna/lantern/2", "party": 4, "at": GUEST["at"]}),
        ("table.deposit", {"hold": "hold-1", "amount_cents": 3200}),
    ],
)
def test_no_person_is_asked_about_the_party_of_the_demo(tool: str, given: dict[str, Any]) -> None:
    assert request_for(tool, given, REGISTRY.specs()[tool]) is None


def test_the_words_of_the_demo_are_an_input_and_no_other_evening_is_in_that_city() -> None:
    assert violations(graph_of("concierge").input_schema, SAID) == ()
    assert not any(city in WORDS for city in CITIES)
