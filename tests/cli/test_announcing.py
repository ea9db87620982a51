"""The commands that `baton up` prints are run as they stand, and start a saga of a workflow that is there."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from baton.cli.machine import running as announcing
from baton.cli.machine.running import Bus, Running, Trial, farewell, to_try
from baton.client.api import Api
from baton.client.connection import Connection, Owner
from tests.cli.conftest import FakeApi
from tests.cli.test_output import BATON
from tests.kit.patience import PATIENCE_S
from tests.kit.sentences import Says

STARTED = {"id": "s1", "status": "pending", "workflow": "it-s", "version": 1}


def workflow(schema: Any) -> tuple[int, Any]:
    return 200, {"name": "w", "input": schema, "nodes": []}


def tried(api: FakeApi, *names: str) -> Trial | None:
    async def run() -> Trial | None:
        async with Api(Connection(api.url, "t")) as client:
            return await to_try(client, names)

    return asyncio.run(run())


NEEDS = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
IMPOSSIBLE = {"type": "string", "pattern": "^[A-Z]{3}$"}


def test_a_workflow_is_tried_that_an_input_is_known_for(api: FakeApi) -> None:
    api.on("GET /workflows/code", workflow(IMPOSSIBLE))
    api.on("GET /workflows/dinner", workflow(NEEDS | {"examples": [{"name": "Ada"}]}))
    api.on("GET /workflows/hello", workflow(NEEDS))
    api.on("GET /workflows/plain", workflow(None))
    assert tried(api, "code", "hello", "plain") == Trial("hello", ({"name": "text"},))
    assert tried(api, "code", "hello", "dinner") == Trial("dinner", ({"name": "Ada"},))
    assert tried(api, "plain") == Trial("plain", ({},))
    assert tried(api, "code") == Trial("code", None)
    assert tried(api) is None


@pytest.mark.parametrize("owner", [None, Owner(7, "http://127.0.0.1:1")])
def test_what_it_prints_starts_a_saga_with_that_input_twice(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Owner | None
) -> None:
    saga = STARTED | {"status": "completed", "steps": 1, "branch": 0, "invocations": 1}
    api.on("POST /sagas", (201, STARTED))
    api.on("GET /sagas/s1", (200, saga))
    api.on("GET /sagas", (200, {"sagas": [], "next": None}))
    given = {"name": "it's $HOME `id` ü", "n": 4}
    running = Running(Connection(api.url, "secret"), "http://aws", tmp_path, ["it-s"], {}, owner)
    typed = " ".join(f"'{word}'" if " " in word else word for word in BATON).replace(
        "name='baton'", 'name="baton"'
    )
    monkeypatch.setattr(announcing, "command_line", lambda arguments: f"{typed} {arguments}")
    script = "\n".join(running.commands(Trial("it-s", (given,))))
    environment = {"PATH": "/usr/bin:/bin"} | (
        {} if owner else {"BATON_URL": api.url, "BATON_TOKEN": "secret"}
    )
    subprocess.run(["bash", "-euc", script], cwd=tmp_path, env=environment, check=True, timeout=PATIENCE_S)
    bodies = [asked.json for asked in api.of("POST", "/sagas")]
    assert bodies == [{"workflow": "it-s", "input": given}] * 2
    assert {asked.headers["authorization"] for asked in api.asked} == {"Bearer secret"}


def test_an_input_that_is_not_known_is_said_and_nothing_to_start_is_not_started(
    tmp_path: Path, says: Says
) -> None:
    running = Running(Connection("http://127.0.0.1:1", "t"), "http://aws", tmp_path, [], {}, None)
    assert any("none yet" in line for line in running.lines())
    assert not any("start" in line for line in running.commands(None))
    lines = list(running.commands(Trial("code", None)))
    says(lines[1])
    assert lines[-1].endswith("start code --watch --input '{}'")


def test_the_page_of_the_example_is_announced_and_a_scripted_model_said(tmp_path: Path, says: Says) -> None:
    running = Running(
        Connection("http://127.0.0.1:1", "t"),
        "http://aws",
        tmp_path,
        [],
        {},
        None,
        page="http://127.0.0.1:2",
        scripted=True,
    )
    lines = "\n".join(running.lines())
    assert "dinner page    http://127.0.0.1:2" in lines
    says.within(lines)


def test_it_says_how_to_be_another_user(tmp_path: Path, says: Says) -> None:
    running = Running(Connection("http://127.0.0.1:1", "t"), "http://aws", tmp_path, [], {}, None)
    (line,) = [line for line in running.lines() if line.strip().startswith("other users")]
    says(line)


def test_sources_of_events_are_announced_with_an_event_to_put(tmp_path: Path, says: Says) -> None:
    given: dict[str, str | list[str]] = {"EventTenant": "acme", "EventSources": ["aws.s3", "it's"]}
    bus = Bus.of(given | {"EventSourceBus": "orders"})
    running = Running(Connection("http://127.0.0.1:1", "t"), "http://aws", tmp_path, [], {}, None, bus=bus)
    says.within(running.lines())
    *_, comment, command = running.commands(None)
    says.within(comment)
    assert shlex.split(command)[-1] == (
        '{"Entries": [{"Source": "it\'s", "DetailType": "TYPE", "Detail": "{}", "EventBusName": "orders"}]}'
    )
    assert Bus.of({**given, "EventTenant": ""}) is None
    assert Bus.of({}) is None


def test_a_stop_says_what_it_waits_for_and_what_becomes_of_the_sagas(tmp_path: Path, says: Says) -> None:
    first, forgotten = farewell(None)
    says(first)
    says(forgotten)
    assert "up --data DIR" in forgotten
    _, kept = farewell(tmp_path)
    says.within(kept)
    assert f"up --data {tmp_path}" in kept


def test_kept_data_is_announced_with_what_becomes_of_steps_that_were_cut_off(
    tmp_path: Path, says: Says
) -> None:
    running = Running(Connection("http://127.0.0.1:1", "t"), "http://aws", tmp_path, [], {}, None, tmp_path)
    (line,) = [line for line in running.lines() if line.strip().startswith("data")]
    assert str(tmp_path) in line
    says.within(line)
