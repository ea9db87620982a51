"""Every setting of every function that is not a limit: with another value the function does something else.

What a limit changes is in tests/settings; that the template's values arrive, in tests/deploy.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Any

import boto3
import pytest
from msgspec.structs import replace

from baton import wiring
from baton.core.limits import Limits
from baton.core.log.events import Notice
from baton.ports import SagaRef, Telling
from baton.settings import FUNCTIONS, SettingsError, WorkerSettings, variable_of
from baton.tools.define import ToolError
from tests.handlers import test_api_bus, test_api_intentions
from tests.handlers import test_console_sign_in as console
from tests.handlers import test_each_channel_matters as channels
from tests.handlers import test_each_letter_setting_matters as letters
from tests.handlers import test_each_model_setting_matters as model_settings
from tests.handlers.deployment import REGION, Deployment, payload
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO
from tests.handlers.test_api_questions import SAID, asking
from tests.handlers.test_reconciler import Reconciler, due, saga_in
from tests.handlers.test_relay import Relay
from tests.handlers.workers import Worker
from tests.kit.sentences import Says
from tests.kit.table import create_table
from tests.settings import test_secrets

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
OTHER = "another-one"
_numbers = itertools.count(1)


def with_api(deployment: Deployment, use: Callable[[Http], Any], **settings: str) -> Any:
    """What `use` finds with the api function under these settings."""
    changed = {variable_of(name): value for name, value in settings.items()}
    with deployment.function("api", **changed) as module:
        try:
            return use(Http(module))
        finally:
            module._api._loop.close()


def queue(deployment: Deployment) -> str:
    """A new one."""
    return deployment.sqs.create_queue(QueueName=f"{OTHER}-{next(_numbers)}")["QueueUrl"]


def bodies(deployment: Deployment, url: str) -> list[str]:
    answer = deployment.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
    return [message["Body"] for message in answer.get("Messages", [])]


# ---- every function's ----------------------------------------------------------------------------------------


def test_table(deployment: Deployment) -> None:
    create_table(deployment.dynamodb, OTHER)
    saga = with_api(deployment, lambda http: (http.register(ECHO), http.start("echo"))[1], table=OTHER)
    assert not deployment.items()
    assert str(SagaRef("acme", saga)) in str(deployment.dynamodb.scan(TableName=OTHER)["Items"])
    deployment.dynamodb.delete_table(TableName=OTHER)


def test_bucket(deployment: Deployment) -> None:
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket=OTHER, CreateBucketConfiguration={"LocationConstraint": REGION})
    with_api(deployment, lambda http: http.register(ECHO), bucket=OTHER)
    assert s3.list_objects_v2(Bucket=OTHER)["KeyCount"] == 2, "the document and its graph"


def shards_of_twenty(deployment: Deployment, key: str, **setting: str) -> int:
    with_api(deployment, lambda http: (http.register(ECHO), *map(http.start, ["echo"] * 20)), **setting)
    return len({item[key]["S"].rsplit("#", 1)[1] for item in deployment.items() if key in item})


def test_shards(deployment: Deployment) -> None:
    assert [shards_of_twenty(deployment, "due_shard", shards=n) for n in "12"] == [1, 2]


def test_status_shards(deployment: Deployment) -> None:
    assert [shards_of_twenty(deployment, "st_key", status_shards=n) for n in "12"] == [1, 2]


@pytest.mark.parametrize(("cell", "begins"), [("0", "s"), ("7", "c7.s")])
def test_cell(cell: str, begins: str, deployment: Deployment) -> None:
    said = f"saga `c8.s` is in cell 8, and this deployment is cell {cell}"

    def start(http: Http) -> str:
        http.register(ECHO)
        assert http.get("/sagas/c8.s").body["detail"] == said
        return http.start("echo")

    assert with_api(deployment, start, cell=cell).startswith(begins)


@pytest.mark.parametrize("level", ["DEBUG", "ERROR"])
def test_log_level(level: str, deployment: Deployment) -> None:
    with_api(deployment, lambda http: http.get("/health"), log_level=level)
    assert logging.getLogger("baton").getEffectiveLevel() == getattr(logging, level)


@pytest.mark.parametrize("function", ["api", "worker"])
def test_app(function: str, deployment: Deployment, says: Says) -> None:
    with (
        says.raised(ToolError),
        deployment.function(function, BATON_APP="no.such"),
    ):
        pass


# ---- the api's -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("claim", "tenant"), [("tenant", "acme"), ("org", "umbrella")])
def test_tenant_claim(claim: str, tenant: str, deployment: Deployment) -> None:
    def start(http: Http) -> str:
        event = http.event("POST", "/workflows", ECHO, headers={"content-type": "application/yaml"})
        event["requestContext"]["authorizer"]["jwt"]["claims"]["org"] = "umbrella"
        assert http.send(event).status == 201
        return next(str(item["pk"]["S"]) for item in deployment.items() if item["sk"]["S"] == "echo")

    assert with_api(deployment, start, tenant_claim=claim) == f"T#{tenant}#WF"


@pytest.mark.parametrize(("claim", "status"), [("roles", 403), ("permissions", 404)])
def test_roles_claim(claim: str, status: int, deployment: Deployment) -> None:
    def start(http: Http) -> int:
        event = http.event("POST", "/sagas", {"workflow": "echo"}, roles="[read]")
        event["requestContext"]["authorizer"]["jwt"]["claims"]["permissions"] = "[run]"
        return http.send(event).status

    assert with_api(deployment, start, roles_claim=claim) == status


@pytest.mark.parametrize(("claim", "status"), [("groups", 403), ("teams", 202)])
def test_groups_claim(claim: str, status: int, deployment: Deployment) -> None:
    def answer(http: Http) -> int:
        asking(http)
        event = http.event("POST", f"/sagas/{ADA.id}/answer", SAID, user="eve", roles="[answer]")
        event["requestContext"]["authorizer"]["jwt"]["claims"]["teams"] = "hosts"
        return http.send(event).status

    assert with_api(deployment, answer, groups_claim=claim) == status


@pytest.mark.parametrize(("roles", "status"), [("none", 403), ("read", 403), ("read run", 404)])
def test_default_roles(roles: str, status: int, deployment: Deployment) -> None:
    def start(http: Http) -> int:
        return http.post("/sagas", {"workflow": "echo"}, roles=None).status

    assert with_api(deployment, start, default_roles=roles) == status


@pytest.mark.parametrize(("limit", "refused"), [("1", True), ("0", False)])
def test_tenant_rate_limit(limit: str, refused: bool, deployment: Deployment) -> None:
    def ask(http: Http) -> set[int]:
        return {http.get("/tools").status for _ in range(21)}

    assert (429 in with_api(deployment, ask, tenant_rate_limit=limit)) is refused


@pytest.mark.parametrize(("each", "refused"), [("1024", True), ("65536", False)])
def test_tenant_rate_bytes(each: str, refused: bool, deployment: Deployment) -> None:
    def ask(http: Http) -> set[int]:
        return {http.post("/sagas", {"workflow": "echo", "input": "x" * 4_000}).status for _ in range(5)}

    settings = {"tenant_rate_limit": "1", "tenant_rate_bytes": each}
    assert (429 in with_api(deployment, ask, **settings)) is refused


@pytest.mark.parametrize(("most", "status"), [("1024", 413), ("4096", 404)])
def test_max_body_bytes(most: str, status: int, deployment: Deployment) -> None:
    def start(http: Http) -> int:
        return http.post("/sagas", {"workflow": "echo", "input": "x" * 2_000}).status

    assert with_api(deployment, start, max_body_bytes=most) == status


# ---- the worker's tools' -------------------------------------------------------------------------------------


def services_of_a_worker(deployment: Deployment, **settings: str) -> Any:
    """What the standard tools of a worker with these settings are given."""
    changed = {variable_of(name): value for name, value in settings.items()}
    with deployment.function("worker", **changed) as module:
        module._loop.close()
        return module._engine.performer._registry._services


def test_mail_from(deployment: Deployment) -> None:
    assert services_of_a_worker(deployment, mail_from="desk@a.example").mail_from == "desk@a.example"


SIGNING_KEY = "x" * 32


def test_signing_key(deployment: Deployment) -> None:
    assert services_of_a_worker(deployment, signing_key=SIGNING_KEY).signing_key == SIGNING_KEY
    assert SIGNING_KEY not in repr(WorkerSettings(**channels.REQUIRED, signing_key=SIGNING_KEY))


def test_http_hosts(deployment: Deployment) -> None:
    found = services_of_a_worker(deployment, http_hosts="a.example 10.0.0.0/8").http
    assert found._hosts == {"a.example", "10.0.0.0/8"}


def test_standard_tools(deployment: Deployment) -> None:
    def names(http: Http) -> set[str]:
        tools = http.get("/tools").body["tools"]
        return {tool["name"] for tool in tools if tool["name"].startswith("std.")}

    assert with_api(deployment, names) == set()
    some = with_api(deployment, names, standard_tools="std.http std.pay=globex")
    assert some == {"std.http", "std.http_pipeline", "std.delete_resource"}
    paying = with_api(deployment, names, standard_tools="std.pay=globex,acme")
    assert paying == {"std.pay", "std.find_payment", "std.refund"}
    with deployment.function("worker", BATON_STANDARD_TOOLS="std.get") as module:
        module._loop.close()
        assert {name for name in module._engine.tools if name.startswith("std.")} == {"std.get"}


def test_a_document_with_a_tool_that_the_tenant_may_not_use_is_not_registered(deployment: Deployment) -> None:
    pay = {"tool": "std.pay", "with": {"amount": 5, "currency": "EUR", "to": "x"}}
    document = {"name": "pays", "nodes": {"pay": pay}}

    def register(http: Http) -> list[int]:
        return [http.post("/workflows", document, tenant=tenant).status for tenant in ("acme", "globex")]

    assert with_api(deployment, register) == [422, 422]
    assert with_api(deployment, register, standard_tools="std.pay=acme") == [201, 422]


def test_payments_url(deployment: Deployment) -> None:
    assert services_of_a_worker(deployment, payments_url="https://pay.example").payments_url


def test_plain_http_hosts(deployment: Deployment) -> None:
    found = services_of_a_worker(deployment, plain_http_hosts="a.example b.example").http
    assert found._plain == {"a.example", "b.example"}


# ---- the others' ---------------------------------------------------------------------------------------------


def test_notices_topic(deployment: Deployment) -> None:
    sns, told = boto3.client("sns", region_name=REGION), queue(deployment)
    topic = sns.create_topic(Name=OTHER)["TopicArn"]
    arn = deployment.sqs.get_queue_attributes(QueueUrl=told, AttributeNames=["QueueArn"])
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn["Attributes"]["QueueArn"])
    notice = Notice(key="k", to="on_call", code="service_down", message="The service is down.", at=1)
    for address, count in ((sns.create_topic(Name="unheard")["TopicArn"], 0), (topic, 1)):
        with deployment.function("worker", BATON_NOTICES_TOPIC=address) as module:
            engine = module._engine
            one = replace(notice, key=f"k{count}")
            (channel,) = engine.notices
            channel.tell(Telling(tenant="acme", saga="s1", user="ada", notice=one, now=engine.clock.now()))
        assert len(bodies(deployment, told)) == count


def test_api_url(deployment: Deployment) -> None:
    with deployment.function("worker", BATON_API_URL="https://sagas.example/") as module:
        assert module._engine.api_url == "https://sagas.example"


def test_dead_letter_url_of_the_worker(deployment: Deployment) -> None:
    url = queue(deployment)
    with deployment.function("worker", BATON_DEAD_LETTER_URL=url) as module:
        worker = Worker(module)
        with worker.without_lambda():
            worker.send(payload("worker", "poison"))
        module._loop.close()
    assert "hello" in bodies(deployment, url)
    assert not deployment.dead_letters()


def test_worker_of_the_reconciler(deployment: Deployment) -> None:
    with deployment.function("reconciler", BATON_WORKER=OTHER) as module:
        reconciler = Reconciler(module)
        due(deployment, saga_in(0), reconciler.now - 1)
        reconciler.send({"shard": 0})
        module._loop.close()
    assert [request["FunctionName"] for request in reconciler.invoked] == [OTHER]


def test_worker_of_the_worker(deployment: Deployment) -> None:
    with deployment.function("worker", BATON_WORKER=OTHER) as module:
        assert module._worker._invoker._function == OTHER
        module._loop.close()


def test_queue_url_of_the_relay(deployment: Deployment) -> None:
    url = queue(deployment)
    with deployment.function("relay", BATON_QUEUE_URL=url) as module:
        Relay(module).send(payload("relay", "entry"))
        module._loop.close()
    assert ADA.id in str(bodies(deployment, url))
    assert not deployment.messages("WakeQueue")


def test_queue_url_of_the_worker(deployment: Deployment) -> None:
    url = queue(deployment)
    deployment.sqs.send_message(QueueUrl=url, MessageBody="waits")
    for changed, waiting in (({}, 0), ({"BATON_QUEUE_URL": url}, 1)):
        with deployment.function("worker", **changed) as module:
            assert module._worker._queue.backlog() == waiting
            module._loop.close()


def test_queue_url_of_the_reconciler(deployment: Deployment) -> None:
    url = queue(deployment)
    with deployment.function("reconciler", BATON_QUEUE_URL=url) as module:
        reconciler = Reconciler(module)
        due(deployment, saga_in(0), reconciler.now + 30_000)
        reconciler.send({"shard": 0})
        module._loop.close()
    found = deployment.sqs.get_queue_attributes(
        QueueUrl=url, AttributeNames=["ApproximateNumberOfMessagesDelayed"]
    )
    assert found["Attributes"]["ApproximateNumberOfMessagesDelayed"] == "1"


@pytest.mark.parametrize(("period", "timed"), [("60", 0), ("600", 1)])
def test_reconcile_period_s(period: str, timed: int, deployment: Deployment) -> None:
    with deployment.function("reconciler", BATON_RECONCILE_PERIOD_S=period) as module:
        reconciler = Reconciler(module)
        due(deployment, saga_in(0), reconciler.now + 400_000)
        assert reconciler.send({"shard": 0})["timed"] == timed
        module._loop.close()


@pytest.mark.parametrize(("metrics", "count"), [("on", 1), ("off", 0)])
@pytest.mark.parametrize("function", ["api", "worker", "reconciler"])
def test_metrics(
    function: str, metrics: str, count: int, deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    if function == "api":
        deleted = {**test_api_bus.OBJECT, "detail-type": "Object Deleted"}
        test_api_bus.taken(deployment, deleted, BATON_METRICS=metrics)
    elif function == "worker":
        with deployment.function("worker", BATON_METRICS=metrics) as module:
            module._engine.metrics.blocked("trial.echo", module._engine.clock.now())
    else:
        deployment.sqs.send_message(QueueUrl=deployment.url("WakeDeadLetterQueue"), MessageBody="letter")
        with deployment.function("reconciler", BATON_METRICS=metrics) as module:
            Reconciler(module).send(payload("reconciler", "dead-letters"))
            module._loop.close()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith('{"_aws"')]
    assert len(lines) == count


# ---- all of them ---------------------------------------------------------------------------------------------


def limits_of(module: Any) -> Any:
    holder = module._relay if hasattr(module, "_relay") else getattr(module, "_api", module)._engine
    return holder.limits


@pytest.mark.parametrize("function", ["api", "worker", "relay"])
def test_a_limit_that_is_set_reaches_the_engine(function: str, deployment: Deployment) -> None:
    limits = {field.name for field in dataclasses.fields(Limits)}
    of_this_function = {field.name for field in dataclasses.fields(FUNCTIONS[function])} & limits
    assert of_this_function
    usual: dict[str, Any] = {name: getattr(Limits(), name) for name in of_this_function}
    values = {
        name: "7.5" if isinstance(value, str) else value + (-1 if name == "inline_bytes" else 1)
        for name, value in usual.items()
    } | {
        name: value
        for name, value in {
            "on_failure": "fail",
            "function_code": "pinned",
            "alias_approval": "setting",
            "retry_policy": "quick",
            "model_replanning": "off",
        }.items()
        if name in usual
    }
    changed = {variable_of(name): str(value) for name, value in values.items()}
    with deployment.function(function, **changed) as module:
        found = limits_of(module)
        assert {name: getattr(found, name) for name in of_this_function} == values


def test_every_setting_is_a_limit_or_has_a_test_here_or_beside() -> None:
    limits = {field.name for field in dataclasses.fields(Limits)}
    beside = (test_api_bus, test_api_intentions, channels, console, letters, model_settings, test_secrets)
    here = globals() | {name: value for module in beside for name, value in vars(module).items()}
    tested = {name for name, value in here.items() if name.startswith("test_") and callable(value)}
    for function, model in FUNCTIONS.items():
        for name in {field.name for field in dataclasses.fields(model)} - limits:
            assert {f"test_{name}", f"test_{name}_of_the_{function}"} & tested, f"{function}: {name}"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"BATON_SHARDS": "0"}, "BATON_SHARDS: Expected `int` >= 1"),
        ({"BATON_SHARDS": "many"}, "BATON_SHARDS: Expected `int`"),
        ({"BATON_TABLE": ""}, "BATON_TABLE: is missing"),
        ({"BATON_LOG_LEVEL": "LOUD"}, "BATON_LOG_LEVEL: Expected `str` matching regex"),
        ({"BATON_SHARDS": "0", "BATON_BUCKET": ""}, "BATON_BUCKET: is missing; BATON_SHARDS: Expected"),
        (
            {"BATON_STORE_PAUSE_FIRST_MS": "90", "BATON_STORE_PAUSE_LONGEST_MS": "80"},
            "store_pause_first_ms must not be above store_pause_longest_ms",
        ),
    ],
)
def test_a_wrong_setting_stops_the_function_and_is_named(
    changed: Mapping[str, str], said: str, deployment: Deployment
) -> None:
    with pytest.raises(SettingsError) as refusal, deployment.function("relay", **changed):
        pass
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("runtime_api", "terminal", "has_one"),
    [("", "", False), ("127.0.0.1:9001", "", True), ("127.0.0.1:9001", "/dev/pts/0", False)],
)
def test_only_a_process_of_lambda_that_no_person_debugs_has_a_watchdog(
    runtime_api: str, terminal: str, has_one: bool, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end the process of these tests, or the one that a person has stopped."""
    monkeypatch.setattr(wiring, "SystemWatchdog", object)
    own = {"AWS_LAMBDA_RUNTIME_API": runtime_api, "BATON_DEBUG_TERMINAL": terminal}
    with deployment.function("worker", **own) as module:
        module._loop.close()
        assert (module._engine.watchdog is not None) == has_one
