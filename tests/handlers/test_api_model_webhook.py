"""The whole way of a request in the background over the handlers: a worker hands it over, the provider announces it, a worker fetches it."""

from __future__ import annotations

import time

from baton.ports import SagaRef
from examples.services.models import Reply
from examples.services.responses import SECRET, announcement
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import batch, wake
from tests.handlers.workers import Worker
from tests.kit.provider import served

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
            for secret, status in ((f"{SECRET[:-4]}AAA=", 401), (SECRET, 202), (SECRET, 202)):
                body, headers = announcement(response, "completed", int(time.time()), secret)
                answer = http.post("/models/own/webhook", body.decode(), headers=headers, roles=None)
                assert answer.status == status, answer
            assert worker.send(batch(wake(ref, http.get(f"/sagas/{ref.id}").body["version"]))) == []
            shown = http.get(f"/sagas/{ref.id}").body
        assert (shown["status"], shown["result"]) == ("completed", "hello")
        assert len(provider.asked) == 1
