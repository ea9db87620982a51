"""What `baton.testing.run` promises to the test of an application: the real engine, no time, plain answers."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from baton import Context, StepFailure, Workflow, tool
from baton.core.documents.text import Document, parse_document
from baton.errors import InvalidDefinition, InvalidInput, NotFound
from baton.testing import Result, loop, run, running
from baton.tools.define import Registry, ToolError
from tests.kit.sentences import Says

TOOLS = Registry()


class Price(BaseModel):
    """What something costs."""

    cents: int


@tool("shop.price", registry=TOOLS, effect="pure")
def price(item: str) -> Price:
    return Price(cents=len(item) * 100)


@tool("shop.charge", registry=TOOLS)
async def charge(cents: int, context: Context) -> str:
    return f"{cents} from {context.user} of {context.tenant}"


@tool("shop.slow", registry=TOOLS, timeout="15m")
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@tool("shop.refuse", registry=TOOLS)
def refuse() -> str:
    raise StepFailure("sold_out", "there is none left")


@tool("shop.thread", registry=TOOLS, effect="pure")
def thread() -> int:
    return threading.get_ident()


@tool("shop.large", registry=TOOLS, effect="pure")
def large() -> str:
    return "x" * 100_000


ORDER = """
name: order
input: {type: object, required: [item]}
nodes:
  price: {tool: shop.price, with: {item: "${input.item}"}}
  pause: {wait: {for: 2s}, after: price}
  charge: {tool: shop.charge, with: {cents: "${ctx.price.output.cents}"}, after: pause}
output: {said: "${ctx.charge.output}"}
"""
ASKS = """
name: asks
nodes:
  ask: {wait: {signal: approved%s}}
output: "${ctx.ask.output}"
"""


def of(body: str, given: Any = None, **options: Any) -> Result:
    return run(f"name: it\n{body}", given, tools=TOOLS, **options)


def test_a_saga_ends_with_its_output_and_what_each_node_did() -> None:
    result = run(ORDER, {"item": "tea"}, tools=TOOLS, user="ann", tenant="acme")
    assert (result.status, result.error) == ("completed", "")
    assert result.output == {"said": "300 from ann of acme"}
    assert list(result.steps) == ["price", "pause", "charge"]
    assert result.steps["price"].output == {"cents": 300}
    charged = result.steps["charge"]
    assert (charged.status, charged.tool, charged.attempt) == ("succeeded", "shop.charge", 1)
    assert charged.ended_s == result.took_s == pytest.approx(2, abs=0.2)
    assert result.view["steps"] == 3
    assert result.entries[0]["events"][0]["kind"] == "saga_started"


def test_two_runs_are_equal() -> None:
    assert run(ORDER, {"item": "tea"}, tools=TOOLS) == run(ORDER, {"item": "tea"}, tools=TOOLS)


def test_a_wait_of_a_year_takes_no_time_and_ends_to_the_second() -> None:
    result = of("nodes: {pause: {wait: {for: 365d}}}")
    assert result.status == "completed"
    assert result.took_s == pytest.approx(365 * 86_400, abs=1)


def test_a_wait_for_a_signal_is_sent_it() -> None:
    result = run(ASKS % "", tools=TOOLS, signals={"approved": {"by": "Ann"}})
    assert (result.status, result.output) == ("completed", {"by": "Ann"})


def test_a_signal_that_is_not_named_never_comes() -> None:
    limited = run(ASKS % ", timeout: 2h", tools=TOOLS)
    assert (limited.status, limited.output) == ("completed", {"timed_out": True})
    assert limited.took_s == pytest.approx(7_200, abs=1)
    endless = run(ASKS % "", tools=TOOLS)
    assert (endless.status, endless.steps["ask"].status) == ("waiting", "waiting")


def test_a_signal_that_no_wait_is_for_is_refused_with_the_nearest_one(says: Says) -> None:
    with says.raised(ValueError):
        run(ASKS % "", tools=TOOLS, signals={"aproved": 1})
    with says.raised(ValueError):
        of("nodes: {pause: {wait: {for: 1s}}}", signals={"go": 1})


def test_every_wait_for_a_signal_is_sent_it_once() -> None:
    body = """
nodes:
  first: {wait: {signal: next}}
  second: {wait: {signal: next}, after: first}
output: ["${ctx.first.output}", "${ctx.second.output}"]
"""
    assert of(body, signals={"next": 1}).output == [1, 1]


def test_children_run_too_and_are_sent_signals() -> None:
    parent = 'nodes: {child: {workflow: asks}}\noutput: "${ctx.child.output}"'
    result = of(parent, workflows=[ASKS % ""], signals={"approved": "yes"})
    assert (result.status, result.output, result.steps["child"].status) == ("completed", "yes", "succeeded")


def test_a_child_without_a_workflow_fails_its_node() -> None:
    result = of("nodes: {child: {workflow: nowhere}}")
    assert result.status == "failed"
    assert "nowhere" in result.error


def test_a_failed_step_is_seen_in_the_error_in_the_step_and_in_what_is_printed(says: Says) -> None:
    nodes = "nodes: {first: {tool: shop.thread}, buy: {tool: shop.refuse, after: first}}"
    result = of(f"on_failure: [rollback]\n{nodes}")
    assert (result.status, result.output) == ("failed", None)
    says(result.error)
    assert result.steps["buy"].error == result.error
    says.within(repr(result))


def test_a_plain_function_runs_where_the_test_runs() -> None:
    result = of('nodes: {a: {tool: shop.thread}}\noutput: "${ctx.a.output}"')
    assert result.output == threading.get_ident()


def test_a_slow_async_tool_takes_virtual_time() -> None:
    assert of("nodes: {a: {tool: shop.slow, with: {seconds: 50}}}").took_s == pytest.approx(50, abs=1)


def test_a_step_that_needs_more_than_an_invocation_parks_the_saga_as_it_would_on_lambda() -> None:
    result = of("nodes: {a: {tool: shop.slow, with: {seconds: 100}}}", worker_timeout="10s")
    assert (result.status, result.steps["a"].status) == ("parked", "interrupted")
    assert "a" in result.error


def test_steps_go_on_in_another_invocation_when_the_first_ends() -> None:
    nodes = [f"  n{i}: {{tool: shop.slow, with: {{seconds: 4}}, after: n{i - 1}}}" for i in range(1, 6)]
    body = "\n".join(["nodes:", "  n0: {tool: shop.slow, with: {seconds: 4}}", *nodes])
    result = of(body, worker_timeout="10s")
    assert (result.status, result.view["invocations"] > 1) == ("completed", True)


def test_a_value_that_is_kept_outside_its_entry_is_shown_all_the_same() -> None:
    result = of('nodes: {a: {tool: shop.large}}\noutput: "${ctx.a.output}"')
    assert (len(result.output), len(result.steps["a"].output)) == (100_000, 100_000)
    assert len(repr(result)) < 1_000


def test_a_stand_in_is_called_with_the_tools_arguments() -> None:
    seen: list[Any] = []

    def stand_in(cents: int, context: Context) -> str:
        seen.append((cents, context.node))
        return "from the stand-in"

    result = run(ORDER, {"item": "tea"}, tools=TOOLS, stand_ins={"shop.charge": stand_in})
    assert (result.output, seen) == ({"said": "from the stand-in"}, [(300, "charge")])
    assert run(ORDER, {"item": "tea"}, tools=TOOLS).output != result.output


def test_a_stand_in_need_not_take_the_context() -> None:
    result = run(ORDER, {"item": "tea"}, tools=TOOLS, stand_ins={"shop.charge": lambda cents: f"{cents}"})
    assert result.output == {"said": "300"}


def test_a_stand_in_can_fail_and_cannot_answer_what_the_tool_could_not() -> None:
    def fail(cents: int) -> str:
        raise StepFailure("card_declined", "no money")

    at_once = ORDER + "on_failure: [rollback]\n"
    declined = run(at_once, {"item": "tea"}, tools=TOOLS, stand_ins={"shop.charge": fail})
    assert declined.error == "card_declined: no money"
    wrong = run(ORDER, {"item": "tea"}, tools=TOOLS, stand_ins={"shop.price": lambda item: {"euros": 3}})
    assert (wrong.status, "result_invalid" in wrong.error) == ("parked", True)


def test_what_fails_the_test_inside_a_stand_in_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="must not be charged"):
        run(
            ORDER,
            {"item": "a"},
            tools=TOOLS,
            stand_ins={"shop.charge": lambda cents: pytest.fail("must not be charged")},
        )


def test_a_stand_in_for_no_tool_is_refused_with_the_nearest_name(says: Says) -> None:
    with says.raised(ToolError):
        run(ORDER, {}, tools=TOOLS, stand_ins={"shop.chrage": price})


def test_every_problem_of_a_document_is_a_note_of_the_error() -> None:
    with pytest.raises(InvalidDefinition) as raised:
        of("nodes: {a: {tool: shop.prize}, b: {tool: shop.price, after: c}}")
    notes = "\n".join(raised.value.__notes__)
    assert "line 2" in notes
    assert "shop.price" in notes
    assert "/nodes/b" in notes


def test_an_input_that_does_not_match_is_refused_as_the_api_would() -> None:
    with pytest.raises(InvalidInput) as raised:
        run(ORDER, {}, tools=TOOLS)
    assert "item" in "\n".join(raised.value.__notes__)


def test_a_workflow_can_be_given_as_a_file_and_as_one_that_was_built(tmp_path: Path, says: Says) -> None:
    file = tmp_path / "order.yaml"
    file.write_text(ORDER)
    built = Workflow("built")
    built.task("price", "shop.price", with_={"item": "tea"})
    assert run(file, {"item": "tea"}, tools=TOOLS) == run(str(file), {"item": "tea"}, tools=TOOLS)
    assert run(built, tools=TOOLS).steps["price"].output == {"cents": 300}
    with says.raised(NotFound):
        run(tmp_path / "other.yaml", tools=TOOLS)


APP = """
from baton import tool
from baton.testing import run

@tool("bakery.bake", effect="pure")
def bake(what: str) -> str:
    return "warm " + what
"""
BREAD = 'name: bread\nnodes: {bake: {tool: bakery.bake, with: {what: bread}}, next: {workflow: cake, after: bake}}\noutput: "${ctx.next.output}"'
CAKE = 'name: cake\nnodes: {bake: {tool: bakery.bake, with: {what: cake}}}\noutput: "${ctx.bake.output}"'


def test_a_name_is_a_workflow_of_the_app_and_so_are_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    package = tmp_path / "bakery_app"
    package.mkdir()
    for name, text in {
        "__init__.py": "",
        "oven.py": APP,
        "bread.yaml": BREAD,
        "cake.yml": CAKE,
        "broken.yaml": "name: [",
    }.items():
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert run("bread", app="bakery_app").output == "warm cake"
    with says.raised(NotFound):
        run("braed", app="bakery_app")
    with pytest.raises(ToolError, match="nowhere_app"):
        run("bread", app="nowhere_app")


def test_the_other_documents_are_looked_through_once_for_all_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def parse(text: str) -> Document:
        read.append(text)
        return parse_document(text)

    monkeypatch.setattr(running, "parse_document", parse)
    others = [f"{{name: looked-at-{n}, nodes: {{a: {{wait: {{for: 1s}}}}}}}}" for n in range(9)]
    parent = "\n".join(f"  c{n}: {{workflow: looked-at-{n}}}" for n in range(9))
    for _ in range(2):
        assert of(f"nodes:\n{parent}", workflows=others).status == "completed"
    assert sorted(read) == others


def test_a_tool_that_works_in_a_thread_is_waited_for() -> None:
    registry = Registry()

    @tool("cpu.hash", registry=registry)
    async def slow_hash() -> str:
        done = await asyncio.to_thread(hashlib.pbkdf2_hmac, "sha256", b"a", b"b", 100_000)
        return done.hex()[:8]

    result = run("name: cpu\nnodes: {a: {tool: cpu.hash}}", tools=registry)
    assert (result.status, result.took_s < 4) == ("completed", True)


def test_a_tool_that_talks_over_a_socket_is_waited_for() -> None:
    registry = Registry()

    @tool("net.echo", registry=registry)
    async def echo(text: str) -> str:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(f"{text}\n".encode())
            line = await reader.readline()
            writer.close()
        return line.decode()

    document = 'name: net\nnodes: {a: {tool: net.echo, with: {text: hello}}}\noutput: "${ctx.a.output}"'
    result = run(document, tools=registry)
    assert (result.output, result.took_s < 5) == ("hello\n", True)


def test_a_tool_that_waits_for_nothing_runs_into_its_timeout() -> None:
    registry = Registry()

    @tool("net.hang", registry=registry, timeout="10s")
    async def hang() -> None:
        await asyncio.Event().wait()

    result = run("name: net\non_failure: [rollback]\nnodes: {a: {tool: net.hang}}", tools=registry)
    assert result.status == "failed"
    assert result.took_s == pytest.approx(10, abs=1)


def test_it_is_called_from_a_plain_function(says: Says) -> None:
    async def within() -> None:
        run(ORDER, {"item": "tea"}, tools=TOOLS)

    with says.raised(RuntimeError):
        asyncio.run(within())


def test_a_plain_function_may_have_an_event_loop_of_its_own_as_in_its_thread_on_lambda() -> None:
    tools = Registry()

    @tool("shop.asks", registry=tools)
    def asks() -> int:
        async def answer() -> int:
            await asyncio.sleep(0)
            return 42

        return asyncio.run(answer())

    result = run("name: it\nnodes: {a: {tool: shop.asks}, b: {wait: {for: 5s}, after: a}}", tools=tools)
    assert (result.status, result.steps["a"].output, result.took_s) == ("completed", 42, 5), result


def test_a_tool_that_runs_in_circles_is_told_and_leaves_nothing_behind(
    recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MAX_ROUNDS", 2_000)
    tools = Registry()

    @tool("shop.spins", registry=tools)
    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    gc.freeze()  # what tests before have left is not its own, and takes seconds to look at
    recwarn.clear()
    with pytest.raises(RuntimeError, match="runs in circles"):
        run("name: it\nnodes: {a: {tool: shop.spins}}", tools=tools)
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


def test_a_tool_that_cannot_be_cancelled_parks_the_saga_and_ends_the_test() -> None:
    tools = Registry()

    @tool("shop.stays", registry=tools, timeout="1s")
    async def stays() -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(10)

    result = run("name: it\nnodes: {a: {tool: shop.stays}}", tools=tools)
    assert (result.status, result.error.partition(":")[0]) == ("parked", "over_budget")


@pytest.mark.parametrize(
    "value", [{1, 2}, float("nan"), object(), b"x"], ids=["set", "NaN", "object", "bytes"]
)
def test_what_no_request_could_carry_is_no_input_and_no_payload(value: Any, says: Says) -> None:
    with says.raised(ValueError):
        run(ASKS % "", value)
    with says.raised(ValueError):
        run(ASKS % "", signals={"approved": value})
