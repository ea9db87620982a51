"""Planted bugs of sagas that stay with a version of the code. Each is searched for in tests/simulation/test_versions.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.core.log.folding import fold
from baton.runtime import mending
from baton.runtime.log.lease import EXPIRED, Leases
from baton.runtime.worker.runner import Runner
from tests.kit.bugs import replaced


@contextmanager
def a_worker_does_not_look_for_the_build() -> Iterator[None]:
    """Pinned row: a worker that gets a wake does not look which version the head names, nor what the log says."""

    def elsewhere(self: Any, head: Any, gone: str, *, is_expired: bool) -> str:
        return EXPIRED if is_expired else ""

    def began(state: Any, event: Any) -> Any:
        return replace(real(state, event), pinned="")

    real = vars(fold)["_TABLE"][vars(fold)["ev"].FunctionBegan]
    with replaced(Leases, "_elsewhere", elsewhere):
        vars(fold)["_TABLE"][vars(fold)["ev"].FunctionBegan] = began
        try:
            yield
        finally:
            vars(fold)["_TABLE"][vars(fold)["ev"].FunctionBegan] = real


@contextmanager
def the_head_alone_says_which_version() -> Iterator[None]:
    """Pinned row: a worker that takes a saga over from a dead one does not look for the version in the log."""

    async def is_anothers(self: Any, run: Any, gone: str) -> bool:
        return False

    with replaced(Runner, "_is_anothers", is_anothers):
        yield


@contextmanager
def a_version_with_sagas_counts_as_drained() -> Iterator[None]:
    """Pinned row: a version is deleted although open sagas stay with it."""

    async def count(self: Any) -> Any:
        found, is_unsure = await real(self)
        found.clear()
        return found, is_unsure

    real = mending.BuildKeeper._count
    with replaced(mending.BuildKeeper, "_count", count):
        yield
