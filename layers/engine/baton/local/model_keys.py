"""Credentials and addresses of models that the shell of a local run has, as its functions are given them.

`OPENAI_API_KEY` and `OPENAI_BASE_URL` are those of the profile `openai`, `BATON_MODEL_KEY_<PROFILE>` is any profile's.
"""

from __future__ import annotations

from collections.abc import Mapping

from baton.settings import model_key_variable, variable_of

_OPENAI = "openai"


def variables_of(shell: Mapping[str, str]) -> dict[str, str]:
    """The variables of functions: credentials."""
    given = {
        name: value for name, value in shell.items() if name.startswith(model_key_variable("")) and value
    }
    if key := shell.get("OPENAI_API_KEY"):
        given.setdefault(model_key_variable(_OPENAI), key)
    return given


def meant_for(declared: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Of the variables given to all functions those of one: credentials only where the template tells it of models."""
    if variable_of("model_profiles") in declared:
        return dict(given)
    return {name: value for name, value in given.items() if not name.startswith(model_key_variable(""))}


def parameters_of(shell: Mapping[str, str]) -> dict[str, str]:
    """The template's parameters: the address."""
    url = shell.get("OPENAI_BASE_URL")
    return {"ModelProfiles": f"{_OPENAI}={url}"} if url else {}
