"""Limits of money: the work that a saga may still begin, the parking of a saga or its user, and the notices
to people.

All of this is arithmetic on the log. The limits of a document are in core/log/folding/workflow_limits.py; the
reservations of a user's day, which many sagas share, are in runtime/money/ledger.py. Amounts are
micro-dollars.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from baton.core.effects.rows import ANY_ROWS, RowRoom
from baton.core.failures.policy import draw_jitter
from baton.core.failures.strategies.base import ON_CALL
from baton.core.graph.graph import Cap, Node
from baton.core.limits import DAY_MS, Limits
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import SAGA, TERMINATE, limit_failure
from baton.core.log.records import SharedLimit
from baton.core.log.state import Held, State
from baton.core.money import BLOCKED, amount_of, dollars, micro_dollars

SAGA_SPENT, USER_SPENT, WARNING = "budget_saga", "budget_user_day", "budget_warning"
TENANT_SPENT, LIMIT_SPENT = "budget_tenant_day", "limit_cost"
USER_BLOCKED = "user_blocked"
BEGINS, WAITS = "", "waits"
FIRST_WAIT_MS, LONGEST_WAIT_MS = 1_000, 900_000
"""Longest pause, in ms, of the first and of any other wait for money; the shortest is half of it."""


class SpendingLimits(msgspec.Struct, frozen=True):
    """Limits of a deployment: for a saga, and for a user and a tenant per day (UTC), 0: any amount.

    `warn_percent`: the share of a limit at which people are warned.
    """

    saga: int = 0
    user_day: int = 0
    warn_percent: int = 80
    tenant_day: int = 0

    @property
    def counts_days(self) -> bool:
        """Return true if the amount spent on a day matters."""
        return bool(self.user_day or self.tenant_day)

    @classmethod
    def of(cls, limits: Limits) -> SpendingLimits:
        """Return the limits of a deployment's settings."""
        return cls(
            saga=micro_dollars([amount_of(limits.saga_budget_usd)]),
            user_day=micro_dollars([amount_of(limits.user_day_budget_usd)]),
            warn_percent=limits.budget_warning_percent,
            tenant_day=micro_dollars([amount_of(limits.tenant_day_budget_usd)]),
        )


ANY_AMOUNT = SpendingLimits()


class Spending(Protocol):
    """Spending of a user's or a tenant's day."""

    @property
    def spent(self) -> int: ...


def day_of(now: int) -> int:
    """Return the UTC day, counted from 1970."""
    return now // DAY_MS


def end_of(day: int) -> int:
    """Return the moment at which a day ends."""
    return (day + 1) * DAY_MS


# ---- a saga


def total_of(state: State, terms: SpendingLimits) -> int:
    """Return the most that the saga may spend in all, with the sagas above and below it; 0: any amount."""
    if not terms.saga:
        return 0
    own = max(state.money.budget, terms.saga)
    if not (above := state.origin.shared_limits):
        return own  # most have none above them
    return max(own, *(one.most for one in above if one.node is None))


def renewed_budget(state: State, terms: SpendingLimits) -> int:
    """Return the new total of a saga that was parked for its money: one more limit's worth. 0: as before."""
    is_for_money = state.parked is not None and state.parked.code == SAGA_SPENT
    return max(state.money.spent, total_of(state, terms)) + terms.saga if is_for_money else 0


def ask_money(state: State, terms: SpendingLimits, node: Node, busy: int) -> str | ev.Parked:
    """Return `BEGINS`, `WAITS` or the parking for a node that does work; attempts under way reserve `busy`.

    `WAITS`: for the end of those. Once everything is spent no step begins at all, nor a child: most tools
    with a cost do not declare it.
    """
    total = total_of(state, terms)
    if total and state.money.spent >= total:
        return WAITS if busy else _spent_up(state.money.spent, total, terms, node.name, node.name, node.cost)
    return ask_for(state, terms, node.name, node.name, state.money.spent, busy, node.cost)


def ask_for(
    state: State, terms: SpendingLimits, node: str, what: str, spent: int, busy: int, cost: int
) -> str | ev.Parked:
    """Return `BEGINS`, `WAITS` or the parking for one call of `what`, for `node`, that may cost up to `cost`.

    `spent` is the saga's spending by now, including amounts that are not in the log yet; `busy` is the amount
    that the other attempts under way have spent or hold.
    """
    total = total_of(state, terms)
    if not total or spent + busy + cost <= total:
        return BEGINS
    return WAITS if busy else _spent_up(spent, total, terms, node, what, cost)


def _spent_up(spent: int, total: int, terms: SpendingLimits, node: str, what: str, cost: int) -> ev.Parked:
    text = f"`{what}` would cost up to {dollars(cost)} dollars, and" if cost else ""
    said = f"{text} {dollars(spent)} of the {dollars(total)} dollars of this saga are spent".strip()
    return ev.Parked(
        code=SAGA_SPENT,
        message=f"{said}: resumed, it may spend {dollars(terms.saga)} more",
        node=node,
    )


def saga_notice(state: State, terms: SpendingLimits, now: int) -> ev.Notice | None:
    """Return the warning about the saga's spending, if it is due and was not sent yet."""
    total = total_of(state, terms)
    if not (total and _is_over(state.money.spent, total, terms)):
        return None
    notice = ev.Notice(
        key=f"budget{terms.warn_percent}/saga/{state.origin.saga}/{total}",
        to="user",
        code=WARNING,
        message=f"{dollars(state.money.spent)} of the {dollars(total)} dollars of this saga are spent",
        at=now,
    )
    return None if is_told(state, notice.key) else notice


def saga_key(state: State, terms: SpendingLimits) -> str:
    """Return the name of a saga's limit in the key of its notice."""
    return f"saga/{state.origin.saga}/{total_of(state, terms)}"


def tree_key(limit: SharedLimit) -> str:
    """Return the name of a limit that sagas share: one notice for all of them."""
    return f"tree/{limit.saga}/{limit.most}"


def parked_notice(key: str, parked: ev.Parked, now: int) -> ev.Notice:
    """Return the notice to the user that a saga waits until its limit is raised."""
    return ev.Notice(
        key=f"budget100/{key}",
        to="user",
        code=SAGA_SPENT,
        message=parked.message,
        severity="high",
        node=parked.node,
        at=now,
    )


def wait_for_money(state: State, slot: str, now: int, limit: str, amount: int, *, first: bool = True) -> Held:
    """Return the wait of a step until it asks again for money that others hold of a limit.

    Each pause in a row is up to a half longer than the one before: it stays a part of what was waited.
    Steps that were refused together ask again at different times.
    """
    last = state.held.get(slot)
    pause = last.until - last.at if last is not None and last.limit else 0
    draw = draw_jitter(state.origin.saga, slot, state.version)
    longer = 1 + draw / 2 if pause else 1 + draw
    pause = min(round(max(pause, FIRST_WAIT_MS) * longer), LONGEST_WAIT_MS)
    return Held(breaker="", at=now, until=now + pause, limit=limit, amount=amount, first=first)


def is_told(state: State, key: str) -> bool:
    """Return true if a notice with this key is due, or has been sent."""
    return key in state.outbox.sent or any(notice.key == key for notice in state.outbox.due)


# ---- a day


def is_blocked(sums: Spending, terms: SpendingLimits) -> bool:
    """Return true if a user may begin nothing more today."""
    return terms.user_day != 0 and terms.user_day <= sums.spent


def user_parked(
    sums: Spending, terms: SpendingLimits, day: int, node: str = "", amount: int = 0, what: str = ""
) -> ev.Parked:
    """Return the parking of a saga until the day ends.

    An attempt that costs more than a day allows waits for a person.
    `what`: the thing that would cost `amount`, if its name is not the node's.
    """
    if terms.user_day == BLOCKED:
        said = "an operator has blocked the user; what is parked for it looks again when the day turns (UTC)"
        return ev.Parked(code=USER_BLOCKED, message=said, node=node, until=end_of(day))
    return _parked(USER_SPENT, "user", sums, terms.user_day, day, node, amount, what)


def tenant_parked(
    sums: Spending, terms: SpendingLimits, day: int, node: str = "", amount: int = 0, what: str = ""
) -> ev.Parked:
    """Return the parking of a saga until the tenant's day ends."""
    return _parked(TENANT_SPENT, "tenant", sums, terms.tenant_day, day, node, amount, what)


def _parked(
    code: str, whose: str, sums: Spending, most: int, day: int, node: str, amount: int, what: str
) -> ev.Parked:
    limit, would = dollars(most), f"`{what or node}` would cost up to {dollars(amount)} dollars, and "
    if amount > most:
        return ev.Parked(code=code, message=f"{would}a {whose} may spend {limit} a day", node=node)
    spent = f"{dollars(sums.spent)} of the {whose}'s {limit} dollars of {day_text(day)} are spent"
    return ev.Parked(code=code, message=f"{would if amount else ''}{spent}", node=node, until=end_of(day))


def is_tenant_blocked(sums: Spending, terms: SpendingLimits) -> bool:
    """Return true if none of a tenant's users may begin anything more today."""
    return 0 < terms.tenant_day <= sums.spent


def user_notices(
    user: str, sums: Spending, terms: SpendingLimits, day: int, now: int
) -> tuple[ev.Notice, ...]:
    """Return the notices due for the user's spending so far; each has the same key all day."""
    whose = (user, f"user/{user}", "user", USER_SPENT)
    return _notices(whose, sums.spent, terms.user_day, terms.warn_percent, day, now)


def tenant_notices(sums: Spending, terms: SpendingLimits, day: int, now: int) -> tuple[ev.Notice, ...]:
    """Return the notices due for the tenant's spending: those on call, who may raise its limit, are told."""
    whose = ("the tenant", "tenant", ON_CALL, TENANT_SPENT)
    return _notices(whose, sums.spent, terms.tenant_day, terms.warn_percent, day, now)


def _notices(
    whose: tuple[str, str, str, str], spent: int, limit: int, percent: int, day: int, now: int
) -> tuple[ev.Notice, ...]:
    """Return the notices of a day.

    `whose`: the name, the middle of the key, the audience, and the code once all is spent.
    """
    name, key, to, code = whose
    if limit <= 0 or spent * 100 < limit * percent:
        return ()
    said = f"{dollars(spent)} of the {dollars(limit)} dollars of {name} for {day_text(day)} are spent"
    found = [ev.Notice(key=f"budget{percent}/{key}/{day}", to=to, code=WARNING, message=said, at=now)]
    if limit <= spent:
        said, key = f"{said}: nothing more begins before {day_text(day + 1)} (UTC)", f"budget100/{key}/{day}"
        found.append(ev.Notice(key=key, to=to, code=code, message=said, severity="high", at=now))
    return tuple(found)


def day_text(day: int) -> str:
    """Return the date of a day: `2026-09-21`."""
    return datetime.fromtimestamp(day * DAY_MS / 1_000, UTC).date().isoformat()


def _is_over(spent: int, limit: int, terms: SpendingLimits) -> bool:
    return spent * 100 >= limit * terms.warn_percent


# ---- a saga and those below it


def limits_at(
    state: State, node: Node | None, of_saga: Cap | None, terms: SpendingLimits, day: int, *, shares: bool
) -> tuple[SharedLimit, ...]:
    """Return the limits on the spending of a saga's `node`, or of the sagas that are started there, the
    nearest first.

    `of_saga`: the limit that its document gives for the whole saga. `shares`: its graph can start sagas. A
    saga that cannot, and has no saga above it, has no account: its limits are arithmetic on its log. `day`:
    the last day of an account of its own.
    """
    above, saga = state.origin.shared_limits, state.origin.saga
    found: list[SharedLimit] = []
    if shares:
        if node is not None and node.starts and (cap := _ends(node.limits.get("cost"))):
            found.append(SharedLimit(saga=saga, node=node.name, most=cap.most, day=day))
        if cap := _ends(of_saga):
            found.append(SharedLimit(saga=saga, node=SAGA, most=cap.most, day=day))
    total = total_of(state, terms)
    for one in above:
        if one.node is not None:
            found.append(one)
        elif total:
            found.append(replace(one, most=total))  # as it is now: a person or an operator may have raised it
    if shares and total and not state.origin.depth:
        found.append(SharedLimit(saga=saga, most=total, day=day))
    return tuple(found)


def kept_until(state: State) -> int:
    """Return the UTC day until which an account of the saga is kept: the saga and its children have then
    ended.

    It depends on the first entry alone, because the day is a part of the account's name.
    """
    began, end = state.origin.started_at, state.origin.ends_by
    return day_of(2 * end - began) if end else day_of(began) + 2 * Limits().saga_days


def _ends(cap: Cap | None) -> Cap | None:
    return cap if cap is not None and cap.then == TERMINATE else None


def limit_reached(
    limit: SharedLimit, terms: SpendingLimits, spent: int, cost: int, node: str, what: str
) -> ev.Failure | ev.Parked:
    """Return the result of a call that does not fit: a failure by a limit of a document, else the saga's
    parking.
    """
    if limit.node is not None:
        failure = limit_failure("cost", Cap(most=limit.most), limit.node, spent + cost)
        whose = f"{failure.message} with what the next call may cost, in saga {limit.saga} and those below it"
        return ev.Failure(failure.code, whose, node)
    text = f"`{what}` would cost up to {dollars(cost)} dollars, and " if cost else ""
    said = f"{text}{dollars(spent)} of the {dollars(limit.most)} dollars of saga {limit.saga} and those below it are spent"
    return ev.Parked(
        code=SAGA_SPENT,
        message=f"{said}: resumed, it may go on until {dollars(limit.most + terms.saga)} are",
        node=node,
    )


_DEFAULTS = Limits()


class Bounds(Struct, frozen=True, kw_only=True):
    """The limits of a deployment and of its store, as far as decisions know them.

    `entry_bytes`: most bytes of the events of one entry together; one event is always taken. `value_bytes`:
    most bytes of a value made here. `deaths`: number of deaths in a row after which a person has to decide.
    `rows`: rows of tools that the store takes together with an entry.
    """

    entry_bytes: int = _DEFAULTS.entry_bytes
    value_bytes: int = _DEFAULTS.result_bytes
    deaths: int = _DEFAULTS.max_deaths
    money: SpendingLimits = ANY_AMOUNT
    rows: RowRoom = ANY_ROWS


DEFAULT = Bounds()
