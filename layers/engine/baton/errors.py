"""All errors that Baton raises, in one tree: faults of users, and faults of the engine.

Failures of a user's step are not among them: they are data in the log. This module uses the standard library
only.
"""

from __future__ import annotations

from dataclasses import dataclass


class BatonError(Exception):
    """Base class of all errors."""


@dataclass(frozen=True)
class Problem:
    """A fault in a document or an input.

    `path` is a JSON Pointer into it (empty for the whole). `line` and `column` count from 1, and are 0 if the
    text is not available.
    """

    path: str
    message: str
    suggestion: str = ""
    line: int = 0
    column: int = 0


class UserError(BatonError):
    """An error that the caller can correct. It becomes an RFC 9457 problem with `status` as its
    HTTP status.
    """

    status = 400
    code = "bad-request"
    title = "The request is not valid"

    def __init__(self, detail: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.problems = problems


class MalformedDocument(UserError):
    """The text is neither JSON nor YAML. The problem contains line and column."""

    code = "malformed"
    title = "The text cannot be parsed"


class InvalidDefinition(UserError):
    """The workflow document has problems. All of them are listed."""

    status = 422
    code = "invalid-definition"
    title = "The workflow document has problems"


class InvalidInput(UserError):
    """A saga's input or a request's body does not conform to its schema."""

    status = 422
    code = "invalid-input"
    title = "The input does not match its schema"


class NotFound(UserError):
    """The saga, workflow or route does not exist. The detail names the nearest existing name, if any."""

    status = 404
    code = "not-found"
    title = "There is no such thing"


class TooLarge(UserError):
    """The value exceeds a limit. The detail states the limit in bytes."""

    status = 413
    code = "too-large"
    title = "Larger than the limit"


class KeyReused(UserError):
    """The same idempotency key was sent with another body."""

    status = 422
    code = "idempotency-key-reused"
    title = "This idempotency key was used with another body"


class NotAllowedNow(UserError):
    """The saga's state does not permit the request, for example a signal to a saga that has ended."""

    status = 409
    code = "not-allowed-now"
    title = "The saga's state does not allow this"


class Outdated(NotAllowedNow):
    """The request was made for a state that has changed since: a tag names another version now."""

    title = "It has changed since the caller looked"


class SignalsFull(NotAllowedNow):
    """The saga has the maximum number of waiting signals. It accepts more after it has consumed some."""


class CallbackOver(UserError):
    """The saga no longer waits for the callback, so external work can stop. The detail contains
    the reason.
    """

    status = 410
    code = "callback-over"
    title = "Work elsewhere is not waited for any more"


class LinkOver(UserError):
    """The link for answering a question is no longer valid. The detail contains the reason and the way to a
    new link.
    """

    status = 410
    code = "link-over"
    title = "The link does not count any more"


class Unauthenticated(UserError):
    """The caller's identity has no user or no tenant."""

    status = 401
    code = "unauthenticated"
    title = "Who is calling is not known"


class Forbidden(UserError):
    """The caller is known but not permitted to do this. The detail names who is."""

    status = 403
    code = "forbidden"
    title = "The caller may not do this"


class TooManyRequests(UserError):
    """The tenant has exceeded its request rate. `retry_after_s` is the time until further requests are
    accepted.
    """

    status = 429
    code = "too-many-requests"
    title = "Too many requests"

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class BudgetSpent(TooManyRequests):
    """The user has spent the daily budget. `retry_after_s` is the time until the next day begins."""

    code = "budget-user-day"
    title = "The user's money for today is spent"


class UserBlocked(UserError):
    """An operator has blocked the user: no saga of the user starts."""

    status = 403
    code = "user-blocked"
    title = "An operator has blocked the user"


class TenantBudgetSpent(BudgetSpent):
    """The tenant has spent its daily budget."""

    code = "budget-tenant-day"
    title = "The tenant's money for today is spent"


class Standstill(BatonError):
    """A defect of the engine: it would repeat a decision without progress or pause. The worker releases the
    lease with a pause.
    """


class EngineFault(BatonError):
    """The engine could not continue. The error is raised, never recorded, so that the message is delivered
    again.
    """


class Throttled(EngineFault):
    """A store requests a lower rate. A retry after a pause can succeed."""


class StoreUnavailable(EngineFault):
    """A store did not answer, or answered with a fault of its own. The request may have taken effect."""


class ChannelRefused(EngineFault):
    """A channel rejects a notice permanently. The message contains the reason. Other channels continue."""


class RowsRefused(EngineFault):
    """The table rejects the rows of a step permanently. The runner records a failure of that step."""


class CodeGone(EngineFault):
    """A build of the worker's code is not in the deployment any more."""


class SandboxUnavailable(EngineFault):
    """No process can be started for the code of a condition: the sandbox's program is missing or does not
    run.
    """


class Unreadable(EngineFault):
    """This version cannot read the log. `cause` is the reason in one word; `version` and `node` identify the
    entry, if known.
    """

    cause = "unreadable_log"
    version = 0
    node = ""

    @property
    def detail(self) -> str:
        """Sentence for people, with the command that helps."""
        return (
            f"this saga cannot be read: {self}; `baton doctor SAGA` says what is wrong and what sets it right"
        )


class CorruptLog(Unreadable):
    """The log differs from the one its writer left: a gap, a missing blob, or bytes that do not decode."""


class MissingGraph(CorruptLog):
    """The graph of a saga is missing, or its content does not match its name."""

    cause = "missing_graph"


class UnknownEntry(Unreadable):
    """An entry has a kind or format that this version does not know, because a newer version wrote it.

    `at`: when it was written, in epoch milliseconds; 0 if that is unknown.
    """

    cause = "unknown_entry"
    at = 0


class PoisonMessage(EngineFault):
    """A message that no redelivery makes readable. It goes to the dead-letter queue."""

    cause = "not_a_wake"
