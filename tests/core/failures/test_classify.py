"""What a failure is, from exceptions, statuses, services' codes and what a tool says."""

from __future__ import annotations

import errno
import json
import sqlite3
from typing import Any, ClassVar

import botocore.exceptions
import httpx
import pydantic
import pytest

from baton.core.failures.codes import CODES
from baton.core.failures.evidence import MOST_CAUSES, evidence_of
from baton.core.failures.names import (
    EXCEPTIONS,
    RETRYABLE,
    SERVICES,
    STATUSES,
    Verdict,
    classify,
    code_of,
    code_of_status,
)

REQUEST = httpx.Request("GET", "http://x")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "unauthorized", "recoverable"),
        (403, "forbidden", "recoverable"),
        (404, "not_found", "recoverable"),
        (409, "conflict", "recoverable"),
        (422, "invalid_input", "user_resolvable"),
        (429, "rate_limited", "transient"),
        (400, "bad_request", "permanent"),
        (410, "client_error", "permanent"),
        (418, "client_error", "permanent"),
        (500, "server_error", "transient"),
        (502, "service_unavailable", "transient"),
        (503, "service_unavailable", "transient"),
        (504, "service_unavailable", "transient"),
        (599, "server_error", "transient"),
        (308, "resource_moved", "recoverable"),
        (200, "unknown", "unknown"),
        (0, "unknown", "unknown"),
    ],
)
def test_a_status_has_a_code_and_a_class(status: int, code: str, kind: str) -> None:
    assert classify(status=status) == Verdict(code, kind, status)


def test_every_name_leads_to_a_code_of_the_table() -> None:
    assert {*STATUSES.values(), *EXCEPTIONS.values(), *SERVICES.values()} <= CODES.keys()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("TIMEOUT", "timeout"),
        ("NETWORK_ERROR", "connection_failed"),
        ("LLM_RATE_LIMIT", "rate_limited"),
        ("503", "service_unavailable"),
        ("429", "rate_limited"),
        ("200", "200"),
        ("not-found", "not_found"),
        (" too many requests ", "rate_limited"),
        ("authentication_failed", "unauthorized"),
    ],
)
def test_other_spellings_are_known(name: str, code: str) -> None:
    assert code_of(name) == code


@pytest.mark.parametrize("kind", ["permanent", "Permanent", " PERMANENT"])
def test_a_class_is_known_in_any_spelling(kind: str) -> None:
    assert classify(code="card_declined", kind=kind).kind == "permanent"
    assert classify(code="quota", kind="User-Resolvable").kind == "user_resolvable"


def test_a_status_that_is_no_failure_has_no_code() -> None:
    assert code_of_status(204) == ""


def test_what_the_tool_says_counts_most_then_the_service_then_the_status_then_the_exception() -> None:
    known: dict[str, Any] = {
        "services": ("Throttling",),
        "status": 404,
        "exceptions": ("TimeoutError",),
    }
    assert classify(code="deadlock", **known).code == "deadlock"
    assert classify(**known).code == "rate_limited"
    assert classify(**{**known, "services": ("Other",)}).code == "not_found"
    assert classify(**{**known, "services": (), "status": 0}).code == "timeout"


def test_a_code_of_the_tools_own_has_the_class_of_what_else_is_known() -> None:
    assert classify(code="no_tables") == Verdict("no_tables", "unknown")
    assert classify(code="no_tables", status=503) == Verdict("no_tables", "transient", 503)
    assert classify(code="no_tables", kind="permanent") == Verdict("no_tables", "permanent")
    assert classify(code="timeout", kind="nonsense") == Verdict("timeout", "transient")


def test_what_is_transient_or_unknown_is_worth_another_try() -> None:
    assert classify(status=503).kind in RETRYABLE
    assert classify(exceptions=("ValueError",)) == Verdict("tool_error", "unknown")
    assert classify(exceptions=("ValueError",)).kind in RETRYABLE
    assert classify(status=400).kind not in RETRYABLE


def client_error(code: str, status: int) -> botocore.exceptions.ClientError:
    response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return botocore.exceptions.ClientError(response, "PutItem")


def status_error(status: int, **headers: str) -> httpx.HTTPStatusError:
    return httpx.HTTPStatusError("x", request=REQUEST, response=httpx.Response(status, headers=headers))


class Odd(Exception):
    """Attributes that raise, and headers that are none."""

    @property
    def status_code(self) -> int:
        raise RuntimeError

    @property
    def headers(self) -> Any:
        return self

    def get(self, name: str) -> str:
        raise LookupError(name)


class Answered(Exception):
    """As the clients of model providers: a status, and the body of the answer."""

    status_code = 400
    body: ClassVar = {"error": {"code": "context_length_exceeded"}}


class Sql(Exception):
    """As the drivers of databases."""

    sqlstate = "40P01"


def invalid() -> pydantic.ValidationError:
    try:
        pydantic.TypeAdapter(int).validate_python("x")
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


def locked() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorname = "SQLITE_BUSY"
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError(), "timeout"),
        (httpx.ReadTimeout("x"), "timeout"),
        (httpx.ConnectTimeout("x"), "timeout"),
        (httpx.ConnectError("x"), "connection_failed"),
        (httpx.RemoteProtocolError("x"), "connection_failed"),
        (ConnectionResetError(), "connection_failed"),
        (OSError(errno.ENOSPC, "x"), "disk_full"),
        (OSError(errno.EHOSTUNREACH, "x"), "connection_failed"),
        (FileNotFoundError(errno.ENOENT, "x"), "file_not_found"),
        (PermissionError(), "permission_denied"),
        (BlockingIOError(), "file_locked"),
        (MemoryError(), "out_of_memory"),
        (json.JSONDecodeError("x", "y", 0), "invalid_response"),
        (invalid(), "validation_failed"),
        (locked(), "file_locked"),
        (sqlite3.IntegrityError(), "constraint_violation"),
        (client_error("ThrottlingException", 400), "rate_limited"),
        (client_error("AccessDeniedException", 400), "forbidden"),
        (client_error("SomethingNew", 503), "service_unavailable"),
        (botocore.exceptions.NoCredentialsError(), "missing_credentials"),
        (botocore.exceptions.ReadTimeoutError(endpoint_url="x"), "timeout"),
        (botocore.exceptions.EndpointConnectionError(endpoint_url="x"), "connection_failed"),
        (status_error(401), "unauthorized"),
        (status_error(500), "server_error"),
        (Answered(), "context_exceeded"),
        (Sql(), "deadlock"),
        (Odd(), "tool_error"),
        (ValueError(), "tool_error"),
        (OSError("no number"), "tool_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_an_exception_says_what_it_is(error: Exception, code: str) -> None:
    assert evidence_of(error).verdict().code == code


def raised(*, is_told: bool) -> RuntimeError:
    """What a tool raises while it handles a broken connection, with its cause or without."""
    with pytest.raises(RuntimeError) as caught:  # noqa: PT012  # the cause comes about in here
        try:
            raise ConnectionResetError
        except ConnectionResetError as error:
            raise RuntimeError("no luck") from (error if is_told else None)
    return caught.value


def test_an_exception_that_says_nothing_is_asked_for_its_cause() -> None:
    assert evidence_of(raised(is_told=True)).verdict().code == "connection_failed"
    assert evidence_of(raised(is_told=False)).verdict().code == "tool_error"


def test_causes_that_lead_in_a_circle_are_followed_no_further() -> None:
    error = ValueError()
    error.__cause__ = error
    assert evidence_of(error).exceptions.count("ValueError") == MOST_CAUSES


def test_the_pause_that_an_answer_asks_for_is_found() -> None:
    assert evidence_of(status_error(429, **{"Retry-After": "7"})).retry_after == "7"
    assert evidence_of(client_error("Throttling", 400)).retry_after == ""


@pytest.mark.parametrize("name", ["Retry-After", "retry-after", "Retry-after", "RETRY-AFTER"])
@pytest.mark.parametrize("where", ["error", "response", "mapping"])
def test_the_pause_is_found_in_whatever_letters_a_plain_dict_has_it(name: str, where: str) -> None:
    error: Any = RuntimeError("busy")
    headers = {"content-length": "0", name: "7"}
    if where == "error":
        error.headers = headers
    else:
        error.response = {"headers": headers} if where == "mapping" else type("R", (), {"headers": headers})()
    assert evidence_of(error).retry_after == "7"


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"Retry-After": 30}, "30"),
        ({"Retry-After": None, 5: "x"}, ""),
        ({"Retry-After": ["7"]}, ""),
        ("no", ""),
    ],
)
def test_a_header_is_text_or_a_number(headers: Any, text: str) -> None:
    error: Any = RuntimeError("busy")
    error.headers = headers
    assert evidence_of(error).retry_after == text


class _Http:
    """Exceptions by their names, as libraries have them."""

    @staticmethod
    def error(module: str, name: str) -> Exception:
        made: type[Exception] = type(name, (Exception,), {"__module__": module})
        return made("broken")


@pytest.mark.parametrize(
    ("error", "is_unsent"),
    [
        (ConnectionRefusedError(), True),
        (ConnectionResetError(), False),
        (TimeoutError(), False),
        (_Http.error("httpx", "ConnectError"), True),
        (_Http.error("httpx", "ReadTimeout"), False),
        (_Http.error("socket", "gaierror"), True),
    ],
)
def test_a_connection_that_did_not_come_about_has_sent_nothing(error: Exception, is_unsent: bool) -> None:
    assert evidence_of(error).unsent is is_unsent


def test_a_refused_connection_behind_one_that_broke_says_nothing() -> None:
    refused, wrapper = ConnectionRefusedError(), _Http.error("openai", "APIConnectionError")
    wrapper.__cause__ = refused
    assert evidence_of(wrapper).unsent
    refused.__context__ = ConnectionResetError()
    assert not evidence_of(wrapper).unsent
