"""The context of a durable handler: AWS's operations, as operations of a workflow function.

The code of a step is a closure in the memory of the process that runs the handler. So its operation is a
call of a tool (strands.py) that finds the closure there. In a process that has not run the handler the tool
says so, and the handler, run again, asks for the step once more.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from msgspec import structs

from baton.compat.aws_durable.options import (
    BatchItemStatus,
    CallbackConfig,
    CallbackExternalError,
    CallbackSubmitterError,
    CallbackTimeoutError,
    ChildConfig,
    ChildContextError,
    CompletionConfig,
    DurableOperationError,
    Duration,
    ErrorObject,
    InvokeConfig,
    InvokeError,
    MapConfig,
    ParallelBranch,
    ParallelConfig,
    RetryDecision,
    RetryPresets,
    SerDes,
    SerDesContext,
    StepConfig,
    StepError,
    StepInterruptedError,
    StepSemantics,
    ValidationError,
    WaitForCallbackConfig,
    WaitForConditionConfig,
    WaitForConditionError,
    WithRetryConfig,
    create_retry_strategy,
    uniform,
)
from baton.compat.aws_durable.strands import (
    BODIES,
    ERROR,
    INTERRUPTED,
    MISSING,
    STEP,
    STEP_ONCE,
    add_tools,
    failure_of,
    run_plain,
    wait_for,
)
from baton.compat.aws_durable.values import (
    BatchItem,
    BatchResult,
    CompletionReason,
    Logger,
    PassThroughSerDes,
    StepContext,
    WaitForCallbackContext,
    WaitForConditionCheckContext,
    completion,
    read,
    written,
)
from baton.core.effects.toolspec import PURE
from baton.ports import StepFailure
from baton.tools.define import REGISTRY, Registry, ToolError, _make, _where
from baton.tools.functions.context import SHORTEST_HEARTBEAT_MS, WorkflowContext
from baton.tools.functions.loop import Callback, FunctionDefect

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")


def _binding(function: Callable[..., Any], takes: int) -> Callable[..., Any]:
    """Return a maker of functions that get `takes` contexts, and after them the arguments of the maker."""

    def bind(*args: Any, **options: Any) -> Callable[..., Any]:
        def bound(*contexts: Any) -> Any:
            return function(*contexts[:takes], *args, **options)

        bound.__name__ = function.__name__
        return bound

    return bind


def durable_step(
    func: Callable[Concatenate[StepContext, P], T],
) -> Callable[P, Callable[[StepContext], T]]:
    """Make a function one that is called with its arguments, and given to `step`."""
    return _binding(func, 1)


def durable_with_child_context(
    func: Callable[Concatenate[DurableContext, P], T],
) -> Callable[P, Callable[[DurableContext], T]]:
    """Make a function one that is called with its arguments, and given to `run_in_child_context`."""
    return _binding(func, 1)


def durable_wait_for_callback(
    func: Callable[Concatenate[str, WaitForCallbackContext, P], T],
) -> Callable[P, Callable[[str, WaitForCallbackContext], T]]:
    """Make a function one that is called with its arguments, and given to `wait_for_callback`."""
    return _binding(func, 2)


def durable_parallel_branch(
    name: str | None = None,
) -> Callable[[Callable[Concatenate[DurableContext, P], T]], Callable[P, ParallelBranch[T]]]:
    """Make a function one that is called with its arguments, and given to `parallel`."""

    def declare(func: Callable[Concatenate[DurableContext, P], T]) -> Callable[P, ParallelBranch[T]]:
        def branch(*args: P.args, **options: P.kwargs) -> ParallelBranch[T]:
            return ParallelBranch(_binding(func, 1)(*args, **options), name)

        return branch

    return declare


@dataclass(frozen=True)
class ExecutionContext:
    """The execution. Its ARN is the id of the saga."""

    durable_execution_arn: str


class Execution:
    """Common part of all contexts of one run of a handler. It numbers the closures, which have no names."""

    def __init__(self, workflow: WorkflowContext, place: str) -> None:
        self.workflow, self.place = workflow, place
        self.bodies = 0

    def body_key(self) -> tuple[str, str, str]:
        """Return the key of the next closure."""
        self.bodies += 1
        return self.workflow.tenant, self.workflow.saga, f"{self.place}/{self.bodies}"


class DurableCallback(Generic[T]):
    """A callback, which another system completes by `POST /callbacks/{callback_id}`; `url` is all of it."""

    def __init__(self, operation: Callback[Any], serdes: SerDes[Any]) -> None:
        self.callback_id, self.url = operation.token, operation.url
        self._operation, self._serdes = operation, serdes

    def result(self) -> T | None:
        """Wait for its result, which is a text unless it has a `serdes`. Raises `CallbackError`."""
        try:
            output = wait_for(lambda: asyncio.shield(self._operation))
        except TimeoutError as error:
            raise CallbackTimeoutError("the callback did not come in time") from error
        except StepFailure as failure:
            raise CallbackExternalError(failure.message, failure.code) from failure
        text = output if output is None or isinstance(output, str) else json.dumps(output)
        found: T | None = read(self._serdes, text, SerDesContext(self._operation.item))
        return found


class DurableContext:
    """The operations of a handler. They wait; the code of the handler is plain."""

    def __init__(self, execution: Execution, logger: Logger | None = None) -> None:
        self._run = execution
        self._workflow = execution.workflow
        self.execution_context = ExecutionContext(execution.workflow.saga)
        self.lambda_context = None
        self.logger = logger or self._logger_over(logging.getLogger("baton.durable"))

    def is_replaying(self) -> bool:
        """Return true while the handler does again what the log has."""
        return self._workflow.is_replaying

    def set_logger(self, new_logger: Any) -> None:
        """Write by another logger."""
        self.logger = self._logger_over(new_logger)

    def _logger_over(self, logger: Any) -> Logger:
        """Return a logger of the context, which does not repeat in a replay what it has written."""
        return Logger(logger, {"executionArn": self._workflow.saga}, self.is_replaying)

    # ---- steps

    def step(
        self, func: Callable[[StepContext], T], name: str | None = None, config: StepConfig | None = None
    ) -> T:
        """Run a function, and record its result. Raises `StepError` when it has failed for good."""
        of, called = config or StepConfig(), name_of(name, func, "step")
        strategy = of.retry_strategy or RetryPresets.default()
        is_once = of.step_semantics is StepSemantics.AT_MOST_ONCE_PER_RETRY
        place, attempt, said = self._place(called), 1, f"`{called}` was interrupted"
        while True:
            run = self._attempt(func, called, attempt, strategy, of.serdes, place)
            try:
                outcome = self._body(called, run, STEP_ONCE if is_once else STEP)
            except StepFailure as failure:
                if failure.code == ERROR:
                    kind, _, message = failure.message.partition(": ")
                    raise StepError(message, kind) from failure
                outcome, said = INTERRUPTED, failure.message
            if outcome == INTERRUPTED:  # the attempt was cut off, and may have acted
                decision = strategy(StepInterruptedError(said), attempt)
                if not decision.should_retry:
                    raise StepError(said, StepInterruptedError.__name__)
                outcome = {"retry_in": max(1, decision.delay.seconds)}
            if "retry_in" not in outcome:
                found: T = read(of.serdes, outcome.get("value"), place)
                return found
            self._sleep(outcome["retry_in"], f"{called}_retry")
            attempt += 1

    def _attempt(
        self,
        func: Callable[[StepContext], Any],
        name: str,
        attempt: int,
        strategy: Callable[[Exception, int], RetryDecision],
        serdes: SerDes[Any] | None,
        place: SerDesContext,
    ) -> Callable[[], dict[str, Any]]:
        """Return the code of an attempt: it calls the function, and asks the strategy about its error."""
        context = StepContext(self._logger_of(name, attempt), attempt)

        def run() -> dict[str, Any]:
            try:
                value = written(serdes, func(context), place)
                read(serdes, value, place)  # what cannot be read must not count as done
                return {"value": value}
            except DurableOperationError as error:  # of `serdes`
                raise failure_of(error) from error
            except Exception as error:
                try:
                    decision = strategy(error, attempt)
                except Exception as broken:
                    raise failure_of(broken) from broken
                if not decision.should_retry:
                    raise failure_of(error) from error
                said = f"{type(error).__name__}: {error}"
                return {"retry_in": max(1, decision.delay.seconds), "error": said}

        return run

    def wait_for_condition(
        self,
        check: Callable[[T, WaitForConditionCheckContext], T],
        config: WaitForConditionConfig[T],
        name: str | None = None,
    ) -> T:
        """Call `check` with its newest result until the strategy stops. Raises `WaitForConditionError`."""
        called, serdes = name_of(name, check, "condition"), config.serdes
        place, attempt = self._place(called), 0
        state: T = read(serdes, written(serdes, config.initial_state, place), place)
        while True:
            attempt += 1
            context = WaitForConditionCheckContext(self._logger_of(called, attempt), attempt)

            def run(
                before: T = state, context: WaitForConditionCheckContext = context, attempt: int = attempt
            ) -> dict[str, Any]:
                try:
                    value = written(serdes, check(before, context), place)
                    decision = config.wait_strategy(read(serdes, value, place), attempt)
                except Exception as error:
                    raise failure_of(error) from error
                wait_s = max(1, decision.delay.seconds) if decision.should_continue else 0
                return {"value": value, "wait": wait_s}

            try:
                outcome = self._body(called, run, STEP)
            except StepFailure as failure:
                kind, _, message = failure.message.partition(": ")
                raise WaitForConditionError(message, kind) from failure
            state = read(serdes, outcome["value"], place)
            if not outcome["wait"]:
                return state
            self._sleep(outcome["wait"], f"{called}_wait")

    def _body(self, name: str, run: Callable[[], dict[str, Any]], tool: str) -> dict[str, Any]:
        """Return the outcome of a closure; one that a process does not have is asked for again."""
        while True:
            key = self._run.body_key()
            BODIES[key] = run
            try:
                outcome = self._wait(lambda key=key: self._workflow.step(tool, key[2], name=name))  # type: ignore[misc]
            finally:
                BODIES.pop(key, None)
            if outcome != MISSING:
                found: dict[str, Any] = outcome
                return found

    # ---- waits

    def wait(self, duration: Duration, name: str | None = None) -> None:
        """Wait so long."""
        if duration.seconds < 1:
            raise ValidationError("a wait is at least one second")
        self._sleep(duration.seconds, name_of(name, None, "wait"))

    def _sleep(self, seconds: int, name: str) -> None:
        self._wait(lambda: self._workflow.sleep(seconds, name=name_of(name, None, "wait")))

    def create_callback(
        self, name: str | None = None, config: CallbackConfig | None = None
    ) -> DurableCallback[Any]:
        """Begin to wait for a result from outside."""
        of = config or CallbackConfig()
        timeout, heartbeat = of.timeout.seconds or None, of.heartbeat_timeout.seconds or None
        if heartbeat is not None:
            heartbeat = max(heartbeat, SHORTEST_HEARTBEAT_MS // 1_000)
            heartbeat = None if timeout is not None and heartbeat >= timeout else heartbeat

        async def begin() -> Callback[Any]:
            called = name_of(name, None, "callback")
            begun = self._workflow.callback(timeout=timeout, heartbeat=heartbeat, name=called)
            begun.is_used = True  # a handler may end without its result
            return begun

        return DurableCallback(self._wait(begin), of.serdes or PassThroughSerDes())

    def wait_for_callback(
        self,
        submitter: Callable[[str, WaitForCallbackContext], Any],
        name: str | None = None,
        config: WaitForCallbackConfig | None = None,
    ) -> Any:
        """Give a new callback to `submitter`, and wait for its result. Raises `CallbackError`."""
        of, called = config or WaitForCallbackConfig(), name_of(name, submitter, "callback")
        callback = self.create_callback(called, of)

        def submit(context: StepContext) -> None:
            submitter(callback.callback_id, WaitForCallbackContext(context.logger))

        try:
            self.step(submit, f"{called}_submitter", StepConfig(of.retry_strategy))
        except StepError as error:
            raise CallbackSubmitterError(error.message, error.error_type) from error
        return callback.result()

    # ---- other workflows

    def invoke(
        self,
        function_name: str,
        payload: Any,
        name: str | None = None,
        config: InvokeConfig[Any, Any] | None = None,
    ) -> Any:
        """Start a workflow, and wait for its result. `function_name`: its name, or an ARN with it.

        Raises `InvokeError`.
        """
        of, workflow = config or InvokeConfig(), workflow_of(function_name)
        place = self._place(workflow)
        if of.serdes_payload is not None:
            payload = json.loads(written(of.serdes_payload, payload, place))
        try:
            called = name_of(name, None, workflow)
            result = self._wait(lambda: self._workflow.call(workflow, {"event": payload}, name=called))
        except StepFailure as failure:
            raise InvokeError(failure.message, failure.code) from failure
        if of.serdes_result is None:
            return result
        return read(of.serdes_result, json.dumps(result), place)

    # ---- contexts

    def run_in_child_context(
        self,
        func: Callable[[DurableContext], T],
        name: str | None = None,
        config: ChildConfig[T] | None = None,
    ) -> T:
        """Run a function with a context of its own. Raises `ChildContextError` for what it raises."""
        serdes, place = (config or ChildConfig[T]()).serdes, self._place(name_of(name, func, "child"))
        try:
            value = func(DurableContext(self._run, self.logger))
        except FunctionDefect:
            raise
        except Exception as error:  # noqa: BLE001  # raised again, as what the handler expects
            ErrorObject.from_exception(error).raise_as_operation_error(ChildContextError)
        return value if serdes is None else read(serdes, written(serdes, value, place), place)

    def map(
        self,
        inputs: Sequence[U],
        func: Callable[[DurableContext, U, int, Sequence[U]], T],
        name: str | None = None,
        config: MapConfig[U] | None = None,
    ) -> BatchResult[T]:
        """Run a function for each item."""
        of = config or MapConfig[U]()
        namer = of.item_namer
        branches = [
            ParallelBranch(
                lambda context, one=one, index=index: func(context, one, index, inputs),
                None if namer is None else namer(one, index),
            )
            for index, one in enumerate(inputs)
        ]
        return self._batch(branches, name_of(name, func, "map"), of)

    def parallel(
        self,
        functions: Sequence[Callable[[DurableContext], T] | ParallelBranch[T]],
        name: str | None = None,
        config: ParallelConfig | None = None,
    ) -> BatchResult[T]:
        """Run functions concurrently."""
        of = config or ParallelConfig(completion_config=CompletionConfig.all_successful())
        branches = [one if isinstance(one, ParallelBranch) else ParallelBranch(one) for one in functions]
        return self._batch(branches, name_of(name, None, "parallel"), of)

    def _batch(
        self, branches: Sequence[ParallelBranch[T]], name: str, config: MapConfig[Any] | ParallelConfig
    ) -> BatchResult[T]:
        config.completion_config.check_total(len(branches))
        place, serdes = self._place(name), config.serdes
        result: BatchResult[T] = self._wait(lambda: self._run_batch(branches, name, config))
        return result if serdes is None else read(serdes, written(serdes, result, place), place)

    async def _run_batch(
        self, branches: Sequence[ParallelBranch[T]], name: str, config: MapConfig[Any] | ParallelConfig
    ) -> BatchResult[T]:
        serdes, place = config.item_serdes or config.serdes, self._place(name)
        items: list[BatchItem[T] | None] = [None] * len(branches)
        names = [one.name for one in branches]
        most = config.max_concurrency or len(branches)
        running: dict[asyncio.Task[T], int] = {}

        async def run(branch: ParallelBranch[T]) -> T:
            value = await run_plain(lambda: branch.func(DurableContext(self._run, self.logger)))
            return value if serdes is None else read(serdes, written(serdes, value, place), place)

        def over() -> CompletionReason | None:
            return completion(config.completion_config, items, names)

        reason, begun = over(), 0
        try:
            while reason is None:
                while begun < len(branches) and len(running) < most:
                    coroutine = _named(run(branches[begun]), name_of(names[begun], None, name))
                    running[asyncio.create_task(coroutine)] = begun
                    items[begun] = BatchItem(begun, BatchItemStatus.STARTED)
                    begun += 1
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(done, key=running.__getitem__):
                    index = running.pop(task)
                    items[index] = _item(index, task)
                    reason = reason or over()
        finally:
            for task in running:
                task.cancel()
        if running:
            await asyncio.wait(running)
        return BatchResult([one for one in items if one is not None], reason)

    # ---- helpers

    def _wait(self, asked: Callable[[], Awaitable[T]]) -> T:
        return wait_for(asked)

    def _place(self, name: str) -> SerDesContext:
        return SerDesContext(name, self._workflow.saga)

    def _logger_of(self, name: str, attempt: int) -> Logger:
        return self.logger.with_is_replaying(lambda: False).with_extra(operationName=name, attempt=attempt)


def _item(index: int, task: asyncio.Task[T]) -> BatchItem[T]:
    error = task.exception()
    if error is None:
        return BatchItem(index, BatchItemStatus.SUCCEEDED, task.result())
    if isinstance(error, FunctionDefect) or not isinstance(error, Exception):
        raise error
    return BatchItem(index, BatchItemStatus.FAILED, error=ErrorObject.from_exception(error))


def _named(coroutine: Coroutine[Any, Any, T], name: str) -> Coroutine[Any, Any, T]:
    """Give a coroutine the name under which its operations stand in the log."""
    named: Any = coroutine
    named.__name__ = name
    return coroutine


def name_of(name: str | None, function: Any, kind: str) -> str:
    """Return the name of an operation in the log: letters, digits and `_`."""
    text = name or str(getattr(function, "__name__", ""))
    text = kind if text in ("", "<lambda>") else text
    text = re.sub("[^A-Za-z0-9_]+", "_", text).strip("_")[:40] or kind
    return f"_{text}" if text[0].isdigit() else text


def workflow_of(function_name: str) -> str:
    """Return the name of the workflow that has the place of a Lambda function or a Python function."""
    text = (function_name.partition(":function:")[2] or function_name).partition(":")[0]
    text = re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", text).lower()
    return re.sub("[^a-z0-9]+", "-", text).strip("-")


def with_retry(
    context: DurableContext,
    func: Callable[[DurableContext, int], T],
    config: WithRetryConfig[T],
    name: str | None = None,
) -> T:
    """Run a block of operations, again from its beginning when it raises and the strategy says so."""
    strategy = config.retry_strategy or create_retry_strategy()

    def attempts(inner: DurableContext) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                return func(inner, attempt)
            except Exception as error:
                decision = strategy(error, attempt)
                if not decision.should_retry:
                    raise
                inner.wait(decision.delay, f"{name}-backoff-{attempt}" if name else None)

    if not config.wrap_with_run_in_child_context:
        return attempts(context)
    return context.run_in_child_context(attempts, name, config.child_context_config)


# ---- the handler

Handler = Callable[[Any, DurableContext], Any]
FAILED = "execution_failed"
_USUAL = ("handler", "lambda_handler")


@overload
def durable_execution(func: Handler) -> Callable[..., Any]: ...
@overload
def durable_execution(
    func: None = None,
    *,
    name: str = "",
    timeout: str | float | None = None,
    limits: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
    boto3_client: Any = None,
    plugins: Any = None,
) -> Callable[[Handler], Callable[..., Any]]: ...
def durable_execution(
    func: Handler | None = None,
    *,
    name: str = "",
    timeout: str | float | None = None,
    limits: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
    boto3_client: Any = None,
    plugins: Any = None,
) -> Callable[..., Any]:
    """Declare a plain function of an event and a context as a workflow. Its input is `{"event": …}`.

    name: without one, that of the function; that of its module for `handler`. timeout, limits: as in a
    document. boto3_client: ignored. plugins: refused. Raises `ToolError`.
    """

    def declare(handler: Handler) -> Callable[..., Any]:
        known = REGISTRY if registry is None else registry
        if plugins:
            raise ToolError(f"`{handler.__name__}`: plugins are not called here{_where(handler)}")
        workflow = name or _name_of(handler)
        code = partial(handler)  # steps are inside, which the notes of `baton check` would take for it

        async def run(event: Any = None, *, context: WorkflowContext) -> Any:
            uniform.set(context.random)
            execution = Execution(context, context.uuid().hex[:8])
            try:
                return await run_plain(lambda: code(event, DurableContext(execution)))
            except (FunctionDefect, StepFailure):
                raise
            except Exception as error:
                kind = error.error_type if isinstance(error, DurableOperationError) else type(error).__name__
                raise StepFailure(FAILED, f"{kind}: {error}", kind="permanent") from error

        run.__name__, run.__qualname__ = name_of(None, handler, _USUAL[0]), handler.__qualname__
        run.__module__, run.__doc__ = handler.__module__, handler.__doc__
        made = _make(run, workflow, "1", PURE, 0, None, context_type=WorkflowContext)
        said = {"timeout": timeout, "limits": limits}
        document = {key: value for key, value in said.items() if value is not None}
        spec = structs.replace(made.spec, calls=(STEP, STEP_ONCE))
        known.add(replace(made, spec=spec, document=document))
        add_tools(known)
        return run

    return declare if func is None else declare(func)


def _name_of(handler: Callable[..., Any]) -> str:
    called = handler.__name__
    return workflow_of(handler.__module__.rpartition(".")[2] if called in _USUAL else called)
