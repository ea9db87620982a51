"""`Budgets` on DynamoDB: one item for each user and day, moved only by conditional updates of that one item.

Besides its sums it has an attribute for each open reservation (`r#ID`: amount and end), and for each that was freed
because its end had come (`x#ID`): by them a repeated call finds that it has been made. Nothing of this is scanned for:
an item is tidied by those who write to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, number, text
from baton.adapters.dynamo.limits import OPEN_RESERVATIONS
from baton.errors import CorruptLog
from baton.ports import Account, Held, Refused, Reservation, Sums

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

_DAY_S = 86_400
_KEPT_DAYS = 7
_AT_ONCE = 25  # attributes that one update moves: an expression has only so much room
_STALE_AT_ONCE = 32  # attributes that it removes besides
_MANY_DUE = 16  # reservations past their time before freeing them is worth a write of its own
_FREED_KEPT_MS = 3_600_000  # its holder has been dead for as long

_NEW = "#held = if_not_exists(#held, :zero)"
_RESERVE = (
    f"SET {_NEW} + :amount, #spent = if_not_exists(#spent, :zero), #open = if_not_exists(#open, :zero) + :one, "
    "#ttl = :ttl, {mine} = :mine REMOVE {freed}"
)
_MAY_RESERVE = (
    "attribute_not_exists({mine}) AND (attribute_not_exists(#held) OR (#held <= :room AND #open < :most))"
)
_IS_NEW = "attribute_not_exists({mine})"
_SETTLE = "SET #held = #held + :more, #spent = #spent + :cost, #open = #open - :one REMOVE {mine}"
_COUNT_LATE = "SET #held = #held + :cost, #spent = #spent + :cost REMOVE {freed}"


class DynamoBudgets:
    """`Budgets` on one table."""

    def __init__(self, client: DynamoDBClient, table: str, most_open: int = OPEN_RESERVATIONS) -> None:
        self._client = client
        self._table = table
        self._most_open = most_open

    def reserve(self, account: Account, reservation: Reservation, limit: int, now: int) -> Held | Refused:
        amount, mine, freed = reservation.amount, _open(reservation.id), _freed(reservation.id)
        room = limit - amount
        if room < 0 < amount:
            return Refused(self.read(account), is_busy=False)
        bounds = {":room": number(room), ":most": number(self._most_open)} if amount else {}
        while True:
            done, item = self._update(
                account,
                _RESERVE,
                _MAY_RESERVE if amount else _IS_NEW,
                {"mine": mine, "freed": freed},
                {
                    ":zero": number(0),
                    ":one": number(1),
                    ":amount": number(amount),
                    ":mine": text(_packed(reservation)),
                    ":ttl": number(_ttl(account)),
                    **bounds,
                },
            )
            if done and not amount and len(_due(item, now)) >= _MANY_DUE:
                self._free(account, item, now)  # one of nothing is never refused, which would do it
            if done or mine in item:
                return Held(_sums(item))
            if not self._free(account, item, now):
                sums = _sums(item)
                return Refused(sums, is_busy=sums.spent <= room)

    def settle(self, account: Account, reservation: Reservation, cost: int) -> Sums:
        mine, freed = _open(reservation.id), _freed(reservation.id)
        while True:
            done, item = self._update(
                account,
                _SETTLE,
                "{mine} = :mine",
                {"mine": mine},
                {
                    ":one": number(1),
                    ":more": number(cost - reservation.amount),
                    ":cost": number(cost),
                    ":mine": text(_packed(reservation)),
                },
            )
            if done or (mine not in item and freed not in item):
                return _sums(item)
            if mine in item:  # it was held with other words: those count
                reservation = _unpacked(mine, item)
                continue
            done, item = self._update(
                account,
                _COUNT_LATE,
                "attribute_exists({freed})",
                {"freed": freed},
                {":cost": number(cost)},
            )
            if done:
                return _sums(item)

    def expire(self, account: Account, now: int) -> Sums:
        item = self._get(account, consistent=True)
        while self._free(account, item, now):
            item = self._get(account, consistent=True)
        return _sums(item)

    def read(self, account: Account) -> Sums:
        return _sums(self._get(account, consistent=False))

    def _free(self, account: Account, item: StoredItem, now: int) -> bool:
        """Free reservations past their time, unless others have. False when there was nothing to free."""
        due = _due(item, now)[:_AT_ONCE]
        if not due:
            return False
        names = {f"r{n}": _open(one.id) for n, one in enumerate(due)}
        names |= {f"x{n}": _freed(one.id) for n, one in enumerate(due)}
        stale = {f"s{n}": name for n, name in enumerate(_stale(item, now - _FREED_KEPT_MS))}
        sets = "".join(f", {{x{n}}} = :x{n}" for n in range(len(due)))
        removes = ", ".join(f"{{{name}}}" for name in (*(f"r{n}" for n in range(len(due))), *stale))
        self._update(
            account,
            f"SET #held = #held - :sum, #open = #open - :count{sets} REMOVE {removes}",
            " AND ".join(f"{{r{n}}} = :r{n}" for n in range(len(due))),
            names | stale,
            {
                ":sum": number(sum(one.amount for one in due)),
                ":count": number(len(due)),
                **{f":r{n}": text(_packed(one)) for n, one in enumerate(due)},
                **{f":x{n}": number(one.until) for n, one in enumerate(due)},
            },
        )
        return True

    def _get(self, account: Account, *, consistent: bool) -> StoredItem:
        with translated():
            found = self._client.get_item(TableName=self._table, Key=_key(account), ConsistentRead=consistent)
        return found.get("Item", {})

    def _update(
        self,
        account: Account,
        update: str,
        condition: str,
        marks: Mapping[str, str],
        values: Mapping[str, Any],
    ) -> tuple[bool, StoredItem]:
        """Whether the condition held, and the item as it is then. `{name}` in the expressions is an attribute of `marks`."""
        places = {name: f"#m_{name}" for name in marks}
        named = {places[name]: attribute for name, attribute in marks.items()}
        request: dict[str, Any] = {
            "UpdateExpression": update.format(**places),
            "ConditionExpression": condition.format(**places),
            "ExpressionAttributeNames": named | names_in(update, condition),
        }
        if values:
            request["ExpressionAttributeValues"] = values
        try:
            with translated():
                done = self._client.update_item(
                    TableName=self._table,
                    Key=_key(account),
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **request,
                )
        except ConditionFailed as refused:
            return False, refused.item
        return True, done["Attributes"]


_OPEN, _FREED = "r#", "x#"


def _open(id_: str) -> str:
    return _OPEN + id_


def _freed(id_: str) -> str:
    return _FREED + id_


def _key(account: Account) -> Item:
    return items.key(items.budget_pk(account.tenant, account.user), items.budget_sk(account.day))


def _ttl(account: Account) -> int:
    return (account.day + 1 + _KEPT_DAYS) * _DAY_S


def _packed(reservation: Reservation) -> str:
    return f"{reservation.amount} {reservation.until}"


def _unpacked(name: str, item: StoredItem) -> Reservation:
    try:
        amount, until = item[name]["S"].split(" ")
        return Reservation(name.removeprefix(_OPEN), int(amount), int(until))
    except (KeyError, ValueError) as error:
        raise CorruptLog(f"budget {item.get('pk')}: {name} cannot be read: {error!r}") from error


def _sums(item: StoredItem) -> Sums:
    return Sums(*(int(item[name]["N"]) if name in item else 0 for name in ("spent", "held", "open")))


def _due(item: StoredItem, now: int) -> list[Reservation]:
    return [one for name in item if name.startswith(_OPEN) and (one := _unpacked(name, item)).until <= now]


def _stale(item: StoredItem, long_ago: int) -> Sequence[str]:
    """Marks of reservations that were freed, and ended, so long ago that no attempt settles them any more."""
    found = (name for name in item if name.startswith(_FREED) and int(item[name]["N"]) <= long_ago)
    return [name for name, _ in zip(found, range(_STALE_AT_ONCE), strict=False)]
