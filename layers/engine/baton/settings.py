"""The environment, typed: one model per function, read once at cold start.

The only file besides the clock adapter that may look outside. A wrong or missing variable stops the
function at its start with a message that names it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from baton.errors import BatonError

PREFIX = "BATON_"
M = TypeVar("M", bound="Settings")


class SettingsError(BatonError):
    """A variable is missing or has a value it cannot have."""


class Settings(BaseModel):
    """What every function needs."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    table: str = Field(min_length=1, description="name of the table")
    bucket: str = Field(min_length=1, description="name of the bucket of blobs")
    shards: int = Field(
        4, ge=1, le=64, description="shards of both indexes; never lower it on a table in use"
    )
    log_level: str = Field("INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="of the engine's log")


class ApiSettings(Settings):
    """The api function's."""

    app: str = Field("sagas", description="module of the app layer")
    max_body_bytes: int = Field(262_144, ge=1_024, le=6_291_456, description="largest request body")
    tenant_claim: str = Field("tenant", min_length=1, description="claim of the token that names the tenant")


class WorkerSettings(Settings):
    """The worker function's."""

    app: str = Field("sagas", description="module of the app layer")
    dead_letter_url: str = Field(min_length=1, description="queue for what nobody can handle")
    worker: str = Field(min_length=1, description="name of the worker function")
    lease_grace_ms: int = Field(
        1_000, ge=100, le=60_000, description="from the hard deadline to the lease's end"
    )
    yield_reserve_ms: int = Field(1_000, ge=100, le=60_000, description="held back for the hand-over")
    step_estimate_ms: int = Field(1_500, ge=1, le=900_000, description="expected time of a step never seen")


class RelaySettings(Settings):
    """The relay function's."""

    queue_url: str = Field(min_length=1, description="queue of wakes")


class ReconcilerSettings(Settings):
    """The reconciler function's."""

    queue_url: str = Field(min_length=1, description="queue of wakes")
    worker: str = Field(min_length=1, description="name of the worker function")
    dead_letter_url: str = Field(min_length=1, description="queue for what nobody can handle")
    reconcile_period_s: int = Field(60, ge=1, le=900, description="time between two runs")


def read(model: type[M], environment: Mapping[str, str] | None = None) -> M:
    """The settings of a function from `BATON_*` variables. Raises `SettingsError` naming all bad ones."""
    source = os.environ if environment is None else environment
    given: dict[str, Any] = {
        name: source[PREFIX + name.upper()]
        for name in model.model_fields
        if source.get(PREFIX + name.upper())
    }
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = [
            f"{PREFIX}{str(detail['loc'][0]).upper()}: {detail['msg']}"
            for detail in error.errors(include_url=False)
        ]
        raise SettingsError("; ".join(faults)) from error
