"""Which APIs a deployment names: `weather=https://api.example/openapi.json#sha256:…`.

Each has the address of its description and the hash of that, and perhaps, behind `@`, where its requests go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class NamedApi(NamedTuple):
    """One of them. `server` has no slash at its end, and is empty where the description says it."""

    name: str
    url: str
    sha256: str
    server: str


class Apis:
    """All of a deployment."""

    def __init__(self, text: str = "") -> None:
        """text: as the setting's pattern has it. Raises `ValueError`."""
        self._named: Mapping[str, NamedApi] = {api.name: api for api in map(_read, text.split())}
        if len(self._named) != len(text.split()):
            raise ValueError("each API is named once")

    def get(self, name: str) -> NamedApi | None:
        return self._named.get(name)

    def names(self) -> list[str]:
        return sorted(self._named)


def _read(entry: str) -> NamedApi:
    name, _, rest = entry.partition("=")
    url, _, pin = rest.partition("#sha256:")
    sha256, _, server = pin.partition("@")
    return NamedApi(name, url, sha256, server.rstrip("/"))
