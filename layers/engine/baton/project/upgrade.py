"""The move of a project to the Baton that runs, newer or older, and back.

The difference is that of two files: the template that the project keeps, and the one that this Baton makes. A
project of a release without baton.toml owns its template; its additions go to baton.toml and resources.yaml.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from baton.core.version import VERSION
from baton.errors import BatonError
from baton.project.config import NAME, is_stack_name, parse_config, read_config
from baton.project.deployment import (
    FOLDER,
    RESOURCES,
    SAFE_DUMPER,
    TEMPLATE,
    allowed_parameters,
    deployment_files,
    engine_template,
    own_resources,
    parse_template,
    write_files,
)

KEPT: Final = Path(".baton/before-upgrade")
_LIST: Final = "files.json"
UNVERSIONED: Final = "without baton.toml"
_OWNED: Final = "template.yaml"  # of a project of a release without baton.toml
# What such a project has besides, and this one makes or does not need.
_FORMER: Final = (
    *("docs/workflow.schema.json", "env.json", "events/api/health.json", "events/reconciler/shard.json"),
    *(
        "functions/api/app.py",
        "functions/reconciler/app.py",
        "functions/relay/app.py",
        "functions/worker/app.py",
    ),
    *(
        "layers/engine/Makefile",
        "requirements-build.txt",
        "samconfig.toml",
        "statemachine/reconcile.asl.json",
        _OWNED,
    ),
)
_VERSION_LINE: Final = re.compile(r"""^(\s*baton\s*=\s*)["'][^"']*["']""", re.MULTILINE)
_REQUIRED: Final = re.compile(r"^\s*(?:baton([-_.]sagas)?\s*(\[|[=@<>~! ]|$)|-e\s+.*\[local\])")
_TOOLS: Final = ("Api", "Worker")
# Variables that a template gives its functions and that no tool of the project reads.
_ENGINES: Final = ("BATON_", "POWERTOOLS_", "AWS_")


class CannotUpgradeError(BatonError):
    """Error for a project that cannot be moved. `hint` is a remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Upgrade:
    """A move that nothing of is written yet: files to write and to remove, and what it means.

    `diff` is that of the template; `parameters` lists those that come, go, or have another default; `left`
    lists the work of a person.
    """

    before: str
    after: str
    files: Mapping[str, str]
    removed: Sequence[str] = ()
    diff: Sequence[str] = ()
    parameters: Sequence[str] = ()
    resources: Sequence[str] = ()
    left: Sequence[str] = ()


@dataclass
class _Found:
    """Additions of a person to the engine's template."""

    environment: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    permissions: list[dict[str, Any]] = field(default_factory=list)
    own: dict[str, dict[str, Any]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def plan_upgrade(project: Path, requirement: str, files: Mapping[str, str]) -> Upgrade:
    """Return the move to the running Baton. `requirement`: its line; `files`: those of a new project.

    Raises `CannotUpgradeError`, `ConfigError`.
    """
    if (project / NAME).is_file():
        planned = _between_versions(project, requirement)
        return replace(
            planned, files={p: text for p, text in planned.files.items() if text != _kept(project / p)}
        )
    if (project / _OWNED).is_file() and (project / "layers/app").is_dir():
        return _from_owned_template(project, requirement, files)
    raise CannotUpgradeError(
        f"{project} is no project of Baton: it has neither {NAME} nor {_OWNED}",
        "Run this in the project's folder.",
    )


def _between_versions(project: Path, requirement: str) -> Upgrade:
    text = (project / NAME).read_text("utf-8")
    config = read_config(project / NAME, _any_parameters(project))
    moved = _VERSION_LINE.sub(rf'\g<1>"{VERSION}"', text, count=1)
    files = {NAME: moved} | _requirements(project, requirement)
    made = _made(project, moved, own_resources(project))
    before = _template(project / TEMPLATE)
    return _compared(config.baton, before, made, files | made)


def _kept(file: Path) -> str:
    return file.read_text("utf-8") if file.is_file() else ""


def _any_parameters(project: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the parameters that either template declares."""
    kept = _template(project / TEMPLATE).get("Parameters") or {}
    return {**kept, **engine_template()["Parameters"]}


def _made(project: Path, text: str, own: Mapping[str, Any]) -> dict[str, str]:
    """Return the deployment that the project would have with this baton.toml. Raises `ConfigError`."""
    return deployment_files(project, parse_config(text, allowed_parameters(own)), own)


def _requirements(project: Path, requirement: str) -> dict[str, str]:
    """Return requirements.txt with another Baton."""
    file = project / "requirements.txt"
    lines = file.read_text("utf-8").splitlines() if file.is_file() else [requirement]
    places = [number for number, line in enumerate(lines) if _REQUIRED.match(line)]
    if places:
        lines[places[0]] = requirement
    else:
        lines.insert(0, requirement)
    return {file.name: "\n".join(lines) + "\n"}


def _template(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        found = parse_template(file.read_text("utf-8"))
    except yaml.YAMLError as error:
        raise CannotUpgradeError(f"{file} is not valid YAML: {error}", "Correct it first.") from error
    return found if isinstance(found, dict) else {}


def _compared(
    version: str, before: Mapping[str, Any], made: Mapping[str, str], files: Mapping[str, str], **more: Any
) -> Upgrade:
    after: dict[str, Any] = parse_template(made[TEMPLATE])
    return Upgrade(
        before=version,
        after=VERSION,
        files=files,
        diff=tuple(_diff(before, after)),
        parameters=tuple(_changed(before, after, "Parameters", _default)),
        resources=tuple(_changed(before, after, "Resources", lambda r: r.get("Type", ""))),
        **more,
    )


def _diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a unified diff of two templates, in one form and without their heads."""
    old, new = (
        yaml.dump(
            {k: v for k, v in t.items() if k != "Metadata"}, Dumper=SAFE_DUMPER, sort_keys=True, width=160
        ).splitlines()
        for t in (before, after)
    )
    yield from difflib.unified_diff(old, new, "before", "after", lineterm="", n=2)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], section: str, shown: Any) -> Iterator[str]:
    old, new = before.get(section) or {}, after.get(section) or {}
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"+ {name}  {shown(new[name])}"
        elif name not in new:
            yield f"- {name}  {shown(old[name])}"
        elif section == "Parameters" and shown(old[name]) != shown(new[name]):
            yield f"~ {name}  {shown(old[name])} → {shown(new[name])}"
        elif section == "Resources" and old[name] != new[name]:
            yield f"~ {name}  {shown(new[name])}"


def _default(parameter: Mapping[str, Any]) -> str:
    return str(parameter.get("Default", "(none)")) or '""'


# ---- a project that owns its template


def _from_owned_template(project: Path, requirement: str, files: Mapping[str, str]) -> Upgrade:
    before = _template(project / _OWNED)
    found = _beyond_the_engine(before)
    stack, given = _samconfig(project)
    found.parameters |= given
    name = stack if is_stack_name(stack) else project.name
    texts = {NAME: _toml(name, found)} | _requirements(project, requirement)
    texts |= {path: files[path] for path in (".gitignore", "Makefile")}
    texts |= _app_requirements(project)
    if found.own:
        texts[RESOURCES] = "# Resources of this project besides the engine's.\n" + yaml.safe_dump(
            found.own, sort_keys=False, width=120
        )
    made = _made(project, texts[NAME], found.own)
    texts |= _with_schema(project)
    left = [
        *found.left,
        *(
            f"{path}: yours differs from that of every new project; it is replaced"
            for path in (".gitignore", "Makefile")
            if _is_edited(project / path)
        ),
    ]
    removed = [path for path in _FORMER if (project / path).is_file()]
    return _compared(UNVERSIONED, before, made, texts | made, removed=removed, left=left)


def _beyond_the_engine(template: Mapping[str, Any]) -> _Found:
    """Return the additions of a person to the template that a project owned."""
    engine, found = engine_template(), _Found()
    resources = template.get("Resources") or {}
    declared = template.get("Parameters") or {}
    for name, spec in declared.items():
        theirs = engine["Parameters"].get(name)
        if theirs and "Default" in spec and str(spec["Default"]) != str(theirs.get("Default")):
            found.parameters[name] = str(spec["Default"])
    for function in _TOOLS:
        _add_variables(found, function, (resources.get(f"{function}Function") or {}).get("Properties") or {})
    known = {s.get("Sid") for s in _statements(engine["Resources"], "Worker")}
    for statement in _statements(resources, "Worker"):
        if statement.get("Sid") in known:
            continue
        if (permission := _permission(statement)) is None:
            found.left.append(f"{_OWNED}: WorkerRole: the statement {json.dumps(statement)}")
        else:
            found.permissions.append(permission)
    for section in ("Parameters", "Mappings", "Conditions", "Resources", "Outputs"):
        own = {k: v for k, v in (template.get(section) or {}).items() if k not in (engine.get(section) or {})}
        if own:
            found.own[section] = own
    return found


def _add_variables(found: _Found, function: str, properties: Mapping[str, Any]) -> None:
    for key, value in ((properties.get("Environment") or {}).get("Variables") or {}).items():
        if key.startswith(_ENGINES):
            continue
        if (text := _written(value)) is None:
            found.left.append(f"{_OWNED}: {function}Function: the variable {key} = {json.dumps(value)}")
        else:
            found.environment[key] = text
    if "VpcConfig" in properties:
        found.left.append(f"{_OWNED}: {function}Function: VpcConfig; write [vpc] in {NAME}")


def _statements(resources: Mapping[str, Any], function: str) -> Iterator[dict[str, Any]]:
    policies = ((resources.get(f"{function}Role") or {}).get("Properties") or {}).get("Policies") or []
    for policy in policies:
        # Some are conditional: what holds is in the middle of three.
        whole = policy["Fn::If"][1] if "Fn::If" in policy else policy
        yield from (whole.get("PolicyDocument") or {}).get("Statement") or []


def _written(value: Any) -> str | None:
    """Return a value as baton.toml has it, with `${…}` for a reference; None if it cannot."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, argument),) = value.items()
        if name == "Ref":
            return f"${{{argument}}}"
        if name == "Fn::GetAtt":
            return f"${{{'.'.join(argument) if isinstance(argument, list) else argument}}}"
        return argument if name == "Fn::Sub" and isinstance(argument, str) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if isinstance(value, (dict, list)) else str(value)


def _permission(statement: Mapping[str, Any]) -> dict[str, Any] | None:
    if statement.keys() - {"Sid", "Effect", "Action", "Resource", "Condition"} or statement.get("Condition"):
        return None
    actions, resources = (_listed(statement.get(key)) for key in ("Action", "Resource"))
    texts = [_written(resource) for resource in resources]
    if not all(isinstance(action, str) for action in actions) or None in texts:
        return None
    # A reference alone is an ARN only by what it refers to: it is written out by a person.
    if not all(str(text).startswith(("arn:", "*", "${")) for text in texts):
        return None
    return {"actions": actions, "resources": texts, "effect": statement.get("Effect", "Allow")}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _samconfig(project: Path) -> tuple[str, dict[str, str]]:
    """Return the stack and the parameters that `sam deploy --guided` has noted."""
    try:
        found = tomllib.loads((project / "samconfig.toml").read_text("utf-8")).get("default", {})
    except (OSError, tomllib.TOMLDecodeError):
        return "", {}
    told: dict[str, Any] = {}
    for command in ("global", "deploy"):
        told |= found.get(command, {}).get("parameters", {})
    overrides = told.get("parameter_overrides", "")
    text = overrides if isinstance(overrides, str) else " ".join(map(str, overrides))
    pairs = re.findall(r"([A-Za-z0-9]+)=(?:\"((?:[^\"\\]|\\.)*)\"|(\S*))", text)
    known = engine_template()["Parameters"]
    return str(told.get("stack_name", "")), {
        name: quoted or plain
        for name, quoted, plain in pairs
        if name in known and (quoted or plain) != str(known[name].get("Default", ""))
    }


_TABLES: Final = {"WorkerMemory": "memory", "WorkerTimeout": "timeout"}


def _toml(stack: str, found: _Found) -> str:
    """Return a baton.toml."""
    worker = {_TABLES[n]: v for n, v in found.parameters.items() if n in _TABLES}
    models = {n: v for n, v in found.parameters.items() if n in ("ModelProfiles", "ModelSecrets")}
    plain = {
        n: v for n, v in found.parameters.items() if n not in worker and n not in models and n not in _TABLES
    }
    lines = [
        "# What this project needs from its deployment. `baton render` checks it and makes deployment/ of it.",
        "",
    ]
    lines += [f"baton = {_quoted(VERSION)}", f"stack = {_quoted(stack)}", ""]
    lines += [
        "[environment]",
        *(f"{k} = {_quoted(v)}" for k, v in found.environment.items()),
        "",
        "[secrets]",
        "",
    ]
    lines += ["[parameters]", *(f"{k} = {_quoted(v)}" for k, v in plain.items()), ""]
    if worker:
        lines += ["[functions.worker]", *(f"{k} = {v}" for k, v in worker.items()), ""]
    if secrets := models.get("ModelSecrets"):
        lines += ["[models]", f"secrets = {_quoted(secrets)}", ""]
    if profiles := models.get("ModelProfiles"):
        pairs = [one.partition("=") for one in profiles.split()]
        lines += ["[models.profiles]", *(f"{k} = {_quoted(v)}" for k, _, v in pairs), ""]
    for permission in found.permissions:
        lines += ["[[permissions]]", *(f"{k} = {_quoted(v)}" for k, v in permission.items()), ""]
    return "\n".join(lines)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _app_requirements(project: Path) -> dict[str, str]:
    """Return the requirements of the application with the packages that every project had before."""
    file = project / "layers/app/requirements.txt"
    text = file.read_text("utf-8") if file.is_file() else ""
    extras = (
        "# Every project had these; take out what no workflow and no tool of yours needs: conditions in CEL, models, conditions in"
        " Python.\ncel-expr-python\nopenai\npydantic-monty\n"
    )
    return {"layers/app/requirements.txt": text + ("" if text.endswith("\n") or not text else "\n") + extras}


def _with_schema(project: Path) -> dict[str, str]:
    """Return the documents whose first line names the schema where it was."""
    found = {}
    for file in sorted((project / "layers/app").rglob("*.y*ml")):
        text = file.read_text("utf-8")
        moved = text.replace("/docs/workflow.schema.json", f"/{FOLDER}/workflow.schema.json", 1)
        if moved != text:
            found[file.relative_to(project).as_posix()] = moved
    return found


def _is_edited(file: Path) -> bool:
    """Return true for a Makefile with targets that Baton's own did not have."""
    if file.name != "Makefile" or not file.is_file():
        return False
    targets = set(re.findall(r"^([a-z-]+):", file.read_text("utf-8"), re.MULTILINE))
    return bool(targets - {"help", "install", "test", "up", "build", "deploy", "clean"})


# ---- writing, and back


def apply_upgrade(project: Path, upgrade: Upgrade) -> None:
    """Keep what is replaced and removed, then write and remove. Raises `OSError`."""
    kept = project / KEPT
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    new = [path for path in upgrade.files if not (project / path).exists()]
    for path in (*upgrade.files, *upgrade.removed):
        if (project / path).is_file():
            (kept / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(project / path, kept / path)
    (kept / _LIST).write_text(json.dumps({"before": upgrade.before, "new": new}, indent=1), "utf-8")
    write_files(project, upgrade.files)
    _remove(project, upgrade.removed)


def undo_upgrade(project: Path) -> str:
    """Put back the files as they were before the last upgrade, and return its version then.

    Raises `CannotUpgradeError`.
    """
    kept = project / KEPT
    try:
        told = json.loads((kept / _LIST).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CannotUpgradeError(
            f"there is no upgrade to take back: {KEPT} is not there",
            "Take the files from your repository, and install what requirements.txt names.",
        ) from error
    _remove(project, told["new"])
    for file in sorted(kept.rglob("*")):
        path = file.relative_to(kept)
        if file.is_file() and path.as_posix() != _LIST:
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, project / path)  # a new time: make installs anew
    shutil.rmtree(kept)
    return str(told["before"])


def _remove(project: Path, paths: Sequence[str]) -> None:
    """Remove files, and the folders that are empty then."""
    for path in paths:
        file = project / path
        file.unlink(missing_ok=True)
        for folder in file.parents:
            if folder == project or not folder.is_dir() or any(folder.iterdir()):
                break
            folder.rmdir()
