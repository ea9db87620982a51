"""What a process needs of its machine, and the tools it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import msgspec

from baton.core.conditions.model import Answer, Question
from baton.core.effects.rows import MAX_PER_STEP, Row, check_row
from baton.core.models.usage import Usage
from baton.core.money import amount_of
from baton.ports.log import SagaRef

P = ParamSpec("P")
T = TypeVar("T")


class Clock(Protocol):
    def now(self) -> int:
        """UTC epoch milliseconds."""
        ...


class Meter(Protocol):
    """Unlike a clock, it cannot be set. Both values are in milliseconds since some moment."""

    def passed(self) -> int:
        """Time that has passed."""
        ...

    def worked(self) -> int:
        """Time that processors have worked for this process."""
        ...


class Pulse(Protocol):
    """Calls `look` at intervals in a thread of its own, until the function that it returns is called."""

    def __call__(self, look: Callable[[], None], every_ms: int) -> Callable[[], None]: ...


class Entropy(Protocol):
    """All randomness: names, and the jitter of pauses."""

    def token(self, bits: int) -> str:
        """Lower-case hexadecimal of that many random bits (a multiple of 8)."""
        ...

    def uniform(self) -> float:
        """A number in [0, 1)."""
        ...


class Offload(Protocol):
    """Runs a synchronous port call without blocking the event loop."""

    def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]: ...


class Blocked(NamedTuple):
    """While an attempt ran, this tool (empty: other code) held the event loop for so long.
    `is_own`: that very attempt.
    """

    tool: str
    ms: int
    is_own: bool


class StepContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of the step that a tool is run for."""

    saga: str
    tenant: str
    user: str
    node: str
    iteration: tuple[int, ...] = ()
    item: str = ""
    """Which of the things that its node does at once; `t3-0` is the first call of an agent's third turn."""
    attempt: int = 1
    idempotency_key: str = ""
    deadline_ms: int = 0
    traceparent: str = ""
    rows: list[Row] = []
    spent: list[Decimal] = []
    blocked: list[Blocked] = []
    usage: list[Usage] = []
    callback_token: str = ""
    """Of a node with `callback`: what proves to `POST /callbacks/{token}` that work elsewhere is this step's.
    """
    callback_url: str = ""
    """The whole address for it, where the deployment knows its own."""

    def spend(self, usd: Decimal | str | float) -> None:
        """Say that this attempt has cost money, such as a model's answer; several times add up.

        It counts at once and for good, even if the attempt fails or is cut off later. The sum is rounded up
        to a millionth of a dollar. Raises `ValueError` for what is no amount of 0 to 1,000,000 dollars.
        """
        self.spent.append(amount_of(usd))

    def put_row(self, key: str, sort: str, attributes: dict[str, Any]) -> None:
        """Write a row of this tenant's into the saga table together with this step's entry: both or neither.

        `key` and `sort` are text of at most 1,024 bytes, `attributes` plain JSON of at most 100,000. It costs
        a transaction (twice the write units of entry and rows). Raises `ValueError` for what cannot be a row.
        """
        if len(self.rows) >= MAX_PER_STEP:
            raise ValueError(f"a step writes at most {MAX_PER_STEP} rows")
        self.rows.append(check_row(Row(key, sort, attributes)))


class Performer(Protocol):
    """Runs one tool. Raises `StepFailure` for a failure of the step, or `NoRoom`; cancellable at any await."""

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any: ...


class Watch(Protocol):
    """Notices from outside of the event loop which `async` tool does not give it back, and tells of it."""

    def over(self, tool: str, context: StepContext) -> AbstractContextManager[None]:
        """While a call of an `async` tool is in it, the loop is watched;
        `context.blocked` gets what was found.
        """
        ...

    def rest(self) -> None:
        """The invocation is over."""
        ...


class Sandbox(Protocol):
    """Runs the code of Python conditions, each evaluation in a process of its own with hard limits."""

    async def answer(self, question: Question) -> Answer:
        """Returns an answer whatever the code does; nothing of it is left afterwards.

        Without a value it has one of the codes condition_timeout, condition_memory,
        condition_error, condition_invalid and condition_not_boolean, and a message
        for the author. Raises `SandboxUnavailable`.
        """
        ...


class StepFailure(Exception):
    """Raised by a performer: a failure that goes into the log, not an engine fault.

    `kind` is one of the classes of core/failures/codes.py, where more is known than the code says; `status`
    that of an HTTP answer; `retry_after` the text of its header of that name. `happened`: whether what the
    tool does outside may have happened all the same, where that is known; it matters to a tool with
    `effect="once"`, and to one that something undoes. `False` is said of all calls with this key. `unsent`:
    this very call has not been sent, and nothing is said of those before it.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        kind: str = "",
        status: int = 0,
        retry_after: str = "",
        happened: bool | None = None,
        unsent: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.happened = False if unsent and happened is None else happened
        self.unsent = unsent


class NoRoom(Exception):
    """Raised by a performer that cannot begin now: nothing was done, and nothing failed. Ask again later."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of a wake on the queue and of a direct invocation: a saga's key, the known version.

    `build`: the code that is deployed may mend a saga that is parked for a defect, and that was `due` then.
    """

    saga: str
    v: int = 0
    build: str = ""
    due: int = 0


def tenant_of(message: Message) -> str:
    """Whose saga it is."""
    return SagaRef.parse(message.saga).tenant


class Queue(Protocol):
    """The queue of wakes. While more wait than there are workers, tenants are served in turn."""

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        """Send (message, delay in whole seconds, 0-900). Returns the positions that were not accepted."""
        ...

    def backlog(self) -> int:
        """About how many messages could be received now, and wait because no worker has time for them."""
        ...


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a message is dead, besides its reason in words: a code, the entry that cannot be
    read (0: none is known), what node that is about, and which delivery of the message it was.
    """

    code: str = ""
    version: int = 0
    node: str = ""
    attempts: int = 1


UNKNOWN = Cause()


class DeadLetters(Protocol):
    """The queue of messages that no worker could handle. What becomes of them is in ports/operators.py."""

    def send(self, body: str, reason: str, cause: Cause = UNKNOWN) -> None: ...


class Invoker(Protocol):
    """Starts worker invocations directly, without any queue."""

    def invoke(self, messages: Sequence[Message]) -> None:
        """One asynchronous invocation for these wakes."""
        ...
