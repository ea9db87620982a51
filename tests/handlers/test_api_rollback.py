"""How far back a rollback goes, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, PARTY, begin
from tests.kit.sentences import Says

SAGA = f"/sagas/{ADA.id}"


@pytest.mark.parametrize(
    "body",
    [
        {"to": "invite"},
        {"to": 99},
        {"to": "99"},
        {"to": True},
        {"to": -1},
        {"to": ""},
        {"to": 1, "version": 1},
    ],
)
def test_a_rollback_goes_back_to_a_version_or_a_step_that_is_there(
    http: Http, deployment: Deployment, body: dict[str, Any], says: Says
) -> None:
    begin(http.engine, ADA, PARTY)
    answer = http.post(f"{SAGA}/rollback", {**body, "dry_run": True})
    assert answer.status in (400, 422)
    says((answer.body.get("detail"), answer.body.get("errors")))
