"""The one build that all tests of this room look at."""

from __future__ import annotations

import os

import pytest

from tests.deploy.built import Build, build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """`sam build` of this project."""
    base = tmp_path_factory.getbasetemp()
    # Each process of pytest-xdist has a folder of its own in one that they share.
    return build((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "sam-build")
