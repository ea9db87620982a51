"""What events from outside do to a workflow, as its compiled document says it.

How they are taken in is in runtime/triggers/event_desk.py.
"""

from __future__ import annotations

from typing import Any

import msgspec

from baton.core.conditions.model import Condition


class _Rule(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """For events of this type, of this source (empty: of any), for which the condition holds.

    `correlation_key`, and what the subclasses add, are templates of the event.
    """

    type: str
    source: str = ""
    when: Condition | None = None
    correlation_key: str = ""

    def is_for(self, type: str, source: str) -> bool:
        """Whether only the condition can still say no."""
        return self.type == type and self.source in ("", source)


class StartRule(_Rule, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Such an event starts a saga; of `user`, a template of the event, or without one of the user who has registered the rule."""

    input: Any = None
    labels: dict[str, str] = {}
    user: str = ""


class SignalRule(_Rule, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Such an event is a signal for the saga that was started with the same correlation key."""

    signal: str
    payload: Any = None


class Events(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Of the rules that fit, the first of `start` counts, and of `signal` the first for each signal."""

    start: tuple[StartRule, ...] = ()
    signal: tuple[SignalRule, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The types of events that any rule is for, each once."""
        return tuple(sorted({rule.type for rule in (*self.start, *self.signal)}))
