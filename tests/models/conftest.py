"""A provider on loopback, whose script a test gives it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.provider import Served, served


@pytest.fixture
def provider() -> Iterator[Served]:
    with served() as one:
        yield one
