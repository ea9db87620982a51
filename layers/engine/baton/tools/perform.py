"""Runs a tool: arguments in, JSON out, within its time.
A failure of the tool is a `StepFailure`.

`async` tools are cancelled at their timeout. Plain functions with effects run in helper processes, which are
killed (processes/). Plain functions that are `pure` run in threads, of which there are so many and no more;
one that does not return in time is abandoned: its result is dropped, its thread counts until it ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from dataclasses import is_dataclass
from functools import partial
from traceback import format_exception
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from baton.core.effects.toolspec import off
from baton.core.expressions import escape, nearest, with_hint
from baton.core.failures import LONGEST, sanitised
from baton.core.failures.codes import CODES
from baton.core.failures.evidence import Evidence, evidence_of
from baton.core.limits import Limits
from baton.core.on_demand import OnDemand
from baton.ports import HeldMoney, HoldRequest, NoRoom, Performer, StepContext, StepFailure, Watch
from baton.tools.define import Registry, SchemaMismatch, Tool
from baton.tools.output import RUNNING, finish_line, unfinished

if TYPE_CHECKING:
    from baton.tools import journal
else:
    journal = OnDemand("baton.tools.journal")

_TEXT = {str}
_SIMPLE = frozenset({str, int, float, bool, type(None)})
_LISTS = (list, tuple, set, frozenset)


def check_numbers(value: Any) -> None:
    """Raise `ValueError` for a number that is NaN or infinite."""
    for pointer, part in _inside(value, ""):
        if isinstance(part, float) and not math.isfinite(part):
            raise ValueError(
                f"{float(part)!r} at {pointer or '/'} is no number in JSON; write null, or a text"
            )


def check_keys(value: Any) -> None:
    """Raise `ValueError` for two keys of one object that are the same text, such as `1` and `"1"`."""
    if all(key is None for key in map(_double, _objects(value))):
        return
    pointer, key = next(
        (where, key) for where, one in _inside(value, "") if (key := _double(one)) is not None
    )
    raise ValueError(f"the key {key!r} is there twice at {pointer or '/'}: every key of an object is a text")


def _double(value: Any) -> str | None:
    """Return a key of a `dict` that another key of it becomes, too."""
    if not isinstance(value, dict) or set(map(type, value)) <= _TEXT:
        return None
    known = set[str]()
    for key in value:
        (text,) = to_jsonable_python({key: None})
        if text in known:
            return str(text)
        known.add(text)
    return None


def _objects(value: Any) -> Iterator[dict[Any, Any]]:
    """Yield the dictionaries in a value, without their places: a result may have very many."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            yield part
            todo += [item for item in part.values() if type(item) not in _SIMPLE]
        elif isinstance(part, _LISTS):
            todo += [item for item in part if type(item) not in _SIMPLE]
        else:
            todo += _fields(part).values()


def _inside(value: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """Yield (JSON Pointer, value) of a value and of all in it."""
    yield pointer, value
    named: Iterable[tuple[Any, Any]] = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, _LISTS)
        else _fields(value).items()
    )
    for key, item in named:
        yield from _inside(item, f"{pointer}/{escape(str(key))}")


def _fields(value: Any) -> dict[str, Any]:
    is_made_of_fields = isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type))
    return dict(getattr(value, "__dict__", {})) if is_made_of_fields else {}


TRACEBACK = 20_000
MOST_OF_A_HEADER = 100

logger = logging.getLogger("baton.tools")

_encode = msgspec.json.Encoder().encode
_may_hide_nan = re.compile(rb'null|"-?(?:None|nan|NaN|inf|Inf)').search
"""In JSON a number that is none, or is infinite, is null; as a name it is a word."""


class RaisedElsewhere(Exception):
    """Cause of a step's failure whose tool ran in another process, with the text of what it raised."""

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(*evidence.exceptions[:1])
        self.evidence = evidence


def bind(tool: Tool, arguments: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Return the function's arguments as the types of its hints, and the `context` that it asks for.

    Raises `StepFailure`.
    """
    try:
        if tool.reads_json:
            valid = tool.parameters.model_validate_json(_encode(dict(arguments)))
        else:
            valid = tool.parameters.model_validate(dict(arguments))
    except ValidationError as error:
        raise StepFailure("input_invalid", f"`{tool.spec.name}`: {_first(error)}") from error
    except Exception as error:  # a type's own code runs in there
        raise StepFailure("input_invalid", utf8_text(f"`{tool.spec.name}`: {error}")) from error
    call = dict(valid.__dict__)
    if tool.context:
        call[tool.context] = context
    return call


def plain_json(tool: Tool, value: Any) -> Any:
    """Return the value as JSON types. Refuse what the log would change or cannot hold (NaN, a key)."""
    return json_of(tool.spec.name, tool.result, value, keys_may_meet=tool.keys_may_meet)


def json_of(name: str, adapter: TypeAdapter[Any], value: Any, *, keys_may_meet: bool = True) -> Any:
    """Return a value of a type as JSON types, as `plain_json` does. `name`: of what has returned it."""
    try:
        valid = adapter.validator.validate_python(value)
        result = adapter.serializer.to_python(valid, mode="json", by_alias=True)
        if _may_hide_nan(_encode(result)):
            check_numbers(adapter.dump_python(valid))
        if keys_may_meet:
            check_keys(valid)
    except ValidationError as error:
        message = f"`{name}` returned what its hints do not allow: {_first(error)}"
        raise StepFailure("result_invalid", message) from error
    except Exception as error:  # a type's own code runs in there
        raise not_json(name, error) from error
    return result


def not_json(tool: str, error: BaseException) -> StepFailure:
    """Return the failure of a tool whose result no log can hold."""
    is_bytes = isinstance(error, UnicodeDecodeError) or "invalid utf-8" in str(error)
    hint = (
        "; let a model with `ser_json_bytes` and `val_json_bytes` write bytes as base64" if is_bytes else ""
    )
    return StepFailure("result_invalid", utf8_text(f"`{tool}` returned what JSON cannot hold: {error}{hint}"))


def evidence_for(error: BaseException) -> Evidence:
    """Return the evidence of an error of a tool; for a `StepFailure`, that of its cause."""
    if not isinstance(error, StepFailure):
        return evidence_of(error)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return Evidence() if cause is None else evidence_of(cause)


def tool_failure(error: BaseException, tool: Tool, evidence: Evidence | None = None) -> StepFailure:
    """Return the failure of a step whose tool raised this: its code, class and status,
    and the pause it asks for.

    What the tool itself says counts first.
    Of any other error the message says which line of the application raised it.
    """
    found = evidence_for(error) if evidence is None else evidence
    code, kind, retry_after, message = "", "", "", f"{type(error).__name__}: {error}{_place(error, tool)}"
    happened: bool | None = None
    unsent = False  # a tool may call several services: that one cannot be reached says nothing of the others
    if isinstance(error, StepFailure):
        code, kind, message = str(error.code), str(error.kind), str(error.message)
        retry_after, happened, unsent = str(error.retry_after), error.happened, error.unsent
        if type(error.status) is int and error.status:
            found = msgspec.structs.replace(found, status=error.status)
    else:
        known = tool.codes
        code, kind = next((known[one] for one in type(error).__mro__ if one in known), ("", ""))
    if not isinstance(error, StepFailure) and not found.status and not kind:
        # The name of an exception says nothing of the outside: it may be about the answer to what was done.
        happened = True
    if code not in CODES and sanitised(code) != code:
        code = ""  # a code is stored, too, and in letters in which nothing would be known for a secret
    verdict = found.verdict(utf8_text(code), kind)
    return StepFailure(
        verdict.code,
        utf8_text(message),
        kind=verdict.kind,
        status=verdict.status,
        retry_after=utf8_text(retry_after or found.retry_after)[:MOST_OF_A_HEADER],
        happened=happened,
        unsent=unsent,
    )


def _place(error: BaseException, tool: Tool) -> str:
    """Return the innermost line of the tool's own package, by module: no directory gets into a log."""
    package = str(getattr(tool.function, "__module__", "")).partition(".")[0]
    place, at = "", error.__traceback__
    while at is not None:
        module = str(at.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] == package != "baton":
            file = module.replace(".", "/") + ("/__init__" if "__path__" in at.tb_frame.f_globals else "")
            place = f" ({file}.py:{at.tb_lineno} in {at.tb_frame.f_code.co_name})"
        at = at.tb_next
    return place


CURRENT: ContextVar[Any] = ContextVar("current", default=None)
"""The context of the tool or workflow function whose code runs, for adapters."""
_reported: dict[str, str] = {}
"""The last traceback in this process, by tool."""


def traceback_of(error: BaseException) -> str:
    """Return the traceback for the worker's log: without secrets, and cut to a readable length."""
    # As text, because half a character in it would keep the whole line from being written.
    # Sanitised before it is cut: half a secret is not known for one.
    whole = "".join(format_exception(error))
    clean = sanitised(utf8_text(whole[-2 * TRACEBACK :]))
    return (clean if len(whole) <= 2 * TRACEBACK else clean[LONGEST:])[-TRACEBACK:]


def report(traceback: str) -> None:
    """Write the traceback to the worker's log, where the author finds it. The entry holds what was raised.

    A further attempt with the same traceback has one line.
    """
    if (running := RUNNING.get()) is not None:
        tool, context = running
        is_same, _reported[tool] = _reported.get(tool) == traceback, traceback
        if is_same and context.attempt > 1:
            traceback = f"The same once more: {traceback.rstrip().splitlines()[-1]}"
    logger.warning("%s", traceback)


def utf8_text(text: str) -> str:
    """Return text that UTF-8 can hold: messages quote whatever the outside sent."""
    return text.encode(errors="replace").decode()


def _first(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=False)
    rest = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    pointer = "".join(f"/{step}" for step in details[0]["loc"])
    return f"at {pointer or '/'}: {details[0]['msg']}{rest}"


Whose: TypeAlias = tuple[str, str]  # tenant and saga

WANTED_FOR_S = Limits().room_pause_longest_ms / 1_000 + 0.5
"""Seconds within which a refused saga asks again, or no longer wants a place."""


def tenant_and_saga(context: StepContext) -> Whose:
    """Return the tenant and the saga of a step."""
    return context.tenant, context.saga


class Places:
    """Bounded number of places. Any thread may call it; `now` is in seconds, of one clock."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._sagas: Counter[Whose] = Counter()
        self._tenants: Counter[str] = Counter()
        self._wanted: dict[Whose, float] = {}

    def take(self, who: Whose, now: float) -> bool:
        """Take a free place. An earlier refused caller with fewer has priority: a tenant, then a saga."""
        with self._lock:
            self._wanted.pop(who, None)
            if self._wanted:
                self._wanted = {other: until for other, until in self._wanted.items() if until > now}
            is_full = self._sagas.total() >= self._most
            if is_full or any(self._has(other) < self._has(who) for other in self._wanted):
                self._wanted[who] = now + WANTED_FOR_S
                return False
            self._sagas[who] += 1
            self._tenants[who[0]] += 1
            return True

    def give_back(self, who: Whose) -> None:
        with self._lock:
            self._sagas[who] -= 1
            self._tenants[who[0]] -= 1
            if not self._sagas[who]:  # a process outlives the sagas that it has run
                del self._sagas[who]
            if not self._tenants[who[0]]:
                del self._tenants[who[0]]

    @property
    def taken(self) -> int:
        """Number of places in use."""
        return self._sagas.total()

    def _has(self, who: Whose) -> tuple[int, int]:
        return self._tenants[who[0]], self._sagas[who]


class JournalOfCall:
    """The journal of a call, loaded with the first unit (tools/journal.py)."""

    __slots__ = ("_context", "_journal", "_loop", "_thread", "_tool")

    def __init__(self, context: StepContext, tool: str, loop: asyncio.AbstractEventLoop | None) -> None:
        self._context, self._tool, self._loop = context, tool, loop
        self._thread = threading.get_ident() if loop is not None else 0
        self._journal: journal.Journal | None = None

    def _made(self) -> journal.Journal:
        if self._journal is None:
            assert self._context.units is not None, "a context without units has no journal"
            units = self._context.units()
            of = units, self._tool, self._context, self._loop, self._thread
            self._journal = journal.Journal(*of, json_of)
        return self._journal

    async def once(self, name: str, function: Callable[[], Any]) -> Any:
        """See `StepContext.once`."""
        return await self._made().once(name, function)

    def once_sync(self, name: str, function: Callable[[], Any]) -> Any:
        """See `StepContext.once_sync`."""
        return self._made().once_sync(name, function)

    async def hold(self, asked: HoldRequest) -> HeldMoney:
        """See `StepContext.hold`."""
        return await self._made().hold(asked)

    def hold_sync(self, asked: HoldRequest) -> HeldMoney:
        """See `StepContext.hold_sync`."""
        return self._made().hold_sync(asked)


def with_journal(context: StepContext, tool: str, loop: asyncio.AbstractEventLoop | None) -> StepContext:
    """Return the context for a call of this tool; see `Journal` for the `loop`."""
    if context.units is None:
        return context
    return msgspec.structs.replace(context, journal=JournalOfCall(context, tool, loop))


_UNWATCHED = nullcontext()
MAX_THREADS = 256  # Lambda gives an environment 1,024, and tools start threads of their own


class ToolPerformer:
    """The `Performer` for the tools of a registry: one for a process, because it counts the process's
    threads.

    Without `helpers` plain functions with effects run in threads too, where nothing stops them. That is for
    tests: a helper process imports the app by its name, and knows no function that only a test has.
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
        self._called: dict[str, Tool] = {}
        self._helpers = helpers
        self._threads = _Threads(max_threads)
        self._watch = watch

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        """Return the result as JSON types. Raises `StepFailure`, `NoRoom`; cancellation passes."""
        found = self._called.get(tool) or self._find(tool)
        RUNNING.set((tool, context))  # until the end of the task, which is the attempt's own
        if self._helpers is not None and found.needs_process:
            return await self._helpers.perform(tool, arguments, context)
        context = with_journal(context, tool, asyncio.get_running_loop())
        CURRENT.set(context)
        call = bind(found, arguments, context)
        watch = self._watch if found.is_async else None
        try:
            with _UNWATCHED if watch is None else watch.over(tool, context):
                value = await self._call(found, call, context)
        except (NoRoom, SchemaMismatch, asyncio.CancelledError):
            raise
        except BaseException as error:  # whatever a tool raises is the step's failure, never ours
            if isinstance(error, GeneratorExit) and not error.args:  # this coroutine is closed
                raise
            if not isinstance(error, StepFailure):
                report(traceback_of(error))
            raise tool_failure(error, found) from error
        finally:
            if unfinished:
                finish_line(id(context))
        return plain_json(found, value)

    def _find(self, tool: str) -> Tool:
        found = self._registry.get(tool)
        if found is None:
            hint = off(tool) or nearest(tool, self._registry)
            raise StepFailure("tool_missing", with_hint(f"there is no tool `{tool}`", hint))
        self._called[tool] = found
        return found

    async def _call(self, tool: Tool, call: Mapping[str, Any], context: StepContext) -> Any:
        """Call the tool. In a test of sagas (testing/deployment.py), otherwise."""
        if tool.is_async:
            return await tool.function(**call)
        return await _in_thread(tool.function, call, self._threads, tenant_and_saga(context))


class _Threads:
    """Starts the threads of plain functions. Each counts until it says that it has ended."""

    def __init__(self, most: int) -> None:
        self._places = Places(most)

    def start(self, work: Callable[[], None], who: Whose, now: float) -> None:
        """Start `work`, which ends with a call of `ended`. Raises `NoRoom`."""
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
    """Return the result from a thread of its own. No queue: waiting would count as the step's time."""
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
