"""What a failed request for a model is: a code of the matrix, by what the provider and the client's errors say of it.

Texts of providers quote what they were sent, so they are cleaned here. What is sent is in openai_exchange.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import httpx2
import openai

from baton.adapters.models.profiles import Profile
from baton.core.failures import quoted
from baton.core.failures.classes import code_of_status
from baton.core.failures.evidence import evidence_of
from baton.ports import StepFailure

_TOLD: Final = 500
_TOO_LONG: Final = re.compile(
    r"context.?(length|window|size)|maximum.{0,20}(context|tokens)|too (long|many (input )?tokens)|exceeds?.{0,40}tokens",
    re.IGNORECASE,
)
_DECIDES: Final = frozenset({401, 403, 408, 429})
"""Statuses, besides those from 500 on, that say more than a code which many refusals share."""
_GENERIC: Final = frozenset(
    {"bad_request", "invalid_input", "client_error", "server_error", "tool_error", "unknown"}
)
_PAYMENT_REQUIRED, _NOT_FOUND, _TOO_LARGE, _REFUSED = 402, 404, 413, frozenset({400, 413, 422})
_OWN_FAULT: Final = 500


def failure_of(error: Exception, profile: Profile, model: str, credential: str) -> StepFailure:
    """The failure. The credential is kept out of its text, whatever the provider has quoted."""
    host = profile.host
    if isinstance(error.__cause__, StepFailure):  # of the transport; the client wraps it
        return error.__cause__
    if isinstance(error, openai.APITimeoutError):
        return StepFailure("timeout", f"{host} did not take the connection in time")
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
        why = _clean(str(cause or ""), credential) or type(cause or error).__name__
        return StepFailure("connection_failed", f"{host}: {why}")
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | httpx2.HTTPError | RecursionError):
        return StepFailure("invalid_response", f"the answer of {host} cannot be read")
    evidence = evidence_of(error)
    status = evidence.status or _number(error)
    said = _clean(_said(error), credential)
    code = _code(error, evidence.verdict().code, status, said)
    if code == "unauthorized":  # without what the provider says: it quotes the credential
        said = "it does not accept the credential of the profile"
    answered = f"{host} answered {status}" if status else f"{host} broke off"
    named = f" for the model `{model}`" if code == "model_unavailable" else ""
    return StepFailure(
        code,
        f"{answered}{named}{f': {said}' if said else ''}{_about(profile, status)}",
        status=status,
        retry_after=evidence.retry_after,
    )


def _about(profile: Profile, status: int) -> str:
    """What may be wrong with the address, where there was nothing at it."""
    if status != _NOT_FOUND or profile.has_path:
        return ""
    return f" (the address of the profile `{profile.name}` has no path, and that of most providers ends with `/v1`)"


def _code(error: Exception, known: str, status: int, said: str) -> str:
    if status == _NOT_FOUND:
        return "model_unavailable"
    if status == _PAYMENT_REQUIRED:
        return "quota_exceeded"
    if status == _TOO_LARGE or (
        status in _REFUSED
        and known in ("bad_request", "invalid_input", "client_error")
        and _TOO_LONG.search(said)
    ):
        return "context_exceeded"
    if isinstance(error, openai.APIStatusError) and 300 <= status < 400:
        return "resource_moved"  # redirects are not followed: a credential is for one host
    if known in _GENERIC and (status in _DECIDES or status >= _OWN_FAULT):
        return code_of_status(status)
    if known in ("unknown", "tool_error"):  # an error inside of an answer that had begun
        return code_of_status(status) or "server_error"
    return known


def _number(error: Exception) -> int:
    """A status in the place of a code, as some providers send it inside of an answer."""
    body: Any = getattr(error, "body", None)
    inner = body if isinstance(body, Mapping) else {}
    for found in (
        getattr(error, "code", None),
        *(inner.get(name) for name in ("code", "status", "status_code")),
    ):
        text = str(found)
        if len(text) == 3 and text.isdecimal() and 400 <= int(text) <= 599:
            return int(text)
    return 0


def _said(error: Exception) -> str:
    body: Any = getattr(error, "body", None)
    for place in (body, body.get("error") if isinstance(body, Mapping) else None):
        if isinstance(place, Mapping) and isinstance(place.get("message"), str):
            return str(place["message"])
    if isinstance(body, str):
        return body
    return "" if isinstance(error, openai.APIStatusError) else str(error)


def _clean(text: str, credential: str) -> str:
    if credential:
        text = text.replace(credential, "[redacted]")
    return " ".join(quoted(text, _TOLD).split())
