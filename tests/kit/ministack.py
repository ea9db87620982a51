"""One embedded AWS for a test session: MiniStack in a process of its own, on a free loopback port.

Only starting and stopping it; what is created in it is the business of the tests. It shares nothing with
the local run, so that the adapters can be tested while that is broken.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

C = TypeVar("C")
_START_S = 90  # on a machine that is busy
_PATIENCE = Config(
    connect_timeout=60, read_timeout=60, retries={"total_max_attempts": 4, "mode": "standard"}, proxies={}
)
_STOP_S = 10


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Its address, for as long as the block lasts; `folder` takes its log and whatever else it writes."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "BIND_HOST": "127.0.0.1",  # it listens on every interface unless told
        "IOT_MTLS_ENABLED": "0",  # ... and on 8883
        "GATEWAY_PORT": str(port),
        "SERVICES": "dynamodb,dynamodbstreams,events,s3,ses,sns,sqs",
        "LOG_LEVEL": "WARNING",
        "TMPDIR": str(folder),
    }
    log = folder / "ministack.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(process, f"{address}/_ministack/ready", log)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def patient(client: C) -> C:
    """For what a test sets up: a client of the same service that waits and asks again, if it is the embedded AWS.

    The product's own give up after seconds, which a busy machine may need for its first table.
    """
    meta = cast("Any", client).meta
    if urlsplit(meta.endpoint_url).hostname != "127.0.0.1":
        return client  # moto, in this process
    return cast("C", _patient(meta.service_model.service_name, meta.endpoint_url, meta.region_name))


@cache
def _patient(service: Any, address: str, region: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=address,
        region_name=region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=_PATIENCE,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    # No proxies: one of the surrounding shell must not be asked about loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _START_S
    while True:
        try:
            with opener.open(ready, timeout=1):
                return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"MiniStack did not start: {log.read_text()[-2000:]}") from error
            time.sleep(0.05)
