"""The commands that do the same as a button: for `baton`, and for `curl`. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

# What the reader's shell fills in.
_AUTHORIZED = "Authorization: Bearer $BATON_TOKEN"
_KEY = "Idempotency-Key: $(uuidgen)"


def commands(
    api: str, path: str, baton: Sequence[str], body: Mapping[str, Any] | None = None, *, has_key: bool = False
) -> str:
    """A line for each. The token is the reader's own, and each run of the command makes a new key of a request."""
    curl = ["curl", f"{api}{path}", "-H", _AUTHORIZED]
    if body is not None:
        curl[1:1] = ["-X", "POST"]
        curl += ["-H", "Content-Type: application/json"]
        if has_key:
            curl += ["-H", _KEY]
        curl += ["-d", json.dumps(body, ensure_ascii=False)]
    return f"{_line(['baton', *baton])}\n{_line(curl)}"


def printing(api: str, saga: str, after: str = "0", limit: str = "") -> str:
    """The commands that print the log of a saga, or entries of it."""
    asked = {name: value for name, value in (("after", after), ("limit", limit)) if value not in ("", "0")}
    path = f"/sagas/{quote(saga, safe='')}/events"
    words = [word for name, value in asked.items() for word in (f"--{name}", value)]
    return commands(api, f"{path}?{urlencode(asked)}" if asked else path, ["events", saga, *words])


def _line(words: Sequence[str]) -> str:
    """For a shell."""
    return " ".join(f'"{word}"' if word in (_AUTHORIZED, _KEY) else shlex.quote(word) for word in words)
