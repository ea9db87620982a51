"""What a named graph is started with: large values of its starter by reference, all else as it is.

A value that is kept as a blob is neither fetched nor written again for any saga that it is passed to. Loaded with the first saga that
starts a graph.
"""

from __future__ import annotations

from typing import Any

import msgspec

from baton.core.decide.context import BATCH, EvaluationContext
from baton.core.expressions import Template
from baton.core.graph.inner import INPUT, OUTER
from baton.core.log.events import Value

LAST_ERROR = "last_error"
MOST_INLINE = 8_192
"""No value of more bytes stays in the log (core/limits.py: `inline_bytes`)."""
_encode = msgspec.json.Encoder().encode


def started(context: EvaluationContext, template: Template) -> tuple[dict[str, Any], dict[str, Value]]:
    """What stands in the template, less what is passed by reference; and that, by what the graph calls it.

    Raises `ExpressionError`, `LackingError`.
    """
    passed, taken = dict[str, Value](), []
    for place, path in template.alone():
        is_whole = place[0] == OUTER or place == (
            INPUT,
        )  # a part of an input is none of its starter's values
        if is_whole and (value := context.whole(path)) is not None and _is_large(value):
            passed[INPUT if place[0] == INPUT else ".".join(place[1:])] = value
            taken.append(place)
    rest: dict[str, Any] = context.render(template.without(taken))
    if LAST_ERROR in rest.get(OUTER, ()) and (batch := context.told_batch()) is not None:
        passed[BATCH] = batch
    return rest, passed


def _is_large(value: Value) -> bool:
    """Whether it is kept as a blob, or will be with this decision."""
    return bool(value.ref) or len(_encode(value.v)) > MOST_INLINE
