"""How far back a rollback goes, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, PARTY, begin

SAGA = f"/sagas/{ADA.id}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"to": "invite"}, "no step `invite` is among what can be undone"),
        ({"to": 99}, "version 99 is not in the log"),
        ({"to": "99"}, "version 99 is not in the log"),
        ({"to": True}, "must be a version of the log or the name of a step"),
        ({"to": -1}, "must be a version of the log or the name of a step"),
        ({"to": ""}, "must be a version of the log or the name of a step"),
        ({"to": 1, "version": 1}, "not both"),
    ],
)
def test_a_rollback_goes_back_to_a_version_or_a_step_that_is_there(
    http: Http, deployment: Deployment, body: dict[str, Any], said: str
) -> None:
    begin(http.engine, ADA, PARTY)
    answer = http.post(f"{SAGA}/rollback", {**body, "dry_run": True})
    assert answer.status in (400, 422)
    assert said in str(answer.body)
