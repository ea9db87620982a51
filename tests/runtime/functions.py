"""What tests of workflow functions share: an application of tools and functions, and a deployment that runs it. No tests here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from baton import Context, StepFailure, tool
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.kit.faults import Plan, scripted
from tests.kit.process import RUNS_IN
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

During = Callable[[World, str], Awaitable[Any]]


class Application:
    """Tools that note their calls, and the functions of a test."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.calls: list[Any] = []
        self.runs: list[str] = []
        """What functions note when they run, in each replay again."""
        _declare(self)

    def run(
        self,
        name: str,
        given: Any = None,
        *,
        during: During | None = None,
        plan: Plan | None = None,
        limits: Limits | None = None,
        **world: Any,
    ) -> Result:
        """Run one saga of a function to its end, or until it is parked."""

        async def main() -> Result:
            made = World(self.registry, plan=plan or Plan(), limits=limits or Limits(), **world)
            made.switch_on()
            document = json.dumps(document_of(self.registry[name]))
            await made.service().register(document, json_only=False)
            view, _ = await made.service().start(name, given or {}, "key")
            if during is not None:
                await during(made, view["id"])
            await made.settle()
            return Result(made, view["id"], await made.queries_without_faults().show(view["id"]))

        return run_virtual(main())


class Result:
    """What a saga has come to."""

    def __init__(self, world: World, saga: str, view: dict[str, Any]) -> None:
        self.status, self.output = view["status"], view["result"]
        self.entries: list[ev.Entry] = world.entries(saga)
        self.events = [event for entry in self.entries for event in entry.events]

    @property
    def asked(self) -> list[str]:
        """The operations of the log, in order."""
        return [
            one.item
            for event in self.events
            if isinstance(event, ev.OperationsBegan)
            for one in event.operations
        ]

    @property
    def failure(self) -> ev.Failure:
        """The first failure of the function itself."""
        found = [one.failure for one in self.events if isinstance(one, ev.StepFailed | ev.AttemptFailed)]
        assert found[-1] is not None
        return found[-1]


def killed(*writes: int) -> Plan:
    """Workers that die behind these writes."""
    return scripted(tuple(("write", number, "crash after") for number in writes))


def _declare(app: Application) -> None:
    @tool("echo", registry=app.registry)
    async def echo(what: str, context: Context, seconds: float = 0.1) -> str:
        await asyncio.sleep(seconds)
        if (process := RUNS_IN.get()) is not None:
            process.check()
        app.calls.append(what)
        return what

    @tool("count", registry=app.registry)
    async def count(n: int) -> int:
        app.calls.append(n)
        return n + 1

    @tool("decline", registry=app.registry)
    async def decline(code: str = "declined") -> None:
        raise StepFailure(code, "no", kind="permanent")
