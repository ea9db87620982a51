"""The HTTP API, the Invoke API and the schedule over real sockets: who may call, what functions see and answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from baton.local.processes import InvocationRecord
from baton.local.run import FunctionError, LocalRun
from baton.local.sign_in import TokenIssuer
from tests.local.project import RULE, Scenario, put_events, received, shared_run, until, write_project

pytestmark = pytest.mark.e2e
NOTHING = frozenset({"stream", "queue", "schedule"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("http")


@pytest.fixture(scope="module")
def play(folder: Path) -> Iterator[Callable[[Scenario], None]]:
    options: dict[str, Any] = {"variables": {"EXTRA": "1"}, "retry_delays_s": (0.05,)}
    with shared_run(write_project(folder, RULE), switched_off=NOTHING, **options) as play:
        yield play


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_the_api_knows_its_callers_and_answers_as_api_gateway_does(
    folder: Path, play: Callable[[Scenario], None]
) -> None:
    async def scenario(run: LocalRun) -> None:
        async with httpx.AsyncClient(base_url=run.url, trust_env=False) as http:
            await refuses_strangers(run, http)
            await hands_the_whole_request_on(run, http)
            await survives_failures(run, http)

    async def refuses_strangers(run: LocalRun, http: httpx.AsyncClient) -> None:
        assert (await http.get("/health")).status_code == 200
        impostor = TokenIssuer(run.aws_environment["AWS_ENDPOINT_URL_LAMBDA"])
        issuer = run._issuer
        unsigned = jwt.encode({"sub": "u", "exp": time.time() + 60}, key="", algorithm="none")
        endless = {"iss": issuer.issuer, "aud": issuer.audience, "sub": "u"}
        kid = {"kid": issuer._key_id}
        bad = {
            "none": {},
            "no token": {"authorization": "Bearer"},
            "not a token": bearer("x.y.z"),
            "expired": bearer(run.token("u", "t", ttl_s=-5)),
            "another key": bearer(impostor.token("u", "t")),
            "unsigned": bearer(unsigned),
            "without exp": bearer(jwt.encode(endless, issuer._key, algorithm="RS256", headers=kid)),
            "for others": bearer(
                jwt.encode(
                    {**endless, "aud": "others", "exp": time.time() + 60},
                    issuer._key,
                    algorithm="RS256",
                    headers=kid,
                )
            ),
        }
        for why, headers in bad.items():
            answer = await http.get("/sagas", headers=headers)
            assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"}), why

    async def hands_the_whole_request_on(run: LocalRun, http: httpx.AsyncClient) -> None:
        answer = await http.post(
            "/sagas/a%20b?x=1", headers=bearer(run.token("user", "tenant")), json={"do": "nothing"}
        )
        seen = answer.json()
        claims = seen["event"]["requestContext"]["authorizer"]["jwt"]["claims"]
        assert (claims["sub"], claims["tenant"]) == ("user", "tenant")
        assert seen["event"]["routeKey"] == "$default"
        assert seen["event"]["rawPath"] == "/sagas/a b"
        assert json.loads(seen["event"]["body"]) == {"do": "nothing"}
        assert 0 < seen["remaining"] <= 10_000
        assert seen["name"] == run.physical["Front"]
        assert seen["arn"].endswith(f":function:{seen['name']}")
        assert seen["cwd"] == str(folder / "front")
        environment = seen["environment"]
        assert environment["WORKER"] == run.physical["Worker"]
        assert environment["LAMBDA_TASK_ROOT"] == str(folder / "front")
        assert environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "128"
        assert environment["EXTRA"] == "1"
        assert "HOME" not in environment  # nothing of the surrounding shell

    async def survives_failures(run: LocalRun, http: httpx.AsyncClient) -> None:
        token = bearer(run.token("u", "t"))
        failed = await http.post("/", headers=token, json={"do": "raise"})
        assert (failed.status_code, failed.json()) == (500, {"message": "Internal Server Error"})
        slow = await http.get("/slow", headers=token)
        assert (slow.status_code, slow.json()) == (503, {"message": "Service Unavailable"})
        large = await http.post("/", headers=token, content=b"x" * (10 * 1024 * 1024 + 1))
        assert (large.status_code, large.json()) == (413, {"message": "Request Entity Too Large"})

    play(scenario)


def test_a_function_invokes_another_one_and_failed_events_are_repeated_as_the_template_says(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(run: LocalRun) -> None:
        assert await run.invoke("Worker", {"do": "nothing"}) == {"do": "nothing"}
        with pytest.raises(FunctionError, match="as told"):
            await run.invoke("Worker", {"do": "raise"})
        assert await forward(run, "RequestResponse", {"n": 1}) == {
            "status": 200,
            "error": None,
            "payload": '{"n": 1}',
            "loaded": [],  # what is here and not on Lambda
        }
        told = await forward(run, "RequestResponse", {"do": "raise"})
        assert told["error"] == "Unhandled"
        assert json.loads(told["payload"])["errorType"] == "ValueError"
        assert (await forward(run, "Event", {"do": "raise"}))["status"] == 202
        await until(lambda: len(raising(run)) == 2)
        events = raising(run)
        assert events[0].request_id == events[1].request_id
        assert [record.outcome for record in events] == ["error", "error"]
        letter = json.loads((await received(run, "Failures"))["Body"])
        assert letter["requestContext"]["condition"] == "RetriesExhausted"
        assert letter["requestPayload"] == {"do": "raise"}
        assert letter["responsePayload"]["errorType"] == "ValueError"

    def raising(run: LocalRun) -> list[InvocationRecord]:
        return [r for r in run.invocations if r.trigger == "event" and r.event == {"do": "raise"}]

    async def forward(run: LocalRun, kind: str, payload: Any) -> Any:
        body = json.dumps({"do": "forward", "type": kind, "payload": payload})
        answer = await run.invoke("Front", {"rawPath": "/", "body": body})
        return json.loads(answer["body"])

    play(scenario)


def test_an_event_on_a_bus_comes_to_the_targets_of_its_rule_and_lies_with_the_dead_if_they_never_take_it(
    play: Callable[[Scenario], None],
) -> None:
    """The envelope is EventBridge's. What no rule takes, or a deployment would refuse, is said in the log."""

    async def scenario(run: LocalRun) -> None:
        answered = await put_events(
            run,
            {"Source": "shp"},
            {"DetailType": ""},
            {"Detail": "[]"},
            {"Source": "aws.s3"},
            {"Detail": '{"do": "raise"}', "Resources": ["order/1"]},
        )
        assert answered[3]["ErrorCode"] == "NotAuthorizedForSourceException"
        shp, untyped, flat, raises = (answered[n]["EventId"] for n in (0, 1, 2, 4))
        letter = json.loads((await received(run, "Failures"))["Body"])
        event = letter["requestPayload"]
        assert event.pop("time").endswith("Z")
        assert event == {
            "version": "0",
            "id": raises,
            "source": "shop",
            "detail-type": "paid",
            "detail": {"do": "raise"},
            "resources": ["order/1"],
            "account": "000000000000",
            "region": "us-east-1",
        }
        assert letter["requestContext"]["approximateInvokeCount"] == 2
        tried = [record for record in run.invocations if record.event.get("source")]
        assert [(record.event["id"], record.outcome) for record in tried] == [(raises, "error")] * 2
        lines = [
            f'the event {shp} (source shp, detail-type paid) fits no rule: Outside {{"source": ["shop"]}}',
            f"the event {untyped} is not handed on: in a deployment PutEvents answers InvalidArgument",
            f"the event {flat} is not handed on: in a deployment PutEvents answers MalformedDetail",
        ]
        log = run.run_dir / "logs/local.log"
        await until(lambda: all(f"bus orders: {line}" in log.read_text() for line in lines))

    play(scenario)


def test_no_web_page_reaches_the_servers_of_a_run(play: Callable[[Scenario], None]) -> None:
    async def scenario(run: LocalRun) -> None:
        control = run.aws_environment["AWS_ENDPOINT_URL_LAMBDA"]
        invoke = f"{control}/2015-03-31/functions/ApiFunction/invocations"
        strange = {"origin": "https://evil.example", "content-type": "text/plain"}
        key = run.aws_environment["AWS_ACCESS_KEY_ID"]
        signed = {
            "authorization": f"AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/lambda/aws4_request"
        }
        put = {"x-amz-target": "DynamoDB_20120810.ListTables", "content-type": "application/x-amz-json-1.0"}
        before = len(run.invocations)
        async with httpx.AsyncClient(trust_env=False) as http:
            for headers in (strange, {}, {"content-type": "text/plain"}, {**signed, "origin": "null"}):
                assert (await http.post(invoke, content=b"{}", headers=headers)).status_code == 403
            assert (await http.post(f"{run.url}/sagas", headers={"host": "evil.example"})).status_code == 403
            assert (await http.post(f"{run.url}/sagas", headers=strange)).status_code == 403
            for headers in (strange, {"host": "evil.example"}, {"sec-fetch-site": "cross-site"}):
                answer = await http.post(run.endpoint, content=b"{}", headers={**put, **headers})
                assert answer.status_code == 403, answer.text
            preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
            assert (await http.options(run.endpoint, headers=preflight)).status_code == 403
            answer = await http.post(run.endpoint, content=b"{}", headers={**put, **signed})
            assert answer.status_code == 200
            assert "access-control-allow-origin" not in answer.headers
        assert len(run.invocations) == before

    play(scenario)
