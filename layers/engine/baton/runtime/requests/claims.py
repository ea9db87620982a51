"""Claims of once-only effects, as operators find, read and free them.

A saga's claims are found by the keys of its calls, which are computed from its log. The claims themselves are
made in runtime/steps/effects.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from baton.core.decide.context import FetchedValues
from baton.core.decide.program import Program
from baton.core.effects.keys import WITHIN_SAGA, KeyIncomplete, key_of, parameters_of
from baton.core.effects.toolspec import ONCE, ToolSpec, tools_for
from baton.core.expressions import iso, nearest, with_hint
from baton.core.log.questions import visible_arguments
from baton.core.log.records import Failure
from baton.core.log.slots import Slot
from baton.core.log.state import State
from baton.core.read.answers import ITEM, AttemptFailure, Count, LargeValue, Time, View
from baton.core.read.step_runs import call_at, open_slots, page_of_runs
from baton.core.read.views import of_failure
from baton.errors import NotAllowedNow, NotFound, UserError
from baton.ports import StepFailure
from baton.ports.records import COMPLETED, FAILED, FREED, IN_PROGRESS, Effect
from baton.runtime.engine.request import Request
from baton.runtime.invocation.attempt import tool_called
from baton.runtime.requests.queries import Fetching, story_of
from baton.runtime.steps.effects import EffectRecords, decode
from baton.runtime.steps.steps import GIVEN_KEY, key_for

logger = logging.getLogger("baton.claims")

UNKNOWN = "unknown_outcome"
CLAIM_STATUSES = (IN_PROGRESS, UNKNOWN, COMPLETED, FAILED, FREED)
MOST_GENERATIONS = 20  # of one business key that is undone and used anew
_AT_ONCE = 8
_LIVE = (
    "an attempt of saga {saga} at `{slot}` holds the claim until {until} and may be acting: if it is freed, the next call "
    "with this key acts, too, and `{tool}` may happen twice"
)
_UNKNOWN = (
    "an attempt of saga {saga} at `{slot}` did not say how it ended: `{tool}` may have happened, and if the claim is "
    "freed, the next call with this key acts, and it may happen twice; look at the service first"
)
_DONE = "saga {saga} has done `{tool}` at `{slot}`: if the claim is freed, the next call with this key does it again"
_WARNINGS: Mapping[str, str] = {IN_PROGRESS: _LIVE, UNKNOWN: _UNKNOWN, COMPLETED: _DONE}
"""Consequences of freeing a claim, by its status. A claim of another status is freed without `force`."""


class EffectClaim(View):
    """Claim of a once-only effect: the saga that holds it, or made its result. Secrets are masked."""

    key: Annotated[str, "Idempotency key, which the tool received as `context.idempotency_key`."]
    tool: str
    status: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": list(CLAIM_STATUSES)})],
        "`unknown_outcome`: the attempt is over and did not record how it ended. Later calls ask `verify` or a person "
        "first. `failed`, `freed`: the next call acts.",
    ]
    saga: Annotated[str, "Saga whose attempt holds the claim, or has made its result."]
    node: str
    iteration: list[int]
    attempt: Annotated[Count, "Number of that attempt. 0 if it is not known."]
    since: Annotated[Time, "Time when the effect was first claimed."]
    updated_at: Time
    held_until: Annotated[
        Time | None, "For a claim in progress: time by which its attempt has ended in any case."
    ]
    result: Annotated[Any, "Recorded result. Null if there is none, or if it is large."]
    large_result: LargeValue | None
    error: AttemptFailure | None
    shared_until: Annotated[
        Time | None, "Time until which other calls with this key get the result. Null: until `expires_at`."
    ]
    expires_at: Annotated[Time | None, "Time after which the claim may be deleted. Null: never."]
    freed_by: str | None
    freed_because: str | None
    item: Annotated[str | UnsetType, ITEM] = UNSET


class EffectClaimPage(View):
    """Claims of a saga in the order of its log, or those of a key."""

    claims: list[EffectClaim]
    next: Annotated[int | None, "Value of `after` for the next page. Null for the last page."]


class ClaimService:
    """The claims of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._request, self._engine = request, request.engine
        self._call, self._clock = request.parts.call, request.engine.clock
        self._tenant, self._by = request.caller.tenant, request.caller.by
        self._effects = request.engine.store.effects

    # -- looking

    async def of_saga(self, saga: str, after: int, limit: int) -> EffectClaimPage:
        """Return the claims that calls of a saga have made or met, in the order of its log; `next` continues
        it. Raises `NotFound`, `TooLarge`.
        """
        opened = await self._request.open(saga)
        engine, program = self._engine, opened.program
        story = await story_of(
            engine.log,
            self._call,
            self._clock,
            opened,
            lambda story: page_of_runs(story, after, limit)[1] is not None,
            wants=lambda _, version: version > after,
        )
        runs, rest = page_of_runs(story, after, limit)
        places = [(run.before, run.event.slot) for run in runs]
        if rest is None:
            places += [(story.state, slot) for slot in open_slots(story)]
        fetching = Fetching(self._engine, self._call, self._tenant, opened.history)
        tools, keys = engine.tools, dict[str, None]()
        for state, slot in places:
            if key := await fetching.of(partial(claim_key, program, state, slot, tools)):
                keys[key] = None
        return EffectClaimPage(claims=await self._there(list(keys)), next=rest)

    async def of_key(
        self, tool: str, given: Mapping[str, Any], key: str, user: str, at: int
    ) -> EffectClaimPage:
        """Return the claims of calls of a tool with the parameters `given`, or with the `key` of a document.

        `user`: that of the calls, by default the caller's; `at`: the time at which they became ready, for a
        key of a window. Raises `NotFound`, and `UserError` for a tool or parameters without such a key.
        """
        tools = tools_for(self._tenant, self._engine.tools)
        if (spec := tools.get(tool)) is None:
            raise NotFound(with_hint(f"there is no tool `{tool}`", nearest(tool, tools)))
        rule = GIVEN_KEY if key else spec.key
        if spec.effect != ONCE:
            raise UserError(f'calls of `{tool}` claim nothing: only a tool with `effect="once"` does')
        if rule.strategy in WITHIN_SAGA:
            raise UserError(f"calls of `{tool}` in two sagas are never the same: list the claims of the saga")
        parameters = {"key": key} if key else parameters_of(spec.key, given, spec.parameters)
        found: list[EffectClaim] = []
        for generation in range(MOST_GENERATIONS):
            try:
                made = key_of(
                    rule,
                    tenant=self._tenant,
                    user=user or self._request.caller.user,
                    saga="",
                    node="",
                    tool=tool,
                    parameters=parameters,
                    occurrence=(),
                    at=at or self._clock.now(),
                    generation=generation,
                )
            except KeyIncomplete as error:
                raise UserError(str(error)) from error
            if not (there := await self._there([made])):
                break
            found += there
        return EffectClaimPage(claims=found, next=None)

    async def show(self, key: str) -> EffectClaim:
        """Return a claim. Raises `NotFound`."""
        return self._view(await self._read(key))

    async def _there(self, keys: Sequence[str]) -> list[EffectClaim]:
        """Return the claims that exist of these keys."""
        found: list[Effect | None] = []
        for first in range(0, len(keys), _AT_ONCE):
            part = keys[first : first + _AT_ONCE]
            found += await asyncio.gather(
                *(self._call(self._effects.read, self._tenant, key) for key in part)
            )
        return [self._view(effect) for effect in found if effect is not None]

    async def _read(self, key: str) -> Effect:
        effect = await self._call(self._effects.read, self._tenant, key)
        if effect is None:
            raise NotFound(f"there is no claim `{key}`")
        return effect

    def _status(self, effect: Effect) -> str:
        is_over = effect.until + self._engine.limits.clock_skew_ms <= self._clock.now()
        return UNKNOWN if effect.status == IN_PROGRESS and is_over else effect.status

    def _view(self, effect: Effect) -> EffectClaim:
        status, place = self._status(effect), Slot.parse(effect.slot)
        value = decode(effect.data).value if status == COMPLETED and effect.data else None
        is_large = value is not None and bool(value.ref)
        failed = Failure(effect.code, effect.message, kind=effect.kind) if status == FAILED else None
        return EffectClaim(
            key=effect.key,
            tool=effect.tool,
            status=status,
            saga=effect.saga,
            node=place.node,
            iteration=list(place.iteration),
            item=place.item or UNSET,
            attempt=effect.attempt,
            since=iso(effect.first),
            updated_at=iso(effect.updated),
            held_until=iso(effect.until) if status == IN_PROGRESS else None,
            result=None if value is None or is_large else visible_arguments(value.v),
            large_result=LargeValue(ref=value.ref, size=value.size)
            if value is not None and is_large
            else None,
            error=None if failed is None else AttemptFailure(**of_failure(failed)),
            shared_until=iso(effect.shared_until) if effect.shared_until else None,
            expires_at=iso(effect.expires) if effect.expires else None,
            freed_by=effect.by or None,
            freed_because=effect.message if effect.by else None,
        )

    # -- freeing

    async def free(self, key: str, reason: str, *, force: bool) -> EffectClaim:
        """Free a claim, so that the next call with its key acts. Repeated, it changes nothing.

        `force`: also one under which the effect has happened, or may have happened. Raises `NotFound`, and
        `NotAllowedNow` without `force`, or if the claim changes meanwhile.
        """
        there = await self._read(key)
        if there.status == FREED:
            return self._view(there)
        status = self._status(there)
        warning = _WARNINGS.get(status, "").format(
            saga=there.saga, slot=there.slot, tool=there.tool, until=iso(there.until)
        )
        if warning and not force:
            raise NotAllowedNow(f"{warning} (`force` frees it all the same)")
        ended = EffectRecords(self._request.parts.context).freed(there)
        # Another name, so that the holder of the claim, if it lives, learns of it.
        freed = replace(ended, owner=f"{there.owner}/freed", by=self._by, message=reason)
        found = await self._call(self._effects.change, there, freed)
        if found is not None and found.owner != freed.owner:
            raise NotAllowedNow(
                f"the claim was changed meanwhile by saga {found.saga} at `{found.slot}`: look at it again"
            )
        logger.warning(
            "claim freed",
            extra={
                "tenant": self._tenant,
                "key": key,
                "tool": there.tool,
                "saga": there.saga,
                "slot": there.slot,
                "was": status,
                "by": self._by,
                "reason": reason,
            },
        )
        return self._view(freed)


def claim_key(
    program: Program, state: State, slot: str, tools: Mapping[str, ToolSpec], found: FetchedValues
) -> str:
    """Return the key under which the attempt at a slot in this state claims its effect; empty if it claims
    none. Raises `LackingError`.
    """
    step = call_at(program, state, slot, found)
    spec = None if step is None else tools.get(tool_called(step))
    if step is None or spec is None or spec.effect != ONCE:
        return ""
    try:
        return key_for(state, step, spec, spec.name)
    except StepFailure:
        return ""
