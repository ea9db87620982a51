"""Attempts that failed, told: what each was, what was done about it and why, what was asked, and what comes next."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.expressions import duration_text, iso
from baton.core.failures.alternatives import Alternative
from baton.core.failures.failover import Action, Match, Policy
from baton.core.failures.policy import CUSTOM, PolicyChange, RetryChange
from baton.core.graph.graph import Catch, Node
from baton.core.log import events as ev
from baton.core.log.state import status_of
from baton.core.read.places import SHOWN
from baton.core.read.views import saga_view
from tests.core.build import T0, Saga, done, program, task
from tests.core.failing import answer, broken, schedule
from tests.core.strategies import ASK_USER, ESCALATE, REPLAN, RETRY, ROLLBACK
from tests.core.told import ROOM, steps, story, whole, why
from tests.kit.sentences import Says
from tests.kit.views import as_json, way

DOWN = "service_unavailable: it broke"
SAYS = "The service is not available at the moment."
START = "with the start of the saga"


def of(*nodes: Node, **failures: PolicyChange) -> Saga:
    saga = Saga(program(*nodes, failures=failures))
    saga.go()
    return saga


def attempts(saga: Saga, name: str = "a") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = whole(saga, name)[0]["attempts"]
    return found


def words(saga: Saga, name: str = "a") -> list[str]:
    return [one["text"] for one in attempts(saga, name)]


# ---- retries


def test_a_step_that_waits_for_its_next_attempt_says_when_and_why(says: Says) -> None:
    saga = of(task("a"), any=schedule(2_000, 0))
    saga.go(broken("a", at=T0 + 120))
    says(why(saga, "a"))
    assert whole(saga, "a")[0]["state"] == "retrying"
    says(words(saga))
    (attempt,) = attempts(saga)
    says(attempt.pop("advice"))
    assert [attempt] == [
        {
            "attempt": 1,
            "tool": "t",
            "version": 2,
            "at": "2023-11-14T22:13:20.000Z",
            "lasted_ms": 120,
            "code": "service_unavailable",
            "class": "transient",
            "message": "it broke",
            "retryable": True,
            "says": SAYS,
            "then": [
                {
                    "strategy": "retry",
                    "hint": None,
                    "way": None,
                    "policy": None,
                    "why": [],
                    "pause_ms": 2_000,
                    "next_attempt_at": "2023-11-14T22:13:22.120Z",
                    "question": None,
                    "answer": None,
                }
            ],
            "text": words(saga)[0],
        }
    ]


def test_a_step_that_ran_a_second_time_says_why(says: Says) -> None:
    saga = of(task("a"), task("b", "a"), any=schedule(2_000, 0))
    saga.go(broken("a"))
    saga.go(broken("a", "timeout", attempt=2, at=T0 + 2_000), after_ms=2_000)
    saga.go(done("a", attempt=3))
    says(why(saga, "a"))
    says(steps(saga))
    says(words(saga)[1])


def test_a_step_that_failed_for_good_has_told_its_attempts_and_the_same_failure_once(says: Says) -> None:
    for code in ("bad_request", DOWN[:19]):
        saga = of(task("a"), any=schedule(0))
        saga.go(broken("a"))
        saga.go(broken("a", code, attempt=2))
        says(why(saga, "a"))
        says(steps(saga))


def test_hooks_before_a_retry_are_told(says: Says) -> None:
    node = task("a", hooks={"clear_cache": "cache.clear"})
    saga = of(node, any=PolicyChange(ladder=(RETRY,), before_retry=("clear_cache",)))
    saga.go(broken("a"))
    says(words(saga)[0])


def test_of_very_many_attempts_the_first_and_the_last_are_shown() -> None:
    saga = of(task("a"), any=schedule(*[0] * (SHOWN + 5)))
    for attempt in range(1, SHOWN + 4):
        saga.go(broken("a", attempt=attempt))
    assert [one["attempt"] for one in attempts(saga)] == [1, *range(5, SHOWN + 4)]


# ---- another way


def test_another_way_is_told_with_its_hint_its_tool_and_why_it_was_not_just_tried_again(says: Says) -> None:
    ways = (Alternative(name="other", tool="search.other", hints=("alternative_provider",)),)
    retry = RetryChange(backoff=CUSTOM, schedule=(0,), max_attempts=1)
    change = PolicyChange(ladder=(RETRY, REPLAN), hints=("alternative_provider",), retry=retry)
    saga = of(task("a", ways=ways), any=change)
    saga.go(broken("a"))
    says(words(saga)[0])
    says(why(saga, "a"))
    (shown,) = as_json(saga_view(saga.state, saga.program))["failing"]
    assert (shown["hint"], shown["way"], shown["next_attempt_at"]) == ("alternative_provider", "other", None)


def test_a_policy_that_says_what_is_done_is_named_with_the_values_that_it_changes(says: Says) -> None:
    policy = Policy(name="later", when=Match(), then=Action(strategy=REPLAN, arguments={"hour": 20}))
    saga = of(task("a", failover=(policy,)))
    saga.go(broken("a"))
    says(words(saga)[0])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"strategy": "replan"}, "tried another way: with what the policy says"),
        (
            {"strategy": "replan", "way": Alternative(name="short", shorten="text")},
            "tried another way: by `short`",
        ),
        ({"strategy": "dance"}, "dance"),
        ({"strategy": "retry", "due_at": T0 - 5}, "tried again at once"),
        ({"strategy": "ask_user"}, "ask_user"),
    ],
)
def test_what_another_version_may_have_written_is_told_as_well_as_can_be(
    fields: dict[str, Any], words: str
) -> None:
    saga = of(task("a"))
    saga.put(_failed_attempt(), ev.StrategyChosen(node="a", code="x", at=T0, **fields))
    assert attempts(saga)[0]["text"].endswith(f"; {words}")


def _failed_attempt(node: str = "a", **more: Any) -> ev.AttemptFailed:
    failure = ev.Failure("x", "it broke", node, attempt=1, at=T0)
    return ev.AttemptFailed(
        node=node, attempt=1, failure=failure, started_at=T0, ended_at=T0, tool="t", tool_version="1",
        schema_hash="h", **more,
    )  # fmt: skip


# ---- questions


def asked(*nodes: Node) -> Saga:
    saga = of(*(nodes or (task("a"),)), any=PolicyChange(ladder=(ASK_USER, ROLLBACK)))
    saga.go(broken("a"))
    return saga


def test_an_open_question_is_what_a_step_waits_for(says: Says) -> None:
    saga = asked()
    assert status_of(saga.state, saga.program) == "suspended"
    until = "2023-11-15T22:13:20.000Z"
    says(why(saga, "a"))
    assert whole(saga, "a")[0]["state"] == "asking"
    says(words(saga)[0])
    view = as_json(saga_view(saga.state, saga.program))
    assert view["questions"] == [
        {
            "id": "0.a.1",
            "node": "a",
            "iteration": [],
            "asked_for": "error_resolution",
            "message": f"{SAYS} ({DOWN})",
            "options": ["retry", "use", "fail"],
            "expires_at": until,
            "type": "error",
            "title": None,
            "details": None,
            "choices": [],
            "schema": None,
            "takeover": None,
            "asked_at": iso(T0),
            **dict.fromkeys(("risk", "digest", "told_at")),
            "for": [{"kind": "user", "name": "ada"}, {"kind": "role", "name": "operate"}],
            "claim": None,
            "escalate": [],
            "arguments": None,
        }
    ]
    assert view["active"] == [{"node": "a", "iteration": [], "state": "asking"}]
    assert attempts(saga)[0]["then"][0]["question"].items() <= view["questions"][0].items()


@pytest.mark.parametrize(
    ("action", "more"),
    [
        ("retry", {"arguments": {"city": "Rome"}}),
        ("retry", {}),
        ("use", {"output": 7}),
        ("fail", {}),
    ],
)
def test_an_answer_is_told(action: str, more: dict[str, Any], says: Says) -> None:
    saga = asked()
    answer(saga, action, **more)
    saga.go()
    says(attempts(saga)[0]["text"])
    assert attempts(saga)[0]["then"][0]["answer"] == action


def test_a_step_whose_question_is_answered_runs_again(says: Says) -> None:
    saga = asked()
    answer(saga, "retry")
    saga.go()
    says(why(saga, "a"))
    assert whole(saga, "a")[0]["state"] == "retrying"
    assert as_json(saga_view(saga.state, saga.program))["questions"] == []


def test_a_question_without_an_answer_is_told_with_what_followed(says: Says) -> None:
    saga = of(task("a"), any=PolicyChange(ladder=(ASK_USER, ESCALATE, ROLLBACK), at_most={ASK_USER: 1}))
    saga.go(broken("a"))
    saga.go(after_ms=86_400_000)
    (text,) = words(saga)
    says(text)
    assert [one["strategy"] for one in attempts(saga)[0]["then"]] == ["ask_user", "escalate"]


def test_an_incident_parks_the_saga_and_its_step_waits_for_the_person_on_call(says: Says) -> None:
    saga = of(task("a"), task("b"), any=PolicyChange(ladder=(ESCALATE, ROLLBACK), severity="high"))
    saga.go(broken("a"))
    says(why(saga, "a"))
    says(words(saga)[0])
    parked = f"escalated: {SAYS} ({DOWN})"
    says(why(saga, "b"))
    view = as_json(saga_view(saga.state, saga.program))
    assert (view["status"], view["reason"]) == ("parked", parked)
    assert view["parked"] == {
        "code": "escalated",
        "message": f"{SAYS} ({DOWN})",
        "node": "a",
        "until": None,
        "stands_still_since": None,
        "build": None,
        "by": None,
    }
    assert view["questions"][0]["expires_at"] is None


def test_a_saga_that_is_parked_for_a_time_says_until_when(says: Says) -> None:
    saga = of(task("a"), any=schedule(5_000))
    saga.go(broken("a"))
    saga.put(ev.Parked(code="budget_spent", message="no money", until=T0 + 60_000))
    until = "2023-11-14T22:14:20.000Z"
    says(why(saga, "a"))
    shown = as_json(saga_view(saga.state, saga.program))["parked"]
    assert (shown["node"], shown["until"]) == (None, until)
    saga.put(ev.Resumed(by="ada", at=T0, budget=2_500_000))
    assert as_json(saga_view(saga.state, saga.program))["budget_usd"] == 2.5
    saga.put(ev.SagaEnded(status="failed"))
    assert as_json(saga_view(saga.state, saga.program))["parked"] is None


# ---- the end, and strange logs


def test_a_saga_that_stops_says_how_far_a_failing_step_had_come(says: Says) -> None:
    saga = of(task("a"), any=schedule(5_000))
    saga.go(broken("a"))
    saga.cancel()
    says(why(saga, "a"))


def test_a_failure_that_is_caught_goes_on_to_its_handler(says: Says) -> None:
    saga = of(
        task("a", catch=(Catch(codes=("timeout",), then=("x",)), Catch(then=("mend",)))),
        task("x", "a"),
        task("mend", "a"),
        task("b", "a"),
        any=PolicyChange(ladder=(ROLLBACK,)),
    )
    saga.go(broken("a"))
    says(why(saga, "a"))
    says(why(saga, "b"))
    assert why(saga, "mend").startswith("`mend` is ready")
    saga.go(done("mend"))
    says(why(saga, "mend"))
    assert as_json(way(story(saga), 0, 10, ROOM))["end"] == "the saga completed"


def test_a_fork_tells_the_attempts_before_its_cut() -> None:
    saga = of(task("a"), any=schedule(0, 0))
    saga.go(broken("a"))
    saga.go(broken("a", attempt=2))
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=T0), epoch=0)
    assert [one["attempt"] for one in attempts(saga)] == [1]


def test_what_is_said_of_a_step_that_the_saga_no_longer_needs_is_passed_over() -> None:
    saga = of(task("a"), task("b", "a"))
    saga.put(ev.QuestionClosed(node="b", ask="?", action="retry", at=T0))
    saga.put(ev.StrategyChosen(node="a", strategy="retry", code="x", at=T0))
    saga.put(ev.QuestionClosed(node="a", ask="?", action="retry", at=T0))
    assert attempts(saga) == []
    saga.go(done("a"))
    saga.put(_failed_attempt())
    assert attempts(saga) == []


def test_an_attempt_about_which_nothing_is_said_yet(says: Says) -> None:
    saga = of(task("a"))
    saga.put(_failed_attempt())
    says(why(saga, "a"))
    assert whole(saga, "a")[0]["state"] == "retrying"


def test_an_incident_that_has_an_answer_of_another_version_is_told_as_it_is() -> None:
    saga = asked()
    saga.put(ev.QuestionClosed(node="a", ask="0.a.1", action="shrugged", at=T0))
    assert attempts(saga)[0]["text"].endswith("; shrugged")


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"), (999, "999 ms"), (1_000, "1 s"), (2_540, "2.5 s"), (59_900, "59.9 s"), (60_000, "1 min"),
        (185_000, "3 min 5 s"), (3_600_000, "1 h"), (7_800_000, "2 h 10 min"), (97_200_000, "1 d 3 h"),
    ],
)  # fmt: skip
def test_a_length_of_time_is_told_as_a_person_says_it(ms: int, text: str) -> None:
    assert duration_text(ms) == text


def test_a_fault_that_is_caught_is_told_with_the_way_that_it_goes(says: Says) -> None:
    saga = of(
        task("a", catch=(Catch(then=("mend",)),), output_schema=None),
        task("mend", "a"),
        task("b", "a"),
    )
    fault = ev.Failure("branch_unbound", "no n", "a")
    emits = (ev.Token("a", "mend"), ev.Token("a", "b", alive=False))
    saga.put(
        ev.StepSucceeded(
            node="a", output=ev.Value(), emits=emits, errors=(fault,), fault=fault, way="catch 1", attempt=1,
            started_at=T0, ended_at=T0, tool="t", tool_version="1", schema_hash="h",
        )
    )  # fmt: skip
    says(why(saga, "a"))
    saga.go()
    says(why(saga, "b"))


def test_notices_are_no_part_of_the_path() -> None:
    saga = of(task("a"))
    saga.put(ev.NoticesSent(keys=("k",)))
    assert why(saga, "a").startswith("`a` is ready")
