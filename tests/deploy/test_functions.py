"""The four functions: how they run, what they are told, where they log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from baton.adapters.queues import alias_of
from baton.runtime.reconcile import RUNS
from tests.deploy.stack import FUNCTIONS, ROOT, as_written, stack

# Read by the dinner example in layers/app, not by the engine.
OF_THE_APP = {"TABLE_STACK_URL", "OPEN_DELIVERY_URL"}
# No standard tool runs, no mail, webhook or event is sent, no service paid by, no host called and no intention taken that the deployment does not name.
EMPTY_BY_DEFAULT = {
    "BATON_MAIL_FROM", "BATON_PAYMENTS_URL", "BATON_PLAIN_HTTP_HOSTS", "BATON_STANDARD_TOOLS", "BATON_HTTP_HOSTS", "BATON_SIGNING_KEY",
    "BATON_CONFIRM_URL", "BATON_MODEL_SECRETS", "BATON_OPEN_APIS", "BATON_API_SECRETS", "BATON_INTENTION_WORKFLOW",
    "BATON_MAIL_TO", "BATON_GROUP_MAIL_TO", "BATON_WEBHOOK_URL", "BATON_WEBHOOK_SECRET", "BATON_EVENT_BUS_NAME",
    "BATON_TRACES_URL", "BATON_OPERATOR_TENANT", "BATON_CONSOLE_ISSUER", "BATON_CONSOLE_CLIENT", "BATON_CONSOLE_SECRETS",
    "BATON_EVENT_TENANT", "BATON_SECRETS", "BATON_FACTS",
}  # fmt: skip


def test_there_are_four_functions() -> None:
    assert set(stack().of_type("AWS::Lambda::Function")) == set(FUNCTIONS.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_runs_on_the_platform_its_layers_are_built_for(name: str) -> None:
    function = stack().properties(FUNCTIONS[name])
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["Handler"] == "app.handler"
    assert function["FunctionName"] == f"baton-{name}"
    for layer in function["Layers"]:
        layers = stack().of_type("AWS::Lambda::LayerVersion").values()
        (properties,) = (known for known in layers if f":{known['LayerName']}:" in layer)
        assert properties["CompatibleRuntimes"] == ["python3.13"]
        assert properties["CompatibleArchitectures"] == ["arm64"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_variable_has_a_value_by_default(name: str) -> None:
    empty = {variable for variable, value in stack().variables(name).items() if not value}
    assert empty <= OF_THE_APP | EMPTY_BY_DEFAULT


def test_the_example_reads_its_variables_itself() -> None:
    # The variable of a service follows from its name: table-stack has TABLE_STACK_URL.
    sources = "".join(file.read_text("utf-8") for file in (ROOT / "layers/app").rglob("*.py"))
    services = {name.removesuffix("_URL").lower().replace("_", "-") for name in OF_THE_APP}
    assert {service for service in services if f'"{service}"' in sources} == services


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_figure_is_written_into_the_template_where_a_parameter_could_say_it(name: str) -> None:
    own = as_written()["Resources"][FUNCTIONS[name]]["Properties"]["Environment"]["Variables"]
    fixed = {variable for variable, value in own.items() if not isinstance(value, dict)}
    # Secrets come with permissions of their own: the deployment of a project has both.
    assert fixed - {"BATON_SECRETS"} == {"POWERTOOLS_SERVICE_NAME"}
    assert own["POWERTOOLS_SERVICE_NAME"] == f"baton-{name}"


@pytest.mark.parametrize(
    ("function", "variable", "parameter", "value"),
    [
        ("worker", "BATON_LEASE_MS", "LeaseMs", "30000"),
        ("worker", "BATON_LEASE_GRACE_MS", "LeaseGraceMs", "2500"),
        ("worker", "BATON_CLOCK_SKEW_MS", "ClockSkewMs", "4000"),
        ("worker", "BATON_YIELD_RESERVE_MS", "YieldReserveMs", "1234"),
        ("worker", "BATON_STEP_ESTIMATE_MS", "StepEstimateMs", "777"),
        ("worker", "BATON_APP", "AppModule", "my.sagas"),
        ("worker", "TABLE_STACK_URL", "TableStackUrl", "https://tables.example"),
        ("worker", "OPEN_DELIVERY_URL", "OpenDeliveryUrl", "https://delivery.example"),
        ("api", "BATON_APP", "AppModule", "my.sagas"),
        ("api", "BATON_MAX_BODY_BYTES", "MaxBodyBytes", "4096"),
        ("api", "BATON_TENANT_CLAIM", "TenantClaim", "custom:org"),
        ("relay", "BATON_LOG_LEVEL", "LogLevel", "DEBUG"),
        ("reconciler", "BATON_SHARDS", "Shards", "8"),
    ],
)
def test_a_parameter_reaches_the_function(function: str, variable: str, parameter: str, value: str) -> None:
    assert stack(**{parameter: value}).variables(function)[variable] == value
    assert stack().variables(function)[variable] != value


def test_the_reconciler_knows_its_period_in_seconds() -> None:
    assert stack().variables("reconciler")["BATON_RECONCILE_PERIOD_S"] == "60"
    assert stack(ReconcileMinutes="5").variables("reconciler")["BATON_RECONCILE_PERIOD_S"] == "300"


def test_functions_are_told_where_the_real_things_are() -> None:
    api, worker, relay, reconciler = (
        stack().variables(name) for name in ("api", "worker", "relay", "reconciler")
    )
    assert relay["BATON_QUEUE_URL"] == reconciler["BATON_QUEUE_URL"] == "https://sqs.test/WakeQueue"
    assert worker["BATON_DEAD_LETTER_URL"] == "https://sqs.test/WakeDeadLetterQueue"
    assert reconciler["BATON_DEAD_LETTER_URL"] == "https://sqs.test/WakeDeadLetterQueue"
    name = stack().properties("WorkerFunction")["FunctionName"]
    assert api["BATON_WORKER"] == worker["BATON_WORKER"] == reconciler["BATON_WORKER"] == name


def test_only_functions_that_run_or_compile_sagas_carry_the_app() -> None:
    with_app = {
        name
        for name, logical_id in FUNCTIONS.items()
        if any("AppLayer" in layer for layer in stack().properties(logical_id)["Layers"])
    }
    assert (
        with_app
        == {name for name in FUNCTIONS if "BATON_APP" in stack().variables(name)}
        == {"api", "worker"}
    )
    for logical_id in FUNCTIONS.values():
        assert any("EngineLayer" in layer for layer in stack().properties(logical_id)["Layers"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_logs_into_a_group_that_forgets(name: str) -> None:
    group = stack().properties(FUNCTIONS[name])["LoggingConfig"]["LogGroup"]
    groups = stack(LogRetentionDays="7").of_type("AWS::Logs::LogGroup").values()
    (found,) = (g for g in groups if g["LogGroupName"] == group)
    assert group == f"/aws/lambda/baton-{name}"
    assert str(found["RetentionInDays"]) == "7"


def test_every_log_group_forgets() -> None:
    for logical_id, group in stack().of_type("AWS::Logs::LogGroup").items():
        assert int(group["RetentionInDays"]) > 0, logical_id


def test_lambda_does_not_repeat_a_direct_wake() -> None:
    (config,) = stack().of_type("AWS::Lambda::EventInvokeConfig").values()
    assert config["FunctionName"] == "baton-worker"
    assert config["MaximumRetryAttempts"] == 0


def test_lambdas_loop_detection_does_not_stop_a_long_saga() -> None:
    looping = {name for name, i in FUNCTIONS.items() if stack().properties(i).get("RecursiveLoop") == "Allow"}
    assert looping == {"worker", "relay"}


def test_the_limits_of_the_worker_are_parameters() -> None:
    worker = stack(WorkerTimeout="30", WorkerMemory="2048").properties("WorkerFunction")
    assert (str(worker["Timeout"]), str(worker["MemorySize"])) == ("30", "2048")


def test_every_handler_is_where_the_template_looks_for_it() -> None:
    for name, logical_id in FUNCTIONS.items():
        folder = stack().template.local_path(logical_id, stack().properties(logical_id)["Code"]["S3Key"])
        assert folder == ROOT / "functions" / name
        source = (Path(folder) / "app.py").read_text("utf-8")
        assert re.search(r"^(def handler\(|handler\s*[:=])", source, re.MULTILINE), f"{name} has no handler"


def test_a_new_account_whose_quota_lets_nothing_be_reserved_can_deploy() -> None:
    for logical_id in FUNCTIONS.values():
        assert "ReservedConcurrentExecutions" not in stack().properties(logical_id)


def test_what_the_page_tells_an_operator_to_reserve_is_enough_for_each_function() -> None:
    page = (ROOT / "docs/security.md").read_text("utf-8")
    said = dict(re.findall(r"(Api|Relay|Reconciler)Reserved=(\d+)", page))
    assert sum(map(int, said.values())) + 100 == 260, "AWS demands that a hundred are left"
    assert int(said["Reconciler"]) > RUNS, "all shards at once, and the dead letters"


@pytest.mark.parametrize(("name", "logical_id"), FUNCTIONS.items())
def test_a_reservation_is_a_parameter_and_none_is_possible(name: str, logical_id: str) -> None:
    parameter = f"{name.capitalize()}Reserved"
    assert stack(**{parameter: "60"}).properties(logical_id)["ReservedConcurrentExecutions"] == "60"
    assert "ReservedConcurrentExecutions" not in stack(**{parameter: "0"}).properties(logical_id)


def test_by_default_no_version_of_the_worker_is_published() -> None:
    assert stack().of_type("AWS::Lambda::Version") == {}
    assert stack().of_type("AWS::Lambda::Alias") == {}


def test_with_pinned_code_each_build_of_the_worker_is_a_version_with_an_alias_that_stays() -> None:
    made = stack(FunctionCode="pinned")
    worker = made.properties("WorkerFunction")["Environment"]["Variables"]
    resources = made.template.resources
    description = made.resolver.value(resources["WorkerVersion"]["Properties"]["Description"], "")
    name = made.resolver.value(resources["WorkerBuild"]["Properties"]["Name"], "")
    assert worker["BATON_FUNCTION_CODE"] == "pinned"
    assert description == worker["BATON_BUILD"]
    assert name == alias_of(worker["BATON_BUILD"])
    for logical_id in ("WorkerVersion", "WorkerBuild"):
        assert resources[logical_id]["UpdateReplacePolicy"] == "Retain"
        assert resources[logical_id]["DeletionPolicy"] == "RetainExceptOnCreate"
