"""Links in messages, by which a question is answered without signing in: the token in each stands for those who were told.

A token is for one question as its audience was told of it, and for a quarter of an hour. Telling again, handing on and an
answer end it, because it names the question as it was; so nothing is stored of it. What one is good for is in desks/confirming.py.
"""

from __future__ import annotations

import hashlib

import msgspec

from baton.core.log.answers import audience
from baton.core.log.events import Ask
from baton.core.log.state import State
from baton.ports.notices import LINK_LASTS_MS
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.people.tokens import Claims, Secrets, token_for

LASTS_MS = LINK_LASTS_MS


class Confirmation(Claims, frozen=True, kw_only=True):
    """Of those who were told of a question. `until`: its end; `to`: who they are; `seal`: what they were told."""

    purpose = b"confirmation\n"
    ask: str = msgspec.field(name="q")
    until: int = msgspec.field(name="u")
    to: str = msgspec.field(name="p")
    seal: str = msgspec.field(name="d")


class Links:
    """Links to a page, `url`, that shows the question and sends what its reader answers."""

    def __init__(self, context: InvocationContext, secrets: Secrets, url: str) -> None:
        self._context, self._secrets, self._url = context, secrets, url

    async def to(self, state: State, ask: Ask, now: int) -> str:
        """The address, with the token behind a `#`: no server that shows the page gets it. Raises engine faults."""
        about = Confirmation(
            tenant=state.origin.tenant,
            saga=state.origin.saga,
            ask=ask.id,
            until=min(now + LASTS_MS, ask.ends_at or now + LASTS_MS),
            to=":".join(audience(state, ask.to)),
            seal=seal_of(state, ask),
        )
        return f"{self._url}#{await token_for(self._context, self._secrets, about)}"


def seal_of(state: State, ask: Ask) -> str:
    """Tells apart all that a reader was told of: the question, what an approval is for, and which time it was.

    And in which branch: a fork to before the answer asks again, and the link of that answer has been used.
    """
    said = [
        state.lineage.branch,
        ask.id,
        ask.told_at,
        ask.moved_at,
        ask.digest,
        ask.title,
        ask.message,
        ask.details,
        ask.actions,
    ]
    encoded = msgspec.json.encode([*said, ask.schema], order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:32]
