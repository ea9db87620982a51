"""`baton check --against`: open sagas are named that would stop with the code that is here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from baton import WorkflowContext, tool, workflow
from baton.compat.aws_durable import DurableContext, Duration, durable_execution
from baton.core.documents.compile import compile_document
from baton.core.read.definition_views import graph_view
from baton.testing import Result, run
from baton.tools.define import NODE_KINDS, Registry
from tests.cli.conftest import Baton, FakeApi

APP = """
from contextlib import suppress
from baton import WorkflowContext, tool, workflow
from baton.compat.aws_durable import DurableContext, Duration, durable_execution

@tool("against.pay")
def pay(cents: int) -> str:
    return "paid"

@tool("against.send")
def send(order: str) -> str:
    return "sent"

@workflow("order-paid")
async def order(cents: int, context: WorkflowContext) -> str:
BODY

@durable_execution(name="plain-order")
def plain(event, context: DurableContext):
    context.step(lambda _: 1, "first")
    context.wait(Duration.from_hours(1), "pause")
"""
SAME = """
    for number in range(3):
        if context.state is None:
            await context.step(pay, cents + number, name="charge")
    if context.state is None:
        context.checkpoint({"paid": True})
    with suppress(TimeoutError):
        await context.signal("hurry", timeout="1h")
    asked = context.callback()
    await context.step(send, context.uuid().hex[:4], name="post")
    await context.signal("received")
    return await asked
"""


Log = list[Mapping[str, Any]]


def while_open(result: Result) -> Log:
    """Return the entries of a saga until its function asked for something for the last time."""
    kinds = [[event["kind"] for event in entry["events"]] for entry in result.entries]
    last = max(number for number, its in enumerate(kinds) if "operations_began" in its)
    return list(result.entries[: last + 1])


@cache
def written_before() -> Log:
    """Return the log of a saga of the function, which waits."""
    registry = Registry()

    @tool("against.pay", registry=registry)
    async def pay(cents: int) -> str:
        return "paid"

    @tool("against.send", registry=registry)
    async def send(order: str) -> str:
        return "sent"

    @workflow("order-paid", registry=registry)
    async def order(cents: int, context: WorkflowContext) -> str:
        for number in range(3):
            if context.state is None:
                await context.step(pay, cents + number, name="charge")
        if context.state is None:
            context.checkpoint({"paid": True})
        with suppress(TimeoutError):
            await context.signal("hurry", timeout="1h")
        asked = context.callback()
        await context.step(send, context.uuid().hex[:4], name="post")
        await context.signal("received")
        return str(await asked)

    return while_open(run(order, {"cents": 900}, tools=registry, cancel="2h"))  # not after a year


@cache
def plain_before() -> Log:
    """Return the log of a saga of a durable handler, which waits."""
    registry = Registry()

    @durable_execution(name="plain-order", registry=registry)
    def plain(event: object, context: DurableContext) -> None:
        context.step(lambda _: 1, "first")
        context.wait(Duration.from_hours(1), "pause")

    return while_open(run(plain, {"event": 1}, tools=registry))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = tmp_path / "layers/app/against_app"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield package
    for name in [name for name in sys.modules if name.startswith("against_app")]:
        del sys.modules[name]


def checked(baton: Baton, package: Path, log: Log, app: str, *options: str) -> tuple[int, str]:
    (package / "orders.py").write_text(app)
    Path("logs.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in log))
    found = baton("check", "--app", "against_app", "--against", "logs.jsonl", *options)
    return found.exit_code, found.stdout


def app_with(body: str) -> str:
    return APP.replace("BODY", body)


def test_the_same_code_goes_on(baton: Baton, project: Path) -> None:
    log = [*written_before(), *plain_before()]
    code, text = checked(baton, project, log, app_with(SAME))
    assert code == 0
    assert [line.partition(": ")[2] for line in text.splitlines()] == [
        "`order` of order-paid goes on",
        "`plain` of plain-order goes on",
    ]
    assert checked(baton, project, log, app_with(SAME), "--quiet") == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('context.step(pay, cents + number, name="charge")', "context.step(pay, cents)", "`charge`"),
        ("cents + number", "cents", "`charge-2`"),
        ("range(3)", "range(4)", "checkpoint"),
        ('timeout="1h"', 'timeout="2h"', "`1--hurry`"),
        ('name="post"', 'name="sent"', "`1--post`"),
        ('context.signal("received")', "context.sleep(9)", "`1--received`"),
        ("asked = context.callback()", "asked = 1 / 0", "ZeroDivisionError"),
    ],
)
def test_other_operations_are_named(baton: Baton, project: Path, old: str, new: str, where: str) -> None:
    assert old in SAME
    code, text = checked(baton, project, written_before(), app_with(SAME.replace(old, new)))
    assert code == 1
    assert ": `order` of order-paid would stop: " in text
    assert where in text


@pytest.mark.parametrize(("old", "new"), [('"first"', '"other"'), ('"plain-order"', '"new-order"')])
def test_a_handler_that_has_changed_is_named(baton: Baton, project: Path, old: str, new: str) -> None:
    app = app_with(SAME)
    assert old in app
    code, text = checked(baton, project, plain_before(), app.replace(old, new), "--json")
    assert (code, [one["verdict"] for one in json.loads(text)]) == (1, ["would stop"])


def test_what_cannot_be_checked_says_so(baton: Baton, project: Path) -> None:
    log = deepcopy(written_before())
    for event in (event for entry in log for event in entry["events"]):
        if event["kind"] == "function_began":
            event["given"] = {"ref": "cas://sha256/ab", "size": 9}
    code, text = checked(baton, project, log, app_with(SAME))
    assert (code, text.partition(": a value")[0].endswith("not checked")) == (0, True)


def test_a_saga_that_has_ended_is_left_out(baton: Baton, project: Path) -> None:
    log = [*plain_before(), {"events": [{"kind": "saga_ended"}]}]
    assert checked(baton, project, log, app_with(SAME)) == (0, "")


def test_another_file_is_refused(baton: Baton, project: Path) -> None:
    assert checked(baton, project, [{"events": []}], app_with(SAME))[0] == 2


# ---- the open sagas of a deployment


DOCUMENT = """
name: trip
nodes:
  book: {tool: against.pay, with: {cents: 9}}
  rest: {wait: {for: 1h}, after: book}
  tell: {tool: against.send, with: {order: o1}, after: rest}
  drive: {workflow: drive@2, after: tell, with: {}}
"""


def definition(document: str) -> dict[str, Any]:
    """Return the answer of `GET /workflows/{name}/{version}`."""
    registry = Registry()

    @tool("against.pay", registry=registry)
    async def pay(cents: int) -> str:
        return "paid"

    @tool("against.send", registry=registry)
    async def send(order: str) -> str:
        return "sent"

    graph = compile_document(document, registry.specs(), kinds=NODE_KINDS)
    return {"name": graph.name, "version": 1, "document": document, **graph_view(graph)}


def deployed(api: FakeApi, saga: str, workflow: str, active: list[str], version: int | None = 1) -> None:
    view: dict[str, Any] = {
        "id": saga,
        "workflow": workflow,
        "workflow_version": version,
        "status": "waiting",
    }
    view |= {"active": [{"node": node} for node in active], "result": None}
    api.on(f"GET /sagas/{saga}", (200, view))
    rows = [*api.answers.get("GET /sagas", [(200, {"sagas": []})])[0][1]["sagas"], {"id": saga}]
    api.on("GET /sagas", (200, {"sagas": rows, "next": None}))


def asked(baton: Baton, package: Path, app: str, url: str, *options: str) -> Any:
    (package / "orders.py").write_text(app)
    return baton("check", "--app", "against_app", "--against", url, *options)


def with_function(api: FakeApi, log: Log) -> None:
    deployed(api, "s1", "order-paid", ["order"])
    document = {"name": "order-paid", "nodes": {"order": {"function": "order-paid"}}}
    nodes = [{"name": "order", "function": "order-paid", "tools": ["against.pay", "against.send"]}]
    shown = {"name": "order-paid", "document": json.dumps(document), "nodes": nodes, "edges": []}
    api.on("GET /workflows/order-paid/1", (200, shown))
    api.on("GET /sagas/s1/events", (200, {"entries": log, "next": None}))


@pytest.mark.parametrize(("new", "code"), [(SAME, 0), (SAME.replace('name="post"', 'name="sent"'), 1)])
def test_functions_of_a_deployment_are_run_again(
    baton: Baton, project: Path, api: FakeApi, new: str, code: int
) -> None:
    log = deepcopy(written_before())
    (began,) = [one for entry in log for one in entry["events"] if one["kind"] == "function_began"]
    given, began["given"] = began["given"]["v"], {"ref": f"cas://sha256/{'ab' * 32}@30d", "size": 9}
    with_function(api, log)
    api.on(f"GET /sagas/s1/values/{'ab' * 32}", (200, {"ref": "x", "value": given, "part": None}))
    found = asked(baton, project, app_with(new), api.url)
    assert found.exit_code == code
    assert (": `order` of order-paid would stop" in found.stdout) == bool(code)
    assert f"{code} of 1 open saga would stop" in found.stderr


def test_a_tool_that_does_not_take_what_an_open_step_has_is_named(
    baton: Baton, project: Path, api: FakeApi
) -> None:
    log = written_before()
    asked_for = [one for entry in log for one in entry["events"] if one["kind"] == "operations_began"]
    assert any(one.get("tool") == "against.send" for event in asked_for for one in event["operations"])
    ended = {"kind": "step_succeeded", "node": "order", "iteration": [], "item": "1--post"}
    open_yet: Log = [
        {**entry, "events": [one for one in entry["events"] if one.get("item") != ended["item"]]}
        for entry in log
    ]
    cut = next(
        number
        for number, entry in enumerate(open_yet, 1)
        if any("1--post" in str(one.get("operations")) for one in entry["events"])
    )
    with_function(api, open_yet[:cut])
    app = app_with(SAME).replace("def send(order: str)", "def send(order: str, by: str)")
    found = asked(baton, project, app, api.url)
    assert "s1: `order#1--post` of order-paid would stop: `against.send`: " in found.stdout


@pytest.mark.parametrize(
    ("active", "stops"), [(["book"], ["book", "drive"]), (["rest"], ["drive"]), (["tell"], ["drive"])]
)
def test_a_document_is_compiled_with_the_tools_that_are_here(
    baton: Baton, project: Path, api: FakeApi, active: list[str], stops: list[str]
) -> None:
    deployed(api, "s1", "trip", active)
    api.on("GET /workflows/trip/1", (200, definition(DOCUMENT)))
    found = asked(baton, project, app_with(SAME).replace("cents: int", "euros: int"), api.url, "--json")
    assert list(dict.fromkeys(one["slot"] for one in json.loads(found.stdout))) == stops


def test_a_version_that_is_not_listed_is_not_checked_and_a_saga_that_ended_is_left_out(
    baton: Baton, project: Path, api: FakeApi
) -> None:
    deployed(api, "s1", "trip", ["book"], None)
    deployed(api, "s2", "trip", [])
    found = asked(baton, project, app_with(SAME), api.url)
    assert (found.exit_code, found.stdout.count("\n")) == (0, 1)
    assert "not checked" in found.stdout


def test_a_patched_saga_is_checked_with_its_own_document(baton: Baton, project: Path, api: FakeApi) -> None:
    deployed(api, "s1", "trip", ["book"], None)
    view = api.answers["GET /sagas/s1"][0][1]
    api.on("GET /sagas/s1", (200, {**view, "former_graphs": [{"last_version": 3}]}))
    api.on("GET /sagas/s1/workflow", (200, {**definition(DOCUMENT), "graph": "9" * 64}))
    found = asked(baton, project, app_with(SAME).replace("cents: int", "euros: int"), api.url, "--json")
    assert list(dict.fromkeys(one["slot"] for one in json.loads(found.stdout))) == ["book", "drive"]


def test_a_saga_that_cannot_be_read_keeps_no_other_from_being_checked(
    baton: Baton, project: Path, api: FakeApi
) -> None:
    deployed(api, "s1", "trip", ["book"])
    api.on("GET /workflows/trip/1", (200, definition(DOCUMENT)))
    deployed(api, "s2", "trip", ["book"])
    api.answers["GET /sagas/s2"] = [
        (500, {"type": "urn:baton:problem:unreadable-log", "status": 500, "detail": "its head lacks `br`"})
    ]
    api.answers["GET /sagas"][0][1]["sagas"][1]["workflow"] = "trip"
    found = asked(baton, project, app_with(SAME).replace("cents: int", "euros: int"), api.url)
    assert found.exit_code == 1
    assert "s2: trip not checked" in found.stdout
    assert "s1: " in found.stdout


def test_it_looks_at_so_many_and_says_that_more_are_open(baton: Baton, project: Path, api: FakeApi) -> None:
    deployed(api, "s1", "trip", [])
    api.on("GET /sagas", (200, {"sagas": [{"id": "s1"}], "next": "more"}))
    found = asked(baton, project, app_with(SAME), api.url, "--sagas", "1")
    assert (found.exit_code, "more sagas are open" in found.stderr) == (0, True)
    assert api.of("GET", "/sagas")[0].query["status"] == "open"


# ---- schemas that change

LOOK = """
name: look
nodes:
  rest: {wait: {for: 1h}}
  look: {tool: against.look, with: {id: '17'}, after: rest}
  ask: {human: {title: "Well?"}, after: look}
  mail: {tool: against.mail, with: {price: "${ctx.look.output.price}"}, after: ask}
output: "${ctx.look.output.colour}"
"""
SHOP = '''
from dataclasses import dataclass
from baton import tool

@dataclass
class Found:
    price: int
    colour: str
    shelf: str

@tool("against.look")
def look(id: str) -> Found:
    """Look."""

@tool("against.mail")
def mail(price: int) -> str:
    """Mail."""
'''


@dataclass
class Found:
    price: int
    colour: str
    shelf: str


@cache
def looked() -> dict[str, Any]:
    registry = Registry()

    @tool("against.look", registry=registry)
    def look(id: str) -> Found:
        raise AssertionError

    @tool("against.mail", registry=registry)
    def mail(price: int) -> str:
        raise AssertionError

    graph = compile_document(LOOK, registry.specs(), kinds=NODE_KINDS)
    return {"name": "look", "version": 1, "document": LOOK, **graph_view(graph)}


@pytest.mark.parametrize(
    ("old", "new", "active", "stops"),
    [
        # What still fits says nothing.
        ("id: str)", "id: str, shelf: int = 1)", "rest", []),
        ("id: str)", "id: str | int)", "rest", []),
        ("    shelf: str\n", "    row: str\n", "rest", []),
        ("    shelf: str\n", "    shelf: str\n    row: int\n", "rest", []),
        ('"""Look."""', '"""Look for something else."""', "rest", []),
        # What does not is named, with the tool and what breaks.
        ("id: str)", "id: str, shelf: int)", "rest", ["look: against.look shelf"]),
        ("id: str)", "nr: str)", "rest", ["look: against.look id", "look: against.look nr"]),
        ("id: str)", "id: int)", "rest", ["look: against.look id"]),
        ("    price: int\n", "    cost: int\n", "rest", ["mail: against.look price"]),
        ("    colour: str\n", "", "rest", [": against.look colour"]),
        ("price: int)", "price: str)", "rest", ["mail: against.mail price"]),
        # What is behind the saga is not called any more, and its result is in the log.
        ("id: str)", "id: int)", "ask", []),
        ("    price: int\n", "    cost: int\n", "ask", []),
        ("    colour: str\n", "", "ask", []),
        ("price: int)", "price: str)", "ask", ["mail: against.mail price"]),
    ],
)
def test_a_changed_schema_stops_a_saga_only_where_it_does_not_fit_what_lies_ahead(
    baton: Baton, project: Path, api: FakeApi, old: str, new: str, active: str, stops: list[str]
) -> None:
    deployed(api, "s1", "look", [active])
    api.on("GET /workflows/look/1", (200, looked()))
    assert SHOP.count(old) == 1
    answer = asked(baton, project, app_with(SAME) + SHOP.replace(old, new), api.url, "--json")
    assert answer.stdout, answer.stderr
    found = json.loads(answer.stdout)
    assert {one["verdict"] for one in found} <= {"would stop"}
    told = [f"{one['slot']}: {one['why']}" for one in found]
    for one in stops:
        slot, *words = one.split(" ")
        assert any(text.startswith(slot) and all(word in text for word in words) for text in told), told
    assert bool(told) == bool(stops)
