"""Errors as RFC 9457 problems."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import Response

from baton.errors import Problem, TooManyRequests, UserError

MEDIA_TYPE = "application/problem+json"
MAX_ERRORS_BYTES = (
    1_000_000  # far below what Lambda may answer: quotes and backslashes can double, and double again
)


def problem(
    status: int, code: str, title: str, detail: str, problems: tuple[Problem, ...] = ()
) -> Response[str]:
    """A problem; `problems` become its `errors`, each with its path, position and suggestion if known.

    Of more than an answer has room for the first are listed, and `detail` says so.
    """
    body: dict[str, Any] = {
        "type": f"urn:baton:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    if problems:
        body["errors"] = errors = list(_errors(problems))
        if len(errors) < len(problems):
            body["detail"] += f" (the first {len(errors):,} of {len(problems):,} are listed)"
    return Response(status_code=status, content_type=MEDIA_TYPE, body=json.dumps(body, ensure_ascii=False))


def _errors(problems: Iterable[Problem]) -> Iterator[dict[str, Any]]:
    """At least one, and then as many as there is room for."""
    room = MAX_ERRORS_BYTES
    for index, item in enumerate(problems):
        shown = {key: value for key, value in asdict(item).items() if value or key == "path"}
        room -= len(json.dumps(shown, ensure_ascii=False).encode())
        if index and room < 0:
            return
        yield shown


def of_user_error(error: UserError) -> Response[str]:
    answer = problem(error.status, error.code, error.title, error.detail, error.problems)
    if isinstance(error, TooManyRequests):
        answer.headers["Retry-After"] = str(error.retry_after_s)
    return answer


def of_status(status: HTTPStatus, code: str, detail: str) -> Response[str]:
    return problem(status.value, code, status.phrase, detail)
