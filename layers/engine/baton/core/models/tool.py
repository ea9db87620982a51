"""The tool by which a model is called: of the engine's own, in no registry, performed by runtime/models/model_caller.py."""

from __future__ import annotations

from typing import Any, Final

from baton.core.effects.toolspec import PURE, ToolSpec

MODEL: Final = "std.model"
DOMAIN: Final = "model_call"
REFUSED: Final = "answer_invalid"
"""The code of an answer that is not what was asked for."""
TIMEOUT_MS: Final = 300_000
"""How long an answer may take where the document does not say: a model that thinks takes longer than other tools."""
LONGEST_MS: Final = 3_600_000
"""The same of a request in the background, for which no worker waits."""
HANDOVER_MS: Final = 30_000
"""How long it may take to hand such a request over, or to fetch its answer."""
LEAST_COST: Final = 1
"""Micro-dollars: so much is held for any request before more is known."""


SHARE: Final = "share"
"""The argument of a turn whose transcript is cut: to the last part of so many."""
SUMMARISE: Final = "summarise"
"""The argument of a turn that has the part which is cut off summarised: by which `model`, in how many tokens (`max_output`)."""


def model_tool(fallbacks: tuple[str, ...] = (), context: str = "") -> ToolSpec:
    """Its description; `fallbacks` are the models that are asked in place of the first, `context` the argument that can be shortened."""
    any_object: dict[str, Any] = {"type": "object", "properties": {"model": {"type": "string"}}}
    return ToolSpec(
        name=MODEL,
        version="1",
        # It may run again, and nothing outside is changed by it.
        effect=PURE,
        parameters=any_object,
        result={},
        domain=DOMAIN,
        cost=LEAST_COST,
        context=context,
        fallbacks={"model": fallbacks} if fallbacks else {},
        sees_key=False,
    )
