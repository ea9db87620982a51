"""How a task says that its work is done elsewhere: the shape of `callback`.

What becomes of it is in core/nodes/task.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from baton.core.documents.parts.fields import Duration, Given, Model, refuse

SHORTEST_HEARTBEAT_MS = 10_000  # a few times what clocks differ and a request takes


class CallbackModel(Model):
    """How long work elsewhere may take, and be silent."""

    short: ClassVar[str] = "timeout"

    timeout: Duration = Field(description="From the tool's return on. Then the attempt fails with `timeout`.")
    heartbeat: Annotated[Duration | None, Given] = Field(
        default=None,
        description="The longest silence, at least `10s`. Then the attempt fails with `heartbeat_timeout`.",
    )

    @model_validator(mode="after")
    def _shorter(self) -> CallbackModel:
        if self.heartbeat is not None and self.heartbeat < SHORTEST_HEARTBEAT_MS:
            raise refuse(
                "`heartbeat` is at least `10s`: the clocks of two processes may be seconds apart",
                "write `heartbeat: 10s` or longer, or `timeout` alone for work that takes only seconds",
            )
        if self.heartbeat is not None and self.heartbeat >= self.timeout:
            raise refuse("`heartbeat` is shorter than `timeout`")
        return self
