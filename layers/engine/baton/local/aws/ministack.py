"""The embedded AWS: one MiniStack process on loopback, waited for until it answers; kept in a directory, if one is given.

What is created in it is decided elsewhere (see template/provision.py).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import urllib.request
from pathlib import Path

from baton.local.processes import servers
from baton.local.processes.problems import LocalRunError, tail
from baton.local.processes.process import Children

ACCOUNT = "000000000000"
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
_START_LIMIT_S = 20.0
_SAVE_LIMIT_S = 20.0
_KEPT = frozenset({"dynamodb", "s3"})
_TRIES = 3


def free_port() -> int:
    """A loopback port that is free now; another process may take it first, so callers try again."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class MiniStack:
    """Starts and stops the process; `endpoint` is valid once `start` has returned.

    `port` 0 is any free one. `data`: where tables and objects are kept. MiniStack writes tables when it is ended
    politely, objects at once. What is in queues is not kept: the reconciler finds every saga without it. Raises
    `LocalRunError` from `start`.
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
            servers.bind(self._port, "the embedded AWS").close()
        for _ in range(_TRIES):
            if await self._start_on(self._port or free_port()):
                return
        raise LocalRunError(f"MiniStack did not start; the end of {self.log}:\n{tail(self.log)}")

    async def _start_on(self, port: int) -> bool:
        with self.log.open("ab", buffering=0) as log:
            process = self._process = await self._children.start(
                "baton.local.aws.guarded_ministack",
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
        """Returns the exit status once the process has ended."""
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
