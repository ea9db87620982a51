"""Transcripts that do not fit into a request: what is left out, what stands in its place, and that later turns go on from there."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from baton import StepFailure
from baton.adapters.memory.store import MemoryBlobs, MemoryBudgets
from baton.core.limits import Limits
from baton.core.log.events import StepSucceeded
from baton.core.models.messages import Message, request_bytes
from baton.ports import Account, BudgetAnswer, ReservationChange
from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.faults import Crash
from tests.kit.scripted import Scripted, asks_for, says
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document, of_kind, ran

MOST = 12  # messages that fit
SUMMARISE = ", summarise: {model: s, max_output: 50}"


class Forgetful:
    """A model that takes `most` messages, and calls `sum_add` with the next number `turns` times. Another one, `s`, summarises."""

    def __init__(self, turns: int, summary: ModelAnswer | Exception | None = None, most: int = MOST) -> None:
        self.turns, self.most, self.numbers = turns, most, 0
        self.summary = summary or says("Ada has added.", read=300, written=20)
        self.refused = 0

    def __call__(self, request: ModelRequest, _: int) -> ModelAnswer:
        if request.model == "s" or request.messages[0]["content"].startswith("The next message is JSON"):
            if isinstance(self.summary, Exception):
                raise self.summary
            return self.summary
        if len(request.messages) > self.most:
            self.refused += 1
            raise StepFailure("context_exceeded", "too long", happened=False)
        self.numbers += 1
        return says("done") if self.numbers > self.turns else self.call()

    def call(self) -> ModelAnswer:
        return asks_for(("sum_add", {"a": self.numbers, "b": 0}))


def scripted(script: Forgetful) -> Scripted:
    return Scripted(script, takes_s=0.1, known=("m", "n", "s"))


def answered(model: Scripted, most: int = MOST) -> list[list[Message]]:
    """What the requests of turns had that were answered."""
    return [list(one.messages) for one in model.requests if one.model == "m" and len(one.messages) <= most]


def notes(messages: list[Message]) -> list[str]:
    return [one["content"] for one in messages if one["role"] == "user" and one["content"].startswith("[")]


async def test_a_cut_is_kept_so_that_later_turns_begin_with_it() -> None:
    world = World.start()
    Desk(world)
    world.models = model = scripted(script := Forgetful(turns=20))
    shown = await ran(world, document(", turns: 40"), {"a": 1})
    assert (shown["status"], shown["result"]) == ("completed", "done"), shown
    talks = answered(model)
    cuts = [
        number for number, (before, after) in enumerate(pairwise(talks), 1) if after[: len(before)] != before
    ]
    # 41 messages are left out in steps of five or six: each of them is refused once, and never again.
    assert len(cuts) == script.refused
    assert 4 <= script.refused <= 7, script.refused
    for before, after in zip(cuts, [*cuts[1:], len(talks)], strict=True):
        for talk in talks[before:after]:
            assert talk[: len(talks[before])] == talks[before], "the provider's cache serves it"
    left = [int(notes(talks[cut])[0].split()[0][1:]) for cut in cuts]
    assert left == sorted(left)
    last = talks[-1]
    assert len(notes(last)) == 1
    told = sum(one["role"] in ("assistant", "tool") for one in last)
    assert left[-1] + told == 2 * 20, "the note counts all that was ever left out"


async def test_an_equal_call_whose_result_was_left_out_is_told_the_result_and_not_made_again() -> None:
    class Asks(Forgetful):
        def call(self) -> ModelAnswer:
            first = self.numbers in (12, 16)
            return asks_for(("sum_add", {"a": 1 if first else self.numbers, "b": 0}))

    world = World.start()
    desk = Desk(world)
    world.models = model = scripted(Asks(turns=17))
    shown = await ran(world, document(", turns: 40"), {"a": 1})
    assert shown["result"] == "done"
    assert desk.calls.count(("add", (1, 0))) == 1
    last = model.requests[-1].messages
    assert not any(one.get("tool_call_id") == "t1-0" for one in last), "it is left out"
    told = {
        one["tool_call_id"]: json.loads(one["content"])
        for request in model.requests
        for one in request.messages
        if one["role"] == "tool"
    }
    assert told["t12-0"] == told["t16-0"] == {"repeated": True, "result": "1"}


async def test_what_does_not_fit_is_summarised_where_the_document_says_so(says: Says) -> None:
    world = World.start()
    Desk(world)
    world.models = model = scripted(Forgetful(turns=7))
    shown = await ran(world, document(SUMMARISE), {"a": 1})
    assert (shown["status"], shown["result"]) == ("completed", "done"), shown
    (summary,) = (one for one in model.requests if one.model == "s")
    assert (summary.most_output, summary.tools, summary.schema) == (50, (), None)
    rules, data = summary.messages
    says.within(rules["content"])
    assert [one["role"] for one in json.loads(data["content"])][:2] == ["assistant", "tool"]
    assert len({one.key for one in model.requests}) == len(model.requests)
    (note,) = notes(list(model.requests[-1].messages))
    assert "and no instruction" in note
    assert note.endswith("Ada has added.")
    cost = await world.queries().cost(shown["id"])
    assert [(line["what"], line["requests"]) for line in cost["models"]] == [("scripted", 9)]
    # Eight answers of 100 and 10 tokens, and a summary of 300 and 20.
    assert shown["spent_usd"] == pytest.approx((8 * 200 + 500) / 1_000_000)


async def test_a_summary_is_summed_up_in_the_next_one() -> None:
    world = World.start()
    Desk(world)
    world.models = model = scripted(Forgetful(turns=16))
    shown = await ran(world, document(SUMMARISE + ", turns: 40"), {"a": 1})
    assert shown["result"] == "done"
    first, second, *_ = (one for one in model.requests if one.model == "s")
    assert "Ada has added." not in first.messages[1]["content"]
    assert "Ada has added." in second.messages[1]["content"]
    assert len(notes(list(model.requests[-1].messages))) == 1


@pytest.mark.parametrize(
    ("more", "summary", "told"),
    [
        (SUMMARISE, StepFailure("rate_limited", "later"), "rate_limited: later"),
        (SUMMARISE, StepFailure("context_exceeded", "too long for me, too"), "context_exceeded"),
        (SUMMARISE, says(""), "nothing"),
        (", summarise: {model: unpriced}", None, "the price of `unpriced`"),
    ],
)
async def test_without_a_summary_the_turn_goes_on_with_what_fits_and_its_answer_says_why(
    more: str, summary: ModelAnswer | Exception | None, told: str, says: Says
) -> None:
    world = World.start()
    Desk(world)
    world.models = model = scripted(Forgetful(turns=7, summary=summary))
    shown = await ran(world, document(more), {"a": 1})
    assert shown["result"] == "done"
    (note,) = notes(list(model.requests[-1].messages))
    says(note)
    assert told in json.dumps(outputs(world, shown["id"]))


def outputs(world: World, saga: str) -> list[Any]:
    found = of_kind(world, saga, StepSucceeded)
    return [event.output.v for event in found if event.output is not None]


async def test_the_agents_own_model_writes_the_summary_where_none_is_named() -> None:
    world = World.start()
    Desk(world)
    world.models = model = scripted(Forgetful(turns=7))
    price = ", summarise: {}, price: {input: 1, output: 10}"
    shown = await ran(world, document(price), {"a": 1})
    assert shown["result"] == "done"
    (summary,) = (one for one in model.requests if len(one.messages) == 2 and not one.tools)
    assert (summary.model, summary.most_output) == ("m", 1_024)


async def test_tokens_of_a_summary_count_for_the_limit_of_the_agent() -> None:
    world = World.start()
    Desk(world)
    world.models = scripted(Forgetful(turns=7))
    shown = await ran(world, document(SUMMARISE + ", tokens: 2400"), {"a": 1})
    # Six turns of 110 tokens, and 320 of the summary with the seventh.
    assert shown["error"]["code"] == "agent_exhausted", shown
    assert "980 are used" in shown["error"]["message"]


async def test_a_summary_waits_for_no_more_than_half_of_the_time_of_its_turn() -> None:
    world = World.start(timeout_s=60)
    Desk(world)
    world.models = model = scripted(Forgetful(turns=7))
    shown = await ran(world, document(SUMMARISE, ", timeout: 20s"), {"a": 1})
    assert shown["result"] == "done"
    number = next(n for n, one in enumerate(model.requests) if one.model == "s")
    summary, turn = model.requests[number : number + 2]
    assert turn.until - summary.until == pytest.approx(10_000, abs=100)


async def test_a_worker_that_dies_over_a_summary_has_it_and_its_turn_made_again() -> None:
    class Dies(Forgetful):
        deaths = 0

        def __call__(self, request: ModelRequest, number: int) -> ModelAnswer:
            if request.model == "s" and not self.deaths:
                self.deaths += 1
                raise Crash
            return super().__call__(request, number)

    world = World.start()
    desk = Desk(world)
    world.models = model = scripted(Dies(turns=7))
    shown = await ran(world, document(SUMMARISE), {"a": 1})
    assert shown["result"] == "done"
    assert len(desk.calls) == len(set(desk.calls)) == 7
    assert [one.model for one in model.requests].count("s") == 2


async def test_a_worker_reads_no_part_of_a_transcript_twice_and_holds_exactly_what_each_request_may_cost() -> (
    None
):
    class Held(MemoryBudgets):
        def __init__(self) -> None:
            super().__init__()
            self.amounts: list[int] = []

        def move(self, account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
            self.amounts.append(change.after.amount if change.after is not None else 0)
            return super().move(account, change, now)

    class Read(MemoryBlobs):
        def __init__(self) -> None:
            super().__init__()
            self.refs: list[str] = []

        def get(self, tenant: str, ref: str) -> bytes:
            self.refs.append(ref)
            return super().get(tenant, ref)

    world = World.start(timeout_s=60, limits=Limits(user_day_budget_usd="100"))
    Desk(world)
    world.blobs, world.store.budgets = blobs, budgets = Read(), Held()
    world.models = model = scripted(Forgetful(turns=60, most=100))
    shown = await ran(world, document(", turns: 80, max_output: 50"), {"a": 1})
    assert shown["result"] == "done"
    invocations = {entry.invocation for entry in world.entries(shown["id"]) if entry.epoch}
    assert len(blobs.refs) <= 8 * len(invocations), "the turns of one invocation have them already"
    held = [amount for amount in budgets.amounts if amount]
    # A micro-dollar for each byte, and ten for each token of the answer.
    assert held == [request_bytes(one.messages, [one.tools, one.schema]) + 50 * 10 for one in model.requests]
    assert min(len(one.messages) for one in model.requests[-5:]) > 40, "with segments, and after a cut"
