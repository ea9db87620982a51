"""A signal may carry a failure in place of a payload: the wait that takes it fails with its code."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.graph.graph import Catch
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.received import fingerprint
from baton.core.log.state import status_of
from tests.core.build import Saga, program, ready, task, wait
from tests.core.told import of, why
from tests.kit.sentences import Says

LATE = ev.Failure("courier_lost", "the courier is lost")


def sent(saga: Saga, key: str = "k", failure: ev.Failure = LATE, name: str = "go") -> None:
    event = ev.SignalReceived(name=name, key=key, payload=ev.Value(), failure=failure, by="ada", at=saga.now)
    saga.put(event, epoch=0, invocation="api")


def failed(saga: Saga) -> ev.StepFailed:
    (event,) = (event for event in saga.entries[-1].events if isinstance(event, ev.StepFailed))
    return event


def test_the_wait_fails_with_the_code_and_the_message_of_the_signal() -> None:
    saga = Saga(program(wait("w", signal="go")))
    saga.go()
    sent(saga)
    saga.go()
    assert saga.kinds == ["step_failed", "saga_ended"]
    assert (failed(saga).failure, failed(saga).by) == (replace(LATE, node="w"), "k")
    assert status_of(saga.state) == "failed"


@pytest.mark.parametrize("last", ["", "escalate", "fail"])
def test_no_default_asks_a_person_about_it(last: str) -> None:
    saga = Saga(program(wait("w", signal="go"), failures={}), last=last)
    saga.go()
    sent(saga, failure=ev.Failure("captcha_detected", "a captcha"))
    saga.go()
    assert saga.kinds == ["step_failed", "saga_ended"]
    assert saga.state.outbox.due == ()


def test_its_catch_takes_it_as_the_failure_of_the_wait() -> None:
    node = replace(wait("w", signal="go"), catch=(Catch(codes=("courier_lost",), then=("h",)),))
    saga = Saga(program(node, task("h", "w", arguments={"why": "${last_error.code}"}), task("b", "w")))
    saga.go()
    sent(saga)
    assert ready(saga.go()) == ["h"]
    assert saga.state.signals == ()


def test_a_failure_that_came_before_the_wait_is_taken_by_one_wait_only() -> None:
    caught = (Catch(then=("v",)),)
    saga = Saga(
        program(task("a"), replace(wait("w", "a", signal="go"), catch=caught), wait("v", "w", signal="go"))
    )
    sent(saga)
    saga.go()
    from tests.core.build import done

    saga.go(done("a"))
    assert (set(saga.state.open), saga.state.signals) == ({"v"}, ())
    assert status_of(saga.state) == "waiting"


def test_a_failure_that_is_folded_twice_counts_once() -> None:
    node = replace(wait("w", signal="go"), catch=(Catch(then=("v",)),))
    saga = Saga(program(node, wait("v", "w", signal="go")))
    saga.go()
    sent(saga)
    saga.go()
    sent(saga, "k2")
    before = saga.state
    assert apply(before, failed_again(saga)) == before


def failed_again(saga: Saga) -> ev.StepFailed:
    return next(event for entry in saga.entries for event in entry.events if isinstance(event, ev.StepFailed))


def test_a_repeated_signal_is_told_from_one_with_another_failure_or_a_payload() -> None:
    saga = Saga(program(wait("w", signal="other"), wait("x", signal="go")))
    sent(saga)
    known = saga.state.keys["go/k"]
    sent(saga)
    assert saga.state.keys["go/k"] == known == fingerprint(ev.Value(), LATE)
    prints = {known, fingerprint(ev.Value()), fingerprint(ev.Value(), replace(LATE, code="x"))}
    assert len(prints) == 3


def test_it_is_explained(says: Says) -> None:
    saga = of("w: {wait: {signal: go}}")
    sent(saga)
    saga.go()
    says(why(saga, "w"))
