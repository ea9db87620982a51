"""All functions of a run: invoking one by name or ARN, asynchronously with retries, and what they did.

One pool per function does the work (see pool.py); the HTTP form of the Invoke API is in lambda_api.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from baton.local.aws.aws import Aws
from baton.local.functions.pool import Pool, Throttled
from baton.local.functions.sandbox import Result
from baton.local.processes.problems import LocalRunError, nearest
from baton.local.processes.process import Children
from baton.local.processes.records import InvocationRecord, Trigger
from baton.local.processes.tasks import Tasks
from baton.local.template.declared import Function

log = logging.getLogger("baton.local")
_RECORDS_KEPT = 100_000


class Lambdas:
    """`invocations` grows to 100,000 records, then forgets the oldest tenth."""

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
        self.pools = {
            logical_id: Pool(
                function,
                children,
                limit=limit,
                aws=environment,
                variables=variables,
                log=logs / f"{logical_id}.log",
                record=self._record,
            )
            for logical_id, function in functions.items()
        }

    async def warm(self) -> None:
        """One process of every function; raises `LocalRunError` for the first that cannot be imported."""
        await asyncio.gather(*(pool.warm() for pool in self.pools.values()))

    async def replace(self) -> None:
        """New processes, with the code as it is now; those at work end what they do. Raises as `warm` does."""
        for pool in self.pools.values():
            pool.retire()
        await self.warm()

    def find(self, reference: str) -> Pool:
        """By logical id, name, or ARN with or without a qualifier. Raises `LocalRunError`."""
        for logical_id, pool in self.pools.items():
            function = pool.function
            if reference in (logical_id, function.name) or f"{reference}:".startswith(f"{function.arn}:"):
                return pool
            if f"{reference}:".startswith(f"{function.name}:"):
                return pool
        names = [pool.function.name for pool in self.pools.values()]
        raise LocalRunError(f"there is no function {reference}{nearest(reference, [*self.pools, *names])}")

    async def invoke(self, reference: str, event: Any, trigger: Trigger) -> Result:
        """Synchronously; `event` is any JSON value."""
        return await self.find(reference).invoke(json.dumps(event).encode(), trigger)

    def submit(self, reference: str, event: bytes) -> str:
        """Asynchronously (`Event`): queued, repeated on failure as the template says. The request's id."""
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
                last = Result(request_id, "error", b"{}")
                await self._give_up(function, event, last, attempts, "EventAgeExceeded")
                return
            await asyncio.sleep(delay_s)

    async def _give_up(
        self, function: Function, event: bytes, result: Result, attempts: int, condition: str
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
    """The part that Lambda's documents for failure destinations have in common."""
    return {
        "requestId": request_id,
        "functionArn": arn,
        "condition": condition,
        "approximateInvokeCount": attempts,
    }


def timestamp(seconds: float | None = None) -> str:
    """ISO 8601 with milliseconds, as in Lambda's documents; now if not told otherwise."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _nth(delays: tuple[float, ...], index: int) -> float:
    return delays[min(index, len(delays) - 1)] if delays else 0.0
