"""Log lines of the functions that run tools: from the file of a local run, or from CloudWatch Logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
from botocore.session import Session

from baton.local.processes import LocalRunError

WORKER_LOG = "WorkerFunction.log"
_OF_THE_RUNTIME = ("START RequestId:", "END RequestId:", "REPORT RequestId:", "INIT_START ")
_ENGINE = "baton."
_CHUNK = 1 << 20


class LogLine(NamedTuple):
    """A line of a function's log, which may have several lines of text.

    `saga` is empty if it is about none. `slot`: node, and its round and item. `at`: ISO 8601, in UTC.
    `of_tool`: written by code of the application, or about it.
    """

    saga: str
    slot: str
    attempt: int
    level: str
    text: str
    at: str
    of_tool: bool

    def is_about(self, saga: str) -> bool:
        """Return true if the line is about a saga, or about a descendant of it."""
        return self.saga == saga or self.saga.startswith(f"{saga}.")


def read_line(text: str) -> LogLine | None:
    """Return a line, or None for one of Lambda's runtime or a metric."""
    if not text.strip() or text.startswith(_OF_THE_RUNTIME):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):  # of a program that a tool has started, or of an import
        return LogLine("", "", 0, "INFO", text.rstrip("\r\n"), "", of_tool=True)
    if "message" not in found:
        return None
    message, level, logger = found["message"], str(found.get("level", "INFO")), str(found.get("logger", ""))
    if trace := found.get("stackTrace"):  # as Python prints it
        lines = ["Traceback (most recent call last):\n", *map(str, trace)]
        message = f"{message}\n{''.join(lines)}{found.get('errorType')}: {found.get('errorMessage')}"
    return LogLine(
        saga=str(found.get("saga", "")).rpartition("#")[2],
        slot=str(found.get("slot") or found.get("node") or ""),
        attempt=int(found.get("attempt") or 0),
        level=level,
        text=message if isinstance(message, str) else json.dumps(message),
        at=str(found.get("timestamp", "")),
        of_tool="attempt" in found and (not logger.startswith(_ENGINE) or level not in ("DEBUG", "INFO")),
    )


class LogFile:
    """Lines of a file that grows. The last one is read when it has its end."""

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._rest = path, 0, b""

    def read(self) -> Iterator[LogLine]:
        """Yield the lines that are new."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._at)
            while chunk := file.read(_CHUNK):
                self._at += len(chunk)
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in lines:
                    if (found := read_line(line.decode(errors="replace"))) is not None:
                        yield found


class CloudWatchLog:
    """Lines about one saga and its descendants, in CloudWatch Logs. `clients`: in place of botocore's."""

    def __init__(
        self, stack: str, region: str, saga: str, since: int, clients: Callable[..., Any] | None = None
    ) -> None:
        self._group, self._saga, self._since = f"/aws/lambda/{stack}-worker", saga, since
        self._seen: dict[str, int] = {}
        self._place = f" in {region}" if region else ""
        made: Callable[..., Any] = clients or Session().create_client
        try:
            self._client = made("logs", region_name=region or None)
        except NoRegionError as error:
            what = f"the region of {stack} is not known: set AWS_REGION, or write `region` into baton.toml"
            raise LocalRunError(what) from error
        except BotoCoreError as error:
            raise LocalRunError(f"the logs of {stack} cannot be read: {error}") from error

    def read(self) -> Iterator[LogLine]:
        """Yield the lines that are new, in the order of their times. Raises `LocalRunError`."""
        wanted: dict[str, Any] = {
            "logGroupName": self._group,
            # The engine's own lines have the key of a saga, which ends with its id.
            "filterPattern": f'{{ $.saga = "*{self._saga}*" }}',
            "startTime": self._since,
        }
        while True:
            try:
                page = self._client.filter_log_events(**wanted)
            except ClientError as error:
                if error.response["Error"]["Code"] == "ResourceNotFoundException":
                    raise LocalRunError(f"there is no log group {self._group}{self._place}") from error
                raise LocalRunError(f"{self._group} cannot be read: {error}") from error
            except BotoCoreError as error:
                raise LocalRunError(f"{self._group} cannot be read: {error}") from error
            for event in page.get("events", ()):
                if event["eventId"] in self._seen:
                    continue
                self._seen[event["eventId"]] = event["timestamp"]
                line = read_line(event["message"])
                if line is not None and line.is_about(self._saga):
                    at = datetime.fromtimestamp(event["timestamp"] / 1_000, UTC)
                    yield line._replace(at=at.isoformat(timespec="milliseconds"))
            if not page.get("nextToken"):
                break
            wanted["nextToken"] = page["nextToken"]
        # Lines come late: the last minute is read again.
        if self._seen:
            self._since = max(self._since, max(self._seen.values()) - 60_000)
            self._seen = {name: at for name, at in self._seen.items() if at >= self._since}
