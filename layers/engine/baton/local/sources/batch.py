"""Lambda's reading of a function's answer to a batch: which records failed? Pure, for queues and streams.

Source: Lambda developer guide, "Handling errors for an SQS event source" and "Configuring partial batch
response with DynamoDB": nothing reported is a success, anything malformed a failure of the whole batch.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def failed_items(answer: Any, known: Collection[str], partial: bool) -> frozenset[str]:
    """The identifiers among `known` (message ids, or sequence numbers) that have to be repeated.

    `answer` is the parsed answer of an invocation that succeeded; without `partial`
    (ReportBatchItemFailures) it is not looked at.
    """
    everything = frozenset(known)
    if not partial or answer is None or answer == {} or answer == "":
        return frozenset()
    if not isinstance(answer, dict):
        return everything
    failures = answer.get("batchItemFailures")
    if failures is None:
        return frozenset()
    if not isinstance(failures, list):
        return everything
    failed = set()
    for failure in failures:
        identifier = failure.get("itemIdentifier") if isinstance(failure, dict) else None
        if not isinstance(identifier, str) or identifier not in everything:
            return everything  # null, empty, another key, or a record that was not in the batch
        failed.add(identifier)
    return frozenset(failed)
