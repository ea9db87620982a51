"""Ports of a process: its machine, and the tools that it runs."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

import msgspec

from baton.core.conditions.model import SandboxAnswer, SandboxQuestion
from baton.core.effects.rows import MAX_PER_STEP, Row, check_row
from baton.core.models.usage import Price, Usage, is_credible, most_used, usage_cost
from baton.core.money import MICRO, Assumed, amount_of, micro_dollars
from baton.ports.log import Blobs, SagaRef
from baton.ports.records import Checkpoints

P = ParamSpec("P")
T = TypeVar("T")


class Clock(Protocol):
    """Clock of the machine."""

    def now(self) -> int:
        """Return UTC epoch milliseconds."""
        ...


class Meter(Protocol):
    """Monotonic clock: unlike `Clock`, it cannot be set. In milliseconds since some moment."""

    def passed(self) -> int:
        """Return the elapsed time."""
        ...

    def worked(self) -> int:
        """Return the time that processors have worked for this process."""
        ...


class Pulse(Protocol):
    """Timer that calls `look` at intervals in a thread of its own. The returned function stops it."""

    def __call__(self, look: Callable[[], None], every_ms: int) -> Callable[[], None]: ...


class Entropy(Protocol):
    """Source of all randomness: names, and the jitter of pauses."""

    def token(self, bits: int) -> str:
        """Return lower-case hexadecimal of that many random bits (a multiple of 8)."""
        ...

    def uniform(self) -> float:
        """Return a number in [0, 1)."""
        ...


class Offload(Protocol):
    """Runner of synchronous port calls that does not block the event loop."""

    def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]: ...


class Blocked(NamedTuple):
    """Time that a tool (empty: other code) held the loop during an attempt. `is_own`: that attempt."""

    tool: str
    ms: int
    is_own: bool


class HoldRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Amount that a tool wants to have held before a call.

    `amount`: micro-dollars; with a `model`, as much as a request of `size` bytes to it may cost whose answer
    has up to `output` tokens.
    """

    amount: int = 0
    model: str = ""
    size: int = 0
    output: int = 0


class HeldMoney(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Amount in micro-dollars that is held for a call, and counts as spent.

    `price`: of the model that it is for, whose answer may have `output` tokens. `tokens`: read and written,
    held as well, because a limit of tokens applies.
    """

    amount: int = 0
    price: Price | None = None
    size: int = 0
    output: int = 0
    tokens: tuple[Usage, ...] = ()


class Hold:
    """Money held for a call of a tool. It counts as spent until `spend` or `count` says what the call cost.

    `output`: most tokens that the answer of a model may have.
    """

    def __init__(self, context: StepContext, held: HeldMoney) -> None:
        self._context, self._held = context, held
        self.output = held.output

    def spend(self, usd: Decimal | str | float) -> None:
        """Report what the call has cost, in place of what is held: 0 for one that was not made."""
        self._context.spent.append(amount_of(usd))
        self._release()  # afterwards: a process that ends in between reports too much, and not nothing

    def count(self, usage: Usage) -> None:
        """Report the tokens that a model has used, in place of what is held. Impossible ones count as the
        most.
        """
        held = self._held
        if not is_credible(usage, held.size, held.output):
            usage = most_used(usage.model, held.size, held.output)
        if held.price is not None:
            cost = usage_cost(usage, held.price)
            self._context.usage.append(msgspec.structs.replace(usage, cost=cost))
            self.spend(Decimal(cost) / MICRO)

    def _release(self) -> None:
        held, self._held = self._held, msgspec.structs.replace(self._held, amount=0, tokens=())
        if held.amount:
            self._context.spent.append(Assumed(Decimal(-held.amount) / MICRO))
        for one in held.tokens:
            self._context.usage.append(Usage(model=one.model, input=-one.input, output=-one.output))


class Draft:
    """Partial answer for viewers; `read`, which the adapter sets, returns its text so far."""

    __slots__ = ("read",)

    def __init__(self) -> None:
        self.read: Callable[[], str] = str


class UnitLog(Protocol):
    """The units of work that the log has of a step, as the tool of one attempt sees it."""

    @property
    def has_units(self) -> bool:
        """True if it has a unit, or is about to."""
        ...

    def recorded(self) -> Mapping[str, Any]:
        """Return the results that it has, by key."""
        ...

    def check(self, name: str) -> None:
        """Raise `StepFailure` if a further unit must not be done."""
        ...

    async def record(self, name: str, key: str, result: Any) -> None:
        """Wait until it has this result too. Raises `StepFailure`; cancelled if it never will."""
        ...

    async def hold(self, asked: HoldRequest) -> HeldMoney:
        """Hold money of the attempt before a call. Raises `NoRoom`, `StepFailure`."""
        ...

    def draft(self) -> AbstractContextManager[Draft]:
        """Show text to viewers of the saga until the end of the block."""
        ...


class CallJournal(Protocol):
    """The journal of one call of a tool; see `StepContext.once`."""

    async def once(self, name: str, function: Callable[[], Any]) -> Any: ...

    def once_sync(self, name: str, function: Callable[[], Any]) -> Any: ...

    async def hold(self, asked: HoldRequest) -> HeldMoney: ...

    def hold_sync(self, asked: HoldRequest) -> HeldMoney: ...


class ThreadStore(NamedTuple):
    """A tenant's threads of graphs: their rows, and the blobs of large ones. `call` runs calls of ports."""

    tenant: str
    checkpoints: Checkpoints
    blobs: Blobs
    clock: Clock
    call: Offload


class StepContext(msgspec.Struct, frozen=True, kw_only=True):
    """Context of the step that a tool is run for."""

    saga: str
    tenant: str
    user: str
    node: str
    iteration: tuple[int, ...] = ()
    item: str = ""
    """Part of a node that works on several at once; `t3-0` is the first call of an agent's third turn."""
    attempt: int = 1
    idempotency_key: str = ""
    deadline_ms: int = 0
    traceparent: str = ""
    rows: list[Row] = []
    spent: list[Decimal] = []
    blocked: list[Blocked] = []
    usage: list[Usage] = []
    callback_token: str = ""
    """Secret of a node with `callback`: it proves to `POST /callbacks/{token}` that work elsewhere belongs to
    this step.
    """
    callback_url: str = ""
    """Full address of that route, if the deployment knows its own."""
    units: Callable[[], UnitLog] | None = None
    journal: CallJournal | None = None
    threads: Callable[[], ThreadStore] | None = None

    def spend(self, usd: Decimal | str | float) -> None:
        """Report money that this attempt has cost, such as a model's answer; several reports add up.

        The cost counts at once and for good, even if the attempt fails or is cut off later. The sum is
        rounded up to a millionth of a dollar. Raises `ValueError` for anything but an amount of 0 to
        1,000,000 dollars.
        """
        self.spent.append(amount_of(usd))

    async def hold(self, usd: Decimal | str | float) -> Hold:
        """Hold money before a call whose price only this attempt knows; afterwards `spend` it on the result.

        Without room for it, the step waits, or its saga is parked, as for a declared cost: let what this
        raises pass. A tool that holds money declares a `cost_usd`.
        """
        return await self.hold_request(HoldRequest(amount=micro_dollars([amount_of(usd)])))

    def hold_sync(self, usd: Decimal | str | float) -> Hold:
        """Do the same in a tool that is a plain function."""
        asked = HoldRequest(amount=micro_dollars([amount_of(usd)]))
        return Hold(self, HeldMoney() if self.journal is None else self.journal.hold_sync(asked))

    def draft(self) -> AbstractContextManager[Draft]:
        """Show text to viewers of the saga, until the end of the block, while the tool gets it."""
        return nullcontext(Draft()) if self.units is None else self.units().draft()

    async def hold_request(self, asked: HoldRequest) -> Hold:
        """Hold what this asks for; nothing if no worker runs the tool."""
        if self.journal is None:
            return Hold(self, HeldMoney(output=asked.output))
        return Hold(self, await self.journal.hold(asked))

    @overload
    async def once(
        self, name: str, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def once(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def once(self, name: str, function: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function as a unit of the step's work, and record its result: a later attempt gets it
        without a call.

        The second unit of a name in one call of the tool is `name#2`. The result is JSON, or what the hint of
        `function` makes of JSON. What `function` raises is not recorded. A process that dies between the act
        and the record does the unit again: let `function` pass on `key(name)`. A step has at most 1,000 of
        them.
        """
        return await _journal_of(self).once(name, partial(function, *args, **kwargs))

    def once_sync(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same in a tool that is a plain function."""
        return cast("T", _journal_of(self).once_sync(name, partial(function, *args, **kwargs)))

    def key(self, name: str) -> str:
        """Return an idempotency key for a part of this call: the same in every attempt."""
        return hashlib.sha256(msgspec.json.encode([self.idempotency_key, name])).hexdigest()[:32]

    def put_row(self, key: str, sort: str, attributes: dict[str, Any]) -> None:
        """Write a row of this tenant into the saga table together with this step's entry: both or neither.

        `key` and `sort` are text of at most 1,024 bytes, `attributes` plain JSON of at most 100,000. The row
        costs a transaction (twice the write units of entry and rows). Raises `ValueError` for an invalid row.
        """
        if len(self.rows) >= MAX_PER_STEP:
            raise ValueError(f"a step writes at most {MAX_PER_STEP} rows")
        self.rows.append(check_row(Row(key, sort, attributes)))


def _journal_of(context: StepContext) -> CallJournal:
    if context.journal is None:
        raise StepFailure("tool_error", "this context has no journal: no worker runs the tool")
    return context.journal


class Performer(Protocol):
    """Performer of one tool. Raises `StepFailure` or `NoRoom`; cancellable at any await."""

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any: ...


class Watch(Protocol):
    """Watchdog outside the event loop that detects and reports `async` tools that block it."""

    def over(self, tool: str, context: StepContext) -> AbstractContextManager[None]:
        """Watch the loop while an `async` tool runs in this context; `context.blocked` gets findings."""
        ...

    def rest(self) -> None:
        """Stop watching: the invocation is over."""
        ...


class Sandbox(Protocol):
    """Sandbox for the code of Python conditions, with a process and hard limits for each run."""

    async def answer(self, question: SandboxQuestion) -> SandboxAnswer:
        """Return an answer for any code; no process of it is left afterwards.

        Without a value the answer has one of the codes condition_timeout, condition_memory, condition_error,
        condition_invalid and condition_not_boolean, and a message for the author. Raises
        `SandboxUnavailable`.
        """
        ...


class StepFailure(Exception):
    """Failure of a step, raised by a performer: it goes into the log, and is not an engine fault.

    `kind` is one of the classes of core/failures/codes.py, if more is known than the code says; `status` that
    of an HTTP answer; `retry_after` the text of its header of that name. `happened`: true if the tool's
    outside effect may have happened all the same, if that is known; it matters to a tool with
    `effect="once"`, and to a reversible one. `False` holds for all calls with this key. `unsent`: this
    very call has not been sent, which says nothing of earlier calls. `answer`: what was given in place of the
    result, as JSON.
    """

    answer = ""

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
    """Body of a wake on the queue and of a direct invocation: a saga's key and the known version of its log.

    `build`: the deployed code that may mend a saga, which is parked for a defect and was `due` then. Without
    one, `due` is the end of a lease that an earlier wake has found held: this one does not come again.
    """

    saga: str
    v: int = 0
    build: str = ""
    due: int = 0


def tenant_of(message: Message) -> str:
    """Return the tenant of a message."""
    return SagaRef.parse(message.saga).tenant


class Watchdog(Protocol):
    """Timer that ends this process, whatever the process does then."""

    def set(self, ms: int | None) -> None:
        """End the process in `ms` milliseconds, in place of the time that was set before; None: never."""
        ...


class Queue(Protocol):
    """Queue of wakes. While more wait than workers are free, tenants are served in turn."""

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        """Send (message, delay in whole seconds, 0-900). Return the positions that were not accepted."""
        ...

    def backlog(self) -> int:
        """Return about how many messages could be received now, and wait for a free worker."""
        ...


class DeadMessageCause(msgspec.Struct, frozen=True, kw_only=True):
    """Cause of a dead message, besides its reason in words.

    A code, the entry that cannot be read (0: none is known), the node, and the delivery count of the message.
    """

    code: str = ""
    version: int = 0
    node: str = ""
    attempts: int = 1


UNKNOWN = DeadMessageCause()


class DeadLetters(Protocol):
    """Queue of messages that no worker could handle. Their further handling is in ports/operators.py."""

    def send(self, body: str, reason: str, cause: DeadMessageCause = UNKNOWN) -> None: ...


class Builds(Protocol):
    """Builds of the worker's code in the deployment, each of which can be invoked."""

    async def run(self, build: str, messages: Sequence[Message], until: int) -> Sequence[int]:
        """Run one invocation of a build for these wakes, which ends by `until`, and wait for its end.

        Return the positions of the wakes that have to come again. Raises `CodeGone`, engine faults.
        """
        ...


class CodeBuild(msgspec.Struct, frozen=True, kw_only=True):
    """A build of the worker's code, and the number of its version. `is_current`: sagas begin with it."""

    build: str
    version: str
    is_current: bool = False


class DeployedBuilds(Protocol):
    """Builds of the worker's code in a deployment, for an operator."""

    def listed(self) -> tuple[Sequence[CodeBuild], int]:
        """Return the builds that exist, the oldest first, and the time of the last deploy."""
        ...

    def delete(self, build: CodeBuild) -> None:
        """Delete a build. One that does not exist is no error."""
        ...


class Invoker(Protocol):
    """Starter of worker invocations, without any queue."""

    def invoke(self, messages: Sequence[Message]) -> None:
        """Start one asynchronous invocation for these wakes."""
        ...
