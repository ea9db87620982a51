"""Errors of a durable handler, under the names that AWS's SDK gives them.

The operations raise the classes under `DurableOperationError`. An exception that a handler does not catch ends its
saga as failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn


class DurableExecutionsError(Exception):
    """Base class of all errors of this package."""


class ValidationError(DurableExecutionsError):
    """Arguments that an operation does not take."""


class InvalidStateError(DurableExecutionsError):
    """An object that cannot do this now."""


class InvocationError(DurableExecutionsError):
    """An attempt that was cut off, and can be made again."""


class ExecutionError(DurableExecutionsError):
    """An error after which the execution cannot go on."""


class StepInterruptedError(InvocationError):
    """An attempt of a step that has begun and may have acted, and has no result."""


class DurableOperationError(DurableExecutionsError):
    """Failure of an operation. `error_type` is the name of the class of what was raised in it."""

    def __init__(
        self,
        message: str | None = None,
        error_type: str | None = None,
        data: str | None = None,
        stack_trace: list[str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_type = error_type or type(self).__name__
        self.data = data
        self.stack_trace = stack_trace


class StepError(DurableOperationError):
    """Failure of a step for good."""


class InvokeError(DurableOperationError):
    """Failure of an invoked workflow."""


class ChildContextError(DurableOperationError):
    """Failure of what ran in a child context, or in a branch."""


class WaitForConditionError(DurableOperationError):
    """Failure of a check, or a condition that did not come true in time."""


class CallbackError(DurableOperationError):
    """Failure of a callback."""


class CallbackExternalError(CallbackError):
    """Failure that the outside has reported."""


class CallbackTimeoutError(CallbackError):
    """Callback or heartbeat that did not come in time."""


class CallbackSubmitterError(CallbackError):
    """Failure of the step that hands the callback over."""


class SerDesError(DurableOperationError):
    """Value that cannot be written or read."""


class RetryableSerDesError(InvocationError):
    """Value that could not be written or read this time."""


@dataclass(frozen=True)
class ErrorObject:
    """Failure of a branch of a batch."""

    message: str | None
    type: str | None
    data: str | None = None
    stack_trace: list[str] | None = None

    @classmethod
    def from_exception(cls, error: BaseException) -> ErrorObject:
        """Return the description of an exception."""
        if isinstance(error, DurableOperationError):
            return cls(error.message, error.error_type, error.data, error.stack_trace)
        return cls(str(error), type(error).__name__)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ErrorObject:
        """Return a description that `to_dict` has written."""
        return cls(*(data.get(key) for key in ("ErrorMessage", "ErrorType", "ErrorData", "StackTrace")))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON, without fields that it does not have."""
        said = {
            "ErrorMessage": self.message,
            "ErrorType": self.type,
            "ErrorData": self.data,
            "StackTrace": self.stack_trace,
        }
        return {key: value for key, value in said.items() if value is not None}

    def raise_as_operation_error(self, kind: Callable[..., DurableOperationError]) -> NoReturn:
        """Raise it as an error of this class."""
        raise kind(self.message, self.type, self.data, self.stack_trace)
