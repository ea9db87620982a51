"""Work elsewhere in the tests of an application: done, failed, alive, silent, and shown while it is waited for."""

from __future__ import annotations

from baton import Context, tool
from baton.builder import Workflow
from baton.testing import Elsewhere, Result, run
from baton.tools.define import Registry
from tests.kit.sentences import Says

REGISTRY = Registry()
HANDED: list[tuple[str, str]] = []


@tool("farm.render", registry=REGISTRY)
async def render(scene: str, context: Context) -> str:
    """Hand a scene over."""
    HANDED.append((context.idempotency_key, context.callback_token))
    return "what it returns is not kept"


def film(**times: str) -> Workflow:
    w = Workflow("film", on_failure={"any": "fail"}, retry={"max_attempts": 3, "base": "1s"})
    done = w.task("render", "farm.render", with_={"scene": "a"}, callback=times or "2h")
    w.output(done.output)
    return w


def of(callbacks: object, **times: str) -> Result:
    HANDED.clear()
    return run(film(**times), {}, tools=REGISTRY, callbacks={"render": callbacks})


def test_work_elsewhere_gives_the_output_when_it_is_done() -> None:
    result = of({"frames": 24})
    assert (result.output, result.took_s < 1) == ({"frames": 24}, True)
    result = of(Elsewhere(output=[1, 2], after="90m"))
    assert (result.output, result.took_s) == ([1, 2], 5_400)
    assert of([1, 2]).output == [1, 2], "a list of values is one output"


def test_each_handover_has_a_token_of_its_own_and_the_key_of_the_step() -> None:
    result = of([Elsewhere(code="server_error"), Elsewhere(silent=True), Elsewhere(output="at last")])
    assert (result.output, len(HANDED)) == ("at last", 3)
    keys, tokens = map(set, zip(*HANDED, strict=True))
    assert (len(keys), len(tokens)) == (1, 3)
    assert result.took_s > 7_200, "the silent one took all of its time"


def test_heartbeats_keep_it_alive_and_silence_ends_it(says: Says) -> None:
    times = {"timeout": "2h", "heartbeat": "5m"}
    assert of(Elsewhere(output=1, after="1h", heartbeat="4m"), **times).output == 1
    result = of(Elsewhere(output=1, after="1h", heartbeat="6m"), **times)
    assert result.status == "failed"
    says(result.error)


def test_work_that_is_never_heard_of_runs_out_of_time(says: Says) -> None:
    result = run(film(), {}, tools=REGISTRY)
    says(result.error)


def test_a_code_is_spelled_as_the_api_spells_it() -> None:
    assert of(Elsewhere(code="Out-Of-Paper", retryable=False)).error.startswith("out_of_paper")


def test_a_failure_that_is_final_is_not_tried_again() -> None:
    result = of(Elsewhere(code="out_of_paper", message="token=abcdef123456", retryable=False))
    assert len(HANDED) == 1
    assert result.error == "out_of_paper: token=[redacted]"


def test_a_token_is_in_no_entry_and_no_failure() -> None:
    @tool("leaks", registry=(registry := Registry()))
    async def leaks(context: Context) -> None:
        HANDED.append(("", context.callback_token))
        raise ValueError(f"could not send {context.callback_token}")

    w = Workflow("w", on_failure={"any": "fail"}, retry="none")
    w.task("a", "leaks", callback="1h")
    HANDED.clear()
    result = run(w, {}, tools=registry)
    assert "could not send [redacted]" in result.error
    proof = HANDED[0][1].partition(".")[2]
    assert proof not in repr(result.entries)


def test_a_callback_of_no_node_and_a_time_that_is_none_are_refused(says: Says) -> None:
    with says.raised(ValueError):
        run(film(), {}, tools=REGISTRY, callbacks={"rendr": 1})
    with says.raised(ValueError):
        of(Elsewhere(after="soon"))
