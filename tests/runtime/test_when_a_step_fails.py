"""What becomes of a saga when a step fails: five stories of retries and timeouts, and the tree of decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.core.log.events import AttemptFailed, StepFailed, StepSucceeded, StrategyChosen
from baton.core.log.questions import Answer
from tests.kit.corpus import start
from tests.kit.faults import Plan
from tests.kit.world import World


class HttpError(Exception):
    """As an HTTP library would raise it."""

    def __init__(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code = status
        self.headers = headers or {}


@dataclass
class Service:
    """What answers a step's calls one after the other: an error, or None for success."""

    answers: list[Exception | None]
    calls: list[tuple[float, int]] = field(default_factory=list)

    def add_to(self, world: World, name: str = "call", **more: Any) -> None:
        @tool(name, registry=world.registry, **more)
        async def call(context: Context) -> str:
            self.calls.append((asyncio.get_running_loop().time(), context.attempt))
            answer = self.answers.pop(0) if self.answers else None
            if answer is not None:
                raise answer
            return "answer"

        world.tools = world.registry.specs()

    @property
    def gaps(self) -> list[float]:
        return [
            round(later[0] - earlier[0], 1)
            for earlier, later in zip(self.calls, self.calls[1:], strict=False)
        ]


async def run(world: World, document: str) -> tuple[str, dict[str, Any]]:
    saga = await start(world, document, {}, "w")
    await world.settle()
    return saga, await world.queries().show(saga)


# ---- five stories


async def test_automatic_retry_success() -> None:
    world = World.start()
    service = Service([HttpError(503), HttpError(503), None])
    service.add_to(world)
    policy = "{max_attempts: 3, backoff: exponential, base: 1s, max_delay: 10s}"
    document = f"name: w\nretry: {policy}\nnodes: {{a: {{tool: call}}}}\noutput: ${{ctx.a.output}}"
    saga, view = await run(world, document)
    assert (view["status"], view["result"], view["error"]) == ("completed", "answer", None)
    assert [attempt for _, attempt in service.calls] == [1, 2, 3]
    assert service.gaps == pytest.approx([1.0, 2.0], abs=0.2)
    (done,) = [event for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert done.attempt == 3
    assert len(world.invocations) == 1, "short pauses are waited out inside"


async def test_retry_exhaustion() -> None:
    world = World.start()
    service = Service([HttpError(503)] * 9)
    service.add_to(world)
    document = (
        "name: w\nretry: {max_attempts: 3}\non_failure: {any: [retry, rollback]}\nnodes: {a: {tool: call}}"
    )
    saga, view = await run(world, document)
    assert view["status"] == "failed"
    assert len(service.calls) == 3
    error = view["error"]
    assert (error["code"], error["node"]) == ("service_unavailable", "a")
    kinds = [type(event) for event in world.events(saga) if isinstance(event, AttemptFailed | StepFailed)]
    assert kinds == [AttemptFailed, AttemptFailed, StepFailed]


async def test_failure_routing() -> None:
    world = World.start()
    service = Service([HttpError(503)] * 2)
    service.add_to(world)
    document = """
name: w
nodes:
  a: {tool: call, retry: {max_attempts: 2}, catch: [{if: "last_error.retryable", then: handler}, {then: other}]}
  success: {tool: call, after: a}
  handler: {value: {code: "${last_error.code}", attempt: "${last_error.attempt}", action: "${last_error.action}"}}
  other: {tool: call}
output: ${ctx.handler.output?}
"""
    _saga, view = await run(world, document)
    assert view["status"] == "completed"
    assert view["result"] == {"code": "service_unavailable", "attempt": 2, "action": "call"}
    assert len(service.calls) == 2, "neither the way of success nor the other handler ran"


async def test_timeout_enforcement() -> None:
    world = World.start()
    ended: list[str] = []

    @tool("slow", registry=world.registry)
    async def slow() -> None:
        try:
            await asyncio.sleep(10)
            ended.append("done")
        except asyncio.CancelledError:
            ended.append("aborted")
            raise

    world.tools = world.registry.specs()
    document = """
name: w
nodes:
  a: {tool: slow, timeout: 2s, retry: {max_attempts: 2, base: 1s}, catch: h}
  h: {value: "${last_error.code}"}
output: ${ctx.h.output?}
"""
    saga, view = await run(world, document)
    assert (view["status"], view["result"]) == ("completed", "timeout")
    await asyncio.sleep(60)
    assert ended == ["aborted", "aborted"]
    (attempt,) = [event for event in world.events(saga) if isinstance(event, AttemptFailed)]
    assert attempt.ended_at - attempt.started_at == pytest.approx(2_000, abs=50)


async def test_non_retryable_error() -> None:
    world = World.start()
    service = Service([HttpError(400)])
    service.add_to(world)
    document = """
name: w
nodes:
  a: {tool: call, retry: critical, catch: h}
  h: {value: {code: "${last_error.code}", retryable: "${last_error.retryable}"}}
output: ${ctx.h.output?}
"""
    _, view = await run(world, document)
    assert view["result"] == {"code": "bad_request", "retryable": False}
    assert len(service.calls) == 1


# ---- the tree of decisions: transient? recoverable? can a person resolve it? roll back


def _strategies(world: World, saga: str) -> list[str]:
    return [event.strategy for event in world.events(saga) if isinstance(event, StrategyChosen)]


PLAIN = "name: w\nnodes: {a: {tool: call}}"


async def test_what_is_transient_is_retried() -> None:
    world = World.start()
    service = Service([ConnectionError("reset"), TimeoutError(), None])
    service.add_to(world)
    saga, view = await run(world, PLAIN)
    assert (view["status"], _strategies(world, saga)) == ("completed", ["retry", "retry"])


async def test_what_is_recoverable_is_replanned_if_there_is_another_way() -> None:
    world = World.start()
    service = Service([HttpError(404), HttpError(404)])
    service.add_to(world, "call")
    Service([]).add_to(world, "library", instead_of="call", hints=["find_alternative_resource"])
    saga, view = await run(world, PLAIN)
    assert (view["status"], _strategies(world, saga)) == ("completed", ["replan"])
    (done,) = [event for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert done.tool == "library"


async def test_what_a_person_can_resolve_is_asked_about() -> None:
    world = World.start()
    service = Service([StepFailure("missing_credentials", "no key for the bank")])
    service.add_to(world)
    saga, view = await run(world, PLAIN)
    assert view["status"] == "suspended"
    (question,) = view["questions"]
    assert (question["node"], question["asked_for"]) == ("a", "input")
    await world.service().answer(saga, Answer(ask=question["id"], action="retry"), "k")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert [notice.to for notice in world.notices.said] == ["user"]


async def test_what_nothing_changes_is_rolled_back() -> None:
    world = World.start()
    Service([StepFailure("business_rule", "over the limit")]).add_to(world)
    saga, view = await run(world, PLAIN)
    assert (view["status"], _strategies(world, saga)) == ("failed", [])


async def test_what_is_catastrophic_is_escalated() -> None:
    world = World.start()
    Service([MemoryError()]).add_to(world)
    saga, view = await run(world, PLAIN)
    assert (view["status"], view["parked"]["code"]) == ("parked", "escalated")
    (notice,) = world.notices.said
    assert (notice.to, notice.severity, notice.incident) == ("on_call", "critical", True)
    await world.service().resume(saga)
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"


async def test_an_unknown_failure_is_tried_again_and_then_a_person_is_asked() -> None:
    world = World.start()
    service = Service([RuntimeError("odd")] * 9)
    service.add_to(world)
    saga, view = await run(world, PLAIN)
    assert (view["status"], _strategies(world, saga)) == ("suspended", ["retry"] * 3 + ["ask_user"])
    assert service.gaps == pytest.approx([1, 2, 4], abs=0.3)


# ---- pauses


async def test_a_long_pause_frees_the_invocation_and_the_attempt_comes_when_it_is_due() -> None:
    world = World.start()
    service = Service([HttpError(429, {"Retry-After": "600"}), None])
    service.add_to(world)
    saga = await start(world, PLAIN, {}, "w")
    await asyncio.sleep(60)
    (head,) = world.log.heads()
    assert (head.owner, head.status) == ("", "waiting")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert 600 <= service.gaps[0] <= 610


async def test_a_service_may_say_when_as_a_date() -> None:
    world = World.start()
    now = world.process("api").clock.now()
    moment = _http_date(now + 20_000)
    service = Service([HttpError(503, {"retry-after": moment}), None])
    service.add_to(world)
    await run(world, PLAIN)
    assert 18 <= service.gaps[0] <= 23


def _http_date(moment: int) -> str:
    return formatdate(moment / 1_000, usegmt=True)


async def test_parts_of_a_fan_are_retried_each_by_itself() -> None:
    world = World.start()
    flaky, steady = Service([HttpError(503)] * 2), Service([])
    flaky.add_to(world, "shaky")
    steady.add_to(world, "steady")
    document = "name: w\nnodes: {a: {tool: shaky}, b: {tool: steady}, c: {tool: steady, after: b}}"
    _, view = await run(world, document)
    assert view["status"] == "completed"
    assert (len(flaky.calls), len(steady.calls)) == (3, 2)
    assert steady.calls[1][0] < flaky.calls[1][0], "it did not wait for the one that failed"


@pytest.mark.parametrize("fault", ["crash before", "crash after"])
async def test_no_crash_adds_an_attempt(fault: str) -> None:
    """A crash loses only an attempt that was not written down; every one that is in the log counts."""
    world = World.start()
    service = Service([HttpError(503)] * 50)
    service.add_to(world)
    world.plan = Plan(at=dict.fromkeys((8, 12, 16), fault))
    document = (
        "name: w\nretry: {max_attempts: 3}\non_failure: {any: [retry, rollback]}\nnodes: {a: {tool: call}}"
    )
    saga, view = await run(world, document)
    assert view["status"] == "failed"
    attempts = [e.attempt for e in world.events(saga) if isinstance(e, AttemptFailed | StepFailed)]
    assert attempts == [1, 2, 3]


# ---- effects that may happen only once


def _add_payments(world: World, deeds: list[str], *, loses: str, verify: bool) -> None:
    """A tool whose service honours no key; `loses` the request, or the answer to it, the first time."""

    @tool("pay_card", registry=world.registry, effect="once", verify="find_card" if verify else "")
    async def pay_card() -> str:
        is_first = not deeds and loses == "request"
        if not is_first:
            deeds.append("paid")
        if is_first or (loses == "answer" and len(deeds) == 1):
            raise ConnectionError("reset by peer")
        return "receipt"

    @tool("find_card", registry=world.registry, effect="pure")
    async def find_card() -> dict[str, Any]:
        return {"happened": bool(deeds), "result": "receipt" if deeds else None}

    world.tools = world.registry.specs()


ONE_TRY = "name: w\non_failure: [rollback]\nnodes: {a: {tool: pay_card}}\noutput: ${ctx.a.output}"


async def test_a_doubt_is_cleared_up_before_anything_else_is_done_even_without_retries() -> None:
    world = World.start()
    deeds: list[str] = []
    _add_payments(world, deeds, loses="answer", verify=True)
    _, view = await run(world, ONE_TRY)
    assert (view["status"], view["result"], deeds) == ("completed", "receipt", ["paid"])


async def test_what_has_not_happened_fails_as_it_did_and_is_not_tried_again_on_the_way() -> None:
    world = World.start()
    deeds: list[str] = []
    _add_payments(world, deeds, loses="request", verify=True)
    _, view = await run(world, ONE_TRY)
    assert (view["status"], view["error"]["code"], deeds) == ("failed", "connection_failed", [])


async def test_without_a_verify_a_person_is_asked() -> None:
    world = World.start()
    deeds: list[str] = []
    _add_payments(world, deeds, loses="answer", verify=False)
    document = "name: w\nnodes: {a: {tool: pay_card, retry: none}}\noutput: ${ctx.a.output}"
    saga, view = await run(world, document)
    assert view["status"] == "suspended"
    (question,) = view["questions"]
    assert "unknown_outcome" in question["message"]
    answer = Answer(ask=question["id"], action="use", output="receipt")
    await world.service().answer(saga, answer, "k")
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], view["result"], deeds) == ("completed", "receipt", ["paid"])
