"""Parts of a call that the log keeps: arguments, and the idempotency key."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec

from baton.core.conditions.schema import violations
from baton.core.decide.decision import RunStep
from baton.core.decide.outcomes import Outcome
from baton.core.decide.unknown_outcomes import has_acted_before, may_have_acted
from baton.core.effects.toolspec import ONCE, ToolSpec
from baton.core.failures.alternatives import (
    ARGUMENTS,
    FAILURE,
    TOOL,
    combine_results,
    drop_older_half,
    split_value,
)
from baton.core.failures.codes import DEFECTS, class_of, leaves_doubt
from baton.core.failures.failover import Context
from baton.core.failures.names import RETRYABLE
from baton.core.log.events import Failure, Value
from baton.core.log.records import Response
from baton.core.log.state import Origin, State
from baton.core.log.work import Callback
from baton.core.models.usage import Usage
from baton.core.money import assumed_in, micro_dollars
from baton.ports import Blocked, Performer, StepContext, StepFailure, UnitLog
from baton.ports.log import period_of, reference_of
from baton.runtime.invocation.context import InvocationContext

TOO_LONG = "context_exceeded"
MOST_HALVINGS = 5
"""Highest number of halvings of a context within one attempt: to a thirty-second of it, or into 32 parts."""

Specs = Mapping[str, ToolSpec]


def tool_called(step: RunStep) -> str:
    """Return the tool that does the step's work in this attempt."""
    way = step.way
    return way.tool if way is not None and way.tool and not way.first else step.node.tool


def key_of_other(key: str, tool: str, *parts: str | int) -> str:
    """Return the key of a call that differs by these parts from the step's own, which has `key`."""
    return hashlib.sha256(msgspec.json.encode([key, tool, *parts])).hexdigest()[:32]


def is_made_anew(step: RunStep) -> bool:
    """Return true if a call before the tool, or the way of calling it, makes its arguments."""
    way = step.way
    if way is not None and way.chunk:
        return False  # of a part: in its place, the step would end with that one and lose the others
    return bool(step.hooks) or (way is not None and bool(way.first or way.shorten))


async def carry_out(
    performer: Performer,
    specs: Specs,
    step: RunStep,
    context: StepContext,
    given: dict[str, Any] | None = None,
) -> Any:
    """Perform one attempt and return its result.
    Raises `StepFailure`, `NoRoom`; cancellation passes through. Raises `StepFailure`, `NoRoom`; cancellation
    passes through.

    Hooks and helpers spend, write rows and fail for the step.
    Each has an idempotency key of its own, and so has the tool where it is called with
    other arguments than the step's; a tool that is `once` keeps the key of the context.
    `given` takes in the arguments that the tool gets, where they are not the step's.
    """
    if step.way is None and not step.hooks:
        return await performer.perform(step.node.tool, step.arguments, context)
    arguments = await prepare_attempt(performer, specs, step, context)
    if given is not None:
        given.update(arguments)
    return await work(performer, specs, step, context, arguments)


async def prepare_attempt(
    performer: Performer, specs: Specs, step: RunStep, context: StepContext
) -> dict[str, Any]:
    """Perform the first half of an attempt: return the arguments for the tool,
    after all that is called before it. It has not begun.
    """
    attempt = _AttemptCalls(performer, specs, step, context)
    arguments = dict(step.arguments)
    for hook in step.hooks:
        arguments = await attempt.helped(hook, arguments)
    if step.way is None:
        return arguments
    if step.way.first:
        arguments = await attempt.helped(step.way.tool, arguments)
    return attempt.taken(arguments | step.way.arguments)


async def work(
    performer: Performer, specs: Specs, step: RunStep, context: StepContext, arguments: dict[str, Any]
) -> Any:
    """Perform the second half: call the tool with the arguments of the first,
    once or for each part of a context.
    """
    attempt, way = _AttemptCalls(performer, specs, step, context), step.way
    if way is None or (way.first and not way.arguments):
        return await attempt.call(arguments)
    if way.shorten:
        return await attempt.shorter(way.shorten, arguments)
    if way.chunk:
        return await attempt.in_parts(way.chunk, arguments)
    return await attempt.call(arguments, way.name)


async def verify_effect(
    performer: Performer, specs: Specs, tool: str, arguments: Mapping[str, Any], context: StepContext
) -> Any:
    """Return the result of the `verify` of a tool for these arguments and the key of this context."""
    verify = specs[tool].verify
    takes = _parameters(specs.get(verify))
    given = {name: value for name, value in arguments.items() if name in takes}
    return await performer.perform(verify, given, context)


def failure_before_look(step: RunStep, why: str = "", *, happened: bool | None = None) -> StepFailure:
    """Return the failure that a look was about. `why`: the reason that `verify` gave no answer."""
    last = step.failure
    assert last is not None, "a look is about a failure"
    # Of a defect, a class would say that the tool itself has given its code.
    kind = last.kind if last.on_purpose or last.code not in DEFECTS else ""
    text = f"{last.message} (`verify` {why})" if why else last.message
    return StepFailure(last.code, text, kind=kind, status=last.status, happened=happened)


async def verified_result(spec: ToolSpec, step: RunStep, ask: Callable[[], Awaitable[Any]]) -> Any:
    """Return the result of an idempotent call that may have acted, from its `verify`.
    Raises `StepFailure`: how it had failed, where it has not happened or `verify` cannot tell.
    """
    try:
        told = await ask()
    except (StepFailure, TimeoutError) as error:
        said = error.message if isinstance(error, StepFailure) else "no answer in its time"
        raise failure_before_look(step, f"could not look: {said}") from error
    match told:
        case {"happened": True}:
            result = told.get("result")
            if not violations(spec.result, result):
                return result
            raise failure_before_look(
                step, f"says that it has happened, and gives no result that `{spec.name}` could have"
            )
        case {"happened": False}:
            raise failure_before_look(step, happened=False)
        case {"happened": None}:
            raise failure_before_look(step, "cannot tell whether it has happened")
    raise failure_before_look(
        step, "must return an object with `happened` (true, false or null), and a `result` if true"
    )


class _AttemptCalls:
    """`called` is the tool that does the work."""

    def __init__(self, performer: Performer, specs: Specs, step: RunStep, context: StepContext) -> None:
        self._performer = performer
        self._specs = specs
        self._step = step
        self._context = context
        self._called = tool_called(step)

    def taken(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that the substitute tool takes; the step's own tool must accept all."""
        spec = self._specs.get(self._called)
        if self._called == self._step.node.tool or spec is None:
            return arguments
        if spec.parameters.get("additionalProperties") is not False:
            return arguments
        return {name: value for name, value in arguments.items() if name in _parameters(spec)}

    async def call(self, arguments: Mapping[str, Any], *other: str | int) -> Any:
        """Call the tool. `other`: parts that make it another call than the step's own."""
        spec = self._specs.get(self._called)
        is_other = other and (spec is None or spec.effect != ONCE)
        context = self._with_key(*other) if is_other else self._context
        return await self._performer.perform(self._called, arguments, context)

    async def helped(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments after the call of a tool that carries something out."""
        takes = _parameters(self._specs.get(tool))
        known = {**arguments, FAILURE: self._failure(), ARGUMENTS: arguments, TOOL: self._called}
        given = {name: known[name] for name in takes if name in known}
        # The number of the attempt is part of the key, or what is asked for anew would be answered from before.
        context = self._with_key(tool, self._step.attempt)
        try:
            result = await self._performer.perform(tool, given, context)
        except StepFailure as error:
            raise StepFailure(
                error.code,
                f"`{tool}`: {error.message}",
                kind=error.kind,
                status=error.status,
                retry_after=error.retry_after,
                happened=False,
                unsent=True,
            ) from error
        if not isinstance(result, dict):
            return arguments
        names = {*arguments, *_parameters(self._specs.get(self._called))}
        return arguments | {name: value for name, value in result.items() if name in names}

    async def shorter(self, parameter: str, arguments: dict[str, Any]) -> Any:
        """Call with a context that is halved until it fits."""
        value, results = arguments.get(parameter), list[Any]()
        for halvings in range(1, MOST_HALVINGS + 1):
            before, value = value, drop_older_half(value)
            is_last = halvings == MOST_HALVINGS or value == before
            if await self._fits(results, {**arguments, parameter: value}, (parameter, halvings), is_last):
                break
        return results[0]

    async def in_parts(self, parameter: str, arguments: dict[str, Any]) -> Any:
        """Call with the context in two parts, one after the other, each split again if it does not fit."""
        results: list[Any] = []

        async def part(value: Any, path: tuple[int, ...]) -> None:
            pieces = split_value(value, 2)
            for number, piece in enumerate(pieces):
                here = (*path, number)
                is_last = len(here) == MOST_HALVINGS or len(pieces) == 1
                if not await self._fits(
                    results, {**arguments, parameter: piece}, (parameter, *here), is_last
                ):
                    await part(piece, here)

        await part(arguments.get(parameter), ())
        try:
            return combine_results(results)
        except ValueError as error:
            raise StepFailure("result_invalid", f"`{self._called}`: {error}") from error

    async def _fits(
        self, results: list[Any], arguments: dict[str, Any], other: tuple[str | int, ...], is_last: bool
    ) -> bool:
        """Return true if a context was short enough, and append the result.
        The last try raises its failure.
        """
        kept = len(self._context.rows)
        try:
            results.append(await self.call(arguments, *other))
        except StepFailure as error:
            if error.code != TOO_LONG or is_last or self._may_have_acted(error):
                if results:  # parts before it are done
                    error.happened, error.unsent = True, False
                raise
            del self._context.rows[kept:]  # of a call that counts for nothing
            return False
        return True

    def _may_have_acted(self, error: StepFailure) -> bool:
        """Return true if the tool must not be called again before `verify` or a person has checked."""
        spec = self._specs.get(self._called)
        is_once = spec is not None and spec.effect == ONCE
        return is_once and leaves_doubt(error.code, error.kind, error.happened)

    def _with_key(self, *parts: str | int) -> StepContext:
        """Return a context that differs only in its key."""
        key = key_of_other(self._context.idempotency_key, self._called, *parts)
        return msgspec.structs.replace(self._context, idempotency_key=key)

    def _failure(self) -> dict[str, Any]:
        """Return the last failure as conditions know it; the parameters are given by themselves."""
        failure, node = self._step.failure, self._step.node
        if failure is None:
            return {}
        class_ = failure.kind or class_of(failure.code)
        value = Context(
            node=node.name,
            tool=failure.tool or node.tool,
            domain=node.domain,
            code=failure.code,
            kind=class_,
            status=failure.status,
            attempt=failure.attempt or self._step.attempt,
            at=failure.at,
            message=failure.message,
        ).as_value(is_retryable=class_ in RETRYABLE)
        del value["parameters"]
        return value


def _parameters(spec: ToolSpec | None) -> Mapping[str, Any]:
    found: Mapping[str, Any] = {} if spec is None else spec.parameters.get("properties", {})
    return found


Bill: TypeAlias = tuple[list[Decimal], list[Usage]]
"""Spending of an attempt, and the tokens that models have used for it."""


class UnknownOutcome(msgspec.Struct):
    """Evidence that a once-only effect may have happened.
    `is_met`: its claim is checked.

    `acting`: an earlier invocation may have come further with it than this one. `is_recorded`: it had
    happened before.
    """

    before: bool
    acting: bool = False
    is_met: bool = False
    is_recorded: bool = False

    @property
    def is_open(self) -> bool:
        """Return true if the effect may have happened, unless this attempt says otherwise."""
        return self.is_met or self.before or self.acting

    def after(self, failure: StepFailure) -> bool:
        """Return true if the effect may have happened after this failure of the call."""
        if not self.is_met:  # what has no key now had none before, either
            return self.before or (self.acting and failure.code != "key_incomplete")
        return failure.code not in _OWN and leaves_doubt(failure.code, failure.kind, failure.happened)


_OWN = frozenset({"in_progress", "unknown_outcome"})
"""Codes that the claim itself raises: another attempt holds it, or a person has to find out the outcome."""


class LazyJournal(msgspec.Struct, eq=False):
    """The journal of an attempt, made when its tool names the first unit. `known`: the units in the log."""

    make: Callable[[AttemptInput, Callable[[], Any], Any], UnitLog]
    known: Any = None
    made: UnitLog | None = None

    def __call__(self, attempt: AttemptInput, ledger: Callable[[], Any]) -> UnitLog:
        if self.made is None:
            self.made = self.make(attempt, ledger, self.known)
        return self.made


class AttemptInput(msgspec.Struct, eq=False):
    """Input of one attempt: the step, its saga, its start, and places to note what it spends and what blocks
    it.

    `doubt` is about an effect that may happen only once: an earlier doubt remains until its claim is checked.
    `callback` and its `token`: set if the tool only hands its work over. `response`: a request handed over to
    a provider of models; `work`: work handed over that is polled now. `may_ask`: a person may have to approve
    a call of it. `given`: the arguments that the tool got, if they are not the step's; `key`: that of the
    call; `done_by`: see `Outcome`. `is_free`: no limit of money blocks it; `is_paid`: its
    ledger knows of it; `is_settled`: the ledger has been told what it has cost. `acted`: it has failed, and
    the tool reports that it has acted, or has done a part of it. `counts_dead`: its next hold counts for the
    workers that died with it, too. `journal`: for the units of its work. `cache`: see `Outcome`.
    """

    state: State
    step: RunStep
    spec: ToolSpec | None
    traceparent: str
    spent: list[Decimal]
    started: int
    doubt: UnknownOutcome
    may_ask: bool = False
    blocked: list[Blocked] = []
    callback: str = ""
    token: str = ""
    response: Response | None = None
    work: Callback | None = None
    usage: list[Usage] = []
    given: dict[str, Any] = {}
    key: str = ""
    done_by: str = ""
    is_free: bool = False
    is_paid: bool = True
    is_settled: bool = False
    acted: bool = False
    counts_dead: bool = True
    journal: LazyJournal | None = None
    cache: str = ""

    @property
    def has_units(self) -> bool:
        """True if the log has a unit of its step, or is about to."""
        return self.step.slot in self.state.journals or (
            self.journal is not None and self.journal.made is not None and self.journal.made.has_units
        )


def stopped_outcome(of: tuple[RunStep, int, int, Bill], **why: Any) -> Outcome:
    """Return the outcome of an attempt stopped before its result.
    `of`: its step, its begin and end, and its spending.
    """
    step, began, ended, (spent, usage) = of
    return Outcome(
        slot=step.slot,
        attempt=step.attempt,
        started_at=began,
        ended_at=ended,
        cost=micro_dollars(spent),
        assumed=assumed_in(spent),
        usage=tuple(usage),
        **why,
    )


_encode = msgspec.json.Encoder().encode


class Values:
    """Stores values for one invocation. `owner`: whose value it is."""

    def __init__(self, context: InvocationContext) -> None:
        self._blobs = context.blobs
        self._clock = context.clock
        self._limits = context.limits
        self._call = context.call

    async def value(self, owner: Origin, result: Any) -> Value | None:
        """Return a JSON value inline or as a blob, whichever is cheaper; None when it is over the limit."""
        data = _encode(result)
        if len(data) > self._limits.result_bytes:
            return None
        return Value(v=result) if len(data) <= self._limits.inline_bytes else await self._blob(owner, data)

    def unstored(self, owner: Origin, result: Any) -> tuple[Value, bytes] | None:
        """Return a JSON value as `value` would give it, with the bytes of its blob,
        which is not written yet.

        None when it is over the limit; no bytes for a value inline.
        """
        data = _encode(result)
        if len(data) > self._limits.result_bytes:
            return None
        if len(data) <= self._limits.inline_bytes:
            return Value(v=result), b""
        return Value(ref=reference_of(data, self._period(owner)), size=len(data)), data

    async def inline_or_blob(self, owner: Origin, result: Any, most: int | None = None) -> Value:
        """Return a JSON value inline or as a blob, by the lower cost; `most`: the most bytes inline, if that
        is less.
        """
        data = _encode(result)
        limit = self._limits.inline_bytes if most is None else min(most, self._limits.inline_bytes)
        return Value(v=result) if len(data) <= limit else await self._blob(owner, data)

    async def blob(self, owner: Origin, result: Any) -> Value:
        """Return a JSON value as a blob, however small."""
        return await self._blob(owner, _encode(result))

    async def _blob(self, owner: Origin, data: bytes) -> Value:
        ref = await self._call(self._blobs.put, owner.tenant, data, self._period(owner))
        return Value(ref=ref, size=len(data))

    def _period(self, owner: Origin) -> str:
        """Return the storage period of its blobs, which it needs as long as it is stored."""
        return period_of(self._clock.now(), owner.expires)


async def kept_fields(values: Values, one: AttemptInput, failure: Failure | None) -> dict[str, Any]:
    """Return the fields of the outcome that are kept; none of a step that has not acted."""
    node, tool = one.step.node, tool_called(one.step)
    if failure is not None and not _may_have_acted(one, failure):
        return {}
    found: dict[str, Any] = {"key": key} if node.keeps_key(tool) and (key := _key(one)) else {}
    if node.keeps(tool):
        given = node.kept(tool, one.given or one.step.arguments)
        found["kept"] = await values.value(one.state.origin, given)
    return found


def _key(one: AttemptInput) -> str:
    """Return the key of the attempt's call; empty where there are several."""
    way, spec = one.step.way, one.spec
    # Other arguments, or another tool, have keys of their own.
    if way is None or (way.first and not way.arguments) or (spec is not None and spec.effect == ONCE):
        return one.key
    return "" if way.shorten or way.chunk else key_of_other(one.key, tool_called(one.step), way.name)


def _may_have_acted(one: AttemptInput, failure: Failure) -> bool:
    node = one.step.node
    return one.acted or may_have_acted(node, failure) or has_acted_before(node, one.state, one.step.slot)
