"""`std.pipeline` and `std.http_pipeline`: tables filtered, sorted, joined and counted by a list of steps.

What the steps do is in core/pipelines/. Requests are sent here, by `std.http`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from pydantic import BaseModel, Field, WithJsonSchema

from baton.core.pipelines import base, pipeline
from baton.core.pipelines.base import PipelineFailed
from baton.ports import StepContext, StepFailure
from baton.tools.define import Registry
from baton.tools.standard.kit import Services, standard_tool

Data = Annotated[
    dict[str, Any], Field(description="Inputs of the steps, by name: lists of objects, or any JSON.")
]
Steps = Annotated[Any, WithJsonSchema(pipeline.schema(requests=False))]
StepsWithRequests = Annotated[Any, WithJsonSchema(pipeline.schema(requests=True))]
Preview = Annotated[int, Field(ge=0, le=base.PREVIEW_ROWS, description="So many rows are in the preview.")]


class Pipelined(BaseModel):
    """`row_count` is null where the result is no table.
    `notes` name what may be a mistake, such as a field that no row has.
    """

    result: Any
    row_count: int | None
    preview: Any
    notes: list[str]


def declare(
    registry: Registry, services: Services, remember: Callable[[StepContext, Any, Mapping[str, Any]], str]
) -> None:
    """Declare the pipelines. `remember`: gives the name of steps that were run (named.py)."""

    # A plain function that is pure: it runs in a thread of the worker, and so holds up no other step.
    @standard_tool("std.pipeline", registry=registry, effect="pure")
    def pipe(
        steps: Steps, data: Data, context: StepContext, preview: Preview = 5
    ) -> Pipelined:  # by its tenant it is guarded
        """Filter, sort, select, group, join and transform tables: a list of
        steps, each on the result of the one before.
        """
        made = of_steps(steps, data, services.most_bytes, preview)
        if name := remember(context, steps, data):
            made.notes.append(f'these steps have a name: `std.named_pipeline` with `name`: "{name}"')
        return made

    @standard_tool("std.http_pipeline", registry=registry, domain="external_api")
    async def pipe_answers(
        steps: StepsWithRequests, context: StepContext, data: Data | None = None, preview: Preview = 5
    ) -> Pipelined:
        """Run a pipeline with steps that send requests by the rules of `std.http`: all of them first,
        in order.

        Each POST carries an idempotency key of its own, the same for every attempt of the step.
        """
        given = data or {}
        plan = _read(steps, given, requests=True)
        answers = {
            place: await _answer(registry, fields, context, place) for place, fields in plan.requests.items()
        }
        return await services.stored(_run, plan, given, answers, services.most_bytes, preview)


def of_steps(steps: Any, data: Mapping[str, Any], most_bytes: int, preview: int) -> Pipelined:
    """Return the result of steps without requests for data. Raises `StepFailure`."""
    return _run(_read(steps, data, requests=False), data, {}, most_bytes, preview)


def _read(steps: Any, data: Mapping[str, Any], *, requests: bool) -> pipeline.PipelinePlan:
    """Parse the steps. Raises `StepFailure`."""
    try:
        return pipeline.read_pipeline(steps, data, requests=requests)
    except PipelineFailed as error:
        raise StepFailure(error.code, str(error), happened=False) from error


def _run(
    plan: pipeline.PipelinePlan,
    data: Mapping[str, Any],
    answers: Mapping[int, Any],
    most_bytes: int,
    preview: int,
) -> Pipelined:
    """Run the plan. Raises `StepFailure`."""
    try:
        made = pipeline.run_pipeline(plan, data, answers, most_bytes=most_bytes, preview=preview)
    except PipelineFailed as error:
        raise StepFailure(error.code, str(error)) from error
    return Pipelined(result=made.value, row_count=made.row_count, preview=made.preview, notes=made.notes)


async def _answer(registry: Registry, fields: Mapping[str, Any], context: StepContext, place: int) -> Any:
    """Return the body of the answer to one request. Raises `StepFailure`, with the step's place."""
    own = msgspec.structs.replace(context, idempotency_key=f"{context.idempotency_key}-{place}")
    given = {name: value for name, value in fields.items() if name != "as"}
    try:
        answer = await registry["std.http"].function(context=own, **given)
    except StepFailure as error:
        raise StepFailure(
            error.code,
            f"/{place}: {error.message}",
            kind=error.kind,
            status=error.status,
            retry_after=error.retry_after,
            happened=error.happened,
        ) from error
    return answer.body
