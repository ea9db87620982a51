"""A deployment in memory whose console a browser can open: sagas run in virtual time, and only when a test lets them.

The server is threads of the test's own process; one request or one run goes on at a time.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, TypeVar

from baton.console.signing import Issuer, Signing
from baton.console.site import Site as Console
from baton.console.visits import SESSION, Seal, Session
from baton.core.limits import Limits
from baton.core.models.usage import MODEL
from baton.local.gateway import HttpRequest, to_answer, to_event
from baton.ports import SagaRef
from baton.ports.outside import HttpAnswer
from baton.ports.outside import HttpRequest as Sent
from baton.runtime.requests.rates import RateLimiter
from baton.runtime.requests.service import Service
from baton.settings import ApiSettings
from baton.testing.deployment import Answers, Deployment
from baton.testing.loop import VirtualLoop
from baton.testing.models import ScriptedModels
from baton.tools.define import Registry
from baton.web.within import Admission
from tests.browser import kitchen
from tests.kit.many_signals import add_news

T = TypeVar("T")
SECRET = "the-secret-of-the-console-client"
BEGIN = 1_795_000_000_000
REQUEST_MS = 28_000
ROLES = ("read", "run", "answer", "operate")


class Site:
    """`url` is where its console is. registry: of its tools, in place of the kitchen's. scripts: of its agents. took: what each path cost the processor last, in seconds."""

    def __init__(
        self, registry: Registry | None = None, scripts: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self.took: dict[str, float] = {}
        # One thread for all: playwright has a loop of its own in the thread of the tests.
        self._thread = ThreadPoolExecutor(1)
        self._loop = VirtualLoop()
        models = ScriptedModels()
        tools = {MODEL, "table.search", "delivery.quote"}
        says = scripts or kitchen.models()
        models.read(says, {name: {*tools, *(registry or ())} for name in says})
        self._made = Deployment(
            self._loop,
            kitchen.registry() if registry is None else registry,
            Limits(),
            begin=BEGIN,
            worker_timeout=60_000,
            caller=("acme", "ada"),
            models=models,
        )
        self.engine = engine = self._made._engine
        config = ApiSettings(table="table", bucket="bucket", worker="worker", shards=1, tenant_rate_limit=0)
        limiter = RateLimiter(engine.store.rates, engine.clock, engine.offload, 0)
        issuer = Issuer("https://issuer.test", "console", _Nothing(), _Secret(), engine.clock)
        signing = Signing(issuer, ("sub", "tenant", "roles", "groups"), engine.clock, engine.entropy)
        self.admission = Admission(engine, config, limiter, lambda: engine.clock.now() + REQUEST_MS)
        self._console = Console(signing, self.admission, engine.clock, engine.entropy)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def open(self) -> Iterator[Site]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            self._thread.shutdown()

    # -- what tests do

    def register(self, *documents: str) -> None:
        for document in documents:
            self.run(self.service().register(document, json_only=document.startswith("{")))

    def start(self, workflow: str, given: Any = None, **labels: str) -> str:
        """The id of a saga that has begun; nothing of it runs yet."""
        view, _ = self.run(self.service().start(workflow, given, key="", labels=labels))
        return str(view["id"])

    def service(self) -> Service:
        """The API, for one request of the site's own user."""
        return self._made.service()

    def settle(self, answers: Answers | None = None, **signals: Any) -> None:
        """Let all sagas run until they wait for a person, or for what never comes."""
        self.run(self._made.settle(signals, answers or {}))

    def lengthen(self, saga: str, entries: int) -> None:
        self.run(add_news(self.engine, SagaRef("acme", saga), entries))

    def run_for(self, seconds: float) -> None:
        """Let them run for some virtual time."""

        async def work() -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._made.settle({}, {})

        self.run(work())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.submit(self._loop.run_until_complete, work).result()

    def cookie(self, user: str, roles: tuple[str, ...] = ROLES) -> Any:
        """Of a person who has signed in, as playwright has it."""
        claims = {"sub": user, "tenant": "acme", "roles": list(roles), "groups": ["support"]}
        value = Session(claims, f"csrf-of-{user}").close(Seal(SECRET), self.engine.clock.now())
        return {"name": f"baton-{SESSION}", "value": value, "url": self.url}

    def get(self, path: str, user: str = "ada") -> tuple[int, int]:
        """Status and bytes of a page, without a browser."""
        cookie = self.cookie(user)
        headers = [("cookie", f"{cookie['name']}={cookie['value']}"), ("host", "localhost")]
        answer = to_answer(json.dumps(self.answer(HttpRequest("GET", path, "", headers, b""))).encode())
        return answer.status, len(answer.body)

    # -- what the server does

    def answer(self, request: HttpRequest) -> Any:
        event = to_event(
            request,
            route_key="GET /console/{page+}",
            path_parameters={},
            claims=None,
            scopes=None,
            api_id="api",
            request_id="request",
            now=time.time(),
        )

        async def work() -> Any:
            began = time.thread_time()
            found = await self._console.handle(event)
            self.took[request.path] = time.thread_time() - began
            return found

        return self.run(work())


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._do()

        def do_POST(self) -> None:
            self._do()

        def _do(self) -> None:
            path, _, query = self.path.partition("?")
            headers = [(name.lower(), value) for name, value in self.headers.items()]
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            made = HttpRequest(self.command, path, query, headers, body)
            answer = to_answer(json.dumps(site.answer(made)).encode())
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            if answer.status != 304:
                self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            if answer.status != 304:
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the output is that of the tests."""

    return Handler


class _Secret:
    async def of(self, name: str, *, is_optional: bool = False, is_refused: bool = False) -> str:
        return SECRET


class _Nothing:
    async def send(self, request: Sent) -> HttpAnswer:
        raise AssertionError("the issuer is not asked: people have signed in before")

    async def aclose(self) -> None:
        """Nothing is open."""
