"""The deployment that is made of baton.toml: what of the template changes, and only that."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from baton.adapters.queues import alias_of
from baton.core.version import VERSION
from baton.project import deployment
from baton.project.config import ConfigError, parse_config
from baton.project.deployment import (
    FOLDER,
    LOCAL_TEMPLATE,
    TEMPLATE,
    allowed_parameters,
    deployment_files,
    engine_template,
    known_variables,
    make_template,
    own_resources,
    parse_template,
    read_env,
    write_deployment,
)
from tests.kit.sentences import Says

HEAD = f'baton = "{VERSION}"\nstack = "my-sagas"\n'
OWN = parse_template(
    "Resources:\n  Orders: {Type: AWS::SQS::Queue}\nOutputs:\n  Name: {Value: !GetAtt Orders.QueueName}\n"
)


def made(text: str, own: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return make_template(parse_config(HEAD + text, allowed_parameters({})), own or {}, **more)


def variables(template: Mapping[str, Any], function: str) -> dict[str, Any]:
    found: dict[str, Any] = template["Resources"][f"{function}Function"]["Properties"]["Environment"][
        "Variables"
    ]
    return found


def statements(template: Mapping[str, Any], function: str, policy: str) -> list[dict[str, Any]]:
    policies = template["Resources"][f"{function}Role"]["Properties"]["Policies"]
    (found,) = (one["PolicyDocument"]["Statement"] for one in policies if one.get("PolicyName") == policy)
    return list(found)


def test_an_empty_file_changes_only_where_the_application_lies() -> None:
    template, engine = made(""), engine_template()
    for layer in ("PackagesLayer", "AppLayer"):
        assert template["Resources"][layer]["Properties"].pop("ContentUri") == "../layers/app"
        assert engine["Resources"][layer]["Properties"].pop("ContentUri") == "layers/app"
    assert template["Metadata"].pop("Baton") == {"Version": VERSION}
    assert template == engine


def test_functions_with_tools_have_the_variables_and_no_others() -> None:
    template = made('[environment]\nURL = "https://a"\nORDERS = "${Orders}"\n', OWN)
    for function in ("Api", "Worker"):
        found = variables(template, function)
        assert (found["URL"], found["ORDERS"]) == ("https://a", {"Fn::Sub": "${Orders}"})
    assert "URL" not in variables(template, "Relay")


def test_a_secret_is_named_to_the_functions_with_tools_which_may_read_it_alone() -> None:
    template = made('[secrets]\nA = "/my-sagas/a"\nB = "my-sagas/b"\n')
    for function in ("Api", "Worker"):
        assert variables(template, function)["BATON_SECRETS"] == "A=/my-sagas/a B=my-sagas/b"
        parameters, secrets = statements(template, function, "secrets")
        assert parameters["Action"] == ["ssm:GetParameter"]
        assert parameters["Resource"][0]["Fn::Sub"].endswith(":parameter/my-sagas/a")
        assert secrets["Action"] == ["secretsmanager:GetSecretValue"]
        assert secrets["Resource"][0]["Fn::Sub"].endswith(":secret:my-sagas/b-*")


def test_a_permission_is_the_workers() -> None:
    template = made('[[permissions]]\nactions = ["sqs:SendMessage"]\nresources = ["${Orders.Arn}"]\n', OWN)
    assert statements(template, "Worker", "tools") == [
        {"Effect": "Allow", "Action": ["sqs:SendMessage"], "Resource": [{"Fn::Sub": "${Orders.Arn}"}]}
    ]


def test_the_workers_network_comes_with_the_right_to_join_it() -> None:
    template = made('[vpc]\nsubnets = ["subnet-0a"]\nsecurity_groups = ["sg-0b"]\n')
    network = template["Resources"]["WorkerFunction"]["Properties"]["VpcConfig"]
    assert network == {"SubnetIds": ["subnet-0a"], "SecurityGroupIds": ["sg-0b"]}
    assert "ec2:CreateNetworkInterface" in statements(template, "Worker", "network")[0]["Action"]


def test_a_wake_stays_hidden_for_as_long_as_a_worker_may_take() -> None:
    defaults = {name: spec.get("Default") for name, spec in made("")["Parameters"].items()}
    parameters = made("[functions]\nworker = {timeout = 300}\napi = {memory = 512}\n")["Parameters"]
    assert parameters["WorkerTimeout"]["Default"] == 300
    assert (
        parameters["WakeVisibility"]["Default"] - 300
        == defaults["WakeVisibility"] - defaults["WorkerTimeout"]
    )


def test_ones_own_resources_are_beside_the_engines(says: Says) -> None:
    assert made("", OWN)["Outputs"]["Name"] == {"Value": {"Fn::GetAtt": ["Orders", "QueueName"]}}
    for own in ("Resources:\n  SagaTable: {Type: AWS::SQS::Queue}\n", "Globals: {}\n"):
        with says.raised(ConfigError):
            made("", parse_template(own))


def test_images_have_no_layers_and_are_told_apart_by_their_code() -> None:
    template = made('[functions]\npackage = "image"\n', digest="d1")
    resources = template["Resources"]
    for name in ("Api", "Worker"):
        properties = resources[f"{name}Function"]["Properties"]
        assert properties["PackageType"] == "Image"
        assert not {"Layers", "CodeUri", "Handler", "Runtime"} & properties.keys()
        assert resources[f"{name}Function"]["Metadata"]["DockerBuildArgs"] == {"FUNCTION": name.lower()}
    assert resources["RelayFunction"]["Properties"]["Handler"] == "app.handler"
    assert "Handler" not in template["Globals"]["Function"]
    assert {name for name in resources if name.endswith("Layer")} == {"EngineLayer"}
    assert (
        variables(template, "Worker")["BATON_BUILD"]
        == variables(template, "Reconciler")["BATON_BUILD"]
        == "d1"
    )
    assert "AppLayer" not in str(template)


def test_images_have_versions_named_by_their_code() -> None:
    resources = made('[functions]\npackage = "image"\n', digest="d1")["Resources"]
    assert resources["WorkerVersion"]["Properties"]["Description"] == "d1"
    assert resources["WorkerBuild"]["Properties"]["Name"] == alias_of("d1")


def test_a_project_of_images_has_a_dockerfile_and_runs_here_without(tmp_path: Path) -> None:
    config = parse_config(HEAD + '[functions]\npackage = "image"\n', allowed_parameters({}))
    files = deployment_files(tmp_path, config, {})
    assert "COPY image/python/ ${LAMBDA_TASK_ROOT}/\n" in files[f"{FOLDER}/Dockerfile"]
    assert "PackageType" in files[TEMPLATE]
    assert "PackageType" not in files[LOCAL_TEMPLATE]


def test_all_that_a_dockerfile_copies_is_in_its_build_context(tmp_path: Path) -> None:
    config = parse_config(HEAD + '[functions]\npackage = "image"\n', allowed_parameters({}))
    files = deployment_files(tmp_path, config, {})
    template, lines = parse_template(files[TEMPLATE]), files[f"{FOLDER}/Dockerfile"].splitlines()
    copied = [line.split()[1] for line in lines if line.startswith("COPY ")]
    assert copied == ["image/python/", "functions/${FUNCTION}/app.py"], "`make build` fills the first one"
    for name in ("Api", "Worker"):
        metadata = template["Resources"][f"{name}Function"]["Metadata"]
        assert (metadata["DockerContext"], metadata["Dockerfile"]) == (".", "Dockerfile")
        code = files[f"{FOLDER}/{copied[1].replace('${FUNCTION}', metadata['DockerBuildArgs']['FUNCTION'])}"]
        assert "handler" in code
        assert 'CMD ["app.handler"]' in lines
    shared = engine_template()["Globals"]["Function"]
    python, (architecture,) = shared["Runtime"].removeprefix("python"), shared["Architectures"]
    assert f"FROM public.ecr.aws/lambda/python:{python}-{architecture}" in lines


def test_more_variables_than_lambda_takes_are_refused() -> None:
    with pytest.raises(ConfigError, match="Lambda takes 4096"):
        made(f'[environment]\nLONG = "{"x" * 4000}"\n')


def test_sam_is_given_each_parameter_but_secrets(tmp_path: Path) -> None:
    config = parse_config(HEAD + '[parameters]\nHttpHosts = "a.example b.example"\n', allowed_parameters({}))
    text = deployment_files(tmp_path, config, {})[f"{FOLDER}/samconfig.toml"]
    told = tomllib.loads(text)["default"]
    given = told["deploy"]["parameters"]["parameter_overrides"]
    assert told["global"]["parameters"]["stack_name"] == "my-sagas"
    assert 'HttpHosts="a.example b.example"' in given
    assert {one.split("=")[0] for one in given} == {
        name for name, spec in engine_template()["Parameters"].items() if not spec.get("NoEcho")
    }


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    (tmp_path / "baton.toml").write_text(HEAD)
    write_deployment(tmp_path)
    before = (tmp_path / TEMPLATE).stat().st_mtime_ns
    write_deployment(tmp_path)
    assert (tmp_path / TEMPLATE).stat().st_mtime_ns == before
    (tmp_path / "baton.toml").write_text(HEAD + '[environment]\nA = "b"\n')
    write_deployment(tmp_path)
    assert "          A: b\n" in (tmp_path / TEMPLATE).read_text("utf-8")


def test_a_project_of_another_baton_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "baton.toml").write_text(HEAD.replace(VERSION, "99.0.0"))
    with pytest.raises(ConfigError):
        write_deployment(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["baton.toml"]


def test_values_of_this_machine_come_from_a_file(tmp_path: Path, says: Says) -> None:
    assert read_env(tmp_path) == {}
    (tmp_path / ".env").write_text('# mine\n\nKEY=a b\nexport OTHER = "c"\nEMPTY=\n')
    assert read_env(tmp_path) == {"KEY": "a b", "OTHER": "c", "EMPTY": ""}
    (tmp_path / ".env").write_text("KEY\n")
    with says.raised(ConfigError):
        read_env(tmp_path)


def test_a_variable_that_only_aws_knows_is_not_set_here() -> None:
    config = parse_config(HEAD + '[environment]\nA = "b"\nC = "${Orders}"\n', allowed_parameters({}))
    assert known_variables(config) == {"A": "b"}


def test_resources_that_are_no_template_are_refused(tmp_path: Path, says: Says) -> None:
    (tmp_path / "resources.yaml").write_text("- a\n")
    with says.raised(ConfigError):
        own_resources(tmp_path)
    (tmp_path / "resources.yaml").write_text("a: [\n")
    with pytest.raises(ConfigError):
        own_resources(tmp_path)


def test_sam_builds_the_engine_again_when_baton_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = parse_config(HEAD, allowed_parameters({}))
    makefile = f"{FOLDER}/layers/engine/Makefile"
    before = deployment_files(tmp_path, config, {})[makefile]
    monkeypatch.setattr(deployment, "_engine_digest", lambda: "another")
    assert deployment_files(tmp_path, config, {})[makefile] != before
