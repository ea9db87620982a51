"""carry_out(...): one attempt of one step: what is called before the tool, which tool is called, and with what.

Hooks and alternatives are carried out with the calls of a `Performer`. The policy in core/failures/ chooses the
alternative. The time of an attempt and what becomes of its result are in steps/steps.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from baton.core.conditions.schema import violations
from baton.core.decide.builder import RunStep
from baton.core.effects.toolspec import ONCE, ToolSpec
from baton.core.failures.alternatives import ARGUMENTS, FAILURE, TOOL
from baton.core.failures.classes import RETRYABLE
from baton.core.failures.codes import class_of
from baton.core.failures.context import combined, parts_of, shortened
from baton.core.failures.defects import DEFECTS
from baton.core.failures.doubts import leaves_doubt
from baton.core.failures.failover import Context
from baton.ports import Performer, StepContext, StepFailure

TOO_LONG = "context_exceeded"
MOST_HALVINGS = 5
"""How often a context is halved within one attempt: to a thirty-second of it, or into 32 parts."""

Specs = Mapping[str, ToolSpec]


def tool_called(step: RunStep) -> str:
    """The tool that does the step's work in this attempt."""
    way = step.way
    return way.tool if way is not None and way.tool and not way.first else step.node.tool


def key_of_other(key: str, tool: str, *parts: str | int) -> str:
    """The key of a call that differs from the step's own, which has `key`, by these parts."""
    return hashlib.sha256(msgspec.json.encode([key, tool, *parts])).hexdigest()[:32]


async def carry_out(
    performer: Performer,
    specs: Specs,
    step: RunStep,
    context: StepContext,
    given: dict[str, Any] | None = None,
) -> Any:
    """The result of one attempt. Raises `StepFailure`, `NoRoom`; cancellation passes through.

    Hooks and helpers spend, write rows and fail for the step. Each has an idempotency key of its own, and so has the tool
    where it is called with other arguments than the step's; a tool that is `once` keeps the key of the context. `given` takes in
    the arguments that the tool gets, where they are not the step's.
    """
    if step.way is None and not step.hooks:
        return await performer.perform(step.node.tool, step.arguments, context)
    arguments = await prepared(performer, specs, step, context)
    if given is not None:
        given.update(arguments)
    return await work(performer, specs, step, context, arguments)


async def prepared(performer: Performer, specs: Specs, step: RunStep, context: StepContext) -> dict[str, Any]:
    """The first half of an attempt: the arguments for the tool, after all that is called before it. It has not begun."""
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
    """The second half: the tool with the arguments of the first, once or for each part of a context."""
    attempt, way = _AttemptCalls(performer, specs, step, context), step.way
    if way is None or (way.first and not way.arguments):
        return await attempt.call(arguments)
    if way.shorten:
        return await attempt.shorter(way.shorten, arguments)
    if way.chunk:
        return await attempt.in_parts(way.chunk, arguments)
    return await attempt.call(arguments, way.name)


async def look(
    performer: Performer, specs: Specs, tool: str, arguments: Mapping[str, Any], context: StepContext
) -> Any:
    """What the `verify` of a tool says of a call with these arguments and with the key of this context."""
    verify = specs[tool].verify
    takes = _parameters(specs.get(verify))
    given = {name: value for name, value in arguments.items() if name in takes}
    return await performer.perform(verify, given, context)


def as_before(step: RunStep, why: str = "", *, happened: bool | None = None) -> StepFailure:
    """The failure that a look was about. `why`: what `verify` did not say."""
    last = step.failure
    assert last is not None, "a look is about a failure"
    # Of a defect, a class would say that the tool itself has given its code.
    kind = last.kind if last.on_purpose or last.code not in DEFECTS else ""
    text = f"{last.message} (`verify` {why})" if why else last.message
    return StepFailure(last.code, text, kind=kind, status=last.status, happened=happened)


async def found_out(spec: ToolSpec, step: RunStep, ask: Callable[[], Awaitable[Any]]) -> Any:
    """The result of an idempotent call that may have acted, from its `verify`. Raises `StepFailure`: how it had failed, where it has not
    happened or `verify` cannot tell.
    """
    try:
        told = await ask()
    except (StepFailure, TimeoutError) as error:
        said = error.message if isinstance(error, StepFailure) else "no answer in its time"
        raise as_before(step, f"could not look: {said}") from error
    match told:
        case {"happened": True}:
            result = told.get("result")
            if not violations(spec.result, result):
                return result
            raise as_before(
                step, f"says that it has happened, and gives no result that `{spec.name}` could have"
            )
        case {"happened": False}:
            raise as_before(step, happened=False)
        case {"happened": None}:
            raise as_before(step, "cannot tell whether it has happened")
    raise as_before(
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
        """Those that the tool takes which stands in; the step's own has to be content with all."""
        spec = self._specs.get(self._called)
        if self._called == self._step.node.tool or spec is None:
            return arguments
        if spec.parameters.get("additionalProperties") is not False:
            return arguments
        return {name: value for name, value in arguments.items() if name in _parameters(spec)}

    async def call(self, arguments: Mapping[str, Any], *other: str | int) -> Any:
        """The tool. `other`: what makes it another call than the step's own."""
        spec = self._specs.get(self._called)
        is_other = other and (spec is None or spec.effect != ONCE)
        context = self._with_key(*other) if is_other else self._context
        return await self._performer.perform(self._called, arguments, context)

    async def helped(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments after a tool that carries something out has been called."""
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
        """With a context that is halved until it fits."""
        value, results = arguments.get(parameter), list[Any]()
        for halvings in range(1, MOST_HALVINGS + 1):
            before, value = value, shortened(value)
            is_last = halvings == MOST_HALVINGS or value == before
            if await self._fits(results, {**arguments, parameter: value}, (parameter, halvings), is_last):
                break
        return results[0]

    async def in_parts(self, parameter: str, arguments: dict[str, Any]) -> Any:
        """With the context in two parts, one after the other, each parted again if it does not fit."""
        results: list[Any] = []

        async def part(value: Any, path: tuple[int, ...]) -> None:
            pieces = parts_of(value, 2)
            for number, piece in enumerate(pieces):
                here = (*path, number)
                is_last = len(here) == MOST_HALVINGS or len(pieces) == 1
                if not await self._fits(
                    results, {**arguments, parameter: piece}, (parameter, *here), is_last
                ):
                    await part(piece, here)

        await part(arguments.get(parameter), ())
        try:
            return combined(results)
        except ValueError as error:
            raise StepFailure("result_invalid", f"`{self._called}`: {error}") from error

    async def _fits(
        self, results: list[Any], arguments: dict[str, Any], other: tuple[str | int, ...], is_last: bool
    ) -> bool:
        """Whether a context was short enough; then the result is one more. The last try raises what it is."""
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
        """Whether the tool must not be called again before `verify` or a person has looked."""
        spec = self._specs.get(self._called)
        is_once = spec is not None and spec.effect == ONCE
        return is_once and leaves_doubt(error.code, error.kind, error.happened)

    def _with_key(self, *parts: str | int) -> StepContext:
        """A context that shares all but its key."""
        key = key_of_other(self._context.idempotency_key, self._called, *parts)
        return msgspec.structs.replace(self._context, idempotency_key=key)

    def _failure(self) -> dict[str, Any]:
        """The last failure as conditions know it; the parameters are given by themselves."""
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
