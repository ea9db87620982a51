"""What a settled node comes to, besides its own facts: where it goes on, and which outputs are forgotten.

transitions.py makes settlements. `on` is the one place where they become part of an event.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.records import Paused

_Event = TypeVar("_Event", bound=ev.Settles)


class RouteError(Exception):
    """The transition from here cannot be computed."""

    def __init__(self, code: str, message: str, answer: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.answer = answer


class Settlement(Struct, frozen=True, kw_only=True):
    """The fields have the meaning that they have in an event. `output`, `keep` and `full` are those of a node that is done."""

    emits: tuple[ev.Token, ...] = ()
    errors: tuple[ev.Failure, ...] = ()
    way: str = ""
    drops: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    fault: ev.Failure | None = None
    output: ev.Value | None = None
    keep: bool = True
    full: ev.Value | None = None
    is_result: bool = False
    paused: Paused | None = None

    def on(self, event: _Event) -> _Event:
        """The event of a node, completed with what follows from it."""
        if self.paused is not None:
            event = replace(event, paused=self.paused)
        if isinstance(event, ev.Gives):
            return replace(
                event,
                emits=self.emits,
                errors=self.errors,
                way=self.way,
                drops=self.drops,
                carry=self.carry,
                forget=self.forget,
                fault=self.fault,
                output=self.output,
                keep=self.keep,
                full=self.full,
            )
        if self.is_result:
            return replace(event, is_result=True)
        return replace(
            event,
            emits=self.emits,
            errors=self.errors,
            way=self.way,
            drops=self.drops,
            carry=self.carry,
            forget=self.forget,
            fault=self.fault,
        )
