"""The embedded AWS of a local run: its process, its clients, and the directory that keeps its data."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import os
import shutil
import socket
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from botocore.config import Config
from botocore.loaders import Loader
from botocore.session import Session

from baton.local import processes
from baton.local.processes import Children, LocalRunError, tail

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sesv2 import SESV2Client
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

ACCOUNT = "000000000000"
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
_START_LIMIT_S = 20.0
_SAVE_LIMIT_S = 20.0
_KEPT = frozenset({"dynamodb", "s3"})
_TRIES = 3


def free_port() -> int:
    """Return a loopback port that is free now. Another process may take it first, so callers retry."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class MiniStack:
    """Process of the embedded AWS. `endpoint` is valid after `start`.

    `port` 0 selects a free port. `data` is the folder of tables and objects. MiniStack writes tables when it
    is terminated regularly, and objects immediately. Queues are not stored, because the reconciler finds
    every saga without them. `start` raises `LocalRunError`.
    """

    def __init__(self, run_dir: Path, children: Children, port: int = 0, data: Path | None = None) -> None:
        self._children, self._port, self._data = children, port, data
        self.endpoint = ""
        self.log = run_dir / "logs" / "ministack.log"
        self._folder = run_dir / "ministack"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._data is not None:
            # Queues and topics come with the addresses of the run before.
            for file in self._data.glob("state/*.json"):
                if file.stem not in _KEPT:
                    file.unlink()
        if self._port:
            processes.bind(self._port, "the embedded AWS").close()
        for _ in range(_TRIES):
            if await self._start_on(self._port or free_port()):
                return
        raise LocalRunError(f"MiniStack did not start; the end of {self.log}:\n{tail(self.log)}")

    async def _start_on(self, port: int) -> bool:
        with self.log.open("ab", buffering=0) as log:
            process = self._process = await self._children.start(
                "baton.local.guarded_ministack",
                name="baton-aws",
                environment=self._environment(port),
                folder=self._folder,
                log=log,
            )
        self.endpoint = f"http://127.0.0.1:{port}"
        loop = asyncio.get_running_loop()
        give_up = loop.time() + _START_LIMIT_S
        while loop.time() < give_up:
            if process.returncode is not None:
                return False  # most likely the port was taken in between
            if await asyncio.to_thread(_healthy, self.endpoint):
                return True
            await asyncio.sleep(0.02)
        await self.stop()
        return False

    def _environment(self, port: int) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "BIND_HOST": "127.0.0.1",  # its default is every interface
            "GATEWAY_PORT": str(port),
            "MINISTACK_HOST": "127.0.0.1",  # the host in queue URLs
            "MINISTACK_REGION": REGION,
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "IOT_MTLS_ENABLED": "0",  # or it listens on 8883 as well
            "SFTP_ENABLED": "0",
            "LOG_LEVEL": "WARNING",
            "TMPDIR": str(self._folder),
            "S3_DATA_DIR": str((self._data or self._folder) / "s3"),
            "STATE_DIR": str((self._data or self._folder) / "state"),
            "PERSIST_STATE": "1" if self._data else "0",
            "S3_PERSIST": "1" if self._data else "0",
        }

    async def wait(self) -> int:
        """Wait for the end of the process and return its exit status."""
        assert self._process is not None, "not started"
        return await self._process.wait()

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await self._children.end(process, _SAVE_LIMIT_S if self._data else 0)
            await process.wait()
            self._children.ended(process.pid)
            shutil.rmtree(self._folder, ignore_errors=True)  # nothing in it is used again


def _healthy(endpoint: str) -> bool:
    # No proxies: a proxy of the surrounding shell must not be asked about loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{endpoint}/_ministack/ready", timeout=1.0) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


P = ParamSpec("P")
T = TypeVar("T")


class _Descriptions(Loader):
    """Loader that does not scan the descriptions of all services to find one of them."""

    def list_available_services(self, type_name: str) -> list[str]:
        return ["dynamodb", "dynamodbstreams", "events", "s3", "sesv2", "sns", "sqs"]


@functools.cache
def _session() -> Session:
    """Return the session shared by all runs of a program, with the service descriptions it has read."""
    session = Session()
    session.register_component("data_loader", _Descriptions())
    session.set_credentials(CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
    return session


class Aws:
    """The clients, and `call`, which runs one of their methods without blocking the event loop."""

    dynamodb: DynamoDBClient
    streams: DynamoDBStreamsClient
    sqs: SQSClient
    s3: S3Client
    sns: SNSClient

    def __init__(self, endpoint: str) -> None:
        config = Config(
            retries={"total_max_attempts": 1},
            connect_timeout=10,
            read_timeout=60,  # a busy machine takes its time for the first table
            max_pool_connections=64,
            proxies={},  # a proxy of the surrounding shell must not be asked about loopback
            user_agent="baton-local",  # fixed: botocore would put its own together twice for every request
        )
        client: Any = functools.partial(
            _session().create_client, region_name=REGION, endpoint_url=endpoint, config=config
        )
        self._client = client
        self.dynamodb = client("dynamodb")
        self.streams = client("dynamodbstreams")
        self.sqs = client("sqs")
        self.s3 = client("s3")
        self.sns = client("sns")
        # Not asyncio.to_thread's pool: that has cpu + 4 threads, and each long poll holds one for a while.
        self._threads = ThreadPoolExecutor(max_workers=64, thread_name_prefix="baton-local")

    @functools.cached_property
    def sesv2(self) -> SESV2Client:
        """Client created on first use, because its description is slow to read and it is rarely needed."""
        return cast("SESV2Client", self._client("sesv2"))

    @functools.cached_property
    def events(self) -> Any:
        """Client created on first use, as `sesv2`."""
        return self._client("events")

    async def call(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        work = functools.partial(method, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def keeping(folder: Path) -> Iterator[bool]:
    """Hold the data folder. Yield true if the run before was killed, so that its tables were not written.
    Raises `LocalRunError` if the folder cannot be made or a live run holds it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("a+")
    except OSError as error:
        raise LocalRunError(f"{folder} cannot keep anything: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LocalRunError(f"another local run keeps its data in {folder}") from error
        was_killed = lock.tell() > 0
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        try:
            yield was_killed
        finally:
            lock.truncate(0)
