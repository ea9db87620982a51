"""The argument of a handler: one request whose caller, query and body have been checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from baton.runtime.queries import Queries
from baton.runtime.service import Service

B = TypeVar("B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Generic[B]):
    """`path` and `query` by name; `body` as the route's model, `text` and `headers` as they came; `key` is the Idempotency-Key; `intentions` the workflow for them."""

    service: Service
    queries: Queries
    path: Mapping[str, Any]
    query: Mapping[str, Any]
    body: B
    text: str
    headers: Mapping[str, str]
    is_json: bool
    key: str
    intentions: str
    describe: Callable[[], dict[str, Any]]
