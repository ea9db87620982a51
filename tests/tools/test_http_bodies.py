"""What `std.http` makes of a body: encodings and charsets are undone within bounds, or refused."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable
from functools import cache

import pytest

from tests.tools.outside import Outside, failure, perform, services

HTTP = services()

PLAIN = b'{"a": "' + b"x" * 5_000 + b'"}'


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@cache
def _bomb(layers: int) -> bytes:
    inner = _bomb(layers - 1) if layers > 1 else bytes(50_000_000)
    return gzip.compress(inner, 9, mtime=0)


def _large_deflate() -> bytes:
    return zlib.compress(bytes(50_000_000), 9)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(PLAIN, mtime=0)),
        ("X-GZIP", gzip.compress(PLAIN, mtime=0)),
        ("deflate", zlib.compress(PLAIN)),
        ("deflate", _raw_deflate(PLAIN)),
        ("identity", PLAIN),
        ("identity, gzip", gzip.compress(PLAIN, mtime=0)),
    ],
)
def test_one_encoding_is_undone(server: Outside, encoding: str, body: bytes) -> None:
    url = server.page("/coded", body=body, content_encoding=encoding)
    assert perform("std.http", HTTP, url=url)["body"] == json.loads(PLAIN)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_an_encoded_answer_without_a_body_is_none(server: Outside, encoding: str) -> None:
    assert perform("std.http", HTTP, url=server.page("/none", content_encoding=encoding))["body"] is None


# What is sent, by its encoding: a few kilobytes that would become megabytes, or nothing at all. Those are made when they are used.
HOSTILE: dict[str, tuple[str, bytes | Callable[[], bytes], str]] = {
    "gzip of 50 MB": ("gzip", lambda: _bomb(1), "result_too_large"),
    "deflate of 50 MB": ("deflate", _large_deflate, "result_too_large"),
    "gzip twice": ("gzip, gzip", lambda: _bomb(2), "invalid_response"),
    "gzip three times": ("gzip,gzip , gzip", lambda: _bomb(3), "invalid_response"),
    "gzip and deflate": ("gzip, deflate", lambda: _bomb(1), "invalid_response"),
    "a hundred encodings": (", ".join(["gzip"] * 100), lambda: _bomb(1), "invalid_response"),
    "brotli": ("br", b"\x8b\x02\x80", "invalid_response"),
    "zstandard": ("zstd", b"\x28\xb5\x2f\xfd", "invalid_response"),
    "compress": ("compress", b"\x1f\x9d", "invalid_response"),
    "no such encoding": ("snappy" * 50, b"x", "invalid_response"),
    "no gzip": ("gzip", b"plain", "invalid_response"),
    "no deflate": ("deflate", b"\xff\xffplain", "invalid_response"),
    "cut off": ("gzip", gzip.compress(PLAIN, mtime=0)[:-12], "invalid_response"),
    "more than there may be": ("identity", bytes(100_001), "result_too_large"),
    "more than there may be, of nothing": ("gzip", bytes(100_001), "invalid_response"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_answer_takes_no_more_memory_than_it_may_have_whatever_its_encoding(
    server: Outside, kind: str
) -> None:
    encoding, sent, code = HOSTILE[kind]
    url = server.page("/hostile", body=sent if isinstance(sent, bytes) else sent(), content_encoding=encoding)
    tracemalloc.start()
    began = time.process_time()  # the server is in this process
    try:
        error = failure("std.http", HTTP, url=url)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.code == code
    assert len(error.message) < 200
    assert peak < 3_000_000
    assert time.process_time() - began < 5


def test_a_charset_whose_codec_is_slow_is_not_used(server: Outside) -> None:
    body = b"a" * 50_000 + b"-" + b"b9" * 20_000
    for charset in ("punycode", "idna", "unicode_escape", "utf-7", "zlib_codec"):
        url = server.page("/slow", body=body, kind=f"text/plain; charset={charset}")
        began = time.process_time()  # the server is in this process
        assert perform("std.http", HTTP, url=url)["body"] == body.decode()
        assert time.process_time() - began < 5
