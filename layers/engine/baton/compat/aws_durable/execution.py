"""`@durable_execution`: a plain handler becomes a workflow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, overload

from msgspec import structs

from baton.compat.aws_durable.config import uniform
from baton.compat.aws_durable.context import DurableContext, Execution, name_of
from baton.compat.aws_durable.exceptions import DurableOperationError
from baton.compat.aws_durable.steps import STEP, STEP_ONCE, add_tools
from baton.compat.aws_durable.strand import run_plain
from baton.core.effects.toolspec import PURE
from baton.ports import StepFailure
from baton.tools.define import REGISTRY, Registry, ToolError, _make, _where
from baton.tools.functions.context import WorkflowContext
from baton.tools.functions.loop import FunctionDefect

Handler = Callable[[Any, DurableContext], Any]
H = TypeVar("H", bound=Handler)
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

        async def run(event: Any = None, *, context: WorkflowContext) -> Any:
            uniform.set(context.random)
            execution = Execution(context, context.uuid().hex[:8])
            try:
                return await run_plain(lambda: handler(event, DurableContext(execution)))
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
    if called in _USUAL:
        called = handler.__module__.rpartition(".")[2]
    return re.sub("[^a-z0-9]+", "-", called.lower()).strip("-")
