"""What a failing tool quotes of the outside: no secret of it is written anywhere, told to any person, nor answered."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import msgspec
import pytest

from baton import StepFailure, tool
from baton.adapters.discreet import SecretFilter, add_secret_filter
from baton.core.log.questions import Answer
from baton.runtime.invocation.watch import Metrics
from tests.kit.corpus import start
from tests.kit.leaks import LEAKS
from tests.kit.secrets import SHAPED, X
from tests.kit.world import World

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak`
NAMED = {
    "Authorization: Bearer {}": "abc" + X[::-1],
    "https://ann:{}@shop.example/pay": "hunter2-and-more",
    "postgres://app:{}@db-7/orders": "correct-horse",
    "password={}": "p4ssw0rd-" + X[:5],
    "{{'api_key': '{}'}}": "k-" + X[5:17],
}
SECRETS = (*SHAPED.values(), *NAMED.values())
TEXT = "order 4711: " + "; ".join((*SHAPED.values(), *(place.format(one) for place, one in NAMED.items())))

DOCUMENT = """
name: leaks
nodes:
  again: {tool: leaky, with: {code: unauthorized}, on_failure: ask_user}
  on_call: {tool: leaky, after: again, with: {code: database_down}}
  payment: {tool: leaky_payment, after: on_call, retry: none}
  handled: {tool: leaky, after: payment, with: {code: bad_request}, catch: told}
  told: {value: "${last_error.message}"}
output: ${ctx.told.output?}
"""


async def test_thirty_secrets_in_what_tools_raise_are_in_nothing_that_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert len(set(SECRETS)) >= 30
    caplog.set_level(logging.DEBUG)
    lines: list[str] = []
    world = World.start()
    calls: dict[str, int] = {}

    @tool("leaky", registry=world.registry)
    async def leaky(code: str) -> None:
        calls[code] = calls.get(code, 0) + 1
        if calls[code] == 1:
            raise StepFailure(code, TEXT)

    @tool("leaky_payment", registry=world.registry, effect="once", verify="find_leaky")
    async def leaky_payment() -> str:
        calls["payment"] = calls.get("payment", 0) + 1
        if calls["payment"] == 1:
            raise StepFailure("forbidden", TEXT, happened=False)
        raise ConnectionError(TEXT)

    @tool("find_leaky", registry=world.registry, effect="pure")
    async def find_leaky() -> dict[str, Any]:
        raise ConnectionError(TEXT)

    world.tools = world.registry.specs()
    world.metrics = Metrics(lines.append, "test")
    saga = await start(world, DOCUMENT, {}, "leaks")
    views: list[Any] = []
    stored: list[str] = []
    for _ in range(12):
        await asyncio.sleep(60)
        view = await world.queries().show(saga)
        views += [
            view,
            await world.queries().events(saga, 0, 100),
            await world.queries().way(saga, 0, 100),
        ]
        stored.append(_everything(world))
        for question in view["questions"]:
            is_paid = question["node"] == "payment" and calls["payment"] > 1
            answer = Answer(ask=question["id"], action="use" if is_paid else "retry", **_output(is_paid))
            await world.service().answer(saga, answer, "")
    assert views[-3]["status"] == "completed"
    assert "order 4711" in str(views[-3]["result"])
    assert len(world.notices.told) >= 3
    assert lines
    written = repr(views) + caplog.text + "".join(lines) + "".join(stored)
    assert [secret for secret in SECRETS if secret in written] == []
    assert "order 4711" in stored[-1]


def _output(is_paid: bool) -> dict[str, Any]:
    return {"output": "receipt"} if is_paid else {}


def _everything(world: World) -> str:
    """All that the stores hold, as text."""
    stores: list[Any] = [world.log, world.blobs, world.effects, world.budgets, world.notices]
    stores += [world.dead_letters, world.store.definitions]
    return "".join(
        _text(value)
        for store in stores
        for value in vars(store).values()
        if isinstance(value, dict | list | set | tuple)
    )


def _text(value: Any) -> str:
    try:
        return repr(value) + msgspec.json.encode(value, enc_hook=repr).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(value)


class Panic(BaseException):
    """As a library in Rust raises it: no `Exception`."""

    __module__ = "pyo3_runtime"


def _raised(text: str, way: str) -> BaseException:
    errors: dict[str, BaseException] = {
        "said": StepFailure("unauthorized", text),
        "code": StepFailure(text, "no"),
        "panic": Panic(text),
    }
    error = errors.get(way, ValueError("no"))
    error.__cause__ = ConnectionError(text)
    return error


@pytest.mark.parametrize(("turn", "way"), [*enumerate(["said", "code", "panic", "cause"])])
async def test_over_a_hundred_shapes_of_secrets_are_in_no_store_notice_or_log(
    turn: int, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Give all shapes to `said`, and a third of them to each other way; in `make soak`, all to all."""
    caplog.set_level(logging.DEBUG)
    caplog.handler.filters[:] = [SecretFilter()]
    kinds = list(LEAKS) if IS_ALL or turn == 0 else list(LEAKS)[turn - 1 :: 3]
    steps = {
        f"n{number}": {"tool": f"leaky_{'once' if number % 2 else 'often'}", "with": {"number": number}}
        | {"on_failure": "ask_user"}
        for number in range(len(kinds))
    }
    world = World.start()

    def fail(number: int) -> None:
        text = LEAKS[kinds[number]][0]
        logging.getLogger("of.the.tool").info("told %s", text, extra={"answer": text})
        raise _raised(text, way)

    @tool("leaky_often", registry=world.registry)
    async def leaky_often(number: int) -> None:
        fail(number)

    @tool("leaky_once", registry=world.registry, effect="once", verify="find_leaky")
    async def leaky_once(number: int) -> None:
        fail(number)

    @tool("find_leaky", registry=world.registry, effect="pure")
    async def find_leaky(number: int) -> dict[str, Any]:
        raise _raised(LEAKS[kinds[number]][0], way)

    world.tools = world.registry.specs()
    saga = await start(world, msgspec.json.encode({"name": "leaks", "nodes": steps}).decode(), {}, "leaks")
    await asyncio.sleep(120)
    view = await world.queries().show(saga)
    assert {question["node"] for question in view["questions"]} == set(steps)
    written = _everything(world) + repr(view) + "".join(map(_whole, caplog.records)) + caplog.text
    assert [kind for kind, (_, secret) in LEAKS.items() if secret in written] == []
    assert "hunter2" not in written
    assert caplog.text.count("told ") >= len(kinds)


def _whole(record: logging.LogRecord) -> str:
    """All that a formatter may write of a record."""
    trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
    return repr(vars(record)) + trace


def test_a_line_of_the_log_stays_as_it_is_unless_it_holds_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.filters.clear()
    caplog.set_level(logging.DEBUG)  # also where another test has switched logging off
    logger = logging.getLogger("of.the.tool")
    logger.addHandler(caplog.handler)
    add_secret_filter(logger)
    add_secret_filter(logger)
    logger.removeHandler(caplog.handler)
    assert [type(known) for known in caplog.handler.filters] == [SecretFilter]
    for text in ("order 4711", "password=hunter2"):
        try:
            raise ValueError(text)
        except ValueError:
            logger.exception("failed %s", text, extra={"order": 4711, "api_key": "k-4711", "none": None})
    harmless, leaky = caplog.records
    assert harmless.exc_info is not None
    assert (harmless.getMessage(), harmless.__dict__["order"]) == ("failed order 4711", 4711)
    assert harmless.__dict__["api_key"] == "[redacted]"
    assert leaky.exc_info is None
    assert leaky.getMessage().startswith("failed password=[redacted]\nTraceback")
    assert leaky.getMessage().endswith("ValueError: password=[redacted]")
    caplog.clear()
    logging.getLogger("baton.worker").warning("fault %r", ConnectionError("mysql -phunter2-Xy7"))
    assert "fault" in caplog.text
    assert "hunter2" not in caplog.text
