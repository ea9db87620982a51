"""Runs a workflow function from one wait to the next: the sessions of runtime/worker/functions.py."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import copy_context
from typing import Any, NoReturn

from pydantic import ValidationError

from baton.core.failures.codes import FUNCTION_CHANGED, FUNCTION_DEFECT, OUTPUT_INVALID, TOOL_DEFECT
from baton.core.log.records import Failure
from baton.ports import StepContext, StepFailure
from baton.ports.functions import FunctionFacts, FunctionSession, FunctionStep, NoTokensError
from baton.tools.define import Registry, Tool
from baton.tools.functions.context import WorkflowContext
from baton.tools.functions.loop import (
    FunctionDefect,
    FunctionLoop,
    FunctionRun,
    Operation,
    TaskPath,
    task_path,
)
from baton.tools.output import RUNNING
from baton.tools.perform import CURRENT, _first, _place, bind, plain_json, report, tool_failure, traceback_of

_TIME_OVER = ("timeout", "heartbeat_timeout")


def session(
    registry: Registry, known: dict[Any, Tool], name: str, arguments: Any, facts: FunctionFacts
) -> FunctionSession:
    """Make a session of a function. `known` are tools by their functions and by their names.

    Raises `StepFailure`.
    """
    found = registry.get(name)
    if found is None or found.spec.calls is None:
        raise StepFailure("tool_missing", f"there is no workflow function `{name}` in this deployment")
    for one in facts.tools:
        if one not in known and (tool := registry.get(one)) is not None:
            known[one] = known[tool.replaces or tool.function] = tool
    return _Session(found, arguments, facts, known)


class _Session:
    def __init__(self, tool: Tool, arguments: Any, facts: FunctionFacts, tools: Mapping[Any, Tool]) -> None:
        self._tool, self._arguments, self._facts = tool, arguments, facts
        self._asks = FunctionRun()
        self._context = WorkflowContext(facts, tools, self._asks)
        self._loop = FunctionLoop(self._context.sleep)
        self._asks.loop = self._loop
        self._task: asyncio.Task[Any] | None = None
        self._log_context = copy_context()

    def mark_replay(self, *, on: bool) -> None:
        self._context.is_replaying = on

    def close(self) -> None:
        self._loop.forget()

    def start(self, at: int) -> FunctionStep:
        call = bind(self._tool, self._arguments or {}, self._context)
        self._is_at(at)
        path = TaskPath(f"{self._facts.checkpoints}/" if self._facts.checkpoints else "")
        task_path.set(path)
        self._asks.path = path
        context = copy_context()
        facts = self._facts
        step = StepContext(saga=facts.saga, tenant=facts.tenant, user=facts.user, node=facts.node)
        context.run(RUNNING.set, (self._tool.spec.name, step))  # for what it prints and logs
        context.run(CURRENT.set, self._context)
        self._log_context = context
        self._task = self._loop.create_task(self._tool.function(**call), context=context)
        return self._run()

    def _is_at(self, at: int) -> None:
        self._asks.now, self._loop.now_s = at, at / 1_000

    def deliver(self, item: str, at: int, output: Any, failure: Failure | None, by: str = "") -> FunctionStep:
        self._is_at(at)
        operation = self._asks.open.pop(item)
        operation.by, value, unfit = by, None, ""
        if failure is None:
            try:
                value = output if operation.read is None else operation.read(output)
            except ValidationError as error:
                unfit = _first(error)
        elif failure.code == OUTPUT_INVALID:
            unfit = failure.message
        if unfit and operation.refuse is not None:
            operation.refuse(unfit)  # its sender hears of it, and the function does not
            return self._run()
        if not operation.is_used:
            self._asks.unheard[item] = operation
        if failure is not None:
            operation.set_exception(_raised(operation, failure))
            operation.exception()  # known, whether or not it is awaited
        elif unfit:
            text = f"the result of `{item}` in the log does not fit the code: {unfit}"
            return FunctionStep(is_over=True, failure=Failure(FUNCTION_CHANGED, text, self._facts.node))
        else:
            operation.set_result(value)
        return self._run()

    def _run(self) -> FunctionStep:
        assert self._task is not None
        defect: FunctionDefect | None = None
        try:
            self._loop.run_until_idle()
        except FunctionDefect as error:
            defect = error
        except (SystemExit, KeyboardInterrupt) as error:  # asyncio lets them through
            defect = FunctionDefect(
                f"it has raised `{type(error).__name__}`, which ends the worker's process"
            )
        context, task = self._asks, self._task
        if context.lacks_tokens:
            raise NoTokensError
        asked, left, published = tuple(context.asked), tuple(context.left), context.published
        changes = tuple(context.changes)
        for told in (context.asked, context.left, context.changes):
            told.clear()
        context.published = None
        if context.checkpointed and defect is None:
            if not context.open:
                state = context.checkpointed[0]
                return FunctionStep(left=left, begins_again=True, output=state, published=published)
            names = ", ".join(f"`{item}`" for item in context.open)
            defect = FunctionDefect(
                f"it makes a checkpoint while {names} is open; await it or cancel it before"
            )
        if defect is None and task.done():
            return self._over(task)
        if defect is None and not context.open:
            defect = FunctionDefect("it waits for what is no operation of its saga")
        if defect is not None:
            return FunctionStep(is_over=True, failure=self._defect(defect))
        return FunctionStep(asked=asked, left=left, changes=changes, published=published)

    def _over(self, task: asyncio.Task[Any]) -> FunctionStep:
        if task.cancelled():
            return FunctionStep(
                is_over=True, failure=Failure("cancelled", "the function has cancelled itself")
            )
        if (error := task.exception()) is not None:
            return FunctionStep(is_over=True, failure=self._failure(error))
        known = {**self._asks.unheard, **self._asks.open}
        unused = [item for item, one in known.items() if not one.is_used]
        if unused:
            names = ", ".join(f"`{item}`" for item in unused)
            text = f"it has returned, and has never awaited {names}"
            return FunctionStep(is_over=True, failure=self._defect(FunctionDefect(text)))
        try:
            return FunctionStep(is_over=True, output=plain_json(self._tool, task.result()))
        except StepFailure as failed:
            return FunctionStep(is_over=True, failure=_failure_of(failed, self._facts.node))

    def _defect(self, error: BaseException) -> Failure:
        text = f"`{self._tool.spec.name}`: {error}"
        if isinstance(error, FunctionDefect):
            text += _place(error, self._tool)
        return Failure(FUNCTION_DEFECT, text, self._facts.node)

    def _failure(self, error: BaseException) -> Failure:
        """Return the failure of a function that has raised: a mistake in its code, or one of its business."""
        while isinstance(error, BaseExceptionGroup):  # of a task group: what the first one raised
            error = error.exceptions[0]
        if isinstance(error, FunctionDefect):
            return self._defect(error)
        found = tool_failure(error, self._tool)
        if not isinstance(error, StepFailure):
            self._log_context.run(report, traceback_of(error))
        if found.code == TOOL_DEFECT:
            return self._defect(found)
        return _failure_of(found, self._facts.node)


def _failure_of(error: StepFailure, node: str) -> Failure:
    return Failure(error.code, error.message, node, kind=error.kind, status=error.status)


def _raised(operation: Operation[Any], failure: Failure) -> Exception:
    """Return the exception for the failure of an operation."""
    if failure.code in _TIME_OVER and operation.can_expire:
        return TimeoutError(failure.message)
    raised = StepFailure(failure.code, failure.message, kind=failure.kind)
    usual = [one for one, (code, _) in operation.codes.items() if code == failure.code and _is_usual(one)]
    return _also(raised, sorted(usual, key=lambda one: -len(one.__mro__))) if usual else raised


def _is_usual(error: type[BaseException]) -> bool:
    """Return true for a class whose instances a future may have."""
    return issubclass(error, Exception) and not issubclass(error, StopIteration)


_OF_EXCEPTION = {
    name: getattr(BaseException, name)
    for name in ("__eq__", "__hash__", "__reduce__", "__repr__", "__setattr__", "__str__")
}


def _also(failure: StepFailure, classes: list[type[BaseException]]) -> StepFailure:
    """Return a failure that is an instance of these classes, too, so that an `except` of them catches it.

    classes: the derived ones first. Their own code makes no instance: the log does not have its arguments.
    """

    def missing(_: Any, name: str) -> NoReturn:
        text = "a failure that a step raises has `code`, `message` and `kind`, and not what the error had"
        raise AttributeError(f"`{name}`: {text}")

    own = {**_OF_EXCEPTION, "__getattr__": missing, **vars(failure)}
    try:
        of_both: Any = type(classes[0].__name__, (StepFailure, *classes), own)
        native = of_both
        while native.__module__ != "builtins":
            native = native.__base__
        made: StepFailure = native.__new__(of_both, failure.message)
    except Exception:  # noqa: BLE001  # of a class that has no subclasses, or is made otherwise
        return failure
    made.args = (failure.message,)
    return made
