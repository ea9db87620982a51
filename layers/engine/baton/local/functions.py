"""The Lambda functions of a local run: their environment, their processes, and Lambda's Invoke operation."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import re
import secrets
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from baton.local.aws import CREDENTIALS, REGION, Aws
from baton.local.processes import (
    Children,
    InvocationRecord,
    LocalRunError,
    ProcessInfo,
    Shared,
    Tasks,
    Trigger,
    is_simple,
    nearest,
    tail,
    wait_for_all,
)
from baton.local.sandbox import InvocationResult, LocalInvocation, Sandbox
from baton.local.stack import Function
from baton.settings import local_key_variable, variable_of

_OPENAI = "openai"
# How the variables of credentials begin, by the variable of those functions that are given them.
_KEYS = {
    variable_of("model_profiles"): local_key_variable("MODEL", ""),
    variable_of("open_apis"): local_key_variable("API", ""),
    variable_of("console_secrets"): local_key_variable("CONSOLE", ""),
}


def variables_of(shell: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the shell for functions: credentials."""
    given = {name: value for name, value in shell.items() if name.startswith(tuple(_KEYS.values())) and value}
    if key := shell.get("OPENAI_API_KEY"):
        given.setdefault(local_key_variable("MODEL", _OPENAI), key)
    return given


def meant_for(declared: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that one function needs: a credential only if its environment names it."""
    others = tuple(begins for variable, begins in _KEYS.items() if variable not in declared)
    return {name: value for name, value in given.items() if not name.startswith(others)}


def parameters_of(shell: Mapping[str, str]) -> dict[str, str]:
    """Return the template's parameters from the shell: the address."""
    url = shell.get("OPENAI_BASE_URL")
    return {"ModelProfiles": f"{_OPENAI}={url}"} if url else {}


BUILD = "BATON_BUILD"


def build_of(layers: Iterable[Path]) -> str:
    """Return the time of the last change to a layer's file, which identifies their code."""
    return str(max((_changed(layer) for layer in layers), default=0) // 1_000_000)


def _changed(folder: Path) -> int:
    newest = 0
    with os.scandir(folder) as found:
        for one in found:
            if one.is_dir(follow_symlinks=False):
                newest = max(newest, 0 if one.name == "__pycache__" else _changed(Path(one.path)))
            else:
                newest = max(newest, one.stat(follow_symlinks=False).st_mtime_ns)
    return newest


def aws_environment(endpoint: str, lambda_endpoint: str, key: str) -> dict[str, str]:
    """Return the variables with which any boto3 client uses this run. key: its access key id."""
    return {
        **CREDENTIALS,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ENDPOINT_URL_LAMBDA": lambda_endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }


def of_process(function: Function, aws: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of one process, with its own log stream name. `extra` overrides the template."""
    now = datetime.now(UTC)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TZ": ":UTC",
        # On Lambda a later layer overwrites the files of an earlier one; here the first one found wins.
        "PYTHONPATH": os.pathsep.join(map(str, reversed(function.layers))),
        **aws,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"{now:%Y/%m/%d}/[$LATEST]{uuid.uuid4().hex}",
        "LAMBDA_TASK_ROOT": str(function.code),
        "_HANDLER": function.handler,
        **function.environment,
        **({BUILD: build_of(function.deployed)} if BUILD in function.environment else {}),
        **meant_for(function.environment, extra),
    }


_OF_THE_ENGINE = (
    "baton.wiring",
    "baton.web.app",
    "baton.runtime.worker.worker",
    "baton.runtime.relay",
    "baton.runtime.reconcile",
)


def shared_by(environments: Sequence[Mapping[str, str]]) -> Shared:
    """Return what functions with these environments share: the engine, if one of them has its settings."""
    first, *others = (environment["PYTHONPATH"].split(os.pathsep) for environment in environments)
    path = os.pathsep.join(folder for folder in first if all(folder in other for other in others))
    is_engine = any(variable_of("table") in environment for environment in environments)
    return Shared(path, _OF_THE_ENGINE if is_engine else ())


FILE = "local-key"
_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 Credential=([A-Za-z0-9]{1,128})/")


def local_key(folder: Path) -> str:
    """Return the access key id of the runs that share a folder, from a file that its owner can read."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if found := file.read_text().strip():
            return found
        handle = os.open(file, os.O_WRONLY | os.O_TRUNC)
    key = f"LOCAL{secrets.token_hex(16).upper()}"
    with os.fdopen(handle, "w") as out:
        out.write(f"{key}\n")
    return key


def is_signed_by(authorization: str, key: str) -> bool:
    """Return true if the request is signed with this access key id. The signature itself is not verified."""
    found = _CREDENTIAL.match(authorization)
    return found is not None and hmac.compare_digest(found[1], key)


class Throttled(Exception):
    """Error for a function whose reserved concurrency is used up. Lambda answers 429."""


class Pool:
    def __init__(
        self,
        function: Function,
        children: Children,
        *,
        limit: int,
        aws: Mapping[str, str],
        variables: Mapping[str, str],
        shared: Shared,
        log: Path,
        record: Callable[[InvocationRecord], None],
    ) -> None:
        self.function, self._shared = function, shared
        self.limit = limit if function.reserved is None else min(limit, function.reserved)
        self.log = log
        self._children = children
        self._aws, self._variables, self._record = aws, variables, record
        # Appending from several processes: each write lands at the end, whole lines stay whole.
        self._log = log.open("ab", buffering=0)
        self._sandboxes: list[Sandbox] = []
        self._short, self._numbers = function.logical_id.removesuffix("Function").lower(), count(1)
        self._tasks = Tasks(function.logical_id)
        self._queue: deque[LocalInvocation] = deque()
        self._closed = False

    async def invoke(self, event: bytes, trigger: Trigger, request_id: str = "") -> InvocationResult:
        """Run the function once on an event that is valid JSON. Raises `Throttled` or `LocalRunError`."""
        if self._closed:
            raise LocalRunError(f"{self.function.logical_id}: the local run is being stopped")
        reserved = self.function.reserved
        if reserved is not None and self._busy() + len(self._queue) >= reserved:
            raise Throttled(self.function.name)
        done: asyncio.Future[InvocationResult] = asyncio.get_running_loop().create_future()
        self._queue.append(LocalInvocation(request_id or str(uuid.uuid4()), trigger, event, done))
        self._dispatch()
        return await done

    async def warm(self) -> None:
        """Start one process and wait for its imports. Raises `LocalRunError` if they fail."""
        sandbox = self._start()
        waits = [asyncio.ensure_future(sandbox.ready.wait()), asyncio.ensure_future(sandbox.gone.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not sandbox.ready.is_set():
            raise LocalRunError(
                f"{self.function.logical_id} ({self.function.code}, handler {self.function.handler}) does not "
                f"start: {_message(sandbox.init_error)}; the end of {self.log}:\n{tail(self.log)}"
            )

    def retire(self) -> None:
        """Retire all present processes: idle ones end immediately, others after their invocation."""
        for sandbox in self._sandboxes:
            sandbox.retired = True
            if sandbox.current is None:
                sandbox.kill()

    def processes(self) -> list[ProcessInfo]:
        return [sandbox.info() for sandbox in self._sandboxes if sandbox.pid]

    def kill(self, pid: int) -> bool:
        """Send SIGKILL to the process and return true if it belongs to this function."""
        for sandbox in self._sandboxes:
            if sandbox.pid == pid:
                sandbox.kill()
                return True
        return False

    async def close(self) -> None:
        self._closed = True
        for sandbox in self._sandboxes:
            sandbox.kill()
        await wait_for_all([asyncio.ensure_future(sandbox.gone.wait()) for sandbox in self._sandboxes])
        for invocation in self._queue:
            invocation.done.cancel()
        self._log.close()

    # ---- finding a process

    def _busy(self) -> int:
        return sum(sandbox.current is not None for sandbox in self._sandboxes)

    def _dispatch(self) -> None:
        serving = [sandbox for sandbox in self._sandboxes if not sandbox.retired]
        idle = [sandbox for sandbox in serving if sandbox.waiting]
        while self._queue and idle:
            idle.pop().assign(self._queue.popleft())
        # A process that is starting, or about to ask for its next invocation, will take one.
        coming = sum(not s.waiting and s.current is None for s in serving)
        while coming < len(self._queue) and len(self._sandboxes) < self.limit and not self._closed:
            self._start()
            coming += 1

    def _start(self) -> Sandbox:
        sandbox = Sandbox(
            self.function,
            self._log,
            self._children,
            name=f"baton-{self._short}-{next(self._numbers)}",
            shared=self._shared,
            idle=self._on_idle,
            ended=self._on_end,
            record=self._record,
        )
        self._sandboxes.append(sandbox)
        environment = of_process(self.function, self._aws, self._variables)
        self._tasks.start(sandbox.run(environment))
        return sandbox

    def _on_idle(self, sandbox: Sandbox) -> None:
        if sandbox.retired:
            sandbox.kill()
            return
        # The most recently used goes last and is taken first, so that few stay warm.
        self._sandboxes.remove(sandbox)
        self._sandboxes.append(sandbox)
        self._dispatch()

    def _on_end(self, sandbox: Sandbox) -> None:
        self._sandboxes.remove(sandbox)
        if not sandbox.ready.is_set() and not sandbox.retired and self._queue:
            # As on Lambda, the invocation that needed this process is told why there is none.
            invocation = self._queue.popleft()
            sandbox.refuse(invocation)
        if not self._closed:
            self._dispatch()


def _message(error: bytes) -> str:
    try:
        document = json.loads(error)
        return f"{document['errorType']}: {document['errorMessage']}"
    except (ValueError, KeyError, TypeError):
        return error.decode("utf-8", errors="replace") or "it ended without a word"


log = logging.getLogger("baton.local")
_RECORDS_KEPT = 100_000


class Lambdas:
    """Functions by name. `invocations` grows to 100,000 records, then drops the oldest tenth."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        children: Children,
        *,
        aws: Aws,
        environment: Mapping[str, str],
        variables: Mapping[str, str],
        logs: Path,
        limit: int,
        retry_delays_s: tuple[float, ...],
    ) -> None:
        self.invocations: list[InvocationRecord] = []
        self._aws = aws
        self._retry_delays_s = retry_delays_s
        self._events = Tasks("an event")
        self._children = children
        shared = shared_by([of_process(function, environment, variables) for function in functions.values()])
        self.pools = {
            logical_id: Pool(
                function,
                children,
                limit=limit,
                aws=environment,
                variables=variables,
                shared=shared,
                log=logs / f"{logical_id}.log",
                record=self._record,
            )
            for logical_id, function in functions.items()
        }

    async def warm(self) -> None:
        """Start one process of every function. Raises `LocalRunError` for one that cannot be imported."""
        await asyncio.gather(*(pool.warm() for pool in self.pools.values()))

    async def replace(self) -> None:
        """Start processes with the present code; busy ones end afterwards. Raises as `warm` does."""
        self._children.renew()
        for pool in self.pools.values():
            pool.retire()
        await self.warm()

    def find(self, reference: str) -> Pool:
        """Return a function by logical id, name or ARN, qualified or not. Raises `LocalRunError`."""
        for logical_id, pool in self.pools.items():
            function = pool.function
            if reference in (logical_id, function.name) or f"{reference}:".startswith(f"{function.arn}:"):
                return pool
            if f"{reference}:".startswith(f"{function.name}:"):
                return pool
        names = [pool.function.name for pool in self.pools.values()]
        raise LocalRunError(f"there is no function {reference}{nearest(reference, [*self.pools, *names])}")

    async def invoke(self, reference: str, event: Any, trigger: Trigger) -> InvocationResult:
        """Invoke a function synchronously. `event` is any JSON value."""
        return await self.find(reference).invoke(json.dumps(event).encode(), trigger)

    def submit(self, reference: str, event: bytes) -> str:
        """Invoke a function asynchronously, with the template's retries. Return the request id."""
        pool, request_id = self.find(reference), str(uuid.uuid4())
        self._events.start(self._run_event(pool, event, request_id))
        return request_id

    async def close(self) -> None:
        await self._events.cancelled()
        await asyncio.gather(*(pool.close() for pool in self.pools.values()))

    def _record(self, record: InvocationRecord) -> None:
        if len(self.invocations) >= _RECORDS_KEPT:
            del self.invocations[: _RECORDS_KEPT // 10]
        self.invocations.append(record)

    async def _run_event(self, pool: Pool, event: bytes, request_id: str) -> None:
        function, born, attempts = pool.function, time.monotonic(), 0
        while True:
            try:
                result = await pool.invoke(event, "event", request_id)
            except Throttled:  # Lambda keeps trying these until the event is too old
                delay_s = 1.0
            else:
                attempts += 1
                if result.ok:
                    return
                if attempts > function.retries:
                    await self._give_up(function, event, result, attempts, "RetriesExhausted")
                    return
                delay_s = _nth(self._retry_delays_s, attempts - 1)
            if time.monotonic() - born + delay_s > function.event_age_s:
                last = InvocationResult(request_id, "error", b"{}")
                await self._give_up(function, event, last, attempts, "EventAgeExceeded")
                return
            await asyncio.sleep(delay_s)

    async def _give_up(
        self, function: Function, event: bytes, result: InvocationResult, attempts: int, condition: str
    ) -> None:
        log.warning("%s: event %s given up: %s", function.logical_id, result.request_id, condition)
        if not function.on_failure_url:
            return
        document = {
            "version": "1.0",
            "timestamp": timestamp(),
            "requestContext": request_context(function.arn, result.request_id, condition, attempts),
            "requestPayload": json.loads(event),
            "responseContext": RESPONSE_CONTEXT,
            "responsePayload": result.document(),
        }
        send: Callable[..., Any] = self._aws.sqs.send_message
        await self._aws.call(send, QueueUrl=function.on_failure_url, MessageBody=json.dumps(document))


RESPONSE_CONTEXT = {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"}


def request_context(arn: str, request_id: str, condition: str, attempts: int) -> dict[str, Any]:
    """Return the common part of Lambda's documents for failure destinations."""
    return {
        "requestId": request_id,
        "functionArn": arn,
        "condition": condition,
        "approximateInvokeCount": attempts,
    }


def timestamp(seconds: float | None = None) -> str:
    """Return a time in ISO 8601 with milliseconds, as in Lambda's documents. Default: now."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _nth(delays: tuple[float, ...], index: int) -> float:
    return delays[min(index, len(delays) - 1)] if delays else 0.0


_LATEST = "$LATEST"
_SYNC_LIMIT = 6 * 1024 * 1024
_EVENT_LIMIT = 1024 * 1024


def routes(lambdas: Lambdas, key: str) -> list[Route]:
    """Return the routes of the Invoke operation. key: access key id of permitted callers."""

    async def invoke(request: Request) -> Response:
        headers = request.headers
        if headers.get("origin") or is_simple(headers.get("content-type", "")):
            return _refuse(403, "AccessDeniedException", "no web page may invoke a function")
        if not is_signed_by(headers.get("authorization", ""), key):
            why = f"sign with the access key id in `.baton/{FILE}`: AWS_ACCESS_KEY_ID=$(cat .baton/{FILE})"
            return _refuse(403, "UnrecognizedClientException", why)
        try:
            pool = lambdas.find(unquote(request.path_params["name"]))
        except LocalRunError as error:
            return _refuse(404, "ResourceNotFoundException", str(error))
        if (qualifier := request.query_params.get("Qualifier", _LATEST)) != _LATEST:
            return _refuse(
                404, "ResourceNotFoundException", f"there are no versions here, and no {qualifier}"
            )
        kind = request.headers.get("x-amz-invocation-type", "RequestResponse")
        body = await request.body() or b"{}"
        limit = _EVENT_LIMIT if kind == "Event" else _SYNC_LIMIT
        if len(body) > limit:
            return _refuse(413, "RequestTooLargeException", f"{len(body)} bytes; the limit is {limit}")
        try:
            json.loads(body)
        except ValueError as error:
            message = f"Could not parse request body into json: {error}"
            return _refuse(400, "InvalidRequestContentException", message)
        if kind == "DryRun":
            return Response(status_code=204)
        if kind == "Event":
            request_id = lambdas.submit(pool.function.logical_id, body)
            return Response(status_code=202, headers={"x-amzn-RequestId": request_id})
        return await _run(pool, body)

    return [Route("/2015-03-31/functions/{name}/invocations", invoke, methods=["POST"])]


async def _run(pool: Pool, body: bytes) -> Response:
    try:
        result = await pool.invoke(body, "invoke")
    except Throttled:
        return _refuse(429, "TooManyRequestsException", "Rate Exceeded.")
    headers = {"x-amzn-RequestId": result.request_id, "X-Amz-Executed-Version": "$LATEST"}
    if not result.ok:
        headers["X-Amz-Function-Error"] = "Unhandled"
    return Response(result.payload, media_type="application/json", headers=headers)


def _refuse(status: int, kind: str, message: str) -> Response:
    body = json.dumps({"Type": "User", "Message": message, "message": message})
    return Response(body, status, {"x-amzn-ErrorType": kind}, media_type="application/json")
