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
        self.script: Script = _nothing
        self.provider = Provider(Books("models"), self._follow)
        self.url = ""

    def _follow(self, asked: Asked) -> Reply | Refusal | Awaitable[Reply | Refusal]:
        return self.script(asked)

    @property
    def asked(self) -> list[Asked]:
        return self.provider.asked


def _nothing(asked: Asked) -> Reply:
    raise AssertionError("the test has given no script")


@contextmanager
def served() -> Iterator[Served]:
    """On a thread of this process."""
    one = Served()
    # What a script breaks on purpose is an error to uvicorn.
    server = uvicorn.Server(uvicorn.Config(application(one.provider), log_level="critical", lifespan="off"))
    # Of TCP by name, so that asyncio switches Nagle's algorithm off.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        one.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield one
        server.force_exit = server.should_exit = True
        thread.join()


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
    return DeployedModels(Profiles(profiles), credentials, clock, THREADS)
