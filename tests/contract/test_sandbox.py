"""The sandbox of Python conditions: an answer to everything, within the limits, and nothing left behind.

All cases are asked at once by the first test; the others look at what came of theirs.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from baton.adapters import monty_sandbox
from baton.adapters.monty_sandbox import MontySandbox
from baton.core.conditions.model import SandboxAnswer, SandboxQuestion
from baton.errors import EngineFault, SandboxUnavailable
from baton.ports import Sandbox
from baton.runtime.invocation.context import Threads, inline
from tests.contract.condition_code import HOSTILE, MISTAKES, ORDINARY, Case, body
from tests.kit.sentences import Says

CASES = ORDINARY | MISTAKES | HOSTILE
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def question(case: Case) -> SandboxQuestion:
    data = msgspec.json.encode({"output": case.output, "context": case.context})
    key = hashlib.sha256(case.code.encode() + data).hexdigest()
    return SandboxQuestion(
        key=key, code=case.code, data=data, timeout_ms=case.timeout_ms, memory_mb=case.memory_mb
    )


def ask(*cases: Case, at_once: int = 2) -> list[SandboxAnswer]:
    async def main() -> list[SandboxAnswer]:
        sandbox: Sandbox = MontySandbox(Threads(at_once))
        return await asyncio.gather(*(sandbox.answer(question(case)) for case in cases))

    return asyncio.run(main())


def children() -> set[int]:
    """The processes that this one has started, dead ones that were never waited for included."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has ended meanwhile
            found.update(int(pid) for pid in (task / "children").read_text().split())
    return found


def handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(scope="module")
def answers() -> Mapping[str, SandboxAnswer]:
    return dict(zip(CASES, ask(*CASES.values(), at_once=4), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_whatever_the_code_does_there_is_an_answer(name: str, answers: Mapping[str, SandboxAnswer]) -> None:
    case, answer = CASES[name], answers[name]
    if isinstance(case.wanted, bool):
        assert answer == SandboxAnswer(value=case.wanted)
        return
    if answer.value is not None:
        assert answer == SandboxAnswer(value=answer.value)
        assert answer.value in case.wanted
        return
    assert answer.code in case.wanted, answer
    assert case.says in answer.message
    assert 10 < len(answer.message) < 700


def test_a_limit_that_is_reached_is_named_with_what_to_change(answers: Mapping[str, SandboxAnswer]) -> None:
    late, large = answers["an endless loop"], answers["a large text"]
    assert "150 ms" in late.message
    assert "`timeout` (10s at most)" in late.message
    assert "16 MB" in large.message
    assert "`max_memory_mb` (256 at most)" in large.message


def test_what_the_interpreter_itself_cannot_stop_is_killed_in_its_time() -> None:
    async def main() -> tuple[SandboxAnswer, float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        # By itself it takes half a minute.
        answer = await MontySandbox(Threads(1)).answer(question(HOSTILE["a pattern that nothing stops"]))
        return answer, loop.time() - began

    answer, seconds = asyncio.run(main())
    assert answer.code == "condition_timeout"
    assert seconds < 5


def test_more_than_the_most_is_never_given() -> None:
    case = Case(body("return len('x' * 300_000_000) > 0"), False, memory_mb=4_000)
    assert ask(case)[0].code == "condition_memory"


def test_a_memory_that_is_given_can_be_used() -> None:
    case = Case(body("return len('x' * 12_000_000) > 0"), True, memory_mb=16)
    assert ask(case) == [SandboxAnswer(value=True)]


def test_equal_questions_have_equal_answers() -> None:
    case = Case("import random\n" + body("return random.random() < 0.5"), True)
    others = [Case(case.code, True, output=n) for n in range(8)]
    first = ask(*others)
    assert first == ask(*others)
    assert {answer.value for answer in first} == {True, False}


def test_two_at_once_do_not_disturb_each_other_nor_the_event_loop() -> None:
    async def main() -> tuple[SandboxAnswer, SandboxAnswer, int]:
        sandbox = MontySandbox(Threads(2))
        turns = 0
        endless = asyncio.ensure_future(sandbox.answer(question(HOSTILE["an endless loop"])))
        quick = asyncio.ensure_future(sandbox.answer(question(ORDINARY["growth"])))
        while not endless.done():
            turns += 1
            await asyncio.sleep(0)
        return await quick, endless.result(), turns

    quick, endless, turns = asyncio.run(main())
    assert (quick.value, endless.code) == (True, "condition_timeout")
    assert turns > 10


def test_one_question_leaves_nothing_for_the_next() -> None:
    case = Case("kept = 1\n" + body("return True"), True)
    curious = Case(body("return kept == 1"), frozenset({"condition_error"}))
    [first], [second] = ask(case), ask(curious)
    assert first.value is True
    assert "'kept' is not defined" in second.message


@linux
def test_a_process_lives_as_long_as_its_question_with_an_empty_environment_and_the_kernels_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not for conditions")
    before = children()

    def look(pid: int) -> tuple[str, str, list[str]] | None:
        process = Path(f"/proc/{pid}")
        with suppress(OSError):  # it has ended
            limits = (process / "limits").read_text()
            # The last of the limits that are set: twenty megabytes, half as much again, and 32 for the program.
            if "Max data size             65011712" in limits:
                open_ = [str(handle.readlink()) for handle in (process / "fd").iterdir()]
                return (process / "environ").read_text(), limits, open_
        return None

    async def main() -> tuple[str, str, list[str]] | None:
        slow = Case(body("while True: pass"), False, timeout_ms=300, memory_mb=20)
        asked = asyncio.ensure_future(MontySandbox(Threads(1)).answer(question(slow)))
        seen = None
        while not asked.done():
            await asyncio.sleep(0)
            seen = seen or next(filter(None, map(look, children() - before)), None)
        return seen

    while (told := asyncio.run(main())) is None:  # a busy machine missed the moment
        pass
    environment, limits, open_ = told
    assert environment == ""
    assert limits.count("\nMax open files            0 ") == 1
    assert limits.count("\nMax processes             0 ") == 1
    assert [handle for handle in open_ if "socket" in handle] == []
    assert children() == before


@linux
def test_neither_processes_nor_handles_are_left(answers: Mapping[str, SandboxAnswer]) -> None:
    assert answers
    before = children(), handles()
    ask(*[ORDINARY["a comparison"], HOSTILE["a large text"], HOSTILE["an exit"]] * 4)
    assert (children(), handles()) == before


@pytest.mark.parametrize("program", ["/nowhere/monty", sys.executable, "/dev/null"])
def test_a_program_that_does_not_run_is_the_engines_fault_and_not_the_authors(
    program: str, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setenv("MONTY_BIN", program)
    with pytest.raises(SandboxUnavailable) as refused:
        asyncio.run(MontySandbox(inline).answer(question(ORDINARY["a comparison"])))
    says.within(str(refused.value))
    assert issubclass(SandboxUnavailable, EngineFault)


def test_in_a_layer_the_program_is_beside_its_package(tmp_path: Path) -> None:
    package = tmp_path / "python/pydantic_monty/__init__.py"
    assert monty_sandbox._program(str(package)) is None
    program = tmp_path / "python/bin/monty"
    program.parent.mkdir(parents=True)
    program.touch()
    assert monty_sandbox._program(str(package)) == program
