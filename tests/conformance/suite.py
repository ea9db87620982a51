"""Run the requirements of AWS's conformance suite with the handlers of its Python SDK, unchanged.

`make conformance` calls it. The suite's own validator judges result and final status; it polls a deployment in
memory, in virtual time. The events of a history are not compared: they are of another log.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import os
import queue
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

import baton.compat.aws_durable as compat
from baton.core.limits import Limits
from baton.core.log.folding.received import FAILURE, HEARTBEAT, SUCCESS, CallbackReport
from baton.core.log.slots import Slot
from baton.core.log.work import Callback
from baton.ports import StepContext
from baton.runtime.people.links import Holder, token_for
from baton.testing.deployment import BATCH, Deployment
from baton.testing.killing import Kills
from baton.testing.loop import VirtualLoop, run_virtual
from baton.testing.operations import FunctionNodes
from baton.tools.define import Registry
from baton.tools.functions.define import document_of

SDK, SUITE = "aws_durable_execution_sdk_python", "aws_durable_execution_conformance_tests"
MODULES = (
    *(".config", ".context", ".exceptions", ".execution", ".retries", ".serdes", ".types", ".waits"),
    *(".concurrency", ".concurrency.models", ".lambda_service"),
)
BEGIN = 4_102_444_800_000
LONGEST_S = 7_200
STATUS = {"completed": "SUCCEEDED", "failed": "FAILED", "cancelled": "CANCELLED"}
DIFFERENT = {
    "5-8": "An invoked workflow runs for the tenant of its caller: `tenant_id` is refused.",
    "10": "Plugins of the SDK are not called.",
}


def main(suite: Path, handlers: Path) -> int:
    """Run all requirements; return the exit code."""
    sys.path[:0] = [str(suite), str(handlers / "handlers")]
    validate = importlib.import_module(f"{SUITE}.validate")
    for name in ("", *MODULES):
        sys.modules[f"{SDK}{name}"] = compat
    logging.disable(logging.CRITICAL)  # tracebacks of handlers that raise on purpose
    deaths = _Deaths()
    sys.modules["boto3"], os._exit = _Table(), deaths.exit  # type: ignore[assignment]
    requirements = {path.stem: path for path in (suite / SUITE / "test_requirements").rglob("*.yaml")}
    counts: Counter[str] = Counter()
    for number, (handler, targets) in sorted(_handlers(handlers).items(), key=lambda one: _order(one[0])):
        if number not in requirements:
            continue
        reason = DIFFERENT.get(number, DIFFERENT.get(number.partition("-")[0]))
        errors = _try(validate, yaml.safe_load(requirements[number].read_text()), handler, targets, deaths)
        counts["passed" if not errors else "different" if reason else "FAILED"] += 1
        if errors:
            print(number, handler, "|", reason or "FAILED", "|", "; ".join(errors)[:300])
    print(", ".join(f"{count} {what}" for what, count in counts.items()), "of", len(requirements))
    return 1 if counts["FAILED"] else 0


def _order(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split("-")))


class _Template(yaml.SafeLoader):
    """Loader of templates with CloudFormation's tags, of which the last word matters."""


_Template.add_multi_constructor("!", lambda loader, tag, node: str(node.value).partition(".")[0].strip("${}"))


def _handlers(root: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the module of the handler of each requirement, and its environment."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for file in sorted(root.glob("template_*.yaml")):
        resources = yaml.load(file.read_text(), _Template)["Resources"]  # a safe loader
        module = {
            name: one["Properties"]["Handler"].rpartition(".")[0]
            for name, one in resources.items()
            if one["Type"] == "AWS::Serverless::Function"
        }
        for name in module:
            given = resources[name]["Properties"].get("Environment", {}).get("Variables", {})
            named = {key: module.get(str(value), str(value)) for key, value in given.items()}
            for number in resources[name].get("TestingMetadata", {}).get("TestDescription", ()):
                found[number] = module[name], named
    return found


def _try(
    validate: Any,
    requirement: Mapping[str, Any],
    handler: str,
    targets: Mapping[str, str],
    deaths: _Deaths,
) -> list[str]:
    """Return what the suite's validator finds wrong."""
    registry = Registry()
    try:
        for module in [handler, *targets.values()]:
            if "." in module:
                _declare(module, registry)
    except Exception as error:  # noqa: BLE001  # a result of the run
        return [f"import: {type(error).__name__}: {error}"]
    os.environ.update({key: value.rpartition(".")[2] for key, value in targets.items()})
    context = validate.PlaceholderContext()
    context.resolve_variables(requirement.get("Variables"))
    actions = [validate.CallbackAction.from_dict(one) for one in requirement.get("CallbackActions", [])]
    given = {"event": context.substitute(requirement.get("Input"))}

    def judge(world: _Client) -> list[str]:
        validate.time = world
        config = validate.AsyncValidationConfig(no_progress_timeout_seconds=2 * LONGEST_S)
        validator = validate.PollingValidator(world, config, context)
        with contextlib.redirect_stdout(io.StringIO()):
            result = validator.validate(
                "execution",
                [],
                requirement.get("ExpectedResult") or {"ExecutionStatus": "SUCCEEDED"},
                actions,
            )
        return list(result.errors) + [
            f"{key}: {value}" for key, value in world.failure.items() if result.errors
        ]

    name = handler.rpartition(".")[2].replace("_", "-")
    return _World(registry, deaths).run(name, given, judge)


def _declare(module: str, registry: Registry) -> None:
    """Import a handler anew, with its workflow in this registry."""
    context: Any = importlib.import_module(f"{compat.__name__}.context")
    context.REGISTRY = registry
    sys.modules.pop(module, None)
    handler = importlib.import_module(module).handler
    if not any(tool.function is handler for tool in registry.values()):  # a plain Lambda function
        name = module.rpartition(".")[2].replace("_", "-")
        compat.durable_execution(name=name, registry=registry)(
            lambda event, context: context.step(lambda _: handler(event, None))
        )


class _Exit(BaseException):
    """End of the process by its own will."""


class _Deaths(Kills):
    """The deaths of workers whose handlers end their own process: at the end of the call of the step."""

    def __init__(self) -> None:
        super().__init__({}, {}, FunctionNodes())
        self._is_over = False

    def exit(self, _: int) -> None:
        self._is_over = True
        raise _Exit

    def at(self, tool: str, context: StepContext) -> str:
        return "after"

    async def die(self) -> None:
        if self._is_over:
            self._is_over = False
            await super().die()


class _Table:
    """AWS's client of a table in which a handler counts its attempts."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def client(self, _: str) -> _Table:
        return self

    def update_item(self, **of: Any) -> Any:
        key = of["Key"]["executionId"]["S"]
        self._counts[key] += 1
        return {"Attributes": {"attemptCount": {"N": str(self._counts[key])}}}


class _Client:
    """Lambda's client and the clock of the suite: each call is a request to the deployment's own thread."""

    def __init__(self, ask: Callable[[str, Any], Any]) -> None:
        self._ask = ask
        self.failure: dict[str, Any] = {}

    def time(self) -> float:
        return float(self._ask("time", None))

    def sleep(self, seconds: float) -> None:
        self._ask("sleep", seconds)

    def get_durable_execution(self, DurableExecutionArn: str) -> Any:  # noqa: N803  # as AWS's client
        found = self._ask("execution", None)
        self.failure = {"error": found.pop("Error")}
        return found

    def get_durable_execution_history(self, **_: Any) -> Any:
        return self._ask("history", None)

    def send_durable_execution_callback_success(self, CallbackId: str, Result: bytes | None = None) -> Any:  # noqa: N803
        return self._report(CallbackId, status=SUCCESS, output=None if Result is None else Result.decode())

    def send_durable_execution_callback_failure(self, CallbackId: str, Error: Any = None) -> Any:  # noqa: N803
        return self._report(CallbackId, status=FAILURE, code="rejected", message=str(Error))

    def send_durable_execution_callback_heartbeat(self, CallbackId: str) -> Any:  # noqa: N803
        return self._report(CallbackId, status=HEARTBEAT)

    def _report(self, callback: str, **said: Any) -> Any:
        return self._ask("report", (callback, CallbackReport(**said)))


class _Moment:
    """A time at which the deployment pauses."""

    def __init__(self, at: int) -> None:
        self._at = at

    def next_moment(self) -> int:
        return self._at


class _World:
    """One saga in a deployment in memory, and a validator in a thread of its own."""

    def __init__(self, registry: Registry, deaths: _Deaths) -> None:
        self._registry, self._deaths = registry, deaths
        self._requests: queue.Queue[tuple[str, Any] | None] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()

    def run(self, name: str, given: Any, judge: Callable[[_Client], list[str]]) -> list[str]:
        found: list[str] = []

        def work() -> None:
            try:
                found.extend(judge(_Client(self._ask)))
            except Exception as error:  # noqa: BLE001  # a result of the run
                found.append(f"{type(error).__name__}: {error}")
            self._requests.put(None)

        async def main(loop: VirtualLoop) -> None:
            world = Deployment(
                loop,
                self._registry,
                Limits(),
                begin=BEGIN,
                worker_timeout=60_000,
                caller=("test", "tester"),
                kills=self._deaths,
            )
            for tool in self._registry.values():
                if tool.document is not None:
                    await world.service().register(json.dumps(document_of(tool)), json_only=False)
            view, _ = await world.service().start(name, given, key="")
            threading.Thread(target=work, daemon=True).start()
            while (request := self._requests.get()) is not None:
                try:
                    self._answers.put(await self._answer(world, view["id"], *request))
                except Exception as error:  # noqa: BLE001  # raised in the other thread
                    self._answers.put(error)

        run_virtual(main)
        return found

    def _ask(self, what: str, value: Any) -> Any:
        self._requests.put((what, value))
        answer = self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _answer(self, world: Deployment, saga: str, what: str, value: Any) -> Any:
        if what == "time":
            return world._clock.now() / 1_000
        if what == "sleep":
            return await _advance(world, world._clock.now() + round(value * 1_000))
        if what == "report":
            holder = Holder(tenant="test", saga=saga, callback=value[0])
            token = await token_for(world._request().parts.context, world._engine.secrets, holder)
            return await world.service().callback(token, value[1])
        result = await world.result(saga)
        status = STATUS.get(
            result.status, "RUNNING" if world._clock.now() < BEGIN + LONGEST_S * 1_000 else "TIMED_OUT"
        )
        if what == "execution":
            return {
                "Status": status,
                "Result": json.dumps(result.output),
                "Error": result.error or result.status,
            }
        return {"ExecutionStatus": status, "Events": [*await _callbacks(world, saga)]}


async def _advance(world: Deployment, until: int) -> None:
    world._post = _Moment(until)  # type: ignore[assignment]
    while world._clock.now() < until:
        await world._relay()
        messages = world._queue.receive(BATCH)
        for wake in [messages, *world._invoker.drain()] if messages else world._invoker.drain():
            world._invocations.begin(world._work(wake))
            await world._invocations.end()
        if not await world._wait({}):
            await world._invocations.pause(max(0, until - world._clock.now()) / 1_000)


async def _callbacks(world: Deployment, saga: str) -> list[dict[str, Any]]:
    """Return an event for each callback that is open."""
    state = (await world._request().open(saga)).history.state
    return [
        {
            "EventType": "CallbackStarted",
            "Name": Slot.parse(slot).item.removeprefix("_"),
            "CallbackStartedDetails": {"CallbackId": work.id},
        }
        for slot, work in state.open.items()
        if isinstance(work, Callback)
    ]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
