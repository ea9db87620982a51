"""pipeline(...): a list of steps that has a name becomes a tool, which documents and agents call like any other.

`baton pipelines` finds what agents have written more than once. What steps do is in core/pipelines.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from baton.core.limits import Limits
from baton.core.pipelines import pipeline as written
from baton.core.pipelines.base import PipelineFailed
from baton.ports import StepFailure
from baton.tools.define import Registry, ToolError, tool


def pipeline(
    name: str,
    says: str,
    steps: Sequence[Any],
    *,
    inputs: Sequence[str],
    registry: Registry | None = None,
) -> None:
    """Declare the tool `name`, which does these steps of `std.pipeline` with the `data` that it is called with.

    says: what it is for, as models and people read it. inputs: the names of the data that it takes. Its version is a hash of
    the steps. Raises `ToolError` with every mistake in them.
    """
    made = [*steps]
    try:
        plan = written.read(made, dict.fromkeys(inputs))
    except PipelineFailed as error:
        raise ToolError(f"tool `{name}`: {error}") from error
    version = written.digest(made, inputs)
    takes = {
        "type": "object",
        "properties": {one: {} for one in inputs},
        "required": [*inputs],
        "additionalProperties": False,
    }
    hint = Annotated[dict[str, Any], WithJsonSchema(takes), Field(description="Its inputs, by name.")]

    def run(data: dict[str, Any]) -> Any:
        if strange := {*inputs} ^ {*data}:
            raise StepFailure(
                "input_invalid", f"data: {', '.join(sorted(strange))}: it takes {', '.join(inputs)}"
            )
        try:
            return written.run(plan, data, most_bytes=Limits().result_bytes).value
        except PipelineFailed as error:
            raise StepFailure(error.code, str(error)) from error

    # What models read names the inputs; and two pipelines are two functions.
    run.__annotations__ = {"data": hint, "return": Any}
    run.__doc__ = inspect.cleandoc(says)
    run.__qualname__ = f"pipeline {version}"
    tool(name, version=version, effect="pure", registry=registry)(run)
