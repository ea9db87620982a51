"""The world outside in memory: entities, objects, mail and models. For tests, of applications too."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from baton.core.models.usage import Price, Usage
from baton.ports import Clock, StepFailure
from baton.ports.models import CALLS, STOP, ModelAnswer, ModelFailure, ModelRequest, Over
from baton.ports.outside import KEYS_KEPT, Entity, Letter, StoredObject, Written

_NOTHING = Entity(version=0, data=None)


@dataclass(frozen=True)
class _Kept:
    """An entity, None if there is none; how often it was written, the keys
    of its newest writes, and what the last one has replaced.
    """

    entity: Entity | None = None
    version: int = 0
    keys: tuple[str, ...] = ()
    before: Entity | None = None


class MemoryEntities:
    """`Entities` in memory."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str, str], _Kept] = {}
        self._lock = threading.Lock()

    def put(
        self,
        tenant: str,
        type: str,
        id: str,
        data: Any,
        *,
        key: str,
        expected: int | None = None,
        keeps_before: bool = False,
    ) -> Written:
        def written(there: _Kept) -> _Kept:
            before = (there.entity or _NOTHING) if keeps_before else None
            made = Entity(version=there.version + 1, data=copy.deepcopy(data))
            return replace(there, entity=made, before=before)

        return self._write((tenant, type, id), written, key, expected)

    def delete(self, tenant: str, type: str, id: str, *, key: str, expected: int) -> Written:
        return self._write(
            (tenant, type, id), lambda there: replace(there, entity=None, before=None), key, expected
        )

    def _write(
        self,
        where: tuple[str, str, str],
        written: Callable[[_Kept], _Kept],
        key: str,
        expected: int | None,
    ) -> Written:
        with self._lock:
            there = self.stored.get(where, _Kept())
            if key in there.keys:
                since = len(there.keys) - 1 - there.keys.index(key)
                before = None if since else copy.deepcopy(there.before)
                return Written(version=there.version - since, before=before)
            now = 0 if there.entity is None else there.version
            if expected is not None and expected != now:
                return Written(version=now, conflict=True)
            keys = (*there.keys, key)
            kept = keys[KEYS_KEPT // 2 :] if len(keys) >= KEYS_KEPT else keys
            made = self.stored[where] = replace(written(there), version=there.version + 1, keys=kept)
            return Written(version=made.version, is_new=True, before=copy.deepcopy(made.before))

    def get(self, tenant: str, type: str, id: str) -> Entity | None:
        found = self.stored.get((tenant, type, id))
        return None if found is None else copy.deepcopy(found.entity)


class MemoryObjects:
    """`Objects` in memory."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str, str], tuple[bytes, str]] = {}

    def put(self, tenant: str, name: str, data: bytes, content_type: str, *, key: str = "") -> StoredObject:
        digest = hashlib.sha256(data).hexdigest()
        is_new = (tenant, name, digest) not in self.stored
        _, by = self.stored.setdefault((tenant, name, digest), (data, key))
        is_new = is_new or bool(key and by == key)
        ref = f"memory://T/{tenant}/objects/{name}.{digest}"
        return StoredObject(ref=ref, sha256=digest, size=len(data), is_new=is_new)

    def get(self, tenant: str, name: str, sha256: str) -> bytes | None:
        data, _ = self.stored.get((tenant, name, sha256), (None, ""))
        return data

    def delete(self, tenant: str, name: str, sha256: str) -> None:
        self.stored.pop((tenant, name, sha256), None)


class MemoryMailer:
    """`Mailer`; `sent` has every letter."""

    def __init__(self) -> None:
        self.sent: list[Letter] = []

    def send(self, letter: Letter) -> str:
        self.sent.append(letter)
        return f"letter-{len(self.sent)}"


Script = Callable[[ModelRequest], ModelAnswer | Awaitable[ModelAnswer]]


class MemoryModels:
    """Models that give the answers of a script, and keep the requests.

    An answer without usage counts a token for four bytes. The script may raise `StepFailure`, and may be
    asynchronous.
    """

    def __init__(
        self, script: Script, clock: Clock, prices: Mapping[str, Price] | Price | None = None
    ) -> None:
        """Create the fake models. `prices`: by the model's name, or of any."""
        self._script, self._clock, self._prices = script, clock, prices
        self.requests: list[ModelRequest] = []
        self._ids: dict[str, str] = {}
        self._handed: dict[str, tuple[ModelRequest, asyncio.Future[ModelAnswer]]] = {}

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        left = request.until - self._clock.now() if request.until else None
        if left is not None and left <= 0:
            raise StepFailure("timeout", "there was no time left to ask the model")
        try:
            async with asyncio.timeout(None if left is None else left / 1_000):
                answer = self._script(request)
                found = answer if isinstance(answer, ModelAnswer) else await answer
        except TimeoutError as error:
            raise StepFailure(
                "timeout", f"the model did not give the whole answer within {left} ms", happened=True
            ) from error
        return _filled(request, found, len(self.requests))

    async def submit(self, request: ModelRequest) -> str:
        """Ask the script at once; the first poll finds its answer."""
        response = self._ids.setdefault(
            request.key or f"request-{len(self.requests)}", f"resp-{len(self._ids) + 1}"
        )
        if response not in self._handed:
            self.requests.append(request)
            self._handed[response] = (request, asyncio.ensure_future(self._later(request)))
        return response

    async def _later(self, request: ModelRequest) -> ModelAnswer:
        answer = self._script(request)
        return answer if isinstance(answer, ModelAnswer) else await answer

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        if response not in self._handed:
            raise ModelFailure("invalid_response", f"there is no response `{response}`", None)
        request, answer = self._handed[response]
        await asyncio.sleep(0)
        if not answer.done():
            return None
        if answer.cancelled():
            raise ModelFailure("service_unavailable", "the request was cancelled", None)
        if (error := answer.exception()) is not None:
            code = error.code if isinstance(error, StepFailure) else "server_error"
            raise ModelFailure(code, str(error), None) from error
        return _filled(request, answer.result(), len(self.requests))

    async def cancel(self, model: str, response: str) -> None:
        if response in self._handed:
            self._handed[response][1].cancel()

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over | None:
        """Read the body as the id of a response; no signature is needed."""
        request, answer = self._handed.get(body.decode(), (None, None))
        if request is None or answer is None or not answer.done():
            return None
        return Over(response=body.decode(), token=request.token)

    def price(self, model: str) -> Price | None:
        return self._prices.get(model) if isinstance(self._prices, Mapping) else self._prices


def _filled(request: ModelRequest, answer: ModelAnswer, number: int) -> ModelAnswer:
    usage = answer.usage
    if not (usage.input or usage.output):
        written = [answer.text, *(call.name + call.arguments for call in answer.calls)]
        usage = Usage(
            input=-(-len(msgspec.json.encode(request.messages)) // 4),
            output=-(-sum(len(text.encode()) for text in written) // 4),
        )
    model = answer.model or request.model.rpartition("/")[2]
    return msgspec.structs.replace(
        answer,
        usage=msgspec.structs.replace(usage, model=usage.model or model),
        model=model,
        id=answer.id or f"answer-{number}",
        finish=CALLS if answer.calls and answer.finish == STOP else answer.finish,
    )
