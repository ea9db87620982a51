"""What is wrong with an event from outside, and by what a repetition is known."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.outside import event_problems, identity_of
from tests.kit.sentences import Says

EVENT = {"specversion": "1.0", "id": "e1", "source": "shop", "type": "paid"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"data": None},
        {"data_base64": "eA=="},
        {
            "time": "2026-12-01T09:00:00.123+01:00",
            "subject": None,
            "traceparent": "00-1",
            "priority": 3,
            "urgent": True,
        },
    ],
)
def test_an_event_has_no_problems(more: dict[str, Any]) -> None:
    assert event_problems({**EVENT, **more}) == []


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"specversion": "0.3"}, "/specversion"),
        ({"source": "x" * 513}, "/source"),
        ({"dataSchema": "x"}, "/dataSchema"),
        ({"amount due": 1}, "/amount due"),
        ({"amount": 1.5}, "/amount"),
        ({"time": 5}, "/time"),
        ({"time": "2026-12-01T09:00:00"}, "/time"),
        ({"data": 1, "data_base64": "eA=="}, "/data_base64"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(more: dict[str, Any], path: str, says: Says) -> None:
    (found,) = event_problems({**EVENT, **more}, "/3")
    assert found.path == f"/3{path}"
    says((found.message, found.suggestion))


def test_what_is_missing_may_have_another_name(says: Says) -> None:
    found = event_problems({"specversion": "1.0", "eventId": "1", "detail-type": "paid"})
    told = {one.path: (one.message, one.suggestion) for one in found}
    assert told["/id"] == ("`id` is missing", "rename `eventId`")
    says(told["/type"])
    assert told["/source"] == ("`source` is missing", "")
    assert event_problems("x")[0].path == ""


def test_an_event_is_known_by_source_and_id_together() -> None:
    one = identity_of(EVENT)
    assert identity_of({**EVENT, "type": "other", "data": 5}) == one
    assert (
        len({one, identity_of({**EVENT, "id": "e2"}), identity_of({**EVENT, "source": "shope", "id": "1"})})
        == 3
    )
