"""The scripted provider of the examples beside a test, and the adapter that asks it.

No assertions here.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from starlette.types import Receive, Scope, Send

from baton import settings
from baton.adapters.clock import SystemClock
from baton.adapters.credentials import Credentials, VariableSecrets
from baton.adapters.models.deployed import DeployedModels
from baton.adapters.models.profiles import Profiles
from baton.ports import Clock
from baton.runtime.invocation.context import Threads
from examples.services.books import Books
from examples.services.models import Asked, Provider, Refusal, Reply, Script, application

THREADS = Threads(4)
KEY = "sk-of-every-test-and-of-nothing-else"


class Served:
    """A provider at work: the script that it follows can be changed, `asked` is what it got."""

    def __init__(self) -> None:
        self.url = ""
        self.forget()

    def forget(self) -> None:
        """Begin anew at the same address, without a script."""
        self.script: Script = _nothing
        self.provider = Provider(Books("models"), self._follow)
        self._application = application(self.provider)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)

    def _follow(self, asked: Asked) -> Reply | Refusal | Awaitable[Reply | Refusal]:
        return self.script(asked)

    @property
    def asked(self) -> list[Asked]:
        return self.provider.asked


def _nothing(asked: Asked) -> Reply:
    raise AssertionError("the test has given no script")


_idle: list[Served] = []


@contextmanager
def served() -> Iterator[Served]:
    """A provider on a thread of this process. It serves the next one that asks, too: a server takes 100 ms to stop."""
    one = _idle.pop() if _idle else _started()
    yield one
    one.forget()
    _idle.append(one)


def _started() -> Served:
    one = Served()
    # What a script breaks on purpose is an error to uvicorn.
    server = uvicorn.Server(uvicorn.Config(one, log_level="critical", lifespan="off"))
    # Of TCP by name, so that asyncio switches Nagle's algorithm off.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    threading.Thread(target=server.run, args=([listener],), daemon=True).start()
    one.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    return one


def models(
    profiles: str, variable: Callable[[str], str] = lambda _: KEY, clock: Clock | None = None
) -> DeployedModels:
    """The adapter with these profiles; credentials are variables, by default the same for each."""
    clock = clock or SystemClock()
    credentials = Credentials(
        VariableSecrets(variable, partial(settings.local_key_variable, "MODEL")),
        clock,
        THREADS,
        "the model profile",
    )
    return DeployedModels(Profiles(profiles, region="eu-central-1"), credentials, clock, THREADS)
