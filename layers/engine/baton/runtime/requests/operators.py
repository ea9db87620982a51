"""Circuit breakers and dead letters, as operators read and change them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from baton.core.decide.spending import day_of, day_text
from baton.core.expressions import iso
from baton.core.failures.breakers import OPEN, forced_open, name_problem, reset
from baton.core.failures.breakers import Breaker as BreakerRecord
from baton.core.letters import (
    DISCARDED,
    LETTER_STATUSES,
    MESSAGE,
    PENDING,
    REDRIVEN,
    REDRIVES,
    SOURCES,
    Letter,
    discard_letter,
    redriven,
)
from baton.core.log.state import LISTS
from baton.core.money import UserRule, blocked_rule, limited_rule, unblocked_rule
from baton.core.outside import is_user
from baton.core.read.answers import Count, Cursor, Time, Version, View
from baton.core.read.costs import User, UserPage, user_view
from baton.errors import NotAllowedNow, NotFound, StoreUnavailable, Unreadable, UserError
from baton.ports import WORK, Account, Listed, Wake
from baton.ports.operators import Breakers, letter_ref
from baton.runtime.engine.request import SAGA_ID, Request, foreign_cursor, read_cursor, write_cursor
from baton.runtime.requests.costs import GROUPS, rows_of_day

_Word = Annotated[str, Meta(extra_json_schema={"enum": ["closed", "open", "half_open"]})]


class BreakerFailure(View):
    """Failures of a target that one worker reported together."""

    code: str
    count: Version
    calls: Annotated[Version, "Number of calls, including the failed ones."]
    at: Time


class BreakerTransition(View):
    """A change of a circuit breaker's state, and its cause."""

    to: _Word
    at: Time
    why: str
    by: Annotated[str, "Operator or worker who caused the change."]


class Breaker(View):
    """The circuit breaker of a target."""

    name: str
    state: _Word
    since: Annotated[Time | None, "Time when the breaker entered this state. Null if it never opened."]
    next_probe_at: Annotated[
        Time | None,
        "For an open breaker: time when it lets a probe through. Null if only an operator can close it.",
    ]
    opened: Annotated[Count, "Number of times the breaker has opened since it was last closed."]
    probes: Annotated[Count, "Number of probes in progress."]
    failures: Annotated[list[BreakerFailure], "Most recent failures, newest first."]
    transitions: Annotated[list[BreakerTransition], "Most recent transitions, newest first."]


class BreakerPage(View):
    """A page of circuit breakers with recorded state, ordered by name."""

    breakers: list[Breaker]
    next: Cursor


class BreakerService:
    """The breakers of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._call, self._clock = request.parts.call, request.engine.clock
        self._tenant, self._by = request.caller.tenant, request.caller.by
        self._breakers: Breakers = request.engine.store.breakers

    async def page(self, limit: int, cursor: str) -> BreakerPage:
        """Return the next breakers, by their names."""
        try:
            after = read_cursor(cursor).decode() if cursor else ""
        except UnicodeDecodeError as error:
            raise foreign_cursor() from error
        if after and name_problem(after):
            raise foreign_cursor()
        found = await self._call(self._breakers.all, self._tenant, after, limit)
        last = found[-1][0] if len(found) == limit else ""
        return BreakerPage(
            breakers=[breaker_view(name, there) for name, there in found],
            next=write_cursor(last.encode()) if last else None,
        )

    async def show(self, name: str) -> Breaker:
        """Return a breaker. Raises `NotFound`."""
        there = await self._call(self._breakers.read_breaker, self._tenant, name)
        if there is None:
            raise NotFound(f"nothing is known of a breaker `{name}`: no call with it has failed for 30 days")
        return breaker_view(name, there)

    async def open(self, name: str, for_ms: int) -> Breaker:
        """Open a breaker for so many ms, or (0) until it is reset; also one without a record."""
        now = self._clock.now()
        return await self._change(
            name,
            BreakerRecord(),
            lambda there: forced_open(there, self._by, now + for_ms if for_ms else 0, now),
        )

    async def reset(self, name: str) -> Breaker:
        """Let calls through. Raises `NotFound`."""
        await self.show(name)
        return await self._change(name, None, lambda there: reset(there, self._by, self._clock.now()))

    async def _change(
        self, name: str, seen: BreakerRecord | None, change: Callable[[BreakerRecord], BreakerRecord]
    ) -> Breaker:
        """Write a change of a breaker, again until no other writer comes between."""
        there = seen or BreakerRecord()
        while True:
            after = change(there)
            refused = await self._call(
                self._breakers.write_breaker, self._tenant, name, after, self._clock.now()
            )
            if refused is None or refused == after:  # the second where its own write had no answer
                return breaker_view(name, after)
            there = refused


def breaker_view(name: str, there: BreakerRecord) -> Breaker:
    """Return a breaker with its last failures and transitions."""
    probe = there.until if there.state == OPEN else 0
    return Breaker(
        name=name,
        state=there.state,
        since=iso(there.since) if there.since else None,
        next_probe_at=iso(probe) if probe else None,
        opened=there.rounds,
        probes=len(there.probes),
        failures=[
            BreakerFailure(code=one.code, count=one.count, calls=one.calls, at=iso(one.at))
            for one in reversed(there.failed)
        ],
        transitions=[
            BreakerTransition(to=move.to, at=iso(move.at), why=move.why, by=move.by)
            for move in reversed(there.moves)
        ],
    )


LETTER_ID = rf"({SAGA_ID}|{MESSAGE}[A-Za-z0-9-]{{1,100}})"
MOST_REDRIVEN = 1_000  # of one request
_TRIES = 8  # at a letter or a head that others change at the same time
_SIDE_BY_SIDE = 8
_PAGE = 100
_PAGES = 10  # that a list looks at for letters that match
_OF, _SHARE = 3, 2  # redrives begin in two thirds of a request's time

_Moment = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
_Id = Annotated[str, msgspec.Meta(pattern=rf"^{LETTER_ID}\Z")]
_read_place = msgspec.json.Decoder(tuple[_Moment, _Id]).decode


class LetterFilter(Struct, frozen=True):
    """Filter of letters: by saga, node, code, or words in their reason. Empty: any."""

    saga: str = ""
    node: str = ""
    reason: str = ""

    def has(self, letter: Letter) -> bool:
        is_said = self.reason in ("", letter.code) or self.reason.casefold() in letter.reason.casefold()
        return is_said and self.saga in ("", letter.saga) and self.node in ("", letter.node)


class DeadLetter(View):
    """A message that could not be delivered or a log entry that could not be read. It belongs to a saga, or
    to no saga if the message names none.
    """

    id: Annotated[str, "Identifier of the saga. `message~…` if the message names no saga."]
    status: Annotated[str, Meta(extra_json_schema={"enum": list(LETTER_STATUSES)})]
    saga: str | None
    node: Annotated[str | None, "Node that the unreadable log entry refers to."]
    version: Annotated[Version | None, "Version of the unreadable log entry, if an entry is the cause."]
    code: Annotated[
        str, Meta(examples=["unreadable_log", "missing_graph", "unknown_entry", "received_too_often"])
    ]
    reason: str
    source: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": list(SOURCES)})],
        "Origin of the messages: wake-up messages, or messages that the relay could not forward.",
    ]
    messages: Annotated[Version, "Number of dead messages."]
    attempts: Annotated[Version, "Number of failed deliveries of these messages."]
    first_at: Annotated[Time, "Time when the first of the messages was sent."]
    last_at: Time
    pending_since: Time | None
    age_ms: Annotated[Count, "Milliseconds since the first of the messages was sent."]
    redrives: Count
    redrives_left: Annotated[Count, "Number of further redrives that do not require `force`."]
    decided_at: Annotated[Time | None, "Time of the last redrive or discard."]
    decided_by: str | None
    why: Annotated[str | None, "Reason of the discard."]
    expires_at: Time
    message: Annotated[str, "Newest message. A long message is truncated."]


class DeadLetterPage(View):
    """A page of dead letters, oldest first."""

    dead_letters: list[DeadLetter]
    next: Cursor


class LeftLetter(View):
    """A dead letter that the request did not change."""

    id: str
    why: str


class RedrivenPage(View):
    """Result of a redrive of several dead letters. `next` is the cursor of the next part."""

    matched: Count
    redriven: Count
    refused: list[LeftLetter]
    next: Cursor


class DiscardedPage(View):
    """Result of a discard of several dead letters. `next` is the cursor of the next part."""

    matched: Count
    discarded: Count
    refused: list[LeftLetter]
    next: Cursor


class LetterService:
    """The dead letters of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        engine, deadline = request.engine, request.parts.invocation.deadline
        self._letters, self._log, self._clock = engine.store.letters, engine.log, engine.clock
        self._call = request.parts.call
        self._tenant, self._by = request.caller.tenant, request.caller.by
        now = engine.clock.now()
        self._until = now + (deadline - now) * _SHARE // _OF

    # -- looking

    async def page(self, wanted: LetterFilter, status: str, limit: int, cursor: str) -> DeadLetterPage:
        """Return the next letters of a status, the oldest first.
        A page may be short and yet not be the last.
        """
        found, after = list[Letter](), _place(cursor)
        for _ in range(_PAGES):
            letters, after = await self._next(wanted, status or PENDING, limit - len(found), after)
            found += [letter for letter in letters if wanted.has(letter)]
            if after is None or len(found) == limit:
                break
        now = self._clock.now()
        return DeadLetterPage(
            dead_letters=[letter_view(letter, now) for letter in found], next=_cursor(after)
        )

    async def show(self, id: str) -> DeadLetter:
        """Return a letter. Raises `NotFound`."""
        return letter_view(await self._read(id), self._clock.now())

    async def _next(
        self, wanted: LetterFilter, status: str, limit: int, after: Letter | None
    ) -> tuple[Sequence[Letter], Letter | None]:
        """Return the next letters, and the letter behind which they go on, if they do.
        A saga has one letter.
        """
        if wanted.saga:
            letter = await self._call(self._letters.read, self._tenant, wanted.saga)
            return ([letter] if letter is not None and letter.status == status else []), None
        letters, is_more = await self._call(self._letters.listed, self._tenant, status, limit, after)
        return letters, letters[-1] if is_more else None

    # -- deciding

    async def redrive(self, id: str, *, force: bool = False) -> DeadLetter:
        """Have a worker look at the letter's saga again.
        Repeated, it changes nothing until the letter dies again.

        Raises `NotFound`, and `NotAllowedNow` for what no redrive can bring on,
        or what has been redriven as often as it may.
        """
        mine: Letter | None = None
        for _ in range(_TRIES):
            letter = await self._read(id)
            if letter == mine or (letter.status == REDRIVEN and not force):
                break
            _check(letter, force)
            wake = Wake(v=await self._make_due(letter))
            mine = redriven(letter, self._by, self._clock.now())
            if await self._call(self._letters.write, mine, letter.number, wake):
                letter = mine
                break
        else:
            raise _busy(id)
        return letter_view(letter, self._clock.now())

    async def redrive_all(
        self, wanted: LetterFilter, *, force: bool, dry_run: bool, limit: int, cursor: str
    ) -> RedrivenPage:
        """Redrive pending letters, at most `limit`, as far as time allows; `next` continues it.
        `dry_run`: only count them.
        """
        do = None if dry_run else partial(self.redrive, force=force)
        matched, done, refused, after = await self._all(wanted, do, limit, cursor)
        return RedrivenPage(matched=matched, redriven=done, refused=refused, next=after)

    async def discard_all(
        self, wanted: LetterFilter, why: str, *, dry_run: bool, limit: int, cursor: str
    ) -> DiscardedPage:
        """Discard the letters that match, except for those decided on meanwhile."""
        do = None if dry_run else partial(self.discard, why=why, wanted=wanted)
        matched, done, refused, after = await self._all(wanted, do, limit, cursor)
        return DiscardedPage(matched=matched, discarded=done, refused=refused, next=after)

    async def _all(
        self, wanted: LetterFilter, do: Callable[[str], Awaitable[Any]] | None, limit: int, cursor: str
    ) -> tuple[int, int, list[LeftLetter], str | None]:
        """Apply `do` to the pending letters that match, side by side; None: count them.

        Returns how many match, how many are done, those that are not, and the next cursor.
        """
        matched, refused = 0, list[LeftLetter]()
        after, slots = _place(cursor), asyncio.Semaphore(_SIDE_BY_SIDE)
        async with aclosing(self._pending(wanted, limit, after)) as pages:
            async for letters, behind in pages:
                matched, after = matched + len(letters), behind
                if do is not None:
                    told = await asyncio.gather(*(_one(do, letter, slots) for letter in letters))
                    refused += [
                        LeftLetter(id=letter.id, why=why)
                        for letter, why in zip(letters, told, strict=True)
                        if why
                    ]
        return matched, matched - len(refused) if do is not None else 0, refused, _cursor(after)

    async def _pending(
        self, wanted: LetterFilter, limit: int, after: Letter | None
    ) -> AsyncGenerator[tuple[Sequence[Letter], Letter | None], None]:
        """Yield pages of pending letters that match, each with the letter behind which they go on:
        until `limit` match or the time is over.
        """
        left = limit
        while True:
            letters, after = await self._next(wanted, PENDING, min(left, _PAGE), after)
            found = [letter for letter in letters if wanted.has(letter)]
            left -= len(found)
            yield found, after
            if after is None or left <= 0 or self._clock.now() >= self._until:
                return

    async def discard(self, id: str, why: str, wanted: LetterFilter | None = None) -> DeadLetter:
        """Remove a letter from the pending ones; its record stays until it expires.

        Raises `NotFound`, and `NotAllowedNow` for one that is not pending any more, or does not match
        `wanted`.
        """
        for _ in range(_TRIES):
            letter = await self._read(id)
            if (letter.status, letter.why) == (DISCARDED, why):
                return letter_view(letter, self._clock.now())
            if wanted is not None and not (letter.status == PENDING and wanted.has(letter)):
                raise NotAllowedNow(
                    f"dead letter `{id}` has changed since it was listed: it is {letter.status}"
                )
            after = discard_letter(letter, self._by, why, self._clock.now())
            if await self._call(self._letters.write, after, letter.number):
                return letter_view(after, self._clock.now())
        raise _busy(id)

    async def _read(self, id: str) -> Letter:
        letter = await self._call(self._letters.read, self._tenant, id)
        if letter is None:
            raise NotFound(f"there is no dead letter `{id}`")
        return letter

    async def _make_due(self, letter: Letter) -> int:
        """Make the saga due, and return the version that the wake has to name.
        A worker looks at a saga that is due, whatever the wake knows.

        Before the letter is written: a caller that dies in between leaves a saga that is woken once more,
        and a letter that can be redriven. Raises `NotAllowedNow` for a saga that no worker looks at.
        """
        ref = letter_ref(letter)
        for _ in range(_TRIES):
            try:
                head = await self._call(self._log.read_head, ref)
            except Unreadable:
                return max(
                    letter.v, 1
                )  # of a wake that knows no version, a worker that cannot read the head says nothing
            if head is None:
                raise NotAllowedNow(f"saga `{ref.id}` is not there any more; discard its dead letter")
            if head.due_at is None and not head.owner:
                raise NotAllowedNow(
                    f"saga `{ref.id}` is at its end (`{head.status}`); discard its dead letter"
                )
            now = self._clock.now()
            if head.owner or head.due_at is None or head.due_at <= now:
                break
            if await self._call(self._log.defer, head, now, WORK):
                break
        return letter.v


async def _one(do: Callable[[str], Awaitable[Any]], letter: Letter, slots: asyncio.Semaphore) -> str:
    """Perform the action on one letter. Return the reason why it was not done; empty if it was."""
    async with slots:
        try:
            await do(letter.id)
        except UserError as error:
            return error.detail
    return ""


def _check(letter: Letter, force: bool) -> None:
    if not letter.saga:
        raise NotAllowedNow(
            f"dead letter `{letter.id}` names no saga that could be woken ({letter.code}): see to what sent it, and discard it"
        )
    if letter.redrives >= REDRIVES and not force:
        raise NotAllowedNow(
            f"dead letter `{letter.id}` was redriven {letter.redrives} times and died again each time: mend the cause "
            f"({letter.code}), then redrive it with `force`"
        )


def _busy(id: str) -> StoreUnavailable:
    return StoreUnavailable(f"the dead letter {id} was changed {_TRIES} times meanwhile")


def _place(cursor: str) -> Letter | None:
    if not cursor:
        return None
    try:
        since, name = _read_place(read_cursor(cursor))
    except msgspec.MsgspecError as error:
        raise foreign_cursor() from error
    return Letter(id=name, tenant="", code="", reason="", since=since)


def _cursor(after: Letter | None) -> str | None:
    return None if after is None else write_cursor(msgspec.json.encode((after.since, after.id)))


def letter_view(letter: Letter, now: int) -> DeadLetter:
    """Return a dead letter."""
    return DeadLetter(
        id=letter.id,
        status=letter.status,
        saga=letter.saga or None,
        node=letter.node or None,
        version=letter.version or None,
        code=letter.code,
        reason=letter.reason,
        source=letter.source,
        messages=letter.messages,
        attempts=letter.attempts,
        first_at=iso(letter.first),
        last_at=iso(letter.last),
        pending_since=iso(letter.since) if letter.status == PENDING else None,
        age_ms=max(now - letter.first, 0),
        redrives=letter.redrives,
        redrives_left=max(REDRIVES - letter.redrives, 0),
        decided_at=iso(letter.at) if letter.at else None,
        decided_by=letter.by or None,
        why=letter.why or None,
        expires_at=iso(letter.expires),
        message=letter.body,
    )


_AT_ONCE: Final = 10
LOOKED_AT: Final = 500
"""Sagas that one page looks at."""
_RULED = 100  # users of one page of those with a rule
_NAMED, _SAGAS = "u", "s"  # a cursor begins with the list that it continues


class UserService:
    """The users of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._call, self._clock, self._log = request.parts.call, request.engine.clock, request.engine.log
        self._tenant, self._by = request.caller.tenant, request.caller.by
        self._budgets, self._terms = request.engine.store.budgets, request.engine.ledger_cache.terms

    async def page(self, user: str, cursor: str) -> UserPage:
        """Return the next users: those with a rule, then those whose sagas have not ended or ended today.

        user: return this user alone. A user with a rule and sagas, or with many sagas, is on several pages.
        """
        day = day_of(self._clock.now())
        try:
            place = read_cursor(cursor).decode() if cursor else _NAMED
        except UnicodeDecodeError as error:
            raise foreign_cursor() from error
        kind, place = place[:1], place[1:]
        if user:
            names, after = [user], ""
        elif kind == _NAMED and (not place or is_user(place)):
            names = list(await self._call(self._budgets.ruled, self._tenant, place, _RULED))
            after = _NAMED + names[-1] if len(names) == _RULED else _SAGAS
            if not names:
                names, after = await self._at_work(day, "")
        elif kind == _SAGAS:
            names, after = await self._at_work(day, place)
        else:
            raise foreign_cursor()
        return UserPage(
            day=day_text(day),
            users=await self._views(names, day),
            next=write_cursor(after.encode()) if after else None,
        )

    async def _at_work(self, day: int, cursor: str) -> tuple[list[str], str]:
        """Return users of the next sagas that can have spent today: of all that have not ended,
        and those that ended today.
        """
        found = set[str]()

        def take(row: Listed) -> None:
            found.add(row.user)

        _, after = await rows_of_day(
            self._log,
            self._call,
            self._tenant,
            day,
            cursor,
            take,
            GROUPS,
            LOOKED_AT,
            of_any_day=LISTS["open"][0],
        )
        return sorted(found - {""}), _SAGAS + after if after else ""

    async def block(self, user: str, note: str) -> User:
        """Block a user: no saga of the user starts, and none goes on to spend.
        Raises `NotAllowedNow` where no day is counted.
        """
        return await self._change(user, partial(blocked_rule, by=self._by, note=note, now=self._clock.now()))

    async def unblock(self, user: str, note: str) -> User:
        """Unblock a user. Raises `NotAllowedNow`."""
        return await self._change(
            user, partial(unblocked_rule, by=self._by, note=note, now=self._clock.now())
        )

    async def limit(self, user: str, limit: int | None, note: str) -> User:
        """Let the user spend so much a day (micro-dollars), or (None) as much as all users.
        Raises `NotAllowedNow`.
        """
        now = self._clock.now()
        return await self._change(user, lambda there: limited_rule(there, limit, self._by, note, now))

    async def _change(self, user: str, change: Callable[[UserRule], UserRule]) -> User:
        """Write a change of a user's rule, again until no other operator comes between;
        then tell it to workers by the accounts of today and tomorrow.

        A change that changes nothing is told all the same: the caller before may not have come so far.
        """
        if not self._terms.user_day:
            raise NotAllowedNow(
                "nothing is counted by user here: set `UserDayBudgetUsd` to an amount, however large, before a user is blocked or limited"
            )
        there = await self._call(self._budgets.read_rule, self._tenant, user)
        while (after := change(there)) != there:
            refused = await self._call(self._budgets.write_rule, self._tenant, user, after)
            if refused is None or refused == after:  # the second where its own write had no answer
                break
            there = refused
        day = day_of(self._clock.now())
        for one in (day, day + 1):  # an invocation that passes midnight hears of it there
            await self._call(self._budgets.tell_rule, Account(self._tenant, user, one), after)
        (view,) = await self._views([user], day, after)
        return view

    async def _views(self, users: Iterable[str], day: int, rule: UserRule | None = None) -> list[User]:
        waiting, found = list(users), list[User]()
        for first in range(0, len(waiting), _AT_ONCE):
            found += await asyncio.gather(
                *(self._view(user, day, rule) for user in waiting[first : first + _AT_ONCE])
            )
        return found

    async def _view(self, user: str, day: int, rule: UserRule | None) -> User:
        sums = await self._call(self._budgets.read, Account(self._tenant, user, day))
        return user_view(user, sums.spent, sums.reserved, rule or sums.rule, self._terms.user_day, day)
