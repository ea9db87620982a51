"""The local run starts from the deployment's own template, whatever its handlers do.

The handlers here are stand-ins; what the real ones do is proven elsewhere.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from baton.local.run import LocalRun
from tests.local.project import until

pytestmark = pytest.mark.e2e
REPOSITORY = Path(__file__).parents[2]
HANDLER = """
def handler(event, context):
    return {"statusCode": 200, "body": "here"} if "rawPath" in event else None
"""


def stand_in(folder: Path) -> Path:
    """A copy of the template and its state machine, with handlers that do nothing."""
    shutil.copy(REPOSITORY / "template.yaml", folder)
    shutil.copytree(REPOSITORY / "statemachine", folder / "statemachine")
    for name in ("api", "worker", "relay", "reconciler"):
        (folder / "functions" / name).mkdir(parents=True)
        (folder / "functions" / name / "app.py").write_text(HANDLER)
    for name in ("engine", "app"):
        (folder / "layers" / name).mkdir(parents=True)
    return folder / "template.yaml"


def scheduled(run: LocalRun) -> list[Any]:
    return [record.event for record in run.invocations if record.trigger == "schedule"]


def test_everything_the_template_declares_is_started_and_answers(tmp_path: Path) -> None:
    parameters = {"WorkerTimeout": "6", "WakeVisibility": "9", "Shards": "2"}

    async def scenario() -> None:
        async with (
            LocalRun(stand_in(tmp_path), parameters, schedule_period_s=0.5) as run,
            httpx.AsyncClient(base_url=run.url, trust_env=False) as http,
        ):
            assert {"SagaTable", "WakeQueue", "BlobBucket", "WorkerFunction"} <= set(run.physical)
            assert (await http.get("/health")).text == "here"
            assert (await http.get("/sagas")).status_code == 401
            token = run.token("user", "tenant")
            assert (await http.get("/sagas", headers={"authorization": token})).status_code == 200
            # Rounds may overlap: on a busy machine each of them may end late. The template has one a minute.
            wanted = [{"shard": 0}, {"shard": 1}, {"task": "dead-letters"}]
            await until(lambda: all(scheduled(run).count(event) >= 2 for event in wanted))
            assert [event for event in scheduled(run) if event not in wanted] == []

    asyncio.run(scenario())
