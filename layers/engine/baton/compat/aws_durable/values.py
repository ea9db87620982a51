"""Values of durable handlers: their form in the log, results of batches, and what their functions get."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Generic, TypeVar
from uuid import UUID

from baton.compat.aws_durable.options import (
    BatchItemStatus,
    ChildContextError,
    CompletionConfig,
    CompletionItemStatus,
    CompletionOutcome,
    CompletionStatus,
    DurableOperationError,
    ErrorObject,
    InvocationError,
    SerDes,
    SerDesContext,
    SerDesError,
)

R = TypeVar("R")

# ---- in the log

_MARK = "$python:"


class PassThroughSerDes(SerDes[Any]):
    """Texts as they are."""

    def serialize(self, value: Any, serdes_context: SerDesContext) -> Any:
        """Return the text."""
        return value

    def deserialize(self, data: str, serdes_context: SerDesContext) -> Any:
        """Return the text."""
        return data


class JsonSerDes(SerDes[Any]):
    """JSON."""

    def serialize(self, value: Any, serdes_context: SerDesContext) -> str:
        """Return the JSON of a value."""
        return json.dumps(value)

    def deserialize(self, data: str, serdes_context: SerDesContext) -> Any:
        """Return the value of JSON."""
        return json.loads(data)


class ExtendedTypeSerDes(SerDes[Any]):
    """JSON with dates, decimals, bytes, UUIDs and tuples."""

    def serialize(self, value: Any, serdes_context: SerDesContext | None = None) -> str:
        """Return the JSON of a value."""
        return json.dumps(marked(value), separators=(",", ":"))

    def deserialize(self, data: str, serdes_context: SerDesContext | None = None) -> Any:
        """Return the value of JSON."""
        return unmarked(json.loads(data))


_WRITE: dict[type, Callable[[Any], Any]] = {
    bytes: lambda value: base64.b64encode(value).decode(),
    UUID: str,
    Decimal: str,
    datetime: lambda value: value.isoformat(),
    date: lambda value: value.isoformat(),
    tuple: lambda value: [marked(one) for one in value],
}
_READ: dict[str, Callable[[Any], Any]] = {
    "bytes": base64.b64decode,
    "UUID": UUID,
    "Decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "tuple": lambda value: tuple(unmarked(one) for one in value),
}


def marked(value: Any) -> Any:
    """Return a value as JSON. Raises `TypeError` for a type that it does not know."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, list):
        return [marked(one) for one in value]
    if isinstance(value, dict):
        if any(not isinstance(key, str) for key in value):
            raise TypeError("the keys of a dictionary are texts")
        return {key: marked(one) for key, one in value.items()}
    write = _WRITE.get(type(value))
    if write is None:
        raise TypeError(f"a {type(value).__name__} has no form in JSON; give the operation a `serdes`")
    return {_MARK + type(value).__name__: write(value)}


def unmarked(value: Any) -> Any:
    """Return the value of JSON that `marked` has made."""
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, inner),) = value.items()
        read = _READ.get(key.removeprefix(_MARK)) if key.startswith(_MARK) else None
        if read is not None:
            return read(inner)
    return {key: unmarked(one) for key, one in value.items()}


def written(serdes: SerDes[Any] | None, value: Any, context: SerDesContext) -> Any:
    """Return a value as JSON: by default itself, otherwise the text of `serdes`. Raises `SerDesError`."""
    try:
        return marked(value) if serdes is None else serdes.serialize(value, context)
    except (SerDesError, InvocationError):
        raise
    except Exception as error:  # code of the application runs in there
        raise SerDesError(f"the value of `{context.operation_id}` cannot be written: {error}") from error


def read(serdes: SerDes[Any] | None, data: Any, context: SerDesContext) -> Any:
    """Return the value of what `written` has returned. Raises `SerDesError`."""
    if data is None:
        return None
    try:
        return unmarked(data) if serdes is None else serdes.deserialize(data, context)
    except (SerDesError, InvocationError):
        raise
    except Exception as error:  # code of the application runs in there
        raise SerDesError(f"the value of `{context.operation_id}` cannot be read: {error}") from error


# ---- what functions get


class Logger:
    """Logger that adds the saga and the operation to each line, and writes nothing while `is_replaying`."""

    def __init__(
        self, logger: Any, extra: Mapping[str, object], is_replaying: Callable[[], bool] = lambda: False
    ) -> None:
        self._logger, self._extra, self._is_replaying = logger, dict(extra), is_replaying

    def with_extra(self, **extra: object) -> Logger:
        """Return a logger with more fields, for code that a replay does not run again."""
        return Logger(self._logger, {**self._extra, **extra})

    def with_is_replaying(self, is_replaying: Callable[[], bool]) -> Logger:
        """Return a logger that is silent while this is true."""
        return Logger(self._logger, self._extra, is_replaying)

    def get_logger(self) -> Any:
        """Return the logger that writes."""
        return self._logger

    def debug(self, msg: object, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Write a line of this level."""
        self._log(logging.DEBUG, msg, args, extra)

    def info(self, msg: object, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Write a line of this level."""
        self._log(logging.INFO, msg, args, extra)

    def warning(self, msg: object, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Write a line of this level."""
        self._log(logging.WARNING, msg, args, extra)

    def error(self, msg: object, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Write a line of this level."""
        self._log(logging.ERROR, msg, args, extra)

    def exception(self, msg: object, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Write a line of the level ERROR, with the traceback."""
        self._log(logging.ERROR, msg, args, extra, exc_info=True)

    def _log(
        self,
        level: int,
        msg: object,
        args: tuple[object, ...],
        extra: Mapping[str, object] | None,
        *,
        exc_info: bool = False,
    ) -> None:
        if not self._is_replaying():
            self._logger.log(level, msg, *args, exc_info=exc_info, extra={**self._extra, **(extra or {})})


@dataclass(frozen=True)
class OperationContext:
    """Context of a function that an operation calls."""

    logger: Logger


@dataclass(frozen=True)
class StepContext(OperationContext):
    """Context of a step. The first attempt is 1."""

    attempt: int


@dataclass(frozen=True)
class WaitForCallbackContext(OperationContext):
    """Context of the function that hands a callback over."""


@dataclass(frozen=True)
class WaitForConditionCheckContext(OperationContext):
    """Context of a check. The first is 1."""

    attempt: int


# ---- batches


class CompletionReason(Enum):
    """Condition that has ended a batch."""

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
