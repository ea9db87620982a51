"""The standard tools in a test of an application: through the engine, with what it makes of `once` and of failures."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from baton.errors import InvalidDefinition
from baton.testing import ModelRequest, Result, Unanswered, call, run
from baton.tools.define import Registry, tool
from tests.kit.payments import LOST, NO, Payments, payment_service
from tests.kit.sentences import Says


def document(**nodes: dict[str, Any]) -> str:
    """One whose author has decided that no payment needs an approval."""
    return json.dumps({"name": "evening", "risk": [], "nodes": nodes})


def test_a_saga_stores_reads_and_notifies() -> None:
    text = document(
        write={"tool": "std.upsert", "with": {"type": "order", "id": "o-1", "data": {"seats": 2}}},
        read={"tool": "std.get", "with": {"type": "order", "id": "o-1"}, "after": "write"},
        file={"tool": "std.put_object", "with": {"name": "menu", "text": "soup"}, "after": "read"},
        tell={"tool": "std.notify", "with": {"to": "ada@home.example", "subject": "x", "text": "y"}, "after": "file"},
    )  # fmt: skip
    result = run(text, tools=Registry())
    assert result.status == "completed", result
    assert result.steps["read"].output["data"] == {"seats": 2}
    assert result.steps["tell"].output["to"] == "ada@home.example"


def test_the_same_mail_to_the_same_person_is_sent_once() -> None:
    letter = {"to": "ada@home.example", "subject": "x", "text": "y"}
    text = document(
        a={"tool": "std.notify", "with": letter},
        b={"tool": "std.notify", "with": letter, "after": "a"},
        c={"tool": "std.notify", "with": letter | {"text": "z"}, "after": "b"},
    )
    steps = run(text, tools=Registry()).steps
    assert [steps[name].output["message"] for name in "abc"] == ["letter-1", "letter-1", "letter-2"]


@pytest.mark.parametrize(
    ("pause", "letters"), [("3d", ["letter-1", "letter-2"]), ("1h", ["letter-1", "letter-1"])]
)
def test_a_reminder_in_the_same_words_is_sent_unless_it_is_the_same_day(
    pause: str, letters: list[str]
) -> None:
    letter = {"to": "ada@home.example", "subject": "x", "text": "y"}
    text = document(
        tell={"tool": "std.notify", "with": letter},
        rest={"wait": {"for": pause}, "after": "tell"},
        remind={"tool": "std.notify", "with": letter, "after": "rest"},
    )
    steps = run(text, tools=Registry()).steps
    assert [steps[name].output["message"] for name in ("tell", "remind")] == letters


def test_two_nodes_that_pay_the_same_to_the_same_are_two_payments() -> None:
    with payment_service() as books:
        given = {"amount": 500, "currency": "EUR", "to": "lantern", "service": books.url}
        node = {"tool": "std.pay", "with": given}
        result = run(document(deposit=node, rest=node | {"after": "deposit"}), tools=Registry())
        assert result.status == "completed", result
        assert (len(books.paid), books.accounts["default"]) == (2, 99_000)


def test_a_payment_is_approved_first_unless_the_document_says_otherwise() -> None:
    with payment_service() as books:
        given = {"amount": 500, "currency": "USD", "to": "lantern", "service": books.url}
        text = document(pay={"tool": "std.pay", "with": given}).replace('"risk": [], ', "")
        with pytest.raises(Unanswered) as unanswered:
            run(text, tools=Registry())
        assert 'answers={"pay": "approve"}' in str(unanswered.value)
        assert run(text, tools=Registry(), answers={"pay": "reject"}).error.startswith("rejected")
        assert books.paid == []
        assert run(text, tools=Registry(), answers={"pay": "approve"}).status == "completed"
        assert len(books.paid) == 1


def test_a_stand_in_takes_the_place_of_a_standard_tool() -> None:
    text = document(ask={"tool": "std.http", "with": {"url": "https://lantern.example/tables"}})
    answer = {"status": 200, "headers": {}, "body": [1]}
    result = run(text, tools=Registry(), stand_ins={"std.http": lambda **given: answer})
    assert result.steps["ask"].output == answer


def test_after_a_lost_answer_of_a_payment_service_one_payment_is_made() -> None:
    with payment_service() as books:
        books.faults["execute"] = [LOST]
        given = {"amount": 500, "currency": "EUR", "to": "lantern", "service": books.url}
        result = run(document(pay={"tool": "std.pay", "with": given, "retry": "quick"}), tools=Registry())
        assert result.status == "completed", result
        assert (len(books.paid), books.paid[0].status) == (1, "confirmed")
        assert books.accounts["default"] == 99_500


def paying(refusals: int, **options: Any) -> tuple[Result, Payments]:
    """A payment whose confirmation is refused so many times."""
    with payment_service() as books:
        books.faults["confirm"] = [NO] * refusals
        given = {"amount": 500, "currency": "EUR", "to": "lantern", "service": books.url}
        return run(document(pay={"tool": "std.pay", "with": given}), tools=Registry(), **options), books


def test_a_confirmation_that_is_refused_once_is_made_by_who_looks() -> None:
    result, books = paying(1)
    assert result.status == "completed", result
    assert result.steps["pay"].output["payment"] == "p-1"
    assert [one.status for one in books.paid] == ["confirmed"]


@pytest.mark.parametrize(("answer", "status"), [(None, "parked"), ("retry", "completed")])
def test_a_confirmation_that_is_refused_for_good_is_for_a_person_and_nothing_is_paid_again(
    answer: str | None, status: str, says: Says
) -> None:
    result, books = paying(5 if answer else 50, answers={"pay": answer})
    assert result.status == status, result
    assert [(one.status, one.payment) for one in books.paid] == [
        ("confirmed" if answer else "executed", "p-1")
    ]
    assert not [phase for phase, _ in books.requests if phase == "release"]
    assert books.accounts["default"] == 99_500
    if answer is None:
        says.within(result.error)


def test_only_a_rule_for_it_lets_an_effect_in_doubt_ask_no_person(says: Says) -> None:
    with pytest.raises(Unanswered) as asked:
        paying(50)
    says.within(str(asked.value))
    assert asked.value.result.error.startswith("unknown_outcome: ")


def test_time_is_virtual_again_after_an_answer() -> None:
    import asyncio

    registry = Registry()

    @tool("sleep", registry=registry, timeout="15m")
    async def sleep() -> None:
        await asyncio.sleep(600)

    with payment_service() as books:
        url = books.url + "/reservations?reference=x"
        text = document(ask={"tool": "std.http", "with": {"url": url}}, wait={"tool": "sleep", "after": "ask", "timeout": "15m"})  # fmt: skip
        result = run(text, tools=registry, worker_timeout="3h")
    assert result.status == "completed", result


@pytest.mark.parametrize("name", ["std.htp", "http"])
def test_a_stand_in_for_no_tool_is_refused(name: str, says: Says) -> None:
    with says.raised(Exception):
        run(document(ask={"tool": "std.http"}), tools=Registry(), stand_ins={name: print})


def test_a_pipeline_is_a_step_like_others_and_its_result_goes_on() -> None:
    flights = [{"airline": "Delta", "price": 299}, {"airline": "United", "price": 199}]
    cheapest = [{"op": "top_k", "k": 1, "by": "price", "order": "asc"}]
    text = document(
        cheapest={"tool": "std.pipeline", "with": {"data": {"flights": flights}, "steps": cheapest}},
        keep={
            "tool": "std.upsert", "after": "cheapest",
            "with": {"type": "flight", "id": "f", "data": "${ctx.cheapest.output.result[0]}"},
        },
        read={"tool": "std.get", "with": {"type": "flight", "id": "f"}, "after": "keep"},
    )  # fmt: skip
    result = run(text, tools=Registry())
    assert result.status == "completed", result
    assert result.steps["read"].output["data"] == flights[1]


def test_a_large_table_goes_from_pipeline_to_pipeline() -> None:
    rows = [{"n": number, "text": "x" * 80} for number in range(5_000)]
    text = document(
        first={"tool": "std.pipeline", "with": {"data": {"t": rows}, "steps": [{"op": "table_sort", "by": "n", "order": "desc"}]}},
        then={"tool": "std.pipeline", "after": "first", "with": {"data": {"t": "${ctx.first.output.result}"}, "steps": [{"op": "top_k", "k": 1}]}},
    )  # fmt: skip
    result = run(text, tools=Registry())
    assert result.status == "completed", result
    assert result.steps["then"].output["result"][0]["n"] == 4_999


def test_a_mistake_in_a_pipeline_is_told_before_anything_runs(says: Says) -> None:
    for name in ("std.pipeline", "std.http_pipeline"):
        text = document(a={"tool": name, "with": {"data": {"t": []}, "steps": [{"op": "sort", "by": "a"}]}})
        with pytest.raises(InvalidDefinition) as caught:
            run(text, tools=Registry())
        (problem,) = caught.value.problems
        assert problem.path == "/nodes/a/with/steps/0/op"
        says(problem.message)


def test_a_pipeline_that_comes_with_a_mistake_ends_the_step_and_says_where(says: Says) -> None:
    text = document(a={"tool": "std.pipeline", "with": {"data": {"t": []}, "steps": "${input.steps}"}})
    result = run(text, {"steps": [{"op": "sort"}]}, tools=Registry())
    assert result.status == "failed", result
    says(str(result.error))


def test_steps_that_an_agent_has_run_twice_have_a_name_that_it_finds_and_runs() -> None:
    flights = [{"price": 300}, {"price": 200}]
    steps = [{"op": "table_sort", "by": "price"}]
    names = "[std.pipeline, std.named_pipeline, std.search_tools]"
    told = list[str]()

    def model(request: ModelRequest) -> Any:
        said = [one for one in request.messages if one["role"] == "tool"]
        turn = len(said)
        if turn < 2:
            return call("std.pipeline", steps=steps, data={"flights": flights[turn:]})
        if turn == 2:
            told[:] = re.findall("[0-9a-f]{12}", said[-1]["content"])
            return call("std.search_tools", query="sort flights")
        assert told[0] in said[2]["content"], "it is found by what it does"
        if turn == 3:
            return call("std.named_pipeline", name=told[0], data={"flights": flights})
        return json.loads(said[-1]["content"])["preview"]

    text = f"name: w\nnodes: {{a: {{agent: {{model: m, prompt: x, tools: {names}}}}}}}\noutput: ${{ctx.a.output}}"
    result = run(text, tools=Registry(), models=model)
    assert result.status == "completed", result
    assert json.loads(result.output) == [{"price": 200}, {"price": 300}]
