"""States of a dead letter: the death of messages, redriving, discarding.

Pure rules over one record.
A letter is about a saga: all its dead wakes mean the same, that the saga cannot go on.
A message that names no saga has its own letter.
ports/operators.py stores letters; runtime/dead_letters.py and runtime/requests/operators.py change them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

PENDING, REDRIVEN, DISCARDED = "pending", "redriven", "discarded"
LETTER_STATUSES = (PENDING, REDRIVEN, DISCARDED)
WAKES, RELAY = "wakes", "relay"
SOURCES = (WAKES, RELAY)
REDRIVES = 3
"""Redrives of a letter before one has to be forced."""
KEPT_MS = 30 * 86_400_000
"""Milliseconds after its last change at which a letter expires."""
MESSAGE = "message~"
"""Prefix of the id of a letter that names no saga. No saga's id has a `~`."""
_BODY = 2_000  # characters that are kept of a message; one that names a saga is shorter
_SEEN = 16  # ids of messages that are kept: one that comes twice does so soon

TOO_OFTEN, STREAM, OUTSIDE = "received_too_often", "stream_records", "outside_event"
UNREADABLE = "unreadable_letter"
"""The code of a letter whose own record cannot be read."""


class DeadMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a dead-letter queue.
    `sent`: when it came into a queue (epoch ms); `attempts`: deliveries before that.

    `reason` and what follows is what the worker has said; without it the queue itself gave the message up.
    `version` is the
    entry that could not be read, 0 where none is known; `node` is what that entry is about.
    """

    id: str
    receipt: str
    body: str
    sent: int
    source: str = WAKES
    attempts: int = 1
    reason: str = ""
    code: str = ""
    version: int = 0
    node: str = ""


class Letter(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A dead letter. `number` counts its changes.

    `since`: when it became pending. `first`, `last`: when the first and the newest of its messages were sent.
    `messages` have died, after `attempts` deliveries together. `v` is the highest
    version that one of them named.
    `by`, `why`, `at`: who redrove or discarded it, why, and when.
    `seen`: ids of its newest messages.
    """

    id: str
    tenant: str
    saga: str = ""
    status: str = PENDING
    source: str = WAKES
    code: str
    reason: str
    node: str = ""
    version: int = 0
    body: str = ""
    v: int = 0
    messages: int = 0
    attempts: int = 0
    first: int = 0
    since: int = 0
    last: int = 0
    redrives: int = 0
    by: str = ""
    why: str = ""
    at: int = 0
    seen: tuple[str, ...] = ()
    number: int = 0
    expires: int = 0


def with_messages(
    letter: Letter | None, messages: Sequence[DeadMessage], about: Letter, now: int, skew: int
) -> Letter | None:
    """Return the letter after these messages have died; None if it knows all of them.
    None: it knows of all of them.

    `about` says what the newest of them says, and whom it is about. A message that was sent before the letter
    was redriven
    says nothing about what came of that.
    `skew` is how far clocks may be apart: one that may have been sent afterwards counts.
    A discarded letter stays so while its cause is the same.
    """
    known = letter.seen if letter is not None else ()
    new = {message.id: message for message in messages if message.id not in known}
    if not new:
        return None
    sent = [message.sent for message in new.values()]
    before = letter or replace(about, first=min(sent), since=now)
    stays = (before.status == REDRIVEN and max(sent) < before.at - skew) or (
        before.status == DISCARDED and _cause(before) == _cause(about)
    )
    reopened = before.status != PENDING and not stays
    return replace(
        before if stays else _told(before, about),
        status=PENDING if reopened else before.status,
        since=now if reopened else before.since,
        v=max(before.v, about.v),
        messages=before.messages + len(new),
        attempts=before.attempts + sum(message.attempts for message in new.values()),
        last=max(before.last, *sent),
        seen=(*known, *new)[-_SEEN:],
        number=before.number + 1,
        expires=now + KEPT_MS,
    )


def redriven(letter: Letter, by: str, now: int) -> Letter:
    """Return the letter to be processed once more; the reason for discarding it is dropped."""
    changed = _decided(letter, REDRIVEN, by, "", now)
    return replace(changed, redrives=letter.redrives + 1)


def discard_letter(letter: Letter, by: str, why: str, now: int) -> Letter:
    """Return the letter as discarded: it is not to be redriven, and its record stays until it expires."""
    return _decided(letter, DISCARDED, by, why, now)


def _decided(letter: Letter, status: str, by: str, why: str, now: int) -> Letter:
    return replace(
        letter, status=status, by=by, why=why, at=now, number=letter.number + 1, expires=now + KEPT_MS
    )


def cut_body(body: str) -> str:
    """Return the part of a message that a letter keeps."""
    return body if len(body) <= _BODY else f"{body[:_BODY]}… (cut: it had {len(body)} characters)"


def _cause(letter: Letter) -> tuple[str, int]:
    return letter.code, letter.version


def _told(letter: Letter, about: Letter) -> Letter:
    return replace(
        letter, code=about.code, reason=about.reason, node=about.node, version=about.version, body=about.body
    )
