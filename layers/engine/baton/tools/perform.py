"""Runs a tool: arguments in, JSON out, within its time. A failure of the tool is a `StepFailure`.

`async` tools are cancelled at their timeout. Plain functions with effects run in helper processes, which are killed
(processes/). Plain functions that are `pure` run in threads, of which there are so many and no more; one that does
not return in time is abandoned: its result is dropped, its thread counts until it ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

from baton.core.effects.grants import off
from baton.core.expressions.spelling import hinted, nearest
from baton.ports import NoRoom, Performer, StepContext, StepFailure, Watch
from baton.tools.calls import bind, failure_of, plain, report, traceback_of
from baton.tools.define import Registry, Tool
from baton.tools.places import Places, Whose, whose

_UNWATCHED = nullcontext()
MAX_THREADS = 256  # Lambda gives an environment 1,024, and tools start threads of their own


class ToolPerformer:
    """The `Performer` for the tools of a registry: one for a process, because it counts the process's threads.

    Without `helpers` plain functions with effects run in threads too, where nothing stops them. That is for tests:
    a helper process imports the app by its name, and knows no function that only a test has.
    """

    def __init__(
        self,
        registry: Registry,
        helpers: Performer | None = None,
        *,
        max_threads: int = MAX_THREADS,
        watch: Watch | None = None,
    ) -> None:
        self._registry = registry
        self._helpers = helpers
        self._threads = _Threads(max_threads)
        self._watch = watch

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        """The tool's result as plain JSON types. Raises `StepFailure`, `NoRoom`; cancellation passes through."""
        found = self._registry.get(tool)
        if found is None:
            hint = off(tool) or nearest(tool, self._registry)
            raise StepFailure("tool_missing", hinted(f"there is no tool `{tool}`", hint))
        if self._helpers is not None and found.needs_process:
            return await self._helpers.perform(tool, arguments, context)
        call = bind(found, arguments, context)
        watch = self._watch if found.is_async else None
        try:
            with _UNWATCHED if watch is None else watch.over(tool, context):
                value = await self._call(found, call, context)
        except (NoRoom, asyncio.CancelledError):
            raise
        except BaseException as error:  # whatever a tool raises is the step's failure, never ours
            if isinstance(error, GeneratorExit) and not error.args:  # this coroutine is closed
                raise
            if not isinstance(error, StepFailure):
                report(traceback_of(error), tool, context)
            raise failure_of(error, found) from error
        return plain(found, value)

    async def _call(self, tool: Tool, call: Mapping[str, Any], context: StepContext) -> Any:
        """In a test of sagas (testing/deployment.py), otherwise."""
        if tool.is_async:
            return await tool.function(**call)
        return await _in_thread(tool.function, call, self._threads, whose(context))


class _Threads:
    """Starts the threads of plain functions. Each counts until it says that it has ended."""

    def __init__(self, most: int) -> None:
        self._places = Places(most)

    def start(self, work: Callable[[], None], who: Whose, now: float) -> None:
        """`work` ends with a call of `ended`. Raises `NoRoom`."""
        if not self._places.take(who, now):
            raise NoRoom(f"{self._places.taken} plain functions are running in this process already")
        try:
            threading.Thread(target=work, name="tool", daemon=True).start()
        except RuntimeError as error:  # the process has as many threads as it may have, tools' or others
            self.ended(who)
            raise NoRoom(str(error)) from error

    def ended(self, who: Whose) -> None:
        self._places.give_back(who)


async def _in_thread(
    function: Callable[..., Any], call: Mapping[str, Any], threads: _Threads, who: Whose
) -> Any:
    """The result of a plain function, from a thread of its own.

    No pool and no queue: waiting for a place would count as the step's own time. A runner that finds no
    place gets `NoRoom` and asks again.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return  # the step has ended: abandoned
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(value)

    def work() -> None:
        value, failed = None, None
        try:
            value = _call_plain(function, call)
        except BaseException as error:  # noqa: BLE001  # carried over to the caller
            failed = error
        threads.ended(who)  # before the result is set, so that a runner that waits for room finds it
        with suppress(RuntimeError):  # the loop may be closed by the time an abandoned one returns
            loop.call_soon_threadsafe(settle, value, failed)

    threads.start(partial(contextvars.copy_context().run, work), who, loop.time())
    return await done


def _call_plain(function: Callable[..., Any], call: Mapping[str, Any]) -> Any:
    try:
        return function(**call)
    except StopIteration as error:  # no future can hold it: the step would hang until its timeout
        raise RuntimeError(f"the tool raised StopIteration: {error}") from error
