"""The deployment of a project: the engine's template and what belongs to it, with the project's baton.toml.

The folder `deployment` can be made anew at any time. It stays in the project's repository like a lock file,
so that a review shows what a change of baton.toml or of Baton means on AWS.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from baton.core.version import VERSION
from baton.errors import BatonError
from baton.project.config import FUNCTIONS, NAME, Config, ConfigError, Permission, check_version, read_config

FOLDER: Final = "deployment"
TEMPLATE: Final = f"{FOLDER}/template.yaml"
LOCAL_TEMPLATE: Final = f"{FOLDER}/local.yaml"
RESOURCES: Final = "resources.yaml"
HERE: Final = Path(__file__).parent
# What is taken as it is: where it lies in Baton's repository, and where in a project.
_APP_MAKEFILE: Final = "layers/app/Makefile"
_COPIED: Final[Mapping[str, str]] = MappingProxyType(
    {
        path: path if path == _APP_MAKEFILE else f"{FOLDER}/{path.removeprefix('docs/')}"
        for path in (
            "docs/workflow.schema.json",
            "env.json",
            "events/api/health.json",
            "events/reconciler/shard.json",
            "functions/api/app.py",
            "functions/reconciler/app.py",
            "functions/relay/app.py",
            "functions/worker/app.py",
            _APP_MAKEFILE,
            "layers/engine/Makefile",
            "statemachine/reconcile.asl.json",
        )
    }
)
# What the wheel carries of Baton's repository, as `shared` beside this file (hatch_build.py).
SHARED: Final = ("template.yaml", *_COPIED)
# What both machines have in the same versions.
_PINS: Final = tuple(
    HERE.parent / "shipping" / name for name in ("requirements.txt", "requirements-extras.txt")
)
BEGIN, END = "# example: begin", "# example: end"
_MERGED: Final = ("Parameters", "Mappings", "Conditions", "Resources", "Outputs")
_WITH_TOOLS: Final = ("Api", "Worker")
_VARIABLES_MOST: Final = 4_096  # bytes of names and values, by Lambda
_UNKNOWN_BYTES: Final = 90  # of a value that AWS makes, such as the URL of a queue
_HEAD: Final = """\
# Made by Baton {version} from baton.toml{resources}: `baton render` makes it anew, and `baton upgrade` with another Baton.
# Do not edit it: what your tools need belongs into baton.toml, and resources of your own into resources.yaml.
"""
_ENI: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
DOCKERFILE: Final = """\
# Made by Baton {version}. `make build` puts into image/python what the layers would have, for Lambda's platform.
FROM public.ecr.aws/lambda/python:3.13-arm64
ARG FUNCTION
COPY image/python/ ${{LAMBDA_TASK_ROOT}}/
COPY functions/${{FUNCTION}}/app.py ${{LAMBDA_TASK_ROOT}}/
CMD ["app.handler"]
"""


class SourceError(BatonError):
    """Error for an installation of Baton without the files of a project."""


# ---- what Baton brings


def shared_root() -> Path:
    """Return the folder that holds `SHARED`. Raises `SourceError`."""
    for root in (HERE / "shared", *HERE.parents[3:4]):
        if all((root / path).is_file() for path in SHARED):
            return root
    raise SourceError(
        f"neither {HERE / 'shared'} nor a checkout around it has template.yaml and what belongs to it;"
        " install Baton from its wheel, or use it from its repository"
    )


def without_example(text: str) -> str:
    """Return the text without the lines from each `# example: begin` to its `# example: end`."""
    kept, is_example = [], False
    for line in text.splitlines(keepends=True):
        mark = line.strip()
        if mark in (BEGIN, END):
            if is_example == (mark == BEGIN):
                raise SourceError(f"`{mark}` where none can be")
            is_example = mark == BEGIN
        elif not is_example:
            kept.append(line)
    if is_example:
        raise SourceError(f"`{BEGIN}` without its `{END}`")
    return "".join(kept)


# libyaml's, where PyYAML has it: pure Python takes five times as long.
SAFE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SAFE_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Loader(SAFE_LOADER):  # type: ignore[misc]  # one of two classes
    """Loader of templates that writes the short forms of functions out."""


def _function(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        text = loader.construct_scalar(node)
        return {name: text.split(".", 1) if suffix == "GetAtt" else text}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _function)


def parse_template(text: str) -> Any:
    """Return a template with the short forms of functions written out. Raises `yaml.YAMLError`."""
    return yaml.load(text, _Loader)  # noqa: S506  # a subclass of the safe loader: it builds no objects


@cache
def _engine(root: Path) -> Mapping[str, Any]:
    document: Mapping[str, Any] = parse_template(without_example((root / "template.yaml").read_text("utf-8")))
    return document


def engine_template(root: Path | None = None) -> dict[str, Any]:
    """Return the engine's template, without the example."""
    return deepcopy(dict(_engine(root or shared_root())))


# ---- the deployment of a project


def project_config(project: Path) -> Config:
    """Return the checked configuration of a project. Raises `ConfigError`."""
    return read_config(project / NAME, allowed_parameters(own_resources(project)))


def allowed_parameters(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the engine's template, and those of a project's own resources."""
    return {**engine_template()["Parameters"], **(own.get("Parameters") or {})}


def write_deployment(project: Path) -> Config:
    """Write the project's deployment folder, where it differs. Raises `ConfigError`, `SourceError`."""
    config = project_config(project)
    check_version(config)
    write_files(project, deployment_files(project, config, own_resources(project)))
    return config


def write_files(project: Path, files: Mapping[str, str]) -> None:
    """Write the files that differ from those on disk."""
    for path, text in files.items():
        file = project / path
        if not file.is_file() or file.read_text("utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")


def deployment_files(project: Path, config: Config, own: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the deployment by path. Raises `ConfigError`, `SourceError`."""
    root = shared_root()
    files = {there: (root / here).read_text("utf-8") for here, there in _COPIED.items()}
    # sam builds a layer again when a file of its folder has changed.
    files[f"{FOLDER}/layers/engine/Makefile"] += f"# Baton {VERSION}, {_engine_digest()}\n"
    files[f"{FOLDER}/constraints.txt"] = "".join(file.read_text("utf-8") for file in _PINS)
    template = make_template(config, own, _digest(project))
    files[TEMPLATE] = _text(template, own)
    files[f"{FOLDER}/samconfig.toml"] = _samconfig(config, template)
    if config.functions.package == "image":
        files[f"{FOLDER}/Dockerfile"] = DOCKERFILE.format(version=VERSION)
        files[LOCAL_TEMPLATE] = _text(make_template(config, own, "", package="zip"), own)
    return dict(sorted(files.items()))


def make_template(
    config: Config, own: Mapping[str, Any] = MappingProxyType({}), digest: str = "", *, package: str = ""
) -> dict[str, Any]:
    """Return the engine's template with a project's configuration and resources. Raises `ConfigError`."""
    template = engine_template()
    template["Metadata"]["Baton"] = {"Version": config.baton}
    _merge(template, own)
    for name, value in _values(config).items():
        spec = template["Parameters"][name]
        spec["Default"] = int(value) if spec.get("Type") == "Number" else value
    resources = template["Resources"]
    resources["PackagesLayer"]["Properties"]["ContentUri"] = "../layers/app"
    resources["AppLayer"]["Properties"]["ContentUri"] = "../layers/app"
    for name in FUNCTIONS:
        if (memory := getattr(config.functions, name).memory) and name != "worker":
            resources[f"{name.title()}Function"]["Properties"]["MemorySize"] = memory
    for name in _WITH_TOOLS:
        variables = resources[f"{name}Function"]["Properties"]["Environment"]["Variables"]
        variables |= {key: _filled(value) for key, value in config.variables().items()}
        if config.secrets:
            variables["BATON_SECRETS"] = " ".join(f"{key}={secret}" for key, secret in config.secrets.items())
            _allow(resources, name, "secrets", list(_secret_statements(config)))
    if config.permissions:
        _allow(resources, "Worker", "tools", list(map(_statement, config.permissions)))
    if config.vpc:
        resources["WorkerFunction"]["Properties"]["VpcConfig"] = {
            "SubnetIds": list(config.vpc.subnets),
            "SecurityGroupIds": list(config.vpc.security_groups),
        }
        network = {"Sid": "JoinNetwork", "Effect": "Allow", "Action": list(_ENI), "Resource": ["*"]}
        _allow(resources, "Worker", "network", [network])
    if (package or config.functions.package) == "image":
        _as_images(template, digest)
    _check_variables(template)
    return template


def _values(config: Config) -> dict[str, str]:
    """Return the parameters, with the visibility of a wake that fits the worker's time."""
    values = config.values()
    if "WorkerTimeout" in values and "WakeVisibility" not in values:
        declared = engine_template()["Parameters"]
        margin_ms = sum(
            int(values.get(name, declared[name]["Default"])) for name in ("LeaseGraceMs", "ClockSkewMs")
        )
        values["WakeVisibility"] = str(int(values["WorkerTimeout"]) + math.ceil(margin_ms / 1_000) + 4)
    return values


def _merge(template: dict[str, Any], own: Mapping[str, Any]) -> None:
    for section, found in own.items():
        if section not in _MERGED:
            raise ConfigError(
                f"{RESOURCES}: there can be no section {section}; there can be {', '.join(_MERGED)}"
            )
        there = template.setdefault(section, {})
        if taken := sorted(there.keys() & (found or {}).keys()):
            raise ConfigError(
                f"{RESOURCES}: {section}.{taken[0]}: the engine's template has this name; choose another"
            )
        there |= found or {}


def own_resources(project: Path) -> dict[str, Any]:
    """Return the resources of the project. Raises `ConfigError`."""
    file = project / RESOURCES
    if not file.is_file():
        return {}
    try:
        found = parse_template(file.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{RESOURCES} is not valid YAML: {error}") from error
    if found is not None and not isinstance(found, dict):
        raise ConfigError(f"{RESOURCES}: write sections such as Resources, as in a template")
    return found or {}


def _filled(text: str) -> Any:
    """Return a text with `${…}` as CloudFormation's function, any other as it is."""
    return {"Fn::Sub": text} if "${" in text else text


def _statement(permission: Permission) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Effect": permission.effect,
        "Action": list(permission.actions),
        "Resource": [_filled(resource) for resource in permission.resources],
    }
    return statement | ({"Condition": permission.conditions} if permission.conditions else {})


def _secret_statements(config: Config) -> Iterator[dict[str, Any]]:
    where = "arn:${AWS::Partition}:%s:${AWS::Region}:${AWS::AccountId}:%s"
    parameters = [name for name in config.secrets.values() if name.startswith("/")]
    secrets = [name for name in config.secrets.values() if not name.startswith("/")]
    for sid, action, names, pattern in (
        ("ReadParameters", "ssm:GetParameter", parameters, where % ("ssm", "parameter%s")),
        ("ReadSecrets", "secretsmanager:GetSecretValue", secrets, where % ("secretsmanager", "secret:%s-*")),
    ):
        if names:
            resources = [{"Fn::Sub": pattern % name} for name in dict.fromkeys(names)]
            yield {"Sid": sid, "Effect": "Allow", "Action": [action], "Resource": resources}


def _allow(resources: dict[str, Any], function: str, name: str, statements: list[dict[str, Any]]) -> None:
    document = {"Version": "2012-10-17", "Statement": statements}
    resources[f"{function}Role"]["Properties"]["Policies"].append(
        {"PolicyName": name, "PolicyDocument": document}
    )


def _as_images(template: dict[str, Any], digest: str) -> None:
    """Let the functions with tools run from images in place of layers. `digest` is that of their code."""
    shared, resources = template["Globals"]["Function"], template["Resources"]
    of_zips = {key: shared.pop(key) for key in ("Runtime", "Handler")}
    for name in ("Relay", "Reconciler"):
        resources[f"{name}Function"]["Properties"] |= of_zips
    for name in _WITH_TOOLS:
        function = resources[f"{name}Function"]
        for key in ("CodeUri", "Layers"):
            del function["Properties"][key]
        function["Properties"]["PackageType"] = "Image"
        function["Metadata"] = {
            "Dockerfile": "Dockerfile",
            "DockerContext": ".",
            "DockerTag": name.lower(),
            "DockerBuildArgs": {"FUNCTION": name.lower()},
        }
    for layer in ("PackagesLayer", "AppLayer"):
        del resources[layer]
    for name in ("Worker", "Reconciler"):
        resources[f"{name}Function"]["Properties"]["Environment"]["Variables"]["BATON_BUILD"] = digest
    resources["WorkerVersion"]["Properties"]["Description"] = digest
    resources["WorkerBuild"]["Properties"]["Name"] = f"build-{digest}"


def _digest(project: Path) -> str:
    """Return a digest of Baton's version and the application's files."""
    found = hashlib.sha256(VERSION.encode())
    for file in sorted((project / "layers/app").rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            found.update(file.relative_to(project).as_posix().encode() + file.read_bytes())
    return found.hexdigest()[:16]


@cache
def _engine_digest() -> str:
    found = hashlib.sha256()
    own = (file for file in sorted(HERE.parent.rglob("*.py")) if HERE / "shared" not in file.parents)
    for file in (*_PINS, *own):
        found.update(file.read_bytes())
    return found.hexdigest()[:16]


def _check_variables(template: Mapping[str, Any]) -> None:
    """Refuse more variables than Lambda takes. Values that only AWS knows are estimated."""
    variables = template["Resources"]["WorkerFunction"]["Properties"]["Environment"]["Variables"]
    total = sum(len(name) + _bytes(template, value) for name, value in variables.items())
    if total > _VARIABLES_MOST:
        raise ConfigError(
            f"{NAME}: environment: the worker's variables have {total} bytes with the engine's own, and Lambda takes"
            f" {_VARIABLES_MOST}; put long values into a file of layers/app, or into a secret"
        )


def _bytes(template: Mapping[str, Any], value: Any) -> int:
    if isinstance(value, dict):
        spec = template["Parameters"].get(value.get("Ref"))
        return _UNKNOWN_BYTES if spec is None else len(str(spec.get("Default", "")).encode())
    return len(str(value).encode())


def _text(template: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    head = _HEAD.format(version=VERSION, resources=f" and {RESOURCES}" if own else "")
    return head + yaml.dump(dict(template), Dumper=_Dumper, sort_keys=False, width=160, allow_unicode=True)


class _Dumper(SAFE_DUMPER):  # type: ignore[misc]  # one of two classes
    """Dumper without anchors, which CloudFormation does not take everywhere."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _samconfig(config: Config, template: Mapping[str, Any]) -> str:
    """Return the settings of sam. Each parameter is given: CloudFormation keeps what was given before."""
    lines = [
        f"# Made by Baton {VERSION} from baton.toml. What is given to `sam deploy --parameter-overrides` comes first.",
        "version = 0.1",
        "",
        "[default.global.parameters]",
        f'stack_name = "{config.stack}"',
        *([f'region = "{config.region}"'] if config.region else []),
        "",
        "[default.validate.parameters]",
        "lint = true",
        "",
        "[default.build.parameters]",
        "cached = true",
        "parallel = true",
        "",
        "[default.deploy.parameters]",
        'capabilities = "CAPABILITY_IAM"',
        "confirm_changeset = true",
        "resolve_s3 = true",
        *(["resolve_image_repos = true"] if config.functions.package == "image" else []),
        "parameter_overrides = [",
    ]
    for name, spec in template["Parameters"].items():
        if "Default" in spec and not spec.get("NoEcho"):
            value = str(spec["Default"]).replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f"  '{name}=\"{value}\"',")
    return "\n".join([*lines, "]", ""])


_ENV: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")


def read_env(project: Path) -> dict[str, str]:
    """Return the variables in .env: lines of NAME=VALUE, with or without quotes. Raises `ConfigError`."""
    file = project / ".env"
    found = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines() if file.is_file() else (), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        pair = _ENV.fullmatch(text)
        if pair is None:
            raise ConfigError(f".env:{number}: write NAME=VALUE")
        value = pair[2]
        found[pair[1]] = (
            value[1:-1] if len(value) > 1 and value[0] in "\"'" and value[0] == value[-1] else value
        )
    return found


_FILLED: Final = re.compile(r"\$\{")


def known_variables(config: Config) -> dict[str, str]:
    """Return the environment of the tools as far as it is known on this machine."""
    return {name: text for name, text in config.variables().items() if not _FILLED.search(text)}
