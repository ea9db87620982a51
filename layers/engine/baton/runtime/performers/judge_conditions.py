"""Have conditions in Python judged, side by side."""

from __future__ import annotations

import asyncio

from baton.core.decide.commands import JudgeConditions
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run


class ConditionJudge:
    """Puts answers into the memory of a run."""

    def __init__(self, parts: Parts) -> None:
        self._sandbox = parts.sandbox

    async def perform(self, run: Run, command: JudgeConditions) -> bool:
        asked = list(command.questions)
        answers = await asyncio.gather(*map(self._sandbox.answer, asked))
        run.answers.update(zip((question.key for question in asked), answers, strict=True))
        return True
