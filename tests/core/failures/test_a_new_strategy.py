"""A strategy is one file and one line of registration: the engine, the documents and the views know it then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from baton.core.conditions.schema import violations
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.documents.schema import document_schema
from baton.core.documents.text import parse_document
from baton.core.failures.failover import Action, Policy
from baton.core.failures.policy import PolicyChange
from baton.core.failures.strategies.base import History, LadderStep, Strategy
from baton.core.failures.strategies.ladder import after_decision, after_step
from baton.core.failures.strategies.registry import STRATEGIES
from baton.core.log import events as ev
from baton.core.nodes.registry import KINDS
from baton.core.read.definition_views import foretold
from baton.core.read.metrics import Figures
from tests.core.build import T0, TOOLS, Saga, problems_of, program, replay, task
from tests.core.failing import answer, attempts, broken, chosen
from tests.core.failures.cool_down import HOUR_MS, CoolDown, extended
from tests.core.told import whole, why
from tests.kit.sentences import Says
from tests.kit.views import as_json

LADDER = "{any: {ladder: [retry, cool_down, ask_user], retry: {max_attempts: 2, backoff: fixed, base: 1s}}}"


@pytest.fixture
def known() -> Iterator[None]:
    with extended(CoolDown(), before="ask_user"):
        yield


def document(rules: str) -> str:
    return f"name: w\nnodes: {{a: {{tool: t, on_failure: {rules}}}}}"


def told(text: str) -> list[tuple[str, str, str]]:
    return [(one.path, one.message, one.suggestion) for one in problems_of(text)]


def failing(rules: str = LADDER) -> Saga:
    saga = Saga(Program(compile_document(document(rules), TOOLS), KINDS))
    saga.go()
    return saga


def cooling() -> Saga:
    """Two attempts have failed."""
    saga = failing()
    saga.go(broken("a"))
    saga.go(after_ms=1_000)
    saga.go(broken("a", attempt=2, at=saga.now))
    return saga


# ---- documents


@pytest.mark.usefixtures("known")
def test_a_document_can_name_it() -> None:
    rules = compile_document(document(LADDER), TOOLS).nodes[0].failures
    assert rules["any"].ladder == ("retry", "cool_down", "ask_user")
    alone = compile_document(document("{any: cool_down}"), TOOLS).nodes[0].failures
    assert alone["any"].ladder == ("cool_down", "ask_user", "rollback", "escalate")
    few = compile_document(document("{any: {at_most: {cool_down: 5}}}"), TOOLS).nodes[0].failures
    assert few == {"any": PolicyChange(at_most={"cool_down": 5})}


@pytest.mark.usefixtures("known")
def test_what_is_wrong_with_it_is_told(says: Says) -> None:
    says(told(document("{any: [cooldown]}")))
    says(told(document("{any: {at_most: {cool_down: 6}}}")))
    text = "name: w\nnodes: {a: {tool: t, failover: [{name: p, then: {strategy: cool_down, tool: t}}]}}"
    says(told(text))


@pytest.mark.usefixtures("known")
def test_the_schema_has_it() -> None:
    good, bad = (parse_document(document(rules)).value for rules in (LADDER, "{any: [cooldown]}"))
    assert violations(document_schema(), good) == ()
    assert violations(document_schema(), bad) != ()
    policy = "name: w\nnodes: {a: {tool: t, failover: [{name: p, then: cool_down}]}}"
    assert violations(document_schema(), parse_document(policy).value) == ()


# ---- the engine


@pytest.mark.usefixtures("known")
def test_the_ladder_comes_to_it_and_the_log_tells() -> None:
    saga = cooling()
    assert chosen(saga) == ["retry", "cool_down"]
    event = saga.entries[-1].events[-1]
    assert isinstance(event, ev.StrategyChosen)
    assert (event.due_at - event.at, event.why) == (HOUR_MS, ("retry: used up",))
    assert saga.decision.due == saga.now + HOUR_MS
    assert attempts(saga.go(after_ms=HOUR_MS - 1)) == []
    assert attempts(saga.go(after_ms=1)) == [("a", 3)]


@pytest.mark.usefixtures("known")
def test_it_has_its_limit_and_all_retries_after_it() -> None:
    saga = failing()
    for attempt in range(1, 7):
        saga.go(broken("a", attempt=attempt, at=saga.now))
        saga.go(after_ms=HOUR_MS)
    assert chosen(saga) == ["retry", "cool_down", "retry", "cool_down", "retry", "ask_user"]
    assert saga.state.failing["a"].history.used == {"cool_down": 2, "ask_user": 1}
    assert replay(saga.entries) == saga.state
    answer(saga, "retry")
    saga.go()
    assert saga.state.failing["a"].history.used == {"cool_down": 2}


@pytest.mark.usefixtures("known")
def test_where_it_does_nothing_the_log_says_why(says: Says) -> None:
    saga = failing("{any: {ladder: [cool_down, ask_user], severity: critical}}")
    saga.go(broken("a"))
    event = next(one for one in saga.entries[-1].events if isinstance(one, ev.StrategyChosen))
    assert event.strategy == "ask_user"
    says(event.why)


@pytest.mark.usefixtures("known")
def test_a_policy_can_choose_it() -> None:
    text = "name: w\nnodes: {a: {tool: t, failover: [{name: late, then: cool_down}]}}"
    saga = Saga(Program(compile_document(text, TOOLS), KINDS))
    saga.go()
    saga.go(broken("a"))
    event = saga.entries[-1].events[-1]
    assert isinstance(event, ev.StrategyChosen)
    assert (event.strategy, event.policy, event.due_at) == ("cool_down", "late", event.at + HOUR_MS)


# ---- words


@pytest.mark.usefixtures("known")
def test_it_is_told_in_advance_and_afterwards(says: Says) -> None:
    words = as_json(foretold(Program(compile_document(document(LADDER), TOOLS), KINDS)))
    says(list(words["nodes"].values()))
    saga = cooling()
    told = "left alone, tried again after 1 h, at 2023-11-14T23:13:21.000Z"
    assert why(saga, "a").endswith(f"it is {told}")
    last: dict[str, Any] = whole(saga, "a")[0]["attempts"][-1]
    assert last["text"].endswith(f"{told} (retry: used up)")
    assert (last["then"][0]["strategy"], last["then"][0]["pause_ms"]) == ("cool_down", HOUR_MS)


@pytest.mark.usefixtures("known")
def test_it_is_counted() -> None:
    figures = Figures()
    for one in cooling().entries:
        figures.heard("w", one.events, T0)
    assert sum(one.get("CoolDowns", 0) for one in figures.take(T0 + HOUR_MS, HOUR_MS, "worker")) == 1


# ---- before and after


def test_without_its_line_nothing_knows_it(says: Says) -> None:
    assert "cool_down" not in STRATEGIES
    (problem,) = told(document("{any: [cool_down]}"))
    assert problem[0] == "/nodes/a/on_failure/any"
    (problem,) = told(document("{any: {at_most: {cool_down: 1}}}"))
    says(problem[:2])


def test_a_log_of_a_version_that_knew_another_strategy_folds_and_is_told(says: Says) -> None:
    with extended(CoolDown()):
        saga = cooling()
    assert replay(saga.entries) == saga.state
    says(whole(saga, "a")[0]["attempts"][-1]["text"])
    step = LadderStep(strategy="gone")
    assert after_decision(after_step(History(retries=3), step, now=1)) == History(used={"gone": 1})


def test_a_strategy_that_is_not_known_is_passed(says: Says) -> None:
    rules = {"any": PolicyChange(ladder=("gone", "ask_user"))}
    policy = Policy(name="p", then=Action(strategy="gone"))
    saga = Saga(program(task("a", failover=(policy,)), failures=rules))
    saga.go()
    saga.go(broken("a"))
    event = next(one for one in saga.entries[-1].events if isinstance(one, ev.StrategyChosen))
    assert event.strategy == "ask_user"
    says(event.why)


class AskTeam(Strategy):
    name = "ask_team"
    asks = "team"
    lasts_ms = HOUR_MS
    suffix = ".team"


def test_a_strategy_asks_whom_it_says_and_the_ladder_goes_on_when_it_is_gone() -> None:
    policy = Policy(name="p", then=Action(strategy="ask_team"))
    rules = {"any": PolicyChange(ladder=("retry", "escalate"))}
    with extended(AskTeam()):
        saga = Saga(program(task("a", failover=(policy,)), failures=rules))
        saga.go()
        saga.go(broken("a"))
    ask = saga.state.failing["a"].ask
    assert ask is not None
    assert (ask.id, ask.to, ask.expires_at) == ("0.a.1.team", "team", T0 + HOUR_MS)
    assert [notice.to for notice in saga.state.outbox.due] == ["team"]
    saga.go(after_ms=HOUR_MS)
    assert chosen(saga) == ["ask_team", "escalate"]


def test_a_question_that_a_policy_asked_goes_on_where_the_ladder_knows_what_comes_after() -> None:
    with extended(CoolDown(), before="ask_user"):
        saga = Saga(
            program(task("a"), failures={"any": PolicyChange(ladder=("ask_user", "cool_down", "escalate"))})
        )
        saga.go()
        saga.go(broken("a"))
        saga.go(after_ms=24 * HOUR_MS)
        assert chosen(saga) == ["ask_user", "escalate"]
