"""Planted bugs about events from outside, made as those of bugs.py are; with the oracle of event_runs.py that finds each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from msgspec.structs import replace

from baton.adapters.memory.store import MemorySubscriptions
from baton.core.outside import identity_of
from baton.errors import TooManyRequests
from baton.runtime.requests import events, registering
from baton.runtime.requests.events import EventService
from baton.runtime.starting import start
from tests.kit.bugs import replaced
from tests.kit.event_runs import EVERY, GONE, ONCE, SIGNAL


@contextmanager
def a_start_has_an_id_of_its_own() -> Iterator[None]:
    """Event row: the head's put drops a repetition only under the same id."""
    numbers = iter(range(1_000_000))
    real = vars(events)["named_id"]

    def named_id(cell: int, kind: str, *parts: Any) -> str:
        return f"{real(cell, kind, *parts)}-{next(numbers)}"

    with replaced(events, "named_id", named_id):
        yield


@contextmanager
def a_correlation_key_is_not_in_the_id() -> Iterator[None]:
    """Event row: two events with one key start two sagas, and a signal reaches neither."""
    numbers = iter(range(1_000_000))

    def correlated_id(cell: int, tenant: str, workflow: str, key: str) -> str:
        return f"n{key}-{next(numbers)}"

    with replaced(events, "correlated_id", correlated_id):
        yield


@contextmanager
def a_signal_has_no_key_of_its_event() -> Iterator[None]:
    """Event row: the log drops a repetition only under the same key."""
    real = EventService.__init__

    def init(self: EventService, request: Any, signal: Any) -> None:
        async def keyless(saga: str, name: str, payload: Any, key: str, *more: Any) -> Any:
            return await signal(saga, name, payload, "", *more)

        real(self, request, keyless)

    with replaced(EventService, "__init__", init):
        yield


@contextmanager
def an_event_is_written_off_before_it_is_dealt_with() -> Iterator[None]:
    """Event row: a caller that dies in between leaves a rest that no repetition does."""
    real, known = EventService.take, set()

    async def take(self: EventService, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        if identity_of(event) in known:
            return []
        known.add(identity_of(event))
        return await real(self, event)

    with replaced(EventService, "take", take):
        yield


@contextmanager
def the_subscription_comes_after_the_definition() -> Iterator[None]:
    """Event row: a crash in between leaves a workflow whose rules no event finds."""
    real, left = vars(registering)["update_schedule"], []

    async def later(*args: Any) -> None:
        left.append(args)

    async def follow(*args: Any) -> Any:
        while left:
            await subscribe(*left.pop())
        return await real(*args)

    subscribe = events.subscribe
    with replaced(events, "subscribe", later), replaced(registering, "update_schedule", follow):
        yield


@contextmanager
def a_subscription_is_given_up_whatever_its_version() -> Iterator[None]:
    """Event row: a registration that is over takes away the subscription of one that comes after it."""
    real = MemorySubscriptions.unsubscribe

    def unsubscribe(
        self: MemorySubscriptions, tenant: str, type: str, workflow: str, version: int, expires: int
    ) -> None:
        real(self, tenant, type, workflow, 1_000, expires)

    with replaced(MemorySubscriptions, "unsubscribe", unsubscribe):
        yield


@contextmanager
def an_event_drops_a_subscription_whose_registration_is_under_way() -> Iterator[None]:
    """Event row: what an event meets in vain may be of a version that is about to be stored."""
    real = events.drop

    async def drop(known: Any, call: Any, definition: Any, type: str, version: int, now: int) -> None:
        await real(known, call, replace(definition, version=version), type, version, now)

    with replaced(events, "drop", drop):
        yield


@contextmanager
def a_subscription_that_an_event_meets_in_vain_stays() -> Iterator[None]:
    """Event row: a crash between the definition and what it gives up leaves a subscription for good."""

    async def drop(*given: Any) -> None:
        pass

    with replaced(events, "drop", drop):
        yield


@contextmanager
def the_rules_of_the_newest_version_are_for_every_saga() -> Iterator[None]:
    """Event row: a saga goes on with the document that it began with."""

    async def began_with(self: EventService, head: Any) -> Any:
        newest = vars(self)["_parts"].catalog.newest
        return await real(self, replace(head, graph=(await newest(head.ref.tenant, head.workflow)).graph))

    real = vars(EventService)["_began_with"]
    with replaced(EventService, "_began_with", began_with):
        yield


@contextmanager
def what_earlier_versions_have_rules_for_is_forgotten() -> Iterator[None]:
    """Event row: sagas of earlier versions wait for it."""
    with replaced(start, "heard_after", lambda *given: ((), ())):
        yield


@contextmanager
def a_signal_for_which_there_is_no_room_is_refused_for_good() -> Iterator[None]:
    """Event row: there is room later, and senders repeat nothing that was refused."""
    with replaced(events, "SignalsFull", TooManyRequests):
        yield


EVENT_BUGS: dict[Callable[[], AbstractContextManager[None]], str] = {
    a_start_has_an_id_of_its_own: ONCE,
    a_correlation_key_is_not_in_the_id: ONCE,
    a_signal_has_no_key_of_its_event: SIGNAL,
    an_event_is_written_off_before_it_is_dealt_with: EVERY,
    the_subscription_comes_after_the_definition: EVERY,
    a_subscription_is_given_up_whatever_its_version: EVERY,
    an_event_drops_a_subscription_whose_registration_is_under_way: EVERY,
    a_subscription_that_an_event_meets_in_vain_stays: GONE,
    the_rules_of_the_newest_version_are_for_every_saga: SIGNAL,
    what_earlier_versions_have_rules_for_is_forgotten: SIGNAL,
    a_signal_for_which_there_is_no_room_is_refused_for_good: SIGNAL,
}
