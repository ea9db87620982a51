"""The whole way of a request in the background over the handlers: a worker hands it over, the provider announces it, a worker fetches it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from baton.errors import TooManyRequests
from baton.ports import SagaRef
from baton.runtime.requests.rates import WINDOW_MS
from baton.web.identity import MOST_ADDRESSES, MOST_REFUSED, UnsignedRequestLimiter
from baton.web.parameters import MOST_ANNOUNCED
from examples.services.models import Reply
from examples.services.responses import SECRET, announcement
from tests.handlers.deployment import Deployment
from tests.handlers.http import Answer, Http
from tests.handlers.sagas import batch, wake
from tests.handlers.workers import Worker
from tests.kit.provider import served
from tests.kit.sentences import Says

PATH, FORGED = "/models/own/webhook", f"{SECRET[:-4]}AAA="
DOCUMENT = """
name: asks
nodes: {ask: {model: {name: m, prompt: hi, background: true, price: {input: 1, output: 2}}}}
output: ${ctx.ask.output}
"""


def test_an_announcement_wakes_the_saga_and_a_forged_one_does_not(deployment: Deployment) -> None:
    with served() as provider:
        provider.script = lambda _: Reply("hello")
        given = {"BATON_MODEL_PROFILES": f"own={provider.url}/v1", "BATON_MODEL_KEY_OWN": "k-1"}
        with (
            deployment.function("api", **given, BATON_MODEL_KEY_OWN_WEBHOOK=SECRET) as api,
            deployment.function("worker", **given) as module,
        ):
            http, worker = Http(api), Worker(module)
            http.register(DOCUMENT)
            ref = SagaRef("acme", http.start("asks"))
            assert worker.send(batch(wake(ref, 1))) == []
            assert http.get(f"/sagas/{ref.id}").body["status"] == "waiting"
            response = next(iter(provider.provider.responses.kept))
            for secret, status in ((FORGED, 401), (SECRET, 202), (SECRET, 202)):
                body, headers = announcement(response, "completed", int(time.time()), secret)
                answer = http.post(PATH, body.decode(), headers=headers, roles=None)
                assert answer.status == status, answer
            assert worker.send(batch(wake(ref, http.get(f"/sagas/{ref.id}").body["version"]))) == []
            shown = http.get(f"/sagas/{ref.id}").body
        assert (shown["status"], shown["result"]) == ("completed", "hello")
        assert len(provider.asked) == 1


class Still:
    """A clock that stands early in a window."""

    def __init__(self) -> None:
        self.at = WINDOW_MS * 179_000_000 + 2_500

    def now(self) -> int:
        return self.at


def announced(http: Http, secret: str, address: str, body: bytes | None = None) -> Answer:
    said, headers = announcement("resp_1", "completed", int(time.time()), secret)
    event = http.event("POST", PATH, (body or said).decode(), headers=headers, roles=None)
    event["requestContext"]["http"]["sourceIp"] = address
    return http.send(event)


def test_an_address_whose_requests_are_not_signed_is_not_looked_at_any_more(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    with deployment.function("api", BATON_MODEL_PROFILES="own=http://127.0.0.1:9/v1") as api:
        http, looked = Http(api), list[str]()
        engine, clock = http.engine, Still()
        monkeypatch.setattr(api._api._unsigned_limiter, "_clock", clock)
        real = engine.models.heard

        async def heard(profile: str, *rest: Any) -> Any:
            looked.append(profile)
            return await real(profile, *rest)

        monkeypatch.setattr(engine.models, "heard", heard)
        before = deployment.items()
        answers = [announced(http, FORGED, "203.0.113.7") for _ in range(MOST_REFUSED + 3)]
        assert [one.status for one in answers] == [401] * MOST_REFUSED + [429] * 3
        problem = answers[-1].problem(429, "too-many-requests")
        says(problem["detail"])
        assert answers[-1].headers["retry-after"] == "8"
        assert len(looked) == MOST_REFUSED
        assert announced(http, FORGED, "203.0.113.8").status == 401, "another address"
        clock.at += 8_000
        assert announced(http, FORGED, "203.0.113.7").status == 401, "in the next window"
        assert deployment.items() == before, "nothing is written for a stranger"


def test_what_is_announced_is_short(deployment: Deployment) -> None:
    with deployment.function("api", BATON_MODEL_PROFILES="own=http://127.0.0.1:9/v1") as api:
        answer = announced(Http(api), SECRET, "203.0.113.7", b"x" * (MOST_ANNOUNCED + 1))
        assert "at most 65536 bytes" in answer.problem(413, "too-large")["detail"]


def test_a_thousand_addresses_are_told_apart_and_the_rest_count_as_one() -> None:
    strangers = UnsignedRequestLimiter(Still())
    for number in range(MOST_ADDRESSES):
        strangers.check(str(number))
        strangers.refused(str(number))
    for number in range(MOST_REFUSED):
        strangers.check(f"new {number}")
        strangers.refused(f"new {number}")
    with pytest.raises(TooManyRequests):
        strangers.check("newest")
    strangers.check("7")
