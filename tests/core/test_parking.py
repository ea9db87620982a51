"""A step that keeps killing its worker, or needs more than a full budget, ends parked with its reason.

And until then: after a death the steps that were ready run one at a time, another one first each time, so
that the innocent make progress and the killer is found.
"""

from __future__ import annotations

import pytest

from baton.core.decide.decision import Decision, SendNotices
from baton.core.decide.spending import DEFAULT
from baton.core.log import events as ev
from baton.core.log.folding.received import pending_notices
from baton.core.log.state import status_of
from tests.core.asked import notices_of, steps_of
from tests.core.build import Saga, chain, done, interrupted, program, ready, task, wait
from tests.core.told import of
from tests.kit.sentences import Says


def tell(saga: Saga) -> None:
    saga.note_told()


def test_a_saga_is_parked_after_three_deaths_without_progress(says: Says) -> None:
    saga = Saga(chain(2))
    for _ in range(DEFAULT.deaths - 1):
        saga.die()
        assert ready(saga.go()) == ["n0"]
    saga.die()
    assert saga.go() == Decision(commands=(SendNotices(pending_notices(saga.state)),))
    assert saga.kinds == ["notice_due", "parked"]
    assert saga.state.parked is not None
    assert (saga.state.parked.code, saga.state.parked.node) == ("worker_killed", "n0")
    says(saga.state.parked.message)
    assert status_of(saga.state) == "parked"


def test_progress_between_two_deaths_starts_the_count_anew() -> None:
    saga = Saga(chain(5))
    for number in range(4):
        saga.die()
        saga.die()
        assert ready(saga.go()) == [f"n{number}"]
        saga.go(done(f"n{number}"))
    assert saga.state.parked is None


def test_a_saga_is_parked_after_three_interruptions_of_one_step_without_progress(says: Says) -> None:
    saga = Saga(program(task("a"), task("b")))
    for _ in range(DEFAULT.deaths - 1):
        assert ready(saga.go(interrupted("a"), interrupted("b"))) == ["a", "b"]
        assert saga.kinds == ["step_interrupted", "step_interrupted"]
    assert saga.go(interrupted("a"), running=["b"]) == Decision(
        commands=(SendNotices(pending_notices(saga.state)),)
    )
    assert saga.kinds == ["step_interrupted", "notice_due", "parked"]
    assert saga.state.parked is not None
    assert (saga.state.parked.code, saga.state.parked.node) == ("over_budget", "a")
    says(saga.state.parked.message)


def test_progress_between_two_interruptions_starts_the_count_anew() -> None:
    """A step beside it may have used the budget up."""
    saga = Saga(program(task("a"), *(task(f"b{i}", *([f"b{i - 1}"] if i else [])) for i in range(9))))
    for number in range(8):
        saga.go(interrupted("a"))
        saga.go(interrupted("a"))
        assert ready(saga.go(done(f"b{number}"))) == ["a", f"b{number + 1}"]
    assert saga.state.parked is None


def test_an_interruption_says_how_long_the_step_could_have_had() -> None:
    saga = Saga(chain(1))
    saga.go(interrupted("n0"))
    (event,) = saga.entries[-1].events
    assert isinstance(event, ev.StepInterrupted)
    assert (event.node, event.budget_ms) == ("n0", 4_000)


def test_interruptions_of_different_steps_do_not_add_up() -> None:
    saga = Saga(program(task("a"), task("b"), task("c")))
    saga.go(interrupted("a"), interrupted("b"), interrupted("c"))
    assert ready(saga.go(interrupted("a"), interrupted("b"), interrupted("c"))) == ["a", "b", "c"]
    assert saga.state.parked is None


def test_an_interruption_is_no_attempt() -> None:
    saga = Saga(chain(1))
    (step,) = steps_of(saga.go(interrupted("n0")))
    assert step.attempt == 1


def test_a_parked_saga_does_nothing_not_even_when_a_wait_is_due() -> None:
    saga = Saga(program(task("a"), wait("w", ms=5)))
    saga.go()
    for _ in range(DEFAULT.deaths):
        saga.die()
    saga.go()
    tell(saga)
    assert saga.go(after_ms=1_000) == Decision()
    assert "w" in saga.state.open


def test_a_result_that_comes_while_the_saga_is_parked_is_recorded() -> None:
    saga = Saga(program(task("a"), task("b"), task("c", "b")))
    saga.go()
    saga.go(interrupted("a"), running=["b"])
    saga.go(interrupted("a"), running=["b"])
    saga.go(interrupted("a"), running=["b"])
    assert saga.state.parked is not None
    tell(saga)
    assert saga.go(done("b")) == Decision()
    assert saga.kinds == ["step_succeeded"]


def test_a_resumed_saga_gets_three_tries_again() -> None:
    saga = Saga(chain(1))
    for _ in range(DEFAULT.deaths):
        saga.die()
    saga.go()
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0)
    assert ready(saga.go()) == ["n0"]
    for _ in range(DEFAULT.deaths - 1):
        saga.die()
    assert ready(saga.go()) == ["n0"]
    saga.die()
    saga.go()
    assert saga.state.parked is not None


def test_a_saga_that_kills_its_worker_with_nothing_in_flight_is_parked_too() -> None:
    """Filling in a huge output can do that."""
    saga = Saga(program(task("a"), output="${ctx.a.output}"))
    saga.go(done("a", ref="cas://a"))
    assert saga.state.tokens == {}
    for _ in range(DEFAULT.deaths):
        saga.die()
    saga.go()
    assert saga.state.parked is not None
    assert (saga.state.parked.node, saga.state.ended) == ("", None)
    assert "ready: none" in saga.state.parked.message


def test_the_reason_stays_short_however_many_steps_were_ready() -> None:
    saga = Saga(program(*(task(f"n{i}") for i in range(500))))
    for _ in range(DEFAULT.deaths):
        saga.die()
    saga.go()
    assert saga.state.parked is not None
    assert len(saga.state.parked.message) < 300


# ---- and on-call is told ------------------------------------------------------------------------------------------


def test_a_saga_that_is_parked_for_deaths_is_an_incident_of_the_same_entry(says: Says) -> None:
    saga = Saga(chain(2))
    for _ in range(DEFAULT.deaths):
        saga.die()
    (notice,) = notices_of(saga.go())
    assert saga.kinds == ["notice_due", "parked"]
    assert (notice.to, notice.severity, notice.incident) == ("on_call", "high", True)
    assert (notice.code, notice.node, notice.at) == ("worker_killed", "n0", saga.now)
    says(notice.message)


def test_a_saga_that_is_parked_for_a_step_longer_than_an_invocation_is_an_incident_too(says: Says) -> None:
    saga = Saga(program(task("a"), task("b")))
    for _ in range(DEFAULT.deaths):
        saga.go(interrupted("a"))
    (notice,) = saga.state.outbox.due
    assert (notice.code, notice.node, notice.incident) == ("over_budget", "a", True)
    says(notice.message)
    assert f"`baton resume {saga.state.origin.saga}`" in notice.message


def test_with_no_room_left_the_notice_is_still_in_the_entry_of_its_parking() -> None:
    saga = Saga(program(task("a"), task("b")))
    saga.go(interrupted("a"))
    saga.go(interrupted("a"))
    saga.go(interrupted("a"), room=1)
    assert saga.kinds == ["notice_due", "parked"]


def test_a_saga_that_is_resumed_and_parked_again_is_told_of_again() -> None:
    saga = Saga(chain(1))
    keys = []
    for _ in range(2):
        for _ in range(DEFAULT.deaths):
            saga.die()
        (notice,) = notices_of(saga.go())
        keys.append(notice.key)
        tell(saga)
        assert notices_of(saga.go()) == ()
        saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0)
        saga.go()
    assert len(set(keys)) == 2


def test_a_parking_with_no_step_in_flight_names_no_node(says: Says) -> None:
    saga = Saga(program(task("a"), output="${ctx.a.output}"))
    saga.go(done("a", ref="cas://a"))
    for _ in range(DEFAULT.deaths):
        saga.die()
    (notice,) = notices_of(saga.go())
    says(notice.message)


# ---- careful: one at a time -------------------------------------------------------------------------------------


def three() -> Saga:
    saga = Saga(program(task("a"), task("b"), task("c")))
    assert ready(saga.go()) == ["a", "b", "c"]
    return saga


def test_after_a_death_the_ready_steps_run_one_at_a_time() -> None:
    saga = three()
    saga.die()
    (first,) = ready(saga.go())
    assert ready(saga.go(running=[first])) == []
    assert len(ready(saga.go(done(first)))) == 1


def test_after_each_death_another_step_goes_first() -> None:
    saga = three()
    seen = []
    for _ in range(2):
        saga.die()
        seen += ready(saga.go())
    assert len(set(seen)) == 2


@pytest.mark.parametrize(("width", "killer"), [(width, k) for width in range(1, 6) for k in range(width)])
def test_the_killer_alone_is_left_in_the_end(width: int, killer: int) -> None:
    """One step kills every worker that runs it; all others get done, and the saga is parked because of it."""
    saga = Saga(program(*(task(f"n{i}") for i in range(width))))
    for _ in range(4 * width):
        if saga.state.parked is not None:
            break
        saga.die()
        chosen = ready(saga.go())
        while chosen and chosen != [f"n{killer}"]:
            chosen = ready(saga.go(done(chosen[0])))
    assert saga.state.parked is not None
    assert saga.state.parked.node == f"n{killer}"
    assert set(saga.state.tokens) == {f"n{killer}"}


@pytest.mark.parametrize("progress", [True, False])
def test_the_next_invocation_runs_them_all_at_once_again(progress: bool) -> None:
    saga = three()
    saga.die()
    if progress:
        saga.go(done(ready(saga.go())[0]))
    saga.epoch += 1
    saga.put(ev.Resumed(by="ada", at=1))
    assert len(ready(saga.go())) == 3 - progress


def test_waits_go_on_while_steps_are_run_one_at_a_time() -> None:
    saga = Saga(program(task("a"), task("b"), wait("w", ms=5)))
    saga.die()
    decision = saga.go()
    assert saga.kinds == ["wait_opened"]
    assert len(ready(decision)) == 1
    assert decision.due == saga.now + 5


def test_a_careful_saga_with_nothing_ready_runs_nothing() -> None:
    saga = Saga(program(wait("w", signal="s")))
    saga.die()
    assert ready(saga.go()) == []


def test_what_a_join_has_stopped_holds_up_no_step_after_a_crash() -> None:
    saga = of("slow: {tool: t}\nfast: {wait: {for: 5s}}\nfirst: {tool: t, after: [slow, fast], join: any}")
    saga.die()
    assert ready(saga.go()) == ["slow"]
    assert ready(saga.go(running=["slow"], after_ms=5_000)) == ["first"]


def test_an_invocation_that_gave_up_counts_as_none_of_the_deaths_before_or_after_it() -> None:
    saga = Saga(chain(2))
    saga.die()
    before = saga.state.recovery
    saga.put(ev.GaveUp())
    assert saga.state.recovery == before
    saga.die()
    assert saga.state.recovery.consecutive_crashes == 2
