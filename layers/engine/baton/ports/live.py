"""What a saga's models are writing just now, for those who watch: one item of each saga, outside its log, that expires.

A loss of it costs nothing: the answers themselves are in the log.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from baton.ports.log import Head, SagaRef


class LiveTexts(msgspec.Struct, frozen=True):
    """`data`, as the worker of this `epoch` of the lease wrote it `at` that time; viewers watch `until`."""

    until: int
    epoch: int = 0
    at: int = 0
    data: bytes = b""


class Live(Protocol):
    """The items of viewers and of what they are shown."""

    def watch(self, ref: SagaRef, now: int, until: int, unless: int) -> bool:
        """Say that a viewer watches until then. False, and nothing written, where one has said so until `unless` or later."""
        ...

    def leave_word(self, head: Head, now: int, until: int) -> bool:
        """Leave word of a viewer where the worker of this saga finds it without asking: its next take, or its next append.

        False, and nothing written, where a write came in between. It changes nothing that is in a log or in an index,
        and sets nothing going.
        """
        ...

    def put_texts(self, ref: SagaRef, epoch: int, now: int, data: bytes) -> bool:
        """Replace what is shown. False, and nothing written, where no viewer watches now, or a later write was there first."""
        ...

    def read(self, ref: SagaRef) -> LiveTexts | None:
        """What is there, eventually consistent."""
        ...
