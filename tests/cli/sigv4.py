"""Signature Version 4 as a server checks it, from AWS's description of it and nothing else.

It recomputes the signature of a request as it arrived, and makes none. Source:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import re
from urllib.parse import quote, unquote

from tests.cli.conftest import Asked

_HEADER = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/([a-z-]+)/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)


def scope_of(asked: Asked) -> tuple[str, str, str]:
    """Key id, region and service that a request was signed for."""
    found = _HEADER.fullmatch(asked.headers["authorization"])
    assert found is not None, "not a signature"
    return found[1], found[3], found[4]


def signed_headers(asked: Asked) -> list[str]:
    found = _HEADER.fullmatch(asked.headers["authorization"])
    assert found is not None, "not a signature"
    return found[5].split(";")


def is_signed(asked: Asked, secret: str) -> bool:
    """Whether the signature of a request is that of its own method, path, query, headers and body."""
    found = _HEADER.fullmatch(asked.headers["authorization"])
    assert found is not None, "not a signature"
    _, day, region, service, names, signature = found.groups()
    pairs = [pair.partition("=")[::2] for pair in asked.raw_query.split("&") if pair]
    query = "&".join(
        f"{name}={value}"
        for name, value in sorted(
            (quote(unquote(n), safe="-_.~"), quote(unquote(v), safe="-_.~")) for n, v in pairs
        )
    )
    headers = "".join(f"{name}:{' '.join(asked.headers[name].split())}\n" for name in names.split(";"))
    canonical = "\n".join(
        [asked.method, quote(asked.path, safe="/-_.~"), query, headers, names, _sha256(asked.text)]
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", asked.headers["x-amz-date"], scope, _sha256(canonical)])
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), signature)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
