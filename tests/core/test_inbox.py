"""What the inbox is to show of a saga, by its state alone: a question that opens, moves, is answered, dropped, or open again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.folding import received
from baton.core.log.folding.received import PendingNotices, pending_notices
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.log.state import ANSWER, NOTICES_REMEMBERED
from baton.core.nodes.registry import KINDS
from tests.core.asked import notices_of
from tests.core.build import Saga, chain

TWO = """
name: two
nodes:
  ask: {human: {title: Pay?, expires: 2h}}
  ops: {human: {title: Look?, to: {group: ops}, expires: 1h}, catch: {code: rejected, then: on}}
  on: {wait: {for: 3h}}
"""


def asking(document: str = TWO) -> Saga:
    saga = Saga(Program(compile_document(document, {}), KINDS))
    saga.go()
    return saga


def answer(saga: Saga, ask: str, action: str = "approve") -> None:
    payload = ev.Value(v={"ask": ask, "action": action})
    saga.put(ev.SignalReceived(name=ANSWER, key=ask, payload=payload, by="ada", at=saga.now), epoch=0)


def shown(saga: Saga) -> dict[str, tuple[str, int, bool]]:
    return {ask: (one.to, one.until, one.told) for ask, one in saga.state.outbox.rows.items()}


def notice(key: str, ask: str = "", *, incident: bool = False) -> ev.Notice:
    return ev.Notice(key=key, to="user", code="c", message="m", at=1, incident=incident, ask=ask)


def test_a_saga_that_asks_nothing_owes_nothing_and_has_no_rows() -> None:
    saga = Saga(chain(1))
    saga.go()
    assert (pending_notices(saga.state), bool(pending_notices(saga.state)), saga.state.outbox.rows) == (
        PendingNotices(),
        False,
        {},
    )
    saga.put(ev.NoticeDue(notice=notice("k")))
    assert pending_notices(saga.state) == PendingNotices(notices=(notice("k"),))


def test_open_questions_are_to_be_shown_and_told_until_the_log_says_so() -> None:
    saga = asking()
    assert shown(saga) == {"0.ask": ("user:ada", -1, False), "0.ops": ("group:ops", -1, False)}
    now = pending_notices(saga.state)
    assert (list(now.asks), now.stale, len(now.notices)) == (["0.ask", "0.ops"], (), 2)
    saga.tell()
    assert {ask: told for ask, (_, _, told) in shown(saga).items()} == {"0.ask": True, "0.ops": True}
    assert not pending_notices(saga.state)
    assert decode_state(encode_state(saga.state)) == saga.state


def test_one_that_was_shown_and_not_told_is_told_when_it_has_a_place() -> None:
    saga = asking()
    row = ev.Shown(to="user:ada", until=saga.now + 7_200_000)
    saga.put(ev.NoticesSent(keys=("s1/0.ops",), shown={"0.ask": row, "0.ops": row}))
    now = pending_notices(saga.state)
    assert (list(now.asks), [one.key for one in now.notices]) == (["0.ask", "0.ops"], ["s1/0.ask"])


def test_an_answer_that_no_worker_has_taken_in_withdraws_the_row_and_the_notice() -> None:
    saga = asking()
    answer(saga, "0.ops", "reject")
    now = pending_notices(saga.state)
    assert (list(now.asks), now.stale, [one.key for one in now.notices]) == (
        ["0.ask"],
        ("0.ops",),
        ["s1/0.ask"],
    )
    saga.go()
    assert pending_notices(saga.state).stale == ("0.ops",)
    saga.put(ev.NoticesSent(keys=(), withdrawn=("0.ops",)))
    assert list(shown(saga)) == ["0.ask"]
    assert [one.key for one in saga.state.outbox.due] == ["s1/0.ask"], "who would answer is told no more"


def test_an_incident_is_told_whatever_has_become_of_its_question() -> None:
    saga = asking()
    saga.put(ev.NoticeDue(notice=notice("s1/0.ops/again", "0.ops", incident=True)))
    answer(saga, "0.ops")
    assert [one.key for one in pending_notices(saga.state).notices] == ["s1/0.ask", "s1/0.ops/again"]
    assert [one.key for one in received.before_the_end(saga.state)] == ["s1/0.ops/again"]
    saga.put(ev.NoticesSent(keys=(), withdrawn=("0.ops",)))
    assert [one.key for one in saga.state.outbox.due] == ["s1/0.ask", "s1/0.ops/again"]


def test_an_end_waits_for_no_notice_of_a_question_and_leaves_its_row_to_be_withdrawn() -> None:
    saga = asking("name: w\nnodes: {ask: {human: {title: t}}, b: {wait: {for: 1s}}, c: {end: {}, after: b}}")
    saga.now += 1_000
    saga.go()
    assert saga.state.ended is not None
    assert (list(shown(saga)), pending_notices(saga.state).stale) == (["0.ask"], ("0.ask",))


def test_a_fork_shows_again_what_was_withdrawn_and_tells_of_it_again() -> None:
    saga = asking()
    cut = saga.state.version
    saga.tell()
    answer(saga, "0.ask")
    saga.go()
    saga.put(ev.NoticesSent(keys=(), withdrawn=("0.ask",)))
    saga.now += 60_000
    saga.put(ev.Forked(cut=cut, branch=1, by="bob", at=saga.now))
    assert shown(saga) == {"0.ask": ("user:ada", -1, False), "0.ops": ("group:ops", -1, False)}
    now = pending_notices(saga.state)
    assert (list(now.asks), [one.key for one in now.notices]) == (
        ["0.ask", "0.ops"],
        ["s1/1/0.ask", "s1/1/0.ops"],
    )


@pytest.mark.parametrize("document", [TWO, "name: w\nnodes: {ask: {human: {title: t}}}"])
def test_what_was_withdrawn_before_a_fork_and_is_noted_behind_it_is_shown_and_told_again(
    document: str,
) -> None:
    saga = asking(document)
    cut = saga.state.version
    saga.tell()
    answer(saga, "0.ask")
    saga.now += 60_000
    saga.put(ev.Forked(cut=cut, branch=1, by="bob", at=saga.now))
    saga.put(ev.NoticesSent(keys=(), withdrawn=("0.ask",)))
    now = pending_notices(saga.state)
    assert ("0.ask" in now.asks, now.notices[0].key) == (True, "s1/1/0.ask")


def test_whom_a_question_was_for_since_its_row_was_noted_may_have_a_place_until_the_next_note() -> None:
    saga = asking()
    saga.tell()

    def claim(to: str) -> None:
        saga.put(ev.QuestionClaimed(node="ops", ask="0.ops", to=to, by="bob", at=saga.now), epoch=0)

    def left() -> tuple[str, ...]:
        return saga.state.outbox.rows["0.ops"].left

    claim("user:bob")
    assert left() == ("user:bob",), "a worker may take a place for him and die"
    claim("")
    assert (left(), list(pending_notices(saga.state).asks)) == (("user:bob",), ["0.ops"])
    claim("user:bob")
    claim("")
    assert left() == ("user:bob",)
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="bob", at=saga.now))
    assert left() == ("user:bob",)
    row = saga.state.outbox.rows["0.ops"]
    saga.put(ev.NoticesSent(keys=(), shown={"0.ops": ev.Shown(to=row.to, until=row.until, told=True)}))
    assert left() == ()


def test_a_note_that_is_older_than_a_claim_does_not_forget_the_claimants_place() -> None:
    saga = asking()
    row = ev.Shown(to="group:ops", until=saga.now + 3_600_000, told=True)
    saga.put(ev.QuestionClaimed(node="ops", ask="0.ops", to="user:bob", by="bob", at=saga.now), epoch=0)
    saga.put(ev.NoticesSent(keys=(), shown={"0.ops": row}))
    assert saga.state.outbox.rows["0.ops"].left == ("user:bob",)


def test_of_a_question_without_a_row_no_place_is_kept_in_mind() -> None:
    saga = asking()
    saga.put(ev.NoticesSent(keys=(), withdrawn=("0.ops",)))
    state = replace(saga.state, outbox=replace(saga.state.outbox, rows={}))
    assert (
        received.with_moved_question(
            state, ev.Ask(id="0.ops", kind="approval", message="", options=(), to="user:bob")
        )
        is state
    )


def test_what_moves_to_another_audience_or_another_time_is_to_be_shown_anew() -> None:
    saga = asking()
    saga.tell()
    rows = saga.state.outbox.rows
    saga.put(ev.NoticesSent(keys=(), shown={"0.ask": ev.Shown(to="user:bob", until=rows["0.ask"].until)}))
    assert list(pending_notices(saga.state).asks) == ["0.ask"]
    saga.put(ev.NoticesSent(keys=(), shown={"0.ask": ev.Shown(to="user:ada", until=5)}))
    assert list(pending_notices(saga.state).asks) == ["0.ask"]


def test_a_saga_keeps_the_notices_of_all_its_questions_however_many() -> None:
    many = NOTICES_REMEMBERED + 20
    saga = asking("name: w\nnodes:\n" + "".join(f"  q{n}: {{human: {{title: t}}}}\n" for n in range(many)))
    assert len(saga.state.outbox.due) == len(notices_of(saga.decision)) == many


def fan(many: int, to: str = "") -> Saga:
    nodes = "".join(f"  q{n}: {{human: {{title: t{to}}}}}\n" for n in range(many))
    return asking("name: w\nnodes:\n" + nodes)


def test_other_notices_push_out_no_question_of_a_saga_with_many_and_none_of_them_is_lost_for_it() -> None:
    saga = fan(NOTICES_REMEMBERED + 10)
    for n in range(5):
        saga.put(ev.NoticeDue(notice=notice(f"warning {n}")))
    now = pending_notices(saga.state)
    assert {one.ask for one in now.notices if one.ask} == set(now.asks)
    assert [one.key for one in now.notices if not one.ask] == [f"warning {n}" for n in range(5)]


def test_reminders_that_are_not_sent_push_out_the_first_notice_of_no_other_question() -> None:
    saga = fan(3)
    for n in range(3 * NOTICES_REMEMBERED):
        saga.put(ev.NoticeDue(notice=notice(f"reminder {n}", "0.q0")))
    now = pending_notices(saga.state)
    assert {one.ask for one in now.notices} == {"0.q0", "0.q1", "0.q2"}
    assert (len(now.notices), now.notices[-1].key) == (
        NOTICES_REMEMBERED + 3,
        f"reminder {3 * NOTICES_REMEMBERED - 1}",
    )


def test_an_incident_is_pushed_out_by_no_other_notice() -> None:
    saga = fan(1)
    saga.put(ev.NoticeDue(notice=notice("incident", "0.q0", incident=True)))
    for n in range(2 * NOTICES_REMEMBERED):
        saga.put(ev.NoticeDue(notice=notice(f"reminder {n}", "0.q0")))
    assert "incident" in [one.key for one in saga.state.outbox.due]
    assert len(saga.state.outbox.due) == NOTICES_REMEMBERED + 1


def test_of_more_incidents_than_are_remembered_none_is_lost() -> None:
    saga = fan(1)
    for n in range(2 * NOTICES_REMEMBERED):
        saga.put(ev.NoticeDue(notice=notice(f"incident {n}", incident=True)))
    assert len(saga.state.outbox.due) == 2 * NOTICES_REMEMBERED + 1


def test_only_a_user_is_a_person() -> None:
    assert [received.person_of(word) for word in ("user:a:b", "group:ops", "role:answer", "on_call")] == [
        *("a:b", "", "", ""),
    ]


def test_what_a_channel_could_not_send_of_a_question_that_was_told_is_tried_until_it_is_given_up() -> None:
    saga = asking()
    row = ev.Shown(to="group:ops", until=saga.now + 3_600_000, told=True)
    saga.put(ev.NoticesSent(keys=(), shown={"0.ops": row}))
    answer(saga, "0.ops")
    assert [one.key for one in pending_notices(saga.state).notices] == ["s1/0.ask", "s1/0.ops"]
    saga.put(ev.NoticesSent(keys=(), withdrawn=("0.ops", "0.unknown")))
    assert [one.key for one in saga.state.outbox.due] == ["s1/0.ask", "s1/0.ops"]
