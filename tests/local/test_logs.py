"""The lines of tools, read from the file of a local run and from CloudWatch Logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session
from botocore.stub import Stubber

from baton.cli.text.tables import printed_lines
from baton.local.logs import CloudWatchLog, LogFile, LogLine, read_line
from baton.local.processes import LocalRunError
from tests.kit.sentences import Says

SAGA = "k065709626dd62fa60ebfcbe1d"


def line(text: str = "hello", **fields: Any) -> str:
    of = {"saga": SAGA, "node": "pay", "attempt": 2}
    return json.dumps({"timestamp": "2026-11-29T23:17:43Z", "level": "INFO", "message": text} | of | fields)


def found(text: str) -> LogLine:
    read = read_line(text)
    assert read is not None
    return read


def test_a_line_names_its_step() -> None:
    assert found(line()) == LogLine(SAGA, "pay", 2, "INFO", "hello", "2026-11-29T23:17:43Z", of_tool=True)
    assert found(line(slot="pay@1#a")).slot == "pay@1#a"


@pytest.mark.parametrize(
    "text",
    ["", "START RequestId: 1 Version: $LATEST", "END RequestId: 1", "REPORT RequestId: 1\tx", '{"_aws": {}}'],
)
def test_lines_of_the_runtime_and_metrics_are_left_out(text: str) -> None:
    assert read_line(text) is None


def test_what_a_program_prints_is_shown_without_a_step() -> None:
    assert found("by cowsay\n")[:5] == ("", "", 0, "INFO", "by cowsay")
    assert list(printed_lines(found("by cowsay\n"))) == ["\x1b[2mworker | \x1b[0mby cowsay"]


def test_a_line_of_the_engine_has_the_key_of_its_saga_and_is_no_tools() -> None:
    read = found(line("saga finished", saga=f"T#local#SAGA#{SAGA}", logger="baton.worker"))
    assert (read.saga, read.of_tool) == (SAGA, False)
    assert found(line("Traceback …", logger="baton.tools", level="WARNING")).of_tool


def test_an_exception_that_is_logged_is_shown_as_python_prints_it() -> None:
    trace = ['  File "a.py", line 1, in f\n    x()\n']
    read = found(line("no luck", stackTrace=trace, errorType="KeyError", errorMessage="'x'"))
    said, begins, *rest = read.text.splitlines()
    assert (said, begins.split()[0]) == ("no luck", "Traceback")
    assert rest == [
        '  File "a.py", line 1, in f',
        "    x()",
        "KeyError: 'x'",
    ]


def test_each_line_of_text_has_saga_node_and_attempt_before_it() -> None:
    shown = [text.encode().decode() for text in printed_lines(found(line("one\ntwo\x1b[31m")))]
    assert [text.replace("\x1b[2m", "").replace("\x1b[0m", "") for text in shown] == [
        "k0657096 pay attempt 2 | one",
        "k0657096 pay attempt 2 | two\N{REPLACEMENT CHARACTER}[31m",
    ]


def test_a_file_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    source = LogFile(path)
    assert list(source.read()) == []
    path.write_text(line("one") + "\n" + line("two")[:20])
    assert [each.text for each in source.read()] == ["one"]
    with path.open("a") as file:
        file.write(line("two")[20:] + "\n")
    assert [each.text for each in source.read()] == ["two"]
    assert list(source.read()) == []


@contextmanager
def cloud_watch() -> Iterator[tuple[Stubber, Any]]:
    session = Session()
    session.set_credentials("a", "b")
    client = session.create_client("logs", region_name="eu-central-1")
    with Stubber(client) as stub:
        yield stub, lambda *_, **__: client


def asked(since: int, **more: Any) -> dict[str, Any]:
    return {
        "logGroupName": "/aws/lambda/shop-worker",
        "filterPattern": f'{{ $.saga = "*{SAGA}*" }}',
        "startTime": since,
        **more,
    }


def event(number: int, at: int, text: str, **fields: Any) -> dict[str, Any]:
    return {"eventId": str(number), "timestamp": at, "message": line(text, **fields)}


def test_the_lines_of_a_deployment_are_read_page_by_page_and_each_once() -> None:
    with cloud_watch() as (stub, clients):
        first = [event(1, 100_000, "one"), event(2, 200_000, "of another", saga=f"{SAGA}x")]
        stub.add_response("filter_log_events", {"events": first, "nextToken": "n"}, asked(5))
        child = event(3, 200_001, "of a child", saga=f"{SAGA}.0.send")
        stub.add_response("filter_log_events", {"events": [child]}, asked(5, nextToken="n"))
        again = [event(3, 200_001, "of a child", saga=f"{SAGA}.0.send"), event(4, 200_002, "late")]
        stub.add_response("filter_log_events", {"events": again}, asked(140_001))
        source = CloudWatchLog("shop", "eu-central-1", SAGA, 5, clients)
        assert [each.text for each in source.read()] == ["one", "of a child"]
        (late,) = source.read()
        assert (late.text, late.at) == ("late", "1970-01-01T00:03:20.002+00:00")
        stub.assert_no_pending_responses()


def test_a_log_that_cannot_be_read_is_named(says: Says) -> None:
    with cloud_watch() as (stub, clients):
        stub.add_client_error("filter_log_events", "ResourceNotFoundException")
        with says.raised(LocalRunError):
            list(CloudWatchLog("shop", "eu-central-1", SAGA, 0, clients).read())
        stub.add_client_error("filter_log_events", "AccessDeniedException", "not you")
        with says.raised(LocalRunError):
            list(CloudWatchLog("shop", "eu-central-1", SAGA, 0, clients).read())
