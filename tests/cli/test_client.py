"""`baton.Client`: other programs start sagas, wait for them, signal, answer and cancel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from baton import Client, ClientError, SagaFailed
from baton.client import transport
from baton.client.connection import LOCAL_FILE
from tests.cli.conftest import FakeApi
from tests.docs.pages import ROOT, Page

SAGA = {"id": "s1", "workflow": "w", "status": "running", "result": None, "large_result": None, "error": None}
OVER = SAGA | {"status": "completed", "result": {"n": 1}}
ACCEPTED = (202, {"id": "s1", "status": "running", "version": 7, "changed": True})
UNKNOWN = {
    "type": "urn:baton:problem:unauthenticated",
    "title": "No",
    "detail": "the token is old",
    "status": 401,
}


def on_the_clock(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run the test in a loop of its own: the API is a real one, in a thread."""

    @wraps(test)
    def run(*args: Any, **named: Any) -> None:
        asyncio.run(test(*args, **named))

    return run


@pytest.fixture
def client(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(transport, "pause", api.pause)
    return Client(api.url, "a-token")


@on_the_clock
async def test_a_saga_is_started_and_its_result_is_waited_for(api: FakeApi, client: Client) -> None:
    api.on("POST /sagas", (201, SAGA))
    api.on("GET /sagas/s1", (200, SAGA), (200, OVER))
    async with client:
        started = await client.start("w", {"n": 1}, key="k", labels={"a": "b"})
        assert await client.result(started["id"]) == {"n": 1}
        assert (await client.show("s1"))["status"] == "completed"
    (sent,) = api.of("POST", "/sagas")
    assert sent.json == {"workflow": "w", "input": {"n": 1}, "labels": {"a": "b"}}
    assert (sent.headers["idempotency-key"], sent.headers["authorization"]) == ("k", "Bearer a-token")
    assert api.pauses == [0.25]


@on_the_clock
async def test_a_large_result_is_fetched(api: FakeApi, client: Client) -> None:
    large = {"ref": "cas://sha256/abc@2", "size": 9}
    api.on("GET /sagas/s1", (200, OVER | {"result": None, "large_result": large}))
    api.on("GET /sagas/s1/values/abc", (200, {"ref": "x", "value": [1], "part": None, "next": None}))
    async with client:
        assert await client.result("s1") == [1]


@on_the_clock
async def test_a_saga_that_has_not_completed_raises_its_failure(api: FakeApi, client: Client) -> None:
    api.on(
        "GET /sagas/s1", (200, SAGA | {"status": "failed", "error": {"code": "sold_out", "message": "none"}})
    )
    async with client:
        with pytest.raises(SagaFailed, match="sold_out: none") as failed:
            await client.result("s1")
        assert (failed.value.code, failed.value.saga["status"]) == ("sold_out", "failed")
        api.on("GET /sagas/s1", (200, SAGA | {"status": "cancelled"}))
        with pytest.raises(SagaFailed, match="cancelled: saga s1 is cancelled"):
            await client.result("s1")


@on_the_clock
async def test_a_wait_for_a_result_has_an_end(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.on("GET /sagas/s1", (200, SAGA))
    monkeypatch.setattr(transport, "pause", lambda _: asyncio.get_running_loop().create_future())
    async with client:
        with pytest.raises(TimeoutError):
            await client.result("s1", wait=0.01)


@on_the_clock
async def test_signals_updates_answers_and_cancellations_are_sent(api: FakeApi, client: Client) -> None:
    taken = {"id": "s1", "key": "k", "outcome": "waiting"}
    api.on(
        "POST /sagas/s1/signals/go",
        (202, taken),
        (202, taken),
        (202, taken | {"outcome": "answered", "answer": 7}),
    )
    api.on("GET /sagas/s1", (200, SAGA | {"questions": [{"id": "0.a"}]}))
    api.on("POST /sagas/s1/answer", ACCEPTED)
    api.on("POST /sagas/s1/cancel", ACCEPTED)
    async with client:
        assert (await client.signal("s1", "go", 1, key="k"))["outcome"] == "waiting"
        assert (await client.update("s1", "go", 1, key="k"))["answer"] == 7
        await client.answer("s1", "approve", comment="Fine.")
        await client.cancel("s1", "no more", undo=True)
    assert api.of("POST", "/sagas/s1/answer")[0].json == {
        "ask": "0.a",
        "action": "approve",
        "comment": "Fine.",
    }
    assert api.of("POST", "/sagas/s1/cancel")[0].json == {
        "reason": "no more",
        "mode": "graceful",
        "undo": True,
    }


@on_the_clock
async def test_an_update_keeps_its_key_when_the_token_changes_while_it_waits(api: FakeApi) -> None:
    tokens, taken = iter(("first", "second")), {"id": "s1", "key": "k", "outcome": "waiting"}
    answered = (202, taken | {"outcome": "answered", "answer": 7})
    api.on("POST /sagas/s1/signals/go", (202, taken), (401, {"message": "Unauthorized"}), answered)
    async with Client(api.url, lambda: next(tokens)) as client:
        assert (await client.update("s1", "go", 1))["answer"] == 7
    sent = api.of("POST", "/sagas/s1/signals/go")
    first, again = sent[0].headers["idempotency-key"], sent[-1].headers["idempotency-key"]
    assert (len(sent), again) == (3, first)


@on_the_clock
async def test_an_answer_names_its_question_if_there_are_several(api: FakeApi, client: Client) -> None:
    api.on("GET /sagas/s1", (200, SAGA | {"questions": [{"id": "0.a"}, {"id": "0.b"}]}))
    api.on("POST /sagas/s1/answer", ACCEPTED)
    async with client:
        with pytest.raises(ClientError, match="usage: s1 asks 2 questions"):
            await client.answer("s1", "approve")
        await client.answer("s1", "approve", ask="0.b")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            (
                404,
                {
                    "type": "urn:baton:problem:not-found",
                    "title": "x",
                    "detail": "there is none",
                    "status": 404,
                },
            ),
            (404, "not-found", "there is none", []),
        ),
        (
            (
                422,
                {"type": "urn:baton:problem:invalid-input", "detail": "no", "errors": [{"path": "/input"}]},
            ),
            (422, "invalid-input", "no", [{"path": "/input"}]),
        ),
        ((429, {"message": "Too Many Requests"}), (429, "too-many-requests", "Too Many Requests (429)", [])),
    ],
)
@on_the_clock
async def test_a_refusal_has_its_status_its_code_and_its_detail(
    api: FakeApi, client: Client, answer: tuple[int, Any], told: tuple[Any, ...]
) -> None:
    api.on("POST /sagas", answer)
    async with client:
        with pytest.raises(ClientError) as refused:
            await client.start("w")
    error = refused.value
    assert (error.status, error.code, error.detail, error.errors) == told


@on_the_clock
async def test_an_api_that_cannot_be_reached_has_no_status(client: Client) -> None:
    async with Client("http://127.0.0.1:9", "t") as other:
        with pytest.raises(ClientError) as refused:
            await other.show("s1")
    assert (refused.value.status, refused.value.code) == (0, "unreachable")


def local(folder: Path, url: str, token: str) -> None:
    (folder / LOCAL_FILE).parent.mkdir(exist_ok=True)
    (folder / LOCAL_FILE).write_text(json.dumps({"url": url, "token": token}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("BATON_URL", "BATON_TOKEN", "BATON_AUTH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@on_the_clock
async def test_without_arguments_the_local_deployment_is_found_and_its_next_token(
    api: FakeApi, folder: Path
) -> None:
    async with Client() as client:
        with pytest.raises(ClientError, match=r"^denied: "):
            await client.show("s1")
        local(folder, api.url, "first")
        api.on("GET /sagas/s1", (200, OVER), (401, UNKNOWN), (200, OVER), (401, UNKNOWN))
        await client.show("s1")
        local(folder, api.url, "second")
        await asyncio.gather(client.show("s1"))
        assert [one.headers["authorization"] for one in api.asked] == [
            "Bearer first",
            "Bearer first",
            "Bearer second",
        ]
        with pytest.raises(ClientError) as refused:
            await client.show("s1")
        assert (refused.value.status, refused.value.code) == (401, "unauthenticated")


@on_the_clock
async def test_a_function_gives_the_token_and_another_one_after_a_refusal(api: FakeApi) -> None:
    tokens = iter(("first", "second"))
    api.on("GET /sagas/s1", (401, {"message": "Unauthorized"}), (200, OVER))
    async with Client(api.url, lambda: next(tokens)) as client:
        await asyncio.gather(client.show("s1"))
    assert api.asked[-1].headers["authorization"] == "Bearer second"


def test_the_web_application_of_the_page_starts_and_shows_sagas(api: FakeApi, folder: Path) -> None:
    page = Page(ROOT / "docs/client.md")
    found: dict[str, Any] = {}
    exec(compile(page.files()["web.py"], "web.py", "exec"), found)
    local(folder, api.url, "a-token")
    api.on("POST /sagas", (201, SAGA))
    api.on("GET /sagas/s1", (200, OVER))
    with TestClient(found["app"]) as web:
        for _ in range(2):
            answer = web.post("/orders", json={"id": "7"})
            assert (answer.status_code, answer.json()) == (202, {"saga": "s1"})
        assert web.get("/orders/s1").json() == {"status": "completed", "result": {"n": 1}, "error": None}
        answer = web.get("/orders/s2")
        assert (answer.status_code, answer.json()["detail"]) == (404, "/sagas/s2")
    assert {one.headers["idempotency-key"] for one in api.of("POST", "/sagas")} == {"order-7"}


def test_every_method_is_on_the_page() -> None:
    text = Page(ROOT / "docs/client.md").text
    named = [name for name in vars(Client) if not name.startswith("_") and name != "close"]
    assert [name for name in named if f"`{name}(" not in text] == []
