"""The context of a workflow function: `WorkflowContext`, with the operations that it can ask for."""

from __future__ import annotations

import asyncio
import hashlib
import re
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, NoReturn, TypeVar, overload

import msgspec
from pydantic import BaseModel, PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import to_jsonable_python

from baton.core.effects.toolspec import PURE
from baton.core.expressions import LONGEST_MS, nearest, parse_duration, parse_time
from baton.core.graph.graph import START, inner_name
from baton.core.log.functions import AskedOperation
from baton.core.log.questions import APPROVAL, DECISION, INPUT
from baton.core.log.records import Value
from baton.core.log.slots import Slot
from baton.ports import StepFailure
from baton.ports.functions import FunctionFacts
from baton.tools.define import Tool
from baton.tools.functions.agents import Agent, Read, shape_of
from baton.tools.functions.loop import (
    BeginsAgain,
    Callback,
    FunctionDefect,
    FunctionRun,
    Operation,
    TaskPath,
    Update,
    item_of,
    task_path,
)

T = TypeVar("T")
R = TypeVar("R")
DAY_MS = 86_400_000
SHORTEST_HEARTBEAT_MS = 10_000
"""As of a document: a few times what clocks differ and a request takes."""
_is_name = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}").fullmatch
_encode = msgspec.json.Encoder(order="sorted").encode


_EXPIRE = ("wait", "callback")
"""Kinds of node whose end by time is a `TimeoutError`."""
MOST_PUBLISHED, MOST_PUBLISHED_BYTES = 16, 4_096
"""Most names that a function publishes, and most bytes of them and their values."""
MOST_ANSWER_BYTES = 65_536
"""Most bytes of the answer to an update."""
IN_MEMORY: set[str] = set()
"""Tools of adapters whose code is what the function in memory has given them."""
MOST_OPEN = 1_000
"""Most operations of a function that are open at a time."""


class WorkflowContext:
    """The saga of a workflow function: its operations, its time and its randomness.

    A function may run again from its beginning at any `await`, with the same results. So it takes time and
    randomness from here, and leaves whatever touches the world to operations.
    """

    def __init__(self, facts: FunctionFacts, tools: Mapping[Any, Tool], run: FunctionRun) -> None:
        self._facts = facts
        self._tools = tools
        self._run = run
        self._drawn = 0
        self.is_replaying = False
        """True while the function does again what the log has: it has written its log lines before."""
        self._versions: dict[str, bool] = dict.fromkeys(facts.changes, True)
        self._tokens: dict[bytes, bytes] = {}
        self._published: dict[str, Any] = dict(facts.published)

    # ---- what it is about

    @property
    def saga(self) -> str:
        """Id of the saga."""
        return self._facts.saga

    @property
    def user(self) -> str:
        """User for whom the saga runs."""
        return self._facts.user

    @property
    def tenant(self) -> str:
        """Tenant of the saga."""
        return self._facts.tenant

    def branch(self, name: str) -> TaskPath:
        """Return a branch of the function, as of a new task of this name, for adapters."""
        return self._run.path.task(name)

    def is_tool(self, function: Any) -> bool:
        """Return true if a function is a tool that this one may call."""
        found = self._tools.get(function)
        return found is not None and found.spec.name in self._facts.tools

    def place(self, item: str) -> tuple[str, str, str, tuple[int, ...], str]:
        """Return the place of an operation, as the context of its step has it, for adapters."""
        at, facts = Slot.parse(self._facts.slot), self._facts
        return facts.tenant, facts.saga, at.node, at.iteration, item

    def now(self) -> datetime:
        """Return the time, in UTC, at which the function got the result that it goes on with."""
        return datetime.fromtimestamp(self._run.now / 1_000, UTC)

    def random(self) -> float:
        """Return a random number in [0, 1), the same one each time that the function runs."""
        return (self._bits() >> 75) / (1 << 53)

    def uuid(self) -> uuid.UUID:
        """Return a new random UUID, the same one each time that the function runs."""
        return uuid.UUID(int=self._bits(), version=4)

    def version(self, change: str) -> bool:
        """Return true if the function goes the way of a change of its code: False in a saga that had passed
        this place before the change was deployed.

        The answer for a `change` is the same wherever and however often the function asks, until its next
        checkpoint.
        """
        if change not in self._versions:
            self._versions[change] = not self.is_replaying
            if not self.is_replaying:
                self._run.changes.append(change)
        return self._versions[change]

    def _bits(self) -> int:
        self._drawn += 1
        facts = self._facts
        text = f"{facts.tenant}/{facts.saga}/{facts.slot}/{facts.checkpoints}/{self._drawn}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")

    # ---- operations

    @overload
    def step(
        self,
        tool: Callable[..., Coroutine[Any, Any, R]],
        *args: Any,
        name: str = "",
        retry: int | None = None,
        timeout: str | float | None = None,
        **arguments: Any,
    ) -> Operation[R]: ...
    @overload
    def step(
        self,
        tool: Callable[..., R],
        *args: Any,
        name: str = "",
        retry: int | None = None,
        timeout: str | float | None = None,
        **arguments: Any,
    ) -> Operation[R]: ...
    @overload
    def step(
        self,
        tool: str,
        *args: Any,
        name: str = "",
        retry: int | None = None,
        timeout: str | float | None = None,
        **arguments: Any,
    ) -> Operation[Any]: ...
    def step(
        self,
        tool: Callable[..., Any] | str,
        *args: Any,
        name: str = "",
        retry: int | None = None,
        timeout: str | float | None = None,
        **arguments: Any,
    ) -> Operation[Any]:
        """Call a tool with these arguments; the result is that of the tool.

        tool: a function under `@tool`, or the name of a standard or an MCP tool. name: the operation's own
        name; without one, that of the function, `http` for `std.http`. retry: attempts in all; without it,
        those of the failure matrix. timeout: of one attempt. A tool that fails for good raises `StepFailure`.
        """
        options = dict(name=name, retry=retry, timeout=timeout)  # noqa: C408  # `retry` is no strategy here
        return self._step(tool, args, arguments, options, options)

    def step_of(self, tool: Any, arguments: Mapping[str, Any], name: str = "") -> Operation[Any]:
        """Call a tool, one of whose parameters may have the name of an option of `step`, for adapters."""
        options = dict(name=name, retry=None, timeout=None)  # noqa: C408  # as above
        return self._step(tool, (), arguments, options, {})

    def _step(self, tool: Any, args: Any, arguments: Any, options: Any, reserved: Any) -> Operation[Any]:
        found = self._tools.get(tool)
        if found is None:
            raise FunctionDefect(_unknown(tool))
        if found.spec.name not in self._facts.tools:
            text = f"its code does not name the tool `{found.spec.name}`, so it was not registered with it"
            raise FunctionDefect(f"{text}; write `@workflow(…, tools=[…])`")
        name, retry, timeout = options.values()
        given = _bound(found, args, arguments, reserved)
        made = self._ask(
            name or (re.sub(r"\W", "_", tool.rpartition(".")[2]) if isinstance(tool, str) else tool.__name__),
            AskedOperation(
                item="",
                digest="",
                tool=found.spec.name,
                given=Value(v=given),
                attempts=_attempts(retry),
                timeout_ms=0 if timeout is None else _milliseconds("timeout", timeout),
                in_memory=found.spec.name in IN_MEMORY,
            ),
            partial(_typed, found),
        )
        made.codes = found.codes
        return made

    def sleep(self, duration: str | float | timedelta, *, name: str = "sleep") -> Operation[None]:
        """Wait so long: seconds, a text such as `3d`, or a `timedelta`. No worker runs meanwhile."""
        waits = {"kind": "wait", "wait_ms": _milliseconds("duration", duration)}
        return self._ask(name, _asked(waits))

    def sleep_until(self, time: datetime | str, *, name: str = "sleep") -> Operation[None]:
        """Wait until a time with an offset. No worker runs meanwhile."""
        text = time.isoformat() if isinstance(time, datetime) else time
        try:
            until = parse_time(text)
        except ValueError as error:
            raise FunctionDefect(f"`sleep_until`: {error}") from error
        waits = {"kind": "wait", "wait_ms": max(until - self._run.now, 0)}
        return self._ask(name, _asked(waits, until))

    @overload
    def signal(
        self,
        signal: str,
        *,
        timeout: str | float | timedelta | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Operation[Any]: ...
    @overload
    def signal(
        self, signal: str, *, timeout: str | float | timedelta | None = None, schema: type[T]
    ) -> Operation[T]: ...
    def signal(
        self, signal: str, *, timeout: str | float | timedelta | None = None, schema: Any = None
    ) -> Operation[Any]:
        """Wait for a signal of this name; the result is its payload. One that came before counts.

        schema: a type, or a JSON schema. While the function waits, its sender is told of a payload that does
        not fit. Raises `TimeoutError` when the time is over.
        """
        wait_ms = None if timeout is None else _milliseconds("timeout", timeout)
        shape, read = _shape_of(schema)
        waits = {"kind": "wait", "signal": signal, "wait_ms": wait_ms, "output_schema": shape}
        return self._ask(signal, _asked(waits), read)

    @overload
    def update(
        self,
        name: str,
        schema: Mapping[str, Any] | None = None,
        *,
        timeout: str | float | timedelta | None = None,
    ) -> Operation[Update[Any]]: ...
    @overload
    def update(
        self, name: str, schema: type[T], *, timeout: str | float | timedelta | None = None
    ) -> Operation[Update[T]]: ...
    def update(
        self, name: str, schema: Any = None, *, timeout: str | float | timedelta | None = None
    ) -> Operation[Update[Any]]:
        """Wait for a signal of this name that fits `schema`; the function answers its sender.

        schema: a type, or a JSON schema. The sender of a payload that does not fit is refused, and the
        function waits on. Raises `TimeoutError` when the time is over.
        """
        wait_ms = None if timeout is None else _milliseconds("timeout", timeout)
        shape, read = _shape_of(schema)
        waits = _asked({"kind": "wait", "signal": name, "wait_ms": wait_ms, "output_schema": shape})
        here, made = task_path.get(), self._ask(name, waits)

        def answer(value: Any) -> Operation[None]:
            if made.is_answered:
                raise FunctionDefect(f"`{made.item}` has been answered")
            made.is_answered, said = True, _json(value)
            if len(_encode(said)) > MOST_ANSWER_BYTES:
                raise FunctionDefect(f"the answer to `{made.item}` has more than {MOST_ANSWER_BYTES:,} bytes")
            return self._ask("answer", _reply(name, made.by, {"answer": said}), _nothing)

        def refuse(why: str) -> None:
            told = self._made(_nothing)
            told.is_used = True
            self._begin(told, "refusal", here, _reply(name, made.by, {"refused": why}))
            self._begin(made, name, here, waits)

        made.read = lambda output: Update(output if read is None else read(output), answer)
        made.refuse = refuse
        return made

    def publish(self, name: str, value: Any) -> None:
        """Show a value, as JSON, in the answer about the saga while the function runs.

        It is the newest of its name.

        It is in the entry with the next operations that the function asks for.
        """
        shown = self._published | {name: _json(value)}
        if len(shown) > MOST_PUBLISHED:
            raise FunctionDefect(f"it publishes more than {MOST_PUBLISHED} names")
        if len(_encode(shown)) > MOST_PUBLISHED_BYTES:
            text = f"all that it publishes has more than {MOST_PUBLISHED_BYTES:,} bytes"
            raise FunctionDefect(f"{text}; publish a summary")
        self._published = self._run.published = shown

    @overload
    def callback(
        self,
        *,
        timeout: str | float | timedelta | None = None,
        heartbeat: str | float | timedelta | None = None,
        schema: Mapping[str, Any] | None = None,
        name: str = "callback",
    ) -> Callback[Any]: ...
    @overload
    def callback(
        self,
        *,
        timeout: str | float | timedelta | None = None,
        heartbeat: str | float | timedelta | None = None,
        schema: type[T],
        name: str = "callback",
    ) -> Callback[T]: ...
    def callback(
        self,
        *,
        timeout: str | float | timedelta | None = None,
        heartbeat: str | float | timedelta | None = None,
        schema: Any = None,
        name: str = "callback",
    ) -> Callback[Any]:
        """Make a callback, to be completed from outside: a step hands out its `token` or `url`.

        The result is the reported output. `schema`, a type or a JSON schema, is checked when it is reported.
        Raises `TimeoutError` when the time, or the longest time between two heartbeats, is over, and
        `StepFailure` for a reported failure.
        """
        times = {
            "timeout_ms": LONGEST_MS if timeout is None else _milliseconds("timeout", timeout),
            "heartbeat_ms": 0 if heartbeat is None else _milliseconds("heartbeat", heartbeat),
        }
        if heartbeat is not None and not SHORTEST_HEARTBEAT_MS <= times["heartbeat_ms"] < times["timeout_ms"]:
            raise FunctionDefect(f"`heartbeat={heartbeat!r}`: write `10s` or longer, and less than `timeout`")
        shape, read = _shape_of(schema)
        node = {"kind": "callback", "effect": PURE, "callback": times, "output_schema": shape}
        made = self._ask(name, _asked(node), read, kind=Callback)
        assert isinstance(made, Callback), "it was made as one"
        if self._facts.token is None:
            self._run.lacks_tokens = True
        else:
            made.token = self._facts.token(made.item)
            made.url = f"{self._facts.api_url}/callbacks/{made.token}" if self._facts.api_url else ""
            for one in filter(None, (made.url, made.token)):
                self._tokens[one.encode()] = f"callback:{made.item}".encode()
        return made

    def ask(
        self,
        title: str,
        *,
        message: str = "",
        options: Sequence[str | Mapping[str, Any]] | None = None,
        schema: Mapping[str, Any] | None = None,
        details: Any = None,
        to: Any = None,
        expires: str | float | timedelta | None = None,
        risk: str = "",
        name: str = "ask",
    ) -> Operation[dict[str, Any]]:
        """Ask a person, and wait for the answer: `{"answer": …, "data": …, "comment": …, "by": …, "at": …}`.

        Without `options` and `schema` it is an approval; a rejected one raises `StepFailure` with the code
        `rejected`. The arguments are those of a `human` node in a document.
        """
        kind = DECISION if options is not None else INPUT if schema is not None else APPROVAL
        says = {
            "title": title,
            "message": message,
            "details": details,
            "to": to,
            "risk": risk,
            "options": [{"id": one} if isinstance(one, str) else dict(one) for one in options or ()],
        }
        within = 0 if expires is None else _milliseconds("expires", expires)
        asks = {"type": kind, "says": None, "expires_ms": within, "schema": schema}
        given = {key: value for key, value in says.items() if value}
        return self._ask(name, _asked({"kind": "human", "asks": asks}, None, _json(given)))

    def call(
        self,
        workflow: str,
        input: Any = None,
        *,
        timeout: str | float | timedelta | None = None,
        name: str = "",
    ) -> Operation[Any]:
        """Start a saga of another workflow, `NAME`, `NAME@VERSION` or `NAME@TAG`, and wait for its result.

        Raises `StepFailure` with the code `child_failed` if it fails. It is cancelled at its timeout.
        """
        timeout_ms = 0 if timeout is None else _milliseconds("timeout", timeout)
        node = {"kind": "workflow", "workflow": workflow, "timeout_ms": timeout_ms}
        given = {} if input is None else _json(input)
        return self._ask(name or _of_workflow(workflow), _asked(node, None, given))

    def start(self, workflow: str, input: Any = None, *, name: str = "") -> Operation[str]:
        """Start a saga of another workflow, `NAME`, `NAME@VERSION` or `NAME@TAG`; the result is its id.

        The function does not wait for its end. No cancel, rollback or fork of this saga concerns it.
        """
        node = {"kind": START, "workflow": workflow}
        given = {} if input is None else _json(input)
        return self._ask(name or _of_workflow(workflow), _asked(node, None, given))

    def agent(
        self,
        agent: Agent[R],
        prompt: Any,
        *,
        name: str = "",
    ) -> Operation[R]:
        """Ask an agent; the result is its answer, of the type of its `output`.

        prompt: a text, or a value that its model gets as JSON. It runs as a child saga: a failure is a
        `StepFailure` with the code `child_failed`.
        """
        if agent.name not in self._facts.graphs:
            text = f"its saga was started without the agent `{agent.name}`"
            raise FunctionDefect(f"{text}; name it in the function's code, and start sagas of that")
        node = {"kind": "subgraph", "workflow": inner_name(self._facts.workflow, agent.name)}
        given = {"prompt": _json(prompt)}
        return self._ask(
            name or agent.name, _asked(node, None, given), agent.read, digested=[agent.name, given]
        )

    @overload
    def model(
        self, model: str, prompt: Any, *, schema: type[T], instructions: str = "", **settings: Any
    ) -> Operation[T]: ...
    @overload
    def model(
        self, model: str, prompt: Any, *, schema: Mapping[str, Any], instructions: str = "", **settings: Any
    ) -> Operation[Any]: ...
    @overload
    def model(
        self, model: str, prompt: Any, *, instructions: str = "", **settings: Any
    ) -> Operation[str]: ...
    def model(
        self,
        model: str,
        prompt: Any,
        *,
        schema: Any = None,
        instructions: str = "",
        retry: int | None = None,
        timeout: str | float | timedelta | None = None,
        name: str = "model",
        **settings: Any,
    ) -> Operation[Any]:
        """Ask a model once; the result is its text, or with `schema` (a type, or a JSON schema) that.

        prompt: a text, or a value that the model gets as JSON. retry and timeout: as of `step`. settings:
        `max_output`, `temperature`, `corrections` and all others of a `model` node.
        """
        from baton.tools.functions.models import request_of  # needs the models of documents

        given = {"prompt": _json(prompt), **({"instructions": instructions} if instructions else {})}
        if given["prompt"] in (None, "", {}, []):
            raise FunctionDefect("`context.model`: the prompt is empty")
        shape, read = _shape_of(schema)
        timeout_ms = 0 if timeout is None else _milliseconds("timeout", timeout)
        settings = _json(settings)
        node = request_of(model, settings, timeout_ms, _attempts(retry))
        return self._ask(
            name,
            _asked({**node, "output_schema": shape}, None, given),
            read,
            digested=[model, given, settings, timeout_ms, retry],
        )

    async def map(
        self,
        function: Callable[[T], Awaitable[R]],
        items: Iterable[T],
        *,
        concurrency: int = 10,
        tolerated_failures: int = 0,
    ) -> list[Any]:
        """Run `function` for each item, so many at a time; the results in the order of the items.

        Up to `tolerated_failures` items may fail: the list then has their exceptions. One more raises its
        exception, and stops the others.
        """
        places, failed = asyncio.Semaphore(concurrency), 0

        async def one(item: T) -> Any:
            nonlocal failed
            async with places:
                try:
                    return await function(item)
                except Exception as error:
                    failed += 1
                    if failed > tolerated_failures:
                        raise
                    return error

        called = str(getattr(function, "__name__", ""))
        one.__name__ = called if called.isidentifier() else "map"  # a lambda has no name
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
        return [task.result() for task in tasks]

    @property
    def state(self) -> Any:
        """State of the newest checkpoint, as JSON; None before the first."""
        return self._facts.state

    def checkpoint(self, state: Any) -> NoReturn:
        """End this run of the function, and begin it again with `state`, which is kept as JSON.

        Its operations until now are over, and are not replayed any more: a function that runs for months
        makes a checkpoint in each round. No operation may be open.
        """
        self._run.checkpointed.append(_json(state))
        raise BeginsAgain

    def fail(self, code: str, message: str, *, kind: str = "") -> NoReturn:
        """Raise `StepFailure`: without an `except`, the saga fails with this code."""
        raise StepFailure(code, message, kind=kind)

    def _ask(
        self,
        name: str,
        asked: AskedOperation,
        read: Read | None = None,
        *,
        kind: type[Operation[Any]] = Operation,
        digested: Any = None,
    ) -> Operation[Any]:
        run = self._run
        if run.loop is None or not run.loop.is_running():
            raise FunctionDefect(f"`{name}` is asked for outside of the function's own coroutine")
        if not _is_name(name):
            raise FunctionDefect(f"`{name}` is no name of an operation; write letters, digits and `_`")
        if len(run.open) >= MOST_OPEN:
            text = f"it has {MOST_OPEN:,} operations open, and no more are possible"
            raise FunctionDefect(f"{text}: write `context.map(…, concurrency=…)`")
        operation = self._made(read, kind)
        operation.can_expire = asked.node.get("kind") in _EXPIRE
        self._begin(operation, name, task_path.get(), asked, digested)
        return operation

    def _made(self, read: Read | None, kind: type[Operation[Any]] = Operation) -> Operation[Any]:
        operation = kind(loop=self._run.loop)
        operation.left, operation.read = self._run.leave, read
        return operation

    def _begin(
        self,
        operation: Operation[Any],
        name: str,
        here: TaskPath,
        asked: AskedOperation,
        digested: Any = None,
    ) -> None:
        """Ask for an operation at a place of the function, under the next number of its name."""
        count = here.number(name)
        label = f"{here.path}{name}" + (f"#{count}" if count > 1 else "")
        item, given = item_of(label), asked.given
        if digested is None:
            node = {key: value for key, value in asked.node.items() if key != "output_schema"}
            digested = [asked.tool, node, given and given.v, asked.digest]
        said = _encode(digested)
        for token, name_of_it in self._tokens.items():  # where it leads is no other request
            said = said.replace(token, name_of_it)
        digest = hashlib.sha256(said).hexdigest()[:16]
        operation.item = item
        self._run.open[item] = operation
        label, given = "" if label == item else label, given if given and given.v else None
        self._run.asked.append(
            msgspec.structs.replace(asked, item=item, label=label, digest=digest, given=given)
        )


def _attempts(retry: int | None) -> int:
    if retry is not None and (type(retry) is not int or retry < 1):
        raise FunctionDefect(f"`retry={retry!r}`: write the number of attempts, 1 or more")
    return retry or 0


def _asked(node: dict[str, Any], of: Any = None, arguments: Any = None) -> AskedOperation:
    digest = "" if of is None else str(of)
    return AskedOperation(
        item="", digest=digest, node=node, given=None if arguments is None else Value(v=arguments)
    )


def _reply(signal: str, key: str, reply: dict[str, Any]) -> AskedOperation:
    """Return the operation that is done at once, and whose arguments the sender of a signal gets."""
    answers = f"{signal}/{key}"
    return AskedOperation(
        item="", digest=answers, node={"kind": "pass"}, given=Value(v=reply), answers=answers
    )


def _nothing(_: Any) -> None:
    """Return the result of an operation without one."""


def _json(value: Any) -> Any:
    try:
        return to_jsonable_python(value)
    except Exception as error:  # a type's own code runs in there
        raise FunctionDefect(f"an argument cannot be written as JSON: {error}") from error


def _typed(tool: Tool, output: Any) -> Any:
    """Return a result as the type of the tool's hint."""
    if tool.reads_json:
        return tool.result.validate_json(_encode(output))
    return tool.result.validate_python(output)


def _shape_of(schema: Any) -> tuple[Any, Read | None]:
    """Return the JSON schema of a type or schema, and what makes a value of the type from its JSON."""
    try:
        return shape_of(schema)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise FunctionDefect(f"`schema={schema!r}` is no type with a JSON schema: {error}") from error


@cache
def _names_of(parameters: type[BaseModel]) -> tuple[str, ...]:
    return tuple(parameters.model_fields)


def _bound(
    tool: Tool, args: Sequence[Any], named: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a tool by their names, as JSON."""
    names = _names_of(tool.parameters)
    if len(args) > len(names):
        takes = ", ".join(f"`{one}`" for one in names) or "nothing"
        raise FunctionDefect(f"`{tool.spec.name}` takes {takes}, and gets {len(args)} arguments by place")
    given = dict(zip(names, args, strict=False))
    for one in names[len(args) :]:
        if one in options and options[one] not in (None, ""):
            text = f"`{one}` is an option of `step`, and a parameter of `{tool.spec.name}`"
            raise FunctionDefect(f"{text}: give the tool its arguments by place")
    for one, value in named.items():
        if one not in names:
            hint = nearest(one, names)
            raise FunctionDefect(
                f"`{tool.spec.name}` has no parameter `{one}`" + (f"; {hint}" if hint else "")
            )
        if one in given:
            raise FunctionDefect(f"`{tool.spec.name}` gets `{one}` twice")
        given[one] = value
    found: dict[str, Any] = _json(given)
    return found


def _of_workflow(workflow: str) -> str:
    return re.sub(r"\W", "_", workflow.partition("@")[0])


def _unknown(tool: Any) -> str:
    if isinstance(tool, str):
        return f"there is no tool `{tool}`"
    if isinstance(tool, partial):
        called = getattr(tool.func, "__name__", "a function")
        return f"a `functools.partial` is no step; write `context.step({called}, …)` with all arguments"
    called = getattr(tool, "__name__", repr(tool))
    if hasattr(tool, "__self__") or called == "<lambda>":
        kind = "a lambda" if called == "<lambda>" else f"the method `{called}`"
        return f"{kind} is no step; write a function with a name in a module, and give that to `step`"
    return f'`{called}` is not known as a step: its name does not stand in `step(…)`; write `@tool("name")` above it'


def _milliseconds(what: str, value: str | float | timedelta) -> int:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    try:
        return parse_duration(value)
    except ValueError as error:
        raise FunctionDefect(f"{what}: {error}") from error
