"""Findings about a head and a log, and the commands that follow from them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from baton.core import recovery
from baton.core.decide.program import Program
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.forks import fork_to
from baton.core.log.folding.received import CALLBACK
from baton.core.log.records import PAUSES
from baton.core.log.state import ANSWER, State
from baton.core.recovery import (
    Damage,
    EndLease,
    GoBack,
    LostGraph,
    MakeDue,
    PutGraph,
    ReadLog,
    Recover,
    can_go_back,
    decided_again,
    diagnose,
    repair,
)
from tests.core.build import Saga, done, entry, program, replay, task, wait
from tests.kit.sentences import Says

LIMITS = Limits()
HOUR = 3_600_000


class AHead(msgspec.Struct, frozen=True, kw_only=True):
    """A head as the last release leaves it."""

    status: str = "waiting"
    group: str = "waiting"
    branch: int = 0
    folded: int = 3
    snapshot: int = 0
    owner: str = ""
    until: int = 0
    pending_wake: int = 0
    inbox: int = 0
    due_at: int | None = None
    lane: str = "sweep"
    armed: int = 0
    expires: int = 0


def a_saga() -> tuple[Saga, Program]:
    made = program(task("a"), wait("w", "a", signal="s"))
    saga = Saga(made)
    saga.go(done("a"))
    saga.signal("other", None, "k")
    return saga, made


SAGA, PROGRAM = a_saga()
NOW = SAGA.now
END = ev.SagaEnded(status="completed")
ENDED = replace(SAGA.state, ended=END, open={}, tokens={})


def found(head: AHead, state: State = SAGA.state, now: int = NOW, **more: Any) -> list[str]:
    read = ReadLog(state=state, damage=more.get("damage"))
    return [one.code for one in diagnose(head, read, more.get("graph", PROGRAM), now, LIMITS)]


HEALTHY = AHead(due_at=NOW + HOUR)
DONE = AHead(status="completed", group="done")


@pytest.mark.parametrize(
    ("head", "state", "code"),
    [
        (HEALTHY, SAGA.state, None),
        (DONE, ENDED, None),
        (AHead(owner="w", until=NOW + 60_000, due_at=None), SAGA.state, None),
        (AHead(owner="w", until=NOW - 60_000, due_at=NOW, status="odd"), SAGA.state, None),
        (replace(HEALTHY, due_at=NOW, status="odd"), SAGA.state, None),
        (replace(HEALTHY, folded=2, status="running"), SAGA.state, None),
        (replace(DONE, due_at=NOW + HOUR, armed=NOW + HOUR), ENDED, None),
        (replace(DONE, due_at=NOW + HOUR, inbox=1), ENDED, None),
        (replace(DONE, folded=2, due_at=NOW + HOUR), ENDED, None),
        (AHead(), SAGA.state, recovery.NOT_DUE),
        (replace(HEALTHY, due_at=NOW + 40 * 24 * HOUR), SAGA.state, recovery.DUE_TOO_LATE),
        (replace(HEALTHY, status="running"), SAGA.state, recovery.STALE),
        (replace(HEALTHY, group="open"), SAGA.state, recovery.STALE),
        (replace(HEALTHY, branch=1), SAGA.state, recovery.STALE),
        (replace(DONE, folded=2), ENDED, recovery.STALE),
        (replace(DONE, due_at=NOW + HOUR), ENDED, recovery.STILL_DUE),
        (AHead(owner="w", until=NOW + HOUR, due_at=NOW), SAGA.state, recovery.LEASE_TOO_LONG),
    ],
)
def test_a_head_is_judged_by_its_log(head: AHead, state: State, code: str | None) -> None:
    assert found(head, state) == ([] if code is None else [code])
    commands = repair(diagnose(head, ReadLog(state=state), PROGRAM, NOW, LIMITS))
    expected = EndLease() if code == recovery.LEASE_TOO_LONG else MakeDue()
    assert commands == (() if code is None else (expected,))


def test_what_a_recovery_says_changes_nothing_before_its_fork() -> None:
    said = ev.WorkflowRecovered(reason="damaged", first=4, last=4)
    assert apply(SAGA.state, said) is SAGA.state


def test_entries_that_no_worker_takes_in_for_minutes_are_a_finding() -> None:
    head = replace(HEALTHY, folded=2, due_at=NOW + 12 * HOUR)
    assert found(head, now=NOW + 2 * LIMITS.busy_sweep_ms) == [recovery.NOT_WOKEN]


def test_a_status_is_not_judged_without_the_graph() -> None:
    assert found(replace(HEALTHY, status="running", group="open"), graph=None) == []


def test_a_lost_graph_is_stored_again_where_its_document_gives_it() -> None:
    compiled = LostGraph(graph="g", data=b"{}")
    findings = diagnose(HEALTHY, ReadLog(state=SAGA.state), compiled, NOW, LIMITS)
    assert repair(findings) == (PutGraph(b"{}"), MakeDue())
    assert (
        repair(diagnose(HEALTHY, ReadLog(state=SAGA.state), LostGraph(graph="g", why="x"), NOW, LIMITS)) == ()
    )


BACK = ev.GraphChanged(graph="h", workflow="w", by="doctor", at=NOW, reason="its graph is lost")


def test_without_its_document_the_saga_goes_back_to_a_graph_that_it_ran_before(says: Says) -> None:
    lost = LostGraph(graph="g", why="it is gone", back=BACK)
    state = SAGA.state
    (finding,) = diagnose(HEALTHY, ReadLog(state=state), lost, NOW, LIMITS)
    says(finding.remedy)
    change = GoBack(state.version + 1, state.lineage.branch, BACK)
    assert repair([finding], asked=False) == (change, MakeDue())
    damaged = ReadLog(state=state, damage=damage())
    assert not any(isinstance(one, GoBack) for one in repair(diagnose(HEALTHY, damaged, lost, NOW, LIMITS)))


def test_a_graph_without_the_places_that_the_saga_has_come_to_is_none_to_go_back_to() -> None:
    state, program = SAGA.state, SAGA.program
    assert can_go_back(state, program, SAGA.entries)
    elsewhere = replace(state, tokens={**state.tokens, "elsewhere": {}})
    by_another = replace(state, tokens={slot: {"elsewhere": True} for slot in state.tokens})
    assert not any(can_go_back(one, program, ()) for one in (elsewhere, by_another))
    token = ev.Token("a", "elsewhere", ())
    ended = ev.NodeSkipped(node="a", iteration=(), emits=(token,))
    assert not can_go_back(state, program, [ev.Entry(version=9, at=NOW, invocation="i", events=(ended,))])
    renamed = ev.GraphChanged(graph="g", workflow="w", by="ada", at=NOW, renamed={"old": "a"})
    assert not can_go_back(state, program, [ev.Entry(version=9, at=NOW, invocation="i", events=(renamed,))])


# ---- damaged logs


def damage(*later: ev.Entry, **more: Any) -> Damage:
    fields: dict[str, Any] = {
        "first": 4,
        "last": 4,
        "branch": 0,
        "tail": 4 + len(later),
        "why": "it is missing",
    }
    return Damage(later=later, **(fields | more))


def the_recovery(*events: ev.Event, state: State = SAGA.state, head: AHead = HEALTHY, **more: Any) -> Any:
    read = ReadLog(state=state, damage=damage(entry(5, *events), **more))
    return repair(diagnose(head, read, PROGRAM, NOW, LIMITS), asked=more.get("is_certain", True))


def test_a_damaged_log_goes_on_from_the_last_entry_before_the_damage() -> None:
    due, recover = the_recovery(ev.GaveUp())
    assert due == MakeDue()
    assert isinstance(recover, Recover)
    assert (recover.version, recover.branch, recover.cut) == (6, 0, 3)


def test_a_recovery_of_a_saga_that_asks_says_that_later_questions_get_new_ids(says: Says) -> None:
    read = ReadLog(state=SAGA.state, damage=damage())
    for status in ("suspended", "waiting"):
        findings = diagnose(AHead(status=status), read, PROGRAM, NOW, LIMITS)
        says([one.remedy for one in findings if one.code == recovery.UNREADABLE])


def test_what_lies_behind_the_damage_is_named_and_what_must_hold_is_kept() -> None:
    child = ev.ChildOpened(node="c", child="s1.0.c", workflow="w", input=ev.Value())
    other = ev.ChildOpened(node="d", child="s1.0.d", workflow="w", input=ev.Value())
    left = ev.ChildOpened(node="e", child="x", workflow="w", input=ev.Value(), detached=True)
    cancel = ev.CancelRequested(reason="", by="ann", at=NOW, grace_ms=0)
    later = replace(cancel, at=NOW + 5)
    ask = ev.Shown(to="user:ann")
    signals: list[ev.Event] = [
        ev.SignalReceived(name=name, key="k", payload=ev.Value(), by="ann", at=NOW)
        for name in ("s", CALLBACK, ANSWER)
    ]
    (succeeded,) = (one for one in SAGA.entries[1].events if isinstance(one, ev.StepSucceeded))
    closed = ev.QuestionClosed(node="b", ask="b", action="retry", by="k", at=NOW)
    paid = replace(succeeded, cost=5)
    _, recover = the_recovery(
        *[child, other, left, cancel, later, *signals, closed, paid],
        ev.ChildReported(slot="d", child="s1.0.d", status="completed", cost=2),
        ev.NoticesSent(keys=(), shown={"p": ask, "q": ask}),
        ev.NoticesSent(keys=(), withdrawn=("q",)),
    )
    event = recover.recovery
    assert [one.saga for one in event.children] == ["s1.0.c"]
    assert (event.steps, event.spent, list(event.shown)) == (("a",), 7, ["p"])
    assert event.signals == ("s", "callback k", "answer k", "answer of b")
    assert event.cancel == cancel


def test_a_pause_behind_the_damage_holds_unless_it_is_over() -> None:
    first, second = (ev.Parked(code=code, message="", at=NOW) for code in sorted(PAUSES)[:2])
    over = ev.Resumed(by="ann", at=NOW, code=second.code)
    _, recover = the_recovery(first, second, over)
    assert recover.recovery.pauses == (first,)
    fork = ev.Forked(cut=3, branch=1, by="ann", at=NOW)
    written = entry(6, recover.recovery, fork)
    after = fork_to(SAGA.state, SAGA.state, written, fork)
    assert after.parked is not None
    assert after.parked.code == first.code


def test_an_end_behind_the_damage_stays_and_only_a_person_repairs_such_a_saga() -> None:
    read = ReadLog(state=SAGA.state, damage=damage(entry(5, END)))
    findings = diagnose(DONE, read, PROGRAM, NOW, LIMITS)
    assert repair(findings, asked=False) == ()
    _, recover = repair(findings)
    assert isinstance(recover, Recover)
    assert recover.recovery.ended == END


def test_a_fork_behind_the_damage_decides_where_the_saga_goes_on() -> None:
    cancel = ev.CancelRequested(reason="", by="ann", at=NOW, grace_ms=0)
    fork = ev.Forked(cut=2, branch=1, by="ann", at=NOW)
    _, recover = the_recovery(cancel, fork)
    assert (recover.cut, recover.recovery.cancel, recover.recovery.ended) == (2, None, None)


@pytest.mark.parametrize(
    ("state", "later", "more", "code"),
    [
        (State(), (), {"first": 1, "last": 1, "tail": 1}, recovery.NOTHING_STABLE),
        (SAGA.state, (), {"is_newer": True}, recovery.NEWER_RELEASE),
        (SAGA.state, (ev.UndoStepBegan,), {}, recovery.UNREADABLE),
    ],
)
def test_what_a_person_has_to_decide_has_no_command(
    state: State, later: tuple[Any, ...], more: dict[str, Any], code: str
) -> None:
    entries = [entry(5, kind(node="a", item="undo", version=2, at=NOW)) for kind in later]
    (finding,) = diagnose(
        HEALTHY, ReadLog(state=state, damage=damage(*entries, **more)), PROGRAM, NOW, LIMITS
    )
    assert (finding.code, finding.commands) == (code, ())


def test_damage_in_the_entries_of_another_saga_is_left_to_a_person() -> None:
    """The entries before it are of the saga from which this one was forked."""
    copies = replace(SAGA.state, origin=replace(SAGA.state.origin, source="s0"))
    assert found(HEALTHY, copies, damage=damage()) == [recovery.NOTHING_STABLE]
    own = replace(copies, origin=replace(copies.origin, copied=2))
    assert found(HEALTHY, own, damage=damage()) == [recovery.UNREADABLE]


def test_a_cut_behind_undone_work_is_left_to_a_person() -> None:
    undone = replace(SAGA.state, undo=replace(SAGA.state.undo, incarnation={"a": 1}))
    assert the_recovery(ev.Forked(cut=2, branch=1, by="ann", at=NOW), state=undone) == ()
    assert the_recovery(ev.GaveUp(), state=undone) != ()


def test_a_recovery_that_no_load_takes_in_is_not_repeated() -> None:
    said = ev.WorkflowRecovered(reason="damaged", first=4, last=4)
    known = ev.Forked(cut=3, branch=1, by="worker", at=NOW)
    assert the_recovery(said, known) == ()
    assert the_recovery(said, replace(known, cut=4)) != (), "of a cut that cannot be read any more"


def test_a_log_is_left_only_while_no_worker_holds_it_and_uncertain_damage_only_if_asked() -> None:
    held = AHead(owner="w", until=NOW + 60_000)
    assert the_recovery(ev.GaveUp(), head=held) == ()
    assert the_recovery(ev.GaveUp(), is_certain=False) == ()


# ---- deciding again


def test_what_a_worker_has_decided_is_decided_again_from_the_same_state() -> None:
    before = replay(SAGA.entries[:1])
    both = decided_again(PROGRAM, before, SAGA.entries[1])
    assert both is not None
    assert both[0] == both[1]
    assert len(both[0]) == len(SAGA.entries[1].events)


def test_what_the_log_alone_does_not_decide_is_not_compared() -> None:
    before, decided = replay(SAGA.entries[:1]), SAGA.entries[1]
    (succeeded,) = (one for one in decided.events if isinstance(one, ev.StepSucceeded))
    by_a_caller, handed = SAGA.entries[2], replace(decided, events=(replace(succeeded, callback="c"),))
    large = replace(decided, events=(replace(succeeded, output=ev.Value(ref="cas://sha256/00", size=9)),))
    for one in (by_a_caller, handed, replace(decided, events=(*decided.events, ev.GaveUp()))):
        assert decided_again(PROGRAM, before, one) is None
    assert decided_again(program(task("a"), output="${ctx.a.output.x}"), before, large) is None


def test_a_damaged_head_is_left_to_a_person() -> None:
    assert recovery.damaged_head("no lane").commands == ()
