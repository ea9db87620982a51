"""The rooms keep to the import law, and the checker that says so is not blind.

The law itself is in law.py; this file holds it against the real tree and against planted breaches.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.law import ALLOWED, check_engine, check_functions

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "layers/engine/baton"


def test_the_engine_keeps_the_law() -> None:
    assert [str(breach) for breach in check_engine(ENGINE)] == []


def test_the_handlers_keep_the_law() -> None:
    assert [str(breach) for breach in check_functions(ROOT / "functions")] == []


def test_the_law_has_no_circle() -> None:
    done: set[str] = set()
    while ready := {room for room, needs in ALLOWED.items() if room not in done and needs <= done}:
        done |= ready
    assert done == set(ALLOWED)


def test_no_room_may_import_both_sides_but_the_wiring_and_the_deployment_for_tests() -> None:
    both = {room for room, needs in ALLOWED.items() if {"runtime", "adapters"} <= needs}
    assert both == {"wiring", "testing"}
    assert "adapters" not in ALLOWED["runtime"]
    assert "runtime" not in ALLOWED["adapters"]


def test_the_core_knows_of_no_table_but_where_it_works_out_what_one_costs() -> None:
    cost_model = {"read/usage.py", "read/costs.py"}
    core = ENGINE / "core"
    named = {
        file.relative_to(core).as_posix()
        for file in core.rglob("*.py")
        if any(word in file.read_text(encoding="utf-8") for word in ("DynamoDB", "400 KB", '"T#', "'T#"))
    }
    assert named == cost_model


PLANTED = [
    ("errors.py", "import baton.core", "errors imports baton.core"),
    ("errors.py", "import msgspec\nimport os", "errors is pure and imports os"),
    ("core/log/folding/fold.py", "from baton import ports", "core imports baton.ports"),
    (
        "core/log/folding/fold.py",
        "from baton.runtime.worker.runner import Runner",
        "core imports baton.runtime",
    ),
    (
        "core/log/folding/fold.py",
        "from ..runtime import runner",
        "core imports baton.<relative import in fold",
    ),
    ("core/log/folding/fold.py", "def f():\n    import asyncio", "core is pure and imports asyncio"),
    ("core/log/folding/fold.py", "from baton import tool", "core imports baton"),
    (
        "core/log/folding/fold.py",
        "from baton.core.decide.decide import decide",
        "core/log imports core/decide",
    ),
    (
        "core/read/views.py",
        "from baton.core.nodes.wait import WaitKind",
        "imports baton.core.nodes.wait past baton.core.nodes.registry",
    ),
    (
        "core/decide/decide.py",
        "from baton.core.nodes.registry import KINDS",
        "it gets them with the program",
    ),
    ("core/limits.py", "from baton.core.log import events as ev", "core/ imports core/log"),
    ("core/attic/old.py", "import msgspec", "the room core/attic is not in the law"),
    (
        "core/documents/schema.py",
        "from baton.core.documents.nodes.wait import Wait",
        "baton.core.documents.schema imports baton.core.documents.nodes.wait past baton.core.documents.nodes.registry",
    ),
    ("ports.py", "from baton.adapters import clock", "ports imports baton.adapters"),
    (
        "runtime/worker/runner.py",
        "from baton.adapters.memory.log import MemoryLog",
        "runtime imports baton.adapters",
    ),
    (
        "runtime/worker/runner.py",
        "import boto3",
        "runtime imports boto3, which belongs to adapters, local, wiring",
    ),
    ("runtime/worker/runner.py", "from time import monotonic as m", "runtime uses time"),
    (
        "runtime/worker/runner.py",
        "import datetime as d\nd.datetime.now()",
        "runtime uses datetime.datetime.now",
    ),
    (
        "runtime/worker/runner.py",
        "from datetime import datetime\nnow = datetime.now",
        "uses datetime.datetime.now",
    ),
    ("runtime/worker/runner.py", "import random", "runtime uses random"),
    ("runtime/worker/runner.py", "from uuid import uuid4", "runtime uses uuid.uuid4"),
    ("runtime/worker/runner.py", "import os\nos.environ['A']", "runtime uses os.environ"),
    ("runtime/worker/runner.py", "from os import getenv", "runtime uses os.getenv"),
    ("adapters/s3.py", "from baton.runtime import runner", "adapters imports baton.runtime"),
    ("adapters/s3.py", "import os\n\ndef f():\n    return os.environ.get('A')", "adapters uses os.environ"),
    ("adapters/s3.py", "from botocore.exceptions import ClientError\nimport time", "adapters uses time"),
    (
        "adapters/memory/log.py",
        "from baton.adapters.dynamo.items import item_size",
        "adapters/memory imports adapters/dynamo",
    ),
    ("tools/http.py", "from httpx import get", "tools imports httpx"),
    ("web/api.py", "import baton.adapters.s3", "web imports baton.adapters"),
    ("cli/main.py", "import botocore.session", "cli imports botocore"),
    ("local/runner.py", "from baton.adapters import s3", "local imports baton.adapters"),
    ("demo/show.py", "from baton import adapters", "demo imports baton.adapters"),
    ("demo/show.py", "from baton.cli.terminal.shared import console", "demo imports baton.cli"),
    ("client/api.py", "from baton import local", "client imports baton.local"),
    ("attic/old.py", "", "the room 'attic' is not in the law"),
]


@pytest.mark.parametrize(
    ("file", "source", "expected"), PLANTED, ids=[f"{f}: {s[:40]}" for f, s, _ in PLANTED]
)
def test_a_planted_breach_is_found(tmp_path: Path, file: str, source: str, expected: str) -> None:
    planted = tmp_path / file
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(source + "\n")
    breaches = [str(breach) for breach in check_engine(tmp_path)]
    assert any(expected in breach for breach in breaches), breaches


def test_a_handler_that_goes_round_the_wiring_is_found(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from baton.wiring import worker\nfrom baton.adapters import s3\n")
    assert [breach.rule for breach in check_functions(tmp_path)] == ["functions imports baton.adapters"]


LAWFUL = [
    ("core/nodes/registry.py", "from baton.core.nodes.wait import WaitKind"),
    ("core/read/views.py", "from baton.core.nodes.registry import KINDS"),
    (
        "core/log/folding/fold.py",
        "import msgspec\nfrom baton.core.log.state import State\nfrom baton.errors import UserError",
    ),
    ("core/log/folding/fold.py", "from datetime import datetime\ndatetime.fromisoformat('2026-01-01')"),
    ("ports.py", "from typing import Protocol\nfrom baton.core.log.events import Entry"),
    ("adapters/clock.py", "import time\nimport random\nnow = time.time_ns"),
    ("adapters/dynamo/log.py", "import boto3\nfrom baton.ports import Log"),
    (
        "adapters/dynamo/log.py",
        "from baton.adapters.rules import pack\nfrom baton.adapters.dynamo import items",
    ),
    ("settings.py", "import os\nos.environ['A']"),
    ("wiring.py", "import boto3\nfrom baton import adapters, runtime\nfrom baton.settings import Settings"),
    ("web/api.py", "from baton.runtime.requests.service import Service"),
    ("local/functions.py", "import os, time, boto3\nos.environ"),
    ("client/api.py", "import httpx"),
    ("cli/main.py", "import time\nfrom baton.local import up\nfrom baton import demo"),
    ("demo/show.py", "import time\nfrom baton.client.exits import Failed"),
    ("__init__.py", "from baton.core.effects.toolspec import tool"),
]


@pytest.mark.parametrize(("file", "source"), LAWFUL, ids=[f"{f}: {s[:40]}" for f, s in LAWFUL])
def test_what_is_lawful_is_left_alone(tmp_path: Path, file: str, source: str) -> None:
    lawful = tmp_path / file
    lawful.parent.mkdir(parents=True, exist_ok=True)
    lawful.write_text(source + "\n")
    assert [str(breach) for breach in check_engine(tmp_path)] == []
