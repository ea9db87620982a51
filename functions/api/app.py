"""The api function: HTTP in, JSON out. Everything is in baton.web."""

from __future__ import annotations

from typing import Any

from baton.loading import loading

with loading():
    from baton.web.app import Api
    from baton.wiring import make_api

    _api = Api(*make_api())


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """An API Gateway HTTP API event (payload format 2.0)."""
    return _api.handle(event, context)
