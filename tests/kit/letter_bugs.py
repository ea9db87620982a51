"""Planted bugs in what becomes of dead letters, as in bugs.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.adapters.memory.store import MemoryLetters
from baton.core.letters import PENDING, REDRIVEN, DeadMessage, Letter
from baton.ports import Wake
from baton.runtime import dead_letters
from baton.runtime.dead_letters import LetterCollector
from baton.runtime.requests.operators import LetterService
from tests.kit.bugs import replaced


@contextmanager
def a_message_is_deleted_before_its_letter_is_written() -> Iterator[None]:
    """Collect row: a run that dies in between has lost it."""
    real = LetterCollector._file

    async def file(self: LetterCollector, run: Any, messages: Sequence[DeadMessage]) -> Sequence[DeadMessage]:
        await self._offload(self._queues[0].delete, [message.receipt for message in messages])
        return await real(self, run, messages)

    with replaced(LetterCollector, "_file", file):
        yield


@contextmanager
def a_letter_does_not_know_its_messages() -> Iterator[None]:
    """Collect row: a message that comes twice is another death."""
    real = vars(dead_letters)["with_messages"]

    def died(letter: Letter | None, *arguments: Any) -> Any:
        return real(letter and replace(letter, seen=()), *arguments)

    with replaced(dead_letters, "with_messages", died):
        yield


@contextmanager
def any_message_reopens_a_letter() -> Iterator[None]:
    """Collect row: a message from before the redrive makes the letter pending again."""
    real = vars(dead_letters)["with_messages"]

    def died(letter: Letter | None, *arguments: Any) -> Any:
        after = real(letter, *arguments)
        is_reopened = after is not None and after.status == REDRIVEN
        return replace(after, status=PENDING) if after is not None and is_reopened else after

    with replaced(dead_letters, "with_messages", died):
        yield


@contextmanager
def a_letter_is_written_over_whatever_is_there() -> Iterator[None]:
    """Collect and redrive rows: of two writers who have seen the same letter, the second undoes what the first has done."""
    real = MemoryLetters.write

    def write(self: MemoryLetters, letter: Letter, seen: int, wake: Wake | None = None) -> bool:
        there = self.read(letter.tenant, letter.id)
        return real(self, letter, there.number if there is not None else 0, wake)

    with replaced(MemoryLetters, "write", write):
        yield


@contextmanager
def a_redriven_saga_is_not_made_due() -> Iterator[None]:
    """Redrive row: the wake of a saga that rests for an hour is dropped."""

    async def make_due(self: LetterService, letter: Letter) -> int:
        return letter.v

    with replaced(LetterService, "_make_due", make_due):
        yield
