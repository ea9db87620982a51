"""What a provider refuses, breaks or leaves open is a failure of the step, with the code of the matrix."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from baton.adapters.models import exchange
from baton.core.failures.codes import CODES
from baton.core.models.usage import Usage
from baton.ports.models import ModelFailure
from examples.services.models import Refusal, Reply
from tests.kit.provider import KEY, Served, models
from tests.kit.sentences import Says
from tests.models.asking import a_request, adapter_of, ask, failure

REFUSALS = [
    (Refusal(429, "rate_limit_exceeded"), "rate_limited"),
    (Refusal(429), "rate_limited"),
    (Refusal(429, "insufficient_quota", type="insufficient_quota"), "quota_exceeded"),
    (Refusal(402, message="Insufficient credits"), "quota_exceeded"),
    (Refusal(400, "context_length_exceeded", type="invalid_request_error"), "context_exceeded"),
    (Refusal(400, message="This model's maximum context length is 8192 tokens."), "context_exceeded"),
    (Refusal(400, message="prompt is too long: 300000 tokens > 200000", type="invalid_request_error"), "context_exceeded"),
    (Refusal(413, message="Too large"), "context_exceeded"),
    (Refusal(400, "content_filter"), "content_policy"),
    (Refusal(400, "content_policy_violation"), "content_policy"),
    (Refusal(400, message="Unknown parameter", type="invalid_request_error"), "bad_request"),
    (Refusal(404, "model_not_found"), "model_unavailable"),
    (Refusal(404, message="model 'x' not found", type="api_error"), "model_unavailable"),
    (Refusal(403, "model_not_found"), "model_unavailable"),
    (Refusal(401, "invalid_api_key", message=f"Incorrect API key provided: {KEY}"), "unauthorized"),
    (Refusal(403, message="No access"), "forbidden"),
    (Refusal(500), "server_error"),
    (Refusal(502), "service_unavailable"),
    (Refusal(503), "service_unavailable"),
    (Refusal(529, type="overloaded_error"), "service_unavailable"),
    (Refusal(301, headers={"location": "https://elsewhere.example"}), "resource_moved"),
    (Refusal(307, headers={"location": "/v1/other"}), "resource_moved"),
    (Refusal(500, "server_error", late=True), "server_error"),
    (Refusal(429, "rate_limit_exceeded", late=True), "rate_limited"),
    (Refusal(503, message="no code but a number", late=True), "service_unavailable"),
    (Refusal(500, "something_new", late=True), "server_error"),
    (Refusal(403, "insufficient_quota", type="invalid_request_error"), "quota_exceeded"),
    (Refusal(500, "context_length_exceeded", type="server_error"), "context_exceeded"),
    (Refusal(503, "content_filter"), "content_policy"),
    (Refusal(402, "invalid_request_error"), "quota_exceeded"),
    (Refusal(400, "invalid_request_error"), "bad_request"),
]  # fmt: skip


@pytest.mark.parametrize(("refusal", "code"), REFUSALS)
def test_a_refusal_has_the_code_of_the_matrix(refusal: Refusal, code: str, provider: Served) -> None:
    provider.script = lambda asked: refusal
    found = failure(adapter_of(provider.url))
    assert not found.happened, "it is not billed"
    assert (found.code, len(provider.asked)) == (code, 1)
    assert found.code in CODES
    assert "127.0.0.1" in found.message
    assert KEY not in found.message


def test_a_code_that_many_refusals_share_says_less_than_the_status(provider: Served) -> None:
    codes = {
        401: "unauthorized",
        403: "forbidden",
        408: "timeout",
        429: "rate_limited",
        500: "server_error",
        503: "service_unavailable",
    }
    generic, own = "invalid_request_error", "server_error"
    for status, code in codes.items():
        for said in ((generic, ""), ("", generic), (own, ""), (generic, "api_error")):
            refusal = Refusal(status, said[0], type=said[1])
            provider.script = lambda asked, one=refusal: one  # type: ignore[misc]  # bound here
            assert failure(adapter_of(provider.url)).code == code, (status, said)


def test_nothing_at_an_address_without_a_path_says_what_may_be_wrong_with_it(
    provider: Served, says: Says
) -> None:
    provider.script = lambda asked: Refusal(404, "model_not_found")
    bare = failure(models(f"openai={provider.url}", lambda _: KEY))
    assert (bare.code, bare.status) == ("model_unavailable", 404)
    says(bare.message)
    assert "has no path" not in failure(adapter_of(provider.url)).message


BROKEN = [
    (Reply("text", fault="broken"), "invalid_response", "cannot be read"),
    (Reply("text", fault="page"), "invalid_response", "a page"),
    (Reply("text", fault="packed"), "invalid_response", "answers compressed"),
    (Reply("text", fault="open"), "invalid_response", "it ended before"),
    (Reply("text", finish="error"), "invalid_response", "reason `error`"),
    (Reply("text", fault="cut"), "connection_failed", "peer closed connection"),
    (Reply("text", fault="filtered"), "content_policy", "has filtered"),
    (Reply(refusal="I cannot help with that."), "content_policy", "I cannot help"),
    (Reply(calls=[("", "{}")]), "invalid_response", "no name"),
    (Reply(calls=[("f", "")] * 129), "invalid_response", "more than 128 calls"),
]


@pytest.mark.parametrize(("reply", "code", "said"), BROKEN)
def test_an_answer_that_breaks_is_no_answer(reply: Reply, code: str, said: str, provider: Served) -> None:
    provider.script = lambda asked: reply
    found = failure(adapter_of(provider.url))
    assert (found.code, said in found.message) == (code, True), found.message


@pytest.mark.parametrize("fault", ["cut", "open", "filtered"])
def test_an_answer_that_breaks_off_is_billed(fault: str, provider: Served) -> None:
    provider.script = lambda asked: Reply("text", fault=fault)
    assert failure(adapter_of(provider.url)).happened


def test_a_provider_that_is_not_there_is_a_connection_that_failed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = failure(adapter_of(f"http://127.0.0.1:{port}"))
    assert (found.code, found.status) == ("connection_failed", 0)
    assert not found.happened


def test_a_connection_that_is_lost_after_the_request_may_have_been_billed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            one, _ = server.accept()
            with one:
                one.recv(65_536)

        thread = threading.Thread(target=answer)
        thread.start()
        found = failure(adapter_of(f"http://127.0.0.1:{server.getsockname()[1]}"))
        thread.join()
    assert (found.code, found.happened) == ("connection_failed", True)


def test_a_provider_that_takes_no_connection_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(exchange, "_CONNECT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as waiting:
        for _ in range(8):  # what stands before it in the queue that is not served
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        found = failure(adapter_of(f"http://127.0.0.1:{full.getsockname()[1]}"))
    assert found.code == "timeout"
    says(found.message)


def test_what_an_answer_has_used_is_told_although_it_is_none(provider: Served) -> None:
    for reply in (
        Reply("x", input=7, output=3, fault="filtered"),
        Reply("x", input=7, output=3, finish="error"),
    ):
        provider.script = lambda asked, one=reply: one  # type: ignore[misc]  # bound here
        found = failure(adapter_of(provider.url))
        assert isinstance(found, ModelFailure)
        assert found.usage == Usage(model="gpt-5-mini", input=7, output=3)
    provider.script = lambda asked: Reply("x", fault="filtered", counted=False)
    found = failure(adapter_of(provider.url))
    assert isinstance(found, ModelFailure)
    assert found.usage is None


def test_a_name_that_does_not_exist_is_a_connection_that_failed() -> None:
    found = failure(adapter_of("https://no-such-host.invalid"))
    assert found.code == "connection_failed"
    assert "no-such-host.invalid" in found.message


def test_what_the_provider_says_to_wait_is_told(provider: Served) -> None:
    provider.script = lambda asked: Refusal(429, headers={"Retry-After": "17"})
    assert failure(adapter_of(provider.url)).retry_after == "17"


def test_secrets_in_what_a_provider_says_do_not_get_into_the_message(provider: Served) -> None:
    secret = "AKIAIOSFODNN7EXAMPLE"
    provider.script = lambda asked: Refusal(
        400, message=f"bad header {KEY} and password=hunter2 {secret} {'x' * 5_000}"
    )
    found = failure(adapter_of(provider.url))
    assert [word for word in (KEY, "hunter2", secret) if word in found.message] == []
    assert len(found.message) < 700


def test_a_refusal_of_the_credential_says_nothing_that_the_provider_said(provider: Served) -> None:
    provider.script = lambda asked: Refusal(401, message=f"Incorrect key: {KEY[:8]}***")
    assert "Incorrect" not in failure(adapter_of(provider.url)).message


def test_a_model_that_is_not_there_is_named(provider: Served) -> None:
    provider.script = lambda asked: Refusal(404, "model_not_found")
    assert "`gpt-5-mini`" in failure(adapter_of(provider.url)).message


def test_after_a_failure_the_next_request_is_answered(provider: Served) -> None:
    replies = [Reply("cut", fault="cut"), Reply("whole")]
    provider.script = lambda asked: replies[asked.n - 1]
    adapter = adapter_of(provider.url)
    assert failure(adapter).code == "connection_failed"
    assert ask(adapter, a_request())[0].text == "whole"
