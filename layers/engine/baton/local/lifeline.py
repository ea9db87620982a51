"""First code of every child process: tie its life to its parent's, then become `python -m MODULE`.

Run as a script (`python -P lifeline.py NAME PARENT_PID MODULE [ARGUMENT …]`) with the standard library only.
It is a separate script because code between fork and exec (`preexec_fn`) is unsafe in a parent with threads.
Only Linux supports the tie; guard.py handles other systems and the children's own processes. not_shipped.py
lists the modules hidden from each program.

With MODULE `fork`, it is the fork server of the functions: it imports the modules that are its arguments,
then forks a process for each line of its input, a JSON object. It answers `started NUMBER PID` and
`ended NUMBER STATUS`.
It has one thread, and none of what it imports has read the environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import json
import os
import runpy
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15  # Linux keeps 15 characters of it; the whole name is in the command line
_RUNTIME = "awslambdaric"


def _die_with(parent: int) -> None:
    """Send SIGKILL to this process when its parent ends, for whatever reason."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above took effect
        os._exit(1)


def _call_me(name: str) -> None:
    """Set the name shown by `ps` and `top`, if the system supports it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())


def _hide_what_is_not_shipped(program: str) -> Any:
    spec = importlib.util.spec_from_file_location("not_shipped", Path(__file__).with_name("not_shipped.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    finder = module.NotShipped(sys.path, program)
    sys.meta_path.insert(0, finder)
    return finder


def _next_function() -> dict[str, Any]:
    """Serve requests until the last process has ended. Only the forked process returns, with its request."""
    own, running, text = os.getpid(), dict[int, tuple[int, int]](), b""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    is_open = True
    while is_open or running:
        for handle, _ in poll.poll():
            if handle in running:
                number, pid = running.pop(handle)
                poll.unregister(handle)
                os.close(handle)
                _tell("ended", number, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                continue
            chunk = os.read(0, 65_536)
            if not chunk:
                poll.unregister(0)
                is_open = False
            *lines, text = (text + chunk).split(b"\n")
            for request in map(json.loads, lines):
                if not (pid := os.fork()):
                    for inherited in running:
                        os.close(inherited)
                    return {**request, "parent": own}
                handle = os.pidfd_open(pid)
                running[handle] = request["number"], pid
                poll.register(handle, select.POLLIN)
    sys.exit()


def _tell(word: str, number: int, value: int) -> None:
    os.write(1, f"{word} {number} {value}\n".encode())


def _become(function: dict[str, Any], shared: list[str], hidden: Any) -> None:
    """Turn this forked process into what `Children.start` would have started."""
    os.setsid()  # before its parent knows it: the group is what is killed
    _tell("started", function["number"], os.getpid())
    _call_me(function["name"])
    _die_with(function["parent"])
    os.chdir(function["folder"])
    for file, flags, places in (
        (os.devnull, os.O_RDONLY, (0,)),
        (function["log"], os.O_WRONLY | os.O_APPEND, (1, 2)),
    ):
        opened = os.open(file, flags)
        for place in places:
            os.dup2(opened, place)
        os.close(opened)
    environment = function["environment"]
    own = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry not in shared]
    arguments = [_RUNTIME, *function["arguments"]]
    if needs_its_own_start(own, hidden):
        own_start = [sys.executable, "-P", __file__, function["name"], str(function["parent"]), *arguments]
        os.execve(sys.executable, own_start, environment)  # noqa: S606  # this interpreter
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.path[:0] = [function["folder"], *own]
    sys.argv = arguments


def needs_its_own_start(folders: list[str], hidden: Any) -> bool:
    """Return true if these folders have another version of a module that was imported for all functions."""
    if hidden.differs_with(folders):
        return True
    known = {name.partition(".")[0] for name in sys.modules} - {"__main__"}
    for folder in folders:
        with contextlib.suppress(OSError):
            if any(path.name.partition(".")[0] in known for path in Path(folder).iterdir()):
                return True
    return False


def _serve(modules: list[str]) -> None:
    hidden, shared = _hide_what_is_not_shipped(_RUNTIME), os.environ["PYTHONPATH"].split(os.pathsep)
    for module in modules:
        with contextlib.suppress(Exception):  # the function that needs it says why
            importlib.import_module(module)
    gc.collect()
    gc.freeze()
    _become(_next_function(), shared, hidden)


def main(arguments: list[str]) -> None:
    _call_me(arguments[0])
    _die_with(int(arguments[1]))
    sys.argv = arguments[2:]
    if sys.argv[0] == "fork":
        _serve(sys.argv[1:])
    else:
        sys.path.insert(0, str(Path.cwd()))  # what `python -m` does; -P kept this file's own folder out
        _hide_what_is_not_shipped(sys.argv[0])
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
