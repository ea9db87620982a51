"""What the inbox of questions is to show of a saga, and what it shows as far as the log knows.

Functions of the state: whatever opens, moves, answers or drops a question, its row follows. Writing rows is the runtime's.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from baton.core.log.answers import asked, open_questions
from baton.core.log.events import Ask, Notice
from baton.core.log.records import Shown
from baton.core.log.state import State, without

USER = "user:"


class Owed(Struct, frozen=True):
    """What people are still to see and hear of a saga.

    `asks`: the questions, by id, whose rows are to be put or whose audience is to be told. `stale`: the ids of those that
    are not open any more, whose rows may still be there. `notices`: those to send; of a question, while it is open.
    """

    asks: dict[str, Ask] = {}
    stale: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.notices or self.asks or self.stale)


NOTHING_OWED, _NOT_SHOWN = Owed(), Shown()


def audience_of(state: State, ask: Ask) -> str:
    """Whom a question is for, in one word: `on_call`, `user:NAME`, `group:NAME` or `role:NAME`."""
    return ask.to or f"{USER}{state.origin.user}"


def person_of(audience: str) -> str:
    """The user that an audience is; empty for a group, a role and on-call."""
    return audience[len(USER) :] if audience.startswith(USER) else ""


def owed(state: State) -> Owed:
    """What is to be shown, withdrawn and told now. A saga that asks nothing has no rows, and pays for none."""
    outbox = state.outbox
    if not outbox.rows:
        return Owed(notices=outbox.due) if outbox.due else NOTHING_OWED
    still = {ask.id: ask for _, ask in open_questions(state)}
    stale = tuple(question for question in outbox.rows if question not in still)
    notices = _without(outbox.due, [question for question in stale if not outbox.rows[question].told])
    due = {one.ask for one in notices}
    wanted = {ask.id: ask for ask in still.values() if ask.id in due or not _is_shown(state, ask)}
    return Owed(wanted, stale, notices)


def before_the_end(state: State) -> tuple[Notice, ...]:
    """The notices that a saga sends before it ends, if they can be sent. Those of questions go with their questions."""
    return tuple(one for one in state.outbox.due if one.incident or not one.ask)


def first_spare(notices: tuple[Notice, ...], rows: Collection[str]) -> Notice | None:
    """The oldest notice that is no incident and not the newest about a question in `rows`: without that one no person would hear of it."""
    newest = {one.ask: one for one in notices if one.ask in rows}
    spare = (one for one in notices if not one.incident and newest.get(one.ask) is not one)
    return next(spare, None)


def _without(notices: tuple[Notice, ...], ids: Collection[str]) -> tuple[Notice, ...]:
    """The notices that are not about these questions. One that opens an incident is told whatever became of its question."""
    if not ids:
        return notices
    return tuple(one for one in notices if one.incident or one.ask not in ids)


def _is_shown(state: State, ask: Ask) -> bool:
    shown = state.outbox.rows.get(ask.id, _NOT_SHOWN)
    return shown == Shown(to=audience_of(state, ask), until=ask.ends_at, told=shown.told)


def opened(state: State, ask: Ask) -> State:
    """The state with a row for a question that may be shown from now on."""
    return _with_rows(state, {ask.id: Shown(to=audience_of(state, ask))})


def moved(state: State, ask: Ask) -> State:
    """The state when a question is for others: a worker may take a place for the person it is for now, and die before it is noted."""
    audience, row = audience_of(state, ask), state.outbox.rows.get(ask.id)
    if row is None or not person_of(audience) or audience in {row.to, *row.left}:
        return state
    return _with_rows(state, {ask.id: replace(row, left=(*row.left, audience))})


def opened_anew(state: State) -> State:
    """After a fork: what is shown of the questions that are open now is not known, because some were withdrawn before."""
    before = state.outbox.rows
    rows = {
        ask.id: Shown(to=before[ask.id].to, left=before[ask.id].left)
        if ask.id in before
        else Shown(to=audience_of(state, ask))
        for _, ask in asked(state)
    }
    return _with_rows(state, rows) if rows else state


def noted(state: State, shown: dict[str, Shown], withdrawn: tuple[str, ...]) -> State:
    """After rows were written and withdrawn. What no person was told of while it was open is not to be sent any more."""
    outbox, still = state.outbox, {ask.id: ask for _, ask in open_questions(state)}
    # A fork can have opened again what was withdrawn before it, and noted only now.
    withdrawn = tuple(question for question in withdrawn if question not in still)
    rows = without({**outbox.rows, **shown}, withdrawn)
    unheard = [
        question for question in withdrawn if question in outbox.rows and not outbox.rows[question].told
    ]
    state = replace(state, outbox=replace(outbox, rows=rows, due=_without(outbox.due, unheard)))
    for question in shown.keys() & still.keys():
        state = moved(state, still[question])  # which may have come between the writing and the note
    return state


def _with_rows(state: State, rows: dict[str, Shown]) -> State:
    return replace(state, outbox=replace(state.outbox, rows={**state.outbox.rows, **rows}))
