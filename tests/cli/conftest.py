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

from baton.cli import client, main

Answer = tuple[int, Any]


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class FakeApi:
    """`answers` maps "METHOD /path" to what is answered one after the other; the last stays."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=dict)

    def on(self, what: str, *answers: Answer) -> None:
        self.answers[what] = list(answers)

    def of(self, method: str, path: str) -> list[Asked]:
        return [asked for asked in self.asked if (asked.method, asked.path) == (method, path)]

    async def answer(self, request: Request) -> Response:
        text = (await request.body()).decode()
        path = request.scope["raw_path"].decode()
        headers = dict(request.headers)
        self.asked.append(Asked(request.method, path, dict(request.query_params), headers, text))
        answers = self.answers.get(
            f"{request.method} {path}", [(404, {"title": "No such thing", "detail": path})]
        )
        status, body = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(body, str):
            return Response(body, status, media_type="text/html")
        kind = "application/json" if status < 400 else "application/problem+json"
        return Response(json.dumps(body), status, media_type=kind)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    app = Starlette(routes=[Route("/{path:path}", fake.answer, methods=["GET", "POST"])])
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    fake.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    yield fake
    server.should_exit = True
    thread.join()


Baton = Callable[..., Result]


@pytest.fixture
def baton(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Baton:
    """`baton("show", "s1")` runs the command against the fake API, with hardly a pause before a retry."""
    monkeypatch.setattr(client, "PAUSE_S", 0.001)

    def run(*arguments: str, env: dict[str, str | None] | None = None, stdin: str | None = None) -> Result:
        known: dict[str, str | None] = {"BATON_URL": api.url, "BATON_TOKEN": "secret-token"}
        return CliRunner(mix_stderr=False).invoke(main, list(arguments), env=known | (env or {}), input=stdin)

    return run
