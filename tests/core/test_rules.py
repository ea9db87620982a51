"""The rules of a decision: their order, and a new one."""

from __future__ import annotations

from operator import attrgetter

import pytest

from baton.core.decide import decide
from baton.core.decide.decide import RULES, DecisionRule
from baton.core.decide.decision import Decision, DecisionBuilder
from baton.core.log import events as ev
from tests.core.build import Saga, done, program, task


def test_a_rule_is_a_row_and_decides_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def quota(builder: DecisionBuilder) -> Decision | None:
        if builder.state.counts.steps < 1:
            return None
        return Decision(record=(ev.LimitReached(failure=ev.Failure("quota", "one step is enough")),))

    before, after = RULES[:-1], RULES[-1:]
    rules = (*before, DecisionRule("quota", "state.tokens", quota), *after)
    monkeypatch.setattr(decide, "RULES", rules)
    monkeypatch.setattr(decide, "_LOOKS", attrgetter(*(rule.when for rule in rules)))
    saga = Saga(program(task("a"), task("b", "a")))
    saga.go()
    saga.go(done("a"))
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert (saga.state.ended.failure.code, saga.state.counts.steps) == ("quota", 1)


def test_what_a_saga_is_stopped_for_comes_before_what_it_could_do() -> None:
    names = [rule.name for rule in RULES]
    assert names.index("stopping") < names.index("limits") < names.index("parked") < names.index("schedule")
    assert RULES[-1].when == "program", "the last rule always applies"
