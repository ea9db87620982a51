"""Aliases of a tenant: applied to calls of models, and counted. Operators decide about them in
requests/aliases.py.

All are one entity, which is read only after a model has named an argument that its tool does not take.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from baton.core.failures import sanitised
from baton.core.models.aliases import Alias, count_mismatch, mismatch, names_for, renamed
from baton.core.models.messages import parse_answer
from baton.errors import BatonError, NotAllowedNow
from baton.ports.models import ModelCall
from baton.ports.outside import Entities
from baton.runtime.invocation.context import StoreRetrier

logger = logging.getLogger("baton.aliases")

_PLACE = "~aliases", "all"  # a type of entities that no document can write
_TRIES = 5
WITHIN_MS = 2_000
"""Longest time in milliseconds for which an answer of a model waits for its tenant's aliases."""


class AliasBook:
    """The stored aliases of a tenant."""

    def __init__(self, entities: Entities, call: StoreRetrier, tenant: str) -> None:
        self._entities, self._call, self._tenant = entities, call, tenant

    async def read(self) -> tuple[int, tuple[Alias, ...]]:
        """Return the version, 0 for none, and the aliases."""
        there = await self._call(self._entities.get, self._tenant, *_PLACE)
        return (0, ()) if there is None else (there.version, msgspec.convert(there.data, tuple[Alias, ...]))

    async def change(self, why: str, how: Callable[[Sequence[Alias]], Sequence[Alias]]) -> Sequence[Alias]:
        """Write what `how` makes of the aliases, unless that is the same object. `why`: names the change."""
        for _ in range(_TRIES):
            version, aliases = await self.read()
            changed = how(aliases)
            if changed is aliases:
                return aliases
            data, key = msgspec.to_builtins(changed), f"{why}.{version}"
            done = await self._call(
                self._entities.put, self._tenant, *_PLACE, data, key=key, expected=version
            )
            if not done.conflict:
                return changed
        raise NotAllowedNow("the aliases are being changed by others: try again")


class NamesOfModels:
    """The names in the calls of one answer. `tools`: the tool and the parameters by the name of a call."""

    def __init__(self, book: AliasBook, saga: str, now: int, *, approves: bool) -> None:
        self._book, self._saga, self._now, self._approves = book, saga, now, approves

    async def corrected(
        self, asked: Sequence[ModelCall], tools: Mapping[str, tuple[str, bytes]], turn: str
    ) -> list[tuple[ModelCall, dict[str, str]]]:
        """Return the calls, those with approved aliases under the right names, and the names that were
        replaced. Count the mismatches of the others.

        Best effort: without an answer of the store, the calls are as the model has written them.
        """
        strange = {number: found for number, one in enumerate(asked) if (found := _strange(one, tools))}
        calls: list[tuple[ModelCall, dict[str, str]]] = [(one, {}) for one in asked]
        if not strange:
            return calls
        mismatches: dict[str, tuple[str, str, str]] = {}
        try:
            _, aliases = await self._book.read()
            for number, (tool, parameters, arguments) in strange.items():
                names = names_for(aliases, tool, parameters, arguments)
                right = renamed(arguments, names)
                if names:
                    written = msgspec.json.encode(right).decode()
                    calls[number] = replace(asked[number], arguments=written), names
                if (pair := mismatch(parameters, right)) is not None and sanitised(pair[0]) == pair[0]:
                    mismatches[f"{turn}-{number}"] = (tool, *pair)
            await self._count(mismatches, turn)
        except BatonError:
            logger.warning("mismatches of names not counted", exc_info=True, extra={"saga": self._saga})
        return calls

    async def _count(self, found: Mapping[str, tuple[str, str, str]], turn: str) -> None:
        """Count the mismatch of each of these calls, in one write at most."""

        def more(aliases: Sequence[Alias]) -> Sequence[Alias]:
            for call, one in found.items():
                aliases = count_mismatch(aliases, one, self._saga, call, self._now, approves=self._approves)
            return aliases

        if found:
            await self._book.change(f"{self._saga}/{turn}", more)


def _strange(
    call: ModelCall, tools: Mapping[str, tuple[str, bytes]]
) -> tuple[str, Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the tool, its parameters and the arguments of a call with names that its tool refuses."""
    tool, schema = tools.get(call.name, ("", b""))
    if not tool:
        return None
    try:
        arguments = parse_answer(call.arguments or "{}")
    except ValueError:
        return None
    parameters = msgspec.json.decode(schema)
    if not isinstance(arguments, dict) or parameters.get("additionalProperties") is not False:
        return None
    is_known = arguments.keys() <= parameters.get("properties", {}).keys()
    return None if is_known else (tool, parameters, arguments)
