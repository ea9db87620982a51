"""The responses API of the scripted provider, for requests in the background: made, fetched, cancelled, and announced by a webhook.

What is answered is the same script's as in models. A response is under way for the `after` of its reply. Faults of a reply
besides: `endless` (it is never over), `failed`, `away` (fetching it fails with 500, twice), `lost`, `twice`, `forged` and `late`
(of the webhook).
"""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

if TYPE_CHECKING:
    from examples.services.models import Asked, Provider, Reply

SECRET = "whsec_" + base64.b64encode(b"of the scripted provider").decode()
LATE_S = 400  # a webhook that is older than any receiver takes
Post = Callable[[str, bytes, Mapping[str, str]], Awaitable[int]]


@dataclass
class Kept:
    """A response: what was asked, what is answered, and since when it is under way."""

    id: str
    asked: "Asked"
    reply: "Reply"
    since: float
    fetched: int = 0
    is_cancelled: bool = False

    @property
    def status(self) -> str:
        if self.is_cancelled:
            return "cancelled"
        if self.reply.fault == "endless" or time.monotonic() < self.since + self.reply.after:
            return "in_progress" if self.fetched else "queued"
        if self.reply.fault == "failed":
            return "failed"
        return (
            "incomplete" if self.reply.finish == "length" or self.reply.fault == "filtered" else "completed"
        )

    def document(self) -> dict[str, Any]:
        from examples.services.models import usage_of

        status, body = self.status, self.asked.body
        shared = {
            "id": self.id,
            "object": "response",
            "created_at": 1_790_000_000,
            "background": True,
            "model": self.asked.model,
            "metadata": body.get("metadata") or {},
            "status": status,
        }
        if status in ("queued", "in_progress", "cancelled"):
            return {**shared, "output": [], "usage": None}
        if status == "failed":
            return {
                **shared,
                "output": [],
                "usage": None,
                "error": {"code": "server_error", "message": "It broke."},
            }
        reason = "content_filter" if self.reply.fault == "filtered" else "max_output_tokens"
        used = usage_of(self.asked, self.reply)
        usage = {
            "input_tokens": used["prompt_tokens"],
            "input_tokens_details": used["prompt_tokens_details"],
            "output_tokens": used["completion_tokens"],
            "output_tokens_details": used["completion_tokens_details"],
            "total_tokens": used["total_tokens"],
        }
        return {
            **shared,
            "output": self._output(),
            "usage": usage,
            "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        }

    def _output(self) -> list[dict[str, Any]]:
        said: list[dict[str, Any]] = [{"type": "reasoning", "id": f"rs_{self.asked.n}", "summary": []}]
        text = self.reply.text if isinstance(self.reply.text, str) else json.dumps(self.reply.text)
        parts = [{"type": "output_text", "text": text, "annotations": []}] if text else []
        parts += [{"type": "refusal", "refusal": self.reply.refusal}] if self.reply.refusal else []
        if parts:
            said.append({"type": "message", "role": "assistant", "content": parts})
        return said + [
            {
                "type": "function_call",
                "call_id": f"call_{self.asked.n}_{n}",
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given),
            }
            for n, (name, given) in enumerate(self.reply.calls)
        ]


@dataclass
class Responses:
    """Those of one provider. `hook`: the address that is told of each end, by requests signed with SECRET; empty: none."""

    provider: "Provider"
    hook: str = ""
    post: Post | None = None
    kept: dict[str, Kept] = field(default_factory=dict)
    _telling: set[asyncio.Task[None]] = field(default_factory=set)

    async def create(self, http: HttpRequest) -> Response:
        """`POST /v1/responses`."""
        from examples.services.models import Refusal, refused

        asked, reply = await self.provider.received(http)
        if isinstance(reply, Refusal):
            return refused(reply)
        if not asked.body.get("background"):
            return refused(Refusal(400, "unsupported", "Only background responses are scripted."))
        one = Kept(f"resp_{asked.n}", asked, reply, time.monotonic())
        self.kept[one.id] = one
        if self.hook:
            task = asyncio.create_task(self._announce(one))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
        return JSONResponse(one.document())

    async def fetch(self, http: HttpRequest) -> Response:
        """`GET /v1/responses/{id}`."""
        from examples.services.models import Refusal, refused

        one = self.kept.get(http.path_params["id"])
        if one is None:
            return refused(Refusal(404, "not_found", "There is no such response."))
        one.fetched += 1
        if one.reply.fault == "away" and one.fetched <= 2:
            return refused(Refusal(500, "server_error", "Not now."))
        return JSONResponse(one.document())

    async def cancel(self, http: HttpRequest) -> Response:
        """`POST /v1/responses/{id}/cancel`."""
        from examples.services.models import Refusal, refused

        one = self.kept.get(http.path_params["id"])
        if one is None:
            return refused(Refusal(404, "not_found", "There is no such response."))
        one.is_cancelled = one.is_cancelled or one.status in ("queued", "in_progress")
        return JSONResponse(one.document())

    async def _announce(self, one: Kept) -> None:
        await asyncio.sleep(one.reply.after + 0.05)
        if one.reply.fault in ("endless", "lost"):
            return
        at = int(time.time()) - (LATE_S if one.reply.fault == "late" else 0)
        body, headers = announcement(
            one.id, one.status, at, "whsec_Zm9yZ2Vk" if one.reply.fault == "forged" else SECRET
        )
        for _ in range(2 if one.reply.fault == "twice" else 1):
            await (self.post or _post)(self.hook, body, headers)


def announcement(response: str, status: str, at: int, secret: str = SECRET) -> tuple[bytes, dict[str, str]]:
    """What a webhook says of a response at this time (epoch seconds), and its headers."""
    event = {"object": "event", "id": f"evt_{response}", "type": f"response.{status}", "created_at": at}
    body = json.dumps({**event, "data": {"id": response}}).encode()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    proof = hmac.new(key, f"wh_{response}.{at}.".encode() + body, hashlib.sha256).digest()
    return body, {
        "content-type": "application/json",
        "webhook-id": f"wh_{response}",
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(proof).decode()}",
    }


async def _post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    import httpx  # few models answer by a webhook, and this is a fifth of the start

    async with httpx.AsyncClient(timeout=5) as client:
        try:
            return (await client.post(url, content=body, headers=dict(headers))).status_code
        except httpx.HTTPError:
            return 0  # the receiver polls, too
