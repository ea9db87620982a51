"""One request to a model: its possible cost is held before it, and its cost is counted after it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from baton.core.conditions.schema import violations
from baton.core.decide.decision import RunStep
from baton.core.effects.operations import (
    API,
    NOT_LISTED,
    OFFERS,
    OPERATION,
    OPERATIONS,
    Operations,
    keeps_list,
    operation_refusal,
    searches_calls,
)
from baton.core.effects.operations import description_for_model as told_of
from baton.core.effects.toolspec import SEARCH, ToolSpec
from baton.core.expressions import duration_text
from baton.core.failures import quoted
from baton.core.failures.codes import TOOL_DEFECT
from baton.core.log.folding.workflow_limits import UNANSWERED
from baton.core.log.records import Response
from baton.core.log.scopes import call_digest
from baton.core.log.state import State
from baton.core.log.work import Callback
from baton.core.models import messages as said
from baton.core.models.messages import Message
from baton.core.models.usage import (
    MODEL,
    REFUSED,
    USUAL_OUTPUT,
    Price,
    Usage,
    is_credible,
    most_of,
    most_used,
    usage_cost,
)
from baton.core.money import MICRO, Assumed
from baton.ports import Clock, HeldMoney, HoldRequest, SagaRef, StepContext, StepFailure
from baton.ports.models import LENGTH, ModelAnswer, ModelCall, ModelFailure, ModelRequest, Models, ToolOffer
from baton.runtime.invocation.attempt import AttemptInput
from baton.runtime.invocation.live import LiveShow
from baton.runtime.models.transcript import TranscriptCache
from baton.runtime.money.halting import Halted
from baton.runtime.money.holds import is_limited
from baton.runtime.money.ledger import Ledger

logger = logging.getLogger("baton.models")

CANCELS = 3
"""Number of times that a provider is asked to cancel a request."""
CANCEL_S = 2.0


class UnfinishedError(Exception):
    """Error of a poll: the provider still works on the request, or did not answer. It is polled again."""


async def poll_response(models: Models, work: Callback, context: StepContext, now: int) -> ModelAnswer:
    """Return the answer of a request that the provider works on.
    Raises `UnfinishedError`; and `StepFailure` for a request that has failed, or whose time is over.
    """
    response = work.response
    assert response is not None, "nothing else is looked at"
    is_last = now >= work.until
    try:
        async with asyncio.timeout(max(context.deadline_ms - now, 0) / 1_000):
            answer = await models.collect(response.model, response.id)
    except ModelFailure:
        raise
    except (TimeoutError, StepFailure) as error:
        if not is_last:
            raise UnfinishedError from error
        await cancel_response(models, (response,))
        raise _too_late(work, f"; the last look at it: {error}") from error
    if answer is not None:
        return answer
    if not is_last:
        raise UnfinishedError
    await cancel_response(models, (response,))
    raise _too_late(work)


def given_back(response: Response, context: StepContext) -> None:
    """Subtract the held amounts from the spending: the provider has reported what the request has used."""
    context.spent.append(Assumed(Decimal(-response.held) / MICRO))
    if response.tokens:
        read, written = response.tokens
        context.usage.append(Usage(model=UNANSWERED, input=-read, output=-written))


async def cancel_response(models: Models, responses: Collection[Response]) -> None:
    """Cancel requests, best effort: their cost is spent all the same."""
    await asyncio.gather(*(_cancel(models, one) for one in responses))


async def _cancel(models: Models, response: Response) -> None:
    why = ""
    for _ in range(CANCELS):
        try:
            async with asyncio.timeout(CANCEL_S):
                await models.cancel(response.model, response.id)
            return
        except (TimeoutError, StepFailure) as error:
            why = str(error) or "it did not answer"
    logger.warning("not cancelled", extra={"response": response.id, "why": why})


def _too_late(work: Callback, more: str = "") -> StepFailure:
    return StepFailure(
        "timeout", f"no answer within {duration_text(work.until - work.since)}{more}", happened=True
    )


MOST_OFFERED = 20
"""Most calls that an agent with a search for tools is offered at once, without searching."""
Offers = Mapping[str, Mapping[str, Any]]
"""By the name of a call, `description` and `parameters` for a model."""


class Offered(msgspec.Struct, frozen=True):
    """Tools of an agent as a model sees them.

    `hash`: of the whole offer; empty if it has no tools.
    `names` are those on the wire, `tools` the tools called by them, each with the schema of its parameters as
    JSON; `json` is the whole offer; `operations` are those of APIs that may be called, by the tools of
    `listing`. `search`: the name of the search, if more than `MOST_OFFERED` are found by it and not offered.
    """

    names: dict[str, str]
    offers: tuple[ToolOffer, ...] = ()
    tools: dict[str, tuple[str, bytes]] = {}
    json: msgspec.Raw = msgspec.Raw(b"[]")
    operations: Operations = {}
    listing: frozenset[str] = frozenset()
    hash: str = ""
    search: str = ""

    def of(self, sought: Collection[str]) -> Offered:
        """Return the offer of the search and of these tools, by either of their names."""
        pairs = zip(self.names.items(), self.offers, strict=True)
        known = {self.search, *sought}
        offers = tuple(one for (tool, name), one in pairs if name in known or tool in known)
        return msgspec.structs.replace(self, offers=offers, json=msgspec.Raw(msgspec.json.encode(offers)))


class ModelMemory:
    """Memory of one invocation; `told` is by the saga and the slot of an agent, `described` by operations."""

    def __init__(self, specs: Mapping[str, ToolSpec]) -> None:
        self.told: defaultdict[tuple[str, str], TranscriptCache] = defaultdict(TranscriptCache)
        self._specs = specs
        self.described: dict[bytes, Offers] = {}
        self._offered: dict[bytes, Offered] = {}

    def offered(self, arguments: Mapping[str, Any], described: Offers | None = None) -> Offered:
        """Return the tools that a turn offers by its arguments in the graph. `described`: of its operations.

        Raises `StepFailure` for a tool that this deployment does not have.
        """
        key = msgspec.json.encode((arguments, described))
        if (known := self._offered.get(key)) is None:
            operations, listed = arguments.get(OPERATIONS, {}), arguments["tools"]
            more = {**arguments.get(OFFERS, {}), **(described or {})}
            names = said.wire_names([*listed, *more])
            offers = tuple(
                ToolOffer(name=name, **more[tool]) if tool in more else self._offer(tool, name, operations)
                for tool, name in names.items()
            )
            called = {
                one.name: (tool, msgspec.json.encode(one.parameters))
                for tool, one in zip(names, offers, strict=True)
            }
            listing = frozenset(tool for tool in listed if keeps_list(self._specs[tool]))
            encoded = msgspec.json.encode(offers)
            digest = hashlib.sha256(encoded).hexdigest()[:12] if names else ""
            is_sought = SEARCH in listed and searches_calls(self._specs[SEARCH]) and len(names) > MOST_OFFERED
            search = names[SEARCH] if is_sought else ""
            offer = names, offers, called, msgspec.Raw(encoded), operations, listing, digest, search
            known = self._offered[key] = Offered(*offer)
        return known

    def _offer(self, tool: str, name: str, operations: Operations) -> ToolOffer:
        spec = self._specs.get(tool)
        if spec is None:
            raise StepFailure(
                "tool_missing", f"this deployment has no tool `{tool}`, which the agent may call"
            )
        description, parameters = told_of(spec, operations)
        return ToolOffer(name=name, description=description, parameters=dict(parameters))


NO_TOOLS = Offered({})


class ModelAttempt:
    """One attempt of a step that asks a model."""

    def __init__(
        self,
        models: Models,
        ledger: Ledger,
        live: LiveShow,
        state: State,
        step: RunStep,
        context: StepContext,
    ) -> None:
        self._models = models
        self._ledger = ledger
        self._live = live
        self._state = state
        self._step = step
        self._context = context

    @property
    def until(self) -> int:
        """Deadline of the attempt."""
        return self._context.deadline_ms

    async def answer(
        self,
        given: Mapping[str, Any],
        messages: Sequence[Message],
        tools: Offered = NO_TOOLS,
        counted: int = 0,
        *,
        known: tuple[int, int] = (0, 0),
        beside: str = "",
        until: int = 0,
    ) -> ModelAnswer | Response:
        """Return the model's answer, or the provider's response if the node is asked in the background.

        `given` has the model and its settings. `counted`: so many tokens the beginning of the messages is
        known to have. `known`: so many of the messages, from the first on, have so many bytes as JSON.

        `beside`: the name of a request beside the step's own, whose answer is text and has to be there by
        `until`.

        Raises `StepFailure`, also for settings that are not usable and for money that there is not.
        """
        request, price, most, tokens = await self._covered(
            given, messages, tools, counted, known, beside, until
        )
        retract = self._assume(most, tokens)
        try:
            if request.token:
                handed = await self._models.submit(request)
                day = self._ledger.day(self._state, self._step)
                return Response(id=handed, model=request.model, held=most, day=day, tokens=tokens)
            answer = await (self._models.answer(request) if beside else self._shown(request))
        except StepFailure as failure:
            usage = failure.usage if isinstance(failure, ModelFailure) else None
            if usage is not None and is_credible(usage, request.most_input, request.most_output):
                retract()
                self._count(usage, price, request.model)
            elif not failure.happened:
                retract()
            raise
        retract()
        answer = _counted(answer, request.most_input, request.most_output)
        self._count(answer.usage, price, answer.model or request.model)
        return _storable(answer)

    async def collect(self, work: Callback, given: Mapping[str, Any], now: int) -> ModelAnswer:
        """Return the answer to a request that the provider has. Raises `StepFailure`, `UnfinishedError`."""
        response = work.response
        assert response is not None, "nothing else is handed over"
        price = self._price(given, response.model)
        read, written = response.tokens or (0, 0)
        try:
            answer = await poll_response(self._models, work, self._context, now)
        except ModelFailure as failure:
            usage = failure.usage
            if usage is not None and price is not None and is_credible(usage, read, written):
                given_back(response, self._context)
                self._count(usage, price, response.model)
            raise
        if not is_credible(answer.usage, read, written):  # what was held stays spent
            answer = _counted(answer, read, written)
        elif price is not None:  # else it is no longer known, and it stays so, too
            given_back(response, self._context)
            self._count(answer.usage, price, answer.model or response.model)
        return _storable(answer)

    async def _covered(
        self,
        given: Mapping[str, Any],
        messages: Sequence[Message],
        tools: Offered,
        counted: int,
        known: tuple[int, int],
        beside: str,
        until: int,
    ) -> tuple[ModelRequest, Price, int, tuple[int, ...]]:
        """Return the request, and the most that it may cost, which is held; and the most tokens,
        where they are limited.
        """
        model, step, context = str(given["model"]), self._step, self._context
        try:  # a policy or a person may have put others in their place
            most_output = int(given.get("max_output") or USUAL_OUTPUT)
            price = self._price(given, model)
        except (TypeError, ValueError) as error:
            raise StepFailure("input_invalid", f"`max_output` or `price` is not usable: {error}") from error
        if price is None:
            raise _without_price(model)
        schema = None if beside else step.node.output_schema
        first, bytes_before = known
        size = said.request_bytes(messages[first:], [tools.json, schema], bytes_before)
        reckoned = max(size, counted)
        if has_limit := is_limited(step, "tokens"):
            reckoned = (
                min(size, counted + said.request_bytes(said.since_answer(messages))) if counted else size
            )
        tokens, wanted = tuple[int, ...](), most_output
        dead = self._ledger.unsaid(self._state, step)
        while True:  # once for each request of the dead, and then for this one
            if has_limit:
                most_output = self._ledger.room(self._state, step, context, reckoned, wanted)
                tokens = (reckoned, most_output)
            most = most_of(price, max(size, counted), most_output)
            if not dead:
                break
            dead -= 1
            self._add(most, tokens)
        try:
            if is_limited(step, "cost"):
                self._ledger.afford(self._state, step, context, most)
            await self._cover(most, size, counted, self._with_used(tokens))
        except BaseException:
            self._ledger.used(self._state, step)
            raise
        request = ModelRequest(
            model=model,
            messages=tuple(messages),
            tools=tools.offers,
            schema=schema,
            most_output=most_output,
            most_input=reckoned,
            temperature=given.get("temperature"),
            thinking=None if beside else given.get("thinking"),
            until=until or context.deadline_ms,
            key=self._key(beside),
            traceparent=context.traceparent,
            token="" if beside else context.callback_token,
        )
        return request, price, most, tokens

    async def _shown(self, request: ModelRequest) -> ModelAnswer:
        """Return the answer, which viewers see while it is written."""
        origin = self._state.origin
        with self._live.draft(SagaRef(origin.tenant, origin.saga), self._step.slot) as draft:
            return await self._models.answer(msgspec.structs.replace(request, draft=draft))

    def _key(self, beside: str) -> str:
        """Return the request's key.
        After a fork the same attempt may ask something else, and a provider refuses one key with two bodies.
        """
        state, step = self._state, self._step
        places = (self._context.saga, str(state.lineage.branch), step.slot, str(step.attempt), beside)
        return "/".join(filter(None, places))

    def _with_used(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tokens with those that this attempt has used before,
        which no entry has if its worker dies.
        """
        used = self._context.usage
        return tokens and (
            tokens[0] + sum(one.input for one in used),
            tokens[1] + sum(one.output for one in used),
        )

    async def _cover(self, most: int, size: int, counted: int, tokens: tuple[int, ...]) -> None:
        """Hold what the request may cost.
        Raises `NoRoom`; a person who is asked about it sees the calculation.
        """
        try:
            await self._ledger.cover(self._state, self._step, MODEL, most, billed=tokens)
        except Halted as halted:
            if counted >= size:
                raise
            raise halted.because(
                f"the request has {size:,} bytes, an image counted as 10,000, and each is taken for a token of input, "
                "because no token is shorter; usual text has 3 to 4 bytes a token, so that it would likely cost less. Shorten the "
                "prompt, lower `max_output`, take a cheaper model, or raise what may be spent"
            ) from None

    def _assume(self, most: int, tokens: tuple[int, ...]) -> Callable[[], None]:
        """Count a request by its most before it is sent: its provider bills it, even if its caller dies.

        Return the function that takes this back, once the usage of the request is known.
        """
        spent, usage = self._context.spent, self._context.usage
        cost, used = self._add(most, tokens)
        self._ledger.used(self._state, self._step)  # it is no longer held beside what is used

        def retract() -> None:
            spent[:] = [one for one in spent if one is not cost]
            if used:
                usage[:] = [one for one in usage if not any(one is other for other in used)]

        return retract

    def _add(self, most: int, tokens: tuple[int, ...]) -> tuple[Decimal, list[Usage]]:
        cost = Assumed(Decimal(most) / MICRO)
        used = [Usage(model=UNANSWERED, input=tokens[0], output=tokens[1])] if tokens else []
        self._context.spent.append(cost)
        self._context.usage.extend(used)
        return cost, used

    def _price(self, given: Mapping[str, Any], model: str) -> Price | None:
        """Return the higher of the deployment's and the document's price: a document only makes it dearer."""
        known = self._models.price(model)
        if (said := given.get("price")) is None:
            return known
        own = Price(**said)
        return own if known is None else max(known, own, key=lambda price: most_of(price, MICRO, MICRO))

    def _count(self, usage: Usage, price: Price, model: str) -> None:
        cost = usage_cost(usage, price)
        self._context.usage.append(msgspec.structs.replace(usage, model=usage.model or model, cost=cost))
        self._context.spend(Decimal(cost) / MICRO)


def _without_price(model: str) -> StepFailure:
    text = f"the price of `{model}` is not known here, so that no money can be held for it"
    return StepFailure("model_unavailable", text)


async def hold(models: Models | None, ledger: Ledger, one: AttemptInput, asked: HoldRequest) -> HeldMoney:
    """Hold money for a call that a tool makes. It is spent until the tool says what the call did cost.

    Raises `NoRoom`; and `StepFailure` for a model without a price, and by a limit of a document.
    """
    state, step, output = one.state, one.step, asked.output
    if not (step.costs or (one.spec is not None and one.spec.cost)):
        text = "declares no `cost_usd`, so that no worker looks for the money of one that died"
        raise StepFailure(TOOL_DEFECT, f'`{step.node.tool}` {text}; write `@tool(…, cost_usd="0.000001")`')
    price = None
    if asked.model and models is not None:
        price = models.price(asked.model) or models.price(asked.model.partition("/")[2] or asked.model)
    if asked.model and price is None:
        raise _without_price(asked.model)
    tokens, usage = tuple[int, ...](), tuple[Usage, ...]()
    has_limit = bool(asked.model) and not one.is_free and is_limited(step, "tokens")
    dead, one.counts_dead = (ledger.unsaid(state, step) if one.counts_dead else 0), False
    while True:  # once for each call of the dead, and then for this one
        if has_limit:
            output = ledger.room(state, step, one, asked.size, asked.output)
            tokens = asked.size, output
            usage = (Usage(model=UNANSWERED, input=asked.size, output=output),)
        most = asked.amount if price is None else most_of(price, asked.size, output)
        if not dead:
            break
        dead -= 1
        one.spent.append(Decimal(most) / MICRO)  # it has no end: the next unit takes it along
        one.usage.extend(usage)
    if not one.is_free:
        try:
            if is_limited(step, "cost"):
                ledger.afford(state, step, one, most)
            used = [
                sum(part) for part in zip(tokens, *((u.input, u.output) for u in one.usage), strict=False)
            ]
            await ledger.cover(state, step, step.node.tool, most, billed=used)
        finally:
            ledger.used(state, step)
    one.spent.append(Assumed(Decimal(most) / MICRO))
    one.usage.extend(usage)
    return HeldMoney(amount=most, price=price, size=asked.size, output=output, tokens=usage)


def as_priced(given: Mapping[str, Any], named: str) -> Mapping[str, Any]:
    """Apply the document's price only to the model that it names, and not to one asked in its place."""
    return given if given["model"] == named else {**given, "price": None}


def _counted(answer: ModelAnswer, read: int, written: int) -> ModelAnswer:
    """Return the answer with the usage that counts: the possible maximum if the provider reports none, or an
    impossible one.
    """
    usage = answer.usage
    if not is_credible(usage, read, written):
        usage = most_used(usage.model, read, written)
    elif not usage.output and (answer.text or answer.calls):
        usage = msgspec.structs.replace(usage, output=written)
    return answer if usage is answer.usage else msgspec.structs.replace(answer, usage=usage)


def _storable(answer: ModelAnswer) -> ModelAnswer:
    plain = all(one.name.isascii() and one.arguments.isascii() for one in answer.calls)
    if answer.text.isascii() and plain and not answer.echo:
        return answer
    calls = tuple(
        msgspec.structs.replace(
            one, name=said.storable_text(one.name), arguments=said.storable_text(one.arguments)
        )
        for one in answer.calls
    )
    try:
        echo = said.parse_answer(said.storable_text(json.dumps(answer.echo, ensure_ascii=False)))
    except (ValueError, RecursionError):  # too deep to be read again
        echo = None
    return msgspec.structs.replace(answer, text=said.storable_text(answer.text), calls=calls, echo=echo)


USUAL_SUMMARY = 1_024
"""Tokens that a summary has at most where the document does not say."""
_worker_logger = logging.getLogger("baton.worker")


class Summary:
    """The summary of older messages for one turn. Its request is held, counted and limited as the turn's own.

    `tokens`: what it has used, as its provider says. `failed`: why there is none; the transcript is then only
    cut.
    """

    def __init__(
        self,
        asking: ModelAttempt,
        clock: Clock,
        written: Mapping[str, Any],
        model: str,
        how: Mapping[str, Any] | None,
    ) -> None:
        """Prepare a summary. `written`: the agent's settings, whose price is that of its model.
        `model`: the one of this turn. `how`: the settings of the document.
        """
        self._asking = asking
        self._clock = clock
        self._written = written
        self._model = model
        self._how = how
        self.tokens: tuple[int, ...] = ()
        self.failed = ""

    async def of(self, messages: list[Message]) -> str:
        """Return the text; empty where the document asks for none, or the model gives none."""
        if self._how is None:
            return ""
        given = {
            "model": self._how.get("model") or self._model,
            "max_output": self._how.get("max_output") or USUAL_SUMMARY,
            "price": self._written.get("price"),
        }
        now = self._clock.now()
        try:
            answer = await self._asking.answer(
                as_priced(given, self._written["model"]),
                said.to_summarise(messages),
                beside="summary",
                until=now + (self._asking.until - now) // 2,  # the other half is for the turn
            )
        except StepFailure as failure:
            usage = failure.usage if isinstance(failure, ModelFailure) else None
            self.tokens = () if usage is None else (usage.input + usage.output,)
            self.failed = f"{failure.code}: {quoted(failure.message)}"
            _worker_logger.warning("no summary: %s", self.failed)
            return ""
        assert isinstance(answer, ModelAnswer), "what is asked beside a step is not handed over"
        self.tokens = (answer.usage.input + answer.usage.output,)
        if not answer.text:
            self.failed = "the model has written nothing"
        return answer.text


MOST_TOLD = 3  # of the problems of an answer
MOST_SHOWN = 200  # characters of arguments that are no object


def calls_of(asked: Sequence[ModelCall], offered: Offered, made: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the calls of an answer as the log has them. `made` are the calls of older turns."""
    return [_repeating(_call(call, offered), made) for call in asked]


def has_strange_names(calls: Iterable[Mapping[str, Any]]) -> bool:
    """Return true if a call was refused for its arguments, which may have names of parameters that are
    aliases.
    """
    return any("error" in call and call["error"]["code"] == "input_invalid" for call in calls)


class AnswerRefused(StepFailure):
    """Failure of an answer that is not what was asked for; the next request repeats it."""

    def __init__(self, why: str, answer: ModelAnswer) -> None:
        super().__init__(REFUSED, why)
        self.answer = said.refused_text(answer.text)


def answer_data(answer: ModelAnswer, schema: Any) -> Any:
    """Return the data of an answer: text, or JSON as the schema has it.
    Raises `StepFailure` for invalid data.
    """
    check_whole(answer)
    if not answer.text.strip():
        raise AnswerRefused("it is empty", answer)
    if schema is None:
        return answer.text
    try:
        data = said.read_answer(answer.text)
    except ValueError as error:
        why = f"it is no JSON, as the schema of the answer asks for: {error}"
        raise AnswerRefused(why, answer) from error
    if problems := violations(schema, data):
        told = "; ".join(f"at {one.path or '/'}: {one.message}" for one in problems[:MOST_TOLD])
        raise AnswerRefused(f"it does not match the schema of the answer: {told}", answer)
    return data


def check_whole(answer: ModelAnswer) -> None:
    """Raise `StepFailure` for an answer that was cut off: some of the calls that it asks for are missing."""
    if answer.finish == LENGTH:
        why = "it was cut off at the most tokens that it may have; answer in fewer words"
        raise AnswerRefused(why, answer)


def _call(call: ModelCall, offered: Offered) -> dict[str, Any]:
    """Return a call as the log has it: its tool and arguments, or why it is not made."""
    tool, parameters = offered.tools.get(call.name, ("", b""))
    if not tool:
        known = ", ".join(offered.tools) or "none"
        why = f"there is no tool `{call.name[:64]}`; there are: {known}"
        return _refused(call, call.name, "call_not_allowed", why)
    try:
        arguments = said.parse_answer(call.arguments or "{}")
    except ValueError as error:
        return _refused(call, tool, "input_invalid", f"the arguments are no JSON: {error}{_written(call)}")
    if isinstance(arguments, dict) and (why := _unlisted(tool, arguments, offered)):
        return _refused(call, tool, NOT_LISTED, why)
    problems = violations(parameters, arguments)
    if not isinstance(arguments, dict) or problems:
        told = (
            "; ".join(f"at {one.path or '/'}: {one.message}" for one in problems[:MOST_TOLD])
            or "they are no object"
        )
        told += "" if isinstance(arguments, dict) else _written(call)
        return _refused(call, tool, "input_invalid", told)
    return {"tool": tool, "arguments": arguments}


def _unlisted(tool: str, arguments: Mapping[str, Any], offered: Offered) -> str:
    """Return the reason why an operation of an API cannot be called; empty for one that can, and for other
    tools.
    """
    if tool not in offered.listing or API not in arguments or OPERATION not in arguments:
        return ""
    return operation_refusal(offered.operations, arguments[API], arguments[OPERATION])


def _repeating(call: dict[str, Any], made: Mapping[str, str]) -> dict[str, Any]:
    """Return a call, and which one of an older turn it repeats: those of newer ones are in the state."""
    if not made or "error" in call:
        return call
    first = made.get(call_digest(call["tool"], call["arguments"]))
    return call if first is None else {**call, "repeats": first}


def _written(call: ModelCall) -> str:
    """Return the text that the model wrote for an object: nothing else shows it to the model."""
    return f"; you wrote: {quoted(call.arguments, MOST_SHOWN)}"


def _refused(call: ModelCall, tool: str, code: str, message: str) -> dict[str, Any]:
    return {
        "tool": tool[:64],
        "arguments": {},
        "text": call.arguments,
        "error": {"code": code, "message": message},
    }
