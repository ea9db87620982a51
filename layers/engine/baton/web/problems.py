"""Errors as RFC 9457 problems."""

from __future__ import annotations

import json
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import Response

from baton.errors import Problem, TooManyRequests, UserError

MEDIA_TYPE = "application/problem+json"


def problem(
    status: int, code: str, title: str, detail: str, problems: tuple[Problem, ...] = ()
) -> Response[str]:
    """A problem; `problems` become its `errors`, each with its path, position and suggestion if known."""
    body: dict[str, Any] = {
        "type": f"urn:baton:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    if problems:
        body["errors"] = [
            {key: value for key, value in asdict(item).items() if value or key == "path"} for item in problems
        ]
    return Response(status_code=status, content_type=MEDIA_TYPE, body=json.dumps(body, ensure_ascii=False))


def of_user_error(error: UserError) -> Response[str]:
    answer = problem(error.status, error.code, error.title, error.detail, error.problems)
    if isinstance(error, TooManyRequests):
        answer.headers["Retry-After"] = str(error.retry_after_s)
    return answer


def of_status(status: HTTPStatus, code: str, detail: str) -> Response[str]:
    return problem(status.value, code, status.phrase, detail)
