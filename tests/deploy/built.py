"""`sam build` as a person runs it, once per run of the tests, and readers of what came of it. No assertions here."""

from __future__ import annotations

import ast
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from baton.local.template import parse
from tests.deploy.stack import ROOT

LAYERS = ("EngineLayer", "PackagesLayer", "AppLayer")


@dataclass(frozen=True)
class Build:
    """A folder as `sam build` leaves it; `said` is what it printed."""

    folder: Path
    said: str

    @cached_property
    def template(self) -> dict[str, Any]:
        document: dict[str, Any] = parse((self.folder / "template.yaml").read_text("utf-8"))
        return document

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Resources of the built template, by logical id."""
        return {name: r for name, r in self.template["Resources"].items() if r["Type"] == kind}

    def path(self, uri: str) -> Path:
        """What a CodeUri or ContentUri of the built template leads to."""
        return self.folder / uri

    def python(self, layer: str) -> Path:
        """The part of a layer that is on Lambda's path."""
        return self.folder / layer / "python"

    def files(self, pattern: str) -> list[Path]:
        """Files of all layers."""
        return [file for layer in LAYERS for file in sorted(self.folder.joinpath(layer).rglob(pattern))]


def build(folder: Path) -> Build:
    """The build of this run of the tests: the first process that asks makes it, the others wait for it."""
    folder.mkdir(parents=True, exist_ok=True)
    done, log = folder / "done", folder / "log"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            run = _sam_build(folder / "build")
            log.write_text(run.stdout + run.stderr, "utf-8")
            assert run.returncode == 0, log.read_text("utf-8")
            done.touch()
    return Build(folder / "build", log.read_text("utf-8"))


def _sam_build(into: Path) -> subprocess.CompletedProcess[str]:
    bin_ = Path(sys.executable).parent
    # Neither a person's credentials nor a container engine, nor what `make test` tells its own makes.
    foreign = ("AWS_", "DOCKER_", "MAKE", "MFLAGS", "PYENV_VERSION", "COMPILE_WITH")
    environment = {n: v for n, v in os.environ.items() if not n.startswith(foreign)} | {
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "DOCKER_HOST": f"unix://{into}/no-docker.sock",
        "SAM_CLI_TELEMETRY": "0",
    }
    command = [sys.executable, str(bin_ / "sam"), "build", "--build-dir", str(into)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


# ---- imports, read without importing anything: the machine's own packages must not help out


def imports(file: Path) -> Iterator[str]:
    """Every module that a file imports when it runs. `from a import b` counts as `a`."""
    tree = ast.parse(file.read_text("utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped.update(id(inner) for statement in node.body for inner in ast.walk(statement))
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def resolves(module: str, places: list[Path]) -> bool:
    """Whether a module is Python's own or a file below one of the places."""
    if module.partition(".")[0] in sys.stdlib_module_names:
        return True
    below = Path(*module.split("."))
    return any(
        (place / below).is_dir()
        or (place / below).with_suffix(".py").is_file()
        or any((place / below).parent.glob(f"{below.name}.*.so"))
        for place in places
    )
