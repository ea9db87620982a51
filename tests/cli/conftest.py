"""A small API on loopback that answers what a test told it to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from click.testing import CliRunner, Result
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from baton.cli import main
from baton.client import transport

# Status and body; None is no body, a text is a page of HTML. Headers, where they matter.
Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    text: str
    raw_query: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class FakeApi:
    """`answers` maps "METHOD /path" to what is answered one after the other; the last stays.

    `pauses` are the seconds that the command wanted to wait before it asked again; it did not.
    """

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    pauses: list[float] = field(default_factory=list)

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def on(self, what: str, *answers: Answer) -> None:
        self.answers[what] = list(answers)

    def of(self, method: str, path: str) -> list[Asked]:
        return [asked for asked in self.asked if (asked.method, asked.path) == (method, path)]

    async def answer(self, request: Request) -> Response:
        text = (await request.body()).decode()
        path = request.scope["raw_path"].decode()
        headers = dict(request.headers)
        query = request.scope["query_string"].decode()
        self.asked.append(Asked(request.method, path, dict(request.query_params), headers, text, query))
        answers = self.answers.get(
            f"{request.method} {path}", [(404, {"title": "No such thing", "detail": path})]
        )
        status, body, *more = answers.pop(0) if len(answers) > 1 else answers[0]
        sent: dict[str, str] = more[0] if more else {}
        if body is None:
            return Response(status_code=status, headers=sent)
        if isinstance(body, str):
            return Response(body, status, sent, media_type="text/html")
        kind = "application/json" if status < 400 else "application/problem+json"
        return Response(json.dumps(body), status, sent, media_type=kind)


@dataclass
class Server:
    """Listens for all tests, because starting and stopping takes longer than most of them; `api` is this test's."""

    url: str
    api: FakeApi = field(default_factory=FakeApi)

    async def answer(self, request: Request) -> Response:
        return await self.api.answer(request)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    found = Server(f"http://127.0.0.1:{listener.getsockname()[1]}")
    app = Starlette(routes=[Route("/{path:path}", found.answer, methods=["GET", "POST", "PUT"])])
    running = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(running.serve(sockets=[listener])))
    thread.start()
    yield found
    running.should_exit = True
    thread.join()


@pytest.fixture
def api(server: Server) -> FakeApi:
    server.api = FakeApi(server.url)
    return server.api


Baton = Callable[..., Result]


@pytest.fixture
def baton(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Baton:
    """`baton("show", "s1")` runs the command against the fake API, without the pauses before a retry."""
    monkeypatch.setattr(transport, "pause", api.pause)

    def run(*arguments: str, env: dict[str, str | None] | None = None, stdin: str | None = None) -> Result:
        known: dict[str, str | None] = {"BATON_URL": api.url, "BATON_TOKEN": "secret-token"}
        return CliRunner(mix_stderr=False).invoke(main, list(arguments), env=known | (env or {}), input=stdin)

    return run
