"""Credentials of models and APIs, and addresses of models, that the shell of a local run has, as its functions get them.

`OPENAI_API_KEY` and `OPENAI_BASE_URL` are those of the profile `openai`, `BATON_MODEL_KEY_<PROFILE>` is any profile's,
and `BATON_API_KEY_<NAME>` that of an API.
"""

from __future__ import annotations

from collections.abc import Mapping

from baton.settings import local_key_variable, variable_of

_OPENAI = "openai"
# How the variables of credentials begin, by the variable of those functions that are given them.
_KEYS = {
    variable_of("model_profiles"): local_key_variable("MODEL", ""),
    variable_of("open_apis"): local_key_variable("API", ""),
    variable_of("console_secrets"): local_key_variable("CONSOLE", ""),
}


def variables_of(shell: Mapping[str, str]) -> dict[str, str]:
    """The variables of functions: credentials."""
    given = {name: value for name, value in shell.items() if name.startswith(tuple(_KEYS.values())) and value}
    if key := shell.get("OPENAI_API_KEY"):
        given.setdefault(local_key_variable("MODEL", _OPENAI), key)
    return given


def meant_for(declared: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Of the variables given to all functions those of one: credentials only where the template tells it what for."""
    others = tuple(begins for variable, begins in _KEYS.items() if variable not in declared)
    return {name: value for name, value in given.items() if not name.startswith(others)}


def parameters_of(shell: Mapping[str, str]) -> dict[str, str]:
    """The template's parameters: the address."""
    url = shell.get("OPENAI_BASE_URL")
    return {"ModelProfiles": f"{_OPENAI}={url}"} if url else {}
