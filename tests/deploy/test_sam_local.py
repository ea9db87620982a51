"""`sam local`: what it would tell each function, and that a function told so finds the embedded AWS.

Containers are the one thing that is not here. Their environment is computed by SAM's own code, and a process
with that environment stands in for them.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from baton.local import processes
from baton.local.aws import ACCOUNT, REGION
from baton.local.processes import LocalRunError
from baton.local.run import LocalRun
from baton.shipping.sam_local import ENDPOINTS, for_sam_local
from tests.deploy.built import Build
from tests.deploy.stack import FUNCTIONS, ROOT, as_written, stack

ENV_FILE = ROOT / "env.json"
PAGE = (ROOT / "docs/sam-local.md").read_text("utf-8")
PORT = 4566
API_PORT = 8080
HOST = f"http://host.docker.internal:{PORT}"


def env_file() -> dict[str, dict[str, str]]:
    loaded: dict[str, dict[str, str]] = json.loads(ENV_FILE.read_text("utf-8"))
    return loaded


def not_known_to_sam(function: str) -> set[str]:
    """Variables whose value is neither fixed nor a parameter's: names of resources, sums, the stack's name."""
    document = as_written()
    own = document["Resources"][FUNCTIONS[function]]["Properties"]["Environment"]["Variables"]
    variables = document["Globals"]["Function"]["Environment"]["Variables"] | own
    parameters = [{"Ref": name} for name in document["Parameters"]]
    return {n for n, value in variables.items() if isinstance(value, dict) and value not in parameters}


@pytest.fixture(scope="module")
def local_template(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make build` writes for `sam local`."""
    target = built.folder / f"sam-local-{os.getpid()}.json"
    target.write_text(json.dumps(for_sam_local(built.template)), "utf-8")
    return target


@pytest.fixture(scope="module")
def seen(local_template: Path) -> dict[str, Any]:
    """What `sam local` reads out of it: `variables` of each function's container, `routes` of the API.

    `said`: the exit status and the errors of each of its commands, where no container engine is. One process does all, since
    SAM takes a second to load.
    """
    program = """
import contextlib, io, json, sys
from samcli.cli.main import cli
from samcli.commands.local.lib.local_lambda import LocalLambdaRunner
from samcli.lib.providers.api_provider import ApiProvider
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider

def said(*command):
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            status = cli(["local", *command, "-t", template, "--env-vars", env])
        except SystemExit as end:
            status = end.code
    return status, errors.getvalue()

template, env = sys.argv[1:]
stacks, _ = SamLocalStackProvider.get_stacks(template, parameter_overrides={})
functions = SamFunctionProvider(stacks)
runner = LocalLambdaRunner(None, functions, ".", ".", env_vars_values=json.load(open(env)))
routes = ApiProvider(stacks, cwd=".").api.routes
print(json.dumps({
    "variables": {f.name: runner.get_invoke_config(f).env_vars.resolve() for f in functions.get_all()},
    "routes": [[r.function_name, r.payload_format_version, *r.methods, r.path] for r in routes],
    "said": {
        "invoke": said("invoke", "WorkerFunction", "-e", "events/worker/wakes.json"),
        "start-api": said("start-api", "--port", "0"),
    },
}))
"""
    command = [sys.executable, "-c", program, str(local_template), str(ENV_FILE)]
    done = _sam(command, DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _sam(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        # No credentials: with any, SAM asks AWS whose they are. It gives functions some of its own.
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "SAM_CLI_TELEMETRY": "0",
        **variables,
    }
    return subprocess.run(
        command,
        env=environment,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_env_json_names_every_function_and_exactly_what_sam_cannot_know() -> None:
    assert set(env_file()) == set(FUNCTIONS.values())
    for function, logical_id in FUNCTIONS.items():
        assert set(env_file()[logical_id]) == not_known_to_sam(function) | set(ENDPOINTS), function


def test_env_json_says_what_the_local_run_calls_things() -> None:
    for function, logical_id in FUNCTIONS.items():
        real = stack().variables(function)
        for variable, value in env_file()[logical_id].items():
            if variable in ENDPOINTS:
                port = PORT + ENDPOINTS.index(variable)
                assert value == f"http://host.docker.internal:{port}"
            elif variable == "BATON_API_URL":
                assert value == f"http://127.0.0.1:{API_PORT}", "where `baton up` serves it"
            elif variable.endswith("_URL"):
                queue = stack().resolver.name(real[variable].rsplit("/", 1)[1])
                assert value == f"{HOST}/{ACCOUNT}/{queue}"
            else:
                assert value == real[variable], variable


def test_sam_takes_every_value_of_env_json_and_knows_all_others_itself(seen: dict[str, Any]) -> None:
    variables = seen["variables"]
    assert set(variables) == set(FUNCTIONS.values())
    for function, logical_id in FUNCTIONS.items():
        assert env_file()[logical_id].items() <= variables[logical_id].items()
        for variable, value in stack().variables(function).items():
            if variable not in not_known_to_sam(function):
                assert variables[logical_id][variable] == value, variable


def test_the_template_for_sam_local_has_the_routes_of_the_api(seen: dict[str, Any]) -> None:
    keys = {r["RouteKey"] for r in stack().of_type("AWS::ApiGatewayV2::Route").values()}
    wanted = {key if " " in key else f"X-AMAZON-APIGATEWAY-ANY-METHOD {key}" for key in keys}
    found = set()
    for route in seen["routes"]:  # SAM has those of one path together: `GET POST`
        function, payload, *methods, path = " ".join(route).split()
        found |= {f"{function} {payload} {method} {path}" for method in methods}
    assert found == {f"ApiFunction 2.0 {key}" for key in wanted}


@pytest.mark.parametrize("command", ["invoke", "start-api"])
def test_without_a_container_engine_sam_says_that_it_needs_one(command: str, seen: dict[str, Any]) -> None:
    status, errors = seen["said"][command]
    assert status not in (0, None)
    assert re.search("container runtime|Docker", errors)
    assert "Traceback" not in errors


@pytest.mark.soak  # tests/e2e has functions at work there, and the test above what these are told
@pytest.mark.ministack
def test_a_function_told_so_does_its_work_on_the_embedded_aws(seen: dict[str, Any], tmp_path: Path) -> None:
    asyncio.run(_ask_all(seen["variables"], tmp_path))


def two_free_ports() -> int:
    """The first of two neighbours, below those that a kernel hands out by itself."""
    first = 15_000 + os.getpid() * 2 % 10_000
    for port in range(first, first + 2_000, 2):
        try:
            processes.bind(port, "a test").close()
            processes.bind(port + 1, "a test").close()
        except LocalRunError:
            continue
        return port
    raise AssertionError("no two free ports")


async def _ask_all(variables: dict[str, dict[str, str]], folder: Path) -> None:
    port = two_free_ports()
    # Its sources of events are off: whatever happens, these functions did it.
    off = frozenset({"stream", "queue", "schedule"})
    async with LocalRun(ROOT / "template.yaml", switched_off=off, run_dir=folder, aws_port=port) as local:
        assert local.endpoint == f"http://127.0.0.1:{port}"

        async def ask(function: str, *names: str) -> list[Any]:
            text = json.dumps(variables[FUNCTIONS[function]])
            for distance in (0, 1):  # the container's way to this machine, and this machine's own
                text = text.replace(f"host.docker.internal:{PORT + distance}", f"127.0.0.1:{port + distance}")
            events = [(ROOT / f"events/{function}/{name}.json").read_text("utf-8") for name in names]
            return await asyncio.to_thread(_call, function, json.loads(text), events)

        health, registered, listed = await ask("api", "health", "register-workflow", "list-workflows")
        assert health["statusCode"] == 200
        assert registered["statusCode"] == 201, registered
        name = json.loads(registered["body"])["name"]
        assert name in [workflow["name"] for workflow in json.loads(listed["body"])["workflows"]]
        assert await ask("relay", "entry") == [{"batchItemFailures": []}]
        assert await ask("worker", "wakes") == [{"batchItemFailures": []}]
        swept, letters = await ask("reconciler", "shard", "dead-letters")
        assert swept["shard"] == 0
        assert (letters["dead_letters"], letters["moved"], letters["failed"]) == (0, 0, 0)


def _call(function: str, variables: dict[str, str], events: list[str]) -> list[Any]:
    """What a function answers to each event, one after the other in one process, as in a warm container."""
    program = """
import json, sys
import app

class Context:
    aws_request_id = "sam-local"
    def get_remaining_time_in_millis(self): return 20_000

for event in json.load(sys.stdin):
    print("answer", json.dumps(app.handler(json.loads(event), Context())))
"""
    places = [ROOT / "functions" / function, ROOT / "layers/app", ROOT / "layers/engine"]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "AWS_CONFIG_FILE": os.devnull,
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        input=json.dumps(events),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [
        line.removeprefix("answer ") for line in done.stdout.splitlines() if line.startswith("answer ")
    ]
    return [json.loads(answer) for answer in answers]


def test_the_page_names_ports_files_and_functions_that_exist() -> None:
    assert f"--aws-port {PORT}" in PAGE
    for event in re.findall(r"events/[\w./-]+\.json", PAGE):
        assert (ROOT / event).is_file(), event
    named = set(re.findall(r"\b\w+Function\b", PAGE))
    assert named
    assert named <= set(FUNCTIONS.values())
