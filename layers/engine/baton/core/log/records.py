"""What events are made of: values, failures, tokens, questions and notices; and the root of all kinds of event.

No events here: see events.py, and failure_events.py for those about steps that fail.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from baton.core.failures import quoted


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """A JSON value: inline as `v`, or as a blob (`ref`, `size` in bytes) when that is cheaper."""

    v: Any = None
    ref: str = ""
    size: int = 0


class Blamed(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the failures that a join has failed for: its code, the beginning of its message, and its node."""

    code: str
    message: str
    node: str = ""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a step or a saga failed: a code for programs, a message for people, the node if there is one.

    Of an attempt of a tool also the class, the HTTP status if there was one, which tool and attempt it was, and when.
    `doubt`: what may happen only once may have happened; `claim` is the owner of the claim that it is about. `errors`:
    the first of the failures that a join has failed for. `handled`: on an edge, the nodes at which `catch` goes on from
    this failure; the edge is lost by it, and not failed.
    """

    code: str
    message: str
    node: str = ""
    kind: str = ""
    status: int = 0
    tool: str = ""
    attempt: int = 0
    at: int = 0
    doubt: bool = False
    claim: str = ""
    errors: tuple[Blamed, ...] = ()
    handled: tuple[str, ...] = ()


def failed_with(code: str, message: str, node: str = "") -> Failure:
    """A failure that the engine has found. Secrets are removed from what it quotes."""
    return Failure(code, quoted(message), node)


class Ask(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A question to a person about a failure. `id` is the saga's own; `expires_at` 0: never.

    `kind` is one of QUESTIONS of core/failures/policy.py; `options` are the actions that an answer can name.
    `severity` is that of its notice, where it is not what its code has by itself. `to` is `on_call` for a question to
    operators; without it, the question is for the saga's user. `may_change` are the arguments that an answer may change.
    """

    id: str
    kind: str
    message: str
    options: tuple[str, ...]
    expires_at: int = 0
    severity: str = ""
    to: str = ""
    may_change: tuple[str, ...] = ()


class Notice(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A message to a person outside, sent once for each `key`. `to` is `user` or `on_call`.

    `incident`: this notice opens an incident under its key.
    """

    key: str
    to: str
    code: str
    message: str
    severity: str = "medium"
    node: str = ""
    at: int = 0
    incident: bool = False


class Token(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One firing of one edge: sender, receiver, one iteration number per enclosing loop, and life.

    A dead token says that this edge will not be taken in this iteration.
    """

    src: str
    dst: str
    iteration: tuple[int, ...] = ()
    alive: bool = True


class Root(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True, kw_only=True):
    """Root of the tagged union."""

    made: ClassVar[tuple[str, ...]] = ()
    """The fields with values that the engine makes."""


class About(Root, frozen=True, omit_defaults=True, kw_only=True):
    """Root of the events about one slot. `item`: the part of the node's work that it is about, if it is not the node itself."""

    node: str
    iteration: tuple[int, ...] = ()
    item: str = ""
