"""Answers by a link: what the token in a message is good for. Tokens are made in people/links.py. Loaded with the first of them."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from msgspec import structs

from baton.core.log.answers import Answer
from baton.core.log.events import Ask
from baton.core.log.state import State
from baton.errors import LinkOver, NotFound
from baton.runtime.engine.request import Caller, Request
from baton.runtime.people.links import LASTS_MS, Confirmation, seal_of
from baton.runtime.people.tokens import claims_of

_NONE = "there is no such question"


class Answering(Protocol):
    """`Service.answer`."""

    async def __call__(
        self, saga: str, answer: Answer, key: str, check: Callable[[State, Ask, int], None]
    ) -> dict[str, Any]: ...


async def caller_with(request: Request, token: str) -> Caller:
    """The caller that a token stands for, in the place of an identity. Raises `NotFound`."""
    said = await _read(request, token)
    return replace(request.caller, tenant=said.tenant, user=f"link:{said.to}")


async def answer_by(answering: Answering, request: Request, token: str, answer: Answer) -> dict[str, Any]:
    """See `Service.confirm`."""
    said = await _read(request, token)
    if said.tenant != request.caller.tenant:
        raise NotFound(_NONE)

    def check(state: State, ask: Ask, now: int) -> None:
        if not hmac.compare_digest(seal_of(state, ask), said.seal):
            raise LinkOver(
                "people were told again since, or the question was claimed, handed on or changed: only a newer link counts"
            )
        if now >= said.until:
            raise LinkOver(
                f"this link was good for {LASTS_MS // 60_000} minutes: have them told again for a new one"
            )

    try:
        return await answering(said.saga, structs.replace(answer, ask=said.ask), "", check)
    except NotFound as error:  # the same as for a token that is none: it says nothing of what there is
        raise NotFound(_NONE) from error


async def _read(request: Request, token: str) -> Confirmation:
    said = await claims_of(request.parts.context, request.engine.secrets, Confirmation, token)
    if said is None:
        raise NotFound(_NONE)
    return said
