"""Decisions of operators on aliases: names that models give to parameters of tools."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from baton.core.effects.toolspec import tools_for
from baton.core.expressions import iso, nearest, with_hint
from baton.core.models.aliases import APPROVED, MOST_ALIASES, REJECTED, STATUSES, Alias, useless_because
from baton.core.read.answers import Time, View
from baton.errors import NotAllowedNow, NotFound, UserError
from baton.runtime.engine.request import Request
from baton.runtime.models.aliases import AliasBook

logger = logging.getLogger("baton.aliases")

DECISIONS = APPROVE, REJECT, DROP = "approve", "reject", "drop"


class ParameterAlias(View):
    """Name that models give to a parameter of a tool. `approved`: calls of models may use it."""

    tool: str
    given: Annotated[str, "Name that models give."]
    parameter: Annotated[str, "Parameter that is meant."]
    status: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": list(STATUSES)})],
        "`counted`: fewer than five equal mismatches.",
    ]
    mismatches: int
    sagas: Annotated[list[str], "Sagas of the counted mismatches."]
    by: Annotated[str | None, "Operator who decided, or `AliasApproval`, the setting."]
    at: Annotated[Time, "Time of the decision, or else of the last mismatch."]
    useless_because: Annotated[str | None, "Reason why an approved alias is not applied at present."]


class ParameterAliases(View):
    """Aliases of a tenant, by tool and given name."""

    aliases: list[ParameterAlias]


class AliasService:
    """The aliases of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._tenant, self._by, self._clock = (
            request.caller.tenant,
            request.caller.by,
            request.engine.clock,
        )
        self._tools = tools_for(self._tenant, request.engine.tools)
        self._book = AliasBook(request.engine.store.entities, request.parts.call, self._tenant)

    async def listed(self) -> ParameterAliases:
        """Return all aliases."""
        _, aliases = await self._book.read()
        return self._page(aliases)

    async def decide(self, tool: str, given: str, parameter: str, decision: str) -> ParameterAliases:
        """Approve, reject or drop an alias, and return all. A repeated request has no effect.

        One of a tool that was never counted can be approved, too. A rejected one is not counted or proposed
        any more; a dropped one is forgotten, with its mismatches.
        Raises `NotFound`, `UserError`, `NotAllowedNow`.
        """
        wanted = Alias(tool=tool, given=given, parameter=parameter, by=self._by, at=self._clock.now())
        if decision == APPROVE:
            self._check(wanted)

        def decided(aliases: Sequence[Alias]) -> Sequence[Alias]:
            old = next((one for one in aliases if one.key == wanted.key), None)
            if old is None and wanted.tool not in self._tools and decision == APPROVE:
                hint = nearest(wanted.tool, self._tools)
                raise NotFound(with_hint(f"there is no tool `{wanted.tool}`", hint))
            others = tuple(one for one in aliases if one is not old)
            if decision == DROP:
                return aliases if old is None else others
            status = APPROVED if decision == APPROVE else REJECTED
            if old is not None and old.status == status:
                return aliases
            rival = next((one for one in others if one.is_rival(wanted)), None)
            if rival is not None and status == APPROVED:
                raise NotAllowedNow(
                    f"`{given}` of `{tool}` is an alias of `{rival.parameter}`: drop it first"
                )
            if old is None and len(others) >= MOST_ALIASES:
                raise NotAllowedNow(
                    f"there are {MOST_ALIASES} aliases, the most there may be: drop some first"
                )
            seen = () if old is None else old.seen
            return (*others, replace(wanted, status=status, seen=seen))

        why = "/".join((decision, *wanted.key, self._by, str(wanted.at)))
        aliases = await self._book.change(why, decided)
        logger.warning(
            "alias decided",
            extra={
                "tenant": self._tenant,
                "decision": decision,
                "tool": tool,
                "alias": given,
                "parameter": parameter,
                "by": self._by,
            },
        )
        return self._page(aliases)

    def _check(self, wanted: Alias) -> None:
        """Refuse an alias that would do nothing."""
        if why := self._useless_because(wanted):
            raise UserError(f"{why}: an alias of `{wanted.given}` would do nothing")

    def _useless_because(self, alias: Alias) -> str:
        """Return the reason why an alias has no effect; empty for an operation of an API, which is not known
        here.
        """
        spec = self._tools.get(alias.tool)
        return "" if spec is None else useless_because(alias, spec.parameters)

    def _page(self, aliases: Sequence[Alias]) -> ParameterAliases:
        return ParameterAliases(aliases=[self._view(one) for one in sorted(aliases, key=lambda one: one.key)])

    def _view(self, alias: Alias) -> ParameterAlias:
        is_applied = alias.status == APPROVED
        return ParameterAlias(
            tool=alias.tool,
            given=alias.given,
            parameter=alias.parameter,
            status=alias.status,
            mismatches=len(alias.seen),
            sagas=list(alias.sagas),
            by=alias.by or None,
            at=iso(alias.at),
            useless_because=(is_applied and self._useless_because(alias)) or None,
        )
