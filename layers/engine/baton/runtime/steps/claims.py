"""Reads a claim or a record of a once-only effect: who owns it, what came of it, what is said when that is unknown.

Claims and records are written by effect_claims.py and stored by the adapters.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from baton.core.decide.undo_links import SAGA, STEP
from baton.core.effects.rows import Row
from baton.core.log.events import Value
from baton.ports import Effect, StepFailure


class Recorded(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is recorded: the result, and the rows that were to be written with it."""

    value: Value
    rows: tuple[Row, ...] = ()


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Recorded).decode


class Done(Struct, frozen=True):
    """The result of an effect. `is_recorded`: it had happened before, and nothing was done now; `is_own`: not for another saga;
    `is_here`: not for another step."""

    value: Value
    rows: tuple[Row, ...] = ()
    is_recorded: bool = False
    is_own: bool = True
    is_here: bool = True

    @property
    def by(self) -> str:
        """Which other one has done it; see `Outcome.done_by`."""
        return "" if self.is_here else STEP if self.is_own else SAGA


class OfClaim(StepFailure):
    """The outcome of a claim could not be found out. A person's answer holds for `claim`, its owner, alone."""

    def __init__(self, failure: StepFailure, claim: str) -> None:
        super().__init__(
            failure.code,
            failure.message,
            kind=failure.kind,
            status=failure.status,
            retry_after=failure.retry_after,
            happened=failure.happened,
            unsent=failure.unsent,
        )
        self.claim = claim


def place_of(effect: Effect) -> tuple[str, str]:
    """Where in which saga an effect belongs, in whatever branch of it."""
    return effect.scope or effect.saga, effect.slot


def key_of_its_own(effect: Effect) -> str:
    """The key that keeps an effect's result for its own place, once another place uses the effect's key."""
    place = hashlib.sha256("\n".join(place_of(effect)).encode()).hexdigest()
    return f"{effect.key}.{place[:16]}"


def check_about(there: Effect, about: str) -> None:
    """Raises `StepFailure` if the recorded call had other parameters: its result is no answer to this one."""
    if there.about in ("", about) or not about:
        return
    raise StepFailure(
        "idempotency_key_reused",
        f"`{there.tool}` was called with other parameters for the same thing by saga {there.saga} at `{there.slot}`, "
        f"at {iso(there.first)}: what came of that is no answer to this",
        happened=False,
    )


def unknown(there: Effect, why: str, is_sure: bool = False) -> StepFailure:
    begun = f"an attempt of saga {there.saga} at `{there.slot}` began at {iso(there.updated)}"
    if is_sure:
        return StepFailure(
            "unknown_outcome",
            f"`{there.tool}` has happened, but what came of it is not known: {begun}; {why}",
        )
    return StepFailure(
        "unknown_outcome",
        f"`{there.tool}` may have happened: {begun} and did not say how it ended; {why}. "
        "It is not done again before a person has looked",
    )


def iso(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1_000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
