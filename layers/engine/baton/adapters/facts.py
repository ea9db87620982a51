"""Facts of users on the rows of threads: each fact is one row.

A search reads the rows of one user and compares the vectors in them, which have a byte for each number; or an
index of Amazon S3 Vectors has the vectors and compares them. Figures are on docs/memory.md.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, Final

import msgspec

from baton.adapters.aws import translated
from baton.core.limits import DAY_MS
from baton.ports import CheckpointRow, Checkpoints
from baton.ports.outside import Fact, NearestFacts

MOST_COMPARED: Final = 10_000
"""Facts of a user that one search compares."""
_FIRST, _LAST = "0", "g"  # ids are hexadecimal
_LARGEST: Final = 127
_GONE: Final = b"-"
_GONE_MS: Final = DAY_MS
"""Time for which a deleted fact keeps its id: longer than any attempt lasts that could still write it."""
_sumprod: Callable[[Sequence[int], Sequence[int]], int] | None = getattr(
    math, "sumprod", None
)  # from 3.12 on


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """Stored form of a fact. `square`: of the length of its vector. Both are empty where an index has it."""

    text: str
    saga: str
    at: int
    model: str
    expires: int
    vector: bytes = b""
    square: int = 0


S3VectorsClient = Any
"""Amazon S3 Vectors: of its client, what is used is described where it is used."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Row).decode


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector as whole numbers of one byte. Its length is lost, which a cosine does not need."""
    largest = max(map(abs, vector)) or 1.0
    return array("b", [round(number * _LARGEST / largest) for number in vector]).tobytes()


def square_of(vector: bytes) -> int:
    """Return the square of the length of a packed vector."""
    return _product(numbers := array("b", vector), numbers)


def cosines(query: bytes, vectors: Sequence[tuple[bytes, int]]) -> list[float]:
    """Return the cosine of the query with each packed vector, given with its square. All have one length."""
    asked, own = array("b", query), square_of(query)
    return [_product(asked, array("b", one)) / math.sqrt(own * square) for one, square in vectors]


def _product(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(map(mul, left, right)) if _sumprod is None else _sumprod(left, right)


def thread_of(user: str) -> str:
    """Return the thread that has the facts of a user: names of users may be long."""
    return f"~facts/{hashlib.sha256(user.encode()).hexdigest()[:32]}"


class StoredFacts:
    """`Facts` in a table, compared one by one."""

    def __init__(self, rows: Checkpoints) -> None:
        self._rows = rows

    def put(self, tenant: str, user: str, fact: Fact, vector: Sequence[float]) -> None:
        numbers = packed(vector)
        of = fact.text, fact.saga, fact.at, fact.model, fact.expires
        self._put(tenant, user, fact, _Row(*of, numbers, square_of(numbers)))

    def _put(self, tenant: str, user: str, fact: Fact, row: _Row) -> None:
        there = CheckpointRow(key=fact.id, data=_encode(row), expires=fact.expires)
        self._rows.put(tenant, thread_of(user), there, is_new=True)

    def nearest(
        self, tenant: str, user: str, model: str, vector: Sequence[float], most: int, now: int
    ) -> NearestFacts:
        stored = self._rows.rows(tenant, thread_of(user), _FIRST, _LAST, MOST_COMPARED + 1)
        rows = [(row.key, _decode(row.data)) for row in stored[:MOST_COMPARED] if row.data != _GONE]
        alive = [(key, row) for key, row in rows if not row.expires or row.expires > now]
        query = packed(vector)
        same = [(key, row) for key, row in alive if row.model == model and len(row.vector) == len(query)]
        ranked = sorted(
            zip(cosines(query, [(row.vector, row.square) for _, row in same]), same, strict=True),
            key=lambda one: (-one[0], -one[1][1].at),
        )
        found = dict[str, tuple[Fact, float]]()
        for score, (key, row) in ranked:
            if len(found) == most:
                break
            found.setdefault(row.text, (_fact(key, row), score))
        return NearestFacts(
            found=[*found.values()],
            other_models=len(alive) - len(same),
            more=len(stored) > MOST_COMPARED,
        )

    def listed(self, tenant: str, user: str, before: str, limit: int) -> tuple[Sequence[Fact], str]:
        last = before or _LAST
        rows = self._rows.rows(tenant, thread_of(user), _FIRST, last, limit + bool(before))
        rows = [row for row in rows if row.key != before][:limit]
        found = [_fact(row.key, _decode(row.data)) for row in rows if row.data != _GONE]
        return found, rows[-1].key if len(rows) == limit else ""

    def delete(self, tenant: str, user: str, ids: Sequence[str], now: int) -> int:
        return sum(self._delete(tenant, thread_of(user), key, now) for key in ids)

    def _delete(self, tenant: str, thread: str, key: str, now: int) -> bool:
        there = self._rows.rows(tenant, thread, key, key, 1)
        # Also where there is none: its write may be under way.
        self._rows.put(tenant, thread, CheckpointRow(key=key, data=_GONE, expires=now + _GONE_MS))
        return bool(there) and there[0].data != _GONE


def _fact(key: str, row: _Row) -> Fact:
    return Fact(id=key, text=row.text, saga=row.saga, at=row.at, model=row.model, expires=row.expires)


_MORE_ASKED: Final = 10
"""Vectors that an index is asked for beyond those wanted, because some may be of facts that have expired."""


class IndexedFacts(StoredFacts):
    """`Facts` in a table, with their vectors in an index of Amazon S3 Vectors, which compares them.

    The index measures cosines; its name is an ARN.
    """

    def __init__(self, rows: Checkpoints, client: S3VectorsClient, index: str) -> None:
        super().__init__(rows)
        self._client, self._index = client, index

    def put(self, tenant: str, user: str, fact: Fact, vector: Sequence[float]) -> None:
        self._put(tenant, user, fact, _Row(fact.text, fact.saga, fact.at, fact.model, fact.expires))
        owner = _owner(tenant, user)
        one = {
            "key": f"{owner}/{fact.id}",
            "data": {"float32": list(vector)},
            "metadata": {"owner": owner, "model": fact.model},
        }
        with translated():
            self._client.put_vectors(indexArn=self._index, vectors=[one])
        if self._read(tenant, user, fact.id) is None:  # it was deleted meanwhile
            self._delete_vectors(owner, [fact.id])

    def nearest(
        self, tenant: str, user: str, model: str, vector: Sequence[float], most: int, now: int
    ) -> NearestFacts:
        owner = _owner(tenant, user)
        with translated():
            answer = self._client.query_vectors(
                indexArn=self._index,
                topK=most + _MORE_ASKED,
                queryVector={"float32": list(vector)},
                filter={"$and": [{"owner": {"$eq": owner}}, {"model": {"$eq": model}}]},
                returnDistance=True,
            )
        found, over = dict[str, tuple[Fact, float]](), list[str]()
        for one in answer["vectors"]:
            if len(found) == most:
                break
            key = one["key"].removeprefix(f"{owner}/")
            fact = self._read(tenant, user, key)
            if fact is None or 0 < fact.expires <= now:
                over.append(key)
            else:
                found.setdefault(fact.text, (fact, 1.0 - one["distance"]))
        if over:  # nothing else takes the vectors of expired facts out of the index, and they hide others
            self._delete_vectors(owner, over)
        return NearestFacts(found=[*found.values()], other_models=None)

    def delete(self, tenant: str, user: str, ids: Sequence[str], now: int) -> int:
        # First, so that a process that dies here leaves facts that are deleted again; and afterwards, for a fact that
        # was written in between.
        owner = _owner(tenant, user)
        self._delete_vectors(owner, ids)
        count = super().delete(tenant, user, ids, now)
        self._delete_vectors(owner, ids)
        return count

    def _delete_vectors(self, owner: str, ids: Sequence[str]) -> None:
        with translated():
            self._client.delete_vectors(indexArn=self._index, keys=[f"{owner}/{key}" for key in ids])

    def _read(self, tenant: str, user: str, key: str) -> Fact | None:
        there = self._rows.rows(tenant, thread_of(user), key, key, 1)
        return None if not there or there[0].data == _GONE else _fact(key, _decode(there[0].data))


def _owner(tenant: str, user: str) -> str:
    """Return the name of a user of a tenant in an index that all tenants share."""
    return hashlib.sha256(msgspec.json.encode([tenant, user])).hexdigest()[:32]
