"""Creation of a project: check its name and place, then write all of its files or none."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from baton.core.version import VERSION
from baton.errors import BatonError
from baton.project.config import LONGEST, is_stack_name, parse_config
from baton.project.deployment import allowed_parameters, deployment_files, write_files

DISTRIBUTION = "baton-sagas"


def requirement(*extras: str) -> str:
    """Return the requirement line for the running Baton."""
    try:
        found = distribution(DISTRIBUTION)
    except PackageNotFoundError:  # on the path without being installed: a checkout
        return _editable(Path(__file__).parents[4], extras)
    return requirement_of(found, *extras)


def requirement_of(found: Distribution, *extras: str) -> str:
    """Return the requirement line of an installed distribution, by its source, or its version of an index."""
    name = f"{DISTRIBUTION}[{','.join(extras)}]"
    text = found.read_text("direct_url.json")
    if not text:
        return f"{name}=={found.version}"
    direct: Mapping[str, Any] = json.loads(text)
    url = str(direct["url"])
    if direct.get("dir_info", {}).get("editable"):
        return _editable(Path(unquote(urlsplit(url).path)), extras)
    if "vcs_info" in direct:
        url = f"{direct['vcs_info']['vcs']}+{url}@{direct['vcs_info']['commit_id']}"
    if direct.get("subdirectory"):
        url += f"#subdirectory={direct['subdirectory']}"
    return f"{name} @ {url}"


def _editable(folder: Path, extras: tuple[str, ...]) -> str:
    text = f"{folder}[{','.join(extras)}]"
    return "-e " + (shlex.quote(text) if " " in text else text)


HERE = Path(__file__).parent
TEMPLATES, CI = HERE / "files", HERE / "ci"
SUFFIX = ".tmpl"
DOCUMENT, FUNCTION = "layers/app/sagas/order.yaml", "layers/app/sagas/workflows.py"
"""The workflow of a project, in its two forms. Its tools and its tests are the same."""
_ROWS = {
    DOCUMENT: "a workflow; every `*.yaml` beside it is one",
    FUNCTION: "a workflow; every function under `@workflow` beside it is one",
}
_ANSWERED = {
    DOCUMENT: """\
- `answers={"charge": "retry"}` answers what is asked when that step fails: `retry`, `fail`, or
  `{"action": "use", "output": …}`. A question that it does not answer fails the test at once.""",
    FUNCTION: """\
- `answers={"ask": "approve"}` answers what `context.ask` asks. A question that it does not answer fails the test at once.""",
}
SERVICES = ("github",)
"""Services of continuous integration for which a project can have a file."""


def project_files(values: Mapping[str, str], *, workflow: str = DOCUMENT) -> dict[str, str]:
    """Return a project's own files, as texts by path. `values` maps placeholders like `@NAME@` to texts.
    `workflow`: the file with the workflow.
    """
    values = {**values, "WORKFLOW": f"| `{workflow}` | {_ROWS[workflow]} |", "ANSWERS": _ANSWERED[workflow]}
    files: dict[str, str] = {}
    for template in sorted(TEMPLATES.rglob(f"*{SUFFIX}")):
        text = template.read_text("utf-8")
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        files[template.relative_to(TEMPLATES).as_posix().removesuffix(SUFFIX)] = text
    del files[FUNCTION if workflow == DOCUMENT else DOCUMENT]
    return files


# What may be in a folder already: one that was made for the project by git.
_HARMLESS = frozenset({".git"})


class CannotMakeError(BatonError):
    """Error for a project that cannot be created. The message contains the reason, `hint` a remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Project:
    """A created project: its name, its folder, and the paths of its files in it."""

    name: str
    folder: Path
    files: tuple[str, ...]


def make_project(folder: Path, ci: str = "", *, workflow: str = DOCUMENT) -> Project:
    """Create the project in `folder`, named as that, for one of `SERVICES` or none.

    `workflow`: the file with its workflow.

    Raises `CannotMakeError`, `SourceError`.
    """
    folder = folder.absolute() if folder.name not in ("", "..") else folder.resolve()
    _check_name(folder.name)
    _check_place(folder)
    values = {"NAME": folder.name, "BATON": requirement("local"), "VERSION": VERSION}
    files = project_files(values, workflow=workflow)
    if ci:
        files[f".{ci}/workflows/ci.yml"] = (CI / f"{ci}.yml").read_text("utf-8")
    config = parse_config(files["baton.toml"], allowed_parameters({}))
    files |= deployment_files(folder, config, {})
    try:
        _put(files, folder)
    except OSError as error:
        raise CannotMakeError(
            f"{folder} cannot be written: {error.strerror}", "Choose a folder that is yours."
        ) from error
    return Project(folder.name, folder, tuple(sorted(files)))


def _check_name(name: str) -> None:
    if is_stack_name(name):
        return
    better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").lstrip("0123456789-")[:LONGEST].rstrip("-")
    raise CannotMakeError(
        f"{name!r} cannot be the name of a project",
        f"Write lower-case letters, digits and hyphens between them, at most {LONGEST} characters, beginning"
        f" with a letter: {better or 'my-sagas'}",
    )


def _check_place(folder: Path) -> None:
    if not folder.parent.is_dir():
        raise CannotMakeError(f"there is no folder {folder.parent}", "Make it first, or choose another one.")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CannotMakeError(f"{folder} is there and is not a folder", "Choose another name.")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if set(there) - _HARMLESS:
        raise CannotMakeError(
            f"{folder} is there and is not empty: it has {', '.join(there[:5])}{' …' if there[5:] else ''}",
            "Choose another name, or an empty folder.",
        )


def _put(files: Mapping[str, str], folder: Path) -> None:
    """Write all files beside the target, then move them there. An existing folder stays the same folder."""
    is_new = not folder.exists()
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent if is_new else folder))
    try:
        write_files(beside, files)
        if is_new:
            beside.chmod(0o777 & ~_umask(beside))
            beside.rename(folder)
        else:
            _move_all(beside, folder)
            beside.rmdir()
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _move_all(source: Path, target: Path) -> None:
    moved: list[Path] = []
    try:
        for path in sorted(source.iterdir()):
            path.rename(target / path.name)
            moved.append(target / path.name)
    except BaseException:
        for path in moved:
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        raise


def _umask(folder: Path) -> int:
    """Return the user's umask for new folders; `mkdtemp` makes its own private to the user."""
    probe = folder / ".mode"
    probe.mkdir()
    mode = probe.stat().st_mode
    probe.rmdir()
    return 0o777 & ~mode
