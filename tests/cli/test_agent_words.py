"""What `baton events` says of agents: which turn, which call of it, what was asked for and what came of it."""

from __future__ import annotations

import re
from typing import Any

from baton.cli.text.render import EventLines
from baton.core.log import events as ev
from baton.core.log.scopes import Progress
from baton.core.models.usage import Usage
from baton.core.read.views import entry_view
from tests.kit.sentences import Says

T0 = 1_795_458_562_846
RAN: dict[str, Any] = {
    "attempt": 1,
    "started_at": T0,
    "ended_at": T0 + 500,
    "tool_version": "1",
    "schema_hash": "",
}
ASKED = ev.CallsBegan(
    node="plan", calls=(ev.Called(item="t1-0", tool="table.hold"),), used=Progress(calls=1, tokens=152)
)


def said(*entries: tuple[ev.Event, ...]) -> list[str]:
    """What stands behind version, time and node, with two spaces between columns."""
    lines, found = EventLines(), []
    for number, events in enumerate(entries, 1):
        entry = ev.Entry(version=number, branch=0, at=T0, epoch=1, invocation="i", events=events)
        found += [str(line) for line in lines.of(entry_view(entry)) if not str(line).startswith("──")]
    return [re.sub(" {2,}", "  ", line[21:]) for line in found]


def turn(number: int, calls: list[Any], data: Any = None, **more: Any) -> ev.StepSucceeded:
    answer = ev.Value(v={"text": "", "calls": calls, "data": data, "tokens": [1, 1]})
    used = (Usage(model="m", input=1_290, cached=1_000, output=23, cost=30),)
    given = {"output": answer, "usage": used, "cost": 30, **more}
    return ev.StepSucceeded(node="plan", item=f"t{number}", tool="std.model", **RAN, **given)


def began(item: str) -> ev.NodeBegan:
    return ev.NodeBegan(node="plan", item=item, at=T0)


def test_an_agent_says_whom_it_asks_what(says: Says) -> None:
    given = ev.Value(v={"model": "gpt-5-mini", "prompt": {"party": 4}, "instructions": "Be brief."})
    first = (ev.AgentBegan(node="plan", given=given), ev.TurnBegan(node="plan", turn=1), began("t1"))
    says(said(first))
    hears = ev.AgentBegan(node="plan", given=ev.Value(v={"model": "m", "prompt": "x\ny"}), listens="more")
    says(said((hears,)))
    (large,) = said((ev.AgentBegan(node="plan", given=ev.Value(ref="cas://sha256/00", size=90_000)),))
    says(large)


def test_a_turn_says_what_the_model_asks_for_its_tokens_and_its_price(says: Says) -> None:
    hold = {"tool": "table.hold", "arguments": {"table": 2}}
    says(said((turn(1, [hold]), ASKED, began("t1-0"))))
    (line,) = said((turn(2, [], data={"hold": "h"}),))
    says(line)
    (line,) = said((turn(2, [{"tool": "x", "arguments": {}, "text": "{no"}]),))
    says(line)
    (line,) = said((turn(2, [], data="y" * 300),))
    assert "y" * 119 + "…  " in line


def test_a_turn_that_is_too_large_for_its_entry_leaves_the_calls_to_the_event_behind_it(says: Says) -> None:
    large = turn(1, [], output=ev.Value(ref="cas://sha256/00", size=90_000), usage=(), cost=0)
    says(said((large, ASKED, began("t1-0"))))


def test_calls_that_are_not_made_are_told(says: Says) -> None:
    again = ev.CallsBegan(
        node="plan",
        calls=(
            ev.Called(item="t2-0", tool="table.hold", repeats="t1-0"),
            ev.Called(item="t2-1", tool="pay", failure=ev.failed_with("call_not_allowed", "no")),
        ),
    )
    says(said((turn(2, []), again))[1])


def test_a_call_says_its_tool_and_what_it_gave(says: Says) -> None:
    done = ev.StepSucceeded(node="plan", item="t1-0", tool="table.hold", output=ev.Value(v={"id": 7}), **RAN)
    after = (done, ev.TurnBegan(node="plan", turn=2), began("t2"))
    says(said(after))
    failure = ev.failed_with("no_tables", "All\ntaken.")
    lost = ev.StepFailed(node="plan", item="t1-0", tool="table.hold", failure=failure, is_result=True, **RAN)
    says(said((lost,)))
    wrong = ev.AttemptFailed(
        node="plan", item="t1", tool="std.model", failure=ev.failed_with("timeout", "Slow."), **RAN
    )
    says(said((wrong,)))


def test_an_event_without_the_tool_of_its_call_has_it_from_before(says: Says) -> None:
    chosen = ev.StrategyChosen(
        node="plan", item="t1-0", strategy="retry", code="timeout", at=T0, due_at=T0 + 2_500
    )
    says(said((chosen,))[0])
    says(said((turn(1, []), ASKED), (chosen,))[1])
    ask = ev.Ask(
        id="0.plan",
        kind="approval",
        type="approval",
        title="Hold it?",
        message="",
        options=("approve",),
        asked_at=T0,
    )
    opened = ev.QuestionOpened(node="plan", item="t1-0", ask=ask)
    says(said((opened,)))


def test_what_says_only_that_something_begins_is_shown_where_nothing_else_is() -> None:
    assert said((ev.TurnBegan(node="plan", turn=2), began("t2"))) == [
        "turn_began  plan  turn 2 begins",
        "node_began  plan  turn 2",
    ]
    assert said((ev.TurnBegan(node="plan", turn=2, heard=("a", "b")), began("t2"))) == [
        "turn_began  plan  turn 2 begins with 2 messages from outside"
    ]
    assert said((ev.NodeBegan(node="plan", at=T0),)) == ["node_began  plan"]


def test_an_agent_that_is_done_says_what_it_took(says: Says) -> None:
    used = Progress(calls=4, tokens=2_538, read=1_318)
    closed = ev.AgentClosed(node="plan", output=ev.Value(v="done"), turns=4, used=used)
    says(said((closed,)))


def test_money_of_events_is_in_dollars() -> None:
    revived = ev.Revived(dead="i", dead_epoch=1, dead_until=T0, at=T0, assumed={"plan#t1": 1_500})
    (line,) = said((revived,))
    assert "assumed=$0.0015" in line
    assert "budget=$2.50" in said((ev.Resumed(by="me", at=T0, budget=2_500_000),))[0]
