"""A request to a model, as one attempt of a step: what it is told, the money for it, and what its answer comes to.

Whether a turn is due, and what becomes of the calls that it asks for, is decided in core/nodes/agent.py. Loaded with the
first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import msgspec

from baton.core.conditions.schema import violations
from baton.core.decide.builder import RunStep
from baton.core.effects.toolspec import ToolSpec
from baton.core.log.agents import Agent, Segment, Turn, answer_of, call_digest, call_item
from baton.core.log.events import Value
from baton.core.log.state import State, owner_of
from baton.core.log.workflow_limits import TERMINATE, failure_of
from baton.core.models import messages as said
from baton.core.models.messages import Message
from baton.core.models.tool import MODEL, SHARE
from baton.core.models.usage import Price, Usage, cost_of, most_of
from baton.core.money import MICRO, Assumed, micro_dollars
from baton.ports import Performer, StepContext, StepFailure
from baton.ports.models import LENGTH, ModelAnswer, ModelCall, ModelFailure, ModelRequest, Models, ToolOffer
from baton.runtime.attempt import tool_called
from baton.runtime.context import InvocationContext
from baton.runtime.ledger import Ledger
from baton.runtime.values import Values

INVALID = "answer_invalid"
TAIL = 16
"""So many turns are in the state; then they become a segment of the transcript."""
USUAL_OUTPUT = 4_096
"""Tokens that an answer has at most where the document does not say."""
MOST_CALLS = 64
MOST_WRONG = 3
"""So many answers in a row may ask only for what cannot be made; a further one is refused, like an answer of a wrong form."""
_WORST = 3  # of the problems of an answer, so many are told


class _Said(msgspec.Struct, frozen=True):
    """What is in a segment of a transcript: its messages, and by their digests the items of the calls that have succeeded."""

    messages: list[Message]
    made: dict[str, str] = {}


_decode_said = msgspec.json.Decoder(_Said).decode


class ModelCaller:
    """A performer that calls a model where a step's tool is that, and passes on everything else."""

    def __init__(
        self,
        performer: Performer,
        models: Models | None,
        context: InvocationContext,
        ledger: Ledger,
        values: Values,
        specs: Mapping[str, ToolSpec],
        state: State,
        step: RunStep,
    ) -> None:
        self._performer = performer
        self._models = models
        self._context = context
        self._ledger = ledger
        self._values = values
        self._specs = specs
        self._state = state
        self._step = step

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        is_turn = "#" in self._step.slot
        if tool != MODEL:
            result = await self._performer.perform(tool, arguments, context)
            return answer_of(result) if is_turn and tool == tool_called(self._step) else result
        if self._models is None:
            raise StepFailure("model_unavailable", "this deployment has no models", kind="permanent")
        if not is_turn:
            return await self._single(self._models, arguments, context)
        work = self._state.open[owner_of(self._step.slot)]
        assert isinstance(work, Agent), "only an agent has turns"
        return await self._turn(self._models, work, arguments, context)

    async def _single(self, models: Models, given: Mapping[str, Any], context: StepContext) -> Any:
        given = _priced(given, self._step.node.arguments["model"])
        answer = await self._ask(models, given, self._corrected(said.opening(given)), (), context)
        return self._data(answer)

    async def _turn(
        self, models: Models, work: Agent, changed: Mapping[str, Any], context: StepContext
    ) -> dict[str, Any]:
        written = await self._content(work.given)
        given = _priced({**written, **changed}, written["model"])
        names = said.wire_names(self._step.node.arguments["tools"])
        messages, made, segments = await self._transcript(work, given, names)
        messages += await self._heard(work.heard)
        if share := int(changed.get(SHARE, 0)):
            messages = said.cut(messages, len(said.opening(given)), share)
        offers = tuple(self._offer(tool, name) for tool, name in names.items())
        answer = await self._ask(models, given, self._corrected(messages), offers, context, work)
        asked = answer.calls[:MOST_CALLS]
        calls = [_repeating(self._call(call, names), made) for call in asked]
        if work.wrong >= MOST_WRONG and calls and all("error" in call for call in calls):
            why = "; ".join(call["error"]["message"] for call in calls[:_WORST])
            raise StepFailure(INVALID, f"again it asks only for calls that cannot be made: {why}")
        return {
            "text": answer.text,
            "calls": calls,
            **({"left_out": len(answer.calls) - MOST_CALLS} if len(answer.calls) > MOST_CALLS else {}),
            "data": None if asked else self._data(answer),
            "tokens": [answer.usage.input, answer.usage.output],
            **({} if segments is None else {"segments": [[one.ref, one.turns] for one in segments]}),
        }

    # ---- the request

    async def _ask(
        self,
        models: Models,
        given: Mapping[str, Any],
        messages: Sequence[Message],
        offers: tuple[ToolOffer, ...],
        context: StepContext,
        work: Agent | None = None,
    ) -> ModelAnswer:
        model, step = str(given["model"]), self._step
        try:  # a policy or a person may have put others in their place
            most_output = int(given.get("max_output") or USUAL_OUTPUT)
            price = self._price(models, given, model)
        except (TypeError, ValueError) as error:
            raise StepFailure("input_invalid", f"`max_output` or `price` is not usable: {error}") from error
        if price is None:
            text = f"the price of `{model}` is not known here, so that no money can be held for it"
            raise StepFailure("model_unavailable", text)
        schema = step.node.output_schema
        # A turn begins with what the one before it has read, and that was counted.
        counted = 0 if work is None or not work.tail else work.used.read
        size = said.size_of(messages, [msgspec.to_builtins(offers), schema])
        most = most_of(price, max(size, counted), most_output)
        self._within_limit(most, context)
        await self._ledger.cover(self._state, step, MODEL, most, is_billed=True)
        request = ModelRequest(
            model=model,
            messages=tuple(messages),
            tools=offers,
            schema=schema,
            most_output=most_output,
            temperature=given.get("temperature"),
            until=context.deadline_ms,
            key=f"{context.saga}/{step.slot}/{step.attempt}",
        )
        try:
            answer = await models.answer(request)
        except asyncio.CancelledError:  # the provider has the request, and bills it
            context.spent.append(Assumed(Decimal(most) / MICRO))
            raise
        except StepFailure as failure:
            usage = failure.usage if isinstance(failure, ModelFailure) else None
            if usage is not None:
                self._count(usage, price, context, model)
            elif failure.happened:
                context.spent.append(Assumed(Decimal(most) / MICRO))
            raise
        self._count(answer.usage, price, context, answer.model or model)
        calls = tuple(
            msgspec.structs.replace(one, name=said.plain(one.name), arguments=said.plain(one.arguments))
            for one in answer.calls
        )
        return msgspec.structs.replace(answer, text=said.plain(answer.text), calls=calls)

    def _within_limit(self, most: int, context: StepContext) -> None:
        """Raises `StepFailure` where the request may cost more than `limits.cost_usd` of the node leaves."""
        node = self._step.node
        cap, used = node.limits.get("cost"), self._state.used.get(node.name)
        if cap is None or used is None or cap.then != TERMINATE:
            return
        found = used.cost + micro_dollars(context.spent) + most
        if found > cap.most:
            failure = failure_of("cost", cap, node.name, found)
            raise StepFailure(failure.code, f"{failure.message} with what the next request may cost")

    def _price(self, models: Models, given: Mapping[str, Any], model: str) -> Price | None:
        """What the document says, or else what the deployment knows."""
        own = given.get("price")
        return models.price(model) if own is None else Price(**own)

    def _count(self, usage: Usage, price: Price, context: StepContext, model: str) -> None:
        cost = cost_of(usage, price)
        context.usage.append(msgspec.structs.replace(usage, model=usage.model or model, cost=cost))
        context.spend(Decimal(cost) / MICRO)

    def _corrected(self, messages: list[Message]) -> list[Message]:
        """With what was wrong about the last answer to the same messages."""
        failure = self._step.failure
        if failure is None or failure.code != INVALID:
            return messages
        return [*messages, said.correction(failure.message)]

    def _offer(self, tool: str, name: str) -> ToolOffer:
        spec = self._specs.get(tool)
        if spec is None:
            raise StepFailure(
                "tool_missing", f"this deployment has no tool `{tool}`, which the agent may call"
            )
        return ToolOffer(name=name, description=spec.description, parameters=spec.parameters)

    # ---- the transcript

    async def _transcript(
        self, work: Agent, given: Mapping[str, Any], names: Mapping[str, str]
    ) -> tuple[list[Message], dict[str, str], list[Segment] | None]:
        """All that was said so far; the calls of older turns; and what is to become of the segments, where a new one is due."""
        known = await asyncio.gather(*(self._segment(one) for one in work.segments))
        messages, made = said.opening(given), dict[str, str]()
        for part in known:
            messages += part.messages
            made |= part.made
        first = 1 + sum(one.turns for one in work.segments)
        tail: list[Message] = []
        for number, turn in enumerate(work.tail, first):
            tail += await self._turn_messages(number, turn, names, (messages, tail))
        if len(work.tail) < TAIL:
            return [*messages, *tail], made, None
        parts = list(zip(work.segments, known, strict=True))
        return [*messages, *tail], made, await self._merged(parts, _Said(tail, work.made))

    async def _merged(self, parts: list[tuple[Segment, _Said]], tail: _Said) -> list[Segment]:
        """The segments with a new one, merged like a binary counter: of n turns there are at most log n."""
        size, text = TAIL, tail
        while parts and parts[-1][0].turns <= size:
            segment, before = parts.pop()
            text = _Said([*before.messages, *text.messages], before.made | text.made)
            size += segment.turns
        blob = await self._values.blob(self._state.origin, text)
        return [*(segment for segment, _ in parts), Segment(blob.ref, size)]

    async def _segment(self, segment: Segment) -> _Said:
        blobs, tenant = self._context.blobs, self._state.origin.tenant
        return _decode_said(await self._context.call(blobs.get, tenant, segment.ref))

    async def _turn_messages(
        self, number: int, turn: Turn, names: Mapping[str, str], before: Iterable[list[Message]]
    ) -> list[Message]:
        values = (turn.answer, *turn.results)
        if any(value.ref for value in values):
            answer, *results = await asyncio.gather(*map(self._content, values))
        else:
            answer, *results = (value.v for value in values)
        heard = await self._heard(turn.heard)
        ids = [call_item(number, index) for index in range(len(results))]
        found: dict[str, Any] = {}
        for id_, result in zip(ids, results, strict=True):
            if first := turn.again.get(id_):
                result = (
                    {"repeated": True, "result": found[first]}
                    if first in found
                    else said.repeated(chain.from_iterable(before), first)
                )
            found[id_] = result
        return [*heard, *said.turn(ids, answer, found.values(), names)]

    async def _heard(self, values: Sequence[Value]) -> list[Message]:
        return said.heard(await asyncio.gather(*map(self._content, values))) if values else []

    async def _content(self, value: Value) -> Any:
        if not value.ref:
            return value.v
        blobs, tenant = self._context.blobs, self._state.origin.tenant
        return msgspec.json.decode(await self._context.call(blobs.get, tenant, value.ref))

    # ---- the answer

    def _call(self, call: ModelCall, names: Mapping[str, str]) -> dict[str, Any]:
        """A call as the log has it: its tool and arguments, or why it is not made."""
        tool = next((tool for tool, name in names.items() if name == call.name), "")
        if not tool:
            known = ", ".join(names.values()) or "none"
            return _refused(
                call,
                call.name,
                "call_not_allowed",
                f"there is no tool `{call.name[:64]}`; there are: {known}",
            )
        try:
            arguments = said.parsed(call.arguments or "{}")
        except ValueError as error:
            return _refused(call, tool, "input_invalid", f"the arguments are no JSON: {error}")
        problems = violations(self._specs[tool].parameters, arguments)
        if not isinstance(arguments, dict) or problems:
            told = (
                "; ".join(f"at {one.path or '/'}: {one.message}" for one in problems[:_WORST])
                or "they are no object"
            )
            return _refused(call, tool, "input_invalid", told)
        return {"tool": tool, "arguments": arguments}

    def _data(self, answer: ModelAnswer) -> Any:
        """What the answer gives: text, or JSON as the schema has it. Raises `StepFailure` for what it must not be."""
        schema = self._step.node.output_schema
        if answer.finish == LENGTH:
            raise StepFailure(
                INVALID, "it was cut off at the most tokens that it may have; answer in fewer words"
            )
        if schema is None:
            return answer.text
        try:
            data = said.parsed(answer.text)
        except ValueError as error:
            raise StepFailure(
                INVALID, f"it is no JSON, as the schema of the answer asks for: {error}"
            ) from error
        if problems := violations(schema, data):
            told = "; ".join(f"at {one.path or '/'}: {one.message}" for one in problems[:_WORST])
            raise StepFailure(INVALID, f"it does not match the schema of the answer: {told}")
        return data


def _priced(given: Mapping[str, Any], named: str) -> Mapping[str, Any]:
    """The document's price is that of the model which it names, and of no other that is asked in its place."""
    return given if given["model"] == named else {**given, "price": None}


def _repeating(call: dict[str, Any], made: Mapping[str, str]) -> dict[str, Any]:
    """A call, and which one of an older turn it repeats: those of newer ones are in the state."""
    if not made or "error" in call:
        return call
    first = made.get(call_digest(call["tool"], call["arguments"]))
    return call if first is None else {**call, "repeats": first}


def _refused(call: ModelCall, tool: str, code: str, message: str) -> dict[str, Any]:
    return {
        "tool": tool[:64],
        "arguments": {},
        "text": call.arguments,
        "error": {"code": code, "message": message},
    }
