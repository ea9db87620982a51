"""Planted engine bugs about questions: each is one plausible mistake, made like those of bugs.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from baton.core.nodes.base import Activation
from baton.core.nodes.human import HumanKind
from tests.kit.bugs import replaced


@contextmanager
def the_end_of_a_question_beats_its_answer() -> Iterator[None]:
    """Answer row: a worker that looks late goes by the time alone, although an answer stands in the log."""
    real = HumanKind.resume

    def resume(self: HumanKind, at: Activation, work: Any, desk: Any) -> Any:
        if desk.now >= work.ask.ends_at:
            unheard = msgspec.structs.replace(desk.state, signals=())
            desk = msgspec.structs.replace(desk, state=unheard)
        return real(self, at, work, desk)

    with replaced(HumanKind, "resume", resume):
        yield
