"""What people do with an open question besides answering it: claim it, give it back, and have its audience told again.

Rules from a state to the events of an entry. Who may answer, and what an answer is, is in answers.py; the escalation that
needs no person is in core/nodes/human.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.answers import WHOLE, audience, notice_again, refusal
from baton.core.log.state import State, item_of, node_of
from baton.core.times import iso
from baton.errors import Forbidden, NotAllowedNow

BETWEEN_REMINDERS_MS = 300_000
"""People are told again at a caller's request no sooner than so long after they were told last."""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A caller. `by` is the name for the log."""

    user: str
    by: str
    roles: Collection[str] = ()
    groups: Collection[str] = ()

    def refusal(self, state: State, ask: ev.Ask) -> str:
        return refusal(state, ask, self.user, self.roles, self.groups)


def claim(state: State, slot: str, ask: ev.Ask, person: Person, now: int) -> Sequence[ev.Event]:
    """The question becomes the caller's own; nothing where it is so already.

    Raises `Forbidden` for a caller whom the question is not for, `NotAllowedNow` where another user has it.
    """
    _check_part(slot, ask)
    if why := person.refusal(state, replace(ask, to=ask.candidates or ask.to, candidates="")):
        raise Forbidden(why)
    kind, name = audience(state, ask.to)
    if (kind, name) == ("user", person.user):
        return ()
    if ask.candidates:
        since = iso(ask.moved_at)
        raise NotAllowedNow(
            f"`{name}` has claimed question `{ask.id}` at {since}; `{name}` or an operator can release it"
        )
    if kind == "user":
        raise NotAllowedNow(f"question `{ask.id}` is for the user `{name}` alone: there is nothing to claim")
    return (_claimed(slot, ask, person, now, to=f"user:{person.user}"),)


def release(state: State, slot: str, ask: ev.Ask, person: Person, now: int) -> Sequence[ev.Event]:
    """The question is for all of its audience again; nothing where no caller has claimed it.

    Raises `Forbidden` for a caller who neither has it nor is an operator.
    """
    if why := person.refusal(state, ask):
        raise Forbidden(why)
    return (_claimed(slot, ask, person, now, to=""),) if ask.candidates else ()


def remind(state: State, slot: str, ask: ev.Ask, person: Person, now: int) -> Sequence[ev.Event]:
    """Those whom the question is for are told again.

    Raises `Forbidden` for a caller who may not answer it and has not started the saga, `NotAllowedNow` where they were told
    a moment ago.
    """
    _check_part(slot, ask)
    why = person.refusal(state, ask)
    if why and person.user != state.origin.user:
        raise Forbidden(why)
    last = max(ask.asked_at, ask.told_at)
    if now < (again := last + BETWEEN_REMINDERS_MS):
        raise NotAllowedNow(
            f"people were told of question `{ask.id}` at {iso(last)}; they can be told again at {iso(again)}"
        )
    node, iteration = node_of(slot)
    told = ev.QuestionEscalated(
        node=node, iteration=iteration, item=item_of(slot), ask=ask.id, at=now, by=person.by
    )
    return told, ev.NoticeDue(notice=notice_again(state, slot, ask, now, key=f"r{now}", why="Reminder"))


def _check_part(slot: str, ask: ev.Ask) -> None:
    """A question about a saga as a whole is no part of its state, which could hold a claim or the time of a reminder."""
    if slot == WHOLE:
        raise NotAllowedNow(f"question `{ask.id}` is about a parked saga: an operator answers it")


def _claimed(slot: str, ask: ev.Ask, person: Person, now: int, to: str) -> ev.QuestionClaimed:
    node, iteration = node_of(slot)
    return ev.QuestionClaimed(
        node=node, iteration=iteration, item=item_of(slot), ask=ask.id, at=now, by=person.by, to=to
    )
