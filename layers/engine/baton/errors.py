"""Every error Baton raises, in one tree: what a user did wrong, and what the engine could not do.

Failures of a user's step are not here: they are data in the log. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass


class BatonError(Exception):
    """Root of the tree."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a document or an input.

    `path` is a JSON Pointer into it (empty for the whole); `line` and `column` count from 1 and are 0
    where the text is not known.
    """

    path: str
    message: str
    suggestion: str = ""
    line: int = 0
    column: int = 0


class UserError(BatonError):
    """The caller can mend it. Becomes an RFC 9457 problem with `status` as its HTTP status."""

    status = 400
    code = "bad-request"
    title = "The request is not valid"

    def __init__(self, detail: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.problems = problems


class MalformedDocument(UserError):
    """The text is neither JSON nor YAML; the problem carries line and column."""

    code = "malformed"
    title = "The text cannot be parsed"


class InvalidDefinition(UserError):
    """A workflow document with problems; all of them are listed."""

    status = 422
    code = "invalid-definition"
    title = "The workflow document has problems"


class InvalidInput(UserError):
    """A saga's input, or a request's body, does not match its schema."""

    status = 422
    code = "invalid-input"
    title = "The input does not match its schema"


class NotFound(UserError):
    """No such saga, workflow or route; the detail names the nearest existing name if there is one."""

    status = 404
    code = "not-found"
    title = "There is no such thing"


class TooLarge(UserError):
    """Larger than a limit; the detail states the limit in bytes."""

    status = 413
    code = "too-large"
    title = "Larger than the limit"


class KeyReused(UserError):
    """The same idempotency key came with another body."""

    status = 422
    code = "idempotency-key-reused"
    title = "This idempotency key was used with another body"


class NotAllowedNow(UserError):
    """The saga's state does not permit it, for example a signal to a saga that has ended."""

    status = 409
    code = "not-allowed-now"
    title = "The saga's state does not allow this"


class SignalsFull(NotAllowedNow):
    """The saga has as many signals that wait as are kept; it has room for more once it has taken some."""


class CallbackOver(UserError):
    """Work elsewhere is not waited for any more: it can stop. The detail says why."""

    status = 410
    code = "callback-over"
    title = "Work elsewhere is not waited for any more"


class LinkOver(UserError):
    """The link by which a question is answered does not count any more.
    The detail says why, and how to get a new one.
    """

    status = 410
    code = "link-over"
    title = "The link does not count any more"


class Unauthenticated(UserError):
    """The caller's identity carries no user or no tenant."""

    status = 401
    code = "unauthenticated"
    title = "Who is calling is not known"


class Forbidden(UserError):
    """The caller is known, but may not do this; the detail names who may."""

    status = 403
    code = "forbidden"
    title = "The caller may not do this"


class TooManyRequests(UserError):
    """The tenant has used up its requests for now; `retry_after_s` is the time until there are new ones."""

    status = 429
    code = "too-many-requests"
    title = "Too many requests"

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class BudgetSpent(TooManyRequests):
    """The user has spent the money of the day; `retry_after_s` is the time until the next one begins."""

    code = "budget-user-day"
    title = "The user's money for today is spent"


class UserBlocked(UserError):
    """An operator has blocked the user: no saga starts."""

    status = 403
    code = "user-blocked"
    title = "An operator has blocked the user"


class TenantBudgetSpent(BudgetSpent):
    """The tenant has."""

    code = "budget-tenant-day"
    title = "The tenant's money for today is spent"


class Standstill(BatonError):
    """A defect of the engine: it would decide by what it has decided by
    already, and go round without a pause. The lease is given back with one.
    """


class EngineFault(BatonError):
    """The engine could not go on. Raised, never recorded, so that the message is delivered again."""


class Throttled(EngineFault):
    """A store asked us to slow down; worth another try after a pause."""


class StoreUnavailable(EngineFault):
    """A store did not answer, or answered with a fault of its own. What was asked may have happened."""


class ChannelRefused(EngineFault):
    """A channel will never take a notice; the message says why. What else tells of it goes on."""


class RowsRefused(EngineFault):
    """The table will never take the rows of a step. The runner makes a failure of that step of it."""


class SandboxUnavailable(EngineFault):
    """No process can be started for the code of a condition: the sandbox's
    program is missing or does not run.
    """


class Unreadable(EngineFault):
    """A log that this version cannot read.
    `cause` says why in one word; `version` and `node` which entry it is, where that is known.
    """

    cause = "unreadable_log"
    version = 0
    node = ""


class CorruptLog(Unreadable):
    """A log cannot be what its writer left: a gap, a missing blob, bytes that do not decode."""


class MissingGraph(CorruptLog):
    """The graph of a saga is not there, or is not what its name says."""

    cause = "missing_graph"


class UnknownEntry(Unreadable):
    """An entry of a kind or format that this version does not know: written by a newer version."""

    cause = "unknown_entry"


class PoisonMessage(EngineFault):
    """A message that no number of deliveries will make readable. Goes to the dead-letter queue."""

    cause = "not_a_wake"
