"""How the answer to a batch is read: which of its records come again."""

from __future__ import annotations

from typing import Any

import pytest

from baton.local.queues import failed_items

ALL = {"1", "2", "3"}


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (None, set()),
        ({}, set()),
        ("", set()),
        ({"batchItemFailures": None}, set()),
        ({"batchItemFailures": []}, set()),
        ({"batchItemFailures": [{"itemIdentifier": "2"}]}, {"2"}),
        ({"batchItemFailures": [{"itemIdentifier": "2"}, {"itemIdentifier": "3"}]}, {"2", "3"}),
        ({"batchItemFailures": [{"itemIdentifier": ""}]}, ALL),
        ({"batchItemFailures": [{"itemIdentifier": None}]}, ALL),
        ({"batchItemFailures": [{"id": "2"}]}, ALL),
        ({"batchItemFailures": [{"itemIdentifier": "9"}]}, ALL),
        ({"batchItemFailures": ["2"]}, ALL),
        ({"batchItemFailures": "2"}, ALL),
        ("fine", ALL),
        (["2"], ALL),
    ],
)
def test_nothing_reported_is_success_and_anything_malformed_fails_the_batch(
    answer: Any, failed: set[str]
) -> None:
    assert failed_items(answer, ALL, partial=True) == failed


def test_without_partial_answers_whatever_was_returned_is_success() -> None:
    assert failed_items({"batchItemFailures": [{"itemIdentifier": "2"}]}, ALL, partial=False) == set()
