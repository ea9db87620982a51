"""What the functions of a handler get, besides the context itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


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
