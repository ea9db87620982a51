"""Steps that have failed before, as `baton show` tells them while they are at work again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.test_show import FAILING, facts
from tests.kit.sentences import Says


@pytest.mark.parametrize(
    "work",
    [
        {"callback": "cb1", "since": "2026-11-21T22:00:00.000Z", "until": "2026-11-21T23:00:00.000Z"},
        {"ask": "0.pay@1"},
        {},
    ],
)
def test_a_step_that_is_at_work_again_is_not_said_to_be_tried_again_later(
    work: dict[str, Any], says: Says
) -> None:
    failing = FAILING | {"next_attempt_at": "2026-11-21T22:00:05.000Z"}
    other = {"node": "pay", "iteration": [2], "state": "waiting", "callback": "another"}
    active = [other, {"node": "pay", "iteration": [1], "state": "waiting", **work}]
    shown = [line.rstrip() for line in facts(failing=[failing], active=active).splitlines()]
    says(shown)
