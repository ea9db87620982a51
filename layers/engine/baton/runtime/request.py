"""One request: who asks, until when, and the saga that is asked about.

What can be asked for is in `service` (what changes something) and `queries` (what only looks).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from baton.core.decide.program import Program
from baton.core.log.state import LONGEST_ID
from baton.errors import NotFound
from baton.ports import Head, SagaRef
from baton.runtime.context import Invocation
from baton.runtime.deadline import Deadline
from baton.runtime.history import History
from baton.runtime.parts import Engine, Parts

SAGA_ID = rf"[A-Za-z0-9._-]{{1,{LONGEST_ID}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks: taken from the verified identity, never from the request's own words.

    `user` is who pays. `session` tells apart those who share it, by a name that they may choose: it is for the log only.
    `roles`: what decides beyond the routes that they open, such as whose questions the caller may answer.
    """

    tenant: str
    user: str
    request: str
    traceparent: str = ""
    session: str = ""
    roles: frozenset[str] = frozenset()

    @property
    def by(self) -> str:
        """The name for the log."""
        return f"{self.user}/{self.session}" if self.session else self.user


@dataclass(frozen=True, slots=True)
class Opened:
    """A saga of the caller's tenant, with its log folded."""

    head: Head
    history: History
    program: Program


class Request:
    """A caller with what it may use, until `deadline` (epoch ms). A caller sees its own tenant's sagas only."""

    def __init__(self, engine: Engine, caller: Caller, deadline: int) -> None:
        # Unique even where a request id is repeated: entries are recognised as one's own by it.
        self.caller = replace(caller, request=f"{caller.request}.{engine.entropy.token(24)}")
        self.engine = engine
        invocation = Invocation(self.caller.request, engine.clock.now(), deadline)
        self.parts = Parts(engine, invocation, Deadline.without_reserve(invocation))

    async def open(self, saga: str) -> Opened:
        """Load a saga. Raises `NotFound`."""
        if not re.fullmatch(SAGA_ID, saga):
            raise NotFound(f"there is no saga `{saga[:80]}`")
        ref = SagaRef(self.caller.tenant, saga)
        head = await self.parts.call(self.engine.log.read_head, ref)
        if head is None:
            raise NotFound(f"there is no saga `{saga}`")
        history = History(self.engine.log, self.engine.blobs, self.parts.call, ref)
        await history.load(head)
        if history.state.version == 0:
            await self.parts.starter.put_entry_one(head)
            await history.catch_up()
        program = await self.parts.catalog.program(ref.tenant, history.state.origin.graph)
        return Opened(head, history, program)
