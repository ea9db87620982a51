"""What holds for every test: what the garbage collector looks at, how long e2e tests may take, and which of them share a process."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import pytest

from tests.kit.patience import PATIENCE_S


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end, and most of what a test makes is gone at once: the collector may look less."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """What shares a deployment, which takes seconds to start, runs in one process; the other e2e tests wherever there is room. Real processes may be slow."""
    for item in items:
        if item.get_closest_marker("e2e") is None:
            continue
        item.add_marker(pytest.mark.timeout(2 * PATIENCE_S))
        fixtures = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]  # pytest has no other word for it
        wide = {name: found[-1].scope for name, found in fixtures.items() if found[-1].baseid}
        session = sorted(name for name, scope in wide.items() if scope == "session")
        if session or "module" in wide.values():
            item.add_marker(pytest.mark.xdist_group(session[0] if session else item.path.stem))
