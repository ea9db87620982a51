"""Processes that see what Lambda's would: the standard library and what the layers ship, nothing of this machine's.

What is measured in them is in the benches.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import Distribution, distribution
from pathlib import Path
from types import MappingProxyType

from baton.shipping import NOT_SHIPPED
from baton.shipping.contents import EXTRA_PINS, PINS

ROOT = Path(__file__).parents[1]
_LIMIT_S = 300
# No settings, credentials or paths of the user who measures.
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "NO_PROXY": "127.0.0.1",
}


class NotAsShipped(Exception):
    """This environment has other versions than the layer: its figures would be those of something else."""


@cache
def packages() -> tuple[Distribution, ...]:
    """The layers' packages as they are installed here. Raises `NotAsShipped`."""
    found = []
    for line in [line for file in (PINS, EXTRA_PINS) for line in file.read_text("utf-8").splitlines()]:
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            here = distribution(name)
            if here.version != version:
                raise NotAsShipped(
                    f"{name} is {here.version} here and {version} in the layer: make install-dev"
                )
            found.append(here)
    return tuple(found)


def _link(source: Path, target: Path) -> None:
    """Link a file or a folder; one that several packages share is whole already."""
    if not target.exists():
        target.symlink_to(source)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder with the layer's packages and the engine's rooms that are shipped.

    The packages are links to what is installed: the same files, with the bytecode that pip made of them.
    """
    with tempfile.TemporaryDirectory(prefix="baton-shipped-") as name:
        target = Path(name)
        for package in packages():
            tops = {
                file.parts[0] for file in package.files or () if file.parts[0] not in {"..", "__pycache__"}
            }
            for top in tops:
                _link(Path(str(package.locate_file(top))).resolve(), target / top)
        engine = ROOT / "layers/engine/baton"
        shutil.copytree(
            engine,
            target / "baton",
            ignore=lambda where, names: NOT_SHIPPED.intersection(names) if Path(where) == engine else (),
        )
        yield target


def run(
    code: str,
    *paths: Path | str,
    environment: Mapping[str, str] = MappingProxyType({}),
    options: tuple[str, ...] = (),
) -> str:
    """Standard output and error of `code` in a new process that imports from `paths` and nowhere else.

    -I and -S: neither the environment's packages nor the current folder nor any PYTHON* variable.
    """
    code = f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", *options, "-c", code],
        env={**ENVIRONMENT, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the measuring process failed:\n{done.stderr[-4_000:]}")
    return done.stdout + done.stderr


def measure(name: str, runs: int) -> list[Mapping[str, float]]:
    """The samples of a bench, each taken in such a process of its own."""
    code = f"""
import json
from benchmarks.calibration import beside
from benchmarks.{name} import measure
print(json.dumps(beside(measure)))
"""
    with folder() as shipped:
        outputs = [run(code, shipped, ROOT) for _ in range(runs)]
    return [json.loads(output.splitlines()[-1]) for output in outputs]
