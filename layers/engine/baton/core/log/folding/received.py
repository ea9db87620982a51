"""Callbacks, signals, questions, corrections and deaths, as a state remembers them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from baton.core.failures.codes import PERMANENT, TRANSIENT, class_of
from baton.core.failures.names import RETRYABLE
from baton.core.log import events as ev
from baton.core.log.events import Ask, Notice
from baton.core.log.folding.workflow_limits import UNANSWERED, pay, with_models
from baton.core.log.questions import open_questions, unclosed_questions
from baton.core.log.records import Child, Shown
from baton.core.log.scopes import Replanning, is_index
from baton.core.log.slots import Slot, owner_of
from baton.core.log.state import FAULT, FORK_KEY, KEYS_REMEMBERED, Recovery, Signal, State, without
from baton.core.log.work import Callback, Journal, Open
from baton.core.models.usage import Usage


def signal_key(name: str, key: str) -> str:
    """Return the key under which a signal is remembered."""
    return f"{name}/{key}"


def fingerprint(payload: ev.Value, failure: ev.Failure | None = None) -> str:
    """Return a fingerprint that tells a repeated signal from another one under the same key."""
    said = payload if failure is None else failure
    return hashlib.sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()[:12]


def not_taken(state: State, slot: str, key: str) -> tuple[Signal, ...]:
    """Return the signals that wait, without the one of this key that the open wait at `slot` has taken."""
    work = state.open.get(slot)
    name = "" if work is None else work.taken_signal
    # By name too: a caller may have given another signal the key "time".
    return tuple(other for other in state.signals if (other.name, other.key) != (name, key))


def cancelling_signal(state: State, child: Child) -> Signal | None:
    """Return the signal for which a child is cancelled, or None."""
    if not child.listens:
        return None
    return next((one for one in state.signals if one.name == child.listens), None)


def key_in(state: State, name: str, key: str) -> str:
    """Return the remembered value of a signal; empty for an unknown signal."""
    return state.keys.get(signal_key(name, key), "")


def remember(state: State, news: dict[str, str]) -> dict[str, str]:
    """Return the keys with new ones.

    Their number is limited, except for those of forks and of signals that wait: if a waiting signal's key
    were forgotten, a wait would take another signal under the same key.
    """
    keys = {**state.keys, **news}
    if len(keys) > KEYS_REMEMBERED:  # besides those that stay
        waiting = {signal_key(signal.name, signal.key) for signal in state.signals}
        others = [known for known in keys if known not in waiting and not known.startswith(FORK_KEY)]
        for known in others[: max(len(others) - KEYS_REMEMBERED, 0)]:
            del keys[known]
    return keys


def signal_received(state: State, e: ev.SignalReceived) -> State:
    """Record a signal, which waits to be taken."""
    key = signal_key(e.name, e.key)
    if e.lost or key in state.keys:  # keys of lost signals would push out those of signals that were taken
        return state
    state = replace(state, signals=(*state.signals, Signal.of(e)))
    return replace(state, keys=remember(state, {key: fingerprint(e.payload, e.failure)}))


def with_reply(state: State, key: str) -> State:
    """Record that the entry which is folded has the reply to a signal. The first one counts."""
    known = state.keys.get(key, "")
    if not known or reply_of(known):
        return state
    return replace(state, keys={**state.keys, key: f"{known}{_REPLIED}{state.version + 1}"})


def reply_of(known: str) -> int:
    """Return the version of the entry with the reply to a signal, from its remembered value; 0: none."""
    return int(known.partition(_REPLIED)[2] or 0)


def is_same_signal(known: str, payload: ev.Value, failure: ev.Failure | None = None) -> bool:
    """Return true if a signal of this remembered value had this payload or failure."""
    return known.partition(_REPLIED)[0] == fingerprint(payload, failure)


CALLBACK = ":callback"  # the name of the signal that completes one: none that a workflow can wait for
SUCCESS, FAILURE, HEARTBEAT = "success", "failure", "heartbeat"
"""Reports of work elsewhere."""
_REPLIED = "/"  # between the fingerprint of a signal and the version of its reply
_OVER = "/"  # before the code with which one ended: no fingerprint begins so


class CallbackReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report of external work: `status` is SUCCESS, FAILURE or HEARTBEAT.
    `retryable` None: as its code says.
    """

    status: str
    output: Any = None
    code: str = ""
    message: str = ""
    retryable: bool | None = None

    def failure(self) -> ev.Failure | None:
        """Return the reported failure, or None for another status. Secrets are removed from its message."""
        if self.status != FAILURE:
            return None
        class_ = class_of(self.code)
        if self.retryable is not None and self.retryable != (class_ in RETRYABLE):
            class_ = TRANSIENT if self.retryable else PERMANENT
        return replace(ev.failed_with(self.code, self.message), kind=class_)


def callback_of(state: State, slot: str) -> str:
    """Return the id of the callback that the step at `slot` waits for, or will: branch, slot, and number of
    the handover.

    The number goes up when a handover has ended without success, so attempts at handing over the same work
    give the same id, and with it the same token.
    """
    work = state.open.get(slot)
    if isinstance(work, Callback):
        return work.id
    failing = state.failing.get(slot)
    return f"{state.lineage.branch}.{slot}.{1 if failing is None else failing.handovers + 1}"


def promise_of(slot: str) -> str:
    """Return the id of the callback that a function asks for at `slot`.

    It is the same in each branch: a step that has sent its token is not repeated after a fork.
    """
    return f"0.{slot}.1"


def is_elsewhere(state: State, slot: str) -> bool:
    """Return true if the attempt at this slot goes on elsewhere."""
    return isinstance(state.open.get(slot), Callback)


def slot_in(callback: str) -> str:
    """Return the slot that an id names."""
    return callback.partition(".")[2].rpartition(".")[0]


def said_of(state: State, callback: str) -> Signal | None:
    """Return the completion that waits to be taken, or None."""
    known = (one for one in state.signals if one.name == CALLBACK and one.key == callback)
    return next(known, None) if state.signals else None


def completed_with(state: State, callback: str) -> str:
    """Return the fingerprint of the completion; empty if none came, or if it is forgotten."""
    known = key_in(state, CALLBACK, callback)
    return "" if known.startswith(_OVER) else known


def ended_with(state: State, callback: str) -> str:
    """Return the code with which the callback ended without a completion; empty if it did not, or if the code
    is forgotten.
    """
    known = key_in(state, CALLBACK, callback)
    return known.removeprefix(_OVER) if known.startswith(_OVER) else ""


def why_over(state: State, callback: str) -> str:
    """Return the reason why reports on the callback no longer count; empty as long as they count."""
    slot = slot_in(callback)
    if completed_with(state, callback):
        return "it has been completed"
    is_later = slot in state.tokens and callback_of(state, slot) != callback
    if code := ended_with(state, callback):
        return f"it has ended with `{code}`" + (", and is superseded by another attempt" if is_later else "")
    if state.ended is not None:
        return f"its saga has ended: {state.ended.status}"
    if state.is_stopping:
        return "its saga is being cancelled" if state.cancel is not None else "its saga ends"
    if slot not in state.tokens:
        return "its step is over"
    if not is_later:
        return ""
    is_forked = callback.partition(".")[0] != str(state.lineage.branch)
    return "its saga has gone on in another branch" if is_forked else "it is superseded by another attempt"


def callback_over(state: State, slot: str, callback: str, code: str) -> State:
    """Return the state without the callback of a step, when an attempt ends with it.

    `code`: that of the failure, empty for a success.
    """
    key = signal_key(CALLBACK, callback)
    return replace(
        state,
        signals=tuple(one for one in state.signals if (one.name, one.key) != (CALLBACK, callback)),
        keys=state.keys if key in state.keys else remember(state, {key: _OVER + code}),
        open=without(state.open, (slot,)),
    )


def completions_of(work: Mapping[str, Open], state: State) -> dict[str, Signal]:
    """Return the completions in `state` of the callbacks in this work, by key."""
    ids = {one.id for one in work.values() if isinstance(one, Callback)}
    return {
        signal_key(CALLBACK, one.key): one for one in state.signals if one.name == CALLBACK and one.key in ids
    }


def heartbeat_heard(state: State, e: ev.CallbackHeartbeat) -> State:
    """Record a sign of life of work elsewhere."""
    slot = e.slot
    work = state.open.get(slot)
    if not isinstance(work, Callback) or work.id != e.callback or e.at <= work.heard_at:
        return state
    return replace(state, open={**state.open, slot: replace(work, heard_at=e.at)})


def without_running(recovery: Recovery, slot: str) -> Recovery:
    """Return the recovery without this slot: the log has its result, so it is not at work."""
    running = tuple(other for other in recovery.possibly_running if other != slot)
    return replace(recovery, possibly_running=running, deaths=_without(recovery.deaths, slot))


def _without(deaths: dict[str, int], slot: str) -> dict[str, int]:
    return {other: count for other, count in deaths.items() if other != slot}


def fold_interrupted(state: State, e: ev.StepInterrupted) -> State:
    """Record a step that was cut off by the end of its invocation."""
    slot = e.slot
    state = with_models(pay(state, slot, e.cost, is_late=bool(e.why)), slot, e.usage, e.assumed)
    if slot in state.recovery.deaths and e.cost:
        deaths = _without(state.recovery.deaths, slot)
        state = replace(state, recovery=replace(state.recovery, deaths=deaths))
    if slot not in state.tokens or e.why not in ("", FAULT):
        return state
    recovery, running = state.recovery, state.recovery.possibly_running
    if slot not in running:
        recovery = replace(recovery, possibly_running=(*running, slot))
    if e.why:
        return replace(state, recovery=recovery)
    counted_by_slot = {**recovery.interruptions, slot: recovery.interruptions.get(slot, 0) + 1}
    return replace(
        state,
        recovery=replace(recovery, interruptions=counted_by_slot),
        counts=replace(state.counts, interrupted=state.counts.interrupted + 1),
    )


def fold_revived(state: State, e: ev.Revived) -> State:
    """Count deaths in a row: only the death of the last revival itself continues the count.

    A node that an invocation settled before it died resets the count. A failed step keeps its place, and does
    not act.
    """
    recovery = state.recovery
    failed = state.failure.node if state.failure is not None and state.failure.attempt else ""
    asking = {
        slot
        for slot, work in state.open.items()
        if (work.ask is not None and work.ask.digest) or isinstance(work, Replanning)
    }
    # An attempt before the question may have acted all the same.
    asking -= set(recovery.possibly_running)
    for slot, cost in e.assumed.items():
        tokens = e.tokens.get(slot, ())
        usage = (Usage(model=UNANSWERED, input=tokens[0], output=sum(tokens[1:])),) if tokens else ()
        state = with_models(pay(state, slot, cost, is_late=True), slot, usage, cost)
    running = tuple(slot for slot in state.tokens if slot not in asking and Slot.parse(slot).node != failed)
    unsaid = {slot: recovery.deaths.get(slot, 0) + 1 for slot in running if slot not in e.assumed}
    return replace(
        state,
        recovery=replace(
            recovery,
            consecutive_crashes=recovery.consecutive_crashes + 1 if e.dead_epoch == recovery.epoch else 1,
            possibly_running=running,
            deaths={**recovery.deaths, **unsaid},
        ),
        counts=replace(state.counts, revivals=state.counts.revivals + 1),
    )


def unit_recorded(state: State, e: ev.UnitRecorded) -> State:
    """Record a unit of a step's work, and its cost. The step comes further: earlier crashes are forgotten."""
    slot = e.slot
    if slot not in state.tokens:
        return state
    state = pay(state, slot, e.cost)
    before, recovery = state.journals.get(slot, _NO_JOURNAL), state.recovery
    journal = Journal(state.version + 1, before.units + 1, before.size + e.size)
    if recovery.consecutive_crashes or recovery.interruptions or recovery.deaths:
        recovery = replace(
            recovery,
            consecutive_crashes=0,
            interruptions=_without(recovery.interruptions, slot),
            deaths=_without(recovery.deaths, slot),
        )
    return replace(state, journals={**state.journals, slot: journal}, recovery=recovery)


def gave_up(state: State, e: ev.GaveUp) -> State:
    """Return the state unchanged: interrupted steps were recorded before, as if the lease had been
    released.
    """
    return state


_NO_JOURNAL = Journal()

MOST, WINDOW_MS = 3, 60_000
"""More than `MOST` corrections within `WINDOW_MS` milliseconds open the breaker."""


def with_correction(state: State, slot: str, at: int) -> State:
    """Return the state with one more correction at `slot`; `at`: the end of its answer, or of the last of its
    calls.
    """
    place = _place_of(slot)
    times = (*state.corrections.get(place, ()), at)[-MOST - 1 :]
    return replace(state, corrections={**state.corrections, place: times})


def useful(state: State, slot: str) -> State:
    """Return the state without corrections at `slot`, after a success or a person's decision."""
    if not state.corrections:
        return state
    return replace(state, corrections=without(state.corrections, (_place_of(slot),)))


def breaker_of(state: State, slot: str) -> str:
    """Return the reason why no model is asked at `slot`; empty if models are asked."""
    times = state.corrections.get(_place_of(slot), ()) if state.corrections else ()
    if len(times) <= MOST or times[-1] - times[0] >= WINDOW_MS:
        return ""
    return f"{len(times)} answers within {WINDOW_MS // 1_000} seconds were of no use"


def _place_of(slot: str) -> str:
    """Return the slot at which corrections are counted: an item of a map has its own, a turn or a call shares
    its agent's.
    """
    return slot if is_index(Slot.parse(slot).item) else owner_of(slot)


USER = "user:"


class PendingNotices(Struct, frozen=True):
    """Rows and notices of a saga that people have not received yet.

    `asks`: the questions, by id, whose rows must be put or whose audience must be told. `stale`: the ids of
    closed questions whose rows may still exist. `notices`: those to send; the notice of a question only while
    the question is open.
    """

    asks: dict[str, Ask] = {}
    stale: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.notices or self.asks or self.stale)


NOTHING_OWED, _NOT_SHOWN = PendingNotices(), Shown()


def audience_of(state: State, ask: Ask) -> str:
    """Return the audience of a question in one word: `on_call`, `user:NAME`, `group:NAME` or `role:NAME`."""
    return ask.to or f"{USER}{state.origin.user}"


def person_of(audience: str) -> str:
    """Return the user of an audience; empty for a group, a role and on-call."""
    return audience[len(USER) :] if audience.startswith(USER) else ""


def pending_notices(state: State) -> PendingNotices:
    """Return the rows and notices due now. A saga without questions has no rows, and pays for none."""
    outbox = state.outbox
    if not outbox.rows:
        return PendingNotices(notices=outbox.due) if outbox.due else NOTHING_OWED
    still = {ask.id: ask for _, ask in open_questions(state)}
    stale = tuple(question for question in outbox.rows if question not in still)
    notices = _without_question(
        outbox.due, [question for question in stale if not outbox.rows[question].told]
    )
    due = {one.ask for one in notices}
    wanted = {ask.id: ask for ask in still.values() if ask.id in due or not _is_shown(state, ask)}
    return PendingNotices(wanted, stale, notices)


def before_the_end(state: State) -> tuple[Notice, ...]:
    """Return the notices that a saga tries to send before it ends.

    Notices of questions end with their questions.
    """
    return tuple(one for one in state.outbox.due if one.incident or not one.ask)


def first_spare(notices: tuple[Notice, ...], rows: Collection[str]) -> Notice | None:
    """Return the oldest notice that may be dropped, or None.

    Incidents are kept, and so is the newest notice of each question in `rows`: without it no person would
    hear of the question.
    """
    newest = {one.ask: one for one in notices if one.ask in rows}
    spare = (one for one in notices if not one.incident and newest.get(one.ask) is not one)
    return next(spare, None)


def _without_question(notices: tuple[Notice, ...], ids: Collection[str]) -> tuple[Notice, ...]:
    """Return the notices that are not about these questions.

    A notice that opens an incident is always kept.
    """
    if not ids:
        return notices
    return tuple(one for one in notices if one.incident or one.ask not in ids)


def _is_shown(state: State, ask: Ask) -> bool:
    shown = state.outbox.rows.get(ask.id, _NOT_SHOWN)
    return shown == Shown(to=audience_of(state, ask), until=ask.ends_at, told=shown.told)


def with_question_row(state: State, ask: Ask) -> State:
    """Return the state with a row for a question that may be shown from now on."""
    return _with_rows(state, {ask.id: Shown(to=audience_of(state, ask))})


def with_moved_question(state: State, ask: Ask) -> State:
    """Return the state after a question moved to another audience.

    The row remembers the new person, because a worker may put that person's row and die before the log
    records it.
    """
    audience, row = audience_of(state, ask), state.outbox.rows.get(ask.id)
    if row is None or not person_of(audience) or audience in {row.to, *row.left}:
        return state
    return _with_rows(state, {ask.id: replace(row, left=(*row.left, audience))})


def opened_anew(state: State) -> State:
    """Return the state after a fork: the rows of open questions are unknown, because some were withdrawn
    before.
    """
    before = state.outbox.rows
    rows = {
        ask.id: Shown(to=before[ask.id].to, left=before[ask.id].left)
        if ask.id in before
        else Shown(to=audience_of(state, ask))
        for _, ask in unclosed_questions(state)
    }
    return _with_rows(state, rows) if rows else state


def with_rows_noted(state: State, shown: dict[str, Shown], withdrawn: tuple[str, ...]) -> State:
    """Return the state after rows were written and withdrawn.

    The notice of a question that closed before its audience was told is dropped.
    """
    outbox, still = state.outbox, {ask.id: ask for _, ask in open_questions(state)}
    # A fork can have opened again what was withdrawn before it, and noted only now.
    withdrawn = tuple(question for question in withdrawn if question not in still)
    rows = without({**outbox.rows, **shown}, withdrawn)
    unheard = [
        question for question in withdrawn if question in outbox.rows and not outbox.rows[question].told
    ]
    state = replace(state, outbox=replace(outbox, rows=rows, due=_without_question(outbox.due, unheard)))
    for question in shown.keys() & still.keys():
        state = with_moved_question(
            state, still[question]
        )  # which may have come between the writing and the note
    return state


def _with_rows(state: State, rows: dict[str, Shown]) -> State:
    return replace(state, outbox=replace(state.outbox, rows={**state.outbox.rows, **rows}))
