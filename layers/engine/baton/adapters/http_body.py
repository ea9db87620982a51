"""The body of an answer, from the bytes of the network: bounded before and after it is decoded.

The bytes come from httpx_exchange.py.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Final

from baton.ports import StepFailure

# What zlib is told of the beginning: the header of gzip, or that of zlib. What else there is was never asked for.
_FORMATS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Body:
    """Takes the bytes of one answer. `most` bounds them as they come, and as they are decoded."""

    def __init__(self, encoding: str, most: int, host: str) -> None:
        """encoding: the answer's `content-encoding`. Raises `StepFailure` for one that is not undone here."""
        names = [name.strip() for name in encoding.lower().split(",")]
        coded = [name for name in names if name not in ("", "identity")]
        if len(coded) > 1 or not _FORMATS.keys() >= set(coded):
            what = f"{host} answered with the content encoding `{encoding[:40]}`; one of gzip and deflate is read"
            raise StepFailure("invalid_response", what)
        self._decoder = zlib.decompressobj(_FORMATS[coded[0]]) if coded else None
        self._is_deflate = coded == ["deflate"]
        self._most, self._host = most, host
        self._raw = self._size = 0
        self._parts: list[bytes] = []

    async def read(self, raw: AsyncIterator[bytes]) -> bytes:
        """All of it. Raises `StepFailure`."""
        try:
            async for part in raw:
                self._take(part)
        except zlib.error as error:
            raise self._broken() from error
        if self._decoder is not None and self._raw and not self._decoder.eof:
            raise self._broken()
        return b"".join(self._parts)

    def _take(self, part: bytes) -> None:
        self._raw += len(part)
        if self._raw <= self._most and self._decoder is not None:
            # One byte more than fits says that there is too much; what is left of the part is never looked at.
            part = self._decoded(part, self._most - self._size + 1)
        self._size += len(part)
        if self._raw > self._most or self._size > self._most:
            raise StepFailure("result_too_large", f"{self._host} answered with more than {self._most} bytes")
        self._parts.append(part)

    def _decoded(self, part: bytes, most: int) -> bytes:
        assert self._decoder is not None
        try:
            return self._decoder.decompress(part, most)
        except zlib.error:
            if not self._is_deflate or self._raw != len(part):
                raise
        # Many servers send deflate without the header that it should have.
        self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._decoder.decompress(part, most)

    def _broken(self) -> StepFailure:
        return StepFailure("invalid_response", f"{self._host} answered with what cannot be decoded")
