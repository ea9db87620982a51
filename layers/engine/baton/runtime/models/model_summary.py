"""A summary of what does not fit into a request any more, by the model that the document names for it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from baton.core.failures import quoted
from baton.core.models import messages as said
from baton.core.models.messages import Message
from baton.ports import Clock, StepFailure
from baton.ports.models import ModelAnswer, ModelFailure
from baton.runtime.models.model_request import Asking, as_priced

USUAL_SUMMARY = 1_024
"""Tokens that a summary has at most where the document does not say."""
logger = logging.getLogger("baton.worker")


class Summary:
    """The one of a turn. Its request is held, counted and limited as the turn's own.

    `tokens`: what it has used, as its provider says. `failed`: why there is none; the transcript is then only cut.
    """

    def __init__(
        self,
        asking: Asking,
        clock: Clock,
        written: Mapping[str, Any],
        model: str,
        how: Mapping[str, Any] | None,
    ) -> None:
        """written: the agent's settings, whose price is that of its model. model: the one of this turn. how: as the document says."""
        self._asking = asking
        self._clock = clock
        self._written = written
        self._model = model
        self._how = how
        self.tokens: tuple[int, ...] = ()
        self.failed = ""

    async def of(self, messages: list[Message]) -> str:
        """The text; empty where the document asks for none, or the model gives none."""
        if self._how is None:
            return ""
        given = {
            "model": self._how.get("model") or self._model,
            "max_output": self._how.get("max_output") or USUAL_SUMMARY,
            "price": self._written.get("price"),
        }
        now = self._clock.now()
        try:
            answer = await self._asking.answer(
                as_priced(given, self._written["model"]),
                said.to_summarise(messages),
                beside="summary",
                until=now + (self._asking.until - now) // 2,  # the other half is for the turn
            )
        except StepFailure as failure:
            usage = failure.usage if isinstance(failure, ModelFailure) else None
            self.tokens = () if usage is None else (usage.input + usage.output,)
            self.failed = f"{failure.code}: {quoted(failure.message)}"
            logger.warning("no summary: %s", self.failed)
            return ""
        assert isinstance(answer, ModelAnswer), "what is asked beside a step is not handed over"
        self.tokens = (answer.usage.input + answer.usage.output,)
        if not answer.text:
            self.failed = "the model has written nothing"
        return answer.text
