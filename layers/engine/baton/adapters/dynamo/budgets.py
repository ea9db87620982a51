"""`Budgets` on DynamoDB: one item for each user and day, moved by conditional updates of that one item, and
one of their tenant.

Besides its sums it has an attribute for each invocation with a reservation (`r#HOLDER`: number, amount or `-`
once it was freed, end in milliseconds of the day, and what is billed: `KEY=AMOUNT`, with commas). Nothing of
this is scanned for: an item is tidied by those who write to it.

The rule about a user is an item beside the user's days, so that one query finds both; a list of its own has
the names of such users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from baton.adapters.aws import ConditionFailed
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import ITEM_BYTES, OPEN_RESERVATIONS, names_in, number, text_attribute
from baton.adapters.dynamo.table import TablePort
from baton.core.money import BLOCKED, NO_RULE, UserRule, newer_rule
from baton.errors import CorruptLog
from baton.ports import Account, BudgetAnswer, Drawn, Reservation, ReservationChange, Sums
from baton.ports.log import pack, unpack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

_DAY_S = 86_400
_KEPT_DAYS = 7
_AT_ONCE = 25  # attributes that one update moves: an expression has only so much room
_STALE_AT_ONCE = 32  # attributes that it removes besides
_MANY_DUE = 16  # reservations past their time, and freed ones, before tidying is worth a write of its own
_FREED_KEPT_MS = 3_600_000  # so long after its end its holder may still count what was spent
_MARKS_KEPT_MS, _MARKS_KEPT = 900_000, 100  # so long an account keeps its marks, and so many

_HELD = "r#"
_SUMS = ("spent", "held", "open", "drawn", "told")
_ADD = (
    "SET #held = if_not_exists(#held, :zero) + :more, #spent = if_not_exists(#spent, :zero) + :cost, "
    "#open = if_not_exists(#open, :zero) + :opened, #ttl = :ttl"
)
_SHARE = "SET #drawn = :drawn, #told = :told, #ttl = :ttl"
_COLLECT = "SET #held = if_not_exists(#held, :zero) + :more, #spent = if_not_exists(#spent, :zero) + :spent, #ttl = :ttl"

_HEEDS = "(attribute_not_exists(#rule) OR #rule <= :rule)"
_TELL, _NO_CAP = "SET #rule = :rule, #ttl = :ttl", " REMOVE #cap"
_IS_OLDER = "attribute_not_exists(#rule) OR #rule < :rule"
_DAY_AND_RULE = "#pk = :pk AND #sk BETWEEN :day AND :rule"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(UserRule).decode


class DynamoBudgets(TablePort):
    """`Budgets` on one table."""

    def __init__(self, client: DynamoDBClient, table: str, most_open: int = OPEN_RESERVATIONS) -> None:
        super().__init__(client, table)
        self._most_open = most_open

    def move(self, account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
        mine, before, after = _HELD + change.holder, change.before, change.after
        names = {**names_in(_ADD), "#mine": mine}
        values = {":zero": number(0), ":more": number(change.more), ":cost": number(change.spent)}
        values |= {":opened": number(change.opened), ":ttl": number(_ttl(account))}
        update, condition = f"{_ADD} REMOVE #mine", "attribute_not_exists(#mine)"
        if after is not None:
            update, values[":after"] = f"{_ADD}, #mine = :after", text_attribute(_packed(account, after))
        if before is not None:
            condition, values[":before"] = "#mine = :before", text_attribute(_packed(account, before))
        if change.limit is not None:
            room, has_room = change.limit - change.more, "#held <= :room"
            values |= {":room": number(room), ":rule": number(change.rule)}
            names["#rule"] = "rule"
            if change.opened > 0:
                values[":most"] = number(self._most_open)
                has_room += " AND #open < :most"
            condition += (
                f" AND ({has_room}{' OR attribute_not_exists(#held)' if room >= 0 else ''}) AND {_HEEDS}"
            )
        if change.drawn:
            names["#drawn"], values[":drawn"] = "drawn", number(change.drawn)
            condition += " AND #drawn >= :drawn"
        while True:
            is_done, item = self._try(account, update, condition, names, values)
            there = _unpacked(account, mine, item) if mine in item else None
            if is_done and len(_due(account, item, now)) + len(_stale(account, item, now)) >= _MANY_DUE:
                self._free(account, item, now)  # those who only count are never refused, which would do it
            if is_done or there != before or not self._free(account, item, now):
                return BudgetAnswer(is_done, _sums(item), there)

    def draw(self, account: Account, seen: Sums, drawn: int, limit: int | None = None) -> Drawn:
        # Two items at once, which one write cannot do: nothing is between them, so nothing has to be repaired.
        more, ttl, tenant = drawn - seen.drawn, number(_ttl(account)), account.of_tenant
        was = {":was_drawn": number(seen.drawn), ":was_told": number(seen.told)}
        same = f"{_is('drawn', seen.drawn)} AND {_is('told', seen.told)}"
        if more < 0:
            same += " AND (attribute_not_exists(#held) OR #held <= :drawn)"
        share = was | {":drawn": number(drawn), ":told": number(seen.spent), ":ttl": ttl}
        collect = {":zero": number(0), ":more": number(more), ":spent": number(seen.spent - seen.told)}
        collect |= {":ttl": ttl}
        room = ""
        if limit is not None:
            room = "#held <= :room" + (" OR attribute_not_exists(#held)" if more <= limit else "")
            collect[":room"] = number(limit - more)
        try:
            self._transact(
                [
                    {"Update": self._part(account, _SHARE, same, share)},
                    {"Update": self._part(tenant, _COLLECT, room, collect)},
                ]
            )
            is_done = True
        except ConditionFailed:
            is_done = False
        found = [_sums(self._read(one, consistent=True)) for one in (account, tenant)]
        return Drawn(is_done, *found)

    def _part(self, account: Account, update: str, condition: str, values: Item) -> Any:
        """Return one of the updates of a transaction."""
        part: dict[str, Any] = {
            "TableName": self._table,
            "Key": _key(account),
            "UpdateExpression": update,
            "ExpressionAttributeNames": names_in(update, condition),
            "ExpressionAttributeValues": values,
        }
        return part | ({"ConditionExpression": condition} if condition else {})

    def expire(self, account: Account, now: int, holder: str = "", *, is_dead: bool = False) -> BudgetAnswer:
        item, mine = self._read(account, consistent=True), _HELD + holder
        while self._free(account, item, now, mine if is_dead else ""):
            item = self._read(account, consistent=True)
        return BudgetAnswer(True, _sums(item), _unpacked(account, mine, item) if mine in item else None)

    def read(self, account: Account) -> Sums:
        if not account.user:
            return _sums(self._read(account, consistent=False))
        day = items.budget_sk(account.day)
        values = {
            ":pk": text_attribute(items.budget_pk(account.tenant, account.user)),
            ":day": text_attribute(day),
            ":rule": text_attribute(items.RULE),
        }
        found = {item["sk"]["S"]: item for item in self._query(_DAY_AND_RULE, values)}
        sums = _sums(found.get(day, {}))
        if items.RULE not in found:
            return sums
        return replace(sums, rule=newer_rule(_rule(found[items.RULE]), sums.rule))

    def write_rule(self, tenant: str, user: str, rule: UserRule) -> UserRule | None:
        if rule.version == 1:
            self._put(items.key(items.ruled_pk(tenant), user))
        item: Item = {**_rule_key(tenant, user), "ver": number(rule.version)}
        item["d"] = {"B": pack(_encode(rule), items.item_size(item) + len("d"), ITEM_BYTES)}
        there = self._put_version(item, rule.version)
        return None if there is None else _rule(there)

    def read_rule(self, tenant: str, user: str) -> UserRule:
        return _rule(self._get(_rule_key(tenant, user)))

    def tell_rule(self, account: Account, rule: UserRule) -> None:
        cap = BLOCKED if rule.is_blocked else rule.limit
        update = _TELL + (_NO_CAP if cap is None else ", #cap = :cap")
        values = {":rule": number(rule.version), ":ttl": number(_ttl(account))}
        values |= {":cap": number(cap)} if cap is not None else {}
        # Refused: it says this one already, or a later one.
        self._try(account, update, _IS_OLDER, names_in(update, _IS_OLDER), values)

    def ruled(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[str]:
        return self._sort_keys(items.ruled_pk(tenant), after, limit)

    def _free(self, account: Account, item: StoredItem, now: int, dead: str = "") -> bool:
        """Free reservations past their time, and that of a `dead` holder, unless others have.
        False when there was nothing to free.
        """
        due = _due(account, item, now, dead)[:_AT_ONCE]
        stale = _stale(account, item, now)[:_STALE_AT_ONCE]
        if not (due or stale):
            return False
        marked = {f"#r{n}": name for n, (name, _) in enumerate([*due, *stale])}
        values = {":sum": number(sum(one.amount for _, one in due)), ":count": number(len(due))}
        for n, (_, one) in enumerate(due):
            values[f":r{n}"] = text_attribute(_packed(account, one))
            values[f":f{n}"] = text_attribute(_packed(account, one.freed()))
        for n, (_, one) in enumerate(stale, len(due)):
            values[f":r{n}"] = text_attribute(_packed(account, one))
        update, sums = "SET #held = #held - :sum, #open = #open - :count", "#held #open"
        if billed := sum(sum(one.billed.values()) for _, one in due):
            update, sums = f"{update}, #spent = #spent + :billed", f"{sums} #spent"
            values |= {":sum": number(sum(one.amount for _, one in due) - billed), ":billed": number(billed)}
        update += "".join(f", #r{n} = :f{n}" for n in range(len(due)))
        update += f" REMOVE {', '.join([*marked][len(due) :])}" if stale else ""
        condition = " AND ".join(f"#r{n} = :r{n}" for n in range(len(marked)))
        self._try(account, update, condition, names_in(sums) | marked, values)
        return True

    def _read(self, account: Account, *, consistent: bool) -> StoredItem:
        return self._get(_key(account), is_consistent=consistent)

    def _try(
        self, account: Account, update: str, condition: str, names: Mapping[str, str], values: Item
    ) -> tuple[bool, StoredItem]:
        """Update an item. Return true if the condition held, and the item as it is then."""
        both = {"ReturnValues": "ALL_NEW", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        try:
            return True, self._update(_key(account), update, condition, values, names=names, **both)
        except ConditionFailed as refused:
            return False, refused.item


def _key(account: Account) -> Item:
    return items.key(items.budget_pk(account.tenant, account.user), items.budget_sk(account.day))


def _ttl(account: Account) -> int:
    return (account.day + 1 + _KEPT_DAYS) * _DAY_S


def _packed(account: Account, one: Reservation) -> str:
    amount = "-" if one.is_freed else str(one.amount)
    billed = ",".join(f"{key}={cost}" for key, cost in one.billed.items())
    return f"{one.number} {amount} {one.until - account.day * _DAY_S * 1_000} {billed}".rstrip()


def _unpacked(account: Account, name: str, item: StoredItem) -> Reservation:
    try:
        count, amount, until, *more = item[name]["S"].split(" ")
        end, is_freed = account.day * _DAY_S * 1_000 + int(until), amount == "-"
        parts = (part.split("=") for part in more[0].split(",")) if more else ()
        billed = {key: int(cost) for key, cost in parts}
        return Reservation(int(count), 0 if is_freed else int(amount), end, is_freed, billed)
    except (KeyError, ValueError) as error:
        raise CorruptLog(f"budget {item.get('pk')}: {name} cannot be read: {error!r}") from error


def _sums(item: StoredItem) -> Sums:
    spent, held, opened, drawn, told = (int(item[name]["N"]) if name in item else 0 for name in _SUMS)
    return Sums(spent, held, opened, drawn, told, _told(item) if "rule" in item else NO_RULE)


def _told(item: StoredItem) -> UserRule:
    """Return the rule about the user, as the account of a day has it."""
    cap = int(item["cap"]["N"]) if "cap" in item else None
    return UserRule(int(item["rule"]["N"]), cap == BLOCKED, None if cap == BLOCKED else cap)


def _rule_key(tenant: str, user: str) -> Item:
    return items.key(items.budget_pk(tenant, user), items.RULE)


def _rule(item: StoredItem) -> UserRule:
    """Return the operator's rule about a user. Raises `CorruptLog`."""
    if not item:
        return NO_RULE
    try:
        return _decode(unpack(item["d"]["B"]))
    except (KeyError, ValueError, CorruptLog) as error:
        raise CorruptLog(f"the rule of {item.get('pk')} cannot be read: {error!r}") from error


def _is(name: str, value: int) -> str:
    """Return the condition that an attribute is unchanged; absent is 0."""
    return f"(#{name} = :was_{name}{'' if value else f' OR attribute_not_exists(#{name})'})"


def _due(account: Account, item: StoredItem, now: int, dead: str = "") -> list[tuple[str, Reservation]]:
    return _found(account, item, now, dead, is_freed=False)


def _stale(account: Account, item: StoredItem, now: int) -> list[tuple[str, Reservation]]:
    freed = _found(account, item, now, is_freed=True)
    marks = sorted(((name, one) for name, one in freed if one.is_mark), key=lambda mark: mark[1].until)
    left = len(marks) - _MARKS_KEPT
    over = [mark for n, mark in enumerate(marks) if n < left or mark[1].until <= now - _MARKS_KEPT_MS]
    return over + [
        (name, one) for name, one in freed if not one.is_mark and one.until <= now - _FREED_KEPT_MS
    ]


def _found(
    account: Account, item: StoredItem, until: int, dead: str = "", *, is_freed: bool
) -> list[tuple[str, Reservation]]:
    """Return reservations that expired by `until`, or are of the `dead`: those freed, or the others."""
    held = ((name, _unpacked(account, name, item)) for name in item if name.startswith(_HELD))
    return [
        (name, one) for name, one in held if (one.until <= until or name == dead) and one.is_freed == is_freed
    ]
