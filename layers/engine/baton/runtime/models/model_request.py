"""One request to a model: what it may cost is held before it, and what it has cost is counted after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from baton.core.decide.builder import RunStep
from baton.core.log.folding.model_sums import UNANSWERED
from baton.core.log.records import Response
from baton.core.log.state import State
from baton.core.log.work import Callback
from baton.core.models import messages as said
from baton.core.models.messages import Message
from baton.core.models.tool import MODEL
from baton.core.models.usage import Price, Usage, cost_of, is_credible, most_of, most_used
from baton.core.money import MICRO, Assumed
from baton.ports import SagaRef, StepContext, StepFailure
from baton.ports.models import ModelAnswer, ModelFailure, ModelRequest, Models
from baton.runtime.invocation.live import LiveShow
from baton.runtime.models.background import given_back, look
from baton.runtime.models.model_memory import NO_TOOLS, Offered
from baton.runtime.money.halting import Halted
from baton.runtime.money.ledger import Ledger
from baton.runtime.money.request_holds import is_limited

USUAL_OUTPUT = 4_096
"""Tokens that an answer has at most where the document does not say."""


class Asking:
    """A model is asked for one attempt of a step."""

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
        """When the attempt has to be over."""
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
        """Its answer, or what the provider works on if the node is asked in the background.

        `given` has the model and its settings. `counted`: so many tokens the beginning of the messages is known to have. `known`:
        so many of the messages, from the first on, have so many bytes as JSON.

        `beside`: the name of a request beside the step's own, whose answer is text and has to be there by `until`.

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
        """The answer to a request that the provider has. Raises `StepFailure`, `UnfinishedError`."""
        response = work.response
        assert response is not None, "nothing else is handed over"
        price = self._price(given, response.model)
        read, written = response.tokens or (0, 0)
        try:
            answer = await look(self._models, work, self._context, now)
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
        """The request, and the most that it may cost, which is held; and the most tokens, where they are limited."""
        model, step, context = str(given["model"]), self._step, self._context
        try:  # a policy or a person may have put others in their place
            most_output = int(given.get("max_output") or USUAL_OUTPUT)
            price = self._price(given, model)
        except (TypeError, ValueError) as error:
            raise StepFailure("input_invalid", f"`max_output` or `price` is not usable: {error}") from error
        if price is None:
            text = f"the price of `{model}` is not known here, so that no money can be held for it"
            raise StepFailure("model_unavailable", text)
        schema = None if beside else step.node.output_schema
        first, bytes_before = known
        size = said.size_of(messages[first:], [tools.json, schema], bytes_before)
        reckoned = max(size, counted)
        if has_limit := is_limited(step, "tokens"):
            reckoned = min(size, counted + said.size_of(said.since_answer(messages))) if counted else size
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
            until=until or context.deadline_ms,
            key=self._key(beside),
            traceparent=context.traceparent,
            token="" if beside else context.callback_token,
        )
        return request, price, most, tokens

    async def _shown(self, request: ModelRequest) -> ModelAnswer:
        """The answer, which viewers see while it is written."""
        origin = self._state.origin
        with self._live.draft(SagaRef(origin.tenant, origin.saga), self._step.slot) as draft:
            return await self._models.answer(msgspec.structs.replace(request, draft=draft))

    def _key(self, beside: str) -> str:
        """After a fork the same attempt may ask something else, and a provider refuses one key with two bodies."""
        state, step = self._state, self._step
        places = (self._context.saga, str(state.lineage.branch), step.slot, str(step.attempt), beside)
        return "/".join(filter(None, places))

    def _with_used(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """With those that this attempt has used before, which no entry has if its worker dies."""
        used = self._context.usage
        return tokens and (
            tokens[0] + sum(one.input for one in used),
            tokens[1] + sum(one.output for one in used),
        )

    async def _cover(self, most: int, size: int, counted: int, tokens: tuple[int, ...]) -> None:
        """Hold what the request may cost. Raises `NoRoom`; who is asked about it is told how it was reckoned."""
        try:
            await self._ledger.cover(self._state, self._step, MODEL, most, billed=tokens)
        except Halted as halted:
            if counted >= size:
                raise
            raise halted.because(
                f"the request has {size:,} bytes, and each is taken for a token of input, because no token is "
                "shorter; usual text has 3 to 4 bytes a token, so that it would likely cost less. Shorten the "
                "prompt, lower `max_output`, take a cheaper model, or raise what may be spent"
            ) from None

    def _assume(self, most: int, tokens: tuple[int, ...]) -> Callable[[], None]:
        """Count a request by its most before it is sent: its provider bills it, whatever becomes of its caller, and whenever that is asked.

        Returns the function that takes this back, once it is known what the request has used.
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
        """The dearer one of what the deployment knows and what the document says: no document makes a model cheaper."""
        known, own = self._models.price(model), given.get("price")
        prices = [*([] if known is None else [known]), *([] if own is None else [Price(**own)])]
        return max(prices, key=lambda price: most_of(price, MICRO, MICRO), default=None)

    def _count(self, usage: Usage, price: Price, model: str) -> None:
        cost = cost_of(usage, price)
        self._context.usage.append(msgspec.structs.replace(usage, model=usage.model or model, cost=cost))
        self._context.spend(Decimal(cost) / MICRO)


def as_priced(given: Mapping[str, Any], named: str) -> Mapping[str, Any]:
    """The document's price is that of the model which it names, and of no other that is asked in its place."""
    return given if given["model"] == named else {**given, "price": None}


def _counted(answer: ModelAnswer, read: int, written: int) -> ModelAnswer:
    """With what it counts for: the most that it can have used, where its provider does not say it or what it says cannot be."""
    usage = answer.usage
    if not is_credible(usage, read, written):
        usage = most_used(usage.model, read, written)
    elif not usage.output and (answer.text or answer.calls):
        usage = msgspec.structs.replace(usage, output=written)
    return answer if usage is answer.usage else msgspec.structs.replace(answer, usage=usage)


def _storable(answer: ModelAnswer) -> ModelAnswer:
    if answer.text.isascii() and all(one.name.isascii() and one.arguments.isascii() for one in answer.calls):
        return answer
    calls = tuple(
        msgspec.structs.replace(one, name=said.plain(one.name), arguments=said.plain(one.arguments))
        for one in answer.calls
    )
    return msgspec.structs.replace(answer, text=said.plain(answer.text), calls=calls)
