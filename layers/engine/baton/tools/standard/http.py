"""`std.http`: a request to a service outside, with the step's idempotency key as a header;
`std.delete_resource` deletes what one has created.

How bytes travel, and where to, is the adapter's. What an answer means to a step is here.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Any, Final, Literal
from urllib.parse import urlencode, urljoin, urlsplit

import msgspec
from pydantic import BaseModel

from baton.ports import StepContext, StepFailure
from baton.ports.outside import HttpAnswer
from baton.tools.define import Registry
from baton.tools.standard.kit import SAFE, Services, exchange, milliseconds, response_failure, standard_tool

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
Scalar = str | int | float | bool

MOST_REDIRECTS = 5
_SEE_OTHER = 303
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NOT_MODIFIED = 304
_GONE = frozenset({404, 410})
# Headers that a later step may need. Cookies are not among them.
KEPT = (
    "content-language", "content-type", "etag", "expires", "last-modified", "link", "location", "retry-after",
    "x-request-id", "idempotency-replayed",
)  # fmt: skip
_CHARSET = re.compile(
    "utf-?8|utf-?(?:16|32)|utf-(?:16|32)(?:le|be)|us-ascii|ascii|latin-?1|iso-?8859-(?:[1-9]|1[0134-6])|(?:windows-|cp)125[0-8]"
    "|koi8-[ru]|shift_jis|euc-(?:jp|kr)|gb2312|gbk|gb18030|big5"
)
# What says where a request goes, where it ends, and what becomes of its connection.
_NOT_YOURS = frozenset({
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
# Headers for a host that a redirect leads to, and that the document did not ask.
_HARMLESS = frozenset({"accept", "accept-language", "user-agent"})


class Answered(BaseModel):
    """An answer below 300, or 304. `body` is JSON, text, or null for none."""

    status: int
    headers: dict[str, str]
    body: Any


class Deleted(BaseModel):
    """`found`: it was there until then; otherwise it had gone before."""

    status: int
    found: bool


def declare(registry: Registry, services: Services) -> None:
    @standard_tool("std.delete_resource", registry=registry, domain="external_api", timeout="60s")
    async def delete_resource(
        url: str, context: StepContext, base: str = "", headers: dict[str, str] | None = None
    ) -> Deleted:
        """Delete what a request has created, by its address. What is not there (404, 410) is deleted already.

        base: the address of that request, to which `url` may be relative.
        """
        where = _whole(base, url)
        try:
            answer = await follow_redirects(
                services,
                context,
                "DELETE",
                where,
                headers_of(headers or {}),
                b"",
                context.idempotency_key,
                None,
            )
        except StepFailure as error:
            if error.status not in _GONE:
                raise
            return Deleted(status=error.status, found=False)
        return Deleted(status=answer.status, found=True)

    @standard_tool("std.http", registry=registry, domain="external_api")
    async def http(
        url: str,
        context: StepContext,
        method: Method = "GET",
        headers: dict[str, str] | None = None,
        query: dict[str, Scalar] | None = None,
        json: Any = None,
        text: str | None = None,
        timeout: str | float | None = None,  # noqa: ASYNC109  # the word that documents have for it
        expect: Literal["auto", "json", "text"] = "auto",
    ) -> Answered:
        """Send a request and give its answer.

        POST, PUT, PATCH and DELETE carry `Idempotency-Key`, the same for every attempt of the step. A status
        of 400 and above is the step's failure. GET and HEAD follow redirects.
        """
        longest = milliseconds(timeout)
        given = headers_of(headers or {})
        body = _body(given, json, text)
        url = url.partition("#")[0]
        if query:
            more = urlencode({name: _written(value) for name, value in query.items()})
            url += f"{'&' if '?' in url else '?'}{more}"
        if expect == "json":
            given.setdefault("accept", "application/json")
        key = "" if method in SAFE else context.idempotency_key
        answer = await follow_redirects(services, context, method, url, given, body, key, longest)
        return response_output(url, answer, expect)


async def follow_redirects(
    services: Services,
    context: StepContext,
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes,
    key: str,
    longest: int | None,
) -> HttpAnswer:
    """Return the answer at the end of the redirects, of a status that is no failure. Raises `StepFailure`."""
    ends = None if longest is None else services.clock.now() + longest
    redirects = 0
    while True:
        within = None if ends is None else max(ends - services.clock.now(), 1)
        answer = await exchange(
            services, context, method, url, headers=headers, body=body, key=key, longest=within
        )
        if answer.status not in _REDIRECTS or method not in SAFE or "location" not in answer.headers:
            break
        redirects += 1
        if redirects > MOST_REDIRECTS:
            what = f"{host_of(url)} redirects more than {MOST_REDIRECTS} times"
            raise StepFailure("resource_moved", what, status=answer.status)
        there = _joined(url, answer)
        if _origin(there) != _origin(url):
            headers = {name: value for name, value in headers.items() if name in _HARMLESS}
        url = there
    check_status(method, url, answer)
    return answer


def check_status(method: str, url: str, answer: HttpAnswer) -> None:
    """Raise `StepFailure` for the answer of a failure."""
    is_done = (
        answer.status == _SEE_OTHER and method not in SAFE
    )  # it has worked, and what came of it is elsewhere
    if answer.status >= 300 and answer.status != _NOT_MODIFIED and not is_done:
        raise response_failure(host_of(url), answer, "resource_moved" if answer.status in _REDIRECTS else "")


def response_output(url: str, answer: HttpAnswer, expect: str = "auto") -> Answered:
    """Return the result of a step for an answer. Raises `StepFailure`."""
    kept = {name: answer.headers[name] for name in KEPT if name in answer.headers}
    return Answered(status=answer.status, headers=kept, body=_read(host_of(url), answer, expect))


def _joined(url: str, answer: HttpAnswer) -> str:
    """Return the target of a redirect. Raises `StepFailure` for an invalid address or one without TLS."""
    try:
        there = urljoin(url, answer.headers["location"])
        safe = urlsplit(there).scheme in ("https", urlsplit(url).scheme)
    except ValueError as error:
        what = f"{host_of(url)} redirects to what is no address"
        raise StepFailure("invalid_response", what, status=answer.status) from error
    if not safe:
        message = f"{host_of(url)} redirects to an address that does not begin with https://"
        raise StepFailure("permission_denied", message, status=answer.status)
    return there


def _whole(base: str, url: str) -> str:
    """Return the complete address. Raises `StepFailure`."""
    try:
        return urljoin(base, url).partition("#")[0]
    except ValueError as error:
        raise StepFailure("input_invalid", "`url` is no address, or `base` is none") from error


def headers_of(given: dict[str, str]) -> dict[str, str]:
    """Return the headers in lower case. Raises `StepFailure` for those that steer a request."""
    found = {name.lower(): value for name, value in given.items()}
    for name in found:
        if name.strip().replace("_", "-") in _NOT_YOURS or name.strip().startswith("baton-"):
            raise StepFailure(
                "input_invalid", f"the header `{name[:40]}` cannot be an argument: the engine sets it"
            )
    return found


def _body(headers: dict[str, str], json: Any, text: str | None) -> bytes:
    if json is not None and text is not None:
        raise StepFailure("input_invalid", "a request has either `json` or `text`")
    if json is not None:
        headers.setdefault("content-type", "application/json")
        return msgspec.json.encode(json)
    if text is not None:
        headers.setdefault("content-type", "text/plain; charset=utf-8")
        return text.encode(errors="replace")
    return b""


def _read(host: str, answer: HttpAnswer, expect: str) -> Any:
    """Return the body as JSON, as text, or as None if there is none. Raises `StepFailure`."""
    kind, _, more = answer.headers.get("content-type", "").lower().partition(";")
    is_json = kind.strip() == "application/json" or kind.strip().endswith("+json")
    if not answer.body and expect != "json":
        return None
    if expect == "json" or (expect == "auto" and is_json):
        try:
            return msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            what = f"{host} answered {answer.status} with what is not JSON: {error}"
            raise StepFailure("invalid_response", what, status=answer.status) from error
    charset = more.partition("charset=")[2].strip(" \"'") or "utf-8"
    # Not any codec that Python has: some of them take a time that grows with the square of the text.
    return answer.body.decode(charset if _CHARSET.fullmatch(charset) else "utf-8", errors="replace")


def _written(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def host_of(url: str) -> str:
    """Return the host for a message: the rest of an address may be a secret."""
    try:
        return urlsplit(url).hostname or "an address without a host"
    except ValueError:
        return "an address that is none"


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2].lower()


NAMES: Final = ("Baton-Tenant", "Baton-Saga", "Baton-Time", "Baton-Signature")


def signed_headers(services: Services, context: StepContext, *parts: str, content: bytes) -> dict[str, str]:
    """Return the headers that sign these parts and this content. Raises `StepFailure` without a key."""
    if not services.signing_key:
        what = "nothing to sign it with: set `SigningKey` of the deployment, and give the receiver the same"
        raise StepFailure("input_invalid", what)
    said = [context.tenant, context.saga, str(services.clock.now() // 1_000)]
    whole = "\n".join(("v1", *said, *parts, hashlib.sha256(content).hexdigest()))
    proof = hmac.new(services.signing_key.encode(), whole.encode(), hashlib.sha256).hexdigest()
    return dict(zip(NAMES, (*said, f"v1={proof}"), strict=True))
