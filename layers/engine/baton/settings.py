"""Typed environment: settings of each function, read once at its cold start.

Only this module and the clock adapter read the environment. A wrong or missing variable stops the function at
its start and is named. The variable of a setting is `BATON_` and its name in capitals. Groups of settings are
declared in core/limits.py (the engine's own numbers), core/deployment.py and core/tracing.py (external
services).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from baton.core.deployment import Channels, ModelEndpoints, Outside, Remembering, SignIn
from baton.core.effects import toolspec
from baton.core.limits import (
    OFF,
    ON,
    Agents,
    Code,
    Effects,
    Estimates,
    Execution,
    Failing,
    FunctionCode,
    LastResort,
    Lifetime,
    Limits,
    Liveness,
    Money,
    People,
    Questions,
    Registration,
    Replanning,
    Retrying,
    SignalLimits,
    Stores,
    Tenants,
    Values,
)
from baton.core.tracing import Tracing
from baton.errors import BatonError

PREFIX = "BATON_"
ROLES = ("read", "run", "answer", "operate")  # what a caller of the API may do; web/routes.py says where
_WORKFLOW = r"^([a-z][a-z0-9-]{0,63}(@([0-9]{1,9}|[a-z][a-z0-9-]{0,31}))?)?$"
_TENANT = r"^[A-Za-z0-9_.:@+=|-]{0,128}$"
_A_ROLE = f"({'|'.join(ROLES)})"
M = TypeVar("M", bound="Settings")
Name = Annotated[str, Meta(min_length=1)]


class SettingsError(BatonError):
    """A variable is missing or has an invalid value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """Settings of every function."""

    table: Annotated[Name, Meta(description="Name of the table.")]
    bucket: Annotated[Name, Meta(description="Name of the bucket of blobs.")]
    shards: Annotated[
        int, Meta(ge=1, le=128, description="Shards of the due index. Never lower it on a table in use.")
    ] = 4
    status_shards: Annotated[
        int,
        Meta(ge=1, le=32, description="Shards of each tenant's lists. Never lower it on a table in use."),
    ] = 4
    cell: Annotated[
        int,
        Meta(
            ge=0,
            le=9_999,
            description="Number of this deployment among several that share the load of a service; the ids of its sagas begin "
            "with it (`c7.…`). 0: it is the only one. Never change it on a table in use.",
        ),
    ] = 0
    log_level: Annotated[
        str,
        Meta(pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="Least severe level that the engine logs."),
    ] = "INFO"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class App:
    """Settings that name the deployed sagas."""

    app: Annotated[
        Name, Meta(description="Python package of the app layer: its modules declare the tools.")
    ] = "sagas"
    secrets: Annotated[
        str,
        Meta(
            pattern=r"^([A-Za-z][A-Za-z0-9_]*=[^\s=]+( [A-Za-z][A-Za-z0-9_]*=[^\s=]+)*)?$",
            description="Variables of the tools whose values are secrets, each with the name of its secret. A function reads them "
            "when it starts. [baton.toml](#batontoml) sets it.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Callers:
    """Settings of the callers of the HTTP API: identities, rates, budgets, and the workflow for
    intentions.
    """

    intention_workflow: Annotated[
        str, Meta(pattern=_WORKFLOW, description="Workflow that `POST /intentions` starts. Empty: none.")
    ] = ""
    event_tenant: Annotated[
        str, Meta(pattern=_TENANT, description="Tenant that gets the events of `EventSources`. Empty: none.")
    ] = ""
    tenant_claim: Annotated[Name, Meta(description="Claim of the token that names the tenant.")] = "tenant"
    roles_claim: Annotated[Name, Meta(description="Claim of the token that names the roles.")] = "roles"
    groups_claim: Annotated[
        Name,
        Meta(description="Claim of the token that names the groups, whose questions the caller may answer."),
    ] = "groups"
    default_roles: Annotated[
        str,
        Meta(
            pattern=f"^(none|{_A_ROLE}([ ,]+{_A_ROLE})*)$",
            description="Roles of a token without that claim, or none.",
        ),
    ] = "read"
    tenant_rate_limit: Annotated[
        int,
        Meta(
            ge=0, le=10_000, description="Requests per second of one tenant, over ten seconds. 0: any number."
        ),
    ] = 50
    tenant_rate_bytes: Annotated[
        int,
        Meta(
            ge=1_024,
            le=5_242_880,
            description="Bytes of a request, and of its answer, that count as one request of its tenant; more count as several.",
        ),
    ] = 65_536
    max_body_bytes: Annotated[int, Meta(ge=1_024, le=5_242_880, description="Largest request body.")] = (
        262_144
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Standard:
    """Settings of the standard tools."""

    standard_tools: Annotated[
        str,
        Meta(
            pattern=toolspec.PATTERN,
            description="Standard tools that are switched on, separated by spaces; `std.*` is all of them but `std.named_pipeline`. Behind `=` the "
            "tenants that may use one, separated by commas: `std.http std.pay=acme,globex`.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MetricsSettings:
    """Settings of the functions that write metrics."""

    metrics: Annotated[
        str,
        Meta(
            pattern=f"^({ON}|{OFF})$",
            description="Metrics, which functions write into their logs. `off`: none, and alarms on them never go off.",
        ),
    ] = ON


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Sagas(
    Standard, ModelEndpoints, Retrying, Questions, LastResort, Money, Lifetime, Values, Tenants, Stores, App
):
    """Settings shared by the functions that start sagas and those that run them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ApiSettings(
    Callers, SignIn, Sagas, Remembering, Registration, SignalLimits, Estimates, MetricsSettings, Settings
):
    """Settings of the api function."""

    worker: Annotated[Name, Meta(description="Name of the worker function.")]


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkerSettings(
    Sagas,
    Remembering,
    Outside,
    Channels,
    Tracing,
    Execution,
    Failing,
    Replanning,
    Effects,
    Liveness,
    People,
    FunctionCode,
    Agents,
    Code,
    MetricsSettings,
    Settings,
):
    """Settings of the worker function."""

    queue_url: Annotated[Name, Meta(description="Queue of wakes.")]
    dead_letter_url: Annotated[Name, Meta(description="Queue for what no worker can handle.")]
    worker: Annotated[Name, Meta(description="Name of the worker function.")]
    notices_topic: Annotated[Name, Meta(description="ARN of the topic that tells people what needs them.")]
    api_url: Annotated[Name, Meta(description="Address of the HTTP API, for callbacks of work elsewhere.")]


@dataclass(frozen=True, kw_only=True, eq=False)
class RelaySettings(Stores, Settings):
    """Settings of the relay function."""

    queue_url: Annotated[Name, Meta(description="Queue of wakes.")]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReconcilerSettings(Code, MetricsSettings, Settings):
    """Settings of the reconciler function."""

    queue_url: Annotated[Name, Meta(description="Queue of wakes.")]
    worker: Annotated[Name, Meta(description="Name of the worker function.")]
    dead_letter_url: Annotated[Name, Meta(description="Queue for what no worker can handle.")]
    relay_failure_url: Annotated[Name, Meta(description="Queue for what the relay could not pass on.")]
    operator_tenant: Annotated[
        str,
        Meta(
            pattern=_TENANT,
            description="Tenant whose operators see dead letters that name no saga. Empty: no tenant's do.",
        ),
    ] = ""
    reconcile_period_s: Annotated[int, Meta(ge=1, le=900, description="Time between two runs.")] = 60


FUNCTIONS: Mapping[str, type[Settings]] = {
    "api": ApiSettings,
    "worker": WorkerSettings,
    "relay": RelaySettings,
    "reconciler": ReconcilerSettings,
}


def set_variables(values: Mapping[str, str]) -> None:
    """Set variables of the tools. Helper processes that start later have them too."""
    os.environ.update(values)


def variables_of_the_invocation() -> dict[str, str]:
    """Return the variables that Lambda's runtime updates for each invocation and that the SDK reads."""
    return {name: value for name, value in os.environ.items() if name == "_X_AMZN_TRACE_ID"}


def runtime_api() -> str:
    """Return the address of this function's Lambda runtime, `ip:port`, empty outside of Lambda. Tools must
    not use it.
    """
    return os.environ.get("AWS_LAMBDA_RUNTIME_API", "")


def region() -> str:
    """Return the AWS region of this process; empty if none is set."""
    return os.environ.get("AWS_REGION", "")


def is_debugged() -> bool:
    """Return true in a function of `baton up --debug`."""
    return bool(os.environ.get("BATON_DEBUG_TERMINAL"))


def local_key(kind: str, name: str) -> str:
    """Return a credential of a local run, empty if none is set."""
    return os.environ.get(local_key_variable(kind, name), "")


def local_key_variable(kind: str, name: str) -> str:
    """Return the variable of a credential of a profile (`MODEL`) or of an API (`API`)."""
    return f"{PREFIX}{kind}_KEY_{name.upper().replace('-', '_')}"


def variable_of(name: str) -> str:
    """Return the variable of a setting."""
    return PREFIX + name.upper()


def is_required(field: Field[Any]) -> bool:
    """Return true if the variable has no default."""
    return field.default is MISSING


def read_settings(model: type[M], environment: Mapping[str, str] | None = None) -> M:
    """Return the settings of a function from its variables. An empty variable counts as missing. Raises
    `SettingsError` with every invalid variable and its valid values.
    """
    source = os.environ if environment is None else environment
    types = get_type_hints(model, include_extras=True)
    given, faults = dict[str, Any](), list[str]()
    for field in fields(model):
        text = source.get(variable_of(field.name), "")
        if not text:
            if is_required(field):
                faults.append(f"{variable_of(field.name)}: is missing")
            continue
        try:
            given[field.name] = msgspec.convert(text, types[field.name], strict=False)
        except msgspec.ValidationError as error:
            faults.append(f"{variable_of(field.name)}: {error}")
    if faults:
        raise SettingsError("; ".join(faults))
    config = model(**given)
    try:
        Limits.of(config)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    return config
