"""Operators steer sagas: pause and wake of one, and pause, resume, retry and cancel of many, page by page.

An action on many reads each saga and writes to its log; where it stops, its cursor continues it. The actions
are idempotent by the saga's log, so a repeated page changes nothing twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from baton.core.graph.graph import starter_of
from baton.core.log.events import (
    TENANT_PAUSED,
    WORKFLOW_PAUSED,
    CancelRequested,
    Parked,
    Resumed,
)
from baton.core.log.state import FORK_KEY, State, status_of
from baton.core.on_demand import OnDemand
from baton.core.read.answers import Count, Cursor, View
from baton.errors import NotAllowedNow, NotFound, Unreadable, UserError
from baton.ports import WORK, Listed, SagaRef, Wake
from baton.runtime.engine.request import (
    Opened,
    Request,
    accepted_answer,
    foreign_cursor,
    read_cursor,
    write_cursor,
)
from baton.runtime.log.lease import is_over
from baton.runtime.requests.costs import rows_between
from baton.runtime.requests.fork_changes import ForkRequest, cut_before_failure
from baton.runtime.requests.forking import fork_plan, fork_saga
from baton.runtime.starting.catalog import ALL_WORKFLOWS

if TYPE_CHECKING:
    from baton.runtime.requests import migrating
else:
    migrating = OnDemand("baton.runtime.requests.migrating")


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause that a person asks for. `code`: one of `PAUSES`."""

    code: str
    by: str
    reason: str

    def event(self, now: int) -> Parked:
        """Return the event that begins it."""
        return Parked(code=self.code, message=self.reason, at=now, by=self.by)

    def begin(self, state: State, now: int) -> Parked | None:
        """Return the event; None if this pause holds the saga already."""
        return None if is_held(state, self.code) else self.event(now)


def is_held(state: State, code: str) -> bool:
    """Return true if the saga is parked or paused with this code."""
    return state.parked is not None and any(one.code == code for one in state.parked.all)


async def wake_saga(request: Request, opened: Opened) -> dict[str, Any]:
    """Make a saga due now, with a wake. A saga that a worker holds is left to that worker.

    Raises `NotAllowedNow` for a saga that has ended.
    """
    call, engine, seen = request.parts.call, request.engine, opened.head
    if opened.history.state.ended is not None:
        raise NotAllowedNow(f"the saga has ended: {status_of(opened.history.state)}")
    while True:
        now = engine.clock.now()
        if seen.owner and not is_over(seen, now, engine.limits):
            return accepted_answer(opened, changed=False)
        if await call(engine.log.defer, seen, now, WORK, Wake(v=opened.history.state.version)):
            return accepted_answer(opened, changed=True)
        head = await call(engine.log.read_head, seen.ref)
        if head is None:
            raise NotFound(f"there is no saga `{seen.ref.id}`")
        seen = head


# ---- retry


async def retry_saga(
    request: Request, opened: Opened, key: str, workflow: str = "", *, is_dry: bool = False
) -> dict[str, Any]:
    """Fork a failed saga from the last entry before its failed step began. A repeated key makes no second
    fork. `workflow`: the version of its document with which it goes on. `is_dry`: only check that it can.

    Raises `NotAllowedNow` for a saga that cannot be retried.
    """
    state = opened.history.state
    if key and FORK_KEY + key in state.keys:
        return accepted_answer(opened, changed=False)
    check_retry(state)
    cut = await cut_before_failure(opened.history)
    wanted = ForkRequest(version=cut, reason="retry", workflow=workflow)
    if is_dry:
        return await fork_plan(request, opened, wanted, refuses=True)
    return await fork_saga(request, opened, wanted, key, lists=False)


def check_retry(state: State) -> None:
    """Raise `NotAllowedNow` with the reason why a saga cannot be retried."""
    status = status_of(state)
    if status in ("rolled_back", "rollback_failed"):
        raise NotAllowedNow(f"its effects are undone (`{status}`): start it again with the same input")
    if status != "failed":
        raise NotAllowedNow(f"only a failed saga can be retried; this one is {status}")
    if state.origin.parent:
        parent = SagaRef.parse(state.origin.parent).id
        raise NotAllowedNow(f"it is a child of saga `{parent}`, which knows of its failure: retry that")


# ---- many at once


@dataclass(frozen=True, slots=True, kw_only=True)
class SagaFilter:
    """Filter of sagas: of a workflow and the graphs in its document; empty: of the tenant. `since`: last
    change, in epoch ms. `code`: of the failure, or of what they are parked for.
    """

    workflow: str = ""
    since: int = 0
    code: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def has(self, row: Listed) -> bool:
        """Return true if the row fits, as far as a row tells."""
        is_its = self.workflow in ("", starter_of(row.workflow))
        return is_its and self.labels.items() <= row.labels.items()

    @property
    def pauses(self) -> str:
        """Code of the pause of all these sagas."""
        return WORKFLOW_PAUSED if self.workflow else TENANT_PAUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Part of an action that one request performs. `dry_run`: only count."""

    limit: int = 1_000
    cursor: str = ""
    dry_run: bool = False


class RefusedSaga(View):
    """A saga that the request did not change."""

    id: str
    why: str


class MatchedSagas(View):
    """Number of matching sagas of a workflow, and of one code of their failure or parking."""

    workflow: str
    code: str | None
    sagas: Count


class SteeredPage(View):
    """Result of an action on many sagas. `next` is the cursor of the next part."""

    matched: Annotated[Count, "Number of sagas of this part that match the filter."]
    changed: Annotated[Count, "Number of sagas that the request changed."]
    counts: Annotated[list[MatchedSagas], "The matching sagas by workflow and code."]
    refused: list[RefusedSaga]
    next: Cursor


Look = Callable[[State], str | None]
"""Function that returns the code under which a saga counts; None: it does not match."""
Act = Callable[[Opened], Awaitable[bool]]
_FAILED: Final = ("failed", "rolled_back", "rollback_failed")
_OPEN: Final = ("waiting", "open")
"""Groups in an order in which a saga that is paused is not met again."""
_NEWEST: Final = 10**15
_PAGE: Final = 100
_AT_ONCE: Final = 8
_NAMES: Final = 100
_MARKS, _SAGAS = "n", "s"  # a cursor begins with the list that it continues
_OF, _SHARE = 3, 2  # actions begin in two thirds of a request's time


class SteeringService:
    """Actions on many sagas of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._call, self._clock = request.parts.call, request.engine.clock
        self._tenant, self._by = request.caller.tenant, request.caller.by
        now = self._clock.now()
        self._until = now + (request.parts.invocation.deadline - now) * _SHARE // _OF

    async def pause(self, wanted: SagaFilter, reason: str, part: Part) -> SteeredPage:
        """Pause a workflow, or all sagas: those that have not ended, and those that begin from now on.
        Raises `NotFound`.
        """
        pause = Pause(wanted.pauses, self._by, reason)
        if (page := await self._marked(wanted, pause, part)) is not None:
            return page

        def look(state: State) -> str | None:
            return "" if state.ended is None and not is_held(state, pause.code) else None

        async def act(opened: Opened) -> bool:
            return await self._request.put(opened.history, pause.begin)

        return await self._all("pause", wanted, _OPEN, look, act, part)

    async def resume(self, wanted: SagaFilter, part: Part) -> SteeredPage:
        """End the pause of a workflow, or of all sagas; sagas go on that no other pause and no parking holds.
        With a code: let the sagas try again that are parked for it. Raises `NotFound`.
        """
        code = wanted.code or wanted.pauses
        if not wanted.code and (page := await self._marked(wanted, None, part)) is not None:
            return page

        def resumed(state: State, now: int) -> Resumed | None:
            of = "" if wanted.code else code
            return Resumed(by=self._by, at=now, code=of) if is_held(state, code) else None

        def look(state: State) -> str | None:
            is_top = state.parked is not None and state.parked.code == code
            return (
                code if state.ended is None and (is_top or not wanted.code) and is_held(state, code) else None
            )

        async def act(opened: Opened) -> bool:
            return await self._request.put(opened.history, resumed)

        return await self._all("resume", wanted, _OPEN, look, act, part)

    async def cancel(self, wanted: SagaFilter, reason: str, grace_ms: int, part: Part) -> SteeredPage:
        """Cancel the sagas that have not ended and are not cancelled."""

        def look(state: State) -> str | None:
            is_open = state.ended is None and state.cancel is None and state.undo.work is None
            return "" if is_open else None

        def cancelled(state: State, now: int) -> CancelRequested | None:
            known = look(state)
            cancel = CancelRequested(reason=reason, by=self._by, at=now, grace_ms=grace_ms)
            return None if known is None else cancel

        async def act(opened: Opened) -> bool:
            return await self._request.put(opened.history, cancelled)

        return await self._all("cancel", wanted, _OPEN, look, act, part)

    async def retry(self, wanted: SagaFilter, key: str, part: Part, version: str = "") -> SteeredPage:
        """Retry failed sagas from their failed steps. With the key of an earlier request, none is retried
        again that this has retried. `version`: that of the workflow with which they go on, by number or tag.
        """
        workflow = f"{wanted.workflow}@{version}" if version else ""
        if version:
            await self._request.parts.catalog.find(self._tenant, workflow)

        def look(state: State) -> str | None:
            is_done = bool(key) and FORK_KEY + key in state.keys
            if is_done or state.ended is None or status_of(state) not in _FAILED:
                return None
            code = state.ended.failure.code if state.ended.failure is not None else ""
            return code if wanted.code in ("", code) else None

        async def act(opened: Opened) -> bool:
            answer = await retry_saga(self._request, opened, key, workflow, is_dry=part.dry_run)
            return bool(answer.get("changed"))

        tries = bool(version)  # the log of each says if it can go on with that version
        return await self._all("retry", wanted, ("done",), look, act, part, _FAILED, check_retry, tries)

    async def migrate(self, wanted: SagaFilter, migration: migrating.Migration, part: Part) -> SteeredPage:
        """Migrate the open sagas of a workflow to a version of it, or say which can be.
        Those of graphs in its document follow their parents. Raises `NotFound`, `UserError`.
        """
        request, of = self._request, frozenset(migration.of)
        target = await migrating.target_of(request.parts.catalog, self._tenant, wanted.workflow, migration)

        def look(state: State) -> str | None:
            is_its = migrating.is_to_migrate(state, target, of)
            return str(target.version_of(state)) if is_its else None

        async def act(opened: Opened) -> bool:
            return await migrating.migrate_saga(request, opened, target, migration, dry_run=part.dry_run)

        # Each saga is asked, also where none is changed: the reasons are part of the answer.
        asked = replace(part, dry_run=False)
        page = await self._all(f"migrate {target.version}", wanted, _OPEN, look, act, asked)
        for one in page.counts:
            version, one.code = one.code, None
            one.workflow = f"{one.workflow}@{version}" if version != "0" else f"{one.workflow}, patched"
        return page

    async def _marked(self, wanted: SagaFilter, pause: Pause | None, part: Part) -> SteeredPage | None:
        """Have new sagas begin paused, or (no pause) no longer. Return a page if the time was over before all
        workflows of the tenant are marked.
        """
        at, rest = part.cursor[:1], part.cursor[1:]
        if part.dry_run or at == _SAGAS:
            return None
        catalog, code = self._request.parts.catalog, wanted.pauses
        event = None if pause is None else pause.event(self._clock.now())
        mark = partial(catalog.set_pause, self._tenant, code=code, pause=event)
        if wanted.workflow:
            await mark(wanted.workflow)
            return None
        after = _name(rest) if at == _MARKS else ""
        if not after:
            await mark(ALL_WORKFLOWS)
        while names := await catalog.names(self._tenant, after, _NAMES):
            await asyncio.gather(*map(mark, names))
            after = names[-1]
            if self._clock.now() >= self._until:
                next_ = _MARKS + write_cursor(after.encode())
                return SteeredPage(matched=0, changed=0, counts=[], refused=[], next=next_)
        return None

    async def _all(
        self,
        what: str,
        wanted: SagaFilter,
        groups: Sequence[str],
        look: Look,
        act: Act,
        part: Part,
        statuses: Collection[str] = (),
        check: Callable[[State], None] = lambda _: None,
        tries: bool = False,
    ) -> SteeredPage:
        """Look at the next sagas, and act on those that match, until `limit` match or the time is over.
        `tries`: a dry run acts, too, and changes nothing.
        """
        of = [what, wanted.workflow, wanted.since, wanted.code, sorted(wanted.labels.items())]
        begins = dict.fromkeys(groups, wanted.since)
        counts, changed, refused = Counter[tuple[str, str]](), 0, list[RefusedSaga]()
        cursor: str | None = part.cursor[1:] if part.cursor[:1] == _SAGAS else ""
        if part.cursor[:1] not in ("", _SAGAS, _MARKS):
            raise foreign_cursor()
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(row: Listed) -> tuple[str | None, bool, str]:
            code: str | None = ""
            async with slots:
                try:
                    head, history = await self._request.read(row.id)
                    if (code := look(history.state)) is None:
                        return None, False, ""
                    check(history.state)
                    if part.dry_run and not tries:
                        return code, False, ""
                    opened = Opened(head, history, await self._request.program_of(history))
                    return code, await act(opened), ""
                except NotFound:  # it has expired since it was listed
                    return None, False, ""
                except UserError as error:
                    return code, False, error.detail
                except Unreadable as error:
                    return code, False, f"{error}; `baton doctor {row.id}` says what sets it right"

        while cursor is not None:
            rows = list[Listed]()
            most = min(_PAGE, part.limit)
            _, cursor = await rows_between(
                *(self._request.engine.log, self._call, self._tenant, begins, _NEWEST, of, cursor),
                *(rows.append, most),
            )
            chosen = [row for row in rows if wanted.has(row) and (not statuses or row.status in statuses)]
            for row, (code, is_done, why) in zip(
                chosen, await asyncio.gather(*map(one, chosen)), strict=True
            ):
                if code is not None:
                    counts[row.workflow, code] += 1
                    changed += is_done
                    refused += [RefusedSaga(id=row.id, why=why)] if why else []
            if counts.total() >= part.limit or self._clock.now() >= self._until:
                break
        return SteeredPage(
            matched=counts.total(),
            changed=changed,
            counts=[
                MatchedSagas(workflow=workflow, code=code or None, sagas=sagas)
                for (workflow, code), sagas in sorted(counts.items())
            ],
            refused=refused,
            next=None if cursor is None else _SAGAS + cursor,
        )


def _name(cursor: str) -> str:
    try:
        return read_cursor(cursor).decode()
    except UnicodeDecodeError as error:
        raise foreign_cursor() from error
