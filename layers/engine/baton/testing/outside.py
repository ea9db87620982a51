"""Environment of a saga under test: stores of standard tools, external work, and signals."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zlib import crc32

from baton.adapters.facts import StoredFacts
from baton.adapters.http_client import LazyHttpClient
from baton.adapters.memory.outside import MemoryEntities, MemoryMailer, MemoryObjects
from baton.adapters.memory.store import MemoryCheckpoints
from baton.core.expressions import LONGEST_MS, parse_duration
from baton.core.failures.names import code_of
from baton.core.log.folding.received import FAILURE, HEARTBEAT, SUCCESS, CallbackReport
from baton.core.models.usage import Usage
from baton.errors import UserError
from baton.ports import Clock
from baton.ports.models import EMBEDDING_DIMENSIONS, Embedding
from baton.ports.outside import HttpAnswer, HttpClient, HttpRequest
from baton.runtime.invocation.context import inline
from baton.tools.standard import Services

# Any host, and whatever a test starts on its own machine.
HOSTS = ("*", "127.0.0.0/8", "[::1]")
SIGNING_KEY = "the-key-of-every-test-and-of-nothing-else"
MAIL_FROM = "tester@baton.example"
EMBEDDING_MODEL = "words"


def services(clock: Clock) -> Services:
    """Return the services of one run."""
    return Services(
        http=_Http(LazyHttpClient(HOSTS)),
        entities=MemoryEntities(),
        objects=MemoryObjects(),
        mailer=MemoryMailer(),
        clock=clock,
        offload=inline,
        mail_from=MAIL_FROM,
        facts=StoredFacts(MemoryCheckpoints()),
        embedder=WordEmbedder(),
        embedding_model=EMBEDDING_MODEL,
        signing_key=SIGNING_KEY,
    )


class WordEmbedder:
    """`Embedder` of tests: the more words two texts share, the nearer they are. It knows no meaning."""

    async def embed(self, model: str, text: str, until: int) -> Embedding:
        words = re.findall(r"\w+", text.lower()) or [text]
        vector = [0.0] * EMBEDDING_DIMENSIONS
        for word in words:
            vector[crc32(word.encode()) % EMBEDDING_DIMENSIONS] += 1.0
        return Embedding(vector=vector, usage=Usage(model=model, input=len(words)))


class _Http:
    """HTTP client without idle connections, because an open socket stops virtual time."""

    def __init__(self, inner: HttpClient) -> None:
        self._inner = inner
        self._busy = 0

    async def send(self, request: HttpRequest) -> HttpAnswer:
        self._busy += 1
        try:
            return await self._inner.send(request)
        finally:
            self._busy -= 1
            if not self._busy:
                await self.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """Result of handed-over work: it succeeds with `output` or fails with `code`, `after` a time.

    heartbeat: interval of heartbeats until then. silent: the work reports nothing except heartbeats until
    `after`.
    """

    output: Any = None
    code: str = ""
    message: str = ""
    retryable: bool | None = None
    after: str | float = 0
    heartbeat: str | float = 0
    silent: bool = False

    def says(self) -> Iterator[tuple[int, CallbackReport]]:
        """Yield milliseconds after the handover with the message at that time. Raises `ValueError`."""
        end = parse_duration(self.after) if self.after else 0
        every = parse_duration(self.heartbeat) if self.heartbeat else 0
        for at in range(every, end, every) if every else ():
            yield at, CallbackReport(status=HEARTBEAT)
        if not self.silent:
            status = FAILURE if self.code else SUCCESS
            yield (
                end,
                CallbackReport(
                    status=status,
                    output=json.loads(json.dumps(self.output, allow_nan=False)),
                    code=code_of(self.code) if self.code else "",
                    message=self.message,
                    retryable=self.retryable,
                ),
            )


Plans = Mapping[str, Sequence[Elsewhere]]


def plans_of(given: Mapping[str, Any]) -> dict[str, list[Elsewhere]]:
    """Return the result of each handover, by node; the last one repeats. Raises `ValueError`."""
    found = {node: given[node] if _is_list(given[node]) else [given[node]] for node in given}
    plans = {
        node: [one if isinstance(one, Elsewhere) else Elsewhere(output=one) for one in several]
        for node, several in found.items()
    }
    for node, several in plans.items():
        try:
            for one in several:
                list(one.says())
        except (TypeError, ValueError) as error:
            raise ValueError(f"the callback of `{node}`: {error}") from error
    return plans


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Elsewhere) for one in value)


class Handovers:
    """Pending messages of handovers, ordered by time."""

    def __init__(self, plans: Plans) -> None:
        self.plans = plans
        self._count: dict[tuple[str, str], int] = {}
        self._known: set[tuple[str, str]] = set()
        self._ahead: list[tuple[int, int, str, str, CallbackReport]] = []

    def meet(self, saga: str, node: str, callback: str, at: int) -> None:
        """Record that a step waits for this callback since `at`."""
        if node not in self.plans or (saga, callback) in self._known:
            return
        self._known.add((saga, callback))
        number = self._count[saga, node] = self._count.get((saga, node), 0) + 1
        plan = self.plans[node][min(number, len(self.plans[node])) - 1]
        for after, said in plan.says():
            self._ahead.append((at + after, len(self._ahead), saga, callback, said))
        self._ahead.sort(key=lambda one: one[:2])

    def next_moment(self) -> int | None:
        """Return the time of the next message, in epoch ms, or None."""
        return self._ahead[0][0] if self._ahead else None

    def due(self, now: int) -> tuple[str, str, CallbackReport] | None:
        """Return the saga, its callback, and the message that is due now, or None."""
        if not self._ahead or self._ahead[0][0] > now:
            return None
        _, _, saga, callback, said = self._ahead.pop(0)
        return saga, callback, said


At = str | float | timedelta
_is_start = re.compile("0+ *(ms|[smhd])").fullmatch
_EXAMPLE = 'write a list of (at, name, payload), such as [("2h", "approved", {})]'


@dataclass(frozen=True, slots=True)
class TimedSignal:
    """A signal and its time: `after_ms` after the start of the saga, `at` as written in the test."""

    after_ms: int
    at: str
    name: str
    payload: Any


def timed_signals(given: Sequence[Any]) -> list[TimedSignal]:
    """Return the signals ordered by time. Raises `ValueError` for invalid ones."""
    if isinstance(given, tuple) and [*map(type, given[1:2])] == [str]:
        raise ValueError(f"signals: `{given!r:.80}` is one signal; {_EXAMPLE}")
    if not isinstance(given, (list, tuple)):
        raise ValueError(f"signals: {_EXAMPLE}")
    found = [_signal(f"signal {number}", signal) for number, signal in enumerate(given, 1)]
    return sorted(found, key=lambda signal: signal.after_ms)


CANCEL = ""
"""Name of the signal that is a cancellation: no other has none."""


def timed_cancel(given: Any) -> TimedSignal:
    """Return a cancellation: a time after the start, or an object with `at`, `undo` and `grace_s`.

    Raises `ValueError` for an invalid one.
    """
    said = dict(given) if isinstance(given, Mapping) else {"at": given}
    at, undo, grace = said.pop("at", None), said.pop("undo", False), said.pop("grace_s", 30)
    is_time = isinstance(grace, (int, float)) and not isinstance(grace, bool) and grace >= 0
    if said or at is None or not isinstance(undo, bool) or not is_time:
        raise ValueError(
            'cancel: write a time after the start such as "1h", or {"at": "1h", "undo": True, "grace_s": 5}'
        )
    return TimedSignal(
        _moment("cancel", at), str(at), CANCEL, {"undo": undo, "grace_ms": round(grace * 1_000)}
    )


def _signal(which: str, given: Any) -> TimedSignal:
    if not isinstance(given, (tuple, list)) or [len(given), type(given[1])] != [3, str]:
        raise ValueError(f"{which}: {_EXAMPLE}")
    at, name, payload = given
    return TimedSignal(_moment(which, at), str(at), name, payload)


def _moment(which: str, at: Any) -> int:
    """Return milliseconds after the start. 0 is the start itself, which elsewhere is no duration."""
    if isinstance(at, timedelta) or (isinstance(at, (int, float)) and not isinstance(at, bool)):
        seconds = at.total_seconds() if isinstance(at, timedelta) else at
        if not 0 <= seconds * 1_000 <= LONGEST_MS:
            raise ValueError(f"{which}: `{at}` must be between 0 and 366 days")
        return round(seconds * 1_000)
    if isinstance(at, str) and _is_start(at):
        return 0
    try:
        return parse_duration(at)
    except ValueError as error:
        raise ValueError(f"{which}: {error}") from None


class Post:
    """Sender of signals at their times, concurrent with the saga. `ahead` contains the pending ones."""

    def __init__(
        self,
        signals: Sequence[TimedSignal],
        begin: int,
        now: Callable[[], int],
        send: Callable[[TimedSignal, str], Awaitable[None]],
    ) -> None:
        self.ahead = list(signals)
        self._begin, self._now, self._send = begin, now, send
        self._task = asyncio.create_task(self._run())

    def next_moment(self) -> int | None:
        """Return the time of the next signal, in epoch ms. Raises the last one's refusal."""
        if self._task.done():
            self._task.result()
        return self._begin + self.ahead[0].after_ms if self.ahead else None

    async def _run(self) -> None:
        for number, signal in enumerate(list(self.ahead), 1):
            await asyncio.sleep(max(0, self._begin + signal.after_ms - self._now()) / 1_000)
            try:
                await self._send(signal, f"test-at-{number}")
            except UserError as error:
                what = f"the signal `{signal.name}`" if signal.name else "the cancellation"
                error.add_note(f"{what}, {signal.at} after the start")
                raise
            self.ahead.pop(0)
