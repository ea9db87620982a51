"""What the shell of a local run says of models reaches its functions, and nothing else of it."""

from __future__ import annotations

from baton.local.functions import meant_for, parameters_of, variables_of

SHELL = {
    "HOME": "/x",
    "AWS_PROFILE": "real",
    "BATON_MODEL_KEY_OWN": "k1",
    "BATON_MODEL_KEY_EMPTY": "",
    "OPENAI_API_KEY": "k2",
}


def test_the_keys_of_profiles_are_passed_on_and_that_of_openai_by_its_own_name() -> None:
    assert variables_of(SHELL) == {"BATON_MODEL_KEY_OWN": "k1", "BATON_MODEL_KEY_OPENAI": "k2"}


def test_a_key_by_the_profiles_name_comes_before_openais() -> None:
    shell = {"BATON_MODEL_KEY_OPENAI": "mine", "OPENAI_API_KEY": "other"}
    assert variables_of(shell) == {"BATON_MODEL_KEY_OPENAI": "mine"}


def test_only_a_function_that_asks_models_gets_their_credentials() -> None:
    given = {"BATON_MODEL_KEY_OWN": "k1", "OTHER": "x"}
    assert meant_for({"BATON_MODEL_PROFILES": "own=https://a.example"}, given) == given
    assert meant_for({"BATON_TABLE": "t"}, given) == {"OTHER": "x"}


def test_the_credentials_of_apis_are_for_the_function_that_calls_them() -> None:
    given = variables_of({"BATON_API_KEY_WEATHER": "k3", "BATON_API_URL": "https://a.example"})
    assert given == {"BATON_API_KEY_WEATHER": "k3"}
    assert meant_for({"BATON_OPEN_APIS": ""}, given) == given
    assert meant_for({"BATON_MODEL_PROFILES": ""}, given) == {}


def test_an_address_of_openais_is_the_profile_openai() -> None:
    assert parameters_of({"OPENAI_BASE_URL": "http://127.0.0.1:8099/v1"}) == {
        "ModelProfiles": "openai=http://127.0.0.1:8099/v1"
    }
    assert parameters_of({}) == {}


def test_only_the_function_with_the_console_gets_its_secret() -> None:
    given = {"BATON_CONSOLE_KEY_CLIENT": "s1"}
    assert meant_for({"BATON_CONSOLE_SECRETS": ""}, given) == given
    assert meant_for({"BATON_TABLE": "t"}, given) == {}
