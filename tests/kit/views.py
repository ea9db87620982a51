"""Answers as a client reads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

import msgspec

from baton.core.read import explain as core
from baton.core.read.story import Story
from baton.runtime.requests.queries import Queries


def as_json(answer: Any) -> Any:
    """Return the answer as its JSON reads: an object is a dict."""
    return msgspec.to_builtins(answer)


ABOUT: dict[str, Any] = {"saga": "s1", "workflow": "w", "status": "running", "version": 1, "branch": 0}


def explain(story: Story, node: str, room: int) -> core.Explanation:
    """Explain a node of a story that no saga of a store has."""
    return core.explain(story, node, room, **ABOUT)


def way(story: Story, after: int, limit: int, room: int) -> core.Way:
    """Return the path of a story that no saga of a store has."""
    return core.way(story, after, limit, room, **ABOUT)


class JsonAnswers:
    """A service whose answers are JSON values. The other attributes are those of the service."""

    def __init__(self, service: Any) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Callable[..., Awaitable[dict[str, Any]]]:
        found = getattr(self._service, name)
        if not iscoroutinefunction(found):
            return found  # type: ignore[no-any-return]  # an attribute

        async def answer(*given: Any, **named: Any) -> dict[str, Any]:
            json: dict[str, Any] = as_json(await found(*given, **named))
            return json

        return answer


class JsonQueries(JsonAnswers):
    """The reading use cases, whose answers are JSON values."""

    def __init__(self, queries: Queries) -> None:
        super().__init__(queries)
        self._request, self._parts = queries._request, queries._parts
