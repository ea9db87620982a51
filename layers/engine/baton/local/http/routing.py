"""Which route of an HTTP API a request takes, and its rate limit. Pure.

The most specific route wins: an exact path, then one with parameters, then a greedy one, then $default.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from baton.local.template.http_api import Route

_PARAMETER = re.compile(r"\{([\w.:-]+)(\+?)\}")


@dataclass(frozen=True)
class _Compiled:
    route: Route
    pattern: re.Pattern[str]
    rank: tuple[int, int, int]


class Router:
    def __init__(self, routes: Sequence[Route]) -> None:
        self._default = next((route for route in routes if route.key == "$default"), None)
        compiled = [_compile(route) for route in routes if route.key != "$default"]
        self._routes = sorted(compiled, key=lambda entry: entry.rank)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route and its path parameters; None means 404. `path` is still percent-encoded."""
        for entry in self._routes:
            if entry.route.method in ("ANY", method):
                match = entry.pattern.fullmatch(path)
                if match:
                    values = (unquote(value) for value in match.groups())
                    return entry.route, dict(zip(_names(entry.route.path), values, strict=True))
        return (self._default, {}) if self._default else None


def _names(path: str) -> list[str]:
    return [match[1] for match in _PARAMETER.finditer(path)]


def _compile(route: Route) -> _Compiled:
    source, end = "", 0
    greedy = parameters = 0
    for match in _PARAMETER.finditer(route.path):
        source += re.escape(route.path[end : match.start()]) + ("(.+)" if match[2] else "([^/]+)")
        greedy += bool(match[2])
        parameters += not match[2]
        end = match.end()
    source += re.escape(route.path[end:])
    # A method of its own comes before ANY on the same path.
    return _Compiled(route, re.compile(source), (greedy, parameters, route.method == "ANY"))


class TokenBucket:
    """The throttling of a stage: `burst` at once, `rate` per second; 0 for no limit."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate, self._burst = rate, float(burst)
        self._tokens, self._last = self._burst, now

    def take(self, now: float) -> bool:
        if not self._rate or not self._burst:
            return True
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
