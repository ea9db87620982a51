"""The sagas that the view of a saga names besides it: the one that waits for it, and those of a failure."""

from __future__ import annotations

from typing import Any

from baton.core.graph.inner import HANDLER
from baton.core.log.state import State
from baton.core.read.views import handler_view
from baton.ports import SagaRef
from baton.runtime.engine.parts import Engine, Parts


async def related(engine: Engine, parts: Parts, ref: SagaRef, state: State) -> dict[str, Any]:
    """A handler has no parent: the saga that failed does not wait for it. Its status is in its own head."""
    parent = SagaRef.parse(of).id if (of := state.origin.parent) else None
    is_handler = parent is None and ref.id.endswith(f".{HANDLER}")
    handler, status = handler_view(state), None
    if handler is not None and handler["saga"]:
        head = await parts.call(engine.log.read_head, SagaRef(ref.tenant, handler["saga"]))
        status = head.status if head is not None else None
    return {
        "parent": parent,
        "handles": ref.id.rsplit(".", 2)[0] if is_handler else None,
        "failure_handler": handler and handler | {"status": status},
    }
