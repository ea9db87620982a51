"""The protocol of performers, and what they are given: a saga that is held, and a function that appends to its log."""

from __future__ import annotations

from typing import Protocol, TypeVar

from baton.core.decide.commands import Command
from baton.runtime.engine.run import Run

C_contra = TypeVar("C_contra", bound=Command, contravariant=True)


class CommandPerformer(Protocol[C_contra]):
    """Carries out one kind of command for the sagas of one invocation."""

    async def perform(self, run: Run, command: C_contra) -> bool:
        """True when more is known now than when it was asked for: the saga is to be decided anew."""
        ...
