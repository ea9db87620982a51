"""A local run of template.yaml with the trial tools, for a module of tests: everything in its own processes.

The run lives on an event loop in a thread of its own, so that it goes on between tests. Starting, asking
and waiting; what must hold is in the tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

import boto3
import httpx

from baton.local.processes import InvocationRecord
from baton.local.run import LocalRun
from tests.kit.app.books import VARIABLE, Books
from tests.kit.patience import PATIENCE_S

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
TENANT, USER = "acme", "ada"
FINAL = {"completed", "failed", "cancelled"}
# Times of the deployment in which everything is switched on.
WORKER_TIMEOUT_S, VISIBILITY_S, GRACE_MS = 4, 6, 500
TRIAL = "tests.kit.app.trial"
# The worker finds the trial tools in the repository instead of the app layer; the engine is the layer's.
VARIABLES = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "layers/engine")])}
Json = dict[str, Any]


def until(ready: Callable[[], T | None], what: str, every_s: float = 0.05) -> T:
    """Ask again and again until the answer is truthy, and return it."""
    give_up = time.monotonic() + PATIENCE_S
    while not (value := ready()):
        assert time.monotonic() < give_up, f"{what} did not happen within {PATIENCE_S} s"
        time.sleep(every_s)
    return value


class Deployment:
    """`async with LocalRun(...)` from `__enter__` to `__exit__`; calls come from the tests' thread."""

    def __init__(
        self,
        folder: Path,
        parameters: Mapping[str, str] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        self.books = Books(folder / "books")
        variables = VARIABLES | {VARIABLE: str(folder / "books")}
        given = {"AppModule": TRIAL, **parameters}
        template = ROOT / "template.yaml"
        self.run = LocalRun(template, given, variables, run_dir=folder / "run", **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="local run", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.call(self.run.__aenter__())
        except BaseException:
            self._stop()
            raise
        self._http = httpx.Client(base_url=self.run.url, trust_env=False, timeout=PATIENCE_S)
        self._dynamodb = self.client("dynamodb")
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        try:
            self.call(self.run.__aexit__(None, None, None))
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin something on the run's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T], limit_s: float = PATIENCE_S) -> T:
        return self.submit(work).result(limit_s)

    # ---- the HTTP API

    def request(self, method: str, path: str, *, token: str | None = None, **options: Any) -> httpx.Response:
        """As Ada of Acme unless another token is given; an empty one sends no token at all."""
        bearer = self.run.token(USER, TENANT) if token is None else token
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        return self._http.request(method, path, headers=headers | options.pop("headers", {}), **options)

    def register(self, document: str) -> None:
        answer = self.request(
            "POST", "/workflows", content=document, headers={"content-type": "application/yaml"}
        )
        assert answer.status_code in (200, 201), answer.text

    def start(self, workflow: str, given: Any = None) -> str:
        answer = self.request("POST", "/sagas", json={"workflow": workflow, "input": given})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def show(self, saga: str) -> Json:
        answer = self.request("GET", f"/sagas/{saga}")
        assert answer.status_code == 200, answer.text
        shown: Json = answer.json()
        return shown

    def log(self, saga: str) -> list[Json]:
        """The entries of a saga, in order."""
        answer = self.request("GET", f"/sagas/{saga}/events", params={"limit": "1000"})
        assert answer.json()["next"] is None
        entries: list[Json] = answer.json()["entries"]
        return entries

    def events(self, saga: str, kind: str = "") -> list[Json]:
        found = [event for entry in self.log(saga) for event in entry["events"]]
        return [event for event in found if kind in ("", event["kind"])]

    def wait_for(self, saga: str, *statuses: str) -> Json:
        """The saga, once it has one of these statuses (by default: once it has ended)."""
        wanted = set(statuses) or FINAL
        latest: Json = {}
        seen: Json | None = {}
        ask_again = 0.0

        def ready() -> Json | None:
            """An answer of the API is an invocation: it is asked when the head has changed, and now and then."""
            nonlocal latest, seen, ask_again
            head = self.head(saga)
            if head == seen and time.monotonic() < ask_again:
                return None
            seen, ask_again = head, time.monotonic() + 2
            latest = self.show(saga)
            return latest if latest["status"] in wanted else None

        try:
            found = until(ready, "it", 0.1)
        except AssertionError as error:
            raise AssertionError(f"{saga} is not {wanted} after {PATIENCE_S} s: {latest}") from error
        assert found is not None
        return found

    # ---- behind the API

    def workers(self, saga: str) -> list[InvocationRecord]:
        """The invocations that have written entries of a saga, in order, once each of them has ended."""
        writers = dict.fromkeys(
            entry["invocation"].partition(".")[0] for entry in self.log(saga) if entry["epoch"]
        )

        def ended() -> dict[str, InvocationRecord] | None:
            known = {record.request_id: record for record in self.run.invocations}
            return known if known.keys() >= writers.keys() else None

        known = until(ended, "the end of its invocations")
        assert known is not None
        return [known[writer] for writer in writers]

    def client(self, service: Any) -> Any:
        """A boto3 client of the test's own for this run."""
        settings = self.run.aws_environment
        return boto3.client(
            service,
            endpoint_url=settings["AWS_ENDPOINT_URL"],
            region_name=settings["AWS_REGION"],
            aws_access_key_id=settings["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=settings["AWS_SECRET_ACCESS_KEY"],
        )

    def head(self, saga: str) -> Json | None:
        """The head's item as the table has it."""
        answer = self._dynamodb.get_item(
            TableName=self.run.physical["SagaTable"],
            Key={"pk": {"S": key_of(saga)}, "sk": {"S": "HEAD"}},
            ConsistentRead=True,
        )
        item: Json | None = answer.get("Item")
        return item

    def make_due(self, *sagas: str) -> None:
        """As if the time had come at which lost wakes are noticed; those that are held or have ended are left."""
        for saga in sagas:
            with contextlib.suppress(self._dynamodb.exceptions.ConditionalCheckFailedException):
                self._dynamodb.update_item(
                    TableName=self.run.physical["SagaTable"],
                    Key={"pk": {"S": key_of(saga)}, "sk": {"S": "HEAD"}},
                    UpdateExpression="SET due_at = :now",
                    ConditionExpression="attribute_not_exists(#owner) AND attribute_exists(due_at)",
                    ExpressionAttributeNames={"#owner": "owner"},
                    ExpressionAttributeValues={":now": {"N": str(time.time_ns() // 1_000_000)}},
                )


def key_of(saga: str, tenant: str = TENANT) -> str:
    return f"T#{tenant}#SAGA#{saga}"


def steps_in_log(events: list[Json]) -> list[str]:
    """The nodes that the log says have succeeded, each as often as it says so."""
    return [event["node"] for event in events if event["kind"] == "step_succeeded"]


def chain(name: str, count: int, seconds: float, first: str = "") -> str:
    """A workflow of `count` steps, one after the other, that end with the sum of nothing but themselves."""
    lines = [f"name: {name}", "nodes:"]
    before = ""
    if first:
        lines.append(f"  first: {first}")
        before = "first"
    for number in range(count):
        after = f", after: {before}" if before else ""
        lines.append(f"  s{number}: {{tool: trial.work{after}, with: {{n: {number}, seconds: {seconds}}}}}")
        before = f"s{number}"
    lines.append(f'output: "${{ctx.{before}.output}}"')
    return "\n".join(lines) + "\n"


def held(gate: str) -> str:
    """Three steps, of which the second takes until the test opens the gate."""
    return chain(gate, 3, 0).replace(
        "trial.work, after: s0, with: {n: 1, seconds: 0}",
        f"trial.held, after: s0, with: {{n: 1, gate: {gate}}}",
    )
