"""`Notices` to one address by HTTP, signed as Standard Webhooks 1.0.0 says."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
from collections.abc import Callable, Sequence

import msgspec

from baton.adapters.channels.words import id_of, notice_data, notice_kind
from baton.core.expressions import iso
from baton.errors import ChannelRefused, StoreUnavailable, Throttled
from baton.ports import StepFailure, Telling
from baton.ports.outside import HttpAnswer, HttpClient, HttpRequest

_WITHIN_MS = 4_000  # less than a try to tell a person lasts: what is given up is over
_MOST_ANSWER = 1_048_576  # bytes; nothing in it is read
_PREFIX = "whsec_"
_TOO_MANY_REQUESTS = 429
_CLIENT_FAULTS = range(400, 500)
_FOR_NOW = frozenset({408, 409, 425, _TOO_MANY_REQUESTS})  # and 5xx, and what redirects to elsewhere


class WebhookNotices:
    """`Notices` to one URL.
    `secrets`: each as `whsec_` and base64, separated by spaces; each makes a signature.

    `connect` makes the client for one request. Raises `ValueError` for a secret that is none, which is not in
    its text.
    """

    name = "webhook"

    def __init__(self, url: str, secrets: str, connect: Callable[[], HttpClient]) -> None:
        self._url, self._connect = url, connect
        self._keys = [_key(secret) for secret in secrets.split()]
        if not self._keys:
            raise ValueError("there is no secret to sign with")

    def reaches(self, telling: Telling) -> bool:
        return True

    def tell(self, telling: Telling) -> None:
        said = {
            "type": notice_kind(telling),
            "timestamp": iso(telling.notice.at),
            "data": notice_data(telling, linked=True),
        }
        body, seconds = msgspec.json.encode(said), telling.now // 1_000
        message = id_of(telling, self.name)
        headers = {
            "content-type": "application/json",
            "webhook-id": message,
            "webhook-timestamp": str(seconds),
            "webhook-signature": signatures(self._keys, message, seconds, body),
        }
        request = HttpRequest(
            method="POST", url=self._url, headers=headers, body=body, within_ms=_WITHIN_MS, most=_MOST_ANSWER
        )
        try:
            answer = asyncio.run(self._exchange(request))
        except StepFailure as error:
            lasts = error.code in {"bad_request", "permission_denied"}
            raise (ChannelRefused if lasts else StoreUnavailable)(str(error)) from error
        _judge(answer.status)

    async def _exchange(self, request: HttpRequest) -> HttpAnswer:
        # Connections belong to the loop of this thread, which ends with the request.
        http = self._connect()
        try:
            return await http.send(request)
        finally:
            await http.aclose()


def signatures(keys: Sequence[bytes], message: str, seconds: int, body: bytes) -> str:
    """Return a signature for each key: receivers accept the old or the new one during a change."""
    content = b".".join((message.encode(), str(seconds).encode(), body))
    signed = (base64.b64encode(hmac.digest(key, content, "sha256")).decode() for key in keys)
    return " ".join(f"v1,{one}" for one in signed)


def _key(secret: str) -> bytes:
    try:
        if secret.startswith(_PREFIX) and (
            key := base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        ):
            return key
    except binascii.Error:
        pass
    raise ValueError(f"a secret is `{_PREFIX}` and the base64 of 24 to 64 random bytes")


def _judge(status: int) -> None:
    """Raise the error of an answer other than 2xx. 410 means that the receiver wants no more notices."""
    if status // 100 == 2:  # 2xx
        return
    said = f"the receiver answered {status}"
    if status == _TOO_MANY_REQUESTS:
        raise Throttled(said)
    if status in _CLIENT_FAULTS and status not in _FOR_NOW:
        raise ChannelRefused(said)
    raise StoreUnavailable(said)
