"""A request that a provider of models works on while no worker runs: handed over, looked at, and cancelled.

When it is looked at is decided in core/nodes/thinking.py. What its answer comes to is said in model_caller.py, as of any answer.
Loaded with the first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from decimal import Decimal

from baton.core.expressions.durations import lasting
from baton.core.log.folding.model_sums import UNANSWERED
from baton.core.log.records import Response
from baton.core.log.work import Callback
from baton.core.models.usage import Usage
from baton.core.money import MICRO, Assumed
from baton.ports import StepContext, StepFailure
from baton.ports.models import ModelAnswer, ModelFailure, Models

logger = logging.getLogger("baton.models")

CANCELS = 3
"""So often a provider is asked to cancel a request."""
CANCEL_S = 2.0


class UnfinishedError(Exception):
    """A look has found that the request is not over, or has found out nothing. It is looked at again."""


async def look(models: Models, work: Callback, context: StepContext, now: int) -> ModelAnswer:
    """The answer. Raises `UnfinishedError`; and `StepFailure` for a request that has failed, or whose time is over."""
    response = work.response
    assert response is not None, "nothing else is looked at"
    is_last = now >= work.until
    try:
        async with asyncio.timeout(max(context.deadline_ms - now, 0) / 1_000):
            answer = await models.collect(response.model, response.id)
    except ModelFailure:
        raise
    except (TimeoutError, StepFailure) as error:
        if not is_last:
            raise UnfinishedError from error
        await cancel(models, (response,))
        raise _too_late(work, f"; the last look at it: {error}") from error
    if answer is not None:
        return answer
    if not is_last:
        raise UnfinishedError
    await cancel(models, (response,))
    raise _too_late(work)


def given_back(response: Response, context: StepContext) -> None:
    """What was held is not spent any more: the provider has said what the request has used."""
    context.spent.append(Assumed(Decimal(-response.held) / MICRO))
    if response.tokens:
        read, written = response.tokens
        context.usage.append(Usage(model=UNANSWERED, input=-read, output=-written))


async def cancel(models: Models, responses: Collection[Response]) -> None:
    """Best effort: what it costs is spent all the same."""
    await asyncio.gather(*(_cancel(models, one) for one in responses))


async def _cancel(models: Models, response: Response) -> None:
    why = ""
    for _ in range(CANCELS):
        try:
            async with asyncio.timeout(CANCEL_S):
                await models.cancel(response.model, response.id)
            return
        except (TimeoutError, StepFailure) as error:
            why = str(error) or "it did not answer"
    logger.warning("not cancelled", extra={"response": response.id, "why": why})


def _too_late(work: Callback, more: str = "") -> StepFailure:
    return StepFailure("timeout", f"no answer within {lasting(work.until - work.since)}{more}", happened=True)
