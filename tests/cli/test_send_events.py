"""`baton send-events`: what is sent, what is shown of it, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

EVENT = {"specversion": "1.0", "id": "e1", "source": "shop", "type": "paid"}


def taken(*outcomes: dict[str, Any]) -> dict[str, Any]:
    named = {"id": "e1", "source": "shop", "type": "paid", "matched": len(outcomes)}
    return {**named, "outcomes": list(outcomes)}


def outcome(
    did: str, saga: str | None = None, why: str | None = None, signal: str | None = None
) -> dict[str, Any]:
    return {"workflow": "ship", "signal": signal, "did": did, "saga": saga, "why": why}


def test_what_each_rule_has_done_is_shown(api: FakeApi, baton: Baton, tmp_path: Path, says: Says) -> None:
    answer = {
        "events": [
            taken(outcome("started", "e5"), outcome("no_saga", signal="paid")),
            taken(),
        ]
    }
    api.on("POST /events", (202, answer))
    file = tmp_path / "event.json"
    file.write_text(json.dumps(EVENT))
    says(baton("send-events", str(file)).stdout.splitlines())
    sent = api.asked[-1]
    assert (sent.headers["content-type"], sent.json) == ("application/cloudevents+json", EVENT)
    assert json.loads(baton("send-events", json.dumps([EVENT]), "--json").stdout) == answer
    assert api.asked[-1].headers["content-type"] == "application/cloudevents-batch+json"


def test_what_is_refused_ends_it_with_an_error_that_names_the_event(api: FakeApi, baton: Baton) -> None:
    errors = [{"path": "/0/id", "message": "`id` is missing"}, {"path": "/1", "message": "ship: no order"}]
    problem = {
        "type": "urn:baton:problem:invalid-input",
        "title": "t",
        "status": 422,
        "detail": "2 of 2",
        "errors": errors,
    }
    api.on("POST /events", (422, problem))
    ended = baton("send-events", "-", stdin="[{}, {}]")
    assert ended.exit_code == 3
    for error in errors:
        assert error["path"] in ended.stderr
        assert error["message"] in ended.stderr


def test_a_saga_is_started_with_a_correlation_key_and_no_other(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", (201, {"id": "n1", "status": "pending", "workflow": "order", "version": 1}))
    assert baton("start", "order", "--correlation-key", "A-17").exit_code == 0
    sent = api.asked[-1]
    assert sent.json == {"workflow": "order", "input": {}, "correlation_key": "A-17"}
    assert "idempotency-key" not in sent.headers


def test_what_a_dead_letter_carries_is_sent_as_the_event_that_it_is(api: FakeApi, baton: Baton) -> None:
    entry = {
        "id": "b7",
        "source": "shop",
        "detail-type": "paid",
        "account": "1",
        "resources": [],
        "detail": {"n": 1},
    }
    letter = {"version": "1.0", "requestContext": {"condition": "RetriesExhausted"}, "requestPayload": entry}
    api.on("POST /events", (202, {"events": [taken()]}), (202, {"events": [taken()]}))
    event = {
        "specversion": "1.0",
        "id": "b7",
        "source": "shop",
        "type": "paid",
        "account": "1",
        "data": {"n": 1},
    }
    for told in (letter, entry):
        assert baton("send-events", "-", stdin=json.dumps(told)).exit_code == 0
        assert api.asked[-1].json == event
