"""Scenarios in which steps fail: tools that fail in every way, effects that may happen only once, and people who answer.

What must hold afterwards is in verdict.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from baton import Context, Key, StepFailure, tool
from baton.core.failures.strategies.base import ESCALATED
from baton.core.log.questions import Answer
from baton.errors import EngineFault, KeyReused, NotAllowedNow, NotFound
from baton.tools.define import Registry
from tests.kit.faults import Crash
from tests.kit.process import RUNS_IN, pause

if TYPE_CHECKING:
    from tests.kit.toolbox import Books
    from tests.kit.world import World

# A failure of each class that one tool can meet, one after the other; for what is recoverable there is another tool.
EVERY_CLASS = (
    "service_unavailable",  # transient
    "missing_credentials",  # user_resolvable
    "never_heard_of",  # unknown
    "database_down",  # catastrophic
)


def add_misbehaving(registry: Registry) -> None:
    """Tools that harm the process that they run in, or give what no tool may give."""

    @tool("kill", registry=registry)
    async def kill() -> None:
        """Takes its whole process down, as a segfault or running out of memory would."""
        process = RUNS_IN.get()
        assert process is not None
        process.is_dead = True
        raise Crash

    @tool("stubborn", registry=registry, timeout="10m")
    async def stubborn() -> None:
        """Ignores being cancelled, for a minute."""
        loop = asyncio.get_running_loop()
        end = loop.time() + 60
        while loop.time() < end:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                continue

    @tool("quits", registry=registry)
    async def quits() -> None:
        """Cancels itself, as a library may."""
        raise asyncio.CancelledError

    @tool("odd", registry=registry)
    async def odd(what: str) -> Any:
        return {"nan": float("nan"), "set": {1, 2}, "huge": "x" * 6_000_000}[what]


def add_mishaps(registry: Registry, books: Books) -> None:
    """Tools that fail, each as many calls as it is told, and then do not."""

    @tool("fails_as_told", registry=registry)
    async def fails_as_told(n: int, context: Context, fails: list[str]) -> dict[str, int]:
        """Fails with these codes, one call after the other; the last one for ever, if it is permanent."""
        await pause(0.1)
        number = books.calls[context.node]
        books.calls[context.node] += 1
        if number < len(fails) or fails[-1:] == ["bad_request"]:
            raise StepFailure(fails[min(number, len(fails) - 1)], "not this time")
        books.act(context.idempotency_key, [context.node, n])
        return {"n": n + 1}

    @tool(
        "elsewhere",
        registry=registry,
        effect="pure",
        instead_of="fails_as_told",
        hints=["find_alternative_resource"],
    )
    async def elsewhere(n: int, fails: list[str]) -> dict[str, int]:
        await pause(0.1)
        return {"n": n + 1}

    @tool(
        "log_in",
        registry=registry,
        effect="pure",
        carries_out=["refresh_credentials", "refresh_and_retry"],
        for_tools=["work", "fails_as_told", "pay", "take_table"],
    )
    async def log_in() -> None:
        await pause(0.1)

    @tool("pay", registry=registry, effect="once", verify="find_payment", cost_usd="0.02", key=Key.saga())
    async def pay(n: int, context: Context, fails: int = 0) -> dict[str, str]:
        """Once a saga, at whatever node. Its service honours no key. It may fail before or, without a word, after the deed."""
        await pause(0.2, stands_still=False)
        books.calls[f"pay {n}"] += 1
        if books.calls[f"pay {n}"] <= fails:
            raise StepFailure("rate_limited", "come back later", happened=False)
        books.do(f"pay {n}")
        context.spend("0.01")
        await pause(0.2, stands_still=False)
        if fails and books.calls[f"pay {n}"] == fails + 1:
            raise ConnectionError("the answer was lost")
        return {"receipt": f"pay {n}"}

    @tool("find_payment", registry=registry, effect="pure")
    async def find_payment(n: int) -> dict[str, Any]:
        await pause(0.1)
        there = f"pay {n}" in books.happened
        return {"happened": there, "result": {"receipt": f"pay {n}"} if there else None}

    @tool("send", registry=registry, effect="once")
    async def send(n: int, context: Context) -> dict[str, str]:
        """Only a person can look whether it has happened."""
        await pause(0.2, stands_still=False)
        books.do(f"send {n}")
        context.spend("0.01")
        await pause(0.2, stands_still=False)
        return {"receipt": f"send {n}"}

    @tool(
        "take_table",
        registry=registry,
        effect="once",
        verify="find_table",
        key=Key.business("table", "table"),
    )
    async def take_table(table: str, seconds: float = 0.3) -> dict[str, str]:
        """One for all sagas."""
        await pause(seconds, stands_still=False)
        books.do(f"book {table}")
        return {"receipt": f"book {table}"}

    @tool("find_table", registry=registry, effect="pure")
    async def find_table(table: str, seconds: float = 0.3) -> dict[str, Any]:
        there = f"book {table}" in books.happened
        return {"happened": there, "result": {"receipt": f"book {table}"} if there else None}


EFFECTS = """
name: effects
retry: {base: 300ms, max_delay: 1s}
nodes:
  pay: {tool: pay, with: {n: 1}}
  lost: {tool: pay, after: pay, with: {n: 2, fails: 1}}
  send: {tool: send, with: {n: 3}}
  book: {tool: take_table, with: {table: window}}
  again: {tool: pay, after: lost, with: {n: 2, fails: 1}}
output: ['${ctx.pay.output.receipt}', '${ctx.lost.output.receipt}', '${ctx.send.output.receipt}',
         '${ctx.book.output.receipt}', '${ctx.again.output.receipt}']
"""
MISHAPS = f"""
name: mishaps
retry: {{base: 300ms, max_delay: 1s}}
nodes:
  each: {{tool: fails_as_told, with: {{n: 1, fails: [{", ".join(EVERY_CLASS)}]}}}}
  moved: {{tool: fails_as_told, with: {{n: 5, fails: [not_found]}}}}
  never: {{tool: fails_as_told, with: {{n: 2, fails: [timeout, bad_request]}}, catch: {{class: permanent, then: handler}}}}
  unused: {{tool: work, after: never, with: {{n: 7}}}}
  handler: {{tool: work, with: {{n: 3}}}}
  late: {{tool: fails_as_told, after: handler, with: {{n: 4, fails: [rate_limited]}}, retry: {{schedule: [40s]}}}}
output: ['${{ctx.each.output.n}}', '${{ctx.moved.output.n}}', '${{ctx.handler.output?}}', '${{ctx.late.output?}}']
"""
DOUBTS = """
name: doubts
retry: {base: 300ms, max_delay: 1s}
nodes:
  one: {tool: pay, with: {n: 1}}
  two: {tool: pay, with: {n: 2}}
  three: {tool: pay, with: {n: 3}}
  door: {tool: take_table, with: {table: door}}
  hall: {tool: take_table, with: {table: hall}}
  send: {tool: send, with: {n: 4}}
  while: {tool: work, with: {n: 1, seconds: 1.2}}
  end: {tool: refuse, after: while, on_failure: {any: [rollback]}}
"""
"""Many effects at once, and an end that comes while they are acted on, or looked at."""


OFTEN, SELDOM_S = 200, 30
"""A person who has looked so often looks as seldom as that: a wake that is lost is made good within an hour."""


async def answering(
    world: World,
    saga: str,
    show: Callable[[World, str], Any],
    answer_to: Callable[[Mapping[str, Any]], Answer],
    every_s: float = 15,
) -> None:
    """A person who looks every now and then, and answers what is asked; with the same key until it is heard."""
    looks = 0
    while world.end(saga) is None and world.troubles is None:  # then another person does (people.py)
        await asyncio.sleep(every_s if looks < OFTEN else max(every_s, SELDOM_S))
        looks += 1
        view = await show(world, saga)
        # An answer sets free what was parked to ask for it, and nothing that was parked for another reason.
        if view["status"] == "parked" and (view["parked"]["code"] != ESCALATED or not view["questions"]):
            with suppress(Crash, EngineFault, NotAllowedNow):
                await world.service().resume(saga)
        for question in view["questions"]:
            if question["node"] is None:
                continue  # it is parked: seen to above
            try:
                await world.service().answer(saga, answer_to(question), f"answer-{question['id']}")
            except (Crash, EngineFault, NotAllowedNow, NotFound, KeyReused):  # what was said before counts
                continue
    await asyncio.sleep(2 * world.stall_s)  # until frozen processes have thawed


def with_books(books: Books) -> Callable[[Mapping[str, Any]], Answer]:
    """A person who looks into the books of the service where an outcome is unknown."""

    def answer(question: Mapping[str, Any]) -> Answer:
        if "unknown_outcome" in question["message"] and "send 3" in books.happened:
            return Answer(ask=question["id"], action="use", output={"receipt": "send 3"})
        return Answer(ask=question["id"], action="retry")

    return answer
