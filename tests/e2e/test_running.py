"""The whole deployment at work: callers, hand-overs, signals, cancels, a mail, and a worker that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections import Counter
from datetime import datetime
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from baton.local.processes import InvocationRecord, LocalRunError
from baton.local.sign_in import TokenIssuer
from benchmarks import ramp
from tests.e2e.deployment import (
    FINAL,
    GRACE_MS,
    WORKER_TIMEOUT_S,
    Deployment,
    chain,
    held,
    key_of,
    steps_in_log,
    until,
)
from tests.kit.patience import PATIENCE_S

pytestmark = pytest.mark.e2e
LONG = chain("long", 8, 0.5)
ASKING = """
name: asking
nodes:
  before: {tool: trial.work, with: {n: 1}}
  answer: {wait: {signal: answer}, after: before}
  behind: {tool: trial.echo, after: answer, with: {value: "${ctx.answer.output}"}}
output: "${ctx.behind.output}"
"""
LETTER = "{tool: std.notify, with: {to: ada@home.example, subject: Your table, text: It is yours.}"
TWICE = f"name: mail\nnodes:\n  first: {LETTER}}}\n  again: {LETTER}, after: first}}\n"


# ---- callers


def strangers(deployment: Deployment) -> dict[str, str]:
    """Tokens that must not be accepted."""
    good = deployment.run.token("ada", "acme")
    header, payload, signature = good.split(".")
    issuer = deployment.run.aws_environment["AWS_ENDPOINT_URL_LAMBDA"]
    other_payload = deployment.run.token("ada", "evil").split(".")[1]
    return {
        "none": "",
        "no token": "nonsense",
        "of another issuer's key": TokenIssuer(issuer).token("ada", "acme"),
        "with another payload": f"{header}.{other_payload}.{signature}",
        "without a signature": f"{header}.{payload}.",
        "expired": deployment.run.token("ada", "acme", ttl_s=-1),
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/sagas"),
        ("GET", "/sagas/x"),
        ("POST", "/sagas/x/cancel"),
        ("POST", "/workflows"),
        ("GET", "/x"),
    ],
)
def test_no_request_is_let_in_without_a_good_token(method: str, path: str, everything: Deployment) -> None:
    before = len([r for r in everything.run.invocations if r.function == "ApiFunction"])
    for why, token in strangers(everything).items():
        answer = everything.request(method, path, token=token, json={"workflow": "long"})
        assert answer.status_code == 401, why
    # They were refused before any function of ours ran.
    assert len([r for r in everything.run.invocations if r.function == "ApiFunction"]) == before


def test_a_good_token_of_another_tenant_finds_nothing(everything: Deployment) -> None:
    everything.register(ASKING)
    saga = everything.start("asking")
    stranger = everything.run.token("eve", "evil")
    answers = [
        everything.request("GET", f"/sagas/{saga}", token=stranger),
        everything.request("GET", f"/sagas/{saga}/events", token=stranger),
        everything.request("POST", f"/sagas/{saga}/signals/answer", token=stranger, json={}),
        everything.request("POST", f"/sagas/{saga}/cancel", token=stranger),
        everything.request("POST", "/sagas", token=stranger, json={"workflow": "asking"}),
    ]
    assert [answer.status_code for answer in answers] == [404] * 5
    assert all(a.headers["content-type"] == "application/problem+json" for a in answers)
    everything.wait_for(saga, "waiting")
    assert everything.events(saga, "signal_received") == []


def test_health_is_anonymous(everything: Deployment) -> None:
    answer = everything.request("GET", "/health", token="")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


# ---- signals


def test_a_signal_sets_a_waiting_saga_going_at_once(everything: Deployment) -> None:
    everything.register(ASKING)
    saga = everything.start("asking")
    everything.wait_for(saga, "waiting")
    for _ in range(2):  # the second is the repetition of an impatient caller
        answer = everything.request(
            "POST",
            f"/sagas/{saga}/signals/answer",
            json={"payload": {"party": 5}},
            headers={"idempotency-key": "k"},
        )
        assert answer.status_code in (202, 409)
    shown = everything.wait_for(saga)
    assert everything.workers(saga)[-1].trigger == "sqs"  # it was not the reconciler's next look, either
    assert (shown["status"], shown["result"]) == ("completed", {"party": 5})
    (received,) = everything.events(saga, "signal_received")
    assert (received["key"], received["by"]) == ("k", "ada")


# ---- MCP


def test_the_official_mcp_client_starts_watches_and_signals_a_saga(everything: Deployment) -> None:
    everything.register(ASKING.replace("name: asking", "name: asked\nmcp: true"))

    async def scene() -> dict[str, Any]:
        signed = {"authorization": f"Bearer {everything.run.token('ada', 'acme')}"}
        async with httpx2.AsyncClient(headers=signed, trust_env=False, timeout=PATIENCE_S) as client:
            transport = streamable_http_client(f"{everything.run.url}/mcp", http_client=client)
            async with Client(transport) as peer:
                begun = (await peer.call_tool("asked", {})).structured_content or {}
                everything.wait_for(begun["id"], "waiting")
                sent = {"saga": begun["id"], "name": "answer", "payload": 5}
                assert (await peer.call_tool("signal_saga", sent)).is_error is False
                shown: dict[str, Any] = {}
                while shown.get("status") != "completed":
                    watched = await peer.call_tool("watch_saga", {"saga": begun["id"], "wait_s": 10})
                    shown = watched.structured_content or {}
                return shown

    assert asyncio.run(scene())["result"] == 5
    with pytest.raises(BaseExceptionGroup, match="unhandled errors"):
        asyncio.run(refused(everything.run.url))


async def refused(url: str) -> None:
    async with Client(f"{url}/mcp") as peer:
        await peer.list_tools()


# ---- cancels


def cancel(deployment: Deployment, saga: str, body: dict[str, Any]) -> httpx.Response:
    answer = deployment.request("POST", f"/sagas/{saga}/cancel", json=body)
    assert answer.status_code == 202, answer.text
    return answer


def test_a_graceful_cancel_lets_the_running_step_finish_and_starts_no_other(everything: Deployment) -> None:
    everything.register(held("graceful"))
    saga = everything.start("graceful")
    until(lambda: everything.books.begun(saga)["s1"], "the step")
    cancel(everything, saga, {"reason": "the guests are ill", "grace_s": 600})
    everything.books.open("graceful")
    shown = everything.wait_for(saga)
    assert shown["status"] == "cancelled"
    assert shown["error"]["message"] == "the guests are ill"
    assert everything.books.begun(saga).keys() == {"s0", "s1"}
    assert steps_in_log(everything.events(saga)) == ["s0", "s1"]
    assert everything.books.effects(saga) == {"s0": 1, "s1": 1}
    assert everything.head(saga) is not None
    until(lambda: "due_at" not in (everything.head(saga) or {}), "leaving the due index")


def test_a_forced_cancel_stops_the_running_step(everything: Deployment) -> None:
    everything.register(
        "name: forced\nnodes:\n  slow: {tool: trial.forever}\n  next: {tool: trial.work, after: slow}\n"
    )
    saga = everything.start("forced")
    until(lambda: everything.books.begun(saga)["slow"], "the step")
    cancel(everything, saga, {"mode": "forced"})
    shown = everything.wait_for(saga)
    assert shown["status"] == "cancelled"
    assert everything.books.begun(saga)["next"] == 0
    assert "ended" not in [deed.kind for deed in everything.books.deeds(saga)]
    assert steps_in_log(everything.events(saga)) == []


def test_a_waiting_saga_is_cancelled_at_once(everything: Deployment) -> None:
    everything.register(ASKING)
    saga = everything.start("asking")
    everything.wait_for(saga, "waiting")
    cancel(everything, saga, {})
    assert everything.wait_for(saga)["status"] == "cancelled"
    again = cancel(everything, saga, {})
    assert again.json()["status"] == "cancelled"
    late = everything.request("POST", f"/sagas/{saga}/signals/answer", json={})
    assert late.status_code == 409


# ---- kill -9


def killed_in(deployment: Deployment, saga: str, node: str) -> InvocationRecord | None:
    """Kill the worker that is in this step of the saga; None if none was killed in it, and it is to be tried again."""
    begun = [deed.pid for deed in deployment.books.deeds(saga, "begun") if deed.node == node]
    busy = {process.pid: process.request_id for process in deployment.run.processes("WorkerFunction")}
    request = busy.get(begun[-1]) if begun else None
    if not request:
        return None
    with contextlib.suppress(LocalRunError):  # it has ended in the meantime
        deployment.run.kill(begun[-1])
    (ended,) = until(lambda: [r for r in deployment.run.invocations if r.request_id == request], "its end")
    return ended if ended.outcome == "killed" else None


def test_a_killed_workers_saga_is_revived_by_its_message_and_nothing_is_done_twice(
    everything: Deployment,
) -> None:
    everything.register(held("killed"))
    saga = everything.start("killed")
    killed = until(lambda: killed_in(everything, saga, "s1"), "a worker in the step")
    everything.books.open("killed")
    shown = everything.wait_for(saga)
    assert shown["status"] == "completed", shown
    death = everything.events(saga, "revived")[0]
    assert death["dead"].startswith(killed.request_id)
    nodes = ["s0", "s1", "s2"]
    assert steps_in_log(everything.events(saga)) == nodes
    assert everything.books.effects(saga) == Counter(nodes)
    assert everything.books.begun(saga)["s1"] >= 2  # under the same idempotency key
    # The message came back when the dead lease was over, without waiting for the reconciler.
    lease_ms = WORKER_TIMEOUT_S * 1_000 + GRACE_MS
    revived = next(entry for entry in everything.log(saga) if entry["events"][0]["kind"] == "revived")
    revived_at = milliseconds(revived["at"])
    assert revived_at - killed.started >= lease_ms
    since = [record for record in everything.run.invocations if killed.ended < record.started <= revived_at]
    returns = [record for record in since if record.trigger == "sqs" and key_of(saga) in str(record.event)]
    # Unless its round, which is every 20 s, fell into the moment between the two.
    assert returns or [record for record in since if record.trigger == "schedule"]


def milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1_000)


def test_a_saga_longer_than_its_worker_is_handed_over_by_stream_and_queue(everything: Deployment) -> None:
    everything.register(LONG)
    saga = everything.start("long")
    shown = everything.wait_for(saga)
    assert shown["status"] == "completed", shown
    assert shown["invocations"] >= 2
    assert "sqs" in {worker.trigger for worker in everything.workers(saga)[1:]}


# ---- poison on the real queue


def test_poison_on_the_queue_ends_in_the_dead_letters_and_the_sagas_go_on(everything: Deployment) -> None:
    everything.register(chain("short", 2, 0.1))
    sqs = everything.client("sqs")
    sqs.send_message(QueueUrl=everything.run.physical["WakeQueue"], MessageBody="hello")
    saga = everything.start("short")
    assert everything.wait_for(saga)["status"] == "completed"

    def letters() -> list[Any]:
        found = everything.request("GET", "/dead-letters?reason=not_a_wake").json()["dead_letters"]
        return [letter for letter in found if letter["message"] == "hello"]

    (letter,) = until(letters, "the dead letter")
    assert letter["reason"].startswith("not a wake: ")
    assert letter["saga"] is None
    refused = everything.request("POST", f"/dead-letters/{letter['id']}/redrive", json={})
    assert refused.status_code == 409
    why = {"reason": "sent by a test"}
    assert everything.request("POST", f"/dead-letters/{letter['id']}/discard", json=why).status_code == 202
    assert letters() == []


def test_a_saga_that_cannot_be_read_is_listed_by_the_command_line_and_goes_on_when_it_is_mended_and_redriven(
    everything: Deployment,
) -> None:
    everything.register(UNREAD)
    table, dynamodb = everything.run.physical["SagaTable"], everything.client("dynamodb")

    def spoiled() -> tuple[str, dict[str, Any]] | None:
        """A saga with an old entry of another version, and where it is; none if the saga went on before it was written."""
        shown = everything.wait_for(everything.start("unread"), "waiting", *FINAL)
        place = {"pk": {"S": key_of(shown["id"])}, "sk": {"S": f"LOG#0000#{shown['version'] + 1:010d}"}}
        try:
            dynamodb.put_item(
                TableName=table,
                Item={
                    **place,
                    "d": {"B": b'{"format": 9, "at": 1767225600000, "events": [{"node": "pause"}]}'},
                },
                ConditionExpression="attribute_not_exists(pk)",
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return None
        return (shown["id"], place) if shown["status"] == "waiting" else None

    saga, place = until(spoiled, "an entry of another version")
    until(lambda: saga in everything.request("GET", "/dead-letters").text, "the letter", 0.25)
    listed = dlq(everything, "list", "--saga", saga, "--json")["dead_letters"]
    assert [(one["saga"], one["node"], one["code"]) for one in listed] == [(saga, "pause", "unknown_entry")]
    dynamodb.delete_item(TableName=table, Key=place)
    assert dlq(everything, "redrive", saga, "--json")["dead_letters"][0]["redrives"] == 1
    assert everything.wait_for(saga)["status"] == "completed"


UNREAD = "name: unread\nnodes: {pause: {wait: {for: 4s}}}"


def dlq(of: Deployment, *arguments: str) -> Any:
    """What `baton dlq` answers to a program."""
    command = [
        sys.executable,
        "-m",
        "baton.cli",
        "--url",
        of.run.url,
        "--token",
        of.run.token("ada", "acme"),
        "dlq",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return json.loads(done.stdout)


# ---- a mail, from a step to the outbox of the embedded AWS


def test_a_mail_is_sent_and_the_same_one_again_is_not(everything: Deployment) -> None:
    everything.register(TWICE)
    sagas = [everything.start("mail") for _ in range(2)]
    assert [everything.wait_for(saga)["status"] for saga in sagas] == ["completed"] * 2
    (sent,) = mails(everything, "ada@home.example")
    assert (sent["Source"], sent["Subject"]) == ("desk@lantern.example", "Your table")


QUESTION = "name: question\nnodes: {how: {human: {title: How?, to: {group: hosts}, options: [{id: a, default: true}]}}}"


def test_a_question_is_told_by_every_channel_that_is_set_up(everything: Deployment) -> None:
    everything.register(QUESTION)
    saga = everything.start("question")
    (event,) = until(lambda: everything.events(saga, "notices_sent"), "the notice", 0.25)
    assert event["untold"] == []
    (sent,) = mails(everything, "hosts@lists.example")
    assert (sent["Source"], sent["Subject"]) == ("desk@lantern.example", "[medium] Question: How?")
    assert f"baton answer {saga} 0.how ANSWER" in sent["BodyText"]


def mails(of: Deployment, to: str) -> list[Any]:
    """What the embedded AWS has sent to this address."""
    outbox = httpx.get(f"{of.run.endpoint}/_ministack/ses/messages", trust_env=False).json()["messages"]
    return [mail for sent in outbox.values() for mail in sent if mail["To"] == [to]]


# ---- load


def test_a_little_load_is_carried_and_counted(
    everything: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A request that this machine has no time for may be refused; none that was accepted is lost.
    monkeypatch.setattr(ramp, "DRAIN_S", PATIENCE_S)
    (step,) = ramp.ramp(everything, [2], step_s=2)
    assert step.accepted + step.refused == 4
    assert step.finished == step.accepted > 0
    assert 0 < step.percentile(0.5) <= step.percentile(0.99)
    assert step.cpu["embedded AWS"] > 0
