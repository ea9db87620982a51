"""Arguments in, JSON out: whatever a tool does wrong is a failure of its step, never a fault of the engine.

Nothing here waits for time to pass: what has to be slow stands still until the test lets it go.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, TypeVar

import msgspec
import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer

from baton.ports import StepContext, StepFailure
from baton.tools.define import Registry, tool
from baton.tools.output import StepFilter
from baton.tools.perform import ToolPerformer
from tests.kit.sentences import Says

T = TypeVar("T")
CONTEXT = StepContext(saga="s1", tenant="acme", user="ada", node="n", idempotency_key="k", deadline_ms=9)


def run(work: Coroutine[Any, Any, T]) -> T:
    """In a loop of its own, with an end in case something hangs."""

    async def limited() -> T:
        return await asyncio.wait_for(work, 20)

    return asyncio.run(limited())


def performer(*functions: Callable[..., Any]) -> ToolPerformer:
    registry = Registry()
    for function in functions:
        tool(function.__name__.strip("_"), registry=registry)(function)
    return ToolPerformer(registry)


def perform(function: Callable[..., Any], **arguments: Any) -> Any:
    name = function.__name__.strip("_")
    return run(performer(function).perform(name, arguments, CONTEXT))


def failure(function: Callable[..., Any], **arguments: Any) -> tuple[str, str]:
    with pytest.raises(StepFailure) as caught:
        perform(function, **arguments)
    return caught.value.code, caught.value.message


def returning(value: Any, hint: Any = Any) -> Callable[..., Any]:
    def give() -> Any:
        return value

    give.__annotations__["return"] = hint
    return give


class Table(BaseModel):
    id: str
    seats: int = 2


# ---- what a tool gets ----------------------------------------------------------------------------------------


def test_a_plain_function_and_a_coroutine_function_are_called_alike() -> None:
    def plain(a: int, b: str = "x") -> str:
        return f"{a}{b}"

    async def slow(a: int, b: str = "x") -> str:
        return f"{a}{b}"

    for function in (plain, slow):
        assert perform(function, a=1) == "1x"
        assert perform(function, a=1, b="y") == "1y"


def test_arguments_come_as_the_types_of_the_hints() -> None:
    def look(table: Table, at: datetime, many: list[Table]) -> list[str]:
        return [type(table).__name__, type(at).__name__, *(one.id for one in many)]

    arguments = {"table": {"id": "t"}, "at": "2026-12-24T19:30:00Z", "many": [{"id": "u", "seats": 4}]}
    assert perform(look, **arguments) == ["Table", "datetime", "u"]


def test_the_context_is_filled_in_by_the_engine() -> None:
    def look(n: int, context: StepContext) -> list[Any]:
        return [n, context.saga, context.idempotency_key]

    assert perform(look, n=1) == [1, "s1", "k"]
    assert failure(look, n=1, context={"saga": "other"})[0] == "input_invalid"


def test_parameters_may_have_names_that_pydantic_uses_itself() -> None:
    def send(json: str, copy: bool, schema: int) -> list[Any]:
        return [json, copy, schema]

    assert perform(send, json="{}", copy=True, schema=3) == ["{}", True, 3]


def test_input_that_does_not_match_is_told_with_its_path() -> None:
    def look(table: Table, n: int) -> None: ...

    assert failure(look, table={"id": 5}, n=1) == (
        "input_invalid",
        "`look`: at /table/id: Input should be a valid string",
    )
    code, message = failure(look, table={"id": 5}, n="x", more=1)
    assert code == "input_invalid"
    assert message.endswith("(and 2 more)")


def test_a_type_that_breaks_while_it_looks_at_the_input_fails_the_step() -> None:
    def look(n: Annotated[int, AfterValidator(lambda n: {}[n])]) -> None: ...

    assert failure(look, n=1) == ("input_invalid", "`look`: 1")


def test_a_tool_that_is_not_there_is_told_with_the_nearest_one(says: Says) -> None:
    def hold() -> None: ...

    with pytest.raises(StepFailure) as caught:
        run(performer(hold).perform("hodl", {}, CONTEXT))
    assert caught.value.code == "tool_missing"
    says(caught.value.message)
    with says.raised(StepFailure):
        run(performer(hold).perform("zzz", {}, CONTEXT))


# ---- what a tool gives back -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "hint", "result"),
    [
        (None, None, None),
        (Table(id="t"), Table, {"id": "t", "seats": 2}),
        ({"id": "t", "seats": "4"}, Table, {"id": "t", "seats": 4}),
        ((1, 2), tuple[int, int], [1, 2]),
        (datetime(2026, 12, 24, 19, 30, tzinfo=UTC), datetime, "2026-12-24T19:30:00Z"),
        ([Table(id="t")], Any, [{"id": "t", "seats": 2}]),
        (Decimal("1.50"), Any, "1.50"),
        ({1: {2}}, Any, {"1": [2]}),
        (2**70, int, 2**70),
        (1e300, float, 1e300),
    ],
)
def test_a_result_becomes_plain_json(value: Any, hint: Any, result: Any) -> None:
    given = perform(returning(value, hint))
    assert (given, type(given)) == (result, type(result))
    assert msgspec.json.decode(msgspec.json.encode(given)) == result


def test_a_result_that_its_hint_does_not_allow_is_told_with_its_path(says: Says) -> None:
    code, message = failure(returning({"id": "t", "seats": "many"}, Table))
    assert code == "result_invalid"
    says.within(message)
    says.within(failure(returning("x", int))[1])


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    n: float = 1


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        pytest.param(float("nan"), float, id="NaN"),
        pytest.param({"a": [float("inf")]}, Any, id="infinity, deep inside"),
        pytest.param(Loose(n=float("-inf")), Loose, id="infinity in a model"),
        pytest.param(
            Loose.model_validate({"x": float("nan")}), Loose, id="NaN in a model that takes anything"
        ),
        pytest.param("\ud800", str, id="half a character"),
        pytest.param({"\ud800": 1}, Any, id="half a character as a key"),
        pytest.param(object(), Any, id="an object"),
        pytest.param(b"\xff", bytes, id="bytes that are no text"),
        pytest.param(CYCLE, Any, id="a list that holds itself"),
        pytest.param(_deep(5_000), Any, id="nested deeper than anyone reads"),
        pytest.param(
            1, Annotated[int, AfterValidator(lambda n: {}[n])], id="a type that breaks while it looks"
        ),
        pytest.param(
            1, Annotated[int, PlainSerializer(lambda n: {}[n])], id="a type that breaks while it writes"
        ),
    ],
)
def test_what_json_cannot_hold_fails_the_step(value: Any, hint: Any, says: Says) -> None:
    """The log would turn NaN into null without a word, and choke on the rest."""
    code, message = failure(returning(value, hint))
    assert code == "result_invalid"
    says.within(message)
    message.encode()


# ---- what a tool raises ------------------------------------------------------------------------------------------------


def raising(error: BaseException) -> Iterator[Callable[..., Any]]:
    def plain() -> None:
        raise error

    async def slow() -> None:
        raise error

    for function in (plain, slow):
        error.__traceback__ = None  # of the one before
        yield function


def place(function: Callable[..., Any]) -> str:
    """As the message says it, of a function that raises in its first line."""
    return f" ({__name__.replace('.', '/')}.py:{function.__code__.co_firstlineno + 1} in {function.__name__})"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no table"), "ValueError: no table"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt("stop"), "KeyboardInterrupt: stop"),
        (GeneratorExit("no more"), "GeneratorExit: no more"),
        (BaseExceptionGroup("two", [SystemExit(1)]), "BaseExceptionGroup: two (1 sub-exception)"),
        (type("PanicException", (BaseException,), {})("in Rust"), "PanicException: in Rust"),
        (OSError("half \ud800"), "OSError: half ?"),
    ],
)
def test_an_exception_of_a_tool_is_a_failure_of_its_step(error: BaseException, message: str) -> None:
    for function in raising(error):
        assert failure(function) == ("tool_error", message + place(function))


def test_the_line_that_is_named_is_the_innermost_of_the_tools_own_package() -> None:
    def inner() -> None:
        json.loads("{", parse_constant=str)

    def outer() -> None:
        inner()

    assert failure(outer)[1].endswith(place(inner))


@pytest.mark.parametrize(
    ("error", "code"),
    [(TimeoutError("my own"), "timeout"), (ConnectionRefusedError("no"), "connection_failed")],
)
def test_an_exception_that_is_known_has_a_code_of_its_own(error: BaseException, code: str) -> None:
    for function in raising(error):
        assert failure(function) == (code, f"{type(error).__name__}: {error}{place(function)}")


def test_the_exception_is_kept_as_the_cause() -> None:
    error = ValueError("no table")
    for function in raising(error):
        with pytest.raises(StepFailure) as caught:
            perform(function)
        assert caught.value.__cause__ is error


def test_where_a_tool_raised_is_in_the_log_of_its_worker(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(StepFilter())  # as a worker's
    for function in raising(ValueError("no table")):
        caplog.clear()
        failure(function)
        (record,) = [record for record in caplog.records if record.name == "baton.tools"]
        assert (record.__dict__["saga"], record.__dict__["node"]) == ("s1", "n")
        assert "in raising" not in caplog.text
        assert f"in {function.__name__}" in caplog.text, "the traceback names the line that raised"


def test_the_end_of_an_iterator_is_an_exception_like_any_other() -> None:
    """No future can hold it: a plain function that lets it out would hang until its timeout."""
    for function in raising(StopIteration("empty")):
        code, message = failure(function)
        assert code == "tool_error"
        assert "StopIteration" in message


def test_a_tool_that_knows_its_failure_names_it_itself() -> None:
    for function in raising(StepFailure("sold_out", "no table for 9 \ud800")):
        assert failure(function) == ("sold_out", "no table for 9 ?")


# ---- cancelling ------------------------------------------------------------------------------------------------------


def test_an_async_tool_is_cancelled_where_it_waits() -> None:
    seen = []

    async def scenario() -> None:
        begun = asyncio.Event()

        async def slow() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("cleaned up")

        task = asyncio.create_task(performer(slow).perform("slow", {}, CONTEXT))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(scenario())
    assert seen == ["cleaned up"]


def test_a_plain_tool_is_abandoned_and_its_result_dropped() -> None:
    begun, let_go, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        let_go.wait(20)
        ended.set()
        return "too late"

    async def scenario() -> bool:
        task = asyncio.create_task(performer(slow).perform("slow", {}, CONTEXT))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended.is_set()

    try:
        assert run(scenario()) is False, "no caller waited for it"
    finally:
        let_go.set()
    assert ended.wait(20)


def test_plain_tools_run_beside_each_other_and_beside_the_loop() -> None:
    both = threading.Barrier(2, timeout=20)

    def meet() -> int:
        return both.wait()

    async def scenario() -> list[int]:
        one = performer(meet)
        return list(await asyncio.gather(*(one.perform("meet", {}, CONTEXT) for _ in range(2))))

    assert sorted(run(scenario())) == [0, 1]


def test_a_tool_that_cancels_itself_is_not_mistaken_for_a_failure() -> None:
    """Cancellation passes through: only the runner knows who cancelled what."""

    async def quits() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        perform(quits)
