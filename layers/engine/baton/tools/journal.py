"""The journal of one call of a tool: names, keys and types of the units of its work (`context.once`).

Who records a unit is behind the port `UnitLog`: the worker of the saga, which a helper process asks.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias, TypeVar, get_type_hints
from weakref import WeakKeyDictionary

import msgspec
from pydantic import PydanticSchemaGenerationError, TypeAdapter

from baton.core.failures import quoted, sanitised
from baton.core.failures.codes import TOOL_DEFECT
from baton.ports import HeldMoney, HoldRequest, StepContext, StepFailure, UnitLog

T = TypeVar("T")
LONGEST_NAME: Final = 100
_encode = msgspec.json.Encoder().encode
_MISSING: Final = object()


ToJson: TypeAlias = Callable[[str, TypeAdapter[Any], Any], Any]
"""Function that returns a value of a type, by the name of what has returned it, as JSON types."""


class Journal:
    """`loop`: that of the worker, which runs in the `thread`; None in a helper process, where nothing is
    awaited.
    """

    def __init__(
        self,
        units: UnitLog,
        tool: str,
        context: StepContext,
        loop: asyncio.AbstractEventLoop | None,
        thread: int,
        json_of: ToJson,
    ) -> None:
        self._units, self._tool, self._context = units, tool, context
        self._loop, self._thread, self._json_of = loop, thread, json_of
        self._counts = Counter[str]()
        self._failed: defaultdict[str, list[int]] = defaultdict(list)

    async def once(self, name: str, function: Callable[[], Any]) -> Any:
        """See `StepContext.once`."""
        unit = self._next(name, function)
        if (known := unit.known()) is not _MISSING:
            return known
        try:
            value = function()
            if inspect.isawaitable(value):
                value = await value
        except BaseException:
            self._give_back(name, unit)
            raise
        result = unit.json(value)
        record = self._units.record(unit.name, unit.key, result)
        if self._loop is asyncio.get_running_loop():
            await record
        else:
            self._wait(record)
        return unit.typed(result)

    def once_sync(self, name: str, function: Callable[[], Any]) -> Any:
        """See `StepContext.once_sync`."""
        if threading.get_ident() == self._thread:
            text = f"`once_sync({name!r}, …)` would block the event loop; in an `async` tool write `await context.once`"
            raise _misused(text)
        unit = self._next(name, function)
        if (known := unit.known()) is not _MISSING:
            return known
        try:
            value = function()
        except BaseException:
            self._give_back(name, unit)
            raise
        if inspect.isawaitable(value):
            close = getattr(value, "close", None)
            if close is not None:
                close()
            raise _misused(
                f"the function of `once_sync({name!r}, …)` is `async`; only `await context.once` takes one"
            )
        result = unit.json(value)
        self._wait(self._units.record(unit.name, unit.key, result))
        return unit.typed(result)

    async def hold(self, asked: HoldRequest) -> HeldMoney:
        """See `StepContext.hold`."""
        held = self._units.hold(asked)
        return await held if self._loop is asyncio.get_running_loop() else self._wait(held)

    def hold_sync(self, asked: HoldRequest) -> HeldMoney:
        """See `StepContext.hold_sync`."""
        if threading.get_ident() == self._thread:
            raise _misused(
                "`hold_sync` would block the event loop; in an `async` tool write `await context.hold`"
            )
        return self._wait(self._units.hold(asked))

    def _next(self, name: str, function: Callable[[], Any]) -> _Unit:
        """Return the next unit of this name. Raises `StepFailure`."""
        if type(name) is not str or not _is_name(name):
            text = (
                f"names no unit: write a text of 1 to {LONGEST_NAME} characters in one line, without a secret"
            )
            raise _misused(f"{quoted(repr(name)[:LONGEST_NAME])} {text}")
        if failed := self._failed[name]:
            number = failed.pop(failed.index(min(failed)))
        else:
            self._counts[name] = number = self._counts[name] + 1
        place = name if number == 1 else f"{name}#{number}"
        key = self._context.key(f"{self._tool}/{place}")
        unit = _Unit(number, place, key, f"{self._tool}: {place}", function, self._units, self._json_of)
        if unit.key not in self._units.recorded():
            self._units.check(place)
        return unit

    def _give_back(self, name: str, unit: _Unit) -> None:
        """Let the next unit of the name have the number of one that has raised: there it is found."""
        self._failed[name].append(unit.number)

    def _wait(self, asked: Coroutine[Any, Any, T]) -> T:
        """Wait in this thread until the worker has done what is asked."""
        if threading.get_ident() == self._thread:
            asked.close()
            raise _misused(
                "an event loop inside of a plain function waits for its worker; write an `async` tool"
            )
        if self._loop is not None:
            return asyncio.run_coroutine_threadsafe(asked, self._loop).result()
        try:
            asked.send(None)
        except StopIteration as done:
            found: T = done.value
            return found
        raise AssertionError("a helper process waits for its worker without a loop")


class _Unit:
    def __init__(
        self,
        number: int,
        name: str,
        key: str,
        what: str,
        function: Callable[[], Any],
        units: UnitLog,
        json_of: ToJson,
    ) -> None:
        self.number, self.name, self.key, self._what = number, name, key, what
        self._adapter = _adapter_of(function, what)
        self._units, self._json_of = units, json_of

    def known(self) -> Any:
        """Return the recorded result, or `_MISSING`."""
        found = self._units.recorded().get(self.key, _MISSING)
        return found if found is _MISSING else self.typed(found)

    def json(self, value: Any) -> Any:
        """Return a new result as JSON types. Raises `StepFailure`."""
        try:
            return self._json_of(self._what, self._adapter, value)
        except StepFailure as error:
            raise _misused(error.message) from error

    def typed(self, result: Any) -> Any:
        """Return a result as the type of the function's hint: the same in each attempt."""
        try:
            return self._adapter.validate_json(_encode(result))
        except ValueError as error:
            raise _misused(f"`{self._what}` has recorded what its hints do not allow now: {error}") from error


def _misused(text: str) -> StepFailure:
    return StepFailure(TOOL_DEFECT, text)


_ADAPTERS: WeakKeyDictionary[Any, TypeAdapter[Any]] = WeakKeyDictionary()
"""Adapters by function: a tool calls the same ones again and again."""


def _adapter_of(function: Any, what: str) -> TypeAdapter[Any]:
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__func__", function)
    try:
        if (known := _ADAPTERS.get(function)) is None:
            known = _ADAPTERS[function] = _made(function, what)
    except TypeError:  # a callable object that has no hash, or no weak references
        return _made(function, what)
    return known


def _made(function: Any, what: str) -> TypeAdapter[Any]:
    try:
        found = get_type_hints(function, include_extras=True)
        hint = function if isinstance(function, type) else found.get("return", Any)
    except (NameError, TypeError, SyntaxError):
        hint = Any  # of a class inside of a function: nothing is known of it here
    try:
        return TypeAdapter(hint)
    except PydanticSchemaGenerationError as error:
        raise _misused(f"`{what}`: no JSON for the type that its function returns: {error}") from error


@lru_cache(maxsize=1_024)
def _is_name(text: str) -> bool:
    return text.isprintable() and 0 < len(text) <= LONGEST_NAME and sanitised(text) == text
