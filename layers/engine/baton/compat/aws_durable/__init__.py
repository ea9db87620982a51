"""AWS's durable-execution context over workflow functions: a handler written for it runs with its import changed.

The names are those of `aws_durable_execution_sdk_python`, module by module. docs/aws-durable.md says what differs.
"""

from baton.compat.aws_durable.concurrency.models import BatchCompletionError, BatchResult
from baton.compat.aws_durable.config import (
    BatchItemStatus,
    CompletionDecision,
    CompletionItemStatus,
    CompletionOutcome,
    CompletionStatus,
    ParallelBranch,
    complete_batch,
    continue_batch,
)
from baton.compat.aws_durable.context import (
    DurableContext,
    durable_parallel_branch,
    durable_step,
    durable_wait_for_callback,
    durable_with_child_context,
)
from baton.compat.aws_durable.exceptions import (
    CallbackError,
    CallbackExternalError,
    CallbackSubmitterError,
    CallbackTimeoutError,
    ChildContextError,
    DurableExecutionsError,
    DurableOperationError,
    ExecutionError,
    InvocationError,
    InvokeError,
    RetryableSerDesError,
    SerDesError,
    StepError,
    ValidationError,
    WaitForConditionError,
)
from baton.compat.aws_durable.execution import durable_execution
from baton.compat.aws_durable.retries import WithRetryConfig, with_retry
from baton.compat.aws_durable.types import StepContext

__all__ = [
    "BatchCompletionError", "BatchItemStatus", "BatchResult", "CallbackError", "CallbackExternalError",
    "CallbackSubmitterError", "CallbackTimeoutError", "ChildContextError", "CompletionDecision",
    "CompletionItemStatus", "CompletionOutcome", "CompletionStatus", "DurableContext",
    "DurableExecutionsError", "DurableOperationError", "ExecutionError", "InvocationError", "InvokeError",
    "ParallelBranch", "RetryableSerDesError", "SerDesError", "StepContext", "StepError", "ValidationError",
    "WaitForConditionError", "WithRetryConfig", "complete_batch", "continue_batch", "durable_execution",
    "durable_parallel_branch", "durable_step", "durable_wait_for_callback", "durable_with_child_context",
    "with_retry",
]  # fmt: skip
