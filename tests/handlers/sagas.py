"""Sagas under chosen names, put into the table by the engine's own start, and wakes for them.

No assertions here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from baton.core.log.events import Ask, AttemptFailed, Event, Failure, Notice, Parked, StrategyChosen
from baton.ports import SagaRef
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import Caller
from baton.runtime.invocation.context import Invocation
from baton.runtime.log.history import History
from baton.runtime.requests.service import Service
from baton.runtime.starting.start import StartRequest, body_hash
from tests.handlers.deployment import changed, payload

ADA = SagaRef("acme", "dinner-for-ada")
ALL = SagaRef("acme", "dinner-for-all")
GRACE = SagaRef("acme", "dinner-for-grace")

ECHO = """
name: echo
nodes:
  say: {tool: trial.echo, with: {value: "${input}"}}
output: "${ctx.say.output}"
"""
PARTY = """
name: party
nodes:
  guests: {wait: {signal: guests_changed}}
output: "${ctx.guests.output}"
"""

SILENT = """
name: silent
nodes:
  say: {wait: {signal: never}}
"""


def begin(engine: Engine, ref: SagaRef, document: str = ECHO, given: Any = None, user: str = "ada") -> None:
    """Register the workflow, and start a saga with this very id; nothing runs it."""

    async def work() -> None:
        now = engine.clock.now()
        caller = Caller(tenant=ref.tenant, user=user, request=f"seed-{ref.id}")
        registered = await Service(engine, caller, now + 10_000).register(document, json_only=False)
        scope = InvocationScope(engine, Invocation(caller.request, now, now + 10_000))
        definition = registered.definition
        request = StartRequest(
            ref=ref,
            definition=definition,
            program=await scope.catalog.program(ref.tenant, definition.graph),
            given=given,
            user=user,
            invocation=caller.request,
            traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01",
            body_hash=body_hash([definition.name, given]),
        )
        await scope.starter.start(request)

    asyncio.run(work())


def append(engine: Engine, *events: Event, ref: SagaRef = ADA) -> None:
    """Put one entry as a worker would; nothing is decided."""
    append_each(engine, [events], ref)


def append_each(engine: Engine, entries: Iterable[Iterable[Event]], ref: SagaRef = ADA) -> None:
    """Put entries with these events."""

    async def work() -> None:
        now = engine.clock.now()
        scope = InvocationScope(engine, Invocation("worker-1", now, now + 10_000))
        head = await scope.call(scope.log.read_head, ref)
        assert head is not None
        history = History(scope.log, scope.blobs, scope.call, ref)
        await history.load(head)
        for events in entries:
            entry = history.next_entry([*events], at=now, invocation="worker-1", epoch=1)
            assert await history.append(entry)

    asyncio.run(work())


def asking(
    engine: Engine,
    ref: SagaRef = ADA,
    document: str = ECHO,
    *,
    escalated: bool = False,
    ask: str = "0.say.3",
    user: str = "ada",
) -> None:
    """Begin a saga whose only step, `say`, has failed for good: it asks its user, or the person on call."""
    begin(engine, ref, document, user=user)
    failure = Failure(code="service_down", message="The service is down.", node="say", attempt=3, at=1)
    tried: dict[str, Any] = {"started_at": 0, "ended_at": 1, "tool_version": "", "schema_hash": ""}
    question = Ask(
        id=ask,
        kind="error_resolution",
        message="What now?",
        options=("retry", "use", "fail"),
        expires_at=0,
        to="on_call" if escalated else "",
        may_change=("value",),
    )
    chosen = StrategyChosen(
        node="say", strategy="escalate" if escalated else "ask_user", code="service_down", at=1, ask=question
    )
    events: list[Event] = [
        AttemptFailed(node="say", attempt=3, failure=failure, tool="trial.echo", **tried),
        chosen,
    ]
    if escalated:
        events.append(Parked(code="escalated", message="What now?", node="say"))
    append(engine, *events, ref=ref)
    notice = Notice(
        key=f"{ref.id}/{ask}.incident",
        to="on_call",
        code="service_down",
        message="The service is down.",
        severity="high",
        node="say",
        at=1_767_225_600_000,
        incident=True,
    )
    engine.store.notice_record.open(ref.tenant, ref.id, notice)


def batch(*bodies: str) -> dict[str, Any]:
    """An SQS event with these bodies, made from one of the payloads; ids are m0, m1 …"""
    record = payload("worker", "wakes")["Records"][0]
    records = [changed(record, messageId=f"m{n}", body=body) for n, body in enumerate(bodies)]
    return {"Records": records}


def wake(ref: SagaRef, version: int = 1) -> str:
    """The body of a wake."""
    return f'{{"saga":"{ref}","v":{version}}}'


def failures(answer: Any) -> list[str]:
    """The ids in a partial batch response."""
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
