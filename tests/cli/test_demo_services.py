"""The processes of the demo's services: started, addressed, ended with the process that started them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from baton.cli.machine.example import MODULES, Services
from baton.client.exits import CommandFailed
from baton.client.transport import Reader
from tests.kit.sentences import Says

ROOT = Path(__file__).parents[2]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_they_answer_while_they_are_needed_and_are_gone_afterwards() -> None:
    async def run() -> list[int]:
        async with Services(ROOT) as services, Reader() as reader:
            assert set(services.parameters) == set(MODULES)
            names = [(await reader.get(f"{url}/health"))["service"] for url in services.urls.values()]
            assert names == list(services.urls) == ["table-stack", "open-delivery"]
            return [service.process.pid for service in services._running]

    assert not any(map(alive, asyncio.run(run())))


def test_a_service_that_does_not_start_is_named_and_the_others_are_ended(says: Says) -> None:
    services = Services(ROOT, {"TableStackUrl": "examples.services.table_stack", "Other": "examples.no_such"})

    async def run() -> None:
        async with services:
            pass

    with says.raised(CommandFailed):
        asyncio.run(run())
    assert services._running == []


def test_a_project_without_the_example_has_none(tmp_path: Path) -> None:
    assert (Services.exist(ROOT), Services.exist(tmp_path)) == (True, False)
