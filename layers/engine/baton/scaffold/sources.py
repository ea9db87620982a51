"""Where the files of a new project come from: Baton's own deployment, and the templates beside this file.

It finds them, cuts out the example and fills in names. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from baton.errors import BatonError

# What a project has in common with Baton's own repository. There it lies at its root; a wheel carries it
# as `project` beside this file (hatch_build.py).
SHARED = (
    ".gitignore",
    "docs/workflow.schema.json",
    "env.json",
    "events/api/health.json",
    "events/reconciler/shard.json",
    "functions/api/app.py",
    "functions/reconciler/app.py",
    "functions/relay/app.py",
    "functions/worker/app.py",
    "layers/app/Makefile",
    "layers/engine/Makefile",
    "samconfig.toml",
    "statemachine/reconcile.asl.json",
    "template.yaml",
)
HERE = Path(__file__).parent
TEMPLATES = HERE / "files"
SUFFIX = ".tmpl"
BEGIN, END = "# example: begin", "# example: end"
STACK = 'stack_name = "{}"'


class SourceError(BatonError):
    """This installation of Baton has not the files that a project is made of."""


def shared_root() -> Path:
    """The folder that holds `SHARED`. Raises `SourceError`."""
    for root in (HERE / "project", *HERE.parents[3:4]):
        if all((root / path).is_file() for path in SHARED):
            return root
    raise SourceError(
        f"neither {HERE / 'project'} nor a checkout around it has template.yaml and what belongs to it;"
        " install Baton from its wheel, or use it from its repository"
    )


def without_example(text: str) -> str:
    """The text without the lines from each `# example: begin` to its `# example: end`."""
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


def project_files(values: Mapping[str, str], root: Path | None = None) -> dict[str, str]:
    """Path and text of every file of a project. `values`: what `@NAME@` and the like stand for."""
    root = root or shared_root()
    files = {path: without_example((root / path).read_text("utf-8")) for path in SHARED}
    stack = STACK.format("baton")
    if files["samconfig.toml"].count(stack) != 1:
        raise SourceError(f"samconfig.toml has not exactly one `{stack}`")
    files["samconfig.toml"] = files["samconfig.toml"].replace(stack, STACK.format(values["NAME"]))
    for template in sorted(TEMPLATES.rglob(f"*{SUFFIX}")):
        text = template.read_text("utf-8")
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        files[template.relative_to(TEMPLATES).as_posix().removesuffix(SUFFIX)] = text
    return dict(sorted(files.items()))
