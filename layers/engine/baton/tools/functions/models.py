"""One request to a model, as a function asks for it: the step that a `model` node of a document would be.

In a file of its own, because it needs the models of documents, which a worker loads with the first request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from baton.core.documents.models import BY_KEY
from baton.core.documents.parts.node import model_arguments, step_of
from baton.core.expressions import nearest
from baton.core.failures.policy import ANY, FAIL, PolicyChange, RetryChange
from baton.tools.functions.loop import FunctionDefect

_Model: Any = BY_KEY["model"].model
SETTINGS = sorted(_Model.model_fields.keys() - {"name", "prompt", "instructions"})
"""Fields of a `model` node that `context.model` takes by their names."""


def request_of(model: str, settings: Mapping[str, Any], timeout_ms: int, attempts: int) -> dict[str, Any]:
    """Return the node of a request to a model without its texts. Raises `FunctionDefect`."""
    if wrong := [one for one in settings if one not in SETTINGS]:
        hint = nearest(wrong[0], SETTINGS) or f"there are: {', '.join(SETTINGS)}"
        raise FunctionDefect(f"`context.model` has no `{wrong[0]}`; {hint}")
    try:
        asking = _Model.model_validate({"name": model, "prompt": "_", **settings})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise FunctionDefect(f"`context.model`: {place}: {first['msg']}") from error
    retry = RetryChange(max_attempts=attempts) if attempts else None
    rules = {"failures": {ANY: PolicyChange(last=FAIL, retry=retry)}, "ways": ()}
    fields = step_of(asking, timeout_ms or None, rules, context="prompt")
    arguments = model_arguments(model, asking)
    del arguments["prompt"]
    made: dict[str, Any] = msgspec.to_builtins({"kind": "model", "arguments": arguments, **fields})
    return made
