"""What people do with an open question besides answering it: who may, what it makes of the question, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from baton.core.decide.decision import SendNotices
from baton.core.expressions import iso
from baton.core.failures.policy import PolicyChange
from baton.core.log import events as ev
from baton.core.log.folding.received import pending_notices
from baton.core.log.questions import (
    BETWEEN_REMINDERS_MS,
    Person,
    answer_refusal,
    awaited_question,
    claim_question,
    may_answer,
    release,
    remind_audience,
    unclosed_questions,
)
from baton.core.log.state import State
from baton.core.read.views import saga_view
from baton.errors import Forbidden, NotAllowedNow, NotFound
from tests.core.build import T0, Saga, program, task
from tests.core.failing import broken
from tests.core.nodes.asking import HOUR, answer, asking, output
from tests.core.strategies import ASK_USER, ESCALATE
from tests.core.told import why
from tests.kit.sentences import Says
from tests.kit.views import as_json

Rule = Callable[[State, str, ev.Ask, Person, int], Sequence[ev.Event]]

MINUTE = 60_000
ANA = Person(user="ana", by="ana/phone", roles=("answer",), groups=("hosts",))
BEN = Person(user="ben", by="ben", roles=("answer",), groups=("hosts",))
EVE = Person(user="eve", by="eve", roles=("answer",), groups=("guests",))
OPS = Person(user="ops", by="ops", roles=("operate",))
ADA = Person(user="ada", by="ada")  # who has started the sagas
GROUP = "{title: Book?, to: {group: hosts}, escalate: [{after: 2h, hand_on: {group: leads}}]}"


def does(saga: Saga, rule: Rule, person: Person) -> Sequence[ev.Event]:
    """What the rule says, which is in the log then."""
    (name,) = (ask.id for _, ask in unclosed_questions(saga.state))
    slot, ask = awaited_question(saga.state, name, saga.now)
    events = rule(saga.state, slot, ask, person, saga.now)
    if events:
        saga.put(*events, epoch=0, invocation="api")
    return events


def held(saga: Saga) -> tuple[str, str, int]:
    ((_, ask),) = unclosed_questions(saga.state)
    return ask.to, ask.candidates, ask.moved_at


def refused(saga: Saga, person: Person) -> str:
    ((_, ask),) = unclosed_questions(saga.state)
    return answer_refusal(saga.state, ask, person.user, person.roles, person.groups)


def failing(strategy: str) -> Saga:
    """A step that has failed and asks its saga's user, or those on call."""
    saga = Saga(program(task("a"), failures={"x": PolicyChange(ladder=(strategy,))}))
    saga.go(broken("a", "x"))
    return saga


# ---- claims


def test_a_member_of_the_group_claims_its_question_and_the_others_are_told_who_has_it(says: Says) -> None:
    saga = asking(GROUP)
    assert does(saga, claim_question, ANA) == (
        ev.QuestionClaimed(node="ask", ask="0.ask", at=T0, by="ana/phone", to="user:ana"),
    )
    assert held(saga) == ("user:ana", "group:hosts", T0)
    assert [refused(saga, one) for one in (ANA, OPS)] == ["", ""]
    says(refused(saga, BEN))
    for other in (BEN, OPS):
        with says.raised(NotAllowedNow):
            does(saga, claim_question, other)


def test_a_claim_makes_nothing_due_earlier_and_nothing_ready_and_only_the_inbox_follows() -> None:
    saga = asking(GROUP)
    saga.tell()
    due = saga.go().due
    does(saga, claim_question, ANA)
    decision = saga.go()
    assert (decision.due, decision.record) == (due, ())
    assert [type(command) for command in decision.commands] == [SendNotices]
    assert (list(pending_notices(saga.state).asks), pending_notices(saga.state).notices) == (["0.ask"], ())


@pytest.mark.parametrize("person", [EVE, ADA])
@pytest.mark.parametrize("rule", [claim_question, release])
def test_a_caller_whom_it_is_not_for_neither_claims_nor_releases_it(
    rule: Rule, person: Person, says: Says
) -> None:
    saga = asking(GROUP)
    for _ in range(2):
        with says.raised(Forbidden):
            does(saga, rule, person)
        does(saga, claim_question, ANA)


def test_twice_is_a_no_op() -> None:
    saga = asking(GROUP)
    assert [
        len(does(saga, rule, ANA)) for rule in (release, claim_question, claim_question, release, release)
    ] == [
        0,
        1,
        0,
        1,
        0,
    ]


@pytest.mark.parametrize("person", [ANA, OPS])
def test_who_has_it_or_an_operator_releases_it(person: Person) -> None:
    saga = asking(GROUP)
    does(saga, claim_question, ANA)
    with pytest.raises(Forbidden, match="claimed by `ana` at"):
        does(saga, release, BEN)
    saga.now += MINUTE
    assert does(saga, release, person) == (
        ev.QuestionClaimed(node="ask", ask="0.ask", at=T0 + MINUTE, by=person.by),
    )
    assert held(saga) == ("group:hosts", "", T0 + MINUTE)
    assert len(does(saga, claim_question, BEN)) == 1


def test_there_is_nothing_to_claim_where_a_question_is_for_one_user(says: Says) -> None:
    saga = asking("{title: Book?}")
    assert does(saga, claim_question, ADA) == ()
    with says.raised(NotAllowedNow):
        does(saga, claim_question, OPS)


@pytest.mark.parametrize("to", ["{role: answer}", "{role: operate}"])
def test_a_question_to_a_role_is_claimed_as_one_to_a_group(to: str) -> None:
    saga = asking(f"{{title: Book?, to: {to}}}")
    person = OPS if "operate" in to else ANA
    assert len(does(saga, claim_question, person)) == 1
    assert may_answer(saga.state, next(unclosed_questions(saga.state))[1]) == (
        ("user", person.user),
        ("role", "operate"),
    )


def test_to_hand_it_on_ends_a_claim(says: Says) -> None:
    saga = asking(GROUP)
    does(saga, claim_question, ANA)
    saga.go(after_ms=2 * HOUR)
    assert held(saga) == ("group:leads", "", T0 + 2 * HOUR)
    says(refused(saga, ANA))


def test_a_claimed_question_is_answered_as_any_other() -> None:
    saga = asking(GROUP)
    does(saga, claim_question, ANA)
    answer(saga, "approve", by="ana")
    saga.go()
    assert output(saga)["by"] == "ana"


def test_a_claim_of_a_question_that_is_gone_changes_nothing() -> None:
    saga = asking(GROUP)
    before = saga.state
    for ask, node in (("1.ask", "ask"), ("0.ask", "then")):
        saga.put(ev.QuestionClaimed(node=node, ask=ask, at=T0, by="ana", to="user:ana"))
        assert (saga.state.open, saga.state.failing) == (before.open, before.failing)


def test_those_on_call_claim_an_incident_and_a_fork_to_before_the_claim_gives_it_back() -> None:
    saga = failing(ESCALATE)
    cut = saga.state.version
    with pytest.raises(Forbidden):
        does(saga, claim_question, ANA)
    does(saga, claim_question, OPS)
    assert held(saga)[:2] == ("user:ops", "on_call")
    assert as_json(saga_view(saga.state, saga.program))["questions"][0]["claim"] == {
        "by": "ops",
        "at": iso(T0),
        "from": {"kind": "role", "name": "operate"},
    }
    asks = failing(ASK_USER)
    cut = asks.state.version
    asks.put(ev.QuestionClaimed(node="a", ask="0.a.1", at=T0, by="ops", to="user:ops"))
    assert held(asks)[0] == "user:ops"
    asks.put(ev.Forked(cut=cut, branch=1, by="bob", at=T0), epoch=0)
    assert held(asks)[:2] == ("", "")


def test_a_question_that_has_an_answer_or_does_not_exist_is_not_to_be_claimed(says: Says) -> None:
    saga = asking(GROUP)
    with says.raised(NotFound):
        awaited_question(saga.state, "0.other", saga.now)
    answer(saga, "approve")
    with says.raised(NotAllowedNow):
        awaited_question(saga.state, "0.ask", saga.now)


@pytest.mark.parametrize("rule", [claim_question, remind_audience])
def test_the_question_of_a_parked_saga_is_answered_and_nothing_else(rule: Rule, says: Says) -> None:
    saga = asking(GROUP)
    saga.put(ev.Parked(code="over_budget", message="It has spent too much."))
    slot, ask = next(unclosed_questions(saga.state))
    with says.raised(NotAllowedNow):
        rule(saga.state, slot, ask, OPS, saga.now)


# ---- reminders that people ask for


@pytest.mark.parametrize("person", [ANA, OPS, ADA])
def test_who_may_answer_or_has_started_the_saga_has_people_told_again(person: Person) -> None:
    saga = asking(GROUP)
    saga.tell()
    saga.now += BETWEEN_REMINDERS_MS
    told, due = does(saga, remind_audience, person)
    assert told == ev.QuestionEscalated(node="ask", ask="0.ask", at=saga.now, by=person.by)
    assert isinstance(due, ev.NoticeDue)
    assert (due.notice.key, due.notice.to) == (f"s1/0/0.ask/r{saga.now}", "group:hosts")
    assert due.notice.message == "Reminder: Book?"
    assert saga.go().commands
    ((_, ask),) = unclosed_questions(saga.state)
    assert (len(ask.escalate), ask.told_at) == (1, saga.now)


def test_another_caller_has_no_one_told(says: Says) -> None:
    saga = asking(GROUP)
    saga.now += HOUR
    with says.raised(Forbidden):
        does(saga, remind_audience, EVE)


def test_people_are_told_at_most_once_in_five_minutes_and_the_refusal_says_when(says: Says) -> None:
    saga = asking(GROUP)
    again = T0 + BETWEEN_REMINDERS_MS
    for _ in range(2):
        saga.now = again - 1
        with says.raised(NotAllowedNow):
            does(saga, remind_audience, ANA)
        saga.now = again
        does(saga, remind_audience, ANA)
        again += BETWEEN_REMINDERS_MS


def test_what_the_escalation_told_counts_as_well(says: Says) -> None:
    saga = asking("{title: Book?, escalate: [{after: 1h, remind: true}]}")
    saga.go(after_ms=HOUR)
    saga.now += MINUTE
    with says.raised(NotAllowedNow):
        does(saga, remind_audience, ADA)


def test_of_a_step_that_failed_people_are_told_with_its_code() -> None:
    saga = failing(ASK_USER)
    saga.now += HOUR
    _, due = does(saga, remind_audience, ADA)
    assert isinstance(due, ev.NoticeDue)
    assert (due.notice.code, due.notice.severity, due.notice.node) == ("x", "medium", "a")
    assert due.notice.message.startswith("Reminder: ")


# ---- what is shown


def test_the_way_of_a_saga_says_who_has_a_question_and_shows_the_last_of_many_moves(says: Says) -> None:
    saga = asking(GROUP)
    does(saga, claim_question, ANA)
    does(saga, release, ANA)
    saga.now += HOUR
    does(saga, remind_audience, OPS)
    says(why(saga, "ask"))
    for rule in (claim_question, release, claim_question, release):
        does(saga, rule, ANA)
    assert "; 2 things before that; reminder by" in why(saga, "ask")
    saga.go(after_ms=HOUR)
    says(why(saga, "ask"))
    asks = failing(ASK_USER)
    asks.now += HOUR
    does(asks, remind_audience, ADA)
    says(why(asks, "a"))
