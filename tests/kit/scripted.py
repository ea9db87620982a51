"""A model that answers by a function of the request, and remembers every request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from baton.core.models.usage import Price, Usage
from baton.ports.models import CALLS, STOP, ModelAnswer, ModelCall, ModelFailure, ModelRequest, Over

Script = Callable[[ModelRequest, int], ModelAnswer]
PRICE = Price(input=1_000_000, output=10_000_000)  # a micro-dollar for a token read, ten for one written


def says(text: str, *, read: int = 100, written: int = 10, finish: str = STOP) -> ModelAnswer:
    return ModelAnswer(text=text, finish=finish, usage=Usage(input=read, output=written), model="scripted")


def asks_for(*calls: tuple[str, Any], read: int = 100, written: int = 10) -> ModelAnswer:
    """Calls by their names on the wire; arguments as a value, or as the text that the model writes."""
    wanted = tuple(
        ModelCall(id=f"c{i}", name=name, arguments=given if isinstance(given, str) else json.dumps(given))
        for i, (name, given) in enumerate(calls)
    )
    return ModelAnswer(calls=wanted, finish=CALLS, usage=Usage(input=read, output=written), model="scripted")


@dataclass(frozen=True)
class Given:
    """A request in the background: which it was, and when it has its answer, in seconds of the loop."""

    request: ModelRequest
    number: int
    at: float


@dataclass
class Scripted:
    """`script` is given the request and its number, from 0; what it raises is raised."""

    script: Script
    takes_s: float = 1.0
    requests: list[ModelRequest] = field(default_factory=list)
    known: tuple[str, ...] = ("m",)
    thinks_s: float = 20.0
    given: dict[str, Given] = field(default_factory=dict)
    looks: list[tuple[float, str]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    types: str = ""  # what it writes while it takes its time, word by word

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        number = len(self.requests) - 1
        if request.draft is not None and self.types:
            began, loop = asyncio.get_running_loop().time(), asyncio.get_running_loop()
            words = self.types.split(" ")

            def read() -> str:
                share = (loop.time() - began) / self.takes_s
                return "".join(f"{word} " for word in words[: int(share * len(words))])

            request.draft.read = read
        await asyncio.sleep(self.takes_s)
        return self.script(request, number)

    async def submit(self, request: ModelRequest) -> str:
        """A request in the background takes `thinks_s`; each is a response of its own."""
        self.requests.append(request)
        number = len(self.requests) - 1
        await asyncio.sleep(self.takes_s)
        at = asyncio.get_running_loop().time() + self.thinks_s
        self.given[f"resp_{number}"] = Given(request, number, at)
        return f"resp_{number}"

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        now, given = asyncio.get_running_loop().time(), self.given[response]
        self.looks.append((now, response))
        if response in self.cancelled:
            raise ModelFailure("service_unavailable", "cancelled", None)
        return self.script(given.request, given.number) if now >= given.at else None

    async def cancel(self, model: str, response: str) -> None:
        self.cancelled.append(response)

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over | None:
        """The body is the id of the response; no signature is needed."""
        given = self.given.get(body.decode())
        over = given is not None and asyncio.get_running_loop().time() >= given.at
        return Over(response=body.decode(), token=given.request.token) if given is not None and over else None

    def price(self, model: str) -> Price | None:
        return PRICE if model in self.known else None


def in_turn(*answers: ModelAnswer | Exception) -> Script:
    """One answer after the other; the last one for ever."""

    def script(_: ModelRequest, number: int) -> ModelAnswer:
        answer = answers[min(number, len(answers) - 1)]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return script


def by_turn(*answers: ModelAnswer) -> Script:
    """What a model without memory says: by how often the assistant has spoken in the messages."""

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        spoken = sum(int(message["role"] == "assistant") for message in request.messages)
        return answers[min(spoken, len(answers) - 1)]

    return script
