"""Runs a tool: arguments in, JSON out, within its time. A failure of the tool is a `StepFailure`.

`async` tools are cancelled at their timeout. Plain functions run in threads, of which there are so many and no
more; one that does not return in time is abandoned: its result is dropped, its thread counts until it ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from traceback import format_exception
from typing import Any

from pydantic import ValidationError

from baton.core.toolspec import nearest
from baton.ports import NoRoom, StepContext, StepFailure
from baton.tools.define import Registry, Tool

MAX_THREADS = 256  # Lambda gives an environment 1,024, and tools start threads of their own

logger = logging.getLogger("baton.tools")


class ToolPerformer:
    """The `Performer` for the tools of a registry: one for a process, because it counts the process's threads."""

    def __init__(self, registry: Registry, max_threads: int = MAX_THREADS) -> None:
        self._registry = registry
        self._threads = _Threads(max_threads)

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        """The tool's result as plain JSON types. Raises `StepFailure`, `NoRoom`; cancellation passes through."""
        found = self._registry.get(tool)
        if found is None:
            raise StepFailure(
                "tool_missing", f"there is no tool `{tool}`. {nearest(tool, self._registry)}".strip()
            )
        call = _bind(found, arguments, context)
        try:
            value = await self._call(found, call)
        except NoRoom:
            raise
        except StepFailure as error:
            raise StepFailure(_text(error.code), _text(error.message)) from error
        except (Exception, SystemExit) as error:  # whatever a tool raises is the step's failure, never ours
            # The entry holds what was raised; where, only its author needs, and finds in the worker's log.
            where = {"tool": tool, "saga": context.saga, "node": context.node, "attempt": context.attempt}
            # As text, because half a character in it would keep the whole line from being written.
            logger.warning("a tool raised: %s", _text("".join(format_exception(error))), extra=where)
            raise StepFailure("tool_error", _text(f"{type(error).__name__}: {error}")) from error
        return _plain(found, value)

    async def _call(self, tool: Tool, call: Mapping[str, Any]) -> Any:
        if tool.is_async:
            return await tool.function(**call)
        return await _in_thread(tool.function, call, self._threads)


class _Threads:
    """Starts the threads of plain functions. Each counts until it says that it has ended."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running = 0
        self._lock = threading.Lock()

    def start(self, work: Callable[[], None]) -> None:
        """`work` ends with a call of `ended`. Raises `NoRoom`."""
        with self._lock:
            if self._running >= self._most:
                raise NoRoom(f"{self._running} plain functions are running in this process already")
            self._running += 1
        try:
            threading.Thread(target=work, name="tool", daemon=True).start()
        except RuntimeError as error:  # the process has as many threads as it may have, whoever's they are
            self.ended()
            raise NoRoom(str(error)) from error

    def ended(self) -> None:
        with self._lock:
            self._running -= 1


async def _in_thread(function: Callable[..., Any], call: Mapping[str, Any], threads: _Threads) -> Any:
    """The result of a plain function, from a thread of its own.

    No pool and no queue: waiting for a place would count as the step's own time. Whoever finds no place is
    told, and asks again.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return  # nobody waits any more: abandoned
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(value)

    def work() -> None:
        value, failed = None, None
        try:
            value = _call_plain(function, call)
        except BaseException as error:  # noqa: BLE001  # carried over to whoever awaits
            failed = error
        threads.ended()  # before anybody hears of it, so that whoever waits for room finds it
        with suppress(RuntimeError):  # the loop may be closed by the time an abandoned one returns
            loop.call_soon_threadsafe(settle, value, failed)

    threads.start(partial(contextvars.copy_context().run, work))
    return await done


def _call_plain(function: Callable[..., Any], call: Mapping[str, Any]) -> Any:
    try:
        return function(**call)
    except StopIteration as error:  # no future can hold it: the step would hang until its timeout
        raise RuntimeError(f"the tool raised StopIteration: {error}") from error


def _plain(tool: Tool, value: Any) -> Any:
    """The value as JSON types. What the log would change without a word (NaN) or choke on is refused."""
    try:
        valid = tool.result.validate_python(value)
        json.dumps(tool.result.dump_python(valid), allow_nan=False, default=str, skipkeys=True)
        result = tool.result.dump_python(valid, mode="json")
        json.dumps(result, ensure_ascii=False).encode()
    except ValidationError as error:
        text = f"`{tool.spec.name}` returned what its hints do not allow: {_first(error)}"
        raise StepFailure("result_invalid", text) from error
    except Exception as error:  # a type's own code runs in there
        text = _text(f"`{tool.spec.name}` returned what JSON cannot hold: {error}")
        raise StepFailure("result_invalid", text) from error
    return result


def _text(text: str) -> str:
    """Text that UTF-8 can hold: messages quote whatever the outside sent."""
    return text.encode(errors="replace").decode()


def _bind(tool: Tool, arguments: Mapping[str, Any], context: StepContext) -> dict[str, Any]:
    try:
        model = tool.parameters.model_validate(dict(arguments))
    except ValidationError as error:
        raise StepFailure("input_invalid", f"`{tool.spec.name}`: {_first(error)}") from error
    except Exception as error:  # a type's own code runs in there
        raise StepFailure("input_invalid", _text(f"`{tool.spec.name}`: {error}")) from error
    call = {name: getattr(model, name) for name in tool.parameters.model_fields}
    if tool.context:
        call[tool.context] = context
    return call


def _first(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=False)
    rest = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    pointer = "".join(f"/{step}" for step in details[0]["loc"])
    return f"at {pointer or '/'}: {details[0]['msg']}{rest}"
