"""Template and settings say the same: each variable is read, each field is set, each limit is acceptable."""

from __future__ import annotations

import dataclasses

import pytest

from baton import settings
from baton.console.signing import CALLBACK
from baton.settings import FUNCTIONS as MODELS
from docs.settings_table import parameter_of, rows
from tests.deploy.stack import FUNCTIONS, ROOT, stack
from tests.deploy.test_functions import OF_THE_APP

# Read by aws-lambda-powertools and by the sagas, not by the engine.
NOT_THE_ENGINES = OF_THE_APP | {"POWERTOOLS_SERVICE_NAME"}


def of_the_engine(function: str) -> dict[str, str]:
    return {name: v for name, v in stack().variables(function).items() if name not in NOT_THE_ENGINES}


def fields(function: str) -> dict[str, str]:
    """Variable -> field of the function's settings."""
    return {settings.variable_of(field.name): field.name for field in dataclasses.fields(MODELS[function])}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_template_sets_every_field_and_nothing_that_no_function_reads(function: str) -> None:
    assert set(of_the_engine(function)) == set(fields(function))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_starts_with_what_the_template_gives_it(function: str) -> None:
    read = settings.read_settings(MODELS[function], stack().variables(function))
    for variable, field in fields(function).items():
        assert str(getattr(read, field)) == of_the_engine(function)[variable]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_default_of_the_settings_is_the_templates(function: str) -> None:
    for field in dataclasses.fields(MODELS[function]):
        # What tells the code that is deployed is made of the versions of its layers.
        if not settings.is_required(field) and field.name != "build":
            assert str(field.default) == of_the_engine(function)[settings.variable_of(field.name)], field.name


def test_a_setting_has_the_bounds_of_its_parameter() -> None:
    """The page of settings names one pair of bounds for both."""
    shown = {settings.variable_of(row.name): row.bounds for row in rows()}
    specs = stack().template.parameters
    for variable, parameter in parameter_of().items():
        spec = specs[parameter]
        allowed = spec.get("AllowedValues") or [
            spec[edge] for edge in ("MinValue", "MaxValue") if edge in spec
        ]
        numbers = [value for value in allowed if isinstance(value, int)]
        if numbers and parameter != "ReconcileMinutes":  # a setting in seconds
            assert shown[variable] == f"{min(numbers):,} to {max(numbers):,}", parameter


def extremes() -> list[tuple[str, str]]:
    """Each parameter with each of its outermost values."""
    found = []
    for name, spec in stack().template.parameters.items():
        values = spec.get("AllowedValues") or [
            spec[edge] for edge in ("MinValue", "MaxValue") if edge in spec
        ]
        found += [(name, str(value)) for value in values]
    return found


@pytest.mark.parametrize(("parameter", "value"), extremes())
def test_a_value_that_the_template_allows_lets_every_function_start(parameter: str, value: str) -> None:
    of = stack(**{parameter: value})
    for function, model in MODELS.items():
        settings.read_settings(model, of.variables(function))


def test_the_redirect_uri_that_an_operator_registers_is_the_one_that_the_console_has() -> None:
    described = stack().template.parameters["ConsoleClient"]["Description"]
    assert f"the API's address and {CALLBACK}." in described
    assert f"`https://<address of the API>{CALLBACK}`" in (ROOT / "docs/console.md").read_text()
