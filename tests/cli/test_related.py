"""What `baton show` says of the sagas that belong to one: its parent, its failure handler, the saga that failed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Baton, FakeApi
from tests.cli.test_show import SAGA


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"workflow": "tour.visit"}, "workflow  tour.visit, the graph visit of tour"),
        ({"parent": "p1"}, "child of  p1"),
        ({"handles": "p1"}, "handles   the failure of p1"),
        ({"failure_handler": {"saga": "h1", "status": "completed", "why": None}}, "handler   h1, completed"),
        (
            {"failure_handler": {"saga": "h1", "status": None, "why": None}},
            "handler   h1, not stored any more",
        ),
        (
            {"failure_handler": {"saga": None, "status": None, "why": "no `x`"}},
            "handler   not started: no `x`",
        ),
    ],
)
def test_the_sagas_that_belong_to_it_are_named(
    more: dict[str, Any], said: str, api: FakeApi, baton: Baton
) -> None:
    api.on("GET /sagas/s1", (200, SAGA | {"status": "failed"} | more))
    assert said in baton("show", "s1").stdout
