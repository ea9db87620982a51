"""What a handler gives back, and how it becomes an answer: JSON, and an ETag by which a client need not read it twice."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import Response

_TAG = re.compile(r'"[^"]*"')  # the name; the W/ of a weak one stands before it
_CACHE = "private, no-cache"  # keep it, and ask with its ETag before using it


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and a JSON value."""

    status: HTTPStatus
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


def written(reply: Reply) -> Response[str]:
    """The reply as JSON."""
    headers: dict[str, str | list[str]] = dict(reply.headers)
    return Response(
        reply.status.value, "application/json", json.dumps(reply.body, ensure_ascii=False), headers
    )


def read(reply: Reply, if_none_match: str) -> Response[str]:
    """The reply to a GET: with the ETag of its body, and without a body where the caller has this one."""
    answer = written(reply)
    body = answer.body or ""
    tag = f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'
    answer.headers |= {"ETag": tag, "Cache-Control": _CACHE}
    if not _is_known(tag, if_none_match):
        return answer
    return Response(HTTPStatus.NOT_MODIFIED.value, None, "", {"ETag": tag, "Cache-Control": _CACHE})


def _is_known(tag: str, if_none_match: str) -> bool:
    """By RFC 9110, 13.1.2: any of a list, compared weakly; `*` alone is any body there is."""
    return if_none_match.strip() == "*" or tag in _TAG.findall(if_none_match)
