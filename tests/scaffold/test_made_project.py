"""A made project works as it stands: its tests, its linters, its template, and the deployment on this machine."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from baton.cli.commands import main
from baton.core.version import VERSION
from baton.local.template import load
from baton.project.deployment import TEMPLATE
from baton.scaffold.make import DOCUMENT, FUNCTION, Project, make_project
from baton.shipping.contents import EXTRA_PINS, PINS, build_app, pins
from baton.shipping.sam_local import ENDPOINTS
from tests.docs.pages import Page
from tests.docs.projects import TESTED_AND_CHECKED
from tests.kit.patience import PATIENCE_S
from tests.scaffold.conftest import ROOT, Run

OF_THE_EXAMPLE = {"TableStackUrl", "OpenDeliveryUrl"}
VARIABLES = {"TABLE_STACK_URL", "OPEN_DELIVERY_URL"}
BATON = [sys.executable, "-c", "from baton.cli import main; main()"]


@pytest.mark.soak  # tests/docs runs the tests of a project with functions
def test_a_project_with_a_function_passes_the_same_tests(tmp_path: Path, run: Run) -> None:
    folder = make_project(tmp_path / "functions", workflow=FUNCTION).folder
    assert not (folder / DOCUMENT).exists()
    done = run(*TESTED_AND_CHECKED, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "\nsagas.workflows:order: ok, order with 1 node" in done.stdout


@pytest.mark.soak  # mypy reads what Baton imports, too
def test_a_project_with_a_function_has_clean_types_and_format(tmp_path: Path, run: Run) -> None:
    folder = make_project(tmp_path / "functions", workflow=FUNCTION).folder
    config = (
        tmp_path / "mypy.ini"
    )  # its own settings, without the two thousand modules of what Baton imports for models
    config.write_text(
        "[mypy]\nstrict = true\nmypy_path = layers/app\nfiles = layers/app, tests\n"
        "[mypy-openai.*,httpx2.*,hpack.*]\nfollow_imports = skip\n"
    )
    assert '[tool.mypy]\nstrict = true\nmypy_path = "layers/app"\n' in (folder / "pyproject.toml").read_text()
    for command in (
        ["mypy", "--config-file", str(config), "--cache-dir", str(ROOT / ".mypy_cache/scaffold")],
        ["ruff", "format", "--check", "--line-length", "110", "layers"],
    ):
        clean = run("-m", *command, folder=folder)
        assert clean.returncode == 0, clean.stdout + clean.stderr


@pytest.mark.soak  # a project of its own, as the next
def test_its_own_tests_notice_what_is_wrong(tmp_path: Path, run: Run) -> None:
    folder = make_project(tmp_path / "broken").folder
    tools = folder / "layers/app/sagas/order.py"
    tools.write_text(tools.read_text().replace("* quantity", ""))
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=folder)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "Captured sagas call" in done.stdout
    assert "  price: succeeded = {'item': 'tea', 'total_cents': 350}" in done.stdout


@pytest.mark.soak
def test_its_tests_have_the_variables_of_its_configuration(tmp_path: Path, run: Run) -> None:
    folder = make_project(tmp_path / "with-variables").folder
    config = folder / "baton.toml"
    text = config.read_text("utf-8").replace("[environment]\n", "[environment]\nCENTS = 350\n")
    config.write_text(text.replace("[secrets]\n", '[secrets]\nORDERS_KEY = "/orders/key"\n'))
    tools = folder / "layers/app/sagas/order.py"
    read = 'import os\n\nassert os.environ["ORDERS_KEY"] == "test"\nCENTS = {"coffee": 420, "tea": int(os.environ["CENTS"])}'
    tools.write_text(tools.read_text().replace('CENTS = {"coffee": 420, "tea": 350}', read))
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_code_is_clean(made: Project, run: Run) -> None:
    command = [
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--config",
        str(ROOT / "pyproject.toml"),
        "--ignore",
        "S101",
    ]
    style = run(*command, "layers", "tests")
    assert style.returncode == 0, style.stdout
    shape = run(
        "-m",
        "ruff",
        "format",
        "--no-cache",
        "--check",
        "--line-length",
        "110",
        "layers",
        "tests",
        "deployment/functions",
    )
    assert shape.returncode == 0, shape.stdout + shape.stderr


@pytest.mark.soak  # mypy reads the whole engine once more for three files
def test_its_types_are_clean(run: Run) -> None:
    done = run("-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache/scaffold"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_template_is_the_repositorys_without_the_example(made: Project) -> None:
    expected = json.loads(json.dumps(dict(load(ROOT / "template.yaml", {}).document)))
    for name in OF_THE_EXAMPLE:
        del expected["Parameters"][name]
    for name in VARIABLES:
        del expected["Resources"]["WorkerFunction"]["Properties"]["Environment"]["Variables"][name]
    groups = expected["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    groups[:] = [group for group in groups if not OF_THE_EXAMPLE & set(group["Parameters"])]
    expected["Parameters"]["AuthMode"]["Default"] = "iam"
    expected["Metadata"]["Baton"] = {"Version": VERSION}
    found: dict[str, Any] = dict(load(made.folder / TEMPLATE, {}).document)
    assert _plain(found) == _plain(expected)


def _plain(document: dict[str, Any]) -> Any:
    """A template without where the application lies, by which SAM names its layers."""
    text = json.dumps(document).replace("../layers/app", "layers/app")
    return json.loads(re.sub(r"(PackagesLayer|AppLayer)[0-9a-f]{10}", r"\1", text))


def test_its_template_names_only_files_that_are_there_and_nothing_of_the_example(made: Project) -> None:
    text = (made.folder / TEMPLATE).read_text("utf-8")
    assert not any(name in text for name in OF_THE_EXAMPLE | VARIABLES | {"dinner"})
    template = load(made.folder / TEMPLATE, {})
    for logical_id, resource in template.resources.items():
        code = resource["Properties"].get("Code") or resource["Properties"].get("Content") or {}
        if isinstance(code, dict) and "S3Key" in code:
            template.local_path(logical_id, code["S3Key"])
    assert (made.folder / "deployment/statemachine/reconcile.asl.json").is_file()


def test_its_app_layer_holds_its_tools_and_its_workflow(made: Project, tmp_path: Path) -> None:
    layer = tmp_path / "app/python"
    build_app(made.folder / "layers/app", layer)
    assert {path.name for path in (layer / "sagas").iterdir()} == {"__init__.py", "order.py", "order.yaml"}
    assert {path.name for path in layer.iterdir()} == {"sagas"}


def test_sam_local_finds_what_it_needs(made: Project) -> None:
    resources = load(made.folder / TEMPLATE, {}).resources
    functions = {name: r for name, r in resources.items() if r["Type"] == "AWS::Lambda::Function"}
    known = json.loads((made.folder / "deployment/env.json").read_text("utf-8"))
    assert set(known) == set(functions)
    for name, variables in known.items():
        declared = functions[name]["Properties"]["Environment"]["Variables"]
        assert set(variables) - set(ENDPOINTS) <= set(declared)
    assert "-m baton.shipping.sam_local" in (made.folder / "Makefile").read_text("utf-8")
    deployment = made.folder / "deployment"
    events = {str(path.relative_to(deployment)) for path in deployment.glob("events/*/*.json")}
    assert events == {"events/api/health.json", "events/reconciler/shard.json"}


def test_installing_fetches_what_pages_of_the_console_renew_themselves_by(made: Project) -> None:
    commands = ["make", "--dry-run", "--silent", "install", "VIRTUAL_ENV="]
    done = subprocess.run(commands, cwd=made.folder, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    venv = made.folder / ".venv"
    assert lines[-2:] == [
        f"{venv}/bin/python -m baton.shipping htmx || true",
        f"touch {venv}/my-sagas-installed",
    ]


def test_an_active_virtual_environment_is_used_and_no_second_one_is_made(
    made: Project, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").touch()
    commands = ["make", "--dry-run", "--silent", "install", f"VIRTUAL_ENV={tmp_path}"]
    done = subprocess.run(commands, cwd=made.folder, capture_output=True, text=True, check=True)
    assert f"touch {tmp_path}/my-sagas-installed" in done.stdout
    assert "-m venv" not in done.stdout


def test_what_is_installed_here_has_the_versions_that_layers_ship(made: Project) -> None:
    constraints = pins(made.folder / "deployment/constraints.txt")
    assert constraints == pins(PINS) | pins(EXTRA_PINS)
    assert "-c deployment/constraints.txt -r requirements.txt" in (made.folder / "Makefile").read_text(
        "utf-8"
    )


def test_its_file_for_continuous_integration_runs_commands_that_are_there(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "my-sagas", "github").folder
    jobs = yaml.safe_load((folder / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    commands = [step["run"] for step in jobs["test"]["steps"] if "run" in step]
    assert commands == ["make test", "make build", "git diff --exit-code deployment"]


@pytest.mark.parametrize(("has_env", "status"), [(True, 0), (False, 1)])
def test_sam_local_says_what_to_type_or_what_is_missing(
    made: Project, run: Run, tmp_path: Path, has_env: bool, status: int
) -> None:
    (tmp_path / ".aws-sam/build").mkdir(parents=True)
    built = {"Globals": {"Function": {"Environment": {"Variables": {}}}}, "Resources": {"F": {"Type": "T"}}}
    (tmp_path / ".aws-sam/build/template.yaml").write_text(json.dumps(built))
    if has_env:
        shutil.copy(made.folder / "deployment/env.json", tmp_path)
    done = run("-m", "baton.shipping.sam_local", folder=tmp_path)
    assert done.returncode == status
    assert "sam local invoke FUNCTION -t .aws-sam/build/sam-local.json --env-vars env.json" in done.stdout
    assert ("There is no env.json" in done.stderr) is not has_env


def test_its_readme_names_only_commands_that_are_there(made: Project) -> None:
    makefile = (made.folder / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    commands = [command.split() for command in Page(made.folder / "README.md").commands()]
    assert (
        {words[1] for words in commands if words[0] == "make"} == {"test", "up", "build", "deploy"} <= targets
    )
    named = {words[1] for words in commands if words[0] == "baton" and len(words) > 1}
    assert {"start", "show", "check"} < named <= set(main.commands)


def test_its_readme_names_only_files_that_are_there(made: Project) -> None:
    named = set(Page(made.folder / "README.md").commands())
    paths = {path for path in named if re.fullmatch(r"[a-z_*/.-]+(/|\.(md|py|yaml|txt|toml|json))", path)}
    assert {"layers/app/sagas/order.py", "deployment/", "baton.toml"} <= paths
    missing = {path for path in paths if not list(made.folder.glob(path.rstrip("/")))}
    assert missing == {"*.yaml", "resources.yaml"}, "of documents, and of resources of one's own"


def test_its_own_tests_pass_the_page_on_testing_is_true_of_it_and_its_workflow_has_no_problems(
    made: Project, run: Run, tmp_path: Path
) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs/testing.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "test_page.py").write_text("\n".join(blocks))
    configuration = ("--rootdir", str(made.folder), "-c", str(made.folder / "pyproject.toml"))
    done = run(*TESTED_AND_CHECKED, *configuration, "tests", str(tmp_path / "test_page.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "14 passed" in done.stdout
    assert "\nlayers/app/sagas/order.yaml: ok, order with " in done.stdout, "it is found as `up` finds it"


@pytest.fixture
def up(tmp_path: Path, environment: dict[str, str]) -> Iterator[Path]:
    """`baton up` in a made project, in which nothing of the engine lies."""
    folder = make_project(tmp_path / "my-sagas").folder
    process = subprocess.Popen(
        [*BATON, "up", "--port", "0"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert any("baton start" in line for line in process.stdout), "it did not start"
    yield folder
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE_S) == 0
    assert [file.name for file in (folder / ".baton").iterdir()] == ["local-key"], (
        "nothing is left of a run that keeps nothing and ended well"
    )


@pytest.mark.e2e
@pytest.mark.soak  # tests/cli runs `baton up` of a project that lies elsewhere, and the test above finds its workflow as `up` does
def test_its_workflow_runs_on_this_machine_from_its_own_folder(up: Path, environment: dict[str, str]) -> None:
    arguments = ["start", "order", "--set", "item=tea", "--set", "quantity=3", "--watch", "--json"]
    done = subprocess.run(
        [*BATON, *arguments],
        cwd=up,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    saga = json.loads(done.stdout.splitlines()[-1])
    assert (saga["status"], saga["result"]["paid_cents"]) == ("completed", 1050)
    assert not (up / "layers/engine/baton").exists()
