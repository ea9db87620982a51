"""The code of Python conditions, run by Monty: an interpreter of its
own, in a process of its own for each question.

How such a process is limited, and what its outcomes mean.
See docs/adr/0020-each-python-condition-runs-in-a-monty-process-of-its-own.md.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from baton.core.conditions.model import SandboxAnswer, SandboxQuestion
from baton.errors import SandboxUnavailable
from baton.ports import Offload

if TYPE_CHECKING:
    from pydantic_monty import MontyError, MontySession, ResourceLimits

# Whatever a document says; its compiler has the same limits.
MAX_TIMEOUT_MS: Final = 10_000
MAX_MEMORY_MB: Final = 256
_START_LIMIT_S: Final = 15.0  # for a process that does not come up; more than any condition may take
_MAX_DEPTH: Final = 500  # of calls
_MAX_REQUESTS: Final = 50  # to this process: for files, modules and names that are nowhere; all are refused
_MAX_TEXT: Final = 500  # of an exception's text in a message
_MIB: Final = 1 << 20

# What runs inside, with the data and the author's code as its inputs. The code is exec'd, because a `return` at its
# top would end a feed with any value, and this process would have to take apart a list of lists of lists …; so what
# comes back is a boolean or a text of at most 80 characters.
_PROGRAM: Final = """\
import json as _baton
_baton = _baton.loads(_baton_data)
exec(_baton_code)
_baton = evaluate(_baton["output"], _baton["context"])
_baton if _baton is True or _baton is False else f"{type(_baton).__name__!s:.80}"
"""
_LOADING, _DEFINING, _CALLING = 2, 3, 4  # lines of it
_AUTHORS: Final = "<string>"  # the name of the author's code in tracebacks
_SYNTAX: Final = re.compile(r" \(<string>, line (\d+)\)$")

# Looking for the program is not for several threads: sysconfig, until Python 3.12, is not while it begins.
_ONE_AT_A_TIME: Final = threading.Lock()

_log = logging.getLogger(__name__)


class MontySandbox:
    """`Sandbox` that runs code in processes of the package's program.
    `offload` waits for them; its number of threads limits how many run at a time.
    """

    def __init__(self, offload: Offload) -> None:
        self._offload = offload

    async def answer(self, question: SandboxQuestion) -> SandboxAnswer:
        return await self._offload(_ask, question)


def _ask(question: SandboxQuestion) -> SandboxAnswer:
    """Run the code in a new process with an empty environment, which ends with this call."""
    timeout_ms = min(question.timeout_ms, MAX_TIMEOUT_MS)
    memory_mb = min(question.memory_mb, MAX_MEMORY_MB)
    limits: ResourceLimits = {
        "max_feed_duration_secs": timeout_ms / 1_000,
        "max_memory": memory_mb * _MIB,
        "max_recursion_depth": _MAX_DEPTH,
        "max_suspensions": _MAX_REQUESTS,
    }
    monty = _library()
    try:
        with _ONE_AT_A_TIME:
            pool = monty.Monty(
                binary_path=_program(monty.__file__),
                min_processes=0,
                max_processes=1,
                request_timeout=_START_LIMIT_S,
                feed_duration_limit_grace=0.0,  # killed at the very limit, whatever the interpreter is at
            )
        # Nothing but the question decides: no clock, no waiting, and the same random numbers each time.
        checkout = pool.checkout(
            limits=limits,
            os_policy={"datetime": "call_host", "sleep": "call_host", "random_start": {"seed": question.key}},
        )
        with pool, checkout as session:
            _confine(session.worker_pid, timeout_ms, memory_mb)
            return _run(session, question, timeout_ms, memory_mb)
    except (OSError, RuntimeError, monty.MontyError) as error:
        raise SandboxUnavailable(f"no process can be started for a Python condition: {error}") from error


def _library() -> ModuleType:
    """Import the library at the first question, for half a tenth of a second."""
    try:
        import pydantic_monty
    except ImportError as error:
        raise SandboxUnavailable(
            f"Python conditions need `pydantic-monty` in layers/app/requirements.txt: {error}"
        ) from error
    return pydantic_monty


def _program(package: str | None) -> Path | None:
    """Return the package's program, as a layer has it; None leaves the search to the package."""
    beside = Path(package or "").parents[1] / "bin" / "monty"
    return beside if beside.is_file() else None


def _confine(pid: int | None, timeout_ms: int, memory_mb: int) -> None:
    """Set the kernel's limits, a second net below the interpreter's own if the interpreter is broken."""
    if sys.platform != "linux" or pid is None:
        return
    import resource

    most = {
        resource.RLIMIT_CPU: timeout_ms // 1_000 + 2,
        resource.RLIMIT_NOFILE: 0,  # no new ones: no files, no sockets
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        # Its own accounting is a fifth too low at worst, and a process without any code has 17 MB.
        resource.RLIMIT_DATA: (memory_mb * 3 // 2 + 32) * _MIB,
    }
    try:
        for limit, value in most.items():
            resource.prlimit(pid, limit, (value, value))
    except ProcessLookupError:
        pass  # the first question to it will tell
    except PermissionError as error:
        _log.warning("the kernel refuses to limit a condition's process; its own limits hold: %s", error)


def _run(session: MontySession, question: SandboxQuestion, timeout_ms: int, memory_mb: int) -> SandboxAnswer:
    from pydantic_monty import MontyError

    inputs = {"_baton_data": question.data, "_baton_code": question.code}
    try:
        value = session.feed_run(_PROGRAM, inputs=inputs, print_callback=_drop)
    except MontyError as error:
        message = str(error)[:_MAX_TEXT]  # cut at once: it may be as long as its author liked
        return _limit_reached(error, message, timeout_ms, memory_mb) or _author_failed(error, message)
    if isinstance(value, bool):
        return SandboxAnswer(value=value)
    text = f"evaluate() returned {value}, not True or False: wrap it in `bool(…)`"
    return SandboxAnswer(value=None, code="condition_not_boolean", message=text)


def _limit_reached(error: MontyError, message: str, timeout_ms: int, memory_mb: int) -> SandboxAnswer | None:
    """Return the failure that a limit is to blame for, or None."""
    from pydantic_monty import MontyCrashedError, MontyRuntimeError

    died = isinstance(error, MontyCrashedError)
    kind = message.partition(":")[0]
    # The interpreter's own end of time leaves no traceback, unlike a TimeoutError that the author raised.
    ended = kind == "TimeoutError" and isinstance(error, MontyRuntimeError) and not error.traceback()
    if ended or (isinstance(error, MontyCrashedError) and error.timed_out):
        most = f"{MAX_TIMEOUT_MS // 1_000}s"
        text = f"evaluate() took longer than {timeout_ms} ms: let it do less, or raise `timeout` ({most} at most)"
        return SandboxAnswer(value=None, code="condition_timeout", message=text)
    if died or kind == "MemoryError":
        text = (
            f"evaluate() needed more than {memory_mb} MB, with its data: let it do less, name less in `needs`, "
            f"or raise `max_memory_mb` ({MAX_MEMORY_MB} at most)"
        )
        return SandboxAnswer(value=None, code="condition_memory", message=text)
    return None


def _author_failed(error: MontyError, text: str) -> SandboxAnswer:
    """Return the failure of the code itself, by how far it came."""
    from pydantic_monty import MontyRuntimeError, MontySyntaxError

    frames = error.traceback() if isinstance(error, (MontyRuntimeError, MontySyntaxError)) else []
    stage = next((frame.line for frame in frames if frame.filename != _AUTHORS), _CALLING)
    line, inside = next(
        ((frame.line, frame.function_name) for frame in reversed(frames) if frame.filename == _AUTHORS),
        (0, None),
    )
    code = "condition_error" if inside else "condition_invalid"
    if stage == _LOADING:
        code, text = "condition_error", f"the data cannot be passed to the sandbox: {text}"
    elif stage == _DEFINING and (found := _SYNTAX.search(text)) and not line:
        line, text = int(found[1]), text[: found.start()]
    elif stage == _CALLING and (not line or text.startswith("TypeError: evaluate() ")):
        code, text = "condition_invalid", f"it must define `evaluate(output, context)`: {text}"
    elif text.startswith("KeyError"):
        text += "; ask with `.get(…)`; `context` has what `needs` names"
    return SandboxAnswer(value=None, code=code, message=f"line {line}: {text}" if line else text)


def _drop(stream: str, text: str) -> None:
    """Discard all printed text."""
