"""The local run as one object: it starts all that the template declares, in order, and stops it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from starlette.applications import Starlette

from baton.local import functions
from baton.local import processes as servers
from baton.local.aws import Aws, MiniStack, keeping
from baton.local.functions import Lambdas, aws_environment, local_key
from baton.local.gateway import Gateway
from baton.local.processes import (
    Children,
    HttpServer,
    InvocationRecord,
    LocalRunError,
    ProcessInfo,
    Tasks,
    guard_application,
    wait_for_all,
)
from baton.local.provision import provision, verify_sender
from baton.local.queues import SqsPoller
from baton.local.sign_in import AUDIENCE, CLIENT_SECRET, LIFETIME_S, SignIn, TokenIssuer
from baton.local.stack import Stack, read_http_api
from baton.local.streams import BatchRunner, StreamPoller, failure_queue
from baton.local.template import Resolver, Template, check_rules, effective, load
from baton.local.triggers import buses_of, machine_starter, run_schedule, starter_of
from baton.settings import ROLES, local_key_variable

log = logging.getLogger("baton.local")
SOURCES = frozenset({"stream", "queue", "schedule"})
PROCESSES = 16
"""Most processes of a function."""
_API_ID = "local"
_RUNS = ".baton"


def run_directory(project: Path) -> Path:
    """Return the folder of a new run in a project."""
    return project / _RUNS / f"run-{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"


class FunctionError(LocalRunError):
    """Error of a function that was invoked directly. `document` is its error document."""

    def __init__(self, function: str, document: Any) -> None:
        super().__init__(f"{function} failed: {json.dumps(document)}")
        self.document = document


class LocalRun:
    """A local run, active between `async with` and its end, on the event loop that entered it.

    template: path of template.yaml; code and layers are found relative to it. parameters: override the
    template's parameters, except JwtIssuer and JwtAudience, which the run sets. variables: further
    environment variables, for every function. schedule_period_s: seconds between two runs of each schedule,
    instead of the template's. switched_off: event sources that are not polled: stream, queue, schedule.
    run_dir: folder of the logs (`logs/<logical id>.log`); default `.baton/run-…` beside the template.
    api_port: port of the HTTP API; 0 for any free one. aws_port: port of the embedded AWS, the next one being
    that of the local Lambda API; 0 for any free ones. data: folder that keeps tables and objects for a later
    run, with exclusive use; None keeps nothing. signs_in: user and tenant that the sign-in of the console
    suggests. process_limit: maximum number of processes per function; further invocations wait.
    retry_delays_s: pauses before retries of an `Event` invocation (Lambda: one, then two minutes).

    After the start, `parameters` contains all parameters with their values, and `physical` the values of
    references to resources. Entering raises `LocalRunError` for a fault, and leaves nothing running.
    """

    url: str
    endpoint: str
    aws_environment: dict[str, str]
    physical: dict[str, str]
    parameters: Mapping[str, str | list[str]]
    run_dir: Path

    def __init__(
        self,
        template: Path,
        parameters: Mapping[str, str] = MappingProxyType({}),
        variables: Mapping[str, str] = MappingProxyType({}),
        schedule_period_s: float | None = None,
        switched_off: frozenset[str] = frozenset(),
        run_dir: Path | None = None,
        api_port: int = 0,
        *,
        aws_port: int = 0,
        data: Path | None = None,
        process_limit: int = PROCESSES,
        signs_in: tuple[str, str] = ("me", "local"),
        retry_delays_s: tuple[float, ...] = (60.0, 120.0),
    ) -> None:
        unknown = set(switched_off) - SOURCES
        if unknown:
            raise LocalRunError(
                f"switched_off: {', '.join(sorted(unknown))}; known: {', '.join(sorted(SOURCES))}"
            )
        self._template_path = Path(template).resolve()
        self._given, self._variables = dict(parameters), dict(variables)
        self._schedule_period_s = schedule_period_s
        self._switched_off = switched_off
        self._api_port, self._aws_port, self._process_limit = api_port, aws_port, process_limit
        self._retry_delays_s = retry_delays_s
        self._data = None if data is None else Path(data).resolve()
        self.was_killed = False
        self.run_dir = (run_dir or run_directory(self._template_path.parent)).resolve()
        # Runs of one project share the key of their folder.
        self._key_folder = self.run_dir.parent if self.run_dir.parent.name == _RUNS else self.run_dir
        self.url = self.endpoint = ""
        self.aws_environment, self.physical, self.parameters = {}, {}, {}
        self._signs_in = signs_in
        self._exit = contextlib.AsyncExitStack()

    # ---- what callers may ask

    @property
    def invocations(self) -> list[InvocationRecord]:
        """Ended invocations, oldest first. The list is live."""
        return self._lambdas.invocations

    def token(
        self, user: str, tenant: str, ttl_s: float = LIFETIME_S, roles: Sequence[str] | None = ROLES
    ) -> str:
        """Return a token that the HTTP API accepts, by default for twelve hours and with every role."""
        return self._issuer.token(user, tenant, ttl_s, roles)

    def processes(self, function: str) -> list[ProcessInfo]:
        """Return the present processes of a function. Raises `LocalRunError` for an unknown function."""
        return self._lambdas.find(function).processes()

    def kill(self, pid: int) -> None:
        """Send SIGKILL to one process of a function and to the processes it started."""
        if not any(pool.kill(pid) for pool in self._lambdas.pools.values()):
            raise LocalRunError(f"{pid} is not a process of a function")

    async def reload(self) -> None:
        """Run the present code of all functions, also after open calls. Raises `LocalRunError`."""
        await self._lambdas.replace()

    async def invoke(self, function: str, payload: Any) -> Any:
        """Invoke a function and return the parsed answer. Raises `FunctionError` if it fails."""
        result = await self._lambdas.invoke(function, payload, "invoke")
        if not result.ok:
            raise FunctionError(function, result.document())
        return result.document()

    # ---- starting

    async def __aenter__(self) -> LocalRun:
        began = time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(_terminate_like_interrupt())
            await self._start(stack)
            self._exit = stack.pop_all()
        log.info("ready after %.2f s: %s", time.monotonic() - began, self.url or self.endpoint)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exit.aclose()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        logs = self.run_dir / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        stack.enter_context(_log_file(logs / "local.log"))
        control, api = self._bind(stack)
        issuer_url = servers.address(control)
        self.url = servers.address(api)

        children = Children()
        stack.push_async_callback(children.close)
        await children.open()
        if self._data is not None:
            self.was_killed = stack.enter_context(keeping(self._data))
        ministack = MiniStack(self.run_dir, children, self._aws_port, self._data)
        stack.push_async_callback(ministack.stop)
        loading = asyncio.create_task(asyncio.to_thread(self._load, issuer_url))
        try:
            await ministack.start()
        finally:
            await wait_for_all([loading])
        template = loading.result()
        self.endpoint = ministack.endpoint
        aws = await asyncio.to_thread(Aws, self.endpoint)
        stack.callback(aws.close)

        values = self.parameters = effective(template, self._given, _trusted(issuer_url))
        tenant_claim, roles_claim = values.get("TenantClaim", "tenant"), values.get("RolesClaim", "roles")
        self._issuer = await asyncio.to_thread(
            TokenIssuer,
            issuer_url,
            str(tenant_claim),
            roles_claim=str(roles_claim),
            groups_claim=str(values.get("GroupsClaim", "groups")),
        )
        self._sign_in = SignIn(self._issuer.token, AUDIENCE, *self._signs_in)
        resolver = Resolver(template, values)
        check_rules(template, resolver)
        await asyncio.to_thread(provision, template, resolver, aws)
        if sender := values.get("MailFrom"):
            await asyncio.to_thread(verify_sender, str(sender), aws)
        for logical_id, _ in template.of_type("AWS::ApiGatewayV2::Api"):
            resolver.learn(logical_id, "Ref", _API_ID)
            resolver.learn(logical_id, "ApiEndpoint", self.url)
        declared = Stack(template, resolver)
        http_api = read_http_api(declared, resolver)
        self.physical = resolver.references()

        key = await asyncio.to_thread(local_key, self._key_folder)
        self.aws_environment = aws_environment(self.endpoint, servers.address(control), key)
        self._lambdas = Lambdas(
            declared.functions,
            children,
            aws=aws,
            environment=self.aws_environment,
            variables={**self._variables, local_key_variable("CONSOLE", CLIENT_SECRET): self._sign_in.secret},
            logs=logs,
            limit=self._process_limit,
            retry_delays_s=self._retry_delays_s,
        )
        stack.push_async_callback(self._lambdas.close)
        routes = [*functions.routes(self._lambdas, key), *self._issuer.pages(), *self._sign_in.pages()]
        await self._serve(stack, control, Starlette(routes=routes))
        if http_api is not None:
            await self._serve(stack, api, Gateway(http_api, _API_ID, self._lambdas))
        else:
            self.url = ""
        works, buses = self._sources(declared, aws), buses_of(declared.rules, self._lambdas, aws)
        await asyncio.gather(self._lambdas.warm(), *(bus.open() for bus in buses))
        polling = Tasks("an event source")
        stack.push_async_callback(polling.cancelled)
        for work in [*works, *(bus.run for bus in buses), _later(_watch, ministack)]:
            polling.start(work())

    def _bind(self, stack: contextlib.AsyncExitStack) -> tuple[socket.socket, socket.socket]:
        control = servers.bind(self._aws_port and self._aws_port + 1, "the local Lambda API")
        stack.callback(control.close)
        api = servers.bind(self._api_port, "the HTTP API")
        stack.callback(api.close)
        return control, api

    def _load(self, issuer_url: str) -> Template:
        return load(self._template_path, {**self._given, **_trusted(issuer_url)})

    async def _serve(self, stack: contextlib.AsyncExitStack, listener: socket.socket, app: Any) -> None:
        port = listener.getsockname()[1]
        server = HttpServer(listener, guard_application(app, port, programs_only=False))
        stack.push_async_callback(server.stop)
        await server.start()

    def _sources(self, declared: Stack, aws: Aws) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        """Return the pollers of all event sources, none of which starts if one is faulty."""
        works: list[Callable[[], Any]] = []
        starters = {m.arn: machine_starter(m, self._lambdas) for m in declared.machines}
        for schedule in declared.schedules:
            start = starter_of(schedule, starters, self._lambdas)
            if "schedule" not in self._switched_off:
                works.append(_later(run_schedule, schedule, start, self._schedule_period_s))
        for stream in declared.streams:
            runner = BatchRunner(
                stream,
                invoke=_later(self._lambdas.invoke, stream.function, trigger="stream"),
                set_aside=failure_queue(stream, declared.functions[stream.function], aws),
                sleep=asyncio.sleep,
                now=time.time,
            )
            if "stream" not in self._switched_off:
                works.append(StreamPoller(stream, runner, aws).run)
        queues = [] if "queue" in self._switched_off else declared.queues
        return works + [SqsPoller(queue, self._lambdas, aws).run for queue in queues]


def _later(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    def call(*more: Any) -> Any:
        return function(*args, *more, **kwargs)

    return call


def _trusted(issuer_url: str) -> dict[str, str]:
    return {
        "JwtIssuer": issuer_url,
        "JwtAudience": AUDIENCE,
        "ConsoleIssuer": issuer_url,
        "ConsoleClient": AUDIENCE,
    }


async def _watch(ministack: MiniStack) -> None:
    status = await ministack.wait()
    log.error("MiniStack ended with status %s; its log: %s", status, ministack.log)


@contextlib.contextmanager
def _log_file(path: Path) -> Iterator[None]:
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.close()


def _interrupt(*_: object) -> None:
    if callable(signal.getsignal(signal.SIGINT)):
        signal.raise_signal(signal.SIGINT)  # asyncio.run makes a cancellation of it
    else:
        raise KeyboardInterrupt  # a shell starts background jobs with SIGINT ignored


@contextlib.contextmanager
def _terminate_like_interrupt() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that both stop every process in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
