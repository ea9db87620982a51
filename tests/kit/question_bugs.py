"""Planted engine bugs about questions: each is one plausible mistake, made like those of bugs.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from baton.core.log import questions
from baton.core.log.events import Ask
from baton.core.log.questions import Answer
from baton.core.log.state import State
from baton.core.nodes.base import Activation
from baton.core.nodes.human import HumanKind
from baton.runtime.people import links
from baton.runtime.requests import answers as answering
from baton.runtime.requests import answers as confirming
from baton.runtime.requests.service import Service
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


@contextmanager
def a_link_is_looked_at_once() -> Iterator[None]:
    """Link row: what a link names is compared before the first try to append, and not with what has come between."""
    real = Service.answer

    async def answer(self: Service, saga: str, answer: Answer, key: str, check: Any = None) -> dict[str, Any]:
        seen = list[str]()

        def once(state: State, ask: Ask, now: int) -> None:
            if not seen:
                check(state, ask, now)
            seen.append(ask.id)

        return await real(self, saga, answer, key, once if check is not None else None)

    with replaced(Service, "answer", answer):
        yield


@contextmanager
def an_answer_is_known_by_its_key_alone() -> Iterator[None]:
    """Answer row: that a question has an answer is asked by the answer's own key, and others have another."""
    with replaced(questions, "is_answered", lambda state, name: False):
        yield


@contextmanager
def a_link_of_those_before_counts() -> Iterator[None]:
    """Link row: the seal does not tell apart who was told when."""
    real = links.seal_of

    def seal_of(state: State, ask: Ask) -> str:
        return real(state, msgspec.structs.replace(ask, told_at=0, moved_at=0))

    with replaced(links, "seal_of", seal_of), replaced(confirming, "seal_of", seal_of):
        yield


@contextmanager
def a_link_answers_after_the_end() -> Iterator[None]:
    """Link row: a link is judged by its own time, and not by that of its question."""
    real = questions.awaited_question

    def question(state: State, name: str, now: int) -> tuple[str, Ask]:
        return real(state, name, 0)

    with replaced(answering, "awaited_question", question):
        yield
