"""Planted bugs about requests to models, made as those of bugs.py are."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from msgspec.structs import replace

from baton.core.log.folding import fold, open_folds
from baton.core.log.records import Response
from baton.core.log.scopes import Agent, TurnBegan, next_turn
from baton.core.log.state import State, Used
from baton.core.log.work import Callback
from baton.core.models import messages
from baton.core.nodes import replanning, task
from baton.core.nodes.child import ChildKind
from baton.ports import Head, StepContext
from baton.ports.models import ModelAnswer, ModelRequest
from baton.runtime.log.history import History
from baton.runtime.models import model_caller, model_request
from baton.runtime.models.model_request import ModelAttempt
from baton.runtime.money.accounts import AccountQueue, Left
from baton.runtime.money.holds import RequestHolds
from baton.runtime.money.ledger import Ledger
from tests.kit.bugs import replaced
from tests.kit.faults import Crash
from tests.kit.simulated_models import ModelsOf


@contextmanager
def a_request_dies_with_its_caller() -> Iterator[None]:
    """Spend row: what was held for a request is free when its worker has died, and the provider bills it."""

    async def ask(self: AccountQueue, now: int, less: int, spent: int, more: int, billed: str) -> Any:
        return await real(self, now, less, spent, more)

    real = AccountQueue.ask
    with replaced(AccountQueue, "ask", ask):
        yield


@contextmanager
def what_is_given_up_costs_nothing() -> Iterator[None]:
    """Spend row: a request that was cut off is taken for one that was never made."""

    async def ask(self: ModelAttempt, *arguments: Any, **more: Any) -> Any:
        before = len(self._context.spent)
        try:
            return await real(self, *arguments, **more)
        except asyncio.CancelledError:
            del self._context.spent[before:]
            raise

    real = ModelAttempt.answer
    with replaced(ModelAttempt, "answer", ask):
        yield


@contextmanager
def a_second_request_goes_out_beside_the_first() -> Iterator[None]:
    """Agent row: a request that takes long is made again, and is not stopped when the first has its answer."""

    async def answer(self: ModelsOf, request: ModelRequest) -> ModelAnswer:
        found = await real(self, request)
        world = self._process.world
        world.spawn(again(self, request))
        return found

    async def again(self: ModelsOf, request: ModelRequest) -> None:
        await asyncio.sleep(0.5)
        with suppress(Crash):
            await real(self, request)

    real = ModelsOf.answer
    with replaced(ModelsOf, "answer", answer):
        yield


@contextmanager
def a_transcript_says_when_it_was_made() -> Iterator[None]:
    """Agent row: no request begins as the one before it, and the provider has kept nothing that is of use."""
    numbers = itertools.count()

    def opening(*given: Any) -> Any:
        return [*real(*given), {"role": "user", "content": f"Request {next(numbers)}."}]

    real = messages.opening
    with replaced(messages, "opening", opening):
        yield


@contextmanager
def what_was_held_is_lost() -> Iterator[None]:
    """Background row: what a request has cost less than was held for it does not come back to the day."""

    def see(self: Ledger, *arguments: Any) -> None:
        self._returning.clear()
        real(self, *arguments)

    real = Ledger.see
    with replaced(Ledger, "see", see):
        yield


@contextmanager
def a_request_is_given_back_and_not_paid() -> Iterator[None]:
    """Background row: the log counts an answer as free, and the provider bills it."""

    def given_back(response: Response, context: StepContext) -> None:
        real(response, context)
        real(response, context)

    real = model_request.given_back
    with replaced(model_request, "given_back", given_back):
        yield


@contextmanager
def what_was_held_is_paid_beside_the_answer() -> Iterator[None]:
    """Background row: a request is in the log twice: with what was held for it, and with what it has cost."""

    def given_back(response: Response, context: StepContext) -> None:
        """Nothing comes back."""

    with replaced(model_request, "given_back", given_back):
        yield


@contextmanager
def a_plan_forgets_what_was_done() -> Iterator[None]:
    """Replan row: what a model plans is done, although the saga has done it before at another node."""
    numbers = itertools.count()

    def digest(*_: Any) -> str:
        return str(next(numbers))

    with replaced(replanning, "act_digest", digest):
        yield


@contextmanager
def what_is_held_too_late_is_spent() -> Iterator[None]:
    """Spend row: a reservation for a request lands when its invocation has gone on without it, and is billed."""

    async def send(self: AccountQueue, now: int) -> None:
        try:
            await real(self, now)
        finally:
            self._is_haunted = False

    real = AccountQueue._send
    with replaced(AccountQueue, "_send", send):
        yield


@contextmanager
def a_cut_is_forgotten_with_its_request() -> Iterator[None]:
    """Background row: what a request was told in the place of older messages is not told in the next turn."""

    def without(answer: Response, **_: Any) -> Response:
        return answer

    with replaced(model_caller, "replace", without):
        yield


@contextmanager
def what_is_not_announced_is_not_looked_at() -> Iterator[None]:
    """Background row: a lost announcement is the last that is heard of an answer, because no look is ever due."""

    def never(work: Callback, after: int) -> int:
        return after + 100 * 365 * 86_400_000

    with replaced(task, "next_look", never):
        yield


@contextmanager
def requests_do_not_see_each_other() -> Iterator[None]:
    """Limit row: what requests side by side may use is not held for them, so that each takes all that is left."""

    def others(self: RequestHolds, *_: Any) -> Iterator[Any]:
        return iter(())

    with replaced(RequestHolds, "_others", others):
        yield


@contextmanager
def a_hold_is_free_before_its_request_is_over() -> Iterator[None]:
    """Limit row: what a request may use is free as soon as the request is made."""

    def assume(self: ModelAttempt, most: int, tokens: tuple[int, ...]) -> Callable[[], None]:
        self._ledger.used(self._state, self._step)
        return lambda: None

    with replaced(ModelAttempt, "_assume", assume):
        yield


@contextmanager
def a_resumed_invocation_forgets_what_was_counted() -> Iterator[None]:
    """Limit row: what models have used before an invocation does not count in it."""

    async def load(self: History, head: Head) -> Any:
        entries = await real(self, head)
        if head.epoch > 1:
            self.state = replace(self.state, used=dict.fromkeys(self.state.used, Used()))
        return entries

    real = History.load
    with replaced(History, "load", load):
        yield


@contextmanager
def what_the_dead_have_asked_for_does_not_count() -> Iterator[None]:
    """Limit row: a request whose worker died is in no limit, although its provider bills it."""

    async def revived(self: Ledger, *arguments: Any, **more: Any) -> Left:
        await real(self, *arguments, **more)
        return Left()

    real = Ledger.revived
    with replaced(Ledger, "revived", revived):
        yield


@contextmanager
def of_messages_that_come_together_one_is_heard() -> Iterator[None]:
    """Message row: a turn takes all messages that are there, and tells its model the first."""

    def begin(work: Agent, event: Any, items: Any, heard: tuple[Any, ...] = ()) -> Agent:
        return real(work, event, items, heard[:1])

    real = next_turn
    with replaced(open_folds, "next_turn", begin):
        yield


@contextmanager
def a_message_is_heard_by_two_turns() -> Iterator[None]:
    """Message row: the message that a conversation has waited for is there for the turn after as well."""

    def began(state: State, event: Any) -> State:
        after: State = real(state, event)
        work = state.open.get(event.slot)
        waited = isinstance(work, Agent) and work.until and work.turn < 3
        return replace(after, signals=state.signals) if waited else after

    table: Any = fold._TABLE
    real: Any = table[TurnBegan]
    table[TurnBegan] = began
    try:
        yield
    finally:
        table[TurnBegan] = real


@contextmanager
def the_calls_of_a_turn_share_a_child() -> Iterator[None]:
    """Child row: the id of a call's child names the turn alone, so that two delegates of a turn are one saga."""

    def saga_at(self: ChildKind, slot: str, context: Any) -> str:
        node, _, item = slot.partition("#")
        return real(self, f"{node}#{item.partition('-')[0]}" if item else slot, context)

    real = ChildKind.saga_at
    with replaced(ChildKind, "saga_at", saga_at):
        yield
