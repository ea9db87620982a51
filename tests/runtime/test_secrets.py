"""What a failing tool quotes of the outside: no secret of it is written anywhere, nor answered."""

from __future__ import annotations

import logging

import pytest

from baton import tool
from tests.kit.corpus import Books, start
from tests.kit.world import World
from tests.runtime.conftest import Stage

SECRETS = ("hunter2-and-more", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD", "AKIAIOSFODNN7EXAMPLE")


def test_a_secret_in_what_a_tool_raises_reaches_neither_log_nor_entry_nor_answer(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def story(world: World, books: Books) -> None:
        @tool("leaky", registry=world.registry)
        async def leaky() -> None:
            password, key, access = SECRETS
            raise ConnectionError(
                f"order 4711: POST https://ann:{password}@shop.example/pay refused, "
                f"aws_access_key_id={access}, Authorization: Bearer {key}"
            )

        world.tools = world.registry.specs()
        saga = await start(world, "name: w\non_failure: rollback\nnodes: {a: {tool: leaky}}", {}, "w")
        await world.settle()
        view = await world.queries().show(saga)
        assert view["error"]["code"] == "connection_failed"
        assert view["error"]["kind"] == "transient"
        assert "order 4711" in view["error"]["message"]
        assert "a tool raised" in caplog.text
        written = repr(world.entries(saga)) + repr(view) + caplog.text
        assert [secret for secret in SECRETS if secret in written] == []

    stage(story)
