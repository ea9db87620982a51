"""What happens to a saga as a whole: deaths of its invocations, limits, parking. Its start, its end and forks are in events.py."""

from __future__ import annotations

from baton.core.log.records import Failure, Root


class Revived(Root, frozen=True, tag="revived", omit_defaults=True, kw_only=True):
    """The lease of invocation `dead` (epoch `dead_epoch`) ran out at `dead_until` without a release.

    `assumed`: by slot, the micro-dollars of requests to models that it had under way. Their provider bills them; the most that they can cost counts.
    `tokens`: the most that they can have read and written, where tokens are limited.
    """

    dead: str
    dead_epoch: int
    dead_until: int
    at: int
    assumed: dict[str, int] = {}  # noqa: RUF012  # each struct has its own
    tokens: dict[str, tuple[int, ...]] = {}  # noqa: RUF012


class GaveUp(Root, frozen=True, tag="gave_up", omit_defaults=True):
    """The invocation has ended by itself, and the store did not let it give its lease back: when that runs out, none has died."""


class LimitReached(Root, frozen=True, tag="limit_reached", omit_defaults=True, kw_only=True):
    """The saga has come to the end of what it may use, and fails."""

    failure: Failure


class Parked(Root, frozen=True, tag="parked", omit_defaults=True, kw_only=True):
    """A person has to decide; `code` says about what. `until`: then it goes on by itself; 0: never."""

    code: str
    message: str
    node: str = ""
    until: int = 0


class Resumed(Root, frozen=True, tag="resumed", omit_defaults=True, kw_only=True):
    """A person let a parked saga try again, or its time has come. `budget`: so much it may spend from now on."""

    by: str
    at: int
    budget: int = 0
