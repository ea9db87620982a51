"""An answer ends in time and within bounds, whatever its stream does."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from baton.adapters.clock import SystemClock
from baton.adapters.models import answers, exchange
from baton.core.models.usage import Usage
from baton.ports.models import Draft
from baton.runtime.invocation.live import live_tail
from examples.services.models import Reply
from tests.kit.provider import Served
from tests.models.asking import a_request, adapter_of, ask, failure

CLOCK = SystemClock()
PATIENCE_MS = 30_000  # of a busy machine


def test_a_stream_that_drips_for_ever_ends_by_its_deadline(provider: Served) -> None:
    provider.script = lambda asked: Reply(fault="drip", pace=0.02)
    begun = CLOCK.now()
    found = failure(adapter_of(provider.url), a_request(until=begun + 700))
    assert found.code == "timeout"
    assert 600 <= CLOCK.now() - begun < PATIENCE_MS


def test_what_has_come_of_an_answer_can_be_read_while_it_comes(provider: Served) -> None:
    provider.script = lambda asked: Reply(fault="drip", pace=0.02)

    async def grown() -> list[str]:
        adapter, draft, seen = adapter_of(provider.url), Draft(), [""]
        task = asyncio.create_task(adapter.answer(a_request(draft=draft)))
        while len(seen) < 4:
            if (text := draft.read()) != seen[-1]:
                seen.append(text)
            await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await adapter.aclose()
        return seen

    found = asyncio.run(grown())
    assert all(after.startswith(before) for before, after in pairwise(found))


def test_a_credential_is_not_read_off_a_draft_although_it_comes_in_pieces(provider: Served) -> None:
    credential = "of-4711-no-known-shape"
    provider.script = lambda asked: Reply(f"I was called with {credential}, and so on. " * 3, pace=0.02)

    async def read() -> tuple[set[str], set[str]]:
        adapter, draft, texts = adapter_of(provider.url, lambda _: credential), Draft(), {""}
        task = asyncio.create_task(adapter.answer(a_request(draft=draft)))
        while not task.done():
            texts.add(draft.read())
            await asyncio.sleep(0.005)
        await adapter.aclose()
        return texts, {live_tail(text, 8_192) for text in texts}

    texts, seen = asyncio.run(read())
    assert max(texts, key=len) == "I was called with [redacted], and so on. " * 3
    assert [text for text in seen if "of-4711" in text] == []


def test_the_connection_of_a_cancelled_request_is_closed(provider: Served) -> None:
    provider.script = lambda asked: Reply(fault="drip", pace=0.02)

    async def cancelled() -> bool:
        adapter = adapter_of(provider.url)
        task = asyncio.create_task(adapter.answer(a_request()))
        while not provider.provider.streaming:
            await asyncio.sleep(0.01)
        task.cancel()
        (found,) = await asyncio.gather(task, return_exceptions=True)
        while provider.provider.streaming:
            await asyncio.sleep(0.01)
        return isinstance(found, asyncio.CancelledError)

    assert asyncio.run(cancelled())


def test_twenty_answers_come_at_a_time_over_one_client(provider: Served) -> None:
    together = 20
    arrived = asyncio.Event()

    async def when_all_are_there(asked: object) -> Reply:
        if len(provider.asked) == together:
            arrived.set()
        await arrived.wait()
        return Reply("here")

    provider.script = when_all_are_there

    async def all_at_once() -> list[str]:
        adapter = adapter_of(provider.url)
        found = await asyncio.gather(*(adapter.answer(a_request(f"n{n}")) for n in range(together)))
        await adapter.aclose()
        return [answer.text for answer in found]

    assert asyncio.run(all_at_once()) == ["here"] * together


def test_a_new_event_loop_has_connections_of_its_own(provider: Served) -> None:
    provider.script = lambda asked: Reply(f"{asked.n}")
    adapter = adapter_of(provider.url)

    async def without_an_end() -> str:
        return (await adapter.answer(a_request())).text

    assert [asyncio.run(without_an_end()) for _ in range(2)] == ["1", "2"]


def test_a_stream_without_an_end_of_its_bytes_is_given_up(
    provider: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_MOST_BYTES", 20_000)
    provider.script = lambda asked: Reply(fault="drip", pace=0.001)
    found = failure(adapter_of(provider.url), a_request(until=CLOCK.now() + PATIENCE_MS))
    assert (found.code, "does not end" in found.message) == ("result_too_large", True)


@pytest.mark.parametrize(
    "reply", [Reply("x" * 500), Reply(calls=[("f", "x" * 500)]), Reply(refusal="x" * 500)]
)
def test_an_answer_of_more_text_than_may_be_is_given_up(
    reply: Reply, provider: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_MOST_TEXT", 400)
    provider.script = lambda asked: reply
    assert failure(adapter_of(provider.url)).code == "result_too_large"


def test_all_that_a_provider_counts_is_told(provider: Served) -> None:
    provider.script = lambda asked: Reply("x", input=90, cached=30, written=40, output=20, reasoning=5)
    (answer,) = ask(adapter_of(provider.url), a_request())
    assert answer.usage == Usage(model="gpt-5-mini", input=90, cached=30, written=40, output=20, reasoning=5)
