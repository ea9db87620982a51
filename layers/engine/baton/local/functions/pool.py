"""All processes of one function: finds or starts one for each invocation, up to a limit.

Beyond the limit invocations wait in order; beyond the *reserved concurrency* of the template they are
refused, as on Lambda. What one process does is in sandbox.py.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

from baton.local.functions.environment import of_process
from baton.local.functions.sandbox import Invocation, Result, Sandbox
from baton.local.processes.problems import LocalRunError, tail
from baton.local.processes.process import Children
from baton.local.processes.records import InvocationRecord, ProcessInfo, Trigger
from baton.local.processes.tasks import Tasks, settled
from baton.local.template.declared import Function


class Throttled(Exception):
    """The function's reserved concurrency is used up; Lambda answers 429."""


class Pool:
    def __init__(
        self,
        function: Function,
        children: Children,
        *,
        limit: int,
        aws: Mapping[str, str],
        variables: Mapping[str, str],
        log: Path,
        record: Callable[[InvocationRecord], None],
    ) -> None:
        self.function = function
        self.limit = limit if function.reserved is None else min(limit, function.reserved)
        self.log = log
        self._children = children
        self._aws, self._variables, self._record = aws, variables, record
        # Appending from several processes: each write lands at the end, whole lines stay whole.
        self._log = log.open("ab", buffering=0)
        self._sandboxes: list[Sandbox] = []
        self._short, self._numbers = function.logical_id.removesuffix("Function").lower(), count(1)
        self._tasks = Tasks(function.logical_id)
        self._queue: deque[Invocation] = deque()
        self._closed = False

    async def invoke(self, event: bytes, trigger: Trigger, request_id: str = "") -> Result:
        """Runs the function once on an event that is valid JSON. Raises `Throttled` or `LocalRunError`."""
        if self._closed:
            raise LocalRunError(f"{self.function.logical_id}: the local run is being stopped")
        reserved = self.function.reserved
        if reserved is not None and self._busy() + len(self._queue) >= reserved:
            raise Throttled(self.function.name)
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue.append(Invocation(request_id or str(uuid.uuid4()), trigger, event, done))
        self._dispatch()
        return await done

    async def warm(self) -> None:
        """Starts one process and waits until its imports are done; `LocalRunError` if they fail."""
        sandbox = self._start()
        waits = [asyncio.ensure_future(sandbox.ready.wait()), asyncio.ensure_future(sandbox.gone.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not sandbox.ready.is_set():
            raise LocalRunError(
                f"{self.function.logical_id} ({self.function.code}, handler {self.function.handler}) does not "
                f"start: {_message(sandbox.init_error)}; the end of {self.log}:\n{tail(self.log)}"
            )

    def retire(self) -> None:
        """No process of now takes another invocation: idle ones end at once, others when theirs has ended."""
        for sandbox in self._sandboxes:
            sandbox.retired = True
            if sandbox.current is None:
                sandbox.kill()

    def processes(self) -> list[ProcessInfo]:
        return [sandbox.info() for sandbox in self._sandboxes if sandbox.pid]

    def kill(self, pid: int) -> bool:
        """SIGKILL to that process, if it is one of this function."""
        for sandbox in self._sandboxes:
            if sandbox.pid == pid:
                sandbox.kill()
                return True
        return False

    async def close(self) -> None:
        self._closed = True
        for sandbox in self._sandboxes:
            sandbox.kill()
        await settled([asyncio.ensure_future(sandbox.gone.wait()) for sandbox in self._sandboxes])
        for invocation in self._queue:
            invocation.done.cancel()
        self._log.close()

    # ---- finding a process

    def _busy(self) -> int:
        return sum(sandbox.current is not None for sandbox in self._sandboxes)

    def _dispatch(self) -> None:
        serving = [sandbox for sandbox in self._sandboxes if not sandbox.retired]
        idle = [sandbox for sandbox in serving if sandbox.waiting]
        while self._queue and idle:
            idle.pop().assign(self._queue.popleft())
        # A process that is starting, or about to ask for its next invocation, will take one.
        coming = sum(not s.waiting and s.current is None for s in serving)
        while coming < len(self._queue) and len(self._sandboxes) < self.limit and not self._closed:
            self._start()
            coming += 1

    def _start(self) -> Sandbox:
        sandbox = Sandbox(
            self.function,
            self._log,
            self._children,
            name=f"baton-{self._short}-{next(self._numbers)}",
            idle=self._on_idle,
            ended=self._on_end,
            record=self._record,
        )
        self._sandboxes.append(sandbox)
        environment = of_process(self.function, self._aws, self._variables)
        self._tasks.start(sandbox.run(environment))
        return sandbox

    def _on_idle(self, sandbox: Sandbox) -> None:
        if sandbox.retired:
            sandbox.kill()
            return
        # The most recently used goes last and is taken first, so that few stay warm.
        self._sandboxes.remove(sandbox)
        self._sandboxes.append(sandbox)
        self._dispatch()

    def _on_end(self, sandbox: Sandbox) -> None:
        self._sandboxes.remove(sandbox)
        if not sandbox.ready.is_set() and not sandbox.retired and self._queue:
            # As on Lambda, the invocation that needed this process is told why there is none.
            invocation = self._queue.popleft()
            sandbox.refuse(invocation)
        if not self._closed:
            self._dispatch()


def _message(error: bytes) -> str:
    try:
        document = json.loads(error)
        return f"{document['errorType']}: {document['errorMessage']}"
    except (ValueError, KeyError, TypeError):
        return error.decode("utf-8", errors="replace") or "it ended without a word"
