"""The returns desk: what its agents do, with answers of models that are written down."""

from __future__ import annotations

from typing import Any

import pytest
from agents.testing import ScriptedModel, assistant_message, function_call

from baton.testing import Result, run
from examples.returns import desk

REFUND = function_call("refund", {"order": "7", "cents": 4_200}, call_id="c2")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the agents answer so, each in turn."""

    def give(**scripts: list[Any]) -> None:
        for name, script in scripts.items():
            monkeypatch.setattr(getattr(desk, name), "model", ScriptedModel([[one] for one in script]))

    give(
        guard=[assistant_message('{"is_about_an_order": true}')],
        triage=[function_call("transfer_to_clerk", {}, call_id="c0")],
        clerk=[
            function_call("find_order", {"text": "order 7"}, call_id="c1"),
            REFUND,
            assistant_message("You get 42 dollars."),
            assistant_message("You are welcome."),
        ],
    )
    return give


def served(**options: Any) -> Result:
    return run(
        desk.serve,
        {"message": "I want the money for order 7 back"},
        **{"answers": {"approve_refund": "approve"}, **options},
    )


def test_a_refund_that_was_approved_is_a_step_of_the_conversation(answers: Any) -> None:
    result = served(signals=[("10m", "message", "Thank you!")])
    assert (result.status, result.output) == ("completed", ["You get 42 dollars.", "You are welcome."]), (
        result
    )
    assert str(result.steps["triage[1]/refund"].output).startswith("refunded 4200 cents")


def test_a_worker_that_dies_in_the_refund_makes_it_once(answers: Any) -> None:
    result = served(kills={"refund": "after"})
    assert (result.status, result.output) == ("completed", ["You get 42 dollars."]), result


def test_a_cancelled_conversation_takes_the_refund_back(answers: Any) -> None:
    result = served(cancel={"at": "30m", "undo": True})
    assert (result.status, result.undone) == ("rolled_back", ["triage[1]/refund"]), result


def test_the_guard_lets_no_other_matter_through(answers: Any) -> None:
    answers(guard=[assistant_message('{"is_about_an_order": false}')])
    assert served().output == ["We answer questions about orders only."]
