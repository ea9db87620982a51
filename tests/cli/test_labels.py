"""Labels on the command line: given to a start, asked of a list, shown of a saga."""

from __future__ import annotations

import json
from io import StringIO

from rich.console import Console

from baton.cli.text.render import saga_table
from tests.cli.conftest import Baton, FakeApi


def test_a_start_passes_them_on(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", (201, {"id": "s-1", "status": "pending", "workflow": "w", "version": 1}))
    assert baton("start", "w", "--label", "customer=4711", "--label", "team=a").exit_code == 0
    assert json.loads(api.of("POST", "/sagas")[0].text)["labels"] == {"customer": "4711", "team": "a"}


def test_a_list_asks_for_all_of_them(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", (200, {"sagas": [], "next": None}))
    baton("list", "--label", "customer=4711", "--label", "team=a")
    assert api.of("GET", "/sagas")[0].query["label"] == "customer=4711,team=a"


def test_what_is_no_label_is_said(baton: Baton) -> None:
    assert "write name=value" in baton("start", "w", "--label", "customer").stderr


def test_a_saga_shows_them() -> None:
    saga = {"id": "s", "workflow": "w", "status": "running", "labels": {"customer": "4711"}}
    out = StringIO()
    Console(file=out, width=80).print(saga_table(saga, 0))
    assert "customer=4711" in out.getvalue()
