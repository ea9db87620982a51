"""Results of `map` and `parallel`, and the conditions of their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from baton.compat.aws_durable.config import (
    BatchItemStatus,
    CompletionConfig,
    CompletionItemStatus,
    CompletionOutcome,
    CompletionStatus,
)
from baton.compat.aws_durable.exceptions import ChildContextError, DurableOperationError, ErrorObject

R = TypeVar("R")


class CompletionReason(Enum):
    """Why a batch has ended."""

    ALL_COMPLETED = "ALL_COMPLETED"
    MIN_SUCCESSFUL_REACHED = "MIN_SUCCESSFUL_REACHED"
    FAILURE_TOLERANCE_EXCEEDED = "FAILURE_TOLERANCE_EXCEEDED"
    CUSTOM_COMPLETION_SUCCEEDED = "CUSTOM_COMPLETION_SUCCEEDED"
    CUSTOM_COMPLETION_FAILED = "CUSTOM_COMPLETION_FAILED"


class BatchCompletionError(DurableOperationError):
    """Batch that a predicate has ended as failed."""


@dataclass(frozen=True)
class BatchItem(Generic[R]):
    """Result of a branch that has begun."""

    index: int
    status: BatchItemStatus
    result: R | None = None
    error: ErrorObject | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        error = self.error.to_dict() if self.error else None
        return {"index": self.index, "status": self.status.value, "result": self.result, "error": error}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BatchItem[R]:
        """Return what `to_dict` has written."""
        error = ErrorObject.from_dict(data["error"]) if data.get("error") else None
        return cls(data["index"], BatchItemStatus(data["status"]), data.get("result"), error)


@dataclass(frozen=True)
class BatchResult(Generic[R]):
    """Results of the branches that have begun, in their order."""

    all: list[BatchItem[R]]
    completion_reason: CompletionReason

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "all": [one.to_dict() for one in self.all],
            "completionReason": self.completion_reason.value,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BatchResult[R]:
        """Return what `to_dict` has written."""
        items: list[BatchItem[R]] = [BatchItem.from_dict(one) for one in data["all"]]
        return cls(items, CompletionReason(data["completionReason"]))

    def succeeded(self) -> list[BatchItem[R]]:
        """Return the branches that have succeeded."""
        return self._of(BatchItemStatus.SUCCEEDED)

    def failed(self) -> list[BatchItem[R]]:
        """Return the branches that have failed."""
        return self._of(BatchItemStatus.FAILED)

    def started(self) -> list[BatchItem[R]]:
        """Return the branches that had not ended."""
        return self._of(BatchItemStatus.STARTED)

    def _of(self, status: BatchItemStatus) -> list[BatchItem[R]]:
        return [one for one in self.all if one.status is status]

    @property
    def status(self) -> BatchItemStatus:
        """FAILED if a branch has failed, or a predicate has said so."""
        if self.completion_reason is CompletionReason.CUSTOM_COMPLETION_SUCCEEDED:
            return BatchItemStatus.SUCCEEDED
        is_failed = self.has_failure or self.completion_reason is CompletionReason.CUSTOM_COMPLETION_FAILED
        return BatchItemStatus.FAILED if is_failed else BatchItemStatus.SUCCEEDED

    @property
    def has_failure(self) -> bool:
        """True if a branch has failed."""
        return bool(self.failed())

    def throw_if_error(self) -> None:
        """Raise the error of the first branch that has failed."""
        for one in self.failed():
            error = one.error or ErrorObject(f"branch {one.index} has failed", None)
            error.raise_as_operation_error(ChildContextError)
        if self.completion_reason is CompletionReason.CUSTOM_COMPLETION_FAILED:
            raise BatchCompletionError("`should_complete` has ended the batch as failed")

    def get_results(self) -> list[Any]:
        """Return the results of the branches that have succeeded."""
        return [one.result for one in self.succeeded()]

    def get_errors(self) -> list[ErrorObject | None]:
        """Return the errors of the branches that have failed."""
        return [one.error for one in self.failed()]

    @property
    def success_count(self) -> int:
        """Number of branches that have succeeded."""
        return len(self.succeeded())

    @property
    def failure_count(self) -> int:
        """Number of branches that have failed."""
        return len(self.failed())

    @property
    def started_count(self) -> int:
        """Number of branches that had not ended."""
        return len(self.started())

    @property
    def total_count(self) -> int:
        """Number of branches that have begun."""
        return len(self.all)


def completion(
    config: CompletionConfig, items: Sequence[BatchItem[Any] | None], names: Sequence[str | None]
) -> CompletionReason | None:
    """Return why a batch is over, or None. `items` has None for a branch that has not begun."""
    states = [None if one is None else one.status for one in items]
    succeeded, failed = states.count(BatchItemStatus.SUCCEEDED), states.count(BatchItemStatus.FAILED)
    total, found = len(items), None
    if config.should_complete is not None:
        seen = tuple(map(CompletionItemStatus, range(total), names, states))
        status = CompletionStatus(succeeded, failed, succeeded + failed, total, seen)
        decision = config.should_complete(status)
        if decision.complete:
            is_failed = decision.outcome is CompletionOutcome.FAILED
            return (
                CompletionReason.CUSTOM_COMPLETION_FAILED
                if is_failed
                else CompletionReason.CUSTOM_COMPLETION_SUCCEEDED
            )
    elif _is_exceeded(config, failed, total):
        return CompletionReason.FAILURE_TOLERANCE_EXCEEDED
    if succeeded + failed >= total:
        found = CompletionReason.ALL_COMPLETED
    elif config.min_successful is not None and succeeded >= config.min_successful:
        found = CompletionReason.MIN_SUCCESSFUL_REACHED
    return found


def _is_exceeded(config: CompletionConfig, failed: int, total: int) -> bool:
    count, percentage = config.tolerated_failure_count, config.tolerated_failure_percentage
    if (config.min_successful, count, percentage) == (None,) * 3:
        return failed > 0
    if count is not None and failed > count:
        return True
    return percentage is not None and total > 0 and 100 * failed / total > percentage
