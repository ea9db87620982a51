"""Calls of the worker function, and what it asks Lambda for.

Calling and reading; what must hold is in the tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from baton.ports import SagaRef
from tests.handlers.deployment import Context, Interference
from tests.handlers.sagas import batch, failures, wake

ACCEPTED = 202


class Worker:
    """`module` is the imported functions/worker/app.py."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.engine = module._engine
        self._invoker = module._worker._invoker._client
        self.dead_letters = module._worker._dead_letters._client

    def send(self, event: dict[str, Any], milliseconds: int = 15_000) -> list[str]:
        """Call the handler with an event; the ids of what must be delivered again."""
        return failures(json.loads(json.dumps(self.module.handler(event, Context(milliseconds)))))

    def wake(self, *refs: SagaRef, milliseconds: int = 15_000) -> list[str]:
        """A batch with a wake for each of these sagas; ids are m0, m1 …"""
        return self.send(batch(*map(wake, refs)), milliseconds)

    @contextmanager
    def without_lambda(self) -> Iterator[None]:
        """Lambda accepts every invocation and starts none."""
        lambdas = Interference(self._invoker)
        with (
            lambdas.watching("Invoke") as requests,
            lambdas.answering("Invoke", lambda _: (ACCEPTED, {"StatusCode": ACCEPTED})),
        ):
            yield
        assert all(request["InvocationType"] == "Event" for request in requests)

    @contextmanager
    def asked(self) -> Iterator[list[list[dict[str, Any]]]]:
        """The wakes of the invocations that it asks for."""
        found: list[list[dict[str, Any]]] = []
        with Interference(self._invoker).watching("Invoke") as requests:
            yield found
        found += [json.loads(request["Payload"])["wakes"] for request in requests]
