"""One made project for all tests that only look at it, and how a program is run in one.

No assertions here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from baton.scaffold.make import Project, make_project
from tests.docs.projects import OF_ITS_OWN

ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """`my-sagas`, made by the Baton of this checkout. Tests leave it as it is."""
    return make_project(tmp_path_factory.mktemp("made") / "my-sagas")


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Nothing of the tests' own surroundings that could lead to another Baton; nothing is written beside sources."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("BATON_", "AWS_", "PYTEST"))
    }
    return kept | OF_ITS_OWN | {"PYTHONPATH": str(ROOT / "layers/engine")}


@pytest.fixture(scope="session")
def run(made: Project, environment: dict[str, str]) -> Run:
    """`run("-m", "pytest")`: this interpreter in the made project, as its own .venv would be."""

    def call(
        *arguments: str, folder: Path = made.folder, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )

    return call
