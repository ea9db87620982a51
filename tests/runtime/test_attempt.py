"""One attempt: hooks before it, another tool in its place or before it, other arguments, a shorter context, parts of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.core.decide.decision import RunStep
from baton.core.failures.alternatives import Alternative, hooks_of, ways_of
from baton.core.graph.graph import Node
from baton.core.log.events import Failure
from baton.core.log.slots import Slot
from baton.ports import NoRoom, StepContext
from baton.runtime.invocation.attempt import MOST_HALVINGS, carry_out, tool_called, verify_effect
from baton.tools.define import Registry
from baton.tools.perform import ToolPerformer
from tests.kit.sentences import Says

Call = tuple[str, dict[str, Any], str]


class CallRecorder:
    """Tools, what they were called with and under which key, and one step of theirs."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.calls: list[Call] = []
        self.context = StepContext(
            saga="s1", tenant="acme", user="ada", node="n", attempt=2, idempotency_key="k", deadline_ms=9
        )

    def tool(self, name: str, **said: Any) -> Callable[[Callable[..., Any]], Any]:
        return tool(name, registry=self.registry, **said)

    def called(self, tool: str, context: Context, /, **arguments: Any) -> None:
        self.calls.append((tool, arguments, context.idempotency_key))

    def names(self) -> list[str]:
        return [name for name, _, _ in self.calls]

    def keys(self) -> list[str]:
        return [key for _, _, key in self.calls]

    def way(self, tool: str, name: str) -> Alternative:
        self.registry.check()
        return next(way for way in ways_of(tool, self.registry.specs()) if way.name == name)

    def run(self, tool: str, arguments: Mapping[str, Any], **more: Any) -> Any:
        step = RunStep("n", Node(name="n", kind="task", tool=tool), Slot.parse("n"), arguments, 2, **more)
        performer, specs = ToolPerformer(self.registry), self.registry.specs()
        return asyncio.run(asyncio.wait_for(carry_out(performer, specs, step, self.context), 20))

    def failure(self, tool: str, arguments: Mapping[str, Any], **more: Any) -> StepFailure:
        with pytest.raises(StepFailure) as caught:
            self.run(tool, arguments, **more)
        return caught.value


@pytest.fixture
def recorder() -> CallRecorder:
    recorder = CallRecorder()

    @recorder.tool("crm.find")
    async def find(context: Context, name: str, token: str = "old", limit: int = 5) -> str:
        recorder.called("crm.find", context, name=name, token=token, limit=limit)
        return f"{name} with {token}"

    return recorder


def with_login(recorder: CallRecorder, gives: Any) -> None:
    @recorder.tool("crm.login", carries_out=["refresh_credentials", "clear_cache"], for_tools="crm.*")
    async def login(context: Context, name: str, failure: dict[str, Any], tool: str, arguments: Any) -> Any:
        recorder.called("crm.login", context, name=name, failure=failure, tool=tool, arguments=arguments)
        context.spend("0.25")
        context.put_row("logins", "1", {"by": "crm"})
        if isinstance(gives, BaseException):
            raise gives
        return gives


LAST = Failure(
    "unauthorized", "who are you?", "n", kind="recoverable", status=401, tool="crm.find", attempt=1, at=0
)


# ---- before the tool -----------------------------------------------------------------------------------------------


def test_an_attempt_without_a_way_is_a_call_of_its_tool(recorder: CallRecorder) -> None:
    assert recorder.run("crm.find", {"name": "Ada"}) == "Ada with old"
    assert recorder.calls == [("crm.find", {"name": "Ada", "token": "old", "limit": 5}, "k")]


def test_a_tool_that_carries_out_a_hint_is_called_first_and_gives_arguments(recorder: CallRecorder) -> None:
    with_login(recorder, {"token": "new", "expires": "tomorrow"})
    way = recorder.way("crm.find", "crm.login first")
    given = {"name": "Ada", "limit": 1}
    assert recorder.run("crm.find", given, way=way, failure=LAST) == "Ada with new"
    (_, login, key), find = recorder.calls
    assert find == ("crm.find", {"name": "Ada", "token": "new", "limit": 1}, "k"), (
        "the same action has the same key"
    )
    assert key != "k"
    assert (login["name"], login["tool"], login["arguments"]) == ("Ada", "crm.find", given)
    assert login["failure"] == {
        "code": "unauthorized",
        "class": "recoverable",
        "message": "who are you?",
        "retryable": False,
        "node": "n",
        "action": "crm.find",
        "domain": "",
        "status": 401,
        "attempt": 1,
        "at": "1970-01-01T00:00:00.000Z",
    }


def test_what_a_helping_tool_spends_and_writes_is_the_steps(recorder: CallRecorder) -> None:
    with_login(recorder, None)
    recorder.run("crm.find", {"name": "Ada"}, way=recorder.way("crm.find", "crm.login first"))
    assert recorder.context.spent == [Decimal("0.25")]
    assert [row.key for row in recorder.context.rows] == ["logins"]


@pytest.mark.parametrize("gives", [None, "new", ["token"], {"expires": 5}])
def test_what_is_no_object_with_arguments_changes_nothing(recorder: CallRecorder, gives: Any) -> None:
    with_login(recorder, gives)
    assert (
        recorder.run("crm.find", {"name": "Ada"}, way=recorder.way("crm.find", "crm.login first"))
        == "Ada with old"
    )


def test_hooks_come_before_the_way_each_with_what_the_one_before_has_given(recorder: CallRecorder) -> None:
    with_login(recorder, {"token": "new"})

    @recorder.tool("cache.clear", carries_out="clear_cache", for_tools="crm.find")
    async def clear(context: Context, arguments: dict[str, Any], failure: dict[str, Any]) -> dict[str, Any]:
        recorder.called("cache.clear", context, arguments=arguments, failure=failure)
        return {"name": "Bob"}

    hook = hooks_of("crm.find", recorder.registry.specs())["clear_cache"]
    way = recorder.way("crm.find", "crm.login first")
    assert recorder.run("crm.find", {"name": "Ada"}, hooks=(hook,), way=way) == "Bob with new"
    assert recorder.names() == ["cache.clear", "crm.login", "crm.find"]
    assert recorder.calls[0][1] == {"arguments": {"name": "Ada"}, "failure": {}}
    assert recorder.calls[1][1]["name"] == "Bob"
    assert len(set(recorder.keys())) == 3


def test_a_helping_tool_has_another_key_in_each_attempt_and_the_same_when_that_is_repeated(
    recorder: CallRecorder,
) -> None:
    with_login(recorder, None)
    way = recorder.way("crm.find", "crm.login first")
    specs, performer = recorder.registry.specs(), ToolPerformer(recorder.registry)
    for attempt in (2, 2, 3):
        step = RunStep(
            "n",
            Node(name="n", kind="task", tool="crm.find"),
            Slot.parse("n"),
            {"name": "Ada"},
            attempt,
            way=way,
        )
        asyncio.run(carry_out(performer, specs, step, recorder.context))
    first, again, next_one = recorder.keys()[::2]
    assert first == again != next_one


def test_a_hook_that_fails_is_the_attempts_failure_and_the_tool_has_not_begun(recorder: CallRecorder) -> None:
    with_login(recorder, StepFailure("rate_limited", "too many logins", status=429, retry_after="7"))
    error = recorder.failure("crm.find", {"name": "Ada"}, hooks=("crm.login",))
    assert (error.code, error.message) == ("rate_limited", "`crm.login`: too many logins")
    assert (error.kind, error.status, error.retry_after, error.happened) == ("transient", 429, "7", False)
    assert recorder.names() == ["crm.login"]


def test_a_hook_that_is_not_deployed_any_more_is_told(recorder: CallRecorder, says: Says) -> None:
    error = recorder.failure("crm.find", {"name": "Ada"}, hooks=("crm.logout",))
    assert error.code == "tool_missing"
    says(error.message)


def test_without_room_for_a_hook_there_is_no_room_for_the_step(recorder: CallRecorder) -> None:
    with_login(recorder, NoRoom("full"))
    with pytest.raises(NoRoom):
        recorder.run("crm.find", {"name": "Ada"}, hooks=("crm.login",))


# ---- in its place --------------------------------------------------------------------------------------------------


def test_a_tool_that_stands_in_gets_what_it_takes_under_a_key_of_its_own(recorder: CallRecorder) -> None:
    @recorder.tool("book.find", instead_of="crm.find")
    async def book(context: Context, name: str, limit: int = 9) -> str:
        recorder.called("book.find", context, name=name, limit=limit)
        return f"{name} of the book"

    way = recorder.way("crm.find", "book.find")
    for _ in range(2):
        assert (
            recorder.run("crm.find", {"name": "Ada", "token": "t", "limit": 1}, way=way) == "Ada of the book"
        )
    assert [call[:2] for call in recorder.calls] == [("book.find", {"name": "Ada", "limit": 1})] * 2
    one, other = recorder.keys()
    assert "k" != one == other


def test_a_tool_that_takes_anything_and_one_that_is_gone_get_everything(recorder: CallRecorder) -> None:
    asked = []

    class Performer:
        async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
            asked.append((tool, dict(arguments)))

    open_one = recorder.registry.specs()["crm.find"]
    node = Node(name="n", kind="task", tool="crm.find")
    step = RunStep("n", node, Slot.parse("n"), {"x": 1}, way=Alternative(name="w", tool="other"))
    for specs in (
        {},
        {"other": type(open_one)(name="other", version="1", effect="pure", parameters={}, result={})},
    ):
        asyncio.run(carry_out(Performer(), specs, step, recorder.context))
    assert asked == [("other", {"x": 1})] * 2


def test_which_tool_does_the_work_is_known_before() -> None:
    step = RunStep("n", Node(name="n", kind="task", tool="a"), Slot.parse("n"), {})
    assert tool_called(step) == "a"
    for way, expected in [
        (Alternative(name="b", tool="b"), "b"),
        (Alternative(name="b first", tool="b", first=True), "a"),
        (Alternative(name="m=1", arguments={"m": 1}), "a"),
    ]:
        assert tool_called(RunStep("n", step.node, Slot.parse("n"), {}, way=way)) == expected


# ---- other values, and less of them --------------------------------------------------------------------------------


def with_model(recorder: CallRecorder, longest: int = 10, **said: Any) -> None:
    @recorder.tool("llm.ask", fallbacks={"model": ["m2"]}, context="text", **said)
    async def ask(context: Context, text: str, model: str = "m1") -> str:
        recorder.called("llm.ask", context, text=text, model=model)
        context.put_row("asked", text or "nothing", {})
        if len(text) > longest:
            raise StepFailure("context_exceeded", f"{len(text)} is too long")
        if model == "none":
            raise StepFailure("model_unavailable", "no model")
        return text.upper()


def test_another_value_takes_the_place_of_the_argument(recorder: CallRecorder) -> None:
    with_model(recorder)
    assert (
        recorder.run("llm.ask", {"text": "hi", "model": "m1"}, way=recorder.way("llm.ask", "model=m2"))
        == "HI"
    )
    assert recorder.calls[0][1] == {"text": "hi", "model": "m2"}
    assert recorder.keys() != ["k"], "another request must not be mistaken for the first"


def test_a_context_is_halved_until_it_fits_and_only_the_last_call_writes_rows(recorder: CallRecorder) -> None:
    with_model(recorder)
    assert (
        recorder.run(
            "llm.ask",
            {"text": "aaaa bbbb cccc dddd eeee ffff gggg"},
            way=recorder.way("llm.ask", "text shorter"),
        )
        == "GGGG"
    )
    assert [arguments["text"] for _, arguments, _ in recorder.calls] == ["eeee ffff gggg", "gggg"]
    assert [row.sort for row in recorder.context.rows] == [recorder.calls[-1][1]["text"]]
    assert len(set(recorder.keys())) == len(recorder.calls)


def test_halving_ends(recorder: CallRecorder) -> None:
    with_model(recorder, longest=-1)
    way = recorder.way("llm.ask", "text shorter")
    assert recorder.failure("llm.ask", {"text": "x" * 1_000}, way=way).code == "context_exceeded"
    assert [len(arguments["text"]) for _, arguments, _ in recorder.calls] == [500, 250, 125, 63, 32]
    assert len(recorder.calls) == MOST_HALVINGS
    recorder.calls.clear()
    assert recorder.failure("llm.ask", {"text": ""}, way=way).code == "context_exceeded"
    assert len(recorder.calls) == 1, "nothing is left to leave out"


@pytest.mark.parametrize(
    ("happened", "kind", "calls"), [(True, "", 1), (None, "transient", 1), (False, "", 5)]
)
def test_what_happens_only_once_is_not_called_again_with_a_shorter_context_if_it_may_have_happened(
    recorder: CallRecorder, happened: bool | None, kind: str, calls: int
) -> None:
    @recorder.tool("llm.ask", context="text", effect="once")
    async def ask(context: Context, text: str) -> str:
        recorder.called("llm.ask", context, text=text)
        raise StepFailure("context_exceeded", "too long", kind=kind, happened=happened)

    way = recorder.way("llm.ask", "text shorter")
    assert recorder.failure("llm.ask", {"text": "x" * 1_000}, way=way).code == "context_exceeded"
    assert recorder.keys() == ["k"] * calls


@pytest.mark.parametrize("name", ["text shorter", "text in parts"])
def test_another_failure_of_a_shorter_context_is_the_attempts(recorder: CallRecorder, name: str) -> None:
    with_model(recorder)
    error = recorder.failure(
        "llm.ask", {"text": "one two", "model": "none"}, way=recorder.way("llm.ask", name)
    )
    assert (error.code, len(recorder.calls)) == ("model_unavailable", 1)


def test_a_context_in_parts_is_one_result_and_parts_that_do_not_fit_are_parted(
    recorder: CallRecorder,
) -> None:
    with_model(recorder)
    way = recorder.way("llm.ask", "text in parts")
    assert (
        recorder.run("llm.ask", {"text": "one two three four five six"}, way=way)
        == "ONE TWO\nTHREE\nFOUR FIVE\nSIX"
    )
    asked = [arguments["text"] for _, arguments, _ in recorder.calls]
    assert asked == ["one two three", "one two", "three", "four five six", "four five", "six"]
    assert [row.sort for row in recorder.context.rows] == ["one two", "three", "four five", "six"]
    assert len(set(recorder.keys())) == len(recorder.calls)


def test_what_cannot_be_parted_further_is_told(recorder: CallRecorder) -> None:
    with_model(recorder, longest=0)
    way = recorder.way("llm.ask", "text in parts")
    assert recorder.failure("llm.ask", {"text": "x"}, way=way).code == "context_exceeded"
    assert len(recorder.calls) == 1
    recorder.calls.clear()
    assert recorder.failure("llm.ask", {"text": "x" * 64}, way=way).code == "context_exceeded"
    assert len(recorder.calls) == MOST_HALVINGS


def test_results_that_cannot_be_put_together_are_told(recorder: CallRecorder, says: Says) -> None:
    @recorder.tool("count")
    async def count(text: str) -> int:
        return len(text)

    error = recorder.failure("count", {"text": "one two"}, way=Alternative(name="w", chunk="text"))
    assert error.code == "result_invalid"
    says(error.message)


def test_where_a_part_is_done_and_the_next_is_refused_the_attempt_has_acted(recorder: CallRecorder) -> None:
    @recorder.tool("send")
    async def send(text: str) -> str:
        if text == "two":
            raise StepFailure("refused", "no", kind="permanent", unsent=True)
        return text

    way = Alternative(name="w", chunk="text")
    error = recorder.failure("send", {"text": "one two"}, way=way)
    assert (error.happened, error.unsent) == (True, False)
    assert recorder.failure("send", {"text": "two one"}, way=way).happened is False


# ---- once ----------------------------------------------------------------------------------------------------------


def test_a_tool_that_acts_once_keeps_the_key_that_was_claimed_for_it(recorder: CallRecorder) -> None:
    with_model(recorder, effect="once", verify="llm.find")

    @recorder.tool("llm.find", effect="pure")
    def look_up(text: str) -> dict[str, Any]:
        return {"happened": False}

    recorder.run("llm.ask", {"text": "hi"}, way=recorder.way("llm.ask", "model=m2"))
    recorder.run("llm.ask", {"text": "hi there dear friends"}, way=recorder.way("llm.ask", "text shorter"))
    assert set(recorder.keys()) == {"k"}


def test_verify_gets_the_arguments_that_it_takes_and_the_same_key(recorder: CallRecorder) -> None:
    with_model(recorder, effect="once", verify="llm.find")

    @recorder.tool("llm.find")
    async def find(context: Context, text: str) -> dict[str, Any]:
        recorder.called("llm.find", context, text=text)
        return {"happened": True, "result": text}

    performer, specs = ToolPerformer(recorder.registry), recorder.registry.specs()
    told = asyncio.run(
        verify_effect(performer, specs, "llm.ask", {"text": "hi", "model": "m1"}, recorder.context)
    )
    assert told == {"happened": True, "result": "hi"}
    assert recorder.calls == [("llm.find", {"text": "hi"}, "k")]


# ---- cancelled -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"hooks": ("wait",)}, {"way": Alternative(name="w", shorten="text")}])
def test_cancelling_an_attempt_cancels_what_it_waits_for(recorder: CallRecorder, how: dict[str, Any]) -> None:
    seen: list[str] = []

    async def main() -> None:
        begun = asyncio.Event()

        @recorder.tool("wait")
        async def wait(text: str) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        step = RunStep("n", Node(name="n", kind="task", tool="wait"), Slot.parse("n"), {"text": "a b"}, **how)
        task = asyncio.create_task(
            carry_out(ToolPerformer(recorder.registry), recorder.registry.specs(), step, recorder.context)
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 20))
    assert seen == ["cancelled"]
