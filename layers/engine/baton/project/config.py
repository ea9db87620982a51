"""baton.toml: the configuration of a project, checked with place and remedy.

The file names the needs of the application. The parameters that it may set, with their bounds, are those of
the engine's template.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, field

from baton.core.version import VERSION
from baton.errors import BatonError

NAME: Final = "baton.toml"
FUNCTIONS: Final = ("api", "worker", "relay", "reconciler")
# It becomes the name of the stack, and `<stack>-reconciler` is a function's name, which has 64 characters.
LONGEST: Final = 50
_STACK: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_VARIABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SECRET: Final = re.compile(r"/?[A-Za-z0-9_.-]{1,100}(/[A-Za-z0-9_.-]{1,100}){0,4}")
_SERVER: Final = re.compile(r"(?!std$)[a-z][a-z0-9_]{0,31}")
# Of the engine, of Lambda, and of Python: to set one would break the functions.
_RESERVED: Final = ("BATON_", "AWS_", "LAMBDA_", "_", "PYTHONPATH", "PATH")
# Parameters that another table says, by the table's name.
_ELSEWHERE: Final = {
    "WorkerMemory": "functions.worker",
    "WorkerTimeout": "functions.worker",
    "ModelProfiles": "models",
    "ModelSecrets": "models",
}


class ConfigError(BatonError):
    """Error of a baton.toml. `problems`: each with its place, and what would be right."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(self.problems))


class FunctionConfig(Struct, forbid_unknown_fields=True, frozen=True):
    """Memory of a function in MB; `timeout` of the worker in seconds."""

    memory: Annotated[int, Meta(ge=128, le=10_240)] | None = None
    timeout: Annotated[int, Meta(ge=3, le=900)] | None = None


class Functions(Struct, forbid_unknown_fields=True, frozen=True):
    """The functions: `package` of those that run tools, and the memory of each."""

    package: Literal["zip", "image"] = "zip"
    api: FunctionConfig = FunctionConfig()
    worker: FunctionConfig = FunctionConfig()
    relay: FunctionConfig = FunctionConfig()
    reconciler: FunctionConfig = FunctionConfig()


class Vpc(Struct, forbid_unknown_fields=True, frozen=True):
    """The network in which the worker runs tools."""

    subnets: Annotated[list[Annotated[str, Meta(pattern="^subnet-[0-9a-f]+$")]], Meta(min_length=1)]
    security_groups: Annotated[list[Annotated[str, Meta(pattern="^sg-[0-9a-f]+$")]], Meta(min_length=1)]


class Permission(Struct, forbid_unknown_fields=True, frozen=True):
    """A statement of IAM for the worker, which runs the tools. CloudFormation fills `${…}` in."""

    actions: Annotated[list[Annotated[str, Meta(pattern=r"^[a-z0-9-]+:[A-Za-z0-9*]+$")]], Meta(min_length=1)]
    resources: Annotated[list[Annotated[str, Meta(pattern=r"^(arn:.+|\*|\$\{.+)$")]], Meta(min_length=1)]
    effect: Literal["Allow", "Deny"] = "Allow"
    conditions: dict[str, dict[str, Any]] = field(default_factory=dict)


class Models(Struct, forbid_unknown_fields=True, frozen=True):
    """Providers of models by name, the default first, and the beginning of their credentials' names.

    The address of a provider with a known one may be empty.
    """

    profiles: dict[str, str] = field(default_factory=dict)
    secrets: str = ""


class McpTool(Struct, forbid_unknown_fields=True, frozen=True):
    """A tool of an MCP server that may be called. Without `effect` it is `once`, unless the hints of the
    server are trusted.
    """

    effect: Literal["", "pure", "idempotent", "once"] = ""
    requires_approval: bool = False


class McpServer(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """An MCP server. `credential`: `bearer` or the name of a header; empty for a server without one. `tools`:
    those that may be called, by the server's names.
    """

    url: Annotated[str, Meta(pattern=r"^https?://[^\s@#]{1,300}$")]
    credential: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{0,100}$")] = ""
    trust_hints: bool = False
    tools: dict[str, McpTool]


class Config(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A whole baton.toml."""

    baton: str
    stack: str
    region: str = ""
    environment: dict[str, str | int | float | bool] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str | int | float] = field(default_factory=dict)
    functions: Functions = Functions()
    vpc: Vpc | None = None
    permissions: list[Permission] = field(default_factory=list)
    models: Models = Models()
    mcp: dict[str, McpServer] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """Return the environment of the tools, without secrets."""
        return {name: text_of(value) for name, value in self.environment.items()}

    def values(self) -> dict[str, str]:
        """Return the parameters of the deployment that the file sets, in all of its tables."""
        given = {name: text_of(value) for name, value in self.parameters.items()}
        worker = self.functions.worker
        if worker.memory:
            given["WorkerMemory"] = str(worker.memory)
        if worker.timeout:
            given["WorkerTimeout"] = str(worker.timeout)
        if self.models.profiles:
            given["ModelProfiles"] = " ".join(
                f"{name}={url}" if url else name for name, url in self.models.profiles.items()
            )
        if self.models.secrets:
            given["ModelSecrets"] = self.models.secrets
        return given


def is_stack_name(name: str) -> bool:
    """Return true if a stack, and so a project, may have this name."""
    return _STACK.fullmatch(name) is not None and len(name) <= LONGEST


def text_of(value: str | float | bool) -> str:
    """Return a value as CloudFormation and a variable of the environment have it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class _Source:
    """A file and its text, by which a key has a line."""

    name: str
    text: str

    def at(self, *keys: str) -> str:
        """Return file, line and key: `baton.toml:7: vpc.subnets`."""
        line = self._line(keys)
        return f"{self.name}{f':{line}' if line else ''}: {'.'.join(keys)}"

    def _line(self, keys: tuple[str, ...]) -> int:
        table: tuple[str, ...] = ()
        best = 0
        for number, line in enumerate(self.text.splitlines(), 1):
            if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
                table = tuple(part.strip().strip("\"'") for part in header[1].split("."))
                if table == keys:
                    return number
                if keys[: len(table)] == table:
                    best = number
                continue
            key = re.match(r"\s*[\"']?([A-Za-z0-9_.-]+)[\"']?\s*=", line)
            if key is None:
                continue
            whole = (*table, *key[1].split("."))
            if whole == keys:
                return number
            if len(whole) < len(keys) and keys[: len(whole)] == whole:
                best = number
        return best


def read_config(path: Path, parameters: Mapping[str, Mapping[str, Any]]) -> Config:
    """Return the configuration in a file. `parameters`: those of the template. Raises `ConfigError`."""
    try:
        return parse_config(path.read_text("utf-8"), parameters)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name} cannot be read: {error}") from error


def read_models(path: Path) -> tuple[str, str]:
    """Return `ModelProfiles` and the region of a file; both are empty if it is not valid."""
    try:
        config = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Config)
    except (OSError, ValueError):
        return "", ""
    return config.values().get("ModelProfiles", ""), config.region


def parse_config(text: str, parameters: Mapping[str, Mapping[str, Any]]) -> Config:
    """Return the configuration in a text, as `read_config` does."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{NAME}: not TOML: {error}") from error
    source = _Source(NAME, text)
    if problems := list(_shape(source, found)):
        raise ConfigError(*problems)
    config = msgspec.convert(found, Config)
    if problems := list(_contents(source, config, parameters)):
        raise ConfigError(*problems)
    return config


def check_version(config: Config, running: str = VERSION) -> None:
    """Check that the project is of the running Baton. Raises `ConfigError`."""
    if config.baton == running:
        return
    older = _numbers(config.baton) < _numbers(running)
    raise ConfigError(
        f"{NAME}: this project is of Baton {config.baton}, and {running} is installed. "
        + (
            "`baton upgrade` shows what changes, and moves the project."
            if older
            else "Install what requirements.txt names with `make install`, or go back with `baton upgrade`."
        )
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


# ---- the shape: keys and types


def _shape(source: _Source, found: Mapping[str, Any]) -> Iterator[str]:
    known = {f.encode_name: f for f in msgspec.structs.fields(Config)}
    for name, f in known.items():
        if f.required and name not in found:
            example = VERSION if name == "baton" else "my-sagas"
            yield f'{source.name}: `{name}` is missing; write `{name} = "{example}"` at the top'
    for name, value in found.items():
        if name not in known:
            yield f"{source.at(name)}: there is no such key{_nearest(name, known)}"
            continue
        if name == "mcp" and isinstance(value, dict):
            # One by one, because the place of a mistake has no keys of a table that the author names.
            for server, said in value.items():
                try:
                    msgspec.convert(said, McpServer)
                except msgspec.ValidationError as error:
                    yield _fault(source, str(error), "mcp", server)
            continue
        try:
            msgspec.convert({name: value}, msgspec.defstruct("One", [(name, known[name].type)]))
        except msgspec.ValidationError as error:
            yield _fault(source, str(error))


def _fault(source: _Source, said: str, *within: str) -> str:
    """Return the words of msgspec about what is at a place as a place, a fault and a remedy."""
    message, _, path = said.partition(" - at `")
    keys = [*within, *(key for key in re.split(r"[.$]|\[[^\]]*\]", path.rstrip("`")) if key)]
    unknown = re.match(r"Object contains unknown field `(.+)`", message)
    if unknown:
        names = _fields_at(keys)
        return f"{source.at(*keys, unknown[1])}: there is no such key{_nearest(unknown[1], names)}"
    missing = re.match(r"Object missing required field `(.+)`", message)
    if missing:
        return f"{source.at(*keys)}: `{missing[1]}` is missing"
    return f"{source.at(*keys)}: {_words(keys, message)}"


_TYPES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
# What a text must be, by its last key.
_FORMS: Final = {
    "subnets": "ids such as subnet-0123456789abcdef0",
    "security_groups": "ids such as sg-0123456789abcdef0",
    "actions": "actions such as s3:GetObject",
    "resources": "an ARN, `${Resource.Arn}` of resources.yaml, or *",
    "url": "the address of the server, such as https://crm.example.com/mcp",
    "credential": "`bearer`, or the name of the header that it stands in",
}


def _words(keys: list[str], message: str) -> str:
    types = re.fullmatch(r"Expected `([^`]+)`, got `([^`]+)`", message)
    if types:
        wanted = [_TYPES.get(kind, kind) for kind in types[1].split(" | ") if kind != "null"]
        return f"it must be {' or '.join(wanted)}, and is {_TYPES.get(types[2], types[2])}"
    if "matching regex" in message and keys and keys[-1] in _FORMS:
        return f"write {_FORMS[keys[-1]]}"
    return f"{message[0].lower()}{message[1:].replace('`', '')}"


def _fields_at(keys: Sequence[str]) -> tuple[str, ...]:
    kinds: dict[str, type[Struct]] = {
        "functions": Functions,
        **dict.fromkeys((f"functions.{name}" for name in FUNCTIONS), FunctionConfig),
        "vpc": Vpc,
        "permissions": Permission,
        "models": Models,
    }
    if keys[:1] == ["mcp"]:
        return (McpTool if "tools" in keys else McpServer).__struct_fields__
    return kinds[".".join(keys)].__struct_fields__


def _nearest(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    close = close or [other for other in names if other.lower() == name.lower()]
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; there are {', '.join(names)}" if len(names) <= 12 else "; docs/configuration.md lists them"


# ---- the contents: names and bounds


def _contents(source: _Source, config: Config, parameters: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if not is_stack_name(config.stack):
        yield (
            f"{source.at('stack')}: {config.stack!r} cannot be the name of a stack; write lower-case letters, digits and"
            f" hyphens between them, at most {LONGEST} characters"
        )
    yield from _variables(source, config)
    for name in FUNCTIONS:
        if name != "worker" and getattr(config.functions, name).timeout is not None:
            yield (
                f"{source.at('functions', name, 'timeout')}: the time of this function belongs to the protocol; only the worker's"
                " can be set"
            )
    for name, server in config.mcp.items():
        if not server.tools:
            yield f"{source.at('mcp', name, 'tools')}: list the tools that may be called: `lookup = {{}}`"
        if not _SERVER.fullmatch(name):
            yield (
                f"{source.at('mcp', name)}: its tools would be `{name}.…`; write a name of lower-case letters, digits and `_`,"
                " other than std"
            )
    for name in config.parameters.keys() & _ELSEWHERE.keys():
        yield f"{source.at('parameters', name)}: write it under [{_ELSEWHERE[name]}]"
    for name, value in config.values().items():
        place = source.at(*_place_of(config, name))
        if name not in parameters:
            yield f"{place}: the deployment has no such parameter{_nearest(name, parameters)}"
        elif parameters[name].get("NoEcho"):
            yield (
                f"{place}: this is a secret, which belongs into no file; give it with `make deploy"
                f' ARGS="--parameter-overrides {name}=…"`'
            )
        elif fault := parameter_fault(parameters[name], value):
            yield f"{place}: {fault}"


def _variables(source: _Source, config: Config) -> Iterator[str]:
    for table, names in (("environment", config.environment), ("secrets", config.secrets)):
        for name in names:
            if not _VARIABLE.fullmatch(name):
                yield f"{source.at(table, name)}: a variable has letters, digits and `_`, and begins with a letter"
            elif name.startswith("BATON_"):
                yield f"{source.at(table, name)}: settings of the engine are parameters; write them under [parameters]"
            elif name.startswith(_RESERVED):
                yield f"{source.at(table, name)}: Lambda keeps this name for itself; choose another one"
    for name in sorted(config.environment.keys() & config.secrets.keys()):
        yield f"{source.at('secrets', name)}: it is under [environment] too; a variable has one value"
    for name, secret in config.secrets.items():
        if not _SECRET.fullmatch(secret):
            yield (
                f"{source.at('secrets', name)}: write the name of a secret, not its value: `/{config.stack}/key` is a parameter"
                f" of the SSM Parameter Store, `{config.stack}/key` a secret of Secrets Manager"
            )


def _place_of(config: Config, parameter: str) -> tuple[str, ...]:
    if parameter in config.parameters:
        return "parameters", parameter
    table = _ELSEWHERE[parameter].split(".")
    return *table, {"Profiles": "profiles", "Secrets": "secrets"}.get(
        parameter.removeprefix("Model"), parameter.removeprefix("Worker").lower()
    )


def parameter_fault(spec: Mapping[str, Any], value: str) -> str:
    """Return the fault of a parameter's value, empty if CloudFormation would take it."""
    hint = f": {spec['ConstraintDescription']}" if "ConstraintDescription" in spec else ""
    allowed = [str(item) for item in spec.get("AllowedValues", ())]
    if allowed and value not in allowed:
        return f"{value!r} is not one of {', '.join(allowed)}"
    if "AllowedPattern" in spec and re.fullmatch(str(spec["AllowedPattern"]), value) is None:
        return f"{value!r} is not what it takes{hint or ': it does not match ' + str(spec['AllowedPattern'])}"
    if spec.get("Type") == "Number":
        try:
            number = int(value)
        except ValueError:
            return f"{value!r} is not a whole number"
        if not float(spec.get("MinValue", "-inf")) <= number <= float(spec.get("MaxValue", "inf")):
            return f"{value} is not from {spec.get('MinValue')} to {spec.get('MaxValue')}"
    return ""
